"""The fleet comparison: each figure is compared with that of like nodes, or of like targets."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import Any, Literal

import numpy as np

from proofmark.cases.case import metrics_of
from proofmark.cases.suite import Benchmarks
from proofmark.cases.vocabulary import MESSAGE_SIZE, STORAGE_TARGET
from proofmark.common.message import NOTHING, Message
from proofmark.common.nodesets import hosts_of
from proofmark.judge.aggregate import Aggregates
from proofmark.judge.confidence import (
    material_of,
    median_variance,
    missing,
    repeats_agree,
    repeats_needed,
    too_noisy,
)
from proofmark.judge.fleet.critical_values import (
    FAMILY_LEVEL,
    LEAST_NODES,
    MAD_VARIANCE,
    FleetLimit,
    fleet_limit,
    level_of_one,
    members_of,
)
from proofmark.judge.fleet.populations import (
    LIKE_NODES,
    LIKE_TARGETS,
    Kinds,
    PeerGroup,
    Places,
    are_a_kind,
    like_nodes,
    like_targets,
    populations_of,
    several,
)
from proofmark.judge.references.judgement import PEERS, Bounds, Judgement
from proofmark.records.columns import Floats, Mask, Numbers, Record

LEAST_SIZES = 4
"""The least number of sizes of which a single one is not enough."""
Off = tuple[Numbers, Mask, FleetLimit]
"""The figures of one size, which of them are off, and their limit."""


def spikes(figures: Aggregates, sizes: Sequence[Off], level: float) -> Numbers:
    """Return the figures of like nodes that are off, but at too few of the sizes.

    Needed are so many sizes that spikes alone reach them with the probability `level` on any node.
    The rate of spikes is that of the nodes with one at most. More than half of several executions
    that are off confirm a figure at any size.

    Args:
        level: the probability that spikes alone name any node.
    """
    if len(sizes) < LEAST_SIZES:
        return np.array([], dtype=np.int64)
    nodes = np.concatenate([figures.node[members] for members, _, _ in sizes])
    off = np.concatenate([bad for _, bad, _ in sizes])
    _, place = np.unique(nodes, return_inverse=True)
    count = np.bincount(place, weights=off)
    usual = int((count <= 1).sum())
    rate = (int((count == 1).sum()) + 1) / (len(sizes) * max(1, usual))
    needed = _needed(len(sizes), min(rate, 0.5), level / len(count))
    few = np.concatenate([members for members, _, _ in sizes])[off & (count[place] < needed)]
    limits: dict[int, FleetLimit] = {}
    for members, _, limit in sizes:
        limits |= dict.fromkeys(members.tolist(), limit)
    kept = [each for each in few.tolist() if not _confirmed(figures.values(each), limits[each])]
    return np.array(kept, dtype=np.int64)


def _needed(sizes: int, rate: float, level: float) -> int:
    from scipy.special import bdtrc

    more = bdtrc(np.arange(1, sizes), sizes, rate)  # the chances of two or more, of three or more
    return min(2 + int((more > level).sum()), sizes)


def _confirmed(values: Sequence[float], limit: FleetLimit) -> bool:
    missed = int(limit.missed(np.array(values)).sum())
    return missed > 1 and 2 * missed > len(values)


_SAMPLE = 1000
"""From how many nodes the noise of a repeat is taken, at most."""


@dataclass(frozen=True)
class FleetFigure:
    """One figure of like nodes.

    Attributes:
        kind: the hardware of the nodes, and the distance of a pair.
        better: whether a higher or a lower value is better (``higher``, ``lower``).
        flagged: the nodes that miss the limit, or the indexes of storage targets.
        noise: why a material change of a node would not be seen; `NOTHING` if it would be.
        needed: with how many repeats it would be seen (`repeats_needed`).
        apart: how like nodes lie apart, or `NOTHING`.
    """

    record: Record
    kind: str
    better: str
    fleet_limit: FleetLimit
    flagged: tuple[str, ...]
    members: str = "like nodes"
    noise: Message = NOTHING
    needed: float = 1.0
    apart: Message = NOTHING

    @cached_property
    def judgement_parts(self) -> tuple[Message, Bounds]:
        """The parts that the judgements of all nodes share: the source and the limits.

        The limits are the least and the greatest accepted ratio to the median.
        """
        limit = self.fleet_limit
        if limit.limit is None:
            return Message(self.code, nodes=limit.nodes), Bounds()
        spread, drop = f"{100 * limit.spread:.2g}", f"{100 * limit.detectable:.2g}"
        source = Message(f"{self.code}-spread", nodes=limit.nodes, spread=spread, drop=drop)
        accepted = limit.limit / limit.centre
        bounds = Bounds(accepted) if self.better == "higher" else Bounds(at_most=accepted)
        return source, bounds

    @property
    def code(self) -> str:
        """The first word of the codes of its messages."""
        return members_of(self.record.node, targets=self.members == LIKE_TARGETS)

    def reason_alike(self, ratio: float) -> Message:
        """Return the reason of a value that keeps the limit.

        It is like its peers only if a material change would be seen, and these are alike.
        """
        printed = f"{ratio:.3g}"
        if printed not in self._alike:
            end, more = ("noisy", {"noise": self.noise}) if self.noise else ("alike", {})
            end, more = ("apart", {"apart": self.apart}) if self.apart else (end, more)
            self._alike[printed] = self.reason(end, ratio, **more)
        return self._alike[printed]

    @cached_property
    def _alike(self) -> dict[str, Message]:
        """The reasons of `reason_alike` by their printed ratio: thousands of nodes share few."""
        return {}

    def reason(self, end: str, ratio: float, **more: str) -> Message:
        """Return the reason with the code `end`, for a value that is `ratio` × the median."""
        limit = self.fleet_limit
        value = f"{limit.centre:.6g} {self.record.unit}"
        shared = {"ratio": f"{ratio:.3g}", "value": value, **more}
        return Message(f"{self.code}-{end}", nodes=limit.nodes, **shared)

    def as_json(self) -> dict[str, Any]:
        """Return the form of ``verdict.json``."""
        record, limit = self.record, self.fleet_limit
        parameters = dict(record.parameters)
        if self.members == LIKE_TARGETS:
            parameters.pop(STORAGE_TARGET)
        return {
            "members": self.members,
            "case": record.case,
            "benchmark": record.benchmark,
            "metric": record.metric,
            "unit": record.unit,
            "mode": record.mode,
            "placement": record.placement,
            "parameters": parameters,
            "hardware": self.kind,
            "nodes": limit.nodes,
            "median": limit.centre,
            "spread": limit.spread,
            "critical": limit.critical,
            "limit": limit.limit,
            "detectable": limit.detectable,
            "noise": self.noise,
            **({"apart": self.apart} if self.apart else {}),
            "powerless": limit.powerless,
            "flagged": list(self.flagged),
        }


@dataclass(frozen=True, eq=False)
class Fleet:
    """All figures that several like nodes measured, and the judgement of each node.

    Attributes:
        level: probability that any node is flagged on a healthy machine.
        alike, failed: the numbers of the results that keep or miss the limit of their fleet.
        spiked: those that miss it at single message sizes only. They are measured again.
        again: those that miss it, and whose repeats do not agree.
        of: the place of each result in `figures`; -1 if it has no like nodes.
    """

    level: float = FAMILY_LEVEL
    figures: tuple[FleetFigure, ...] = ()
    alike: Numbers = field(default_factory=lambda: _NONE, repr=False)
    failed: Numbers = field(default_factory=lambda: _NONE, repr=False)
    spiked: Numbers = field(default_factory=lambda: _NONE, repr=False)
    again: Numbers = field(default_factory=lambda: _NONE, repr=False)
    of: Numbers = field(default_factory=lambda: _NONE, repr=False)
    median: Floats = field(default_factory=lambda: np.array([]), repr=False)

    @property
    def shown_alike(self) -> int:
        """The number of results in `alike` of which a material change would be seen."""
        seen = np.array([not (each.noise or each.apart) for each in self.figures], dtype=bool)
        return int(seen[self.of[self.alike]].sum())

    @property
    def apart(self) -> dict[str, Message]:
        """How like nodes lie apart, by case and metric: of the first figure where they do."""
        found: dict[str, Message] = {}
        for each in self.figures:
            if each.apart:
                found.setdefault(f"{each.record.case} {each.record.metric}", each.apart)
        return found

    def judge(self, result: int) -> Judgement | None:
        """Return the judgement of a result by like nodes; None if it has none."""
        place = int(self.of[result])
        if place < 0:
            return None
        value, (spiked, again) = float(self.median[result]), self._measured_again
        judged = _judgement(self.figures[place], value, spiked=result in spiked)
        return judged.open() if result in again else judged

    @cached_property
    def _measured_again(self) -> tuple[frozenset[int], frozenset[int]]:
        return frozenset(self.spiked.tolist()), frozenset(self.again.tolist())

    def noise(self, result: int) -> tuple[float, float] | None:
        """Return the noise of the like nodes of a result, and its degrees of freedom.

        It is the standard deviation of the logarithms of their values, without the flagged nodes,
        and contains the noise of one repeat. None for fewer than `LEAST_NODES`, or for nodes of
        several populations.
        """
        place = int(self.of[result]) if len(self.of) else -1
        if place < 0:
            return None
        limit, (spread, count) = self.figures[place].fleet_limit, self._noise
        several = limit.limit is None and limit.detectable < 1
        if several or count[place] < LEAST_NODES:
            return None
        return float(spread[place]), float(count[place] - 1)

    @cached_property
    def _noise(self) -> tuple[Floats, Numbers]:
        """The standard deviation and the number of the sound values of each figure."""
        sound = (self.of >= 0) & (self.median > 0)
        sound[self.failed] = False
        place, logs = self.of[sound], np.log(self.median[sound])
        count = np.bincount(place, minlength=len(self.figures))
        few = np.maximum(count, 1)
        mean = np.bincount(place, logs, minlength=len(self.figures)) / few
        squares = np.bincount(place, (logs - mean[place]) ** 2, minlength=len(self.figures))
        return np.sqrt(squares / np.maximum(count - 1, 1)), count

    def as_json(self) -> dict[str, Any]:
        """Return the form of ``verdict.json``."""
        limits = [figure.fleet_limit for figure in self.figures]
        return {
            "family_level": self.level,
            "tests": sum(limit.nodes for limit in limits if limit.limit is not None),
            "figures": [figure.as_json() for figure in self.figures],
        }


_NONE: Numbers = np.array([], dtype=np.int64)


def measure_fleet(
    figures: Aggregates,
    benchmarks: Benchmarks,
    kinds: Kinds,
    level: float,
    places: Places | None = None,
) -> Fleet:
    """Return the comparison of figures that differ only in the node, on like hardware.

    Figures of the same nodes that differ only in the storage target are compared in the same way.
    Nodes and pairs of several populations are compared within each, or not at all.

    Args:
        figures: of a run; each valid one, of a node or a pair of nodes, is compared.
        benchmarks: the cases; their metrics state whether higher or lower is better.
        kinds: the hardware of the nodes. Only pairs of the same distance are compared.
        level: probability that any node is flagged on a healthy machine.
        places: switches, rack and settings, by host: facts that may separate populations.
    """
    alike = [*like_nodes(figures, benchmarks, kinds, same_digits=False)]
    of_figure, known = level_of_one(level, len(alike)), places or {}
    of_nodes = (populations_of(figures, PeerGroup(each), kinds, known, of_figure) for each in alike)
    of_targets = (PeerGroup(each, LIKE_TARGETS) for each in like_targets(figures))
    groups = [*chain.from_iterable(of_nodes), *of_targets]
    level_of_figure, material = level_of_one(level, len(groups)), material_of(benchmarks)
    compared: list[tuple[PeerGroup, Record, Literal["higher", "lower"], FleetLimit]] = []
    families: dict[object, list[Off]] = {}
    for group in groups:
        first = figures.record(int(group.members[0]))
        better = metrics_of(benchmarks.case(first.case))[first.metric].better
        code = members_of(first.node, targets=group.compared == LIKE_TARGETS)
        limit = fleet_limit(figures.median[group.members], better, level_of_figure, code)
        if why := group.why or _other_kind(figures, group, kinds, limit):
            limit = replace(limit, limit=None, powerless=why)
        compared.append((group, first, better, limit))
        off = group.members, limit.missed(figures.median[group.members]), limit
        family = _without_size(first), kinds.of(first.node), group.fact
        families.setdefault(family, []).append(off)
    spiked = np.concatenate([_NONE, *(spikes(figures, each, level) for each in families.values())])
    of = np.full(len(figures), -1, dtype=np.int64)
    fleet_figures: list[FleetFigure] = []
    judged, failed, again = np.zeros((3, len(figures)), dtype=bool)
    for group, first, better, limit in compared:
        members = group.members
        judged[members] = limit.limit is not None
        failed[members] = limit.missed(figures.median[members])
        failed[spiked] = False  # a spike is measured again before it counts
        again[_open(figures, members, failed, limit, level_of_figure)] = True
        failed &= ~again
        of[members] = len(fleet_figures)
        flagged = tuple(_name(figures, each, group) for each in members[failed[members]].tolist())
        kind = "; ".join(filter(None, (kinds.of(first.node)[0], group.fact)))
        needed = _repeats_of_nodes(figures, members, limit, material(first))
        noise = too_noisy(limit.detectable, material(first), needed) if limit.limit else NOTHING
        fleet_figures.append(
            FleetFigure(
                *(first, kind, better, limit, flagged, group.compared),
                noise=noise,
                needed=needed,
                apart=group.apart,
            )
        )
    judged[spiked] = judged[again] = False
    return Fleet(
        level=level,
        figures=tuple(fleet_figures),
        alike=np.flatnonzero(judged & ~failed),
        failed=np.flatnonzero(failed),
        spiked=np.sort(spiked),
        again=np.flatnonzero(again),
        of=of,
        median=figures.median,
    )


def _open(
    figures: Aggregates, members: Numbers, failed: Mask, limit: FleetLimit, level: float
) -> list[int]:
    """Return the members that miss `limit`, but whose repeats do not show it.

    They do not agree, or single slow repeats explain them: with the rate of the slow ones of the
    other members, any member has so many of them with a probability of more than `level`.
    """
    # One execution of a pair is enough: its nodes have other pairs.
    off = [
        each
        for each in members[failed[members]].tolist()
        if figures.alone(each) or len(figures.executions(each)) > 1
    ]
    if not off or limit.limit is None:
        return []
    from scipy.special import betainc

    below = limit.limit < limit.centre
    shown: dict[int, tuple[int, int]] = {}
    for each in off:
        values = [*figures.undisturbed(each).values()]
        if repeats_agree(values, limit.limit, limit.centre, below=below):
            misses = missing(values, limit.limit, below=below)
            shown[each] = misses, len(values) - misses + 1
    others = [each for each in members.tolist() if each not in shown]
    all_values = [*chain.from_iterable(map(figures.values, others[:_SAMPLE]))]
    rate = missing(all_values, limit.limit, below=below) / max(1, len(all_values))
    return [
        each
        for each in off
        if each not in shown or len(members) * betainc(*shown[each], rate) > level
    ]


def _other_kind(figures: Aggregates, group: PeerGroup, kinds: Kinds, limit: FleetLimit) -> Message:
    """Return why nodes of unknown hardware that miss `limit` may be another kind, or `NOTHING`."""
    first, values = figures.record(int(group.members[0])), figures.median[group.members]
    missed = limit.missed(values)
    names = [*map(figures.node_of, group.members.tolist())]
    nodes = group.compared == LIKE_NODES and not kinds.are_known(first.node)
    if not (nodes and are_a_kind(names, missed, values)):
        return NOTHING
    return several(values, missed, first.unit, alone=len(hosts_of(first.node)) == 1)


def _without_size(record: Record) -> tuple[object, ...]:
    """Return what the figures of one node that differ only in the size of messages share."""
    parameters = {key: each for key, each in record.parameters.items() if key != MESSAGE_SIZE}
    sized = MESSAGE_SIZE in record.parameters
    what = (record.case, record.benchmark, record.metric, record.mode, record.placement)
    build = record.origin, record.environment_hash
    return (*what, *build, json.dumps(parameters, sort_keys=True), sized or id(record))


def _name(figures: Aggregates, figure: int, group: PeerGroup) -> str:
    """Return the node of a figure, or its storage target."""
    if group.compared == LIKE_NODES:
        return figures.node_of(figure)
    return str(figures.record(figure).parameters[STORAGE_TARGET])


def _judgement(figure: FleetFigure, value: float, *, spiked: bool) -> Judgement:
    """Return the judgement of one node's value by like nodes.

    A value that is like those of its peers is UNJUDGED, because nodes that are all bad agree.
    """
    limit = figure.fleet_limit
    source, bounds = figure.judgement_parts
    if limit.limit is None:
        return Judgement(PEERS, source, "UNJUDGED", limit.powerless, value=limit.centre or None)
    ratio = value / limit.centre
    reason = figure.reason_alike(ratio)
    bad = bool(limit.missed(value))
    if spiked:
        reason = figure.reason("spike", ratio)
    elif bad:
        deviation, accepted = limit.deviation(value), f"{limit.critical:.1f}"
        if deviation == float("inf"):
            reason = figure.reason("off", ratio, accepted=accepted)
        else:
            away = f"{deviation:.1f}"
            reason = figure.reason("off-by", ratio, accepted=accepted, deviation=away)
    outcome = "FAIL" if bad and not spiked else "UNJUDGED"
    return Judgement(PEERS, source, outcome, reason, limit.centre, ratio, *bounds)


def _repeats_of_nodes(
    figures: Aggregates, members: Numbers, limit: FleetLimit, material: float
) -> float:
    """Return with how many repeats of each node a material change of one would be seen.

    The spread of the nodes contains the noise of their repeats. Nodes that differ by no more than
    their repeats, within two standard errors of the spread, are taken as equal.
    """
    if limit.detectable <= material or not limit.spread:
        return float(figures.count[members].max())
    logs = [
        np.log(values)
        for each in members[:_SAMPLE].tolist()
        if min(values := figures.values(each)) > 0
    ]
    freedom = sum(len(each) - 1 for each in logs)
    within = sum(float(((each - each.mean()) ** 2).sum()) for each in logs)
    repeats = int(np.median(figures.count[members]))
    per_repeat = median_variance(repeats) * within / freedom if freedom else np.nan
    explained = per_repeat / repeats * (1 + 2 * np.sqrt(MAD_VARIANCE / limit.nodes)) ** 2
    spread = per_repeat / repeats if limit.spread**2 <= explained else limit.spread**2
    return float(repeats_needed(material / limit.detectable, spread, per_repeat, repeats))


Repeats = Mapping[int, tuple[float, ...]]
"""The values of each figure of like nodes, one for each execution."""


DIGITS_ALIKE, DIGITS_WRONG = "digits-alike", "digits-wrong"
"""The codes of judgements of digits that are, or are not, those of like nodes."""


@dataclass(frozen=True)
class Digits:
    """The digits of like nodes.

    Attributes:
        value: the value that more than half of the nodes have in all executions; None if there is
            none.
        proven: whether more than half of the repeated nodes are constant, and one of them has
            `value`.
    """

    nodes: int
    value: float | None
    agreeing: int
    repeated: int
    constant: int
    proven: bool


def digits_of(repeats: Repeats) -> Digits:
    """Return the digits that the figures of like nodes share."""
    alike = [values for values in repeats.values() if len(set(values)) == 1]
    constant = [values for values in alike if len(values) > 1]
    repeated = sum(len(values) > 1 for values in repeats.values())
    value, agreeing = None, 0
    for commonest, count in Counter(values[0] for values in alike).most_common(1):
        if 2 * count > len(repeats):
            value, agreeing = commonest, count
    witness = any(value in values for values in constant)
    proven = witness and 2 * len(constant) > repeated
    return Digits(len(repeats), value, agreeing, repeated, len(constant), proven)


def judge_digits(
    figures: Aggregates, benchmarks: Benchmarks, kinds: Kinds
) -> Iterator[tuple[int, Judgement]]:
    """Yield each figure whose metric has ``same_digits``, with its judgement.

    A node is named if the digits of any execution differ from those of most nodes. Digits that
    agree are no acceptance: they stay UNJUDGED.

    Args:
        kinds: the hardware of the nodes; nodes of like hardware are compared.
    """
    for members in like_nodes(figures, benchmarks, kinds, same_digits=True):
        repeats = {figure: figures.values(figure) for figure in members.tolist()}
        digits = digits_of(repeats)
        for figure, values in repeats.items():
            yield figure, _digits_judgement(digits, values)


def _digits_judgement(digits: Digits, values: tuple[float, ...]) -> Judgement:
    source, nodes = Message("peers", nodes=digits.nodes), digits.nodes
    wrong = list(dict.fromkeys(value for value in values if value != digits.value))
    outcome = "UNJUDGED"
    repeats = {"constant": digits.constant, "repeated": digits.repeated}
    if digits.value is None:
        reason = Message("digits-unlike", nodes=nodes)
    elif not digits.proven:
        reason = Message("digits-unproven", agreeing=digits.agreeing, nodes=nodes, **repeats)
    elif wrong:
        outcome = "FAIL"
        listed = ", ".join(f"{value:.9g}" for value in wrong)
        runs = sum(value != digits.value for value in values)
        reason = Message(
            DIGITS_WRONG,
            runs=runs,
            executions=len(values),
            values=listed,
            agreeing=digits.agreeing,
            nodes=nodes,
            digits=f"{digits.value:.9g}",
            **repeats,
        )
    else:
        reason = Message(DIGITS_ALIKE, agreeing=digits.agreeing, nodes=nodes)
    return Judgement(PEERS, source, outcome, reason, value=digits.value)
