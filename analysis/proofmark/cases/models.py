"""Cases and suites: the models of the files in `benchmarks/`.

The id of a case is the stem of its file. A case names its suites in its own file, so that one new
YAML file is a new benchmark.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import BeforeValidator, Field, model_validator

from proofmark.cases.reader.spec import ReadBlock, ReadSpec
from proofmark.common.errors import bad_input, nearest
from proofmark.common.expressions import names_in
from proofmark.common.input_limits import MAX_REPEATS, MAX_ROUNDS
from proofmark.common.strict_model import StrictModel

SUITES_FILE = "suites.yml"
DEFAULT_SUITE = "quick"
"""The suite of the commands and playbooks that are not given one."""
AXES = ("nodes", "ranks", "threads", "placement", "pus_per_core")
"""Sweep axes that every case may use, also if no template of the case contains them."""
Measured = Literal["together", "alone"]
MEASURED = "measured"
"""A parameter of the figures of rounds of pairs. Its values are `TOGETHER` and `ALONE`."""
TOGETHER: Measured = "together"
"""All pairs of a round measured at the same time. They may share links."""
ALONE: Measured = "alone"
"""No two pairs that measured at the same time share a switch of the nearest level."""
MEMORY, DISTANCE, FILE_SYSTEM = "memory", "distance", "file_system"
RESOLVED_AXES = (MEMORY, DISTANCE, FILE_SYSTEM)
"""Sweep axes that every case may use, and parameters of the step. The plan replaces a kind of
memory by NUMA nodes, a switch level by two nodes at this distance, and the name of a file system by
its scratch directory."""
STORAGE_TARGET = "storage_target"
LAYOUT_AXES = ("stripe_count", "stripe_bytes", STORAGE_TARGET)
"""Sweep axes that every case may use: the layout of the files in the scratch folder of the step. A
file system that cannot set one leaves out the point. The value `UNSET` keeps the layout."""
HINTS = "hints"
"""Sweep axis that every case may use: hints for MPI-IO (``romio_cb_write=enable,cb_nodes=4``)."""
NAMING_AXES = ("test", "clients")
"""Sweep axes that every case may use, and that are only parameters of the figures: the name of a
use in a suite, and the number of nodes that run the step at the same time, each for itself. Figures
in which they differ are never compared."""
UNSET = "default"
"""The value of a layout axis, or of hints, that changes nothing."""
LOAD, SENSOR = "load", "sensor"
"""The parameter of a figure that was measured beside a load: the case of the load. The parameter of
a figure of a sensor: what measured it."""
PRINTED = frozenset({"stdout", "stderr"})
STEP_FILES = frozenset(
    {"run.sh", "rc", "rc.new", "started", "timed_out", "when.json", "binding", "binding.json"}
    | {"hostfile", "copies.json", "outputs.sha256", "scratch.json"}
    | {"scratch.seen", "scratch.seen.new", "scratch.json.new", "scratch.made"}
    | {"layout.txt", "romio-hints"}
    | {"noise", "noise.json", "disturbed", "telemetry.jsonl"}
    | {"load", "load.json", "load.messages", "load.failed"}
)
"""Files that the kit itself writes into the folder of a step, besides the output of the program."""

Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
Slug = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$")]
FileName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
Braces = Annotated[str, Field(pattern=r"^\{[^{}]+\}$")]
Variable = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
Text = Annotated[str, Field(min_length=1)]
Scalar = str | int | float
Axis = Scalar | list[Scalar]
Item = TypeVar("Item")


Sweep = dict[Name, Axis]
Parameters = dict[str, Scalar]
"""Values by the name of an axis or of another parameter."""
Rule = Literal["rpeak_nominal", "rpeak_avx", "memory_bandwidth", "link_bandwidth", "link_latency"]

UNIT_OF: Mapping[Rule, str] = {
    "rpeak_nominal": "GFlop/s",
    "rpeak_avx": "GFlop/s",
    "memory_bandwidth": "GB/s",
    "link_bandwidth": "GB/s",
    "link_latency": "us",
}
"""The unit of each limit that is computed from the hardware of a node."""


UNIVERSAL = "universal"
"""The bound of a metric for which no fact of the hardware gives a closer one: that of its unit."""


class Metric(StrictModel):
    """A quantity that a case measures, in the unit that its program prints.

    ``bound`` is the largest value that is physically possible if higher is better, else the
    smallest. It is in the base unit of ``unit`` (byte/s, flop/s, s; 1 for 100 %): a number, an
    expression over the ceilings of the nodes and the values of the step, or `UNIVERSAL`.
    ``same_digits`` is true for a result of computation: it is not a speed, and each run of the same
    program prints the same digits. Other digits show wrong computation, if repeats agree.
    ``peers`` is false for a value such as the longest of many times. Like nodes differ much in it,
    so that they are not compared.
    ``one_way`` is true for the rate of a pair of nodes whose data flow only from the first node to
    the second.
    """

    unit: str
    better: Literal["higher", "lower"]
    bound: Annotated[float, Field(ge=0)] | Braces | Literal["universal"]
    what: Text
    same_digits: bool = False
    peers: bool = True
    one_way: bool = False


class Against(StrictModel):
    """A result of the same run that is the reference of another result.

    Attributes:
        metric: of the reference result.
        case: of the reference result; None is the case of the judged result.
        where: parameters of the reference result.
        times: a factor for the reference value.
    """

    metric: Name
    case: Slug | None = None
    where: Parameters = {}
    times: float | Braces = 1.0


class Reference(StrictModel):
    """A limit with which a result is compared.

    Exactly one of ``value``, ``against`` and ``rule`` gives the reference value.

    Attributes:
        kind: an ``expected`` reference (the prediction of a model) is information; a result is
            UNJUDGED by it.
        source: the document that the reference comes from.
        where: parameters of the results that are compared.
        system: the partition that the reference is valid for; None is any.
        mode: the firmware mode that the reference is valid for; None is any.
        value: a number in ``unit``.
        unit: of ``value``; the default is that of the metric.
        against: another result of the same run.
        rule: a value that is computed from the hardware of the node.
        all_cores: whether it is only for results with one thread on each core of the node.
        at_least: the smallest accepted ratio measured ÷ reference.
        at_most: the largest accepted ratio measured ÷ reference.
    """

    metric: Name
    kind: Literal["contract", "published", "derived", "expected"]
    source: Text
    where: Parameters = {}
    system: str | None = None
    mode: Slug | None = None
    value: float | None = Field(default=None, gt=0)
    unit: str | None = None
    against: Against | None = None
    rule: Rule | None = None
    all_cores: bool = False
    at_least: float | None = Field(default=None, gt=0)
    at_most: float | None = Field(default=None, gt=0)

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if sum(each is not None for each in (self.value, self.against, self.rule)) != 1:
            raise ValueError("exactly one of value, against and rule")
        if self.unit is not None and self.value is None:
            raise ValueError("unit: only accepted together with value")
        if self.rule is not None and self.kind not in ("derived", "contract"):
            raise ValueError("rule: only accepted if kind is derived or contract")
        if self.at_least is None and self.at_most is None:
            raise ValueError("at_least, at_most or both")
        if self.kind == "published" and self.system is None:
            raise ValueError("system: required if kind is published")
        return self

    def accepts(self, measured: object) -> bool:
        """Return whether figures with this value of `MEASURED` are compared; None is no value.

        Pairs that measured together may share links. Only a reference whose ``where`` has
        `MEASURED` is for their figures.
        """
        return measured != TOGETHER or MEASURED in self.where


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


class Concurrent(StrictModel):
    """Copies of a program that must measure at the same time.

    ``copy`` is the parameter that numbers the copies in the output. ``seconds`` is an expression
    for the time that a measurement took. ``spread`` are the metrics ``<metric>_spread``: the
    difference between the copies.
    """

    copy_: Name = Field(alias="copy")
    seconds: Braces
    spread: list[Name] = []


class Stability(StrictModel):
    """The conditions under which an execution counts as undisturbed (docs/design/disturbance.md).

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


