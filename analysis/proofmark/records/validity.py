"""Why an execution of a step does not count: its exit code, a signal, its time limit."""

from __future__ import annotations

import signal
from collections.abc import Sequence

from proofmark.plan.plan import Step
from proofmark.records.binding import BindingCheck
from proofmark.runs.attempts import Attempt, last_words
from proofmark.runs.binding_file import DAMAGED
from proofmark.site.execution import HostCpuMap

_SIGNALS = {number.value: number.name for number in signal.Signals}


def invalid_reason(
    step: Step, attempt: Attempt, hosts: Sequence[str] = (), host_cpus: HostCpuMap | None = None
) -> str:
    """Return why no number of this execution counts, or an empty string.

    The program's exit code, the watchdog, and where each rank and thread really was. `hosts` are
    the nodes of an instance, if the step has such.
    """
    binding_check = BindingCheck(step, host_cpus)
    return end_invalid_reason(step, attempt) or binding_check.invalid_reason(
        hosts or step.nodes, attempt.binding
    )


def end_invalid_reason(step: Step, attempt: Attempt) -> str:
    """Return what the exit code and the watchdog say against it, or an empty string."""
    if attempt.timed_out:
        return f"timed out after {attempt.seconds:.0f} s (limit {step.timeout} s)"
    if attempt.rc < 0:
        return DAMAGED
    if attempt.rc - 128 in _SIGNALS:
        return f"killed by {_SIGNALS[attempt.rc - 128]}"
    if attempt.rc:
        meaning = {126: "cannot be executed", 127: "not found"}.get(attempt.rc)
        what = f" ({step.program} {meaning})" if meaning else ""
        said = last_words(attempt.files.stderr)
        return f"exit code {attempt.rc}{what}" + (f": {said}" if said else "")
    return ""
