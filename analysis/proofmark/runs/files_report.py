"""Reads what nodes report about the scratch folder after a step failed.

The script of a step writes the report of its node beside the outputs. The script of the job then
lets each of its nodes write a small file there, and has these reports in ``jobs/<id>/attempt-<n>``.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from proofmark.common.files import parse_json, read_bytes
from proofmark.common.input_limits import MAX_SMALL_BYTES
from proofmark.common.message import NOTHING, Message
from proofmark.common.nodesets import check_name
from proofmark.common.text import one_line
from proofmark.runs.attempts import Attempt
from proofmark.runs.binding_file import UNREADABLE
from proofmark.runs.run_files import RunFiles, StepFiles

_FULL = {os.strerror(errno.ENOSPC), os.strerror(errno.EDQUOT)}
_JOB_ATTEMPT = re.compile(r"[A-Za-z0-9_-]+/attempt-[0-9]+", re.ASCII)
"""The name of an attempt; another one was started by hand, or its file was changed."""


@dataclass(frozen=True)
class FilesReport:
    """One try of a node to write a small file into the scratch folder.

    Attributes:
        folder: the scratch folder of the step.
        answered: false if the try did not end within `seconds`.
        why: the message of the failed try; empty if it did not fail.
    """

    host: str
    folder: str
    answered: bool
    seconds: int
    why: str

    @property
    def problem(self) -> Message:
        """What failed, in words that are the same on all nodes; `NOTHING` if nothing failed."""
        if not self.answered:
            return Message("files-silent", seconds=self.seconds)
        said = self.why.rpartition(": ")[2]
        if not said:
            return NOTHING
        return Message("files-full" if said in _FULL else "files-said", problem=said)


def read_files_report(path: Path) -> FilesReport | None:
    """Return the report in `path`; None if there is none, or if it is damaged."""
    try:
        entry = parse_json(read_bytes(path, MAX_SMALL_BYTES))
        return FilesReport(
            host=check_name(str(entry["host"])),
            folder=_text(entry["scratch"]),
            answered=bool(entry["answered"]),
            seconds=int(entry["seconds"]),
            why=one_line(_text(entry["why"]))[-160:],
        )
    except (OSError, *UNREADABLE):
        return None


def read_files_reports(paths: Iterable[Path]) -> dict[str, FilesReport]:
    """Return the reports in `paths`, by node; a later one of a node replaces an earlier one."""
    found = (read_files_report(path) for path in paths)
    return {report.host: report for report in found if report}


def files_reports(files: RunFiles, step: str, attempt: Attempt) -> dict[str, FilesReport]:
    """Return the reports after an execution of `step`, by node.

    The report of the node that ran the command has priority: it was made first.
    """
    job = attempt.job_attempt or ""
    paths = files.work.files_reports(step, job) if _JOB_ATTEMPT.fullmatch(job) else []
    own = StepFiles(Path(attempt.path)).files_report
    reports = []
    for each in paths:
        reports += each
    return read_files_reports([*reports, own])


def _text(value: object) -> str:
    """Return a text. The script writes each byte of an unusual text as one character."""
    return str(value).encode("latin-1").decode("utf-8", "replace")
