"""The results of a mode change: one for each node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from proofmark.common.nodesets import folded
from proofmark.machine.outcome import NodeError, Outcome


@dataclass(frozen=True)
class ModeResult:
    """The outcome of one node, and whether the node or its journal was changed."""

    outcome: Outcome
    text: str = ""
    changed: bool = False


def results_of(failed: Mapping[str, NodeError], *, changed: bool) -> dict[str, ModeResult]:
    """Return the results of nodes that failed; `changed` as in `Result`."""
    return {node: ModeResult(error.outcome, error.text, changed) for node, error in failed.items()}


def failures(results: Mapping[str, ModeResult]) -> list[str]:
    """Return one line for all nodes that failed with the same outcome and text."""
    nodes_of: dict[tuple[str, str], list[str]] = {}
    for node, result in results.items():
        if result.outcome is not Outcome.OK:
            nodes_of.setdefault((result.outcome, result.text), []).append(node)
    return [f"{folded(nodes)}: {outcome}: {text}" for (outcome, text), nodes in nodes_of.items()]


def summary(results: Mapping[str, ModeResult]) -> dict[Outcome, str]:
    """Return a line per outcome: the number of nodes, the nodes, and the text of the first."""
    by_outcome: dict[Outcome, list[str]] = {}
    for node, result in results.items():
        by_outcome.setdefault(result.outcome, []).append(node)
    return {
        outcome: f"{outcome}: {len(nodes)} nodes ({folded(nodes)})"
        + (f": {results[nodes[0]].text}" if outcome is not Outcome.OK else "")
        for outcome, nodes in by_outcome.items()
    }
