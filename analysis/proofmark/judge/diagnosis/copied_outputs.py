"""Nodes whose output is a copy of that of another node.

The run user writes the outputs of a run before the kit seals them.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from functools import cache

import numpy as np

from proofmark.cases.case import TELEMETRY, metrics_of
from proofmark.cases.reader.reader import Reader
from proofmark.cases.suite import Benchmarks
from proofmark.common.message import Message
from proofmark.common.nodesets import folded, hosts_of_nodes
from proofmark.judge.stated_parts import NodeFaults
from proofmark.plan.step import StepInstance
from proofmark.records.columns import VIRTUAL, Floats, Measurand, Numbers, Records

COMMON_DIGITS = 2
"""Like nodes share the first two digits of a value: their rates differ by about one percent."""
CHANCE = 0.01
"""The probability with which outputs of sound nodes are equal by chance."""
PERCENT = "%"


def copied_outputs(records: Records, benchmarks: Benchmarks) -> NodeFaults:
    """Return the nodes whose output has the same digits as that of another node.

    All independent values of the output are equal, and their digits are more than nodes share by
    chance. Results of a computation are equal on all nodes, and are left out. Values that follow
    from each other have fewer digits than they print: then other outputs are nearly equal.
    """
    places = measured_places(records, benchmarks)
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
    unlike = places[np.isin(records.execution[places], executions[first])]
    alike = places[np.isin(records.execution[places], executions[count[group] > 1])]
    columns = records.value[alike], records.measurand[alike], records.execution[alike]
    alike = alike[np.lexsort(columns)]
    if not len(alike):
        return {}
    equal: dict[tuple[tuple[int, float], ...], list[int]] = {}
    for of_output in np.split(alike, np.flatnonzero(np.diff(records.execution[alike])) + 1):
        both = records.measurand[of_output].tolist(), records.value[of_output].tolist()
        equal.setdefault(tuple(zip(*both, strict=True)), []).append(int(of_output.max()))
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
        names = sorted({records.nodes[each] for each in records.node[members]} - {""})
        if len(names) < 2:
            continue
        measurands, values = zip(*pairs, strict=True)
        shared = sum(map(digits_of, values, levels(measurands)))
        # No two executions share this number of digits by chance.
        needed = math.log10(max(1, math.comb(total[measurands[0]], 2)) / CHANCE)
        if shared >= needed and not near(measurands):
            case = records.measurands[pairs[0][0]].case
            executed = (records.executions[each] for each in records.execution[members])
            of_steps = {StepInstance.parse(each.step).step for each in executed}
            steps = ", ".join(sorted(of_steps)[:4])
            message = Message("same-output", case=case, nodes=folded(names), steps=steps)
            for host in dict.fromkeys(hosts_of_nodes(names)):
                found.setdefault(host, []).append(message)
    return found


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
    """
    rounded = np.rint(outputs * 10.0 ** np.array([_decimals(each) for each in outputs.T]))
    for column, values in enumerate(rounded.T):
        rest = np.unique(np.delete(rounded, column, axis=1), axis=0, return_inverse=True)[1]
        order = np.lexsort((values, rest.ravel()))
        if (np.diff(values[order])[np.diff(rest.ravel()[order]) == 0] == 1).any():
            return True
    return False


def _decimals(values: Floats) -> int:
    return next((each for each in range(1, 23) if (values.round(each) == values).all()), 23)
