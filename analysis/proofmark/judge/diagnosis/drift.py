"""Settings in which nodes that ought to be equal differ."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from proofmark.common.nodesets import folded
from proofmark.judge.traits import Traits, usual


@dataclass(frozen=True)
class Drift:
    """One setting in which nodes differ.

    Attributes:
        trait: the name of the setting.
        usual: the most frequent value.
        nodes: the number of nodes with this value.
        values: each other value with its nodes, the rarest first.
    """

    trait: str
    usual: str
    nodes: int
    values: tuple[tuple[str, tuple[str, ...]], ...]

    def as_json(self) -> dict[str, object]:
        """Return the form of ``verdict.json``."""
        others = [{"value": value, "nodes": folded(hosts)} for value, hosts in self.values]
        return {"trait": self.trait, "usual": self.usual, "nodes": self.nodes, "others": others}


def drift(nodes: Mapping[str, Traits], leave_out: Collection[str] = ()) -> tuple[Drift, ...]:
    """Return every trait with several values, without traits that differ on most nodes.

    Args:
        nodes: traits by host.
        leave_out: traits that differ on purpose, such as the rack.
    """
    drifts = []
    for trait, counts in usual(nodes).items():
        if len(counts) < 2 or trait in leave_out or len(counts) > max(2, len(nodes) // 2):
            continue
        (common, number), *_ = counts.most_common(1)
        others: dict[str, list[str]] = {}
        for host in sorted(nodes):
            if (value := nodes[host].get(trait, common)) != common:
                others.setdefault(value, []).append(host)
        values = ((value, tuple(hosts)) for value, hosts in others.items())
        ordered = sorted(values, key=lambda item: (len(item[1]), item[0]))
        drifts.append(Drift(trait, common, number, tuple(ordered)))
    return tuple(drifts)
