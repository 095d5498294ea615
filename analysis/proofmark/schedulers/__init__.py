"""Schedulers: how a job script is headed, submitted, watched and cancelled. One small module each.

A scheduler module has ``header(job)``, ``submit(script)``, ``state(ticket)`` and
``cancel(ticket)``. Adding one is adding a module here; nothing else names them.
"""

from __future__ import annotations

from enum import Enum
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Protocol, cast

from proofmark.errors import bad_input, nearest
from proofmark.plan import Job


class State(Enum):
    """What a scheduler can say of a job; every scheduler's own words map onto these."""

    WAITING = "waiting"
    RUNNING = "running"
    ENDED = "ended"
    FAILED = "failed"


class Ticket(Protocol):
    """What `submit` returned: whatever its scheduler needs to find the job again."""

    reason: str


class Scheduler(Protocol):
    """The functions of a scheduler module."""

    def header(self, job: Job) -> list[str]: ...  # noqa: D102
    def submit(self, script: Path, log: Path) -> Ticket: ...  # noqa: D102
    def state(self, ticket: Ticket) -> State: ...  # noqa: D102
    def cancel(self, ticket: Ticket) -> None: ...  # noqa: D102


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


def header(name: str, job: Job) -> list[str]:
    """Return the lines that head the script of `job`."""
    return scheduler(name).header(job)
