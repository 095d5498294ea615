"""States in the reason of a failed step which nodes could not write into its scratch folder."""

from __future__ import annotations

from collections.abc import Mapping

from proofmark.common.nodesets import folded
from proofmark.runs.files_report import FilesReport


def file_system_reason(reports: Mapping[str, FilesReport]) -> str:
    """Return what failed in the scratch folder, and on which nodes; empty if nothing failed.

    Args:
        reports: the reports after the failure, by node.
    """
    problems: dict[str, list[str]] = {}
    for host, report in reports.items():
        if report.problem:
            problems.setdefault(report.problem, []).append(host)
    sound = [host for host, report in reports.items() if not report.problem]
    if not problems:
        return ""
    folder = next(iter(reports.values())).folder
    parts = [f"{problem} on {folded(hosts)}" for problem, hosts in problems.items()]
    rest = f"; {folded(sound)} could write there" if sound else ""
    return f"file system of {folder}: {'; '.join(parts)}{rest}"
