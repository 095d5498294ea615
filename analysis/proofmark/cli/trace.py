"""The option ``-v``: it traces calls of other programs and machines, on stderr and in the run."""

from __future__ import annotations

import logging
from io import TextIOWrapper
from pathlib import Path

from proofmark.common.command import TRACE
from proofmark.common.errors import BadInput
from proofmark.common.files import open_to_append
from proofmark.common.messages import say
from proofmark.runs.checksums import is_signed
from proofmark.runs.files import RunFiles
from proofmark.runs.owner import as_owner

FORM = "%(asctime)s.%(msecs)03d %(message)s"
TIME = "%Y-%m-%dT%H:%M:%S"


class _FileOfRun(logging.FileHandler):
    """Appends to a file in the folder of a run, which may belong to another user."""

    def _open(self) -> TextIOWrapper:
        path = Path(self.baseFilename)
        with as_owner(path.parent):
            return open_to_append(path)


def start_trace(run: Path | None) -> None:
    """Start the trace. A signed run is not changed, and a read-only run is not an error."""
    handlers: list[logging.Handler] = [logging.StreamHandler()]
    if run and RunFiles(run).plan.is_file() and not is_signed(run):
        try:
            handlers.append(_FileOfRun(RunFiles(run.resolve()).trace))
        except BadInput as error:
            say(f"proofmark: no trace in the run: {error}")
    for handler in handlers:
        handler.setFormatter(logging.Formatter(FORM, TIME))
        TRACE.addHandler(handler)
    TRACE.setLevel(logging.INFO)
