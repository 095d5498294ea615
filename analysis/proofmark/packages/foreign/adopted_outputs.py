"""The outputs of an adopted run: their records, edited copies among them, and their judge.

The values of outputs without proofs are read and judged as the values of an own run. A judgement
that needs a missing proof is UNJUDGED, and never PASS (docs/packages/adopt.md).

An output of others can be a copy of an output of another node, with a few values altered. Most
values are then equal to all digits. Values of like nodes are equal by chance if they have few
digits, or if a clock makes them coarse. The values of an output follow from each other: a node is
fast or slow as a whole. So the outputs of the run show how exactly one value of an output follows
from another one, in steps between its values; only these steps are evidence.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from hashlib import sha256
from itertools import chain, combinations
from pathlib import Path
from typing import ClassVar

import numpy as np

from proofmark.cases.reader.engine import Reading
from proofmark.cases.reference import Reference
from proofmark.cases.suite import Benchmarks
from proofmark.common.expressions import variables_in
from proofmark.common.host_names import canonical
from proofmark.common.message import NOTHING, Message, joined
from proofmark.common.nodesets import folded, hosts_of, hosts_of_nodes
from proofmark.judge.additions import KindResult
from proofmark.judge.diagnosis.implausible import (
    CHANCE,
    digits_of,
    levels_of,
    measured_places,
)
from proofmark.judge.evidence import Evidence
from proofmark.judge.judging import KindJudge
from proofmark.judge.references.judgement import Judgement, Terms, judging_bounds, traits
from proofmark.judge.stated_parts import NodeFaults
from proofmark.judge.verdict import Verdict
from proofmark.packages.foreign.adopted import KIND, AdoptedFile, adopted_files, lines_of
from proofmark.packages.foreign.output_text import output_text, read_others
from proofmark.plan.plan import Plan
from proofmark.plan.step import Step, StepInstance
from proofmark.records.binding import HostNames
from proofmark.records.columns import Numbers, Record, Records
from proofmark.records.read import KindReader
from proofmark.records.run_facts import RunFacts
from proofmark.records.step_records import Instance, StepRecords, read_output_file
from proofmark.runs.attempts import Attempt, finished_executions
from proofmark.runs.run import Run
from proofmark.runs.run_files import StepFiles


def adoption_error(
    file: AdoptedFile | None,
    content: bytes,
    nodes: Sequence[str],
    readings: Sequence[Reading],
    names: HostNames,
) -> Message:
    """Return why an adopted output is INVALID as a whole, or `NOTHING`.

    Args:
        file: the adopted file; None if ``adopted.json`` does not list it.
        nodes: the nodes that it was adopted for.
        names: the further names of the nodes.
    """
    if file is None:
        return Message("not-adopted")
    if file.problem:
        return Message("adopted-unread", problem=file.problem)
    if sha256(content).hexdigest() != file.sha256:
        return Message("adopted-changed")
    printed = [reading.node for reading in readings if reading.node]
    if not printed or not names.wrong_host(nodes, printed):
        return NOTHING
    return Message("adopted-for-node", node=repr(printed[0][:80]), nodes=folded(nodes))


def with_settings(readings: Iterable[Reading]) -> list[Reading]:
    """Return `readings` with their settings as parameters: nothing planned how they were measured.

    Args:
        readings: of an output that others produced.
    """
    return [
        each._replace(parameters={**each.settings, **each.parameters}, settings={})
        for each in readings
    ]


def repeats_in_output(readings: Sequence[Reading]) -> list[list[Reading]]:
    """Return the first reading of each figure, then the second ones, as one list for each repeat.

    Others write several runs of a program into one file. Each list has no figure twice.
    """
    seen: dict[tuple[object, ...], int] = {}
    repeats: list[list[Reading]] = []
    for reading in readings:
        parameters: Mapping[str, object] = reading.parameters
        key = (reading.benchmark, reading.metric, reading.unit, *sorted(parameters.items()))
        number = seen[key] = seen.get(key, 0) + 1
        if number > len(repeats):
            repeats.append([])
        repeats[number - 1].append(reading._replace(node=None))
    return repeats


class AdoptedStep(StepRecords):
    """Reads adopted outputs. Each repeat of a program in a file is an execution.

    Args:
        facts: the run.
        mode: the mode in which the step is planned.
        step: the step.
        adopted: the files, by the folder of their step.
    """

    def __init__(
        self, facts: RunFacts, mode: str, step: Step, adopted: Mapping[str, AdoptedFile]
    ) -> None:
        super().__init__(facts, mode, step)
        self._adopted = adopted

    def executions(self, folder: str) -> Iterable[Attempt]:
        """Return the copy of the file in `folder` as one execution.

        Its exit code, node and times are not known; no rule reads the exit code here.
        """
        for number, files in enumerate(finished_executions(StepFiles(Path(folder))), start=1):
            path = f"{files.folder}"
            yield Attempt(
                number, path, 0, "", "", "", timed_out=False, seconds=math.nan, binding=b"[]"
            )

    def take(self, name: str, hosts: Sequence[str], attempt: Attempt) -> None:
        """Add the records of one file; see the base class."""
        step, names = self._step, self._facts.names
        content, unread = read_output_file(attempt, step.output)
        file = self._adopted.get(name)
        text = lines_of(output_text(content), file.lines if file else ())
        readings = with_settings(read_others(self._case.reader(), step.case, text))
        nodes = hosts or step.nodes
        why = adoption_error(file, content, nodes, readings, names) or unread
        for number, repeat in enumerate(repeats_in_output(readings)):
            self._add(Instance(name, hosts, nodes, attempt, step.repeat + number), repeat, why)


class AdoptedOutputs(KindReader):
    """Reads the outputs of an adopted run."""

    def __init__(self, run: Run) -> None:
        """Read ``adopted.json`` of `run`.

        Raises:
            BadInput: it is missing or damaged.
        """
        super().__init__(run)
        self._files = adopted_files(run.files)

    @property
    def sources(self) -> Mapping[str, str]:
        """The path of each output below the adopted folder, by the folder of its step."""
        return {step: file.source for step, file in self._files.items()}

    def of_step(self, facts: RunFacts, mode: str, step: Step) -> StepRecords:
        """Return the reader of a step of one or several files."""
        return AdoptedStep(facts, mode, step, self._files)


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
    """Return the nodes whose output equals the output of another node in most values.

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


