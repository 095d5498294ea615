"""The bad nodes of a run: which figures fail, by how much, the likely cause, the vendor's list.

A likely cause is a trait that bad nodes share and good nodes do not. The list for the vendor has
node, serial number, slot and evidence.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from math import comb
from statistics import median
from typing import Any, NamedTuple

from proofmark.cases.vocabulary import PART_AXES
from proofmark.common.grouping import gathered
from proofmark.common.message import NOTHING, Message, Term, joined
from proofmark.common.nodesets import folded, hosts_of, hosts_of_nodes
from proofmark.common.text import csv_cell
from proofmark.judge.baseline import KIND as BASELINE
from proofmark.judge.references.judgement import OVER_TIME
from proofmark.judge.results import CONFIRMING, Result
from proofmark.judge.stated_parts import NodeFaults, Traits, configuration, traits_of, usual
from proofmark.runs.nodes import Node, ProbedNodes
from proofmark.site.node.counters import CounterChange, tcp_segments
from proofmark.site.node.facts import HostFacts, NodeFacts


@dataclass(frozen=True)
class SlowFigure:
    """A figure that fails.

    Attributes:
        deviation: measured ÷ reference − 1, of the judgement that fails most.
    """

    result: Result
    deviation: float

    @property
    def name(self) -> str:
        """Return case, benchmark, metric, and the part of the node."""
        record = self.result.record
        parts = (f"{record.parameters.get(axis, '')}" for axis in PART_AXES)
        words = dict.fromkeys((record.case, record.benchmark, record.metric, *parts))
        return " ".join(filter(None, words))


def confirmed(slow: Iterable[SlowFigure]) -> bool:
    """Return whether enough undisturbed executions show that a node is slow.

    One of its figures is confirmed by its own executions. A figure with another node is confirmed
    together with those with further nodes.
    """
    results = [figure.result for figure in slow]
    pairs = (each for each in results if len(hosts_of(each.record.node)) > 1)
    shown = set(chain.from_iterable(each.shown_by for each in pairs))
    return not all(each.retest for each in results) or len(shown) >= CONFIRMING


class _Failures(NamedTuple):
    """The figures that fail with a ratio, by node and by pair, and those without one, by node."""

    by_node: dict[str, list[SlowFigure]]
    by_pair: dict[str, list[SlowFigure]]
    digits: dict[str, list[Result]]


def _failures(results: Iterable[Result]) -> _Failures:
    found = _Failures({}, {}, {})
    for result in results:
        ratios = [each.ratio for each in result.references if each.outcome == "FAIL"]
        off = [ratio - 1 for ratio in ratios if ratio is not None]
        node, hosts = result.record.node, hosts_of(result.record.node)
        if len(hosts) == 1 and None in ratios:
            found.digits.setdefault(hosts[0], []).append(result)
        if off and len(hosts) < 3:
            key, by = (hosts[0], found.by_node) if len(hosts) == 1 else (node, found.by_pair)
            by.setdefault(key, []).append(SlowFigure(result, max(off, key=abs)))
    return found


def attribute_links(
    names: Iterable[str],
    by_node: dict[str, list[SlowFigure]],
    by_pair: Mapping[str, list[SlowFigure]],
) -> tuple[tuple[str, SlowFigure], ...]:
    """Attribute slow links to a node if all of its links are slow; return the other slow links.

    `by_node` gets the attributed figures. A node with a single link is not accused.
    """
    if not by_pair:
        return ()
    pairs: dict[str, set[str]] = {}
    for name in names:
        hosts = hosts_of(name)
        if len(hosts) == 2:
            for host in hosts:
                pairs.setdefault(host, set()).add(name)
    all_slow = {host for host, of in pairs.items() if len(of) > 1 and of <= by_pair.keys()}
    links = []
    for pair, slow in by_pair.items():
        bad = [host for host in hosts_of(pair) if host in all_slow or host in by_node]
        for host in bad:
            if host in all_slow:
                by_node.setdefault(host, []).extend(slow)
        if not bad:
            links.append((pair, max(slow, key=lambda figure: abs(figure.deviation))))
    return tuple(links)


LEVEL = 0.01
"""Probability that any cause is named although the bad nodes are distributed by chance."""


@dataclass(frozen=True)
class Cause:
    """A value of a trait that more bad nodes share than chance explains.

    Attributes:
        trait: its name (``rack``, ``microcode``, …).
        p: probability of `bad` or more by chance, corrected for the number of values tried.
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
        return Message(
            "trait-bad",
            setting=Term(self.trait),
            value=self.value,
            bad=self.bad,
            nodes=self.nodes,
            all_bad=self.all_bad,
            all_nodes=self.all_nodes,
            p=f"{self.p:.1g}",
        )

    def as_json(self) -> dict[str, object]:
        """Return the form of ``verdict.json``."""
        return {**vars(self), "members": folded(self.members)}