Scope = Literal["job", "each-node", "each-pair"]
"""What one step measures: its nodes together, each node alone, or disjoint pairs of nodes."""


class SearchRule(StrictModel):
    """The search for the best point of a sweep during the run (docs/design/plans.md).

    Points that differ only in ``axes`` are one search. ``stop: no-better`` varies one axis after
    another, with the best values of the others, until no axis gives a better value. ``stop:
    no-growth`` has one axis, and goes up its values until the metric stops growing.

    Attributes:
        metric: a metric of the case.
        axes: axes of the sweep, in the order in which they are varied.
        least_gain: the least relative gain that counts, in addition to the noise of the repeats.
        facts: the facts of the partition that ``proofmark tune accept`` writes: expressions over
            the values of the best step.
    """

    metric: Name
    axes: Annotated[list[Name], Field(min_length=1)]
    stop: Literal["no-better", "no-growth"] = "no-better"
    least_gain: float = Field(default=0.01, ge=0, lt=1)
    facts: dict[Name, Scalar] = {}

    @model_validator(mode="after")
    def _one_ordered_axis(self) -> Self:
        if len(set(self.axes)) < len(self.axes):
            raise ValueError("axes: each axis once")
        if self.stop == "no-growth" and len(self.axes) != 1:
            raise ValueError("axes: exactly one if stop is no-growth")
        return self


