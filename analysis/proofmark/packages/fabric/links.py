"""The slow elements of the fabric of a run, and what they mean for its figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from proofmark.cases.suite import Benchmarks
from proofmark.common.message import Message
from proofmark.common.nodesets import folded
from proofmark.common.text import factor
from proofmark.common.translation import _
from proofmark.judge.additions import AddedJudge, Finding, Suspect
from proofmark.judge.aggregate import Aggregates
from proofmark.judge.evidence import Evidence
from proofmark.judge.fleet.fleet import Fleet
from proofmark.judge.references.judgement import Judgement
from proofmark.packages.fabric.elements import NONE, Paths, paths_of
from proofmark.packages.fabric.link_fit import (
    LEAST_DROP,
    LEAST_SLOW,
    LIKELY,
    Fit,
    fit,
    relative_entropy,
    slow_at,
)
from proofmark.packages.fabric.samples import measurements
from proofmark.plan.plan import Plan
from proofmark.records.columns import Floats, Numbers

MOST_HOSTS = 64
"""Up to this number of measured hosts, the matrix has a row for each host."""
MOST_SWITCHES = 1000
"""The largest number of switches of a matrix."""


@dataclass(frozen=True, eq=False)
class Matrix:
    """Relative rates between groups of hosts.

    Attributes:
        level: what a row is: ``node``, or the name of a level.
        names: of the rows and columns.
        ratio: the median of measured ÷ usual, better if greater; NaN if it was not measured. The
            row is the group of the first host of a pair; shape (groups, groups).
    """

    level: str
    names: tuple[str, ...]
    ratio: Floats


def matrix(fit: Fit) -> Matrix | None:
    """Return the relative rates; None if there are too many groups for a picture.

    The rates of both directions of a pair count for both, unless the data flow in one direction.
    """
    samples, paths = fit.samples, fit.elements.paths
    compared = fit.about.like != NONE
    hosts = np.unique(samples.pairs[compared])
    if not len(hosts):
        return None
    if len(hosts) <= MOST_HOSTS:
        level, names = "node", tuple(paths.hosts[host] for host in hosts.tolist())
        ends = np.searchsorted(hosts, samples.pairs[compared])
    elif paths.tiers and len(paths.tiers[0].switches) <= MOST_SWITCHES:
        level, names = paths.tiers[0].name, paths.tiers[0].switches
        ends = paths.groups[0][samples.pairs[compared]]
    else:
        return None
    value = np.exp(fit.found.residual[compared])
    two_way = np.array([not each.one_way for each in samples.of])[samples.series[compared]]
    ends = np.concatenate([ends, ends[two_way][:, ::-1]])
    value = np.concatenate([value, value[two_way]])
    inside = (ends != NONE).all(axis=1)
    cell, value = (ends @ [len(names), 1])[inside], value[inside]
    order = np.lexsort((value, cell))
    cell, value = cell[order], value[order]
    cells, first, count = np.unique(cell, return_index=True, return_counts=True)
    ratio = np.full(len(names) ** 2, np.nan)
    ratio[cells] = (value[first + (count - 1) // 2] + value[first + count // 2]) / 2
    return Matrix(level, names, ratio.reshape(len(names), len(names)))


FABRIC = "fabric"
"""The name of the judge, as in the table of this package."""
SPREADS = 3.0
"""The distance of a slow pair from the usual value, in spreads."""
LEAST_OF_UPLINK = 3
"""The least number of slow pairs that name an uplink."""
LEAST_CHANCE = 0.01
"""The least assumed share of slow pairs on a healthy fabric."""


@dataclass(frozen=True, eq=False)
class SlowUplink:
    """A slow uplink whose number is not known, or a slow switch above all switches of a level.

    Attributes:
        level: the number of the level of the switches below it.
        switch: the number of the switch; -1 if the uplinks of all switches are affected.
        ratio: the median of measured ÷ usual of the slow pairs.
        confidence: the probability of it among the uplinks that explain the slow pairs.
        measured, slow: the numbers of the pairs that cross the uplinks, and of the slow ones.
    """

    level: int
    switch: int
    ratio: float
    confidence: float
    measured: Numbers
    slow: Numbers


def slow_uplinks(fit: Fit, level: float) -> Iterator[SlowUplink]:
    """Yield the slow uplinks of each level whose routing is not declared, from the fit of the rest.

    Args:
        fit: the fit, which names the elements of which most measurements are slow.
        level: the probability that anything of a healthy fabric is named.
    """
    samples, paths = fit.samples, fit.elements.paths
    alone = np.array([each.alone for each in samples.of], dtype=bool)[samples.series]
    usable = alone & (fit.owner == NONE) & (fit.about.like != NONE)
    slow = usable & slow_at(fit.found, SPREADS)
    for number, tier in enumerate(paths.tiers):
        if tier.known or tier.declared == 1:
            continue
        ends = paths.groups[number][samples.pairs]
        crosses = usable & (paths.distance(samples.pairs) > number) & (ends != NONE).all(axis=1)
        switches = len(tier.switches)
        inside = usable & ~crosses
        chance = max(LEAST_CHANCE, float(((slow & inside).sum() + 0.5) / (inside.sum() + 1)))
        everything = _gain(int(crosses.sum()), int((crosses & slow).sum()), chance)
        left, rest = slow.copy(), crosses.copy()
        needed = np.log((switches + 1) / level)
        while (left & rest).sum() >= LEAST_OF_UPLINK:
            count = _ends(ends[rest], switches)
            hit = _ends(ends[rest & left], switches)
            others = (2 * (left & rest).sum() - hit + 1) / (2 * rest.sum() - count + 2)
            gain = relative_entropy(np.maximum(count, 1), hit, np.clip(others, LEAST_CHANCE, 0.99))
            gain[(hit < LEAST_OF_UPLINK)] = 0.0
            worst = int(np.argmax(gain))
            if gain[worst] <= needed:
                break
            of_switch = rest & (ends == worst).any(axis=1)
            share = np.exp(gain - gain[worst])
            total = share[share >= LIKELY].sum()
            yield _uplink(fit, number, worst, 1 / total, of_switch, left)
            everything -= gain[worst]
            rest &= ~of_switch
        if everything > needed and (left & rest).sum() >= LEAST_OF_UPLINK:
            yield _uplink(fit, number, NONE, 1.0, rest, left)


def _gain(count: int, hit: int, chance: float) -> float:
    if not count:
        return 0.0
    return float(relative_entropy(np.array([count]), np.array([hit]), np.array([chance]))[0])


def _ends(ends: Numbers, switches: int) -> Numbers:
    """Return the number of pairs of each switch; shape (switches,)."""
    return np.bincount(ends.ravel(), minlength=switches)


def _uplink(
    fit: Fit, level: int, switch: int, confidence: float, pairs: Numbers, slow: Numbers
) -> SlowUplink:
    hit = np.flatnonzero(pairs & slow)
    ratio = float(np.exp(np.median(fit.found.residual[hit])))
    return SlowUplink(level, switch, ratio, confidence, np.flatnonzero(pairs), hit)


@dataclass(frozen=True)
class Bisection:
    """The rates of the pairs of one round that cross a level, together.

    Attributes:
        level: the level whose switches they leave.
        case, benchmark, metric: what was measured.
        pairs: their number.
        bytes_per_s: the sum of their rates.
        share: of the rate that the links allow them; None if the rate of the links is not declared.
    """

    level: str
    case: str
    benchmark: str
    metric: str
    round: str
    pairs: int
    bytes_per_s: float
    share: float | None

    def as_json(self) -> dict[str, Any]:
        """Return the form of ``verdict.json``."""
        return asdict(self)


def bisections(fit: Fit, steps: Sequence[str]) -> Iterator[Bisection]:
    """Yield the rate across each level, by rate that was measured.

    The round with the most pairs that cross the level is used; of several, the first. What the
    links allow is computed from the declared uplinks. Uplinks that are not declared are assumed to
    limit no pair.

    Args:
        steps: the step of each round.
    """
    samples, paths = fit.samples, fit.elements.paths
    distance = paths.distance(samples.pairs)
    for number, series in enumerate(samples.of):
        unit = factor(series.unit, "byte/s")
        if series.alone or not series.rate or unit is None:
            continue
        both = 1 if series.one_way else 2
        for level, tier in enumerate(paths.tiers):
            crosses = (samples.series == number) & (distance > level)
            if not crosses.any():
                continue
            fullest = int(np.argmax(np.bincount(samples.round[crosses])))
            chosen: Numbers = np.flatnonzero(crosses & (samples.round == fullest))
            total = float(samples.value[chosen].sum()) * unit
            yield Bisection(
                level=tier.name,
                case=series.case,
                benchmark=series.benchmark,
                metric=series.metric,
                round=steps[fullest],
                pairs=len(chosen),
                bytes_per_s=total,
                share=_share(total, fit.about.share[chosen], paths.node_rate, both),
            )


def _share(total: float, shares: Floats, link: float | None, both: int) -> float | None:
    return None if link is None else total / (float(shares.sum()) * link * both)


@dataclass(frozen=True)
class SlowElement:
    """A slow element of the fabric.

    Attributes:
        kind: ``node`` (its port), ``uplink``, ``uplinks`` (all of a switch), ``spine``, or the name
            of a level for a switch of it.
        direction: of its slow links: ``up`` is away from the nodes, ``down`` is towards them; empty
            for both, or if the measurements do not tell.
        ratio: the median of measured ÷ usual of its slow measurements.
        confidence: the probability of the element among those that explain the same measurements.
        alternatives: the names of the others that are likely, with their probabilities.
        measured: the number of measurements that it limits.
        slow: the number of slow ones of these.
        nodes: the nodes of the slow measurements, as a node set.
        pairs: the pairs of nodes of the slow measurements, as records name them.
    """

    kind: str
    name: str
    direction: str
    ratio: float
    confidence: float
    alternatives: tuple[tuple[str, float], ...]
    measured: int
    slow: int
    nodes: str
    pairs: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the form of ``verdict.json``."""
        alternatives = [{"name": name, "confidence": each} for name, each in self.alternatives]
        return {**asdict(self), "alternatives": alternatives, "pairs": list(self.pairs)}


