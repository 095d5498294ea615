"""Taking nodes out of service and back: one small module a scheduler, all with the same verbs.

A module has ``look(nodes)``, ``drain(nodes, reason)``, ``resume(nodes)`` and ``rights(node)``.
Adding
one is adding a module here; nothing else names them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules
from typing import Protocol, cast

from proofmark.common.errors import bad_input, nearest


@dataclass(frozen=True)
class Standing:
    """What a scheduler says of a node.

    Attributes:
        out: whether it takes no new jobs.
        idle: whether no job is on it.
        reason: why it is out.
    """

    out: bool
    idle: bool
    reason: str = ""


class Drain(Protocol):
    """The functions of a module; each raises `Failed` when the scheduler refuses."""

    def look(self, nodes: Sequence[str]) -> dict[str, Standing]: ...  # noqa: D102
    def drain(self, nodes: Sequence[str], reason: str) -> None: ...  # noqa: D102
    def resume(self, nodes: Sequence[str]) -> None: ...  # noqa: D102
    def rights(self, node: str) -> str: ...  # noqa: D102


def names() -> list[str]:
    """Return the names of the schedulers that can be asked to drain."""
    return sorted(module.name for module in iter_modules(__path__))


def drain_of(scheduler: str) -> Drain:
    """Return the verbs of `scheduler`.

    Raises:
        BadInput: nobody has written them yet.
    """
    if scheduler not in names():
        hint = nearest(scheduler, names())
        found = f"{scheduler!r}, whose nodes cannot be drained yet{hint}"
        raise bad_input("partition", "scheduler", found, ", ".join(names()))
    return cast("Drain", import_module(f"{__name__}.{scheduler}"))
