"""Schedulers: how a job is headed, submitted, watched and cancelled. One small module each.

Adding one is adding a module here; nothing else names them. Each has the functions of
`Scheduler`, a constant ``POLL_S``, the longest pause between two questions, and ``APART``: whether
it keeps jobs that share a node from running there at the same time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Protocol, cast

from proofmark.common.errors import bad_input, nearest
from proofmark.machine.scheduler import Request
from proofmark.runs.job_state import Report


class Scheduler(Protocol):
    """The functions of a scheduler module.

    All but `header` and `fan_out` ask the scheduler and raise `NoAnswer` where it is silent.
    """

    POLL_S: float
    APART: bool

    def header(self, request: Request) -> list[str]:
        """Return the lines that head the job's script."""

    def fan_out(self, request: Request) -> list[str]:
        """Return the shell function ``on_all SCRIPT ARGUMENT…`` of the job's script.

        It runs the script by sh on every node of the job, waits for all, and passes TERM on. It is
        the last that its shell does, so it may ``exec``.
        """

    def submit(self, script: Path, request: Request) -> str:
        """Submit `script` and return the job's id; `Refused` says why not."""

    def find(self, name: str) -> str:
        """Return the id of the living job called `name`, or nothing."""

    def states(self, ids: Sequence[str]) -> Mapping[str, Report]:
        """Return the state of each job, by one question; what is not known is left out."""

    def ended(self, job: str) -> Report | None:
        """Return how a job ended that `states` no longer knows; None if nobody knows."""

    def cancel(self, ids: Sequence[str]) -> None:
        """End the jobs; it need not wait."""

    def nodes(self, names: Sequence[str]) -> Mapping[str, str]:
        """Return ``idle``, ``busy`` or ``down …`` of each node of which it can be told."""


def names() -> list[str]:
    """Return the names of all schedulers."""
    return sorted(module.name for module in iter_modules(__path__))


def scheduler(name: str) -> Scheduler:
    """Return the scheduler `name`.

    Raises:
        BadInput: there is no such scheduler.
    """
    if name not in names():
        hint = nearest(name, names())
        raise bad_input("partition", "scheduler", f"{name!r}{hint}", ", ".join(names()))
    return cast("Scheduler", import_module(f"{__name__}.{name}"))