@dataclass(frozen=True, eq=False)
class LinkFit(Finding):
    """The fit of all rounds of pairs of a run.

    Attributes:
        level: the probability that any element of a healthy fabric is named.
        measured: the number of measurements.
        compared: the number of those that have enough like measurements.
        rounds: the number of rounds and waves.
        elements: the slow elements, the one with the most evidence first.
        untested: the elements that too few measurements test, by kind: ``12 of 4160 uplink``.
        bisections: the rate across each level of the fabric.
        judgements: the judgement of each slow figure behind a slow element, by figure.
        hosts: the node of each slow port, by the pair that it makes slow; empty text for a pair
            that another element makes slow.
        matrix: relative rates between switches or hosts; None without a picture.
    """

    level: float
    measured: int = 0
    compared: int = 0
    rounds: int = 0
    elements: tuple[SlowElement, ...] = ()
    untested: tuple[str, ...] = ()
    bisections: tuple[Bisection, ...] = ()
    judgements: Mapping[int, Judgement] = field(default_factory=dict)
    hosts: Mapping[str, str] = field(default_factory=dict)
    matrix: Matrix | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the part of ``verdict.json`` about the links."""
        found = {
            "family_level": self.level,
            "measured": self.measured,
            "compared": self.compared,
            "rounds": self.rounds,
            "untested": list(self.untested),
            "elements": [element.as_json() for element in self.elements],
            "bisection": [each.as_json() for each in self.bisections],
        }
        return {"links": found}

    def of_figures(self) -> Mapping[int, Judgement]:
        """Return the judgement of each slow figure behind a slow element, by figure."""
        return self.judgements

    def slow_ends(self) -> Mapping[str, str]:
        """Return the node of each slow port, by the pair that it makes slow."""
        return self.hosts

    def suspects(self) -> Iterator[Suspect]:
        """Yield the slow elements, the one with the most evidence first."""
        for element in self.elements:
            problem = _("{name} is slow: {ratio} of the usual rate").format(
                name=element.name, ratio=f"{element.ratio:.0%}"
            )
            action = _(
                "Check its cables and ports, and the error counters of the switch. Then measure "
                "again"
            )
            yield Suspect(problem, action, element.nodes, element.slow, element.pairs)


class FabricJudge(AddedJudge):
    """Names the elements of the fabric that make rounds of pairs slow."""

    def judge(self, evidence: Evidence, fleet: Fleet) -> LinkFit | None:
        """Return the slow elements; None for a run without a fabric or rounds of pairs."""
        network = evidence.network
        if network.fabric is None:
            return None
        paths = paths_of(network.fabric, evidence.hosts)
        level = evidence.family_level
        return link_fit(evidence.figures, evidence.plan, evidence.benchmarks, paths, level)


def link_fit(
    figures: Aggregates, plan: Plan, benchmarks: Benchmarks, paths: Paths, level: float
) -> LinkFit | None:
    """Return the slow elements of a fabric; None for a run without rounds of pairs.

    Args:
        level: the probability that any element of a healthy fabric is named.
    """
    found = measurements(figures, plan, benchmarks, paths)
    if found is None:
        return None
    fitted = fit(found.samples, paths, level)
    nodes = [figures.records.nodes[node] for node in figures.node[found.figures].tolist()]
    elements: list[SlowElement] = []
    judgements: dict[int, Judgement] = {}
    hosts: dict[str, str] = {}
    for element, slow in _slow_elements(fitted, level, nodes):
        elements.append(element)
        for place in slow.tolist():
            figure = int(found.figures[place])
            judgements.setdefault(figure, _judgement(fitted, place, element))
            hosts.setdefault(nodes[place], element.nodes if element.kind == "node" else "")
    return LinkFit(
        level=level,
        measured=len(found.samples),
        compared=int((fitted.about.like != NONE).sum()),
        rounds=len(found.steps),
        elements=tuple(elements),
        untested=tuple(_untested(fitted)),
        bisections=tuple(bisections(fitted, [step.id for step in found.steps])),
        judgements=judgements,
        hosts=hosts,
        matrix=matrix(fitted),
    )


def _slow_elements(
    fitted: Fit, level: float, nodes: Sequence[str]
) -> Iterator[tuple[SlowElement, Numbers]]:
    """Yield each slow element with the numbers of all slow measurements that it explains."""
    elements = fitted.elements
    slow = slow_at(fitted.found, SPREADS)
    for place, named in enumerate(fitted.named):
        element = elements.element(named.element)
        behind = np.flatnonzero((fitted.owner == place) & slow)
        one = SlowElement(
            kind=element.kind,
            name=element.name,
            direction=element.direction,
            ratio=named.ratio,
            confidence=named.confidence,
            alternatives=tuple(
                (elements.element(number).name, each) for number, each in named.alternatives
            ),
            measured=len(named.measured),
            slow=len(named.slow),
            nodes=folded(element.hosts),
            pairs=tuple(nodes[number] for number in named.slow.tolist()),
        )
        yield one, np.union1d(behind, named.slow)
    for each in slow_uplinks(fitted, level):
        yield _of_uplink(fitted, each, nodes), each.slow


def _untested(fitted: Fit) -> Iterator[str]:
    """Yield the number of elements of each kind that too few measurements test."""
    elements = fitted.elements
    for family in elements.families:
        few = int((fitted.limited[family.first :][: family.count] < LEAST_SLOW).sum())
        if few and not family.direction:
            above = f" of {elements.paths.tiers[family.level].name}" if family.level >= 0 else ""
            yield f"{few} of {family.count} {family.kind}{above}"


def _of_uplink(fitted: Fit, found: SlowUplink, nodes: Sequence[str]) -> SlowElement:
    """Return a slow uplink whose number is not known."""
    paths = fitted.elements.paths
    tier = paths.tiers[found.level]
    pairs = fitted.samples.pairs[found.slow]
    if found.switch == NONE:
        kind, name = "spine", f"a switch above each {tier.name}"
        hosts = tuple(paths.hosts)
    else:
        inside = paths.groups[found.level] == found.switch
        ends = folded(paths.hosts[host] for host in np.unique(pairs[~inside[pairs]]).tolist())
        kind, name = "uplink", f"an uplink of {tier.switches[found.switch]}, to {ends}"
        hosts = tuple(paths.hosts[host] for host in np.flatnonzero(inside).tolist())
    return SlowElement(
        kind=kind,
        name=name,
        direction="",
        ratio=found.ratio,
        confidence=found.confidence,
        alternatives=(),
        measured=len(found.measured),
        slow=len(found.slow),
        nodes=folded(hosts),
        pairs=tuple(nodes[place] for place in found.slow.tolist()),
    )


def _judgement(fitted: Fit, place: int, element: SlowElement) -> Judgement:
    """Return the judgement of a slow measurement behind a slow element."""
    value = float(fitted.samples.value[place])
    series = fitted.samples.of[int(fitted.samples.series[place])]
    residual = float(fitted.found.residual[place])
    drop = max(SPREADS * float(fitted.found.spread[place]), -np.log1p(-LEAST_DROP))
    higher = series.better == "higher"
    usual = value / np.exp(residual if higher else -residual)
    limit = float(np.exp(-drop if higher else drop))
    like = int((fitted.about.like == fitted.about.like[place]).sum())
    reason = Message(
        "link-slow",
        ratio=f"{value / usual:.3g}",
        pairs=like,
        value=f"{usual:.6g} {series.unit}",
        element=element.name,
        percent=f"{100 * element.confidence:.0f}",
    )
    bounds = (limit, None) if higher else (None, limit)
    return Judgement("links", Message("all-rounds"), "FAIL", reason, usual, value / usual, *bounds)
