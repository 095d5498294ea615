"""Validity of the steps that read the files of another step (docs/design/storage.md)."""

from __future__ import annotations

import math

from proofmark.common.message import NOTHING, Message
from proofmark.runs.attempts import Attempt, interrupted
from proofmark.runs.files import StepFiles


def not_run(folder: str, reason: Message) -> Attempt:
    """Return an execution that did not take place, for INVALID records with `reason`.

    Args:
        folder: the folder of the step.
        reason: why the step was not run.
    """
    return Attempt(
        number=1,
        path=folder,
        rc=-1,
        host="",
        start="",
        end="",
        timed_out=False,
        seconds=math.nan,
        binding=b"[]",
        damage=reason,
    )


def read_before(step: StepFiles) -> Message:
    """Return why the page cache of a node may have the files of a reading step, or `NOTHING`."""
    number = interrupted(step)
    if not number:
        return NOTHING
    return Message("read-before-once") if number == 1 else Message("read-before", times=number)