class Load(StrictModel):
    """A program that runs beside a step during the whole measured program (docs/design/load.md).

    Attributes:
        case: the case that defines the program.
        place: ``same-nodes``: on the cores of the step's nodes that the step leaves free;
            ``other-nodes``: on the nodes of the partition that the step leaves free.
        sweep: axes that replace those of the case. The load has exactly one point. ``nodes`` is
            the number of its nodes, and ``cores`` the number of cores that it may use on each.
        let: values that replace those of the case. The program must run until the kit ends it.
        warm_up_s: seconds from the start of its last rank to the start of the measured program.
        baseline: whether each step is first measured on the same nodes without the load.
    """

    case: Slug
    place: Literal["same-nodes", "other-nodes"]
    sweep: Sweep = {}
    let: dict[Name, Scalar] = {}
    warm_up_s: float = Field(default=5, ge=0, le=600)
    baseline: bool = False


class SuiteUse(StrictModel):
    """How a case runs in one suite. An axis of its sweep replaces that of the case.

    ``when`` is evaluated once for the machine: if it is false, the suite leaves out this use.
    ``where`` selects points, in addition to the ``where`` of the case. ``modes`` are names of
    firmware modes; a partition with none of them runs the use in its current mode. ``repeats`` is
    the number of times that each step runs in each repeat of the suite; ``at_most`` is the number
    of repeats of the suite in which it runs, if it is smaller. ``load`` is a program that runs
    beside each step.

    ``pairs`` chooses the pairs of the scope ``each-pair``: each node with its two neighbours in the
    list, or the ``rounds`` of `proofmark.plan.pairings.rounds` (docs/design/links.md). All pairs of
    a round measure at the same time; with ``alone``, only pairs without a common switch. ``rounds``
    is the largest number of rounds, and of waves of pairs that are alone.

    ``search`` runs only the points that a search needs. ``name`` is the name of the use for
    ``reads`` of another use of the case: each step of that use reads the files that the step of the
    same point wrote, in another job and on other nodes (docs/design/storage.md).
    """

    sweep: Sweep = {}
    let: dict[Name, Scalar] = {}
    when: str | None = None
    where: str | None = None
    modes: list[Slug] = []
    scope: Scope = "job"
    pairs: Literal["neighbours", "rounds"] = "neighbours"
    alone: bool = False
    rounds: int = Field(default=16, ge=1, le=MAX_ROUNDS)
    repeats: int = Field(default=1, ge=1, le=MAX_REPEATS)
    at_most: int | None = Field(default=None, ge=1, le=MAX_REPEATS)
    search: SearchRule | None = None
    name: Slug | None = None
    reads: Slug | None = None
    load: Load | None = None

    @model_validator(mode="after")
    def _one_scope(self) -> Self:
        for key in ("search", "name", "reads"):
            if getattr(self, key) is not None and self.scope != "job":
                raise ValueError(f"{key}: only accepted if scope is job")
        if self.name is not None and self.reads is not None:
            raise ValueError("name and reads: a use has only one of them")
        if self.load and self.load.place == "other-nodes" and self.scope != "job":
            raise ValueError("load.place: other-nodes is only accepted if scope is job")
        return self

    @model_validator(mode="after")
    def _of_pairs(self) -> Self:
        if self.pairs == "rounds" and self.scope != "each-pair":
            raise ValueError("pairs: rounds is only accepted if scope is each-pair")
        if self.pairs != "rounds" and self.model_fields_set & {"alone", "rounds"}:
            raise ValueError("alone, rounds: only accepted if pairs is rounds")
        return self


