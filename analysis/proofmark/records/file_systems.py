"""States in the reason of a failed step which nodes could not write into its scratch folder."""

from __future__ import annotations

from collections.abc import Mapping

from proofmark.common.message import NOTHING, Message
from proofmark.common.nodesets import folded
from proofmark.records.validity import says_no_space
from proofmark.runs.files_report import FilesReport


def file_system_reason(reports: Mapping[str, FilesReport]) -> Message:
    """Return what failed in the scratch folder, and on which nodes; `NOTHING` if nothing failed.

    Args:
        reports: the reports after the failure, by node.
    """
    problems: dict[str, list[str]] = {}
    for host, report in reports.items():
        if report.problem:
            problems.setdefault(report.problem, []).append(host)
    sound = [host for host, report in reports.items() if not report.problem]
    if not problems:
        return NOTHING
    folder = next(iter(reports.values())).folder
    parts = [_failed(problem, folded(hosts)) for problem, hosts in problems.items()]
    rest = [Message("scratch-worked-on", nodes=folded(sound))] if sound else []
    return Message("scratch-failed", folder=folder, problems=(*parts, *rest))


def _failed(problem: str, nodes: str) -> Message:
    code = "scratch-full-on" if says_no_space(problem) else "scratch-failed-on"
    return Message(code, problem=problem, nodes=nodes)
