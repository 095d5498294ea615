"""Faults of a file system, and where the cause is: one client, the servers, or no free space.

If one node cannot use a file system that others can use at the same time, its client is the cause.
If no node can, or if all nodes are slow alike, the servers or the network to them are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from itertools import chain
from typing import Any

from proofmark.cases.vocabulary import Scalar
from proofmark.common.message import Message
from proofmark.common.nodesets import folded, hosts_of
from proofmark.judge.evidence import Evidence
from proofmark.judge.references.judgement import PEERS
from proofmark.judge.results import Result, Results
from proofmark.plan.plan import Plan
from proofmark.runs.attempts import finished_executions
from proofmark.runs.files_report import FilesReport, read_files_reports
from proofmark.runs.run_files import RunFiles

_Measurand = tuple[str, str, tuple[tuple[str, Scalar], ...]]
"""A case, a metric, and the parameters in the order of their names."""


@dataclass(frozen=True)
class FileSystemFault:
    """A problem of a file system.

    Attributes:
        folder: the scratch folder of a step that failed, or of the partition.
        problem: what happened.
        nodes: the nodes on which it happened.
        others: the nodes that could use the file system at the same time.
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
        if "files-full" in self.problem.codes():
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


def file_system_faults(evidence: Evidence, results: Results) -> tuple[FileSystemFault, ...]:
    """Return the faults of the file systems of a run."""
    writing = {step.case for step in evidence.plan.steps() if step.writes is not None}
    of_files = results.about(lambda record: record.case in writing, limited=True)
    return (*failed_access(evidence.scratch.looks), *slow_alike(of_files, evidence.scratch.path))


def failed_access(looks: Iterable[Mapping[str, FilesReport]]) -> tuple[FileSystemFault, ...]:
    """Return one fault for a lack of space, and one for all other problems.

    Args:
        looks: for each step that failed, the reports of the nodes, which are from one time.
    """
    found: dict[bool, dict[str, Message]] = {}
    others: dict[bool, set[str]] = {}
    folders: dict[bool, str] = {}
    for reports in looks:
        sound = {host for host, report in reports.items() if not report.problem}
        for host, report in reports.items():
            if problem := report.problem:
                full = problem.code == "files-full"
                found.setdefault(full, {}).setdefault(host, problem)
                others.setdefault(full, set()).update(sound)
                folders.setdefault(full, report.folder)
    return tuple(
        FileSystemFault(
            folders[full],
            reduce(_either, sorted(set(problems.values()))),
            tuple(sorted(problems)),
            tuple(sorted(others[full] - problems.keys())),
        )
        for full, problems in found.items()
    )


def _either(first: Message, other: Message) -> Message:
    return Message("either", first=first, other=other)


def slow_alike(results: Iterable[Result], scratch: str) -> tuple[FileSystemFault, ...]:
    """Return a fault for each figure of files that misses a limit on every node that measured it.

    A node that is slower than its peers is listed as a bad node instead.

    Args:
        results: the results of the cases that write files.
        scratch: the scratch folder of the partition.
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
    found: dict[str, list[_Measurand]] = {}
    for measurand, of_nodes in slow.items():
        if len(of_nodes) > 1 and all(of_nodes.values()):
            case, metric, _ = measurand
            found.setdefault(f"{case} {metric}", []).append(measurand)
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
