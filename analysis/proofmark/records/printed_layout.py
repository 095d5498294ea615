"""Checks that the files of a step had the requested layout.

``layout.txt`` is what the tool of the file system printed for the files, before the script of the
step removed them. A default of the file system may override the layout of a folder, and a full or
inactive target is replaced by another one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from proofmark.common.message import NOTHING, Message
from proofmark.common.nodesets import folded
from proofmark.common.text import one_line
from proofmark.plan.file_layout import FileLayout
from proofmark.runs.files_report import FilesReport
from proofmark.runs.run_files import StepFiles
from proofmark.site.file_systems import LayoutTool, kinds

_SUFFIXES = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30}


def layout_error(layout: FileLayout | None, content: bytes) -> Message:
    """Return why files do not have `layout`, or `NOTHING`.

    Args:
        layout: the requested layout; None: any.
        content: ``layout.txt`` of the execution.
    """
    if layout is None:
        return NOTHING
    text = content.decode("utf-8", "replace")
    if not text.strip():
        return Message("layout-unknown", file=StepFiles.layout.path)
    found = [layout_of(tool, text) for tool in kinds()[layout.kind].steps]
    best = max(found, key=lambda values: len(values.keys() & layout.values.keys()))
    for axis, planned in layout.values.items():
        if axis not in best:
            return Message(
                "layout-without", file=StepFiles.layout.path, axis=axis, text=one_line(text[:200])
            )
        if other := sorted(best[axis] - {planned}):
            return Message("layout-other", axis=axis, found=other[0], planned=planned)
    return NOTHING


def layout_of(tool: LayoutTool, text: str) -> dict[str, set[int]]:
    """Return the values of each axis in `text`, the print of `tool` for several files."""
    values = {
        axis: {_number(value) for value in pattern.findall(text)}
        for axis, pattern in tool.found.items()
    }
    return {axis: known for axis, known in values.items() if known}


def _number(word: str) -> int:
    match = re.fullmatch(r"(\d+)([a-z]?)", word.lower(), re.ASCII)
    assert match is not None  # the patterns of the tools have this form
    return int(match[1]) * _SUFFIXES[match[2]]


def file_system_reason(reports: Mapping[str, FilesReport]) -> Message:
    """Return what failed in the scratch folder, and on which nodes; `NOTHING` if nothing failed.

    Args:
        reports: the reports after the failure, by node.
    """
    problems: dict[Message, list[str]] = {}
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


def _failed(problem: Message, nodes: str) -> Message:
    code = "scratch-full-on" if problem.code == "files-full" else "scratch-failed-on"
    return Message(code, problem=problem, nodes=nodes)
