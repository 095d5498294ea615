"""What the executions of all steps of a run are read and checked with.

The conditions beside the binding of CPUs are firmware mode, scratch file system and hardware
errors. They are checked with the reports of each node before and after its job (``nodes/``) and
with the journal of its mode, so that a run can be judged again on another machine. Without a report
before and one after the job a step is INVALID; only a model of a machine has no nodes. A single
fact that a report does not have makes nothing INVALID if like nodes lack it as well (`probe_gaps`),
with one exception: if a partition that is not emulated has ``firmware``, the mode must be proven
for the boot in which a step ran.

``scratch.json`` has what the script of a step saw in the scratch folder before it removed it. A
program that writes a relative name, or a scratch that is not mounted, measures another disk.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import PurePosixPath
from typing import NamedTuple

from proofmark.cases.suite import Benchmarks
from proofmark.common.archive import Change
from proofmark.common.errors import BadInput
from proofmark.common.files import parse_json
from proofmark.common.grouping import gathered
from proofmark.common.host_names import HostTable, canonical, same_host, shared_domain
from proofmark.common.message import NOTHING, Message, joined
from proofmark.common.text import one_line, size
from proofmark.plan.kinds import origin_of
from proofmark.plan.step import Step, WrittenFiles
from proofmark.records.binding import HostNames
from proofmark.records.columns import VIRTUAL
from proofmark.records.network import NetworkCheck
from proofmark.runs.attempts import UNREADABLE, Attempt, damage
from proofmark.runs.journal import RESTORED, RESULT, Journal, journals
from proofmark.runs.nodes import JobOnNode, Node, ProbedNodes, nodes_of
from proofmark.runs.run import Run, benchmarks_of, reported_names, site_of
from proofmark.runs.run_files import StepFiles
from proofmark.runs.samples import read_looks
from proofmark.site.ceilings import UNIVERSAL, Ceilings, ceilings_of, of_nodes, stated_ceilings
from proofmark.site.file_systems import FileSystem, network_kinds, planned_instead
from proofmark.site.inventory import Site
from proofmark.site.machines import counted_node, topology_of_mode
from proofmark.site.node.counters import rule_of
from proofmark.site.node.facts import NodeFacts
from proofmark.site.node.parts import MountedFileSystem, mount_of, mount_text
from proofmark.site.node.probe_text import COUNTERS
from proofmark.site.node.provenance import INFORMATION
from proofmark.site.node.topology import (
    NumaShape,
    numa_shape,
    numa_shape_of_domains,
    same_numa_shape,
)
from proofmark.site.partition import PREDICTED, Partition
from proofmark.software.software import Software, software_of


@dataclass(frozen=True)
class ScratchFiles:
    """The files of an execution in its scratch folder.

    Attributes:
        real: the folder of the largest file, without symbolic links; that of the scratch folder if
            there is no file.
        mount: the mount of `real` while the program ran; its texts are empty if no mount contains
            it, as in a chroot whose ``/`` is no mount point.
        most: the number of files at which the script stopped to count.
    """

    folder: str
    real: str
    mount: MountedFileSystem
    bytes: int
    files: int
    most: int


def read_scratch_files(content: bytes) -> ScratchFiles:
    """Return what ``scratch.json`` states.

    Raises:
        `UNREADABLE`: `content` is damaged.
    """
    entry = parse_json(content)
    # The script writes each byte of an unusual text as one character.
    words = {
        key: str(entry[key]).encode("latin-1").decode("utf-8", "replace")
        for key in ("scratch", "real", "kind", "source", "target")
    }
    mount = MountedFileSystem(
        source=words["source"], target=words["target"], kind=words["kind"], options=""
    )
    numbers = int(entry["bytes"]), int(entry["files"]), int(entry["most"])
    return ScratchFiles(words["scratch"], words["real"], mount, *numbers)


def scratch_error(
    step: Step, content: bytes, partition: Partition, recorded: Sequence[MountedFileSystem]
) -> Message:
    """Return why the files of an execution are not those that `step` must write, or `NOTHING`.

    Args:
        content: ``scratch.json`` of the execution.
        recorded: the mounts that the node reported before the job; empty if it did not.
    """
    if step.writes is None:
        return NOTHING
    if not content:
        return Message("scratch-unknown", file=StepFiles.scratch_files.path)
    try:
        seen = read_scratch_files(content)
    except UNREADABLE as error:
        return damage(StepFiles.scratch_files.path, error)
    scratch = partition.scratch
    default = FileSystem(
        name="scratch", path=scratch.path, type=scratch.type, source=scratch.source
    )
    further = {each.name: each for each in partition.file_systems}
    planned = further.get(step.file_system, default)
    if not PurePosixPath(seen.folder).is_relative_to(planned.path):
        return Message("scratch-elsewhere", found=one_line(seen.folder), planned=planned.path)
    if not seen.files:
        return Message("scratch-empty", folder=seen.folder)
    return _other_mount(planned, seen, partition, recorded) or _too_small(step.writes, seen)


def _other_mount(
    planned: FileSystem,
    seen: ScratchFiles,
    partition: Partition,
    recorded: Iterable[MountedFileSystem],
) -> Message:
    found = mount_text(seen.mount.kind, seen.mount.source)
    wrote = {"path": planned.path, "found": found}
    named = planned.source in (None, seen.mount.source)
    off_root = partition.scratch.off_root and planned.name == "scratch"
    if expected := planned_instead(planned, seen.mount, off_root=off_root):
        return Message("scratch-mount", planned=expected, **wrote)
    before = mount_of(planned.path, recorded)
    # An emulated node reports the mounts of the node that it emulates.
    if (planned.source and named) or partition.origin != "measured" or before is None:
        return NOTHING
    if (before.kind, before.source) != (seen.mount.kind, seen.mount.source):
        reported = {"before": f"{before.kind} ({before.source})", **wrote}
        if PurePosixPath(planned.path) in PurePosixPath(seen.real).parents:
            return Message("scratch-mount-changed", **reported)
        return Message("scratch-link-changed", real=seen.real, **reported)
    for other in partition.file_systems:
        if other.name != planned.name and mount_of(other.path, recorded) == before:
            return Message("scratch-same", name=planned.name, other=other.name, found=found)
    return NOTHING


def _too_small(least: WrittenFiles, seen: ScratchFiles) -> Message:
    if seen.files >= seen.most:  # the script counted no further
        return NOTHING
    where = seen.folder
    if seen.files < least.files:
        return Message("scratch-files", found=seen.files, least=least.files, folder=where)
    if seen.bytes < least.bytes:
        found = f"{size(seen.bytes)} ({seen.bytes} bytes)"
        return Message("scratch-bytes", folder=where, found=found, least=least.bytes)
    return NOTHING


NO_PROOF = {
    *("clock", "lscpu", "topology", "cgroup", "sizes", "drivers"),
    *(f"{COUNTERS}.{group}" for group in INFORMATION),
}
"""Sections from which no figure is judged; ``cgroup`` has no line if nothing is limited."""

HARDWARE = {"fabric": ("infiniband",), "nics": ("net", "pcie"), "accelerators": ()}
"""Sections that are absent if the node has no such hardware, with the groups of their counters. The
comparison of parts judges what hardware a node has."""

Gaps = Mapping[tuple[str, str], tuple[Message, ...]]
"""What a probe lacks, by node and attempt of a job as in ``when.json``."""


def probe_gaps(nodes: ProbedNodes) -> Gaps:
    """Return what the probe before each attempt lacks and at least half of the like nodes have.

    Such a probe proves less than theirs: one driver that is not loaded, or one tool that was too
    slow, would hide the faults of a node. A section that all like nodes lack is no gap: the machine
    does not have it.

    Like nodes have the same processor. What another attempt on the node has is not absent either.
    """
    jobs = {host: node.jobs for host, node in nodes.items() if node.jobs}
    lacking = {
        host: [dict(_lacks(job.provenance.facts)) for job in of_host]
        for host, of_host in jobs.items()
    }
    always = {host: set.intersection(*map(set, each)) for host, each in lacking.items()}
    alike = gathered((nodes[host].newest.cpu_model, host) for host in jobs)
    gaps: dict[tuple[str, str], tuple[Message, ...]] = {}
    for hosts in alike.values():
        missing: Counter[str] = Counter()
        for host in hosts:
            missing.update(always[host])
        for host in hosts:
            for job, reasons in zip(jobs[host], lacking[host], strict=True):
                having = {name: len(hosts) - missing[name] for name in reasons}
                found = tuple(
                    Message(
                        "probe-gap",
                        node=host,
                        file=f"workdir/jobs/{job.name}/{host}.before",
                        section=name,
                        text=reasons[name],
                        having=number,
                        nodes=len(hosts),
                    )
                    for name, number in having.items()
                    if 2 * number >= len(hosts) or name not in always[host]
                )
                if found:
                    gaps[host, job.name] = found
    return gaps


def _lacks(facts: NodeFacts) -> Iterator[tuple[str, Message]]:
    """Yield the sections, counters and values that a probe does not have, each with its reason.

    The key of another section differs from node to node: its absence is shown with the node. So is
    that of the count of a counter that no rule judges.
    """
    not_there: set[str] = set()
    for section, groups in HARDWARE.items():
        if section in facts.absent:
            not_there |= {section, *(f"{COUNTERS}.{group}" for group in groups)}
    for name, reason in facts.absent.items():
        section, _, key = name.partition(".")
        if reason.code == "absent-no-count" and rule_of(key) is None:
            continue
        if name not in NO_PROOF | not_there and (not key or section == COUNTERS):
            yield name, reason
    for name, text in facts.unread.items():
        if name.partition(".")[0] not in NO_PROOF:
            yield name, Message("absent-unread", value=text)


class Conditions:
    """Checks the conditions of the measurements of a run; the results for a node are cached."""

    def __init__(self, run: Run, site: Site, nodes: ProbedNodes) -> None:
        self._nodes = nodes
        self._gaps = probe_gaps(nodes)
        self._table = HostTable.reported(nodes)
        self._further = reported_names(run, site)
        self._reporting: dict[str, dict[str, None]] = {}  # nodes by the names that they may report
        for host in nodes:
            for name in map(canonical, self._further.get(host, ())):
                self._reporting.setdefault(name, {})[host] = None
        self._needs_report = site.partition.origin != PREDICTED
        self._partition = site.partition
        # The inventory may be on another machine; the run has copies of the needed files.
        self._site = site.model_copy(update={"inventory": run.files.inventory})
        self._proofs = {each.node: _proof(each) for each in journals(run.folder)}
        self._proven = HostTable.of(self._proofs)
        # An emulated node that is no virtual node runs its steps in the boot of another machine.
        own_boot = self._partition.origin == "measured" or self._partition.host_cpus is not None
        self._needs_proof = self._partition.firmware is not None and own_boot
        self._expected_shape = cache(self._shape_of_mode)
        self._reports = cache(self._nodes_of)
        self._reasons: dict[tuple[str | bool | None, ...], Message] = {}
        path, probed = site.partition.scratch.path, [each for each in nodes.values() if each.jobs]
        mounts = [mount_of(path, each.newest.mounts) for each in probed]
        shared = [each for each in mounts if each and each.kind in network_kinds()]
        self._scratch_is_shared = 2 * len(shared) > len(probed)

    def invalid_reason(
        self, step: Step, mode: str, hosts: Iterable[str], execution: Attempt
    ) -> Message:
        """Return why an execution of `step` on `hosts` is INVALID, or `NOTHING`."""
        return joined(self._reason(step, mode, host, execution) for host in hosts)

    def _reason(self, step: Step, mode: str, host: str, execution: Attempt) -> Message:
        """Return the reason of one node. The executions of one attempt of a job share it."""
        if not execution.job_attempt or any(node.damaged for node in self._reports(host)):
            return joined(self._of_host(step, mode, host, execution))
        of_attempt = execution.job_attempt, execution.boot_id, execution.host
        key = (host, mode, step.uses_scratch, step.file_system, *of_attempt)
        if key not in self._reasons:
            self._reasons[key] = joined(self._of_host(step, mode, host, execution))
        return self._reasons[key]

    def _of_host(self, step: Step, mode: str, host: str, execution: Attempt) -> Iterator[Message]:
        nodes = self._reports(host)
        damage = [*chain.from_iterable(node.damage(step.id, execution) for node in nodes)]
        yield from damage
        boots: set[str] = set()
        proven = bool(damage) or not self._needs_report
        for node in nodes:
            for job in node.jobs:
                if job.covers(step.id, execution):
                    proven = True
                    boots |= job.boots
                    yield from self._of_job(step, mode, node.host, job)
        if not proven:
            code = "state-not-proven" if nodes else "state-missing"
            yield Message(code, node=host, file=f"nodes/{host}.json")
        if self._needs_proof and execution.boot_id is not None:
            yield self._unproven(mode, host, boots, execution)

    def _nodes_of(self, host: str) -> list[Node]:
        own = self._table.found([host, *self._further.get(host, ())])
        others = () if own else self._reporting.get(canonical(host))
        if others is None:
            named = (nodes for name, nodes in self._reporting.items() if same_host(name, host))
            others = dict.fromkeys(chain.from_iterable(named))
        return [self._nodes[each] for each in sorted(own) or others]

    def _reports_as(self, host: str, execution: Attempt) -> bool:
        """Return whether `host` is the node that started `execution`, by any of its names."""
        names = (host, *self._further.get(host, ()))
        return any(same_host(name, execution.host) for name in names)

    def mounts(self, step: Step, execution: Attempt) -> tuple[MountedFileSystem, ...]:
        """Return the mounts that the node of `execution` reported before its job; may be empty."""
        jobs = chain.from_iterable(node.jobs for node in self._reports(execution.host))
        covering = [job for job in jobs if job.covers(step.id, execution)]
        return covering[-1].provenance.facts.mounts if covering else ()

    def _unproven(self, mode: str, host: str, boots: set[str], execution: Attempt) -> Message:
        """Return the reason if nothing proves the mode of `host`; else `NOTHING`.

        `boots` are the boot ids that the probes of the execution report.
        """
        of_node = {"node": host, "mode": mode}
        if not boots:
            return Message("mode-without-boot", **of_node)
        if self._reports_as(host, execution) and execution.boot_id not in boots:
            found = {"boot": f"{execution.boot_id}", "boots": ", ".join(sorted(boots))}
            return Message("mode-of-other-boot", **of_node, **found)
        proof = self._proof_of(host)
        if proof.damage:
            return Message("mode-not-readable", **of_node, problem=proof.damage)
        for boot in sorted(boots):
            verified = proof.modes.get(boot, set())
            if mode not in verified:
                modes = ", ".join(sorted(verified)) or "no mode"
                return Message("mode-not-proven", **of_node, boot=boot, modes=modes)
        return NOTHING

    def _proof_of(self, host: str) -> _Proof:
        return self._proofs.get(self._proven.find(host) or host) or _Proof({})

    def _of_job(self, step: Step, mode: str, host: str, job: JobOnNode) -> Iterator[Message]:
        facts = job.provenance.facts
        if job.provenance.invalid:
            yield job.provenance.invalid
        yield from self._gaps.get((host, job.name), ())
        yield from self._other_mode(mode, host, facts)
        yield from self._other_file_system(step, host, facts)

    def _other_mode(self, mode: str, host: str, facts: NodeFacts) -> Iterator[Message]:
        verified = self._proof_of(host).modes.get(facts.boot_id or "", set())
        if len(verified) == 1 and mode not in verified:
            yield Message("other-mode", node=host, found=", ".join(verified), planned=mode)
        expected = self._expected_shape(mode)
        if expected is None or not facts.numa:
            return
        domains = [(len(each.cpus), each.memory_bytes) for each in facts.numa]
        observed = numa_shape_of_domains(domains)
        if not same_numa_shape(observed, expected):
            shapes = {"found": f"{observed}", "expected": f"{expected}"}
            yield Message("other-shape", node=host, mode=mode, **shapes)

    def _shape_of_mode(self, mode: str) -> NumaShape | None:
        """Return the NUMA domains of a node in `mode`; None if the inventory does not declare them.

        It is None for a virtual node as well: it reports the memory of the machine below it.
        """
        if self._partition.origin != "measured" or mode not in self._partition.modes:
            return None
        try:
            return numa_shape(topology_of_mode(self._site, mode))
        except BadInput:
            return None

    def _other_file_system(self, step: Step, host: str, facts: NodeFacts) -> Iterator[Message]:
        if not step.uses_scratch:
            return
        planned = self._partition.scratch
        if step.file_system and self._partition.file_systems:
            return  # the inventory has only the path of a further file system
        mount = mount_of(planned.path, facts.mounts)
        if mount is None:
            return
        found = {"path": planned.path, "found": mount_text(mount.kind, mount.source)}
        if expected := planned_instead(planned, mount, off_root=planned.off_root):
            yield Message("other-mount", node=host, planned=expected, **found)
        elif self._scratch_is_shared and mount.kind not in network_kinds():
            yield Message("local-mount", node=host, **found)


@dataclass(frozen=True)
class _Proof:
    """The verified modes of a node by boot id, and why its journal cannot be read, or "".

    `RESTORED` is left out: it is the original state, whatever mode that is.
    """

    modes: Mapping[str, set[str]]
    damage: str = ""


def _proof(journal: Journal) -> _Proof:
    modes: dict[str, set[str]] = {}
    try:
        for line in journal.lines():
            if (line["state"], line["event"]) == ("verified", RESULT) and line["mode"] != RESTORED:
                modes.setdefault(str(line["seen"]["boot_id"]), set()).add(str(line["mode"]))
    except BadInput as error:
        return _Proof({}, str(error))
    except (LookupError, TypeError) as error:
        return _Proof({}, f"{journal.path}: a verification without {error}")
    return _Proof(modes)


class RunParts(NamedTuple):
    """A run with what its records are read with; `nodes` are the reports of its nodes, by host."""

    run: Run
    benchmarks: Benchmarks
    site: Site
    software: Software
    nodes: ProbedNodes


def run_parts(run: Run) -> RunParts:
    """Return a run with its parts.

    Raises:
        BadInput: a file of the run is damaged.
    """
    return RunParts(run, benchmarks_of(run), site_of(run), software_of(run), nodes_of(run))


class RunFacts:
    """The cases, the programs and the nodes of a run.

    Attributes:
        emulated: whether the speed of a node is that of the machine below it, or of a model.
        other_scripts: the paths of scripts that were not those of the run when it was sealed.
        network_check: the check of the network; None: the site declares none.
    """

    def __init__(self, parts: RunParts) -> None:
        self.run, self.benchmarks, site, self.software, nodes = parts
        run = self.run
        self.partition = site.partition
        self.names = names_of_hosts(run, site, nodes)
        self.conditions = Conditions(run, site, nodes)
        self.emulated = self.partition.origin in VIRTUAL
        self.origin = origin_of(run.plan, site)
        self.looks = read_looks(run.files)
        changes = run.seal.changes if run.seal else {}
        self.other_scripts = [path for path, kind in changes.items() if kind is Change.SCRIPT]
        self.network_check: NetworkCheck | None = None
        if network := self.partition.fabric.network:
            required = not self.emulated
            self.network_check = NetworkCheck(run.files, network, self.names, required=required)
        known = {} if self.emulated else nodes
        equal: dict[Ceilings, Ceilings] = {}
        found = ((host, ceilings_of(node.newest)) for host, node in known.items() if node.jobs)
        self._ceilings = {host: equal.setdefault(each, each) for host, each in found}
        self._with_ceilings = HostTable.of(self._ceilings)
        # The nodes of programs that others started were not probed.
        self._others = UNIVERSAL if run.executed else stated_ceilings(counted_node(site))

    def ceilings(self, hosts: Sequence[str]) -> Ceilings:
        """Return the physical ceilings of `hosts` together."""
        found = (self._with_ceilings.find(host) for host in hosts)
        return of_nodes(self._ceilings[host] if host else self._others for host in found)


def names_of_hosts(run: Run, site: Site, nodes: ProbedNodes) -> HostNames:
    """Return the names that the nodes of a run may report."""
    reported = (
        ((node.newest.reported if node.jobs else "") or host) for host, node in nodes.items()
    )
    return HostNames(reported_names(run, site), site.partition_hosts, shared_domain(reported))