def _as_list(given: Any) -> Any:
    return [given] if isinstance(given, dict) else given


Uses = Annotated[
    list[SuiteUse],
    Field(min_length=1),
    BeforeValidator(_as_list, json_schema_input_type=SuiteUse | list[SuiteUse]),
]
"""One use, or several uses that differ in more than one sweep can express."""


class FactRule(StrictModel):
    """A condition on a fact of a partition, without which a case measures something else.

    Attributes:
        holds: an expression over the facts of the partition and of its machine, and the labels of
            the case.
        accepted: the values that are accepted, as a text with such expressions.
    """

    holds: Braces
    accepted: Text


class Case(StrictModel):
    """One benchmark: its command, sweep and output, and how the output is read and judged.

    ``copies`` is the number of commands that are started at the same time, each with its share of
    the ranks (of 2n ranks copy i has i and i + n). ``concurrent`` is the check that they measured
    at the same time. ``labels`` are parameters that are computed from the machine. ``constraints``
    are conditions for every point, each with the text for what is accepted: a suite with another
    point is refused, while ``where`` leaves the point out. ``stability`` defines when a repeat is
    disturbed. ``stagger`` is the number of seconds over which the starts are spread if each node
    runs the step alone. ``inputs`` are the files that the program reads; one without text is not
    written. ``directory`` is the working directory of every rank, for a program that
    writes relative file names; the default is the folder of the step. ``writes`` is what its files
    in scratch must reach: with less, or on another file system, a record is INVALID.
    ``network_bytes`` is the least number of bytes that the program moves to and from a node that it
    uses, if it runs on several; 0 is not known. ``facts`` are the conditions on facts of the
    partition that ``proofmark validate`` checks. ``defaults`` are the values of names that the
    facts of the partition need not have.
    """

    title: Text
    package: Slug
    program: Text
    launch: Literal["mpi", "threads", "process"]
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
    facts: dict[Name, FactRule] = {}
    defaults: dict[Name, Scalar] = {}
    where: str | None = None
    constraints: dict[Braces, Text] = {}
    variants: list[Name] = []
    copies: Scalar = 1
    concurrent: Concurrent | None = None
    stability: Stability = Stability()
    stagger: Scalar = 0
    cost: Cost
    timeout: Scalar | None = None
    suites: dict[Slug, Uses] = {}
    metrics: dict[Name, Metric]
    read: ReadBlock
    references: list[Reference] = []

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
        axes = {*self.sweep, *(axis for use in self.uses() for axis in use.sweep)}
        names = {"benchmark", "placement", "ranks", "threads", LOAD, SENSOR, *self.labels}
        names |= {MEASURED} if any(use.pairs == "rounds" for use in self.uses()) else set()
        names |= {axis.rstrip("_") for axis in axes}
        names |= {"fs_block_bytes"} if FILE_SYSTEM in axes else set()
        return names | set(self.reader().parameters)

    def bound_names(self) -> set[str]:
        """Return every value of a step or of a reading that a bound may name, if it has it."""
        lets = {*self.let, *(name for use in self.uses() for name in use.let)}
        return {*self.parameter_names(), *AXES, *lets}

    def uses(self) -> Iterator[SuiteUse]:
        """Yield the uses of the case in all suites."""
        for uses in self.suites.values():
            yield from uses

    def reader(self) -> ReadSpec:
        """Return the rules that read the output. `load_benchmarks` has resolved ``same_as``."""
        assert isinstance(self.read, ReadSpec)
        return self.read


