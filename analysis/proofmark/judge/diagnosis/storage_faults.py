"""The faults of storage: slow targets, and file systems that nodes cannot use or that are slow.

If one node cannot use a file system that others can use at the same time, its client is the cause.
If no node can, or if all nodes are slow alike, the servers or the network to them are the cause. A
file system without free space is a cause of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from itertools import chain
from typing import Any

from proofmark.cases.vocabulary import FILE_SYSTEM, STORAGE_TARGET, Scalar
from proofmark.common.grouping import gathered
from proofmark.common.message import Message
from proofmark.common.nodesets import folded, hosts_of
from proofmark.judge.evidence import Evidence
from proofmark.judge.fleet.populations import LIKE_TARGETS
from proofmark.judge.references.judgement import PEERS
from proofmark.judge.results import Result, Results
from proofmark.plan.plan import Plan
from proofmark.runs.attempts import FilesReport, finished_executions, read_files_reports
from proofmark.runs.run_files import RunFiles

_Measurand = tuple[str, str, tuple[tuple[str, Scalar], ...]]
"""A case, a metric, and the parameters in the order of their names."""


@dataclass(frozen=True)
class FileSystemFault:
    """A problem of a file system.

    Attributes:
        folder: the scratch folder of a step that failed, or of the partition.
        measurands: the figures that are slow on all nodes because of it, each with its parameters.
    """

    folder: str
    problem: Message
    nodes: tuple[str, ...]
    others: tuple[str, ...] = ()
    measurands: frozenset[_Measurand] = frozenset()

    @property
    def likely(self) -> Message:
        """The likely cause."""
        one = len(self.nodes) == 1
        if "files-full" in self.problem.codes:
            return Message("cause-space")
        if self.others:
            return Message("cause-client" if one else "cause-clients")
        return Message("cause-client-servers" if one else "cause-servers")

    @property
    def message(self) -> Message:
        """The fault and its likely cause."""
        on_all = not self.others and len(self.nodes) > 1
        return Message(
            "files-fault-on-all" if on_all else "files-fault",
            folder=self.folder,
            problem=self.problem,
            nodes=folded(self.nodes),
            text=self.likely,
        )

    def as_json(self) -> dict[str, Any]:
        """Return the form of ``verdict.json``."""
        return {
            "folder": self.folder,
            **self.problem.as_json("problem"),
            "nodes": list(self.nodes),
            "others": list(self.others),
            **self.likely.as_json("likely"),
            "line": str(self.message),
        }


def failed_access(looks: Iterable[Mapping[str, FilesReport]]) -> tuple[FileSystemFault, ...]:
    """Return one fault for a lack of space, and one for all other problems.

    Args:
        looks: for each step that failed, the reports of the nodes, which are from one time.
    """
    found: dict[bool, dict[str, FilesReport]] = {}
    others: dict[bool, set[str]] = {}
    for reports in looks:
        sound = {host for host, report in reports.items() if not report.problem}
        for host, report in reports.items():
            if problem := report.problem:
                full = problem.code == "files-full"
                found.setdefault(full, {}).setdefault(host, report)
                others.setdefault(full, set()).update(sound)
    return tuple(
        FileSystemFault(
            next(iter(bad.values())).folder,
            reduce(
                lambda first, other: Message("either", first=first, other=other),
                sorted({each.problem for each in bad.values() if each.problem}),
            ),
            tuple(sorted(bad)),
            tuple(sorted(others[full] - bad.keys())),
        )
        for full, bad in found.items()
    )


def slow_alike(results: Iterable[Result], scratch: str) -> tuple[FileSystemFault, ...]:
    """Return a fault for each figure of files that misses a limit on every node that measured it.

    A node that is slower than its peers is listed as a bad node instead.
    """
    slow: dict[_Measurand, dict[str, bool]] = {}
    for result in results:
        record = result.record
        limits = [each for each in result.references if each.kind != PEERS and each.ratio]
        if record.value is not None and limits:
            missed = any(each.at_least and (each.ratio or 0) < each.at_least for each in limits)
            of_nodes = slow.setdefault(_measurand(result), {})
            for host in hosts_of(record.node):
                of_nodes[host] = of_nodes.get(host, True) and missed
    found = gathered(
        (" ".join(measurand[:2]), measurand)
        for measurand, of_nodes in slow.items()
        if len(of_nodes) > 1 and all(of_nodes.values())
    )
    return tuple(
        FileSystemFault(
            scratch,
            Message("slow-alike", figure=figure),
            tuple(sorted(set(chain.from_iterable(slow[each] for each in measurands)))),
            measurands=frozenset(measurands),
        )
        for figure, measurands in found.items()
    )


def of_servers(faults: Iterable[FileSystemFault], result: Result) -> bool:
    """Return whether a fault of the servers explains that `result` fails.

    It does not explain that a node is slower than its peers.
    """
    peers = any(each.kind == PEERS and each.outcome == "FAIL" for each in result.references)
    return not peers and any(_measurand(result) in fault.measurands for fault in faults)


def _measurand(result: Result) -> _Measurand:
    record = result.record
    return record.case, record.metric, tuple(sorted(record.parameters.items()))


def looks_after_failures(files: RunFiles, plan: Plan) -> Iterator[Mapping[str, FilesReport]]:
    """Yield the reports after a failure, for each step that uses scratch."""
    for step in plan.steps_to_run():
        if not step.uses_scratch:
            continue
        of_job = [read_files_reports(paths) for paths in files.work.files_reports(step.id)]
        # The nodes of a job of several nodes have reports in its folder.
        folders = step.folders() if of_job or step.scope == "job" else []
        places = (files.step(name) for name in folders)
        executions = chain.from_iterable(map(finished_executions, places))
        own = read_files_reports(each.files_report for each in executions)
        yield from ({**reports, **own} for reports in of_job or [own])


@dataclass(frozen=True)
class SlowTarget:
    """A storage target that is slower than the others.

    Attributes:
        results: the figures that fail by the comparison of the targets, the worst first.
    """

    target: int
    file_system: str
    results: tuple[Result, ...]
    targets: int

    @property
    def ratio(self) -> float:
        """Return the worst figure ÷ the median of the targets."""
        return _ratio(self.results[0])

    @property
    def message(self) -> Message:
        """The target in words."""
        return Message(
            "target-slow",
            target=self.target,
            file_system=self.file_system,
            ratio=f"{self.ratio:.2g}",
            targets=self.targets,
        )

    def as_json(self) -> dict[str, Any]:
        """Return the form of ``verdict.json``."""
        return {
            "target": self.target,
            "file_system": self.file_system,
            "ratio": self.ratio,
            "targets": self.targets,
            "figures": [
                {
                    "figure": f"{result.record.case} {result.record.metric}",
                    "step": result.record.step,
                    "value": result.record.value,
                    "unit": result.record.unit,
                    "ratio": _ratio(result),
                }
                for result in self.results
            ],
        }


@dataclass(frozen=True)
class StorageFaults:
    """The faults of storage."""

    targets: tuple[SlowTarget, ...] = ()
    file_systems: tuple[FileSystemFault, ...] = ()

    def is_of_storage(self, result: Result) -> bool:
        """Return whether the storage, and not the node, is the reason of a result that fails."""
        of_target = STORAGE_TARGET in result.record.parameters  # no node is slow by it
        return of_target or of_servers(self.file_systems, result)


def storage_faults(evidence: Evidence, results: Results) -> StorageFaults:
    """Return the faults of the storage of a run."""
    writing = {step.case for step in evidence.plan.steps() if step.writes is not None}
    of_files = results.about(lambda record: record.case in writing, limited=True)
    scratch = evidence.scratch
    slow = slow_alike(of_files, scratch.path)
    return StorageFaults(slow_targets(results), (*failed_access(scratch.looks), *slow))


def slow_targets(results: Results) -> tuple[SlowTarget, ...]:
    """Return the slow storage targets, the slowest first.

    Their figures fail by the comparison of the targets (`Fleet`), which knows their number.
    """
    fleet = results.fleet
    groups: dict[tuple[str, int], list[tuple[Result, int]]] = {}
    for place in fleet.failed.tolist():
        compared = fleet.figures[int(fleet.of[place])]
        if compared.members != LIKE_TARGETS:
            continue
        result = results[place]
        parameters = result.record.parameters
        name = str(parameters.get(FILE_SYSTEM, "scratch"))
        key = (name, int(parameters[STORAGE_TARGET]))
        groups.setdefault(key, []).append((result, compared.fleet_limit.nodes))
    slow = []
    for (name, target), found in groups.items():
        found.sort(key=lambda each: -abs(_ratio(each[0]) - 1))
        figures = tuple(result for result, _ in found)
        slow.append(SlowTarget(target, name, figures, targets=found[0][1]))
    return tuple(sorted(slow, key=lambda each: (-abs(each.ratio - 1), each.target)))


def _ratio(result: Result) -> float:
    return next(
        each.ratio for each in result.references if each.kind == PEERS and each.ratio is not None
    )
