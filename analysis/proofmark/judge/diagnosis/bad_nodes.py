"""The bad nodes of a run: which figures tell, how far off, what it may come from."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from proofmark.common.nodesets import hosts_of
from proofmark.judge.diagnosis.causes import Cause, causes
from proofmark.judge.diagnosis.drift import Drift, drift
from proofmark.judge.diagnosis.traits import Traits, configuration, traits_of, usual
from proofmark.judge.results import Result
from proofmark.runs.nodes import Node
from proofmark.site.node.counters import CounterChange

RARE = 0.1
"""A setting that fewer than so many of the nodes have may be why one of them is slow."""


@dataclass(frozen=True)
class Slow:
    """A figure of a bad node that fails.

    `deviation` is measured ÷ reference − 1, of the worst answer.
    """

    result: Result
    deviation: float

    @property
    def name(self) -> str:
        """Return what was measured."""
        record = self.result.record
        words = dict.fromkeys((record.case, record.benchmark, record.metric))
        return " ".join(filter(None, words))


@dataclass(frozen=True)
class BadNode:
    """A node with figures that fail, or with counters that tell of a fault.

    Attributes:
        slow: the figures, the worst first; none where only the counters speak.
        retest: all of them fail within their noise: measure again before anybody acts.
        causes: what it shares with other bad nodes.
        odd: settings that few of its fellows have.
        counters: what the node's own counters say, while the benchmarks ran.
    """

    host: str
    slow: tuple[Slow, ...]
    retest: bool
    causes: tuple[Cause, ...]
    odd: tuple[str, ...]
    counters: tuple[CounterChange, ...]

    @property
    def worst(self) -> float:
        """Return how far its worst figure is off, as a part of the reference; 0 without one."""
        return self.slow[0].deviation if self.slow else 0.0

    @property
    def likely(self) -> str:
        """Return the likeliest cause in one line; what it is not known by is said as well."""
        if self.counters:
            return "; ".join(dict.fromkeys(str(change) for change in self.counters[:2]))
        if self.causes:
            return str(self.causes[0])
        if self.odd:
            return "; ".join(self.odd[:2])
        return "nothing that its fellows do not have as well: the node itself"

    def as_json(self) -> dict[str, Any]:
        """Return the form of ``verdict.json``."""
        return {
            "node": self.host,
            "worst": self.worst,
            "figures": [
                {
                    "figure": slow.name,
                    "step": slow.result.record.step,
                    "value": slow.result.record.value,
                    "unit": slow.result.record.unit,
                    "off": slow.deviation,
                    "retest": slow.result.retest,
                }
                for slow in self.slow
            ],
            "retest": self.retest,
            "likely": self.likely,
            "counters": [str(change) for change in self.counters],
        }


@dataclass(frozen=True)
class BadNodes:
    """All of it: `links` are pairs of which neither node is bad by itself."""

    nodes: tuple[BadNode, ...] = ()
    links: tuple[tuple[str, Slow], ...] = ()
    causes: tuple[Cause, ...] = ()
    drift: tuple[Drift, ...] = ()
    asked: int = 0

    def as_json(self) -> dict[str, Any]:
        """Return the form of ``verdict.json``."""
        return {
            "nodes": [node.as_json() for node in self.nodes],
            "links": [
                {"pair": pair, "figure": slow.name, "off": slow.deviation}
                for pair, slow in self.links
            ],
            "causes": [cause.as_json() for cause in self.causes],
            "drift": [each.as_json() for each in self.drift],
        }


def bad_nodes(
    failed: Iterable[Result],
    measured: Collection[str],
    nodes: Mapping[str, Node],
    location: Mapping[str, Mapping[str, str]],
) -> BadNodes:
    """Find the bad nodes of a run, and what they have in common.

    A node is bad by a figure of its own that fails, or when the links to all the neighbours that
    it was paired with fail. A link that fails alone is listed as a link.

    Args:
        failed: the results of the run that fail.
        measured: the nodes and pairs of nodes that there are results of, as records have them.
        nodes: what was collected of each.
        location: switches and rack by host.
    """
    facts = {host: node.newest for host, node in nodes.items() if node.jobs}
    settings = {host: configuration(each) for host, each in facts.items()}
    traits = traits_of(settings, location)
    by_node, by_pair = _failures(failed)
    moved = {host: _counters(node) for host, node in nodes.items()}
    links = _shared_out(measured, by_node, by_pair)
    hosts = {host for name in measured for host in hosts_of(name)}
    if len(hosts) < 2:
        return BadNodes(asked=len(hosts))
    known = {host: own for host, own in traits.items() if host in hosts}
    for host, changes in moved.items():
        if any(change.invalid for change in changes):
            by_node.setdefault(host, [])
    named = causes(by_node, known)
    counts = usual(settings)
    found = [
        BadNode(
            host=host,
            slow=tuple(sorted(slow, key=lambda each: -abs(each.deviation))),
            retest=bool(slow) and all(each.result.retest for each in slow),
            causes=tuple(cause for cause in named if host in cause.members),
            odd=_odd(settings.get(host, {}), counts, len(settings)),
            counters=moved.get(host, ()),
        )
        for host, slow in by_node.items()
    ]
    found.sort(key=lambda node: (node.retest, -abs(node.worst), node.host))
    return BadNodes(tuple(found), links, named, drift(settings), len(hosts))


def _failures(
    results: Iterable[Result],
) -> tuple[dict[str, list[Slow]], dict[str, list[Slow]]]:
    by_node: dict[str, list[Slow]] = {}
    by_pair: dict[str, list[Slow]] = {}
    for result in results:
        ratios = [
            each.ratio - 1
            for each in result.references
            if each.outcome == "FAIL" and each.ratio is not None
        ]
        slow = Slow(result, max(ratios, key=abs))
        where = hosts_of(result.record.node)
        if len(where) == 1:
            by_node.setdefault(where[0], []).append(slow)
        elif len(where) == 2:
            by_pair.setdefault(result.record.node, []).append(slow)
    return by_node, by_pair


def _shared_out(
    names: Iterable[str], by_node: dict[str, list[Slow]], by_pair: Mapping[str, list[Slow]]
) -> tuple[tuple[str, Slow], ...]:
    """Attribute slow links to a node if all of its links are slow; return the other ones."""
    if not by_pair:
        return ()
    pairs: dict[str, set[str]] = {}
    for name in names:
        hosts = hosts_of(name)
        if len(hosts) == 2:
            for host in hosts:
                pairs.setdefault(host, set()).add(name)
    guilty = {host for host, own in pairs.items() if len(own) > 1 and own <= by_pair.keys()}
    links = []
    for pair, slow in by_pair.items():
        to_blame = [host for host in hosts_of(pair) if host in guilty or host in by_node]
        for host in to_blame:
            if host in guilty:
                by_node.setdefault(host, []).extend(slow)
        if not to_blame:
            links.append((pair, max(slow, key=lambda each: abs(each.deviation))))
    return tuple(links)


def _odd(own: Traits, counts: Mapping[str, Mapping[str, int]], nodes: int) -> tuple[str, ...]:
    """Return the settings of a node that hardly any other has, the rarest first."""
    rare = sorted(
        (counts[name][value], name, value)
        for name, value in own.items()
        if counts[name][value] <= max(1, RARE * nodes) and nodes > 2
    )
    return tuple(
        f"{name} {value}, on {number} of {nodes} nodes"
        for number, name, value in rare
        if len(counts[name]) <= max(2, nodes // 2)
    )


def _counters(node: Node) -> tuple[CounterChange, ...]:
    """Return what changed on the node, what speaks of a fault first."""
    changes = [change for job in node.jobs for change in job.provenance.changes]
    return tuple(sorted(changes, key=lambda change: (not change.invalid, change.place is None)))