class Required(StrictModel):
    """Metrics of a case that must be judged on each class of nodes.

    Attributes:
        where: parameters of the results that are required.
    """

    case: Slug
    metrics: Annotated[list[Name], Field(min_length=1)]
    where: Parameters = {}


class Alternative(StrictModel):
    """Cases of a suite that run only if the programs come from certain origins.

    Attributes:
        title: their programs, in words.
        origins: values of ``partition.provision_from``; the last alternative has none, and is for
            all other origins.
        cases: cases of the suite. Cases that no alternative names run with each of them.
    """

    title: Text
    origins: list[Slug] = []
    cases: Annotated[list[Slug], Field(min_length=1)]


class Suite(StrictModel):
    """A named selection of cases, and the number of repeats of each step.

    An acceptance by the suite needs PASS or FAIL for each of its planned ``required_metrics``.
    ``finds`` and ``use`` are for docs/suites.md: what the suite finds, and when it is used.
    ``practice`` is true for a suite that finds nothing about a machine: it is never offered in
    place of another suite on a real machine.
    ``alternatives`` are for the origins of programs (`proofmark.cases.alternatives`).
    """

    title: Text
    finds: str = ""
    use: str = ""
    practice: bool = False
    repeats: int = Field(default=1, ge=1, le=MAX_REPEATS)
    required_metrics: list[Required] = []
    alternatives: list[Alternative] = []

    @model_validator(mode="after")
    def _one_for_each_origin(self) -> Self:
        if not self.alternatives:
            return self
        *named, last = self.alternatives
        if not named or last.origins or not all(each.origins for each in named):
            raise ValueError("alternatives: at least two; each but the last has origins")
        origins = [origin for each in named for origin in each.origins]
        if twice := sorted({origin for origin in origins if origins.count(origin) > 1}):
            raise ValueError(f"alternatives: each origin once: {', '.join(twice)}")
        return self


class Benchmarks(StrictModel):
    """All cases and suites of one folder."""

    folder: Path
    cases: dict[str, Case]
    suites: dict[str, Suite]

    def case(self, name: str) -> Case:
        """Return the case `name`.

        Raises:
            BadInput: there is no such case; the message has the nearest name.
        """
        return _pick(self.cases, name, self.folder, "case")

    def suite(self, name: str) -> Suite:
        """Return the suite `name`.

        Raises:
            BadInput: there is no such suite; the message has the nearest name.
        """
        return _pick(self.suites, name, self.folder / SUITES_FILE, "suite")

    def members(self, suite: str) -> dict[str, Case]:
        """Return the cases of `suite`, by id; those of all its alternatives."""
        return {name: case for name, case in self.cases.items() if suite in case.suites}


def _pick(items: Mapping[str, Item], name: str, file: Path, key: str) -> Item:
    if name not in items:
        hint = nearest(name, items)
        raise bad_input(file, key, f"unknown {key} {name!r}{hint}", ", ".join(items))
    return items[name]