MODE = "mode"
CORES = "cores"
SYSTEM = "system"
PARAMETER = "parameter"
FILE_SYSTEM = "file_system"
NETWORK = "network"
FACTS = "facts"
REASONS: Mapping[str, Message] = {
    MODE: Message("imported-mode"),
    CORES: Message("imported-cores"),
    SYSTEM: Message("imported-system"),
    PARAMETER: Message("imported-parameter"),
    FILE_SYSTEM: Message("imported-file-system"),
    NETWORK: Message("imported-network"),
    FACTS: Message("imported-facts"),
}
"""Why a figure stays UNJUDGED, by the proof that is missing."""


@dataclass(frozen=True)
class AdoptedTerms(Terms):
    """The terms of the judgements of one adopted run.

    Attributes:
        network: whether own runs of the site must prove the network between nodes.
        tolerance: that of the site for expected values; None is that of each value.
    """

    largest_ratio: ClassVar[float] = 10.0

    benchmarks: Benchmarks
    network: bool
    tolerance: float | None = None

    def judge(
        self, record: Record, reference: Reference, compared: Callable[[], Judgement]
    ) -> Judgement:
        """Return the judgement of an adopted figure.

        Args:
            reference: a reference that applies to it.
            compared: returns the judgement of an own figure with this value.
        """
        if missing := _to_compare(record, reference):
            bounds = judging_bounds(reference, self.tolerance)
            return Judgement(
                reference.kind, reference.source, "UNJUDGED", REASONS[missing], **bounds._asdict()
            )
        judgement = compared()
        missing = self._to_pass(record)
        if judgement.outcome != "PASS" or not missing:
            return judgement
        reason = joined((REASONS[missing], judgement.reason))
        without = replace(judgement, ratios=(), visible=None)
        return replace(without, outcome="UNJUDGED", reason=reason)

    def _to_pass(self, record: Record) -> str:
        """Return the proof that a PASS of a figure lacks, or an empty string.

        It is one without which an own figure of this case is INVALID. A FAIL does not need it: a
        value that misses its limit shows no acceptance on any file system or network.
        """
        case = self.benchmarks.case(record.case)
        if case.writes is not None:
            return FILE_SYSTEM
        several = len(hosts_of(record.node)) > 1
        return NETWORK if several and self.network and case.network_bytes else ""