def causes(bad: Collection[str], nodes: Mapping[str, Traits]) -> tuple[Cause, ...]:
    """Return the traits that bad nodes share more often than by chance, the least probable first.

    One-sided exact test of Fisher, with Holm's correction for the number of values that are tried.
    A value that all nodes have, or a single node, explains nothing and is not tried.
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
        if corrected > LEVEL:
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

    `scipy.stats.hypergeom` takes 400 times as long, and a second to import.
    """
    ways = (
        comb(marked, count) * comb(population - marked, drawn - count)
        for count in range(least, min(marked, drawn) + 1)
    )
    return sum(ways) / comb(population, drawn)


@dataclass(frozen=True)
class Drift:
    """One setting in which nodes differ."""

    trait: str
    usual: str
    nodes: int
    values: tuple[tuple[str, tuple[str, ...]], ...]

    @property
    def hosts(self) -> str:
        """The nodes that do not have what most nodes have."""
        return folded(chain.from_iterable(hosts for _, hosts in self.values))

    @property
    def message(self) -> Message:
        """In what the nodes differ."""
        return Message("nodes-differ", trait=Term(self.trait), usual=self.usual)

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
        others = gathered(
            (value, host)
            for host in sorted(nodes)
            if (value := nodes[host].get(trait, common)) != common
        )
        values = ((value, tuple(hosts)) for value, hosts in others.items())
        ordered = sorted(values, key=lambda item: (len(item[1]), item[0]))
        drifts.append(Drift(trait, common, number, tuple(ordered)))
    return tuple(drifts)


MIN_LOST_SHARE = 5e-3
"""The least share of segments that is a fault. Congestion between healthy nodes costs less."""
LEAST_SENT = 1000
"""Fewer segments are no measurement of a share of `MIN_LOST_SHARE`."""
LEAST_NODES = 7
"""In a ring, a lossy link reaches three nodes. They must be less than half of all."""
MUCH = 4.0
"""The least ratio to the median of the nodes: if all nodes lose packets, it is no node's fault."""
TOP = 0.75
"""The least ratio to the largest share. A peer of a lossy node sends segments again to it only."""


@dataclass(frozen=True)
class Loss:
    """The share of the TCP segments of a node that were sent again during the jobs of a run."""

    share: float
    usual: float
    nodes: int

    @property
    def message(self) -> Message:
        """The loss in words."""
        share, usual = f"{self.share:.2%}", f"{self.usual:.2%}"
        return Message("packets-lost", nodes=self.nodes, share=share, usual=usual)


def losses(segments: Mapping[str, tuple[int, int]]) -> dict[str, Loss]:
    """Return the nodes whose link loses packets.

    Args:
        segments: by node, the TCP segments that were sent again, and all that were sent.
    """
    shares = {host: again / sent for host, (again, sent) in segments.items() if sent >= LEAST_SENT}
    if len(shares) < LEAST_NODES:
        return {}
    usual, largest = median(shares.values()), max(shares.values())
    least = max(MIN_LOST_SHARE, MUCH * usual, TOP * largest)
    return {
        host: Loss(share, usual, len(shares)) for host, share in shares.items() if share >= least
    }


def segments_of(node: Node) -> tuple[int, int]:
    """Return the numbers of resent and of all sent TCP segments during the jobs of `node`."""
    again = sent = 0
    for job in node.jobs:
        before, after = job.provenance.before, job.provenance.after
        if after and (of_job := tcp_segments(before, after)):
            again, sent = again + of_job[0], sent + of_job[1]
    return again, sent


