"""The model of a case: a file in `benchmarks/`, and the physical bounds of its metrics.

The id of a case is the stem of its file. A case names its suites in its own file, so that one new
YAML file is a new benchmark.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from proofmark.cases.reader.own_rules import (
    FormerRules,
    OfProgram,
    OwnRules,
    ReadBlock,
    reader_of,
)
from proofmark.cases.reader.reader import Reader
from proofmark.cases.reference import Metric, Reference
from proofmark.cases.suite_use import SuiteUse, Uses
from proofmark.cases.vocabulary import (
    AXES,
    FILE_SYSTEM,
    LOAD,
    MEASURED,
    PRINTED,
    SENSOR,
    STEP_FILES,
    Braces,
    FileName,
    KeyFigure,
    Name,
    Parameters,
    Scalar,
    Slug,
    Sweep,
    Text,
    Variable,
)
from proofmark.common.expressions import names_in
from proofmark.common.shared_models import StrictModel


class Cost(StrictModel):
    """The cost of one step: wall time in seconds, and the most bytes that it leaves in scratch."""

    seconds: Scalar
    bytes: Scalar = 0


class Writes(StrictModel):
    """The least that the files of a program in scratch reach while it runs.

    Attributes:
        bytes: their sizes together.
        files: their number.
        removes: whether the program removes them itself. Then they are looked at while it runs;
            else only after its end, which cannot disturb it.
    """

    bytes: Scalar = 0
    files: Scalar = 1
    removes: bool = False


class Stability(StrictModel):
    """The conditions under which an execution counts as undisturbed (docs/design/validity.md).

    The defaults are the thresholds of all cases. ``max_steal`` is the largest share of the time
    during which a hypervisor may withhold one CPU of the ranks. ``max_others`` is the largest share
    of the time of all CPUs of the ranks that other processes may use, if the ranks use half of
    them: ranks that wait for I/O lose nothing. ``max_delay`` is the largest share of the time
    during which one thread may wait for a CPU, and ``max_burst`` the same within one second; they
    count if other processes or a hypervisor explain half of the wait. ``least_seconds`` is the
    shortest execution that is judged by them.

    ``metric`` is a metric of the case that measures the rate of the machine; ``max_change`` is the
    largest change of it from one repeat to the next, as a share of the larger value.
    """

    max_steal: float = Field(default=0.05, gt=0, le=1)
    max_others: float = Field(default=0.1, gt=0, le=1)
    max_delay: float = Field(default=0.1, gt=0, le=1)
    max_burst: float = Field(default=0.5, gt=0, le=1)
    least_seconds: float = Field(default=0.5, ge=0)
    metric: Name | None = None
    max_change: float = Field(default=1, gt=0, le=1)


class Case(StrictModel):
    """One benchmark: its command, sweep and output, and how the output is read and judged.

    ``copies`` is the number of commands that are started at the same time, each with its share of
    the ranks (of 2n ranks copy i has i and i + n). ``concurrent`` is an expression for the seconds
    that a copy measured: all copies must measure at the same time. The parameter ``pair`` of the
    output is the number of a copy, and a metric ``<metric>_spread`` is the difference between the
    copies. ``labels`` are parameters that are computed from the machine. ``constraints``
    are conditions for every point, each with the text for what is accepted: a suite with another
    point is refused, while ``where`` leaves the point out. ``stability`` defines when a repeat is
    disturbed. ``stagger`` is the number of seconds over which the starts are spread if each node
    runs the step alone. ``inputs`` are the files that the program reads; one without text is not
    written. ``directory`` is the working directory of every rank, for a program that
    writes relative file names; the default is the folder of the step. ``writes`` is what its files
    in scratch must reach: with less, or on another file system, a record is INVALID.
    ``network_bytes`` is the least number of bytes that the program moves to and from a node that it
    uses, if it runs on several; 0 is not known. ``facts`` are the conditions on facts of the
    partition that ``proofmark check`` checks, as ``constraints``. ``defaults`` are the values of
    names that the facts of the partition need not have. ``key_figures`` are the metrics with which
    a report begins. ``launch: counted`` is a case without a program: the kit counts its figures
    from the jobs of a run of a stated time.
    """

    title: Text
    package: Slug
    program: Text
    launch: Literal["mpi", "threads", "process", "counted"]
    arguments: list[Scalar] = []
    inputs: dict[FileName, str] = {}
    environment: dict[Variable, Scalar] = {}
    output: FileName = "stdout"
    directory: Literal["{scratch}"] | None = None
    writes: Writes | None = None
    network_bytes: Scalar = 0
    sweep: Sweep = {}
    let: dict[Name, Scalar] = {}
    labels: dict[Name, Scalar] = {}
    facts: dict[Name, dict[Braces, Text]] = {}
    defaults: dict[Name, Scalar] = {}
    where: str | None = None
    constraints: dict[Braces, Text] = {}
    variants: list[Name] = []
    copies: Scalar = 1
    concurrent: Braces | None = None
    stability: Stability = Stability()
    stagger: Scalar = 0
    cost: Cost
    timeout: Scalar | None = None
    suites: dict[Slug, Uses] = {}
    key_figures: dict[KeyFigure, Name] = {}
    metrics: dict[Name, Metric]
    read: ReadBlock
    references: list[Reference] = []

    @model_validator(mode="after")
    def _key_figures(self) -> Self:
        if unknown := sorted({*self.key_figures.values()} - self.metrics.keys()):
            raise ValueError(f"key_figures: metrics of the case: no {', '.join(unknown)}")
        return self

    @model_validator(mode="after")
    def _judged_with(self) -> Self:
        named: set[str] = set()
        for metric in self.metrics.values():
            named.update(metric.judged_with)
        # A case without labels may have the metrics of another one.
        if self.labels and (unknown := sorted(named - self.labels.keys())):
            raise ValueError(f"judged_with: labels of the case: no {', '.join(unknown)}")
        return self

    @model_validator(mode="after")
    def _files(self) -> Self:
        if taken := {*self.inputs} & {*STEP_FILES, *PRINTED} | {self.output} & STEP_FILES:
            raise ValueError(
                f"other names of inputs and output: the kit itself writes {', '.join(taken)}"
            )
        if self.directory and self.copies != 1:
            raise ValueError("directory: only accepted if copies is 1, whose files have own names")
        return self

    def used_names(self) -> set[str]:
        """Return every name that a template, an expression or a variant of the case uses."""
        texts: list[Any] = [
            self.program,
            *self.arguments,
            *self.inputs.values(),
            *self.environment.values(),
        ]
        texts += [self.cost.seconds, self.cost.bytes, self.timeout, self.where]
        if self.writes:
            texts += [self.writes.bytes, self.writes.files]
        texts += [
            self.copies,
            self.stagger,
            self.network_bytes,
            *self.let.values(),
            *self.labels.values(),
        ]
        texts += self.constraints
        for use in self.uses():
            texts += [use.where, *use.let.values()]
        return names_in(texts) | set(self.variants)

    def parameter_names(self) -> set[str]:
        """Return every parameter that a result of the case may have; ``where`` may name it."""
        swept: list[str] = []
        for use in self.uses():
            swept += use.sweep
        axes = {*self.sweep, *swept}
        names = {"benchmark", "placement", "ranks", "threads", LOAD, SENSOR, *self.labels}
        names |= {MEASURED} if any(use.in_rounds for use in self.uses()) else set()
        names |= {axis.rstrip("_") for axis in axes}
        names |= {"fs_block_bytes"} if FILE_SYSTEM in axes else set()
        return names | set(self.reader().parameters)

    def bound_names(self) -> set[str]:
        """Return every value of a step or of a reading that a bound may name, if it has it."""
        named: list[str] = []
        for use in self.uses():
            named += use.let
        lets = {*self.let, *named}
        return {*self.parameter_names(), *AXES, *lets}

    def uses(self) -> Iterator[SuiteUse]:
        """Yield the uses of the case in all suites."""
        for uses in self.suites.values():
            yield from uses

    def judged_with(self, metric: str) -> Parameters:
        """Return `Metric.judged_with`; nothing for a metric that is not one of the case."""
        return self.metrics[metric].judged_with if metric in self.metrics else {}

    def reader(self) -> Reader:
        """Return the reader of the output. `load_benchmarks` has resolved ``same_as``."""
        if isinstance(self.read, OfProgram):
            return reader_of(self.read.program)
        if isinstance(self.read, FormerRules):
            return self.read.reader_with(self.metrics)
        assert isinstance(self.read, OwnRules)
        return self.read.reader


NODE_CEILINGS = (
    *("cores", "clock", "core_flops", "flops", "core_cache", "cache", "memory", "link"),
    "llc_bytes",
)
"""Ceilings of the nodes of a measurement, see `proofmark.site.ceilings.Ceilings`."""
MESSAGE = "message_s"
"""The shortest time of a message between two ranks, in seconds."""
TIME_LIMIT = "timeout"
"""The time limit of the step, in seconds."""
OWN_NAMES = (*NODE_CEILINGS, MESSAGE, TIME_LIMIT)
"""Names that an expression of a bound may use besides the values of the step."""

LARGEST: Mapping[str, float] = {
    "flop/s": 1e16,
    "operation/s": 1e16,
    "byte/s": 2e16,
    "update/s": 1e14,
    "message/s": 1e14,
    "byte": 1e18,
    "part": 1e9,
    "Hz": 1e11,
    "W": 1e6,
    "°C": 200,
    "events": 1e12,
}
"""The largest possible value of one node by base unit. The fastest nodes reach less than a tenth of
each; a share of 1e9 allows any speed-up and any spread."""
LARGEST_OTHER = 1e24
"""The largest value in any other unit."""

BENCHMARK = "sensors"
"""The benchmark of a figure of a sensor."""
POWER, TEMPERATURE, CLOCK, THROTTLED = "node_power", "node_temperature", "core_clock", "throttled"
TELEMETRY: Mapping[str, Metric] = {
    POWER: Metric(unit="W", better="lower", bound=0, what="mean power while the program ran"),
    TEMPERATURE: Metric(unit="°C", better="lower", bound=0, what="highest temperature"),
    CLOCK: Metric(
        unit="MHz", better="higher", bound="{clock}", what="mean clock of the cores of the ranks"
    ),
    THROTTLED: Metric(
        unit="events", better="lower", bound=0, what="how often the processor reduced its clock"
    ),
}
"""The metrics by name (docs/design/validity.md). A sensor that is not there gives no figure."""


def metrics_of(case: Case) -> dict[str, Metric]:
    """Return the metrics of `case`, and those of the sensors."""
    return {**TELEMETRY, **case.metrics}
