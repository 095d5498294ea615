"""PBS Pro: ``pbsnodes`` takes nodes offline and back (its reference guide, "pbsnodes")."""

from __future__ import annotations

import json
from collections.abc import Sequence

from proofmark.machine.controller_tools import ask
from proofmark.machine.drain import Standing
from proofmark.machine.outcome import Failed, Outcome

TIMEOUT_S = 60
AT_ONCE = 500
"""Names on one command line."""
OUT = {"offline", "down", "stale", "provisioning", "maintenance"}


def look(nodes: Sequence[str]) -> dict[str, Standing]:
    """Read state, jobs and comment of each node."""
    found: dict[str, Standing] = {}
    for some in _parts(nodes):
        told = json.loads(_pbsnodes("-v", "-F", "json", *some)).get("nodes", {})
        for name, each in told.items():
            states = set(str(each.get("state", "")).split(","))
            found[name] = Standing(
                bool(states & OUT), not each.get("jobs"), str(each.get("comment", ""))
            )
    if missing := sorted(set(nodes) - found.keys()):
        raise Failed(Outcome.UNEXPECTED, f"pbsnodes does not know {', '.join(missing[:5])}")
    return found


def drain(nodes: Sequence[str], reason: str) -> None:
    """Let the nodes take no further job."""
    for some in _parts(nodes):
        _pbsnodes("-o", "-C", reason, *some)


def resume(nodes: Sequence[str]) -> None:
    """Let the nodes take jobs again, and take our comment from them."""
    for some in _parts(nodes):
        _pbsnodes("-r", "-C", "", *some)


def rights(node: str) -> str:
    """Return why we may not drain, or nothing: its comment is set to what it is."""
    try:
        _pbsnodes("-C", look([node])[node].reason, node)
    except Failed as failed:
        return failed.text
    return ""


def _parts(nodes: Sequence[str]) -> list[Sequence[str]]:
    return [nodes[at : at + AT_ONCE] for at in range(0, len(nodes), AT_ONCE)]


def _pbsnodes(*arguments: str) -> str:
    return ask("pbsnodes", *arguments, timeout_s=TIMEOUT_S)
