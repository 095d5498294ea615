"""The option ``-v``: each call of another program or machine on stderr, and in the run."""

from __future__ import annotations

import logging
from pathlib import Path

from proofmark.common.command import TRACE
from proofmark.runs.checksums import is_signed
from proofmark.runs.files import RunFiles

FORM = "%(asctime)s.%(msecs)03d %(message)s"
TIME = "%Y-%m-%dT%H:%M:%S"


def start_trace(run: Path | None) -> None:
    """Trace from now on; a run that is signed stays as it was signed."""
    handlers: list[logging.Handler] = [logging.StreamHandler()]
    if run and RunFiles(run).plan.is_file() and not is_signed(run):
        handlers.append(logging.FileHandler(RunFiles(run).trace, delay=True))
    for handler in handlers:
        handler.setFormatter(logging.Formatter(FORM, TIME))
        TRACE.addHandler(handler)
    TRACE.setLevel(logging.INFO)
