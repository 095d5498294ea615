"""Nodes whose results need an explanation: copied ones, two names of a machine, too good ones.

A value beyond its physical bound is INVALID (`proofmark.records.step_records`). Here are values
that are possible, and still not those of this node.

An output of others can be a copy of an output of another node, with a few values altered. Most
values are then equal to all digits. Values of like nodes are equal by chance if they have few
digits, or if a clock makes them coarse. The values of an output follow from each other: a node is
fast or slow as a whole. So the outputs of the run show how exactly one value of an output follows
from another one, in steps between its values; only these steps are evidence.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from decimal import Decimal
from functools import cache
from itertools import chain, combinations

import numpy as np

from proofmark.cases.case import TELEMETRY, metrics_of
from proofmark.cases.reader.reader import Reader
from proofmark.cases.suite import Benchmarks
from proofmark.common.message import Message
from proofmark.common.nodesets import folded, hosts_of, hosts_of_nodes
from proofmark.judge.aggregate import Aggregates
from proofmark.judge.fleet.critical_values import LEAST_NODES
from proofmark.judge.fleet.fleet import Fleet
from proofmark.judge.fleet.populations import LIKE_NODES
from proofmark.judge.references.judgement import CaseReference, Judgement
from proofmark.plan.step import StepInstance
from proofmark.records.columns import VIRTUAL, Floats, Measurand, Numbers, Records
from proofmark.site.node.facts import NodeFacts

COMMON_DIGITS = 2
"""Like nodes share the first two digits of a value: their rates differ by about one percent."""
CHANCE = 0.01
"""The probability with which outputs of sound nodes are equal by chance."""
TOO_GOOD = 1.5
"""A node that is this much better than the median of its peers is not like them."""
CERTAIN = 6.0
"""Its distance from the median in spreads (MAD × 1.4826), to which better nodes add little."""
PERCENT = "%"
ABOVE_NOMINAL = 1.05
"""Memory bandwidth ÷ that of its modules. The caches hold a twelfth of the arrays at most."""
OWN, OF_CHASSIS = "board_serial", "product_serial"
"""Keys of SMBIOS: the number of the board of one node; one that nodes of a chassis can share."""
PLACEHOLDERS = frozenset(
    {
        *("", "none", "not specified", "unknown", "n/a", "na", "empty", "oem", "invalid", "na"),
        *("to be filled by o.e.m.", "default string", "system serial number", "serial number"),
        *("base board serial number", "chassis serial number", "0123456789", "123456789"),
        *("1234567890", "not available", "not applicable"),
    }
)
"""Numbers that firmware prints in place of a serial number."""

Faults = dict[str, tuple[Message, ...]]


def same_machines(nodes: Mapping[str, NodeFacts], origin: str) -> Faults:
    """Return the nodes that are one machine with another node.

    They have one boot id, one number of a board, or one product number that nothing else tells
    apart: nodes of one chassis share it, and have boards and boots of their own. Virtual nodes of
    one machine share all of them.
    """
    sharing: dict[tuple[str, ...], list[str]] = {}
    for host, facts in nodes.items() if origin not in VIRTUAL else ():
        for identity in _identities(facts):
            sharing.setdefault(identity, []).append(host)
    found: dict[str, list[Message]] = {}
    for (key, value, *_), hosts in sharing.items():
        for host in hosts if len(hosts) > 1 else ():
            message = Message("same-machine", key=key, value=value, nodes=folded(hosts))
            found.setdefault(host, []).append(message)
    return {host: tuple(messages) for host, messages in found.items()}


def _identities(facts: NodeFacts) -> Iterator[tuple[str, ...]]:
    """Yield what belongs to one machine: a key, its value, and what must be equal as well."""
    boot = "" if facts.container else facts.boot_id or ""
    board, product = (_serial(facts, key) for key in (OWN, OF_CHASSIS))
    if boot:
        yield "boot_id", boot
    if board:
        yield OWN, board
    if product and product != facts.firmware.get("chassis_serial"):
        yield OF_CHASSIS, product, board, boot


def _serial(facts: NodeFacts, key: str) -> str:
    """Return a serial number of SMBIOS; empty if the firmware prints none of its own."""
    value = facts.firmware.get(key, "").strip()
    return value if value.lower() not in PLACEHOLDERS and len(set(value)) > 1 else ""


def copied_outputs(records: Records, benchmarks: Benchmarks) -> Faults:
    """Return the nodes whose output has the same digits as that of another node.

    All independent values of the output are equal, and their digits are more than nodes share by
    chance. Results of a computation are equal on all nodes, and are left out. Values that follow
    from each other have fewer digits than they print: then other outputs are nearly equal.
    """
    places = measured_places(records, benchmarks)
    if not len(places):
        return {}
    bits = records.value[places].astype(np.float64).view(np.uint64)
    # Equal outputs have equal sums of hashed values, in any order. Other outputs hardly ever do.
    # Only outputs with equal sums are compared value by value.
    mixed = (bits ^ (records.measurand[places].astype(np.uint64) << np.uint64(52))) * np.uint64(
        0x9E3779B97F4A7C15
    )
    mixed ^= mixed >> np.uint64(29)
    sums = np.zeros(len(records.executions), dtype=np.uint64)
    np.add.at(sums, records.execution[places], mixed)
    executions = np.unique(records.execution[places])
    _, first, group, count = np.unique(
        sums[executions], return_index=True, return_inverse=True, return_counts=True
    )
    suspect = set(executions[count[group] > 1].tolist())
    unlike = places[np.isin(records.execution[places], executions[first])]
    values: dict[int, list[tuple[int, float]]] = {}
    nodes: dict[int, str] = {}
    for place in places[np.isin(records.execution[places], list(suspect))].tolist():
        execution = int(records.execution[place])
        pair = (int(records.measurand[place]), float(records.value[place]))
        values.setdefault(execution, []).append(pair)
        nodes[execution] = records.nodes[records.node[place]]
    equal: dict[tuple[tuple[int, float], ...], set[int]] = {}
    for execution, of_execution in values.items():
        equal.setdefault(tuple(sorted(of_execution)), set()).add(execution)
    total = np.bincount(records.measurand[places], minlength=len(records.measurands))
    found: dict[str, list[Message]] = {}

    @cache
    def values_of(measurands: tuple[int, ...]) -> Floats:
        """Return outputs × `measurands`: one row for each different output."""
        rows = np.full((len(records.executions), len(measurands)), np.nan)
        for column, measurand in enumerate(measurands):
            chosen = unlike[records.measurand[unlike] == measurand]
            rows[records.execution[chosen], column] = records.value[chosen]
        found: Floats = rows[~np.isnan(rows).any(axis=1)]
        return found

    levels = cache(lambda measurands: [levels_of(each) for each in values_of(measurands).T])
    near = cache(lambda measurands: _nearly_equal(values_of(measurands)))

    for pairs, members in equal.items():
        names = sorted({nodes[each] for each in members} - {""})
        if len(names) < 2:
            continue
        measurands, of_output = zip(*pairs, strict=True)
        shared = sum(map(digits_of, of_output, levels(measurands)))
        if shared >= _needed(total[measurands[0]]) and not near(measurands):
            case = records.measurands[pairs[0][0]].case
            of_steps = {StepInstance.parse(records.executions[each].step).step for each in members}
            steps = ", ".join(sorted(of_steps)[:4])
            message = Message("same-output", case=case, nodes=folded(names), steps=steps)
            for host in dict.fromkeys(hosts_of_nodes(names)):
                found.setdefault(host, []).append(message)
    return {host: tuple(messages) for host, messages in found.items()}


def measured_places(records: Records, benchmarks: Benchmarks) -> Numbers:
    """Return the valid records whose values are measured, and follow from no other ones."""
    read = {(each.case, each.metric) for each in records.measurands}
    measured = [_is_measured(each, benchmarks, read) for each in records.measurands]
    if not len(records):
        return np.array([], dtype=np.int64)
    return np.flatnonzero(records.valid & np.array(measured, dtype=bool)[records.measurand])


def _is_measured(
    measurand: Measurand, benchmarks: Benchmarks, read: Collection[tuple[str, str]]
) -> bool:
    """Return whether values are measured, and follow from none of `read`: case and metric."""
    case = benchmarks.cases.get(measurand.case)
    if case is None or measurand.origin in VIRTUAL or measurand.metric in TELEMETRY:
        return False
    metric = metrics_of(case).get(measurand.metric)
    # A share of a whole has few levels, and those of one output depend on each other.
    if metric is None or metric.unit == PERCENT:
        return False
    others = {metric for of, metric in read if of == measurand.case}
    return not metric.same_digits and not _follows(measurand.metric, case.reader(), others)


def _follows(metric: str, reader: Reader, read: Collection[str]) -> bool:
    """Return whether a rule of the reader computes a metric from others that were read."""
    for rule in reader.agree:
        others = (each.names.isdisjoint(read) for each in rule.expressions)
        if rule.metric == metric and not rule.at_most and not all(others):
            return True
    return False


def digits_of(value: float, most: float) -> float:
    """Return the number of digits in which like nodes differ: `most` or less."""
    printed = len(f"{abs(value):.15e}".partition("e")[0].replace(".", "").rstrip("0"))
    return min(most, float(max(0, printed - COMMON_DIGITS)))


def levels_of(others: Floats) -> float:
    """Return -log10 of the part of the pairs of `others` that are equal; infinite for none.

    Values such as a short time have few levels. `others` are of outputs of which no two have all
    values equal.
    """
    _, counts = np.unique(others, return_counts=True)
    every = counts.sum()
    equal = float((counts * (counts - 1)).sum())
    return math.log10(every * (every - 1) / equal) if equal else math.inf


def _nearly_equal(outputs: Floats) -> bool:
    """Return whether two outputs differ in one value only, and there by one last printed digit.

    Outputs that are equal by chance come with such pairs: there are twice as many for each value.
    A copy comes without them.

    Args:
        outputs: outputs × values; no two rows are equal.
    """
    rounded = np.rint(outputs * 10.0 ** np.array([_decimals(each) for each in outputs.T]))
    for column, values in enumerate(rounded.T):
        rest = np.unique(np.delete(rounded, column, axis=1), axis=0, return_inverse=True)[1]
        order = np.lexsort((values, rest.ravel()))
        if (np.diff(values[order])[np.diff(rest.ravel()[order]) == 0] == 1).any():
            return True
    return False


def _decimals(values: Iterable[float]) -> int:
    return max((-int(Decimal(f"{each}").as_tuple().exponent) for each in values), default=0)


def _needed(executions: int) -> float:
    """Return the number of digits that no two of `executions` share by chance."""
    return math.log10(max(1, executions * (executions - 1) / 2) / CHANCE)


def _within_expected(judged: Mapping[CaseReference, Iterable[tuple[int, Judgement]]]) -> set[int]:
    """Return the figures that are not above a value that was computed from the hardware."""
    figures: set[int] = set()
    for each, judgements in judged.items():
        if each.reference.rule:
            figures |= {at for at, one in judgements if one.ratio is not None and one.ratio <= 1}
    return figures


def too_good(
    figures: Aggregates,
    benchmarks: Benchmarks,
    fleet: Fleet,
    judged: Mapping[CaseReference, Iterable[tuple[int, Judgement]]],
) -> Faults:
    """Return the nodes with a rate far above that of their peers, and above what is expected.

    Rates of storage are left out: the load of others decides on them. So are those of virtual
    nodes, which share the cores of one machine.
    """
    found: dict[str, list[Message]] = {}
    possible = _within_expected(judged)
    for at, of in enumerate(fleet.figures):
        limit = of.fleet_limit
        storage = benchmarks.case(of.record.case).writes is not None
        # A fleet whose spread hides a slow node can have one that is too good.
        few = limit.nodes < LEAST_NODES or limit.centre <= 0 or of.record.origin in VIRTUAL
        if few or of.better != "higher" or of.members != LIKE_NODES or storage:
            continue
        ratios = fleet.median[fleet.of == at] / limit.centre
        least = max(TOO_GOOD - 1, CERTAIN * 1.4826 * float(np.median(np.abs(ratios - 1))))
        if not (ratios > 1 + least).any():
            continue
        for figure in np.flatnonzero(fleet.of == at)[ratios > 1 + least].tolist():
            if figure in possible:
                continue
            ratio = float(fleet.median[figure]) / limit.centre
            name = of.reason("too-good", ratio, metric=f"{of.record.case} {of.record.metric}")
            for host in hosts_of(figures.records.nodes[int(figures.node[figure])]):
                found.setdefault(host, []).append(name)
    return {host: tuple(messages) for host, messages in found.items()}


def above_nominal(
    figures: Aggregates, judged: Mapping[CaseReference, Iterable[tuple[int, Judgement]]]
) -> Faults:
    """Return the nodes whose memory is faster than its modules."""
    found: dict[str, tuple[Message, ...]] = {}
    for each, judgements in judged.items():
        if each.reference.rule != "memory_bandwidth":
            continue
        for figure, judgement in judgements:
            if judgement.ratio is not None and judgement.ratio > ABOVE_NOMINAL:
                message = Message(
                    "above-nominal",
                    metric=f"{each.case} {each.reference.metric}",
                    ratio=f"{judgement.ratio:.3g}",
                    source=judgement.source,
                )
                for host in hosts_of(figures.records.nodes[int(figures.node[figure])]):
                    found[host] = (message,)
    return found


DIGITS = 3
"""A value counts if it has this many digits after those that like nodes share."""
RARE = 8
"""A value that more outputs than this have is no sign of a copy."""
LEAST_EQUAL = 5
"""The least number of rare values that a copy has in common with its source."""
SHARE = 0.5
"""The least part of the values of an output that are equal in a copy. The rest was altered."""
LEAST_OUTPUTS = 4
"""Fewer outputs do not show how their values follow from each other."""
AHEAD = 2
"""The equal rare values of a copy are more than this many times those of any other two outputs."""
NEVER_SEEN = 3
"""What n pairs of outputs never show is less likely than this ÷ n (95 % confidence)."""
WIDTH = 2 * math.sqrt(math.pi)
"""Two values of a normal distribution are in one step with the probability step ÷ (this × its
standard deviation)."""

_Pair = tuple[int, int]
_Evidence = Mapping[_Pair, Mapping[int, float]]
"""Two executions on different nodes → measurand → -log10 of the chance of an equal rare value."""


def edited_copies(records: Records, benchmarks: Benchmarks) -> Faults:
    """Return the nodes whose output is that of another node but for a few values.

    No other two outputs have nearly as many rare values in common: else chance makes them equal.

    Args:
        records: of outputs that others produced.
    """
    places = measured_places(records, benchmarks)
    shared = _shared(records, places)
    values = _values(records, places, {*chain.from_iterable(shared)})
    outputs = len(np.unique(records.execution[places]))
    own = cache(lambda measurands: _own_digits(records, places, measurands))

    def shown(pair: _Pair) -> float:
        """Return -log10 of the chance that two outputs have their equal values."""
        digits = own(tuple(sorted(values[pair[0]])))
        return sum(min(most, digits.get(each, 0.0)) for each, most in shared[pair].items())

    copies = {pair for pair in shared if _is_copy(values, pair, shown(pair), outputs)}
    others: dict[str, int] = {}
    for pair in shared.keys() - copies:
        case = _case(records, values[pair[0]])
        others[case] = max(others.get(case, 0), len(shared[pair]))
    found: dict[str, list[Message]] = {}
    for pair in sorted(copies):
        one, two = (values[each] for each in pair)
        case, equal, every = _case(records, one), _equal(one, two), len(one.keys() | two.keys())
        # If all are equal, the whole output is a copy (`copied_outputs`).
        if equal == every or len(shared[pair]) <= AHEAD * others.get(case, 0):
            continue
        names = sorted({*_nodes(records, places, pair)})
        numbers = {"equal": equal, "values": every}
        message = Message("edited-copy", case=case, nodes=folded(names), **numbers)
        for host in dict.fromkeys(hosts_of_nodes(names)):
            found.setdefault(host, []).append(message)
    return {host: tuple(messages) for host, messages in found.items()}


def _shared(records: Records, places: Numbers) -> _Evidence:
    """Return the rare values that executions on different nodes share, if they are enough."""
    found: dict[_Pair, dict[int, float]] = {}
    ordered = places[np.argsort(records.measurand[places], kind="stable")]
    starts = np.flatnonzero(np.diff(records.measurand[ordered], prepend=-1))
    for of_one in np.split(ordered, starts[1:]):
        values = records.value[of_one]
        pairs = math.comb(len(of_one), 2)
        most = min(levels_of(values), math.log10(max(1.0, pairs / NEVER_SEEN)))
        each, group, count = np.unique(values, return_inverse=True, return_counts=True)
        for number in np.flatnonzero((count > 1) & (count <= RARE)).tolist():
            if digits_of(float(each[number]), math.inf) < DIGITS:
                continue
            evidence = digits_of(float(each[number]), most)
            for one, two in combinations(of_one[group == number].tolist(), 2):
                if records.node[one] != records.node[two]:
                    pair = (int(records.execution[one]), int(records.execution[two]))
                    found.setdefault(pair, {})[int(records.measurand[one])] = evidence
    return {pair: of for pair, of in found.items() if len(of) >= LEAST_EQUAL}


def _values(
    records: Records, places: Numbers, executions: Collection[int]
) -> dict[int, dict[int, float]]:
    """Return execution → measurand → value of some executions."""
    found: dict[int, dict[int, float]] = {}
    for place in places[np.isin(records.execution[places], list(executions))].tolist():
        of_one = found.setdefault(int(records.execution[place]), {})
        of_one[int(records.measurand[place])] = float(records.value[place])
    return found


def _nodes(records: Records, places: Numbers, pair: _Pair) -> Iterator[str]:
    for place in places[np.isin(records.execution[places], pair)].tolist():
        yield records.nodes[records.node[place]]


def _case(records: Records, values: Mapping[int, float]) -> str:
    return records.measurands[next(iter(values))].case


def _equal(one: Mapping[int, float], two: Mapping[int, float]) -> int:
    return sum(one[each] == two[each] for each in one.keys() & two.keys())


def _own_digits(
    records: Records, places: Numbers, measurands: tuple[int, ...]
) -> Mapping[int, float]:
    """Return the decimal digits of each measurand that no other one of an output predicts.

    It is the spread of its ratio to the value that predicts it best, in the least steps between its
    values: a coarse clock has large steps, and values that follow from each other a small spread.
    """
    chosen = places[np.isin(records.measurand[places], measurands) & (records.value[places] > 0)]
    executions, row = np.unique(records.execution[chosen], return_inverse=True)
    logs = np.full((len(executions), len(measurands)), np.nan)
    columns = np.searchsorted(measurands, records.measurand[chosen])
    logs[row, columns] = np.log(records.value[chosen])
    logs = logs[~np.isnan(logs).any(axis=1)]
    if len(logs) < LEAST_OUTPUTS:
        return {}
    found: dict[int, float] = {}
    for number, measurand in enumerate(measurands):
        ratios = np.delete(logs[:, [number]] - logs, number, axis=1)
        apart = np.abs(ratios - np.median(ratios, axis=0))
        spread = 1.4826 * float(np.median(apart, axis=0).min(initial=math.inf)) / math.sqrt(2)
        steps = np.diff(np.unique(logs[:, number]))
        step = float(steps.min(initial=math.inf))
        if 0 < spread < math.inf and step < math.inf:
            found[measurand] = max(0.0, math.log10(WIDTH * spread / step))
    return found


def _is_copy(
    values: Mapping[int, Mapping[int, float]], pair: _Pair, shown: float, outputs: int
) -> bool:
    """Return whether two of `outputs` have more equal values than chance ever makes so."""
    one, two = (values[each] for each in pair)
    equal, every = _equal(one, two), len(one.keys() | two.keys())
    tried = math.comb(outputs, 2) * math.comb(every, equal)
    return equal >= SHARE * every and shown >= math.log10(tried / CHANCE)
