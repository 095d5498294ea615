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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import ClassVar

from proofmark.cases.reader.engine import Reading
from proofmark.cases.reference import Reference
from proofmark.cases.suite import Benchmarks
from proofmark.common.expressions import variables_in
from proofmark.common.message import NOTHING, Message, joined
from proofmark.common.nodesets import folded, hosts_of
from proofmark.judge.additions import KindResult
from proofmark.judge.evidence import Evidence
from proofmark.judge.judging import KindJudge
from proofmark.judge.references.judgement import Judgement, Terms, judging_bounds, traits
from proofmark.judge.verdict import Verdict
from proofmark.packages.foreign.adopted import KIND, AdoptedFile, adopted_files, lines_of
from proofmark.packages.foreign.copied_outputs import copied_files, edited_copies
from proofmark.packages.foreign.output_text import output_text, read_others
from proofmark.plan.step import Step
from proofmark.records.binding import HostNames
from proofmark.records.columns import Record
from proofmark.records.read import KindReader
from proofmark.records.run_facts import RunFacts
from proofmark.records.step_records import Instance, SharedRecords, StepRecords, read_output_file
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

    Others write several runs of a program into one file. Each list has no figure twice. Settings
    are parameters: nothing planned how the readings were measured.
    """
    seen: dict[tuple[object, ...], int] = {}
    repeats: list[list[Reading]] = []
    for reading in readings:
        parameters = {**reading.settings, **reading.parameters}
        key = (reading.benchmark, reading.metric, reading.unit, *sorted(parameters.items()))
        number = seen[key] = seen.get(key, 0) + 1
        if number > len(repeats):
            repeats.append([])
        repeats[number - 1].append(reading._replace(parameters=parameters, node=None, settings={}))
    return repeats


class AdoptedStep(StepRecords):
    """Reads adopted outputs. Each repeat of a program in a file is an execution.

    Args:
        facts: the run.
        mode: the mode in which the step is planned.
        step: the step.
        shared: the records of these and of other steps.
        adopted: the files, by the folder of their step.
    """

    def __init__(
        self,
        facts: RunFacts,
        mode: str,
        step: Step,
        shared: SharedRecords,
        adopted: Mapping[str, AdoptedFile],
    ) -> None:
        super().__init__(facts, mode, step, shared)
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
        readings = read_others(self._case.reader(), step.case, text)
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

    def of_step(self, facts: RunFacts, mode: str, step: Step, shared: SharedRecords) -> StepRecords:
        """Return the reader of a step of one or several files."""
        return AdoptedStep(facts, mode, step, shared, self._files)


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


def _kinds_of(groups: Sequence[Sequence[str]]) -> dict[str, str]:
    """Return the kind of each host of `groups`, as a text."""
    kinds: dict[str, str] = {}
    for hosts in groups:
        kinds |= dict.fromkeys(hosts, f"measured together: {folded(hosts)}")
    return kinds


def _unlike(groups: Sequence[Sequence[str]]) -> Iterator[Message]:
    """Yield the question whether the hosts of `groups` are alike."""
    if groups:
        hosts = "; ".join(folded(each) for each in groups)
        yield Message("groups-unknown", count=len(groups), groups=hosts)


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
        groups = measured_groups(records.nodes) if run.plan.site == KIND else []
        shown = replace(
            evidence,
            terms=terms,
            groups=_kinds_of(groups),
            unjudged=tuple(_unlike(groups)),
            faults=(copied_files(files, run.plan), edited_copies(records, benchmarks)),
        )
        return replace(super().judge(run, shown), of_kind=ByOthers())