@dataclass(frozen=True)
class BadNode:
    """A node with figures that fail, or with another fault.

    Attributes:
        slow: the figures that fail, the worst first; empty if only counters show a fault.
        retest: whether it is measured again before it is named for return: each of its figures
            has to be, and nothing else shows a fault.
        counters: the changes of its error counters while the benchmarks ran.
        digits: the results whose digits differ from those of its peers: it computes wrongly.
        loss: the packets that its link loses; None if it loses no more than usual.
        known: its faults that no figure and no counter shows: it has less hardware than stated.
    """

    host: str
    slow: tuple[SlowFigure, ...]
    retest: bool
    causes: tuple[Cause, ...]
    counters: tuple[CounterChange, ...]
    digits: tuple[Result, ...] = ()
    loss: Loss | None = None
    known: Sequence[Message] = ()

    @property
    def faults(self) -> tuple[Message, ...]:
        """Its faults that no figure has."""
        return (*([self.loss.message] if self.loss else []), *self.known)

    @property
    def results(self) -> list[Result]:
        """The results with wrong digits, then those that fail."""
        return [*self.digits, *(each.result for each in self.slow)]

    @property
    def worst(self) -> float:
        """Return the deviation of its worst figure; 0 if no figure fails."""
        return self.slow[0].deviation if self.slow else 0.0

    @property
    def likely(self) -> Message:
        """Return the likeliest cause in one line, or that no cause is known."""
        if self.faults:
            return joined(self.faults)
        if self.counters:
            return joined(change.message for change in self.counters[:2])
        if self.digits:
            return Message("wrong-digits")
        if self.slower:
            return self.slower
        if self.causes:
            return self.causes[0].message
        return Message("node-itself")

    @property
    def slower(self) -> Message:
        """Return how it became slower during the run, with its sensors, or `NOTHING`."""
        for slow in self.slow:
            for each in slow.result.references:
                if (each.kind, each.outcome) == (OVER_TIME, "FAIL"):
                    return Message("slower", text=each.reason)
        return NOTHING

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
                    "shown_by": list(slow.result.shown_by),
                }
                for slow in self.slow
            ],
            "digits": [
                {"step": result.record.step, "values": list(result.values), "why": result.reason}
                for result in self.digits
            ],
            "retest": self.retest,
            **self.likely.as_json("likely"),
            "counters": [str(change) for change in self.counters],
            "loss": self.loss and vars(self.loss),
            "known": [{"text": str(each), **each.stored()} for each in self.known],
        }


@dataclass(frozen=True)
class BadNodes:
    """The bad nodes and links of a run.

    Attributes:
        links: the slow links between two nodes that are not bad themselves, with the worst figure.
    """

    nodes: tuple[BadNode, ...] = ()
    links: tuple[tuple[str, SlowFigure], ...] = ()
    causes: tuple[Cause, ...] = ()
    drift: tuple[Drift, ...] = ()
    measured: int = 0

    def as_json(self) -> dict[str, Any]:
        """Return the form of ``verdict.json``."""
        return {
            "nodes": [node.as_json() for node in self.nodes],
            "links": [
                {"pair": pair, "figure": slow.name, "off": slow.deviation}
                for pair, slow in self.links
            ],
            "causes": [cause.as_json() for cause in self.causes],
            "drift": [drift.as_json() for drift in self.drift],
        }


@dataclass(frozen=True)
class Suspects:
    """What other judges found about nodes.

    Attributes:
        measured: the nodes and pairs of nodes with a result, as records name them.
        judged: those of `measured` with a figure that was judged; None: all of them.
        slow_ends: the pairs that a slow element of the fabric explains, with the node whose port it
            is; an empty text if it is no port.
    """

    measured: Collection[str]
    judged: Collection[str] | None = None
    slow_ends: Mapping[str, str] = field(default_factory=dict)
    faults: NodeFaults = field(default_factory=dict)


