"""What the bad nodes share that the good ones do not: a name for the cause."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from math import lgamma

import numpy as np

from proofmark.common.nodesets import folded
from proofmark.judge.diagnosis.traits import Traits

LEVEL = 0.01
"""Probability of naming any cause at all where the bad nodes are spread by chance."""


@dataclass(frozen=True)
class Cause:
    """Nodes with one value of a trait, among which bad ones are too many for chance.

    Attributes:
        trait: what they share (``rack``, ``microcode``, …), and its `value`.
        bad: bad nodes among the `nodes` that share it, of `all_bad` in all.
        p: probability of at least so many by chance, corrected for the number of values tried.
        members: the bad ones.
    """

    trait: str
    value: str
    bad: int
    nodes: int
    all_bad: int
    all_nodes: int
    p: float
    members: tuple[str, ...]

    def __str__(self) -> str:
        return (
            f"{self.trait} {self.value}: {self.bad} of its {self.nodes} nodes are bad, "
            f"{self.all_bad} of all {self.all_nodes} (p = {self.p:.1g})"
        )

    def as_json(self) -> dict[str, object]:
        """Return the form of ``verdict.json``."""
        return {**vars(self), "members": folded(self.members)}


def causes(
    bad: Collection[str], nodes: Mapping[str, Traits], level: float = LEVEL
) -> tuple[Cause, ...]:
    """Name the traits that the bad nodes share beyond chance, the least probable first.

    Fisher's exact test, one-sided: so many bad ones among the nodes that share a value, were the
    bad ones drawn from all by chance. Holm's correction for all values that are tried. Values that
    all nodes have, or one alone, can explain nothing and are not tried.

    Args:
        bad: the bad nodes.
        nodes: all that were measured, with their traits.
        level: probability that anything is named where there is nothing to name.
    """
    wrong = set(bad) & set(nodes)
    sharing: dict[tuple[str, str], list[str]] = {}
    for host, own in nodes.items():
        for trait, value in own.items():
            sharing.setdefault((trait, value), []).append(host)
    tried = {key: hosts for key, hosts in sharing.items() if 1 < len(hosts) < len(nodes)}
    found = []
    for (trait, value), hosts in tried.items():
        members = tuple(sorted(wrong.intersection(hosts)))
        if len(members) < 2:
            continue
        p = hypergeometric_tail(len(members), len(nodes), len(hosts), len(wrong))
        found.append((p, trait, value, len(hosts), members))
    named = []
    corrected = 0.0
    for rank, (p, trait, value, size, members) in enumerate(sorted(found)):
        corrected = max(corrected, min(1.0, p * (len(tried) - rank)))
        if corrected > level:
            break
        bad_here = len(members)
        named.append(
            Cause(trait, value, bad_here, size, len(wrong), len(nodes), corrected, members)
        )
    return tuple(named)


def hypergeometric_tail(least: int, population: int, marked: int, drawn: int) -> float:
    """Return the probability of `least` or more marked ones among those drawn without return."""
    most = min(marked, drawn)
    counts = np.arange(max(least, drawn + marked - population, 0), most + 1)
    if not len(counts):
        return 0.0
    logs = np.array(
        [
            _choose(marked, int(count)) + _choose(population - marked, drawn - int(count))
            for count in counts
        ]
    )
    return float(min(1.0, np.exp(logs - _choose(population, drawn)).sum()))


def _choose(n: int, k: int) -> float:
    """Return the logarithm of the number of ways to choose `k` of `n`."""
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)
