"""No scheduler: nobody else gives jobs to the nodes, so there is nothing to take them from."""

from __future__ import annotations

from collections.abc import Sequence

from proofmark.machine.drain import Standing


def look(nodes: Sequence[str]) -> dict[str, Standing]:
    """Return that every node is at our disposal."""
    return {node: Standing(out=False, idle=True) for node in nodes}


def drain(nodes: Sequence[str], reason: str) -> None:
    """Do nothing; the journal notes it."""


def resume(nodes: Sequence[str]) -> None:
    """Do nothing; the journal notes it."""


def rights(node: str) -> str:
    """Return that nothing is missing."""
    return ""
