"""Likely causes: traits that bad nodes share and good nodes do not."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from math import lgamma

import numpy as np

from proofmark.common.message import Message, Term
from proofmark.common.nodesets import folded
from proofmark.judge.shared_traits import Traits, usual

LEVEL = 0.01
"""Probability that any cause is named although the bad nodes are distributed by chance."""


@dataclass(frozen=True)
class Cause:
    """A value of a trait that more bad nodes share than chance explains.

    Attributes:
        trait: its name (``rack``, ``microcode``, …).
        value: its value.
        bad: the number of bad nodes with the value.
        nodes: the number of nodes with the value.
        all_bad: the number of all bad nodes.
        all_nodes: the number of all nodes.
        p: probability of `bad` or more by chance, corrected for the number of values tried.
        members: the bad nodes with the value.
    """

    trait: str
    value: str
    bad: int
    nodes: int
    all_bad: int
    all_nodes: int
    p: float
    members: tuple[str, ...]

    @property
    def message(self) -> Message:
        """The text of the cause, for the page."""
        numbers = {"bad": self.bad, "nodes": self.nodes, "all_bad": self.all_bad}
        return Message(
            "trait-bad",
            setting=Term(self.trait),
            value=self.value,
            all_nodes=self.all_nodes,
            p=f"{self.p:.1g}",
            **numbers,
        )

    def as_json(self) -> dict[str, object]:
        """Return the form of ``verdict.json``."""
        return {**vars(self), "members": folded(self.members)}


def causes(
    bad: Collection[str], nodes: Mapping[str, Traits], level: float = LEVEL
) -> tuple[Cause, ...]:
    """Return the traits that bad nodes share more often than by chance, the least probable first.

    One-sided exact test of Fisher, with Holm's correction for the number of values that are tried.
    A value that all nodes have, or a single node, explains nothing and is not tried.

    Args:
        bad: the bad nodes.
        nodes: the traits of all measured nodes.
        level: probability that any cause is named if there is none.
    """
    bad_hosts = set(bad) & set(nodes)
    sharing: dict[tuple[str, str], list[str]] = {}
    for host, traits in nodes.items():
        for trait, value in traits.items():
            sharing.setdefault((trait, value), []).append(host)
    tried = {key: hosts for key, hosts in sharing.items() if 1 < len(hosts) < len(nodes)}
    candidates = []
    for (trait, value), hosts in tried.items():
        members = tuple(sorted(bad_hosts.intersection(hosts)))
        if len(members) < 2:
            continue
        p = hypergeometric_tail(len(members), len(nodes), len(hosts), len(bad_hosts))
        candidates.append((p, trait, value, len(hosts), members))
    named = []
    corrected = 0.0
    for rank, (p, trait, value, size, members) in enumerate(sorted(candidates)):
        corrected = max(corrected, min(1.0, p * (len(tried) - rank)))
        if corrected > level:
            break
        cause = Cause(
            trait=trait,
            value=value,
            bad=len(members),
            nodes=size,
            all_bad=len(bad_hosts),
            all_nodes=len(nodes),
            p=corrected,
            members=members,
        )
        named.append(cause)
    return tuple(named)


def hypergeometric_tail(least: int, population: int, marked: int, drawn: int) -> float:
    """Return the probability of `least` or more marked members in a sample without replacement.

    Args:
        least: the least number of marked members in the sample.
        population: the number of members.
        marked: the number of marked members.
        drawn: the size of the sample.
    """
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
    """Return the natural logarithm of the binomial coefficient of `n` and `k`."""
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)


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


def drift(nodes: Mapping[str, Traits]) -> tuple[Drift, ...]:
    """Return every trait of `nodes` with several values, without those that differ on most."""
    drifts = []
    for trait, counts in usual(nodes).items():
        if len(counts) < 2 or len(counts) > max(2, len(nodes) // 2):
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
