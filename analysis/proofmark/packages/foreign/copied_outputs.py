"""Outputs of others that are copies: of a file, or of most values of an output."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from itertools import chain, combinations

import numpy as np

from proofmark.cases.suite import Benchmarks
from proofmark.common.host_names import canonical
from proofmark.common.message import Message
from proofmark.common.nodesets import folded, hosts_of_nodes
from proofmark.judge.diagnosis.copied_outputs import (
    CHANCE,
    digits_of,
    levels_of,
    measured_places,
)
from proofmark.judge.stated_parts import NodeFaults
from proofmark.packages.foreign.adopted import AdoptedFile
from proofmark.plan.plan import Plan
from proofmark.plan.step import StepInstance
from proofmark.records.columns import Numbers, Records

EQUAL = 1e-4
"""The probability that two outputs of like nodes are equal by chance if they print times of day.

They begin and end in the same second, and have the same figure, of which three digits differ."""
FEW_FIGURES, MORE = 3, 0.1
"""An output prints three figures that are equal anyway, or follow from each other. Each further one
makes chance less likely by this factor."""
LEAST_MOMENTS = 2


def copied_files(adopted: Mapping[str, AdoptedFile], plan: Plan) -> NodeFaults:
    """Return the nodes that have one output with other nodes: all its numbers and times are equal.

    The words can differ: a copy is edited to have the name of another host. The more outputs are
    equal, the less likely is chance: nodes that start together can print equal times. An output
    without two times of day proves nothing: its figures can have few digits.

    Args:
        adopted: the files, by the folder of their step.
    """
    of_steps = {step.id: tuple(step.nodes) for step in plan.steps()}
    cases = {step.id: step.case for step in plan.steps()}
    owners: dict[tuple[str, str, int], set[tuple[str, ...]]] = {}
    files: dict[str, int] = {}
    for folder, file in adopted.items():
        step = StepInstance.parse(folder)
        case = cases.get(step.step, "")
        files[case] = files.get(case, 0) + 1
        if file.numbers and file.moments >= LEAST_MOMENTS and case:
            nodes = (step.name,) if step.name else of_steps[step.step]
            owners.setdefault((case, file.numbers, file.figures), set()).add(nodes)
    found: dict[str, list[Message]] = {}
    for (case, _, figures), of_nodes in owners.items():
        alike = len(of_nodes)
        if alike < 2 or not _proven(files[case], alike, figures):
            continue
        hosts = sorted(set(map(canonical, chain.from_iterable(of_nodes))))
        message = Message("same-file", case=case, nodes=folded(hosts))
        for nodes in of_nodes:
            for host in nodes:
                found.setdefault(host, []).append(message)
    return {host: tuple(messages) for host, messages in found.items()}


def _proven(files: int, alike: int, figures: int) -> bool:
    """Return whether chance hardly ever makes `alike` of `files` equal."""
    groups = math.log10(math.comb(files, alike))
    equal = math.log10(EQUAL) + max(0, figures - FEW_FIGURES) * math.log10(MORE)
    return groups + (alike - 1) * equal < math.log10(CHANCE)


DIGITS = 3
"""A value counts if it has this many digits after those that like nodes share."""
RARE = 8
"""A value that more outputs than this have is no sign of a copy."""
LEAST_EQUAL = 5
"""The least number of rare values that a copy has in common with its source."""
SHARE = 0.5
"""The least share of equal values with which one output counts as an altered copy of another."""
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


def edited_copies(records: Records, benchmarks: Benchmarks) -> NodeFaults:
    """Return the nodes whose output equals the output of another node in most or all values.

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
        if len(shared[pair]) <= AHEAD * others.get(case, 0):
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
