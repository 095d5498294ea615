"""The model of a case: a file in `benchmarks/`, and the physical bounds of its metrics.

The id of a case is the stem of its file. A case names its suites in its own file, so that one new
YAML file is a new benchmark.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AliasChoices, BeforeValidator, Field, model_validator

from proofmark.cases.reader.own_rules import (
    FormerRules,
    OfProgram,
    OwnRules,
    ReadBlock,
    reader_of,
)
from proofmark.cases.reader.reader import Reader
from proofmark.cases.reference import Metric, Reference
from proofmark.cases.vocabulary import (
    AXES,
    BLAS_KERNEL,
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
from proofmark.common.errors import KeyMistake
from proofmark.common.expressions import names_in
from proofmark.common.grouping import flat
from proofmark.common.input_limits import MAX_REPEATS, MAX_ROUNDS
from proofmark.common.shared_models import StrictModel

Scope = Literal["job", "each-node", "each-pair"]
"""What one step measures: its nodes together, each node alone, or disjoint pairs of nodes."""
NODES_EACH: Mapping[Scope, int] = {"each-node": 1, "each-pair": 2}
"""The nodes of one measurement of a scope. A step of the scope ``job`` says itself how many."""


class Axes(StrictModel):
    """What a case varies; a use in a suite and a load replace axes and values of their case.

    ``sweep`` has the values of each axis. ``let`` are values that follow from those of a point.
    """

    sweep: Sweep = {}
    let: dict[Name, Scalar] = {}


class Load(Axes):
    """A program that runs beside a step while it measures (docs/design/validity.md).

    It has exactly one point, and must run until the kit ends it. Its axis ``nodes`` is the number
    of its nodes, and ``cores`` the number of cores that it may use on each.

    Attributes:
        case: the case that defines the program.
        place: ``same-nodes``: on the cores of the step's nodes that the step leaves free;
            ``other-nodes``: on the nodes of the partition that the step leaves free.
        baseline: whether each step is first measured on the same nodes without the load.
    """

    case: Slug
    place: Literal["same-nodes", "other-nodes"]
    # From the start of its last rank to the start of the measured program: MPI programs connect
    # all pairs of ranks in their first seconds.
    warm_up_s: ClassVar[float] = 5
    baseline: bool = False


class SuiteUse(Axes):
    """How a case runs in one suite. An axis of its sweep replaces that of the case.

    ``when`` is evaluated once for the machine: if it is false, the suite leaves out this use.
    ``where`` selects points, in addition to the ``where`` of the case. ``modes`` are names of
    firmware modes; a partition with none of them runs the use in its current mode. ``repeats`` is
    the number of times that each step runs in each repeat of the suite. ``least_repeats`` is the
    number to which `Suite.within_s` may reduce ``repeats``. ``load`` is a program that runs beside
    each step.

    ``pairs`` chooses the pairs of the scope ``each-pair``: each node with its two neighbours in the
    list, or the ``rounds`` of `proofmark.plan.pairings.rounds`, of which
    all pairs measure at the same time; if they are ``alone``, only pairs without a common switch.
    ``rounds`` is the largest number of rounds, and of waves of pairs that are alone.

    ``reads`` is true for a use whose steps
    read the files that the step of the same point of the use before it wrote, in another job and on
    other nodes.
    """

    when: str | None = None
    where: str | None = None
    modes: list[Slug] = []
    scope: Scope = "job"
    pairs: Literal["neighbours", "rounds", "alone"] = "neighbours"
    rounds: int = Field(default=16, ge=1, le=MAX_ROUNDS)
    repeats: int = Field(default=1, ge=1, le=MAX_REPEATS)
    least_repeats: int = Field(default=1, ge=1, le=MAX_REPEATS)
    reads: bool = False
    load: Load | None = None

    @model_validator(mode="after")
    def _one_scope(self) -> Self:
        if self.reads and self.scope != "job":
            raise KeyMistake("only accepted if scope is job", "reads")
        if self.load and self.load.place == "other-nodes" and self.scope != "job":
            raise KeyMistake("other-nodes is only accepted if scope is job", "load", "place")
        return self

    @property
    def in_rounds(self) -> bool:
        """Whether its pairs are those of rounds, and have the parameter `MEASURED`."""
        return self.pairs != "neighbours"

    @model_validator(mode="after")
    def _of_pairs(self) -> Self:
        if self.in_rounds and self.scope != "each-pair":
            raise KeyMistake(f"{self.pairs} is only accepted if scope is each-pair", "pairs")
        if not self.in_rounds and "rounds" in self.model_fields_set:
            raise KeyMistake("only accepted if pairs is rounds or alone", "rounds")
        return self


Uses = Annotated[
    list[SuiteUse],
    Field(min_length=1),
    BeforeValidator(
        lambda given: [given] if isinstance(given, dict) else given,
        json_schema_input_type=SuiteUse | list[SuiteUse],
    ),
]
"""One use, or several uses that differ in more than one sweep can express."""


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


class Undisturbed(StrictModel):
    """The conditions under which an execution counts as undisturbed (docs/design/validity.md).

    Attributes:
        least_seconds: the shortest execution that is judged by them. A program that measures the
            disturbances itself has a longer time than it runs.
        metric: a metric of the case that measures the rate of the machine. Repeats between which it
            changes by more than a fifth are INVALID.
    """

    # The largest share of the time during which a hypervisor may withhold one CPU of the ranks.
    max_steal: ClassVar[float] = 0.05
    # The largest share of the time of all CPUs of the ranks that other processes may use, if the
    # ranks use half of them: ranks that wait for I/O lose nothing.
    max_others: ClassVar[float] = 0.1
    # The largest share of the time during which one thread may wait for a CPU, and the same within
    # one second. They count if other processes or a hypervisor explain half of the wait.
    max_delay: ClassVar[float] = 0.1
    max_burst: ClassVar[float] = 0.5
    # As a share of the larger rate: a shared machine changes by less from minute to minute.
    max_change: ClassVar[float] = 0.2

    least_seconds: float = Field(default=0.5, ge=0)
    metric: Name | None = None


class Case(Axes):
    """One benchmark: its command, sweep and output, and how the output is read and judged.

    ``launch: counted`` is a case without a program: the kit counts its figures from the jobs of a
    run of a stated time. If no text of the case names ``{scratch}``, the program writes relative
    file names, and each rank runs in scratch; else in the folder of the step.

    Attributes:
        inputs: the files that the program reads; one without text is not written.
        writes: what its files in scratch must reach: with less, or on another file system, a record
            is INVALID.
        network_bytes: the least number of bytes that the program moves to and from a node that it
            uses, if it runs on several; 0 is not known.
        labels: parameters that are computed from the machine.
        facts: the conditions on facts of the partition that ``proofmark check`` checks.
        defaults: the values of names that the facts of the partition need not have.
        constraints: conditions for every point, each with the text for what is accepted: a suite
            with another point is refused, while ``where`` leaves the point out.
        copies: the number of commands that are started at the same time, each with its share of the
            ranks (of 2n ranks copy i has i and i + n). The parameter ``pair`` of the output is the
            number of a copy, and a metric ``<metric>_spread`` the difference between the copies.
        concurrent: the seconds that a copy measured: all copies must measure at the same time.
        undisturbed: when a repeat is disturbed.
        stagger: the seconds over which the starts are spread if each node runs the step alone.
        key_figures: the metrics with which a report begins.
    """

    title: Text
    package: Slug
    program: Text
    launch: Literal["mpi", "threads", "process", "counted"]
    arguments: list[Scalar] = []
    inputs: dict[FileName, str] = {}
    environment: dict[Variable, Scalar] = {}
    output: FileName = "stdout"
    writes: Writes | None = None
    network_bytes: Scalar = 0
    labels: dict[Name, Scalar] = {}
    facts: dict[Name, dict[Braces, Text]] = {}
    defaults: dict[Name, Scalar] = {}
    where: str | None = None
    constraints: dict[Braces, Text] = {}
    copies: Scalar = 1
    concurrent: Braces | None = None
    # `stability` is the name of the key in runs of earlier releases.
    undisturbed: Undisturbed = Field(
        Undisturbed(), validation_alias=AliasChoices("undisturbed", "stability")
    )
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
        for figure, metric in self.key_figures.items():
            if metric not in self.metrics:
                raise KeyMistake(f"a metric: {', '.join(self.metrics)}", "key_figures", figure)
        return self

    @model_validator(mode="after")
    def _judged_with(self) -> Self:
        # A case without labels may have the metrics of another one.
        for name, metric in self.metrics.items() if self.labels else ():
            if unknown := sorted(metric.judged_with.keys() - self.labels.keys()):
                accepted = f"a label of the case: {', '.join(self.labels)}"
                raise KeyMistake(accepted, "metrics", name, "judged_with", unknown[0])
        return self

    @model_validator(mode="after")
    def _files(self) -> Self:
        accepted = "another name of a file: the kit itself writes this one"
        if self.output in STEP_FILES:
            raise KeyMistake(accepted, "output")
        if taken := sorted({*self.inputs} & {*STEP_FILES, *PRINTED}):
            raise KeyMistake(accepted, "inputs", taken[0])
        if self.directory and self.copies != 1:
            raise KeyMistake("1 if no text names {scratch}, where files have own names", "copies")
        return self

    @cached_property
    def directory(self) -> str:
        """The working directory of every rank; empty: the folder of the step."""
        return "{scratch}" if self.writes and "scratch" not in names_in(self._texts) else ""

    @property
    def _texts(self) -> list[Scalar]:
        """The texts of the command and of its files."""
        environment = self.environment.values()
        return [self.program, *self.arguments, *self.inputs.values(), *environment]

    def used_names(self) -> frozenset[str]:
        """Return every name that a template, an expression or a variant of the case uses."""
        texts: list[Any] = [*self._texts, *self.let.values(), *self.labels.values()]
        texts += [self.cost.seconds, self.cost.bytes, self.timeout, self.where]
        texts += [self.copies, self.stagger, self.network_bytes, *self.constraints]
        if self.writes:
            texts += [self.writes.bytes, self.writes.files]
        for use in self.uses():
            texts += [use.where, *use.let.values()]
        return names_in(texts) | {BLAS_KERNEL}

    def parameter_names(self) -> set[str]:
        """Return every parameter that a result of the case may have; ``where`` may name it."""
        axes = {*self.sweep, *flat(use.sweep for use in self.uses())}
        names = {"benchmark", "placement", "ranks", "threads", LOAD, SENSOR, *self.labels}
        names |= {MEASURED} if any(use.in_rounds for use in self.uses()) else set()
        names |= {axis.rstrip("_") for axis in axes}
        names |= {"fs_block_bytes"} if FILE_SYSTEM in axes else set()
        return names | set(self.reader().parameters)

    def bound_names(self) -> set[str]:
        """Return every value of a step or of a reading that a bound may name, if it has it."""
        lets = {*self.let, *flat(use.let for use in self.uses())}
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
        return self.read.reader({name: metric.unit for name, metric in self.metrics.items()})


NODE_CEILINGS = (
    *("cores", "clock", "core_flops", "flops", "core_cache", "cache", "memory", "link"),
    *("llc_bytes", "storage"),
)
"""Ceilings of the nodes of a measurement, see `proofmark.site.ceilings.Ceilings`."""
MESSAGE = "message_s"
"""The shortest time of a message between two ranks, in seconds."""
MESSAGE_S = {False: 2e-9, True: 1e-8}
"""The shortest message inside a node (a few cycles), and between nodes (light in 2 m of cable)."""
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
