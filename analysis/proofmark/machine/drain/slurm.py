"""Slurm: ``scontrol`` drains and resumes (its manual, "UPDATE NODE"), many nodes in one call."""

from __future__ import annotations

import re
from collections.abc import Sequence

from proofmark.common.nodesets import folded
from proofmark.machine.controller_tools import ask
from proofmark.machine.drain import Standing
from proofmark.machine.outcome import Failed, Outcome

TIMEOUT_S = 60
OUT = {"DRAIN", "DRAINED", "DRAINING", "DOWN", "FAIL", "FAILING", "MAINT"}
OCCUPIED = {"ALLOCATED", "MIXED", "COMPLETING", "DRAINING"}
FIELD = re.compile(r"(?:^| )(NodeName|State|Reason)=")
MARK = re.compile(r"(?:^| )\[[^\]]*@[^\]]*\]$")
"""Of a reason's end: who gave it and when."""


def look(nodes: Sequence[str]) -> dict[str, Standing]:
    """Read state and reason of each node."""
    text = _scontrol("--oneliner", "show", "node", folded(nodes))
    found = dict(_standing(line) for line in text.splitlines() if line.strip())
    if missing := sorted(set(nodes) - found.keys()):
        raise Failed(Outcome.UNEXPECTED, f"scontrol does not know {folded(missing)}")
    return found


def drain(nodes: Sequence[str], reason: str) -> None:
    """Let the nodes take no further job."""
    _scontrol("update", f"NodeName={folded(nodes)}", "State=DRAIN", f"Reason={reason}")


def resume(nodes: Sequence[str]) -> None:
    """Let the nodes take jobs again."""
    _scontrol("update", f"NodeName={folded(nodes)}", "State=RESUME")


def rights(node: str) -> str:
    """Return why we may not drain, or nothing.

    Only an operator may set a node's comment or state; its comment is set to what it is.
    """
    try:
        line = _scontrol("--oneliner", "show", "node", node)
        there = re.search(r" Comment=(.*?)(?= \w+=|$)", line)
        _scontrol("update", f"NodeName={node}", f"Comment={there[1] if there else ''}")
    except Failed as failed:
        return failed.text
    return ""


def _standing(line: str) -> tuple[str, Standing]:
    parts = FIELD.split(line)
    told = dict(zip(parts[1::2], parts[2::2], strict=True))
    flags = set(re.split(r"[^A-Z_]+", told["State"].split()[0]))
    reason = MARK.sub("", told.get("Reason", "").strip())
    name = told["NodeName"].split()[0]
    return name, Standing(bool(flags & OUT), not flags & OCCUPIED, reason)


def _scontrol(*arguments: str) -> str:
    return ask("scontrol", *arguments, timeout_s=TIMEOUT_S)