def missing_proof(judgement: Judgement) -> str:
    """Return the key of `REASONS` of a judgement that a missing proof prevented, or ""."""
    if judgement.outcome != "UNJUDGED":
        return ""
    found = (proof for proof, why in REASONS.items() if judgement.reason.main_code == why.code)
    return next(found, "")


def _to_compare(record: Record, reference: Reference) -> str:
    """Return the proof without which it is not known whether the reference is for the figure."""
    if reference.mode is not None:
        return MODE
    if reference.system is not None:
        return SYSTEM
    if reference.rule is not None:
        return FACTS
    if reference.all_cores:
        return CORES
    if reference.against is not None:
        used = variables_in(reference.against.times)
        return PARAMETER if used - traits(record).keys() else ""
    return ""


LEAST_HOSTS = 3
"""The least number of hosts of a group: separate pairs of one machine are no groups."""
SWEPT = 3
"""Hosts of one sweep were paired with the same others: a part of this many of them counts."""


def measured_groups(nodes: Iterable[str]) -> list[tuple[str, ...]]:
    """Return the groups of hosts that were measured against each other; nothing if it is one.

    Only pairs of a sweep connect hosts. A single pair between two sweeps connects nothing, and a
    measurement of more hosts says nothing of pairs.

    Args:
        nodes: the nodes of records: a host, or the set of hosts of one measurement.
    """
    paired: dict[str, set[str]] = {}
    for pair in filter(lambda hosts: len(hosts) == 2, map(hosts_of, dict.fromkeys(nodes))):
        for host in pair:
            paired.setdefault(host, set()).update(pair)
    groups: list[tuple[str, ...]] = []
    left = dict.fromkeys(sorted(paired))
    while left:
        waiting, group = [next(iter(left))], set[str]()
        while waiting:
            host = waiting.pop()
            if host in left:
                del left[host]
                group.add(host)
                waiting += (each for each in paired[host] if _are_swept(paired, host, each))
        if len(group) >= LEAST_HOSTS:
            groups.append(tuple(sorted(group)))
    return sorted(groups) if len(groups) > 1 else []


def _are_swept(paired: Mapping[str, set[str]], one: str, two: str) -> bool:
    """Return whether enough other hosts were paired with both."""
    fewer = min(len(paired[one]), len(paired[two])) - 2
    return SWEPT * (len(paired[one] & paired[two]) - 2) >= max(fewer, 1)


class ByOthers(KindResult):
    """That others produced the outputs."""

    kind = KIND
    can_repeat = False

    @property
    def label(self) -> Message:
        """The fact."""
        return Message("adopted-run")

    @property
    def last_line(self) -> Message:
        """The same in two words."""
        return Message("adopted-short")

    @property
    def note(self) -> Message:
        """What is missing."""
        return Message("adopted-note")

    def as_json(self) -> bool:
        """Return true: ``verdict.json`` of other runs lacks the key."""
        return True


class AdoptedJudge(KindJudge):
    """Judges without the proofs that an own run has."""

    def judge(self, run: Run, evidence: Evidence) -> Verdict:
        """Return the verdict by the terms of the run, with the copies among its outputs."""
        files = adopted_files(run.files)
        records, benchmarks = evidence.records, evidence.benchmarks
        terms = AdoptedTerms(benchmarks, evidence.network.proven, evidence.judge_expected.tolerance)
        shown = replace(
            evidence,
            sources={step: file.source for step, file in files.items()},
            terms=terms,
            groups=measured_groups(records.nodes) if run.plan.site == KIND else (),
            faults=(copied_files(files, run.plan), edited_copies(records, benchmarks)),
        )
        return replace(super().judge(run, shown), of_kind=ByOthers())
