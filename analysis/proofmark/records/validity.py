"""Finds out why an execution of a step is INVALID: its exit code, a signal, its time limit."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Sequence

from proofmark.common.message import NOTHING, Message
from proofmark.plan.plan import Step
from proofmark.records.binding import BindingCheck
from proofmark.runs.attempts import Attempt, changed_output, last_words

_SIGNALS = {number.value: number.name for number in signal.Signals}


def invalid_reason(
    step: Step,
    attempt: Attempt,
    binding_check: BindingCheck,
    hosts: Sequence[str] = (),
) -> Message:
    """Return why an execution is INVALID by its own files, or `NOTHING`.

    Its outputs, its end, its nodes and the reported binding are checked.

    Args:
        step: the step.
        attempt: one execution of it.
        binding_check: the check of the binding of `step`.
        hosts: the nodes of the instance; empty for a step without instances.
    """
    return (
        attempt.damage
        or changed_output(attempt.contents)
        or _end_invalid_reason(step, attempt)
        # The first node of an instance runs it. Any node of another step may run its launcher.
        or binding_check.names.wrong_host(hosts[:1] or step.nodes, [attempt.host])
        or binding_check.invalid_reason(hosts or step.nodes, attempt.binding)
    )


def _end_invalid_reason(step: Step, attempt: Attempt) -> Message:
    """Return why an execution is INVALID by its end, or `NOTHING`.

    It must end within its time limit and with exit code 0, and no process may survive it.
    """
    if attempt.timed_out:
        return Message("timed-out", seconds=f"{attempt.seconds:.0f}", limit=step.timeout)
    if attempt.rc - 128 in _SIGNALS:
        return Message("killed", signal=_SIGNALS[attempt.rc - 128])
    if attempt.rc:
        return _failure(step, attempt.rc, last_words(attempt.files.stderr))
    if attempt.survivors:
        return Message("processes-left", processes=", ".join(attempt.survivors))
    return NOTHING


def _failure(step: Step, rc: int, message: str) -> Message:
    """Return the reason for the exit code `rc`, not 0; `message` is the last one of the program."""
    fields: dict[str, str | int] = {"code": rc, **({"message": message} if message else {})}
    if code := {126: "no-execution", 127: "no-program"}.get(rc):
        fields["program"] = step.program
    else:
        code = "exit-code"
    if code == "exit-code" and _says_no_space(message):
        return Message("no-space", code=rc, message=message)
    return Message(f"{code}-said" if message else code, **fields)


def _says_no_space(message: str) -> bool:
    """Return whether the message of a program is about a full file system or a quota."""
    return any(os.strerror(number) in message for number in (errno.ENOSPC, errno.EDQUOT))
