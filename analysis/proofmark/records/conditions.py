"""Validity conditions besides CPU binding: firmware mode, scratch file system, hardware errors.

They are checked with the reports of each node before and after its job (``nodes/``) and with the
journal of its mode, so that a run can be judged again on another machine. A fact that a node does
not report makes nothing INVALID.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache

from proofmark.common.errors import BadInput
from proofmark.common.nodesets import short_name
from proofmark.plan.plan import SCRATCH, Step
from proofmark.runs.journal import RESTORED, RESULT, Journal, journals
from proofmark.runs.nodes import JobOnNode, Node
from proofmark.runs.run import Run
from proofmark.site.inventory import Site
from proofmark.site.machines import topology_of_mode
from proofmark.site.node.facts import NodeFacts
from proofmark.site.node.numa import NumaShape, numa_shape, same_numa_shape
from proofmark.site.node.parts import Mount


class Conditions:
    """Checks the conditions of the measurements of a run; the results for a node are cached."""

    def __init__(self, run: Run, site: Site, nodes: Mapping[str, Node]) -> None:
        self._nodes = nodes
        self._partition = site.partition
        # The inventory may be on another machine; the run has copies of the needed files.
        self._site = site.model_copy(update={"inventory": run.files.inventory})
        self._mode_of_boot = {each.node: _verified_modes(each) for each in journals(run.folder)}
        self._expected_shape = cache(self._shape_of_mode)
        self._reasons: dict[tuple[str, int, str, str], str] = {}

    def invalid_reason(
        self, step: Step, mode: str, hosts: Iterable[str], start: str, end: str
    ) -> str:
        """Return why the measurement of `step` on `hosts` is INVALID, or an empty string.

        `start` and `end` are UTC in ISO 8601, so that they compare as text.
        """
        reasons: dict[str, None] = {}
        for host in hosts:
            node = self._nodes.get(host) or self._nodes.get(short_name(host))
            if node is None:
                continue
            reasons.update(dict.fromkeys(node.damage(step.id, start, end)))
            for number, job in enumerate(node.jobs):
                if job.covers(step.id, start, end):
                    key = (node.host, number, step.id, mode)
                    if key not in self._reasons:
                        self._reasons[key] = "; ".join(self._of_job(step, mode, node.host, job))
                    reasons[self._reasons[key]] = None
        return "; ".join(filter(None, reasons))

    def _of_job(self, step: Step, mode: str, host: str, job: JobOnNode) -> Iterator[str]:
        facts = job.provenance.facts
        if job.provenance.invalid:
            yield job.provenance.invalid
        yield from self._other_mode(mode, host, facts)
        yield from self._other_file_system(step, host, facts)

    def _other_mode(self, mode: str, host: str, facts: NodeFacts) -> Iterator[str]:
        verified = self._mode_of_boot.get(host, {}).get(facts.boot_id or "")
        if verified is not None and verified != mode:
            yield f"{host} was in mode {verified}, planned in {mode}"
        expected = self._expected_shape(mode)
        if expected is None or not facts.numa:
            return
        observed = NumaShape(
            tuple(sorted((len(each.cpus), each.memory_bytes) for each in facts.numa if each.cpus)),
            tuple(sorted(each.memory_bytes for each in facts.numa if not each.cpus)),
        )
        if not same_numa_shape(observed, expected):
            yield f"{host} reported {observed}; mode {mode} has {expected}"

    def _shape_of_mode(self, mode: str) -> NumaShape | None:
        """Return the NUMA domains of a node in `mode`; None if the inventory does not declare them.

        It is None for a virtual node as well: it reports the memory of the machine below it.
        """
        virtual = self._partition.host_cpus is not None or self._partition.origin != "measured"
        if virtual or mode not in self._partition.modes:
            return None
        try:
            return numa_shape(topology_of_mode(self._site, mode))
        except BadInput:
            return None

    def _other_file_system(self, step: Step, host: str, facts: NodeFacts) -> Iterator[str]:
        texts = [*step.arguments, *step.environment.values(), *step.inputs.values()]
        if not step.bytes and not any(SCRATCH in text for text in texts):
            return
        planned = self._partition.scratch
        if step.file_system and self._partition.file_systems:
            return  # the inventory has only the path of a further file system
        mount = mount_of(planned.path, facts.mounts)
        if mount is None:
            return
        differs = planned.type not in (None, mount.kind) or planned.source not in (
            None,
            mount.source,
        )
        if differs or (planned.off_root and mount.target == "/"):
            expected = " ".join(filter(None, (planned.type, planned.source))) or "another than /"
            found = f"{mount.kind} ({mount.source})"
            yield f"{host} had {found} at {planned.path}, planned on {expected}"


def mount_of(path: str, mounts: Iterable[Mount]) -> Mount | None:
    """Return the mount of `path`: the deepest one, and the last of several at the same place."""
    above = [each for each in mounts if f"{path}/".startswith(f"{each.target.rstrip('/')}/")]
    return max(reversed(above), key=lambda each: len(each.target.rstrip("/")), default=None)


def _verified_modes(journal: Journal) -> dict[str, str]:
    """Return the verified mode of each boot; boots with several verified modes are left out.

    `RESTORED` is left out as well: it is the original state, whatever mode that is.
    """
    modes: dict[str, set[str]] = {}
    for line in journal.lines():
        boot = line.get("seen", {}).get("boot_id")
        verified = line["state"] == "verified" and line["event"] == RESULT
        if verified and boot and line["mode"] != RESTORED:
            modes.setdefault(str(boot), set()).add(str(line["mode"]))
    return {boot: next(iter(names)) for boot, names in modes.items() if len(names) == 1}
