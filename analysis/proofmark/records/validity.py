"""Finds out why an execution of a step is INVALID: its exit code, a signal, its time limit."""

from __future__ import annotations

import signal
from collections.abc import Sequence

from proofmark.plan.plan import Step
from proofmark.records.binding import BindingCheck
from proofmark.runs.attempts import Attempt, last_words
from proofmark.site.execution import HostCpuMap

_SIGNALS = {number.value: number.name for number in signal.Signals}


def invalid_reason(
    step: Step, attempt: Attempt, hosts: Sequence[str] = (), host_cpus: HostCpuMap | None = None
) -> str:
    """Return why an execution is INVALID, or an empty string.

    The exit code, the time limit and the reported binding are checked.

    Args:
        step: the step.
        attempt: one execution of it.
        hosts: the nodes of the instance; empty for a step without instances.
        host_cpus: the CPUs of the machine below virtual nodes.
    """
    binding_check = BindingCheck(step, host_cpus)
    return end_invalid_reason(step, attempt) or binding_check.invalid_reason(
        hosts or step.nodes, attempt.binding
    )


def end_invalid_reason(step: Step, attempt: Attempt) -> str:
    """Return why an execution is INVALID by its exit code or its time limit, or an empty string."""
    if attempt.timed_out:
        return f"timed out after {attempt.seconds:.0f} s (limit {step.timeout} s)"
    if attempt.rc < 0:
        return attempt.damage
    if attempt.rc - 128 in _SIGNALS:
        return f"killed by {_SIGNALS[attempt.rc - 128]}"
    if attempt.rc:
        meaning = {126: "cannot be executed", 127: "not found"}.get(attempt.rc)
        program = f" ({step.program} {meaning})" if meaning else ""
        message = last_words(attempt.files.stderr)
        return f"exit code {attempt.rc}{program}" + (f": {message}" if message else "")
    return ""
