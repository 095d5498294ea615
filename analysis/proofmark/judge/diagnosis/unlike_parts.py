"""The parts of a node that are slower than its other parts: NUMA domains, sockets and rails.

A dead memory channel of 24 takes 4 % of the bandwidth of a node, and a third of that of a domain
with three channels. The parts of one node are alike, so that no other node is needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from proofmark.cases.suite import Benchmarks
from proofmark.cases.vocabulary import ALL_RAILS, DOMAIN, PART_AXES, RAIL
from proofmark.common.message import Message
from proofmark.common.nodesets import hosts_of, hosts_of_nodes
from proofmark.judge.aggregate import Aggregates
from proofmark.judge.baseline.baseline_table import compared_metric
from proofmark.records.columns import Record

LEAST_PAIRS = 2
"""The node alone is named if at least this number of its pairs is slow on a rail."""
LEAST_RATIOS, SPREADS = 6, 6
"""A slow part is below the others by more than `SPREADS` standard deviations, if the spread of the
parts of all nodes is known from at least `LEAST_RATIOS` of them."""
NORMAL = 1.4826
"""The standard deviation ÷ the median absolute deviation of a normal distribution."""
LEAST_PEERS = 4
"""The least number of figures of one rail that show what is usual for this rail."""


@dataclass(frozen=True)
class _Figure:
    """A figure of a part.

    `alike` has its traits without the node and the part. `better` and `middle` are the best of its
    values and their middle, as rates: a time is the reciprocal of one.
    """

    record: Record
    part: str
    better: float
    middle: float
    alike: tuple[object, ...]


def unlike_parts(figures: Aggregates, benchmarks: Benchmarks) -> dict[str, tuple[Message, ...]]:
    """Return the slow parts of each node.

    All values of a slow part are worse than the median of the like parts of the same node, by more
    than the material change of the metric and the spread of such parts. A rail that is as slow on
    most nodes is usual. A rail is slow on a node if it is slow in all of its pairs; if a pair is
    the only one of both nodes, both are named.
    """
    slow: dict[tuple[str, str, str], dict[str, Message]] = {}
    pairs: dict[tuple[str, str, str], set[str]] = {}
    for each, message in _compared(figures, benchmarks):
        for host in hosts_of(each.record.node):
            key = (host, each.record.case, each.part)
            pairs.setdefault(key, set()).add(each.record.node)
            if message:
                slow.setdefault(key, {}).setdefault(each.record.node, message)
    accused = [key for key, of in slow.items() if of.keys() == pairs[key]]
    sure = {key for key in accused if len(pairs[key]) >= LEAST_PAIRS}
    found: dict[str, list[Message]] = {}
    for key in accused:
        host, *what = key
        others = set(hosts_of_nodes(pairs[key])) - {host}
        # The other end of all of its slow pairs explains them.
        if key in sure or not any((other, *what) in sure for other in others):
            found.setdefault(host, []).append(next(iter(slow[key].values())))
    return {host: tuple(dict.fromkeys(messages)) for host, messages in found.items()}


def _usual(groups: Iterable[Sequence[_Figure]]) -> dict[int, float]:
    """Return the median of the other parts of the node of each figure, by its `id`."""
    usual: dict[int, float] = {}
    for group in groups:
        for each in group if len(group) > 1 else ():
            usual[id(each)] = median(one.middle for one in group if one is not each)
    return usual


def _compared(
    figures: Aggregates, benchmarks: Benchmarks
) -> Iterator[tuple[_Figure, Message | None]]:
    """Yield each figure of a part, with the message if it is slow."""
    pools: dict[tuple[object, ...], list[_Figure]] = {}
    for each in _of_parts(figures, benchmarks):
        pools.setdefault(each.alike, []).append(each)
    for pool in pools.values():
        about = compared_metric(benchmarks, pool[0].record.case, pool[0].record.metric)
        of_node: dict[str, list[_Figure]] = {}
        of_part: dict[str, list[float]] = {}
        for each in pool:
            of_node.setdefault(each.record.node, []).append(each)
            of_part.setdefault(each.part, []).append(each.middle)
        usual = _usual(of_node.values())
        compared = [each for each in pool if id(each) in usual]
        ratios = np.array([each.middle / usual[id(each)] for each in compared])
        spread = NORMAL * float(np.median(abs(ratios - np.median(ratios)))) if compared else 0.0
        noise = SPREADS * spread if len(compared) >= LEAST_RATIOS else 0.0
        least = 1 - max(about.material_change if about else 1.0, noise)
        for each in compared:
            peers = of_part[each.part] if RAIL in each.record.parameters else []
            typical = len(peers) >= LEAST_PEERS and each.better >= least * median(peers)
            ratio = each.better / usual[id(each)]
            others = len(of_node[each.record.node]) - 1
            yield each, _message(each, ratio, others) if ratio < least and not typical else None


def _of_parts(figures: Aggregates, benchmarks: Benchmarks) -> Iterator[_Figure]:
    measurands = figures.records.measurands
    chosen = [any(f'"{axis}"' in each.parameters for axis in PART_AXES) for each in measurands]
    least, greatest = figures.ranges
    mask = figures.valid & np.array(chosen, dtype=bool)[figures.measurand] & (least > 0)
    for figure in np.flatnonzero(mask).tolist():
        record = figures.record(figure)
        axis = DOMAIN if DOMAIN in record.parameters else RAIL
        part = str(record.parameters.get(axis, ""))
        about = compared_metric(benchmarks, record.case, record.metric)
        if about is None or part in ("", ALL_RAILS):
            continue
        low, high = float(least[figure]), float(greatest[figure])
        rates = (1 / low, 1 / high) if about.better == "lower" else (low, high)
        # Domains may have different numbers of cores.
        dropped = {*PART_AXES, "threads", "ranks", "pairs"}
        rest = sorted((k, v) for k, v in record.parameters.items() if k not in dropped)
        kind = part.partition("-")[0] if axis == DOMAIN else RAIL
        names = (record.case, record.benchmark, record.metric, record.mode, record.placement)
        yield _Figure(record, part, max(rates), sum(rates) / 2, (*names, kind, *rest))


def _message(figure: _Figure, ratio: float, others: int) -> Message:
    kind, _, number = figure.part.partition("-")
    code = {"numa": "place-numa", "socket": "place-socket"}.get(kind, "place-rail")
    return Message(
        "part-slow",
        part=Message(code, number=number if DOMAIN in figure.record.parameters else figure.part),
        case=figure.record.case,
        metric=figure.record.metric,
        ratio=f"{ratio:.2g}",
        others=others,
    )