def bad_nodes(
    failed: Iterable[Result],
    nodes: ProbedNodes,
    location: Mapping[str, Mapping[str, str]],
    suspects: Suspects,
) -> BadNodes:
    """Return the bad nodes of a run, and the traits that they share.

    A node is bad if a figure of the node fails, if its digits are wrong, if all of its judged
    links fail, if its port is a slow element of the fabric, if its error counters show a fault, if
    its link loses packets, or if it has another known fault. A node without others is bad only by
    that, and in comparison with the baseline.
    Another link that fails is listed as a link, unless a slow element of the fabric explains it.

    Args:
        location: switches and rack by host.
    """
    facts = {host: node.newest for host, node in nodes.items() if node.jobs}
    settings = {host: configuration(node_facts) for host, node_facts in facts.items()}
    traits = traits_of(settings, location)
    by_node, by_pair, digits = _failures(failed)
    # The port of a host explains its slow pairs: they count for the host, not as slow links.
    for pair, host in suspects.slow_ends.items():
        if (explained := by_pair.pop(pair, [])) and host:
            by_node.setdefault(host, []).extend(explained)
    counters = {host: _counters(node) for host, node in nodes.items()}
    candidates = suspects.measured if suspects.judged is None else suspects.judged
    left = [pair for pair in candidates if pair not in suspects.slow_ends]
    links = attribute_links(left, by_node, by_pair)
    hosts = set(hosts_of_nodes(suspects.measured))
    known = {host: found for host, found in suspects.faults.items() if host in hosts}
    slow_figures = chain.from_iterable(by_node.values())
    answers = chain.from_iterable(each.result.references for each in slow_figures)
    against_baseline = any((each.kind, each.outcome) == (BASELINE, "FAIL") for each in answers)
    if len(hosts) < 2 and not (known or against_baseline):
        return BadNodes(measured=len(hosts))
    measured_traits = {host: of_host for host, of_host in traits.items() if host in hosts}
    counted = {host for host, of in counters.items() if any(each.is_fault for each in of)}
    lossy = losses({host: segments_of(node) for host, node in nodes.items() if host in hosts})
    faulty = {*digits, *counted, *lossy, *known}
    for host in faulty:
        by_node.setdefault(host, [])
    shared = causes(by_node, measured_traits)
    bad = [
        BadNode(
            host=host,
            slow=tuple(sorted(slow, key=lambda figure: -abs(figure.deviation))),
            retest=bool(slow) and host not in faulty and not confirmed(slow),
            causes=tuple(cause for cause in shared if host in cause.members),
            counters=counters.get(host, ()),
            digits=tuple(digits.get(host, ())),
            loss=lossy.get(host),
            known=known.get(host, ()),
        )
        for host, slow in by_node.items()
    ]
    bad.sort(key=lambda node: (node.retest, not node.digits, -abs(node.worst), node.host))
    return BadNodes(tuple(bad), links, shared, drift(settings), measured=len(hosts))


def _counters(node: Node) -> tuple[CounterChange, ...]:
    """Return the changes of a node's counters, those that show a fault first."""
    changes = chain.from_iterable(job.provenance.changes for job in node.jobs)
    return tuple(sorted(changes, key=lambda change: (not change.invalid, change.place is None)))


COLUMNS = ("node", "serial_number", "slot", "evidence")
_SERIALS = ("product_serial", "chassis_serial", "board_serial", "system-id", "serial-number")
_MOST = 3

Row = tuple[str, str, str, str]


def rma(nodes: Iterable[BadNode], facts: HostFacts) -> list[Row]:
    """Return a row for each slot with error counters, and a row for each slow node.

    A node that has to be measured again first has no row.
    """
    named = (_rows(node, facts.get(node.host)) for node in nodes if not node.retest)
    return [*chain.from_iterable(named)]


def _rows(node: BadNode, facts: NodeFacts | None) -> Iterator[Row]:
    serial = serial_number(facts)
    by_slot = gathered((change.place, str(change)) for change in node.counters if change.place)
    for slot, changes in by_slot.items():
        dimms = facts.dimms if facts else ()
        yield (
            node.host,
            next((dimm.serial for dimm in dimms if dimm.locator == slot), None) or serial,
            slot,
            "; ".join(changes),
        )
    no_slot = [str(change) for change in node.counters if change.is_fault and not change.place]
    digits = [_digits(result) for result in node.digits[:_MOST]]
    slow = [figure for figure in node.slow if not figure.result.retest] or node.slow
    evidence = [*digits, *map(evidence_of, slow[:_MOST]), *no_slot, *node.faults]
    if len(slow) > _MOST:
        evidence.append(f"{len(slow) - _MOST} more figures")
    if evidence:
        yield node.host, serial, "", "; ".join(evidence)


def _digits(result: Result) -> str:
    record = result.record
    return f"{record.case} {record.metric}: {result.reason} (workdir/steps/{record.step})"


def evidence_of(slow: SlowFigure) -> str:
    """Return a failing figure as one phrase, with the folder of its output."""
    record = slow.result.record
    return (
        f"{slow.name} {record.value:.6g} {record.unit}, {100 * slow.deviation:+.1f} % "
        f"({len(slow.result.values)} × measured; workdir/steps/{record.step})"
    )


def serial_number(facts: NodeFacts | None) -> str:
    """Return the serial number of a node; ``not reported`` if its firmware reports none."""
    firmware = facts.firmware if facts else {}
    return next((firmware[key] for key in _SERIALS if firmware.get(key)), "not reported")


def as_csv(rows: Sequence[Row]) -> str:
    """Return the list as CSV. A spreadsheet takes no cell for a formula."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows([csv_cell(cell) for cell in row] for row in rows)
    return text.getvalue()
