"""Reads what a finished run leaves to a history: its figures, nodes and programs.

``verdict.json`` has the values that count, with their interval and verdict. The records of a
disturbed repeat or of an earlier attempt are in ``records.parquet`` too, so that file is read only
for outputs of others, which have neither. Nothing is read from outputs, and nothing is written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import polars as pl
from pydantic import BaseModel, ConfigDict, ValidationError

from proofmark.cases.vocabulary import Scalar
from proofmark.common.errors import BadInput, ProofmarkError
from proofmark.common.files import moment_of, paths_in, read_json, read_regular
from proofmark.common.input_limits import MAX_VERDICT_BYTES
from proofmark.common.message import Message
from proofmark.common.shared_models import first_mistake
from proofmark.common.text import one_line
from proofmark.common.trust import refuse_untrusted
from proofmark.judge.confidence import interval
from proofmark.judge.headline import Judged, PrintedKind, line_of
from proofmark.judge.stated_parts import hardware_kind, machine_traits, program_traits
from proofmark.records.columns import Floats, Numbers
from proofmark.runs.evidence import read_evidence
from proofmark.runs.nodes import Node
from proofmark.runs.run import OWN_RUN
from proofmark.runs.run_files import RunFiles
from proofmark.site.accepted_baseline import ProgramTrait
from proofmark.software.software import Software


class _Coverage(BaseModel):
    expected: int
    measured: int


class _Headline(BaseModel):
    word: str
    kinds: dict[PrintedKind, Judged]


class WrittenVerdict(BaseModel):
    """The head of ``verdict.json``.

    Attributes:
        run: the id of the run.
        headline: the verdict in a word, and what judged.
        counts: the number of results by verdict.
        coverage: the number of planned steps, and of measured ones.
        unlisted: the number of results that only ``records.parquet`` has (`write_verdict`).
    """

    run: str
    headline: _Headline
    counts: dict[str, int]
    coverage: _Coverage
    unlisted: int = 0

    @property
    def line(self) -> Message:
        """The verdict with its counts, as in the last lines of an acceptance."""
        coverage = self.coverage.model_dump()
        return line_of(self.headline.word, self.headline.kinds, {**self.counts, **coverage})


_RESULTS = b',\n "results": ['
_END = b"\n ]\n}\n"
_STARTED = re.compile(r"(\d{8}T\d{6}Z)-", re.ASCII)


class PastFigure(NamedTuple):
    """What is compared over time; `parameters` is JSON with sorted keys.

    The program and the class of nodes distinguish series of a figure.
    """

    system: str
    partition: str
    origin: str
    case: str
    benchmark: str
    metric: str
    unit: str
    mode: str
    placement: str
    parameters: str


PackageTraits = Mapping[ProgramTrait, str]


@dataclass(frozen=True)
class PastNode:
    """A node of a run: its hardware, as like nodes share it, and its traits."""

    kind: str
    traits: Mapping[str, str]


@dataclass(frozen=True, eq=False)
class PastRun:
    """A finished run.

    Attributes:
        started: the time of its start, UTC.
        summary: its verdict and its counts.
        figures, nodes, programs: the names to which the numbers in the columns refer. A program is
            the hash of its environment.
        figure, node, program, count: of each valid result; `count` is the number of its values.
            Shapes (results,).
        value, low, high: median and interval; NaN if a single value has no interval.
        invalid: the number of INVALID results, which are left out.
        hosts: the nodes with facts.
        software: the traits of each package, by its name.
        notes: files of nodes or programs that cannot be read.
    """

    run: str
    folder: Path
    started: datetime
    summary: Message
    figures: tuple[PastFigure, ...]
    nodes: tuple[str, ...]
    programs: tuple[str, ...]
    figure: Numbers
    node: Numbers
    program: Numbers
    count: Numbers
    value: Floats
    low: Floats
    high: Floats
    invalid: int
    hosts: Mapping[str, PastNode]
    software: Mapping[str, PackageTraits]
    notes: tuple[Message, ...]

    @property
    def origin(self) -> str:
        """The origin of its figures. All figures of a run have the same one."""
        return self.figures[0].origin


@dataclass(frozen=True)
class LeftOut:
    """A folder that gives nothing to the history, and the reason."""

    folder: Path
    reason: Message


class _LeftOutVerdict(ProofmarkError):
    """``verdict.json`` has no history that can be compared; `reason` states why."""

    def __init__(self, code: str, **fields: str) -> None:
        self.reason = Message(code, file=RunFiles.verdict.path, **fields)
        super().__init__(self.reason)


class _Line(BaseModel):
    """One result of ``verdict.json``; its other keys are not needed."""

    model_config = ConfigDict(frozen=True)
    system: str
    partition: str
    node: str
    origin: str
    case: str
    benchmark: str
    metric: str
    unit: str
    mode: str
    placement: str
    parameters: dict[str, Scalar]
    environment_hash: str
    value: float | None
    values: list[float]
    interval: tuple[float, float] | None
    verdict: Literal["PASS", "FAIL", "INVALID", "UNJUDGED"]


_IDENTITY = (
    *("system", "partition", "node", "origin", "case", "benchmark", "metric", "unit", "mode"),
    *("placement", "parameters", "environment_hash"),
)
"""The columns that identify a figure of a node."""


def read_past_run(folder: Path) -> PastRun | LeftOut:
    """Return the run in `folder`, or why it is left out."""
    files = RunFiles(folder.resolve())
    try:
        refuse_untrusted(files.folder, OWN_RUN)
        content = read_regular(files.verdict, MAX_VERDICT_BYTES)
        evidence = read_evidence(files.folder)
        if evidence is None:
            return LeftOut(folder, Message("past-unfinished", file=RunFiles.evidence.path))
        with evidence.mounted() as sealed:
            return _past_run(folder, content, RunFiles(sealed))
    except FileNotFoundError:
        return LeftOut(folder, Message("past-unfinished", file=RunFiles.verdict.path))
    except BadInput as error:
        found = one_line(error.mistakes[0].found)
        return LeftOut(folder, Message("past-unreadable", problem=found))
    except ValidationError as error:
        problem = one_line(" ".join(first_mistake(error)))
    except _LeftOutVerdict as error:
        return LeftOut(folder, error.reason)
    except ValueError as error:
        problem = one_line(f"{error}")
    return LeftOut(folder, Message("past-damaged", file=RunFiles.verdict.path, problem=problem))


def _past_run(folder: Path, content: bytes, files: RunFiles) -> PastRun:
    head, found, rest = content.partition(_RESULTS)
    if not found or not rest.endswith(_END):
        raise _LeftOutVerdict("past-cut")
    written = WrittenVerdict.model_validate_json(head + b"\n}")
    columns = _Columns()
    for line in rest[: -len(_END)].split(b"\n"):
        if line:
            columns.add(_Line.model_validate_json(line.removesuffix(b",")))
    if written.unlisted:
        for unlisted in _unlisted(folder, columns.listed, written.unlisted):
            columns.add(unlisted)
    if not columns.value:
        raise _LeftOutVerdict("past-empty")
    if len({each.origin for each in columns.figures}) > 1:
        raise _LeftOutVerdict("past-origins")
    hosts, dates, notes = _hosts(files)
    started = _started(written.run, dates)
    software, damaged = _software(files)
    return PastRun(
        run=written.run,
        folder=folder,
        started=started,
        summary=written.line,
        figures=tuple(columns.figures),
        nodes=tuple(columns.nodes),
        programs=tuple(columns.programs),
        figure=np.array(columns.figure, dtype=np.int64),
        node=np.array(columns.node, dtype=np.int64),
        program=np.array(columns.program, dtype=np.int64),
        count=np.array(columns.count, dtype=np.int64),
        value=np.array(columns.value),
        low=np.array(columns.low),
        high=np.array(columns.high),
        invalid=columns.invalid,
        hosts=hosts,
        software=software,
        notes=(*notes, *damaged),
    )


def _unlisted(folder: Path, listed: Collection[tuple[str, ...]], number: int) -> Iterator[_Line]:
    """Yield the results that only ``records.parquet`` has.

    Raises:
        _LeftOutVerdict: it is missing, damaged, or has not `number` results that are not `listed`.
    """
    path = RunFiles(folder.resolve()).records
    try:
        table = pl.read_parquet(read_regular(path, MAX_VERDICT_BYTES))
        figures = (
            table.filter(pl.col("valid"))
            .group_by(*_IDENTITY, maintain_order=True)
            .agg(pl.col("value").alias("values"))
        )
    except (OSError, pl.exceptions.PolarsError):
        raise _LeftOutVerdict("past-records") from None
    found = 0
    for row in figures.iter_rows(named=True):
        if tuple(row[name] for name in _IDENTITY) in listed:
            continue
        found += 1
        values = row["values"]
        bounds = interval(values)
        yield _Line(
            **{**row, "parameters": json.loads(row["parameters"])},
            value=float(np.median(values)),
            interval=bounds and (bounds.low, bounds.high),
            verdict="UNJUDGED",
        )
    if found != number:
        raise _LeftOutVerdict("past-records")


class _Columns:
    """The valid results of a run, in columns.

    Attributes:
        listed: the values of `_IDENTITY` of each result of ``verdict.json``.
    """

    def __init__(self) -> None:
        self.listed: set[tuple[str, ...]] = set()
        self.figures: dict[PastFigure, int] = {}
        self.nodes: dict[str, int] = {}
        self.programs: dict[str, int] = {}
        self.figure: list[int] = []
        self.node: list[int] = []
        self.program: list[int] = []
        self.count: list[int] = []
        self.value: list[float] = []
        self.low: list[float] = []
        self.high: list[float] = []
        self.invalid = 0

    def add(self, line: _Line) -> None:
        """Add a result; an INVALID one is only counted."""
        fields = {**vars(line), "parameters": json.dumps(line.parameters, sort_keys=True)}
        self.listed.add(tuple(fields[name] for name in _IDENTITY))
        if line.verdict == "INVALID" or line.value is None:
            self.invalid += 1
            return
        figure = PastFigure(*(fields[name] for name in PastFigure._fields))
        low, high = line.interval or (np.nan, np.nan)
        self.figure.append(self.figures.setdefault(figure, len(self.figures)))
        self.node.append(self.nodes.setdefault(line.node, len(self.nodes)))
        program = line.environment_hash
        self.program.append(self.programs.setdefault(program, len(self.programs)))
        self.count.append(len(line.values))
        self.value.append(line.value)
        self.low.append(low)
        self.high.append(high)


def _started(run: str, dates: list[str]) -> datetime:
    """Return the start of a run: from its id, else the first probe of a node.

    The id is by one clock, the probes by the clocks of the nodes.

    Raises:
        _LeftOutVerdict: neither has a time.
    """
    if match := _STARTED.match(run):
        return moment_of(match[1])
    if not dates:
        raise _LeftOutVerdict("past-time", run=run)
    return min(map(moment_of, dates))


def _hosts(files: RunFiles) -> tuple[dict[str, PastNode], list[str], list[Message]]:
    """Return the nodes of a run, the times of their first probes, and files that are damaged."""
    hosts: dict[str, PastNode] = {}
    dates: list[str] = []
    notes: list[Message] = []
    known: dict[tuple[tuple[str, str], ...], Mapping[str, str]] = {}
    for path in paths_in(files.nodes, "*.json"):
        try:
            node = read_json(path, Node)
        except BadInput:
            notes.append(Message("past-file", file=files.link(path)))
            continue
        if node.jobs and node.host == path.stem:
            traits = machine_traits(node.newest)
            same = known.setdefault(tuple(traits.items()), traits)  # most nodes share their traits
            hosts[node.host] = PastNode(hardware_kind(node.newest), same)
            dates.append(node.jobs[0].provenance.facts.date)
    return hosts, dates, notes


def _software(files: RunFiles) -> tuple[dict[str, PackageTraits], list[Message]]:
    try:
        packages = read_json(files.software, Software).packages
    except BadInput:
        return {}, [Message("past-programs", file=files.software.name)]
    return {name: program_traits(package) for name, package in packages.items()}, []
