"""Finds out why an execution of a step is INVALID: its exit code, a signal, its time limit."""

from __future__ import annotations

import signal
from collections.abc import Mapping, Sequence

from proofmark.plan.plan import Step
from proofmark.records.binding import BindingCheck
from proofmark.runs.attempts import Attempt, last_words
from proofmark.runs.output_digests import changed_output

_SIGNALS = {number.value: number.name for number in signal.Signals}


def invalid_reason(
    step: Step,
    attempt: Attempt,
    binding_check: BindingCheck,
    hosts: Sequence[str] = (),
    known: Mapping[str, bytes] | None = None,
) -> str:
    """Return why an execution is INVALID by its own files, or an empty string.

    Its outputs, its end, its nodes and the reported binding are checked.

    Args:
        step: the step.
        attempt: one execution of it.
        binding_check: the check of the binding of `step`.
        hosts: the nodes of the instance; empty for a step without instances.
        known: the contents of further files of the execution, by name.
    """
    return (
        attempt.damage
        or changed_output(attempt.path, {**attempt.contents, **(known or {})})
        or _end_invalid_reason(step, attempt)
        # The first node of an instance runs it. Any node of another step may run its launcher.
        or binding_check.names.wrong_host(hosts[:1] or step.nodes, [attempt.host])
        or binding_check.invalid_reason(hosts or step.nodes, attempt.binding)
    )


def _end_invalid_reason(step: Step, attempt: Attempt) -> str:
    """Return why an execution is INVALID by its end, or an empty string.

    It must end within its time limit and with exit code 0, and no process may survive it.
    """
    if attempt.timed_out:
        return f"timed out after {attempt.seconds:.0f} s (limit {step.timeout} s)"
    if attempt.rc - 128 in _SIGNALS:
        return f"killed by {_SIGNALS[attempt.rc - 128]}"
    if attempt.rc:
        meaning = {126: "cannot be executed", 127: "not found"}.get(attempt.rc)
        program = f" ({step.program} {meaning})" if meaning else ""
        message = last_words(attempt.files.stderr)
        return f"exit code {attempt.rc}{program}" + (f": {message}" if message else "")
    if attempt.survivors:
        return f"left processes behind: {', '.join(attempt.survivors)}"
    return ""
