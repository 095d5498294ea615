"""The option ``-v``, and the tracebacks of errors of the kit.

``-v`` traces calls of other programs and machines, on stderr and in the run.
"""

from __future__ import annotations

import logging
import traceback
from datetime import UTC, datetime
from io import TextIOWrapper
from pathlib import Path

from proofmark.common.errors import BadInput
from proofmark.common.files import open_to_append
from proofmark.common.processes import TRACE
from proofmark.common.progress_lines import say
from proofmark.common.text import visible_line
from proofmark.common.trust import weak_part
from proofmark.runs.run_files import RunFiles

FORM = "%(asctime)s.%(msecs)03d %(message)s"
TIME = "%Y-%m-%dT%H:%M:%S"


class _FileOfRun(logging.FileHandler):
    """Appends to a file in the folder of a run."""

    def _open(self) -> TextIOWrapper:
        return open_to_append(Path(self.baseFilename))


def start_trace(run: Path | None) -> None:
    """Start the trace. A signed run is not changed, and a read-only run is not an error."""
    handlers: list[logging.Handler] = [logging.StreamHandler()]
    if run and _may_have_trace(run):
        try:
            handlers.append(_FileOfRun(RunFiles(run.resolve()).trace))
        except BadInput as error:
            say(f"proofmark: no trace in the run: {error}")
    for handler in handlers:
        handler.setFormatter(logging.Formatter(FORM, TIME))
        TRACE.addHandler(handler)
    TRACE.setLevel(logging.INFO)


def _may_have_trace(run: Path) -> bool:
    """Return whether a trace may be written into the folder `run`: a run of this user."""
    return RunFiles(run).plan.is_file() and weak_part(run) is None


def report_crash(error: Exception, run: object, *, verbose: bool) -> None:
    """Print an exception that nothing expects as one line, and keep its traceback.

    The traceback is printed with ``-v``. It is appended to the ``trace.log`` of the run if the
    command has a run.

    Args:
        error: the exception.
        run: the folder of the run; anything else if the command has none.
        verbose: whether the command has ``-v``.
    """
    # A line of the traceback may be a text of others: no line begins like one of the kit.
    text = "".join(traceback.format_exception(error))
    lines = [f"| {visible_line(line)}" for line in text.splitlines()]
    kept = "run it again with -v for the traceback"
    if isinstance(run, Path) and _may_have_trace(run):
        try:
            folder = run.resolve()
            with open_to_append(RunFiles(folder).trace) as file:
                file.write(f"{datetime.now(UTC).strftime(TIME)} internal error\n")
                file.writelines(f"{line}\n" for line in lines)
            kept = f"the traceback is in {RunFiles(run).trace}"
        except (BadInput, OSError):
            pass  # the folder belongs to another user, or the disk is full
    if verbose:
        kept = "the traceback follows"
    say(f"proofmark: internal error: {type(error).__name__}: {str(error)[:_LONGEST]}; {kept}")
    if verbose:
        for line in lines:
            say(line)


_LONGEST = 500
"""Characters of the text of an exception that are printed."""
