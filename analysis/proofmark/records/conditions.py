"""Validity conditions besides CPU binding: firmware mode, scratch file system, hardware errors.

They are judged from what the node reported before and after its job (``nodes/``) and from the
journal of its mode, so that a run can be judged again elsewhere. What a node does not report is no
reason for INVALID.
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
    """The conditions of a run's measurements; what was found once of a node is remembered."""

    def __init__(self, run: Run, site: Site, nodes: Mapping[str, Node]) -> None:
        self._nodes = nodes
        self._partition = site.partition
        # The inventory itself may be on another machine: the run has what it needs of it.
        self._site = site.model_copy(update={"inventory": run.files.inventory})
        self._boots = {each.node: _proven(each) for each in journals(run.folder)}
        self._layout = cache(self._expected)
        self._found: dict[tuple[str, int, str, str], str] = {}

    def trouble(self, step: Step, mode: str, hosts: Iterable[str], start: str, end: str) -> str:
        """Return why what `step` measured on `hosts` cannot be trusted, or an empty string.

        Times are UTC in ISO 8601, as the nodes wrote them, so that they compare as text.
        """
        found: dict[str, None] = {}
        for host in hosts:
            node = self._nodes.get(host) or self._nodes.get(short_name(host))
            if node is None:
                continue
            for number, job in enumerate(node.jobs):
                if job.covers(step.id, start, end):
                    key = (node.host, number, step.id, mode)
                    if key not in self._found:
                        told = self._of_job(step, mode, node.host, job)
                        self._found[key] = "; ".join(told)
                    found[self._found[key]] = None
        return "; ".join(filter(None, found))

    def _of_job(self, step: Step, mode: str, host: str, job: JobOnNode) -> Iterator[str]:
        facts = job.provenance.facts
        if job.provenance.invalid:
            yield job.provenance.invalid
        yield from self._other_mode(mode, host, facts)
        yield from self._other_file_system(step, host, facts)

    def _other_mode(self, mode: str, host: str, facts: NodeFacts) -> Iterator[str]:
        boot = facts.boot_id or ""
        known = self._boots.get(host, {}).get(boot)
        if known is not None and known != mode:
            yield f"{host} was in mode {known}, planned in {mode}"
        expected = self._layout(mode)
        if expected is None or not facts.numa:
            return
        seen = NumaShape(
            tuple(sorted((len(each.cpus), each.memory_bytes) for each in facts.numa if each.cpus)),
            tuple(sorted(each.memory_bytes for each in facts.numa if not each.cpus)),
        )
        if not same_numa_shape(seen, expected):
            yield f"{host} shows {seen}; in mode {mode} it is {expected}"

    def _expected(self, mode: str) -> NumaShape | None:
        """Return the domains of a node in `mode`; None where nobody declares them.

        A virtual node shows the memory of the machine that it stands on, whatever its mode.
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
        demand = self._partition.scratch
        if step.file_system and self._partition.file_systems:
            return  # of a further file system the inventory tells no more than its path
        mount = mount_of(demand.path, facts.mounts)
        if mount is None:
            return
        other = demand.type not in (None, mount.kind) or demand.source not in (None, mount.source)
        if other or (demand.off_root and mount.target == "/"):
            wanted = " ".join(filter(None, (demand.type, demand.source))) or "another than /"
            yield f"{host} had {mount.kind} ({mount.source}) at {demand.path}, planned on {wanted}"


def mount_of(path: str, mounts: Iterable[Mount]) -> Mount | None:
    """Return the mount that `path` lies on: the deepest one, of those in one place the last."""
    above = [each for each in mounts if f"{path}/".startswith(f"{each.target.rstrip('/')}/")]
    return max(reversed(above), key=lambda each: len(each.target.rstrip("/")), default=None)


def _proven(journal: Journal) -> dict[str, str]:
    """Return the mode of each boot in which one, and no other, was verified.

    That a node is back as it was found says nothing of which mode that is.
    """
    modes: dict[str, set[str]] = {}
    for line in journal.lines():
        boot = line.get("seen", {}).get("boot_id")
        done = line["state"] == "verified" and line["event"] == RESULT
        if done and boot and line["mode"] != RESTORED:
            modes.setdefault(str(boot), set()).add(str(line["mode"]))
    return {boot: next(iter(told)) for boot, told in modes.items() if len(told) == 1}
