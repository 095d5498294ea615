"""Cases and suites: what `benchmarks/` says, as checked models.

A case's id is the stem of its file. A case joins a suite in its own file, so that a new
benchmark is one YAML file and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import BeforeValidator, Field, ValidationInfo, model_validator

from proofmark.cases.reader.spec import ReadBlock, ReadSpec
from proofmark.common.errors import bad_input, nearest
from proofmark.common.expressions import names_in
from proofmark.common.strict_model import OLD_KEYS, RenamedKeys, StrictModel

SUITES_FILE = "suites.yml"
AXES = ("nodes", "ranks", "threads", "placement", "pus_per_core")
"""Sweep axes that every case may use without mentioning them in a template."""
MEMORY, DISTANCE, FILE_SYSTEM = "memory", "distance", "file_system"
RESOLVED_AXES = (MEMORY, DISTANCE, FILE_SYSTEM)
"""Sweep axes that every case may use, and parameters of the step. The plan replaces a kind of
memory by NUMA nodes, a switch level by two nodes at this distance, and the name of a file system by
its scratch directory."""
RENAMED_AXES = {"apart": DISTANCE}
"""New names of sweep axes by old names."""
PRINTED = frozenset({"stdout", "stderr"})
STEP_FILES = frozenset(
    {"run.sh", "rc", "rc.new", "started", "timed_out", "when.json", "binding", "binding.json"}
    | {"rankfile", "hostfile", "copies.json"}
)
"""What the kit itself writes into a step's folder beside what the program prints."""

Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
Slug = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$")]
FileName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
Braces = Annotated[str, Field(pattern=r"^\{[^{}]+\}$")]
Variable = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
Text = Annotated[str, Field(min_length=1)]
Scalar = str | int | float
Axis = Scalar | list[Scalar]
Item = TypeVar("Item")


def _new_axis_names(given: Any, info: ValidationInfo) -> Any:
    if isinstance(given, dict) and info.context == OLD_KEYS:
        return {RENAMED_AXES.get(key, key): value for key, value in given.items()}
    return given


RenamedAxes = BeforeValidator(_new_axis_names)
"""Reads the old names of axes in the context `OLD_KEYS`: that of a run of an older format."""
Sweep = Annotated[dict[Name, Axis], RenamedAxes]
Parameters = Annotated[dict[str, Scalar], RenamedAxes]
"""Values by the name of an axis or of another parameter."""
Rule = Literal["rpeak_nominal", "rpeak_avx", "memory_bandwidth", "link_bandwidth"]


UNIT_OF: Mapping[Rule, str] = {
    "rpeak_nominal": "GFlop/s",
    "rpeak_avx": "GFlop/s",
    "memory_bandwidth": "GB/s",
    "link_bandwidth": "GB/s",
}
"""The unit of each limit that can be computed from what a node is made of."""


class Metric(StrictModel):
    """A quantity that a case measures, as its program prints it."""

    unit: str
    better: Literal["higher", "lower"]
    what: Text


class Against(StrictModel):
    """A figure of the same run that serves as the measure of another."""

    metric: Name
    case: Slug | None = None
    where: Parameters = {}
    times: float | Braces = 1.0


class Reference(StrictModel):
    """What a figure is held against: ``at_least``/``at_most`` are ratios measured ÷ reference.

    ``value`` is a number in ``unit``, or in the metric's own where none is named; ``against`` takes
    it from the same run; ``rule`` computes it from what the node is made of. ``system`` limits it
    to the partition it was published for, ``mode`` to a mode of it. What is only ``expected`` (a
    model's prediction) informs and never fails a figure.
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
    at_least: float | None = Field(default=None, gt=0)
    at_most: float | None = Field(default=None, gt=0)

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if sum(each is not None for each in (self.value, self.against, self.rule)) != 1:
            raise ValueError("exactly one of value, against and rule")
        if self.unit is not None and self.value is None:
            raise ValueError("unit: only a value has one of its own")
        if self.rule is not None and self.kind not in ("derived", "contract"):
            raise ValueError("rule: what is computed from the hardware is derived, or a contract's")
        if self.at_least is None and self.at_most is None:
            raise ValueError("at_least, at_most or both")
        if self.kind == "published" and self.system is None:
            raise ValueError("system: a published figure judges only its own system")
        return self


class Cost(StrictModel):
    """What one step takes: seconds of wall time and bytes that it leaves in scratch at most."""

    seconds: Scalar
    bytes: Scalar = 0


class Concurrent(StrictModel):
    """Copies of a program that have to measure at the same time.

    ``copy`` is the parameter that numbers them in the output, ``seconds`` the time for which a
    figure was measured, from what was asked and printed; ``spread`` are the metrics
    ``<metric>_spread``: how far the copies are apart.
    """

    copy_: Name = Field(alias="copy")
    seconds: Braces
    spread: list[Name] = []


class Stability(StrictModel):
    """The conditions under which the machine counts as undisturbed during a repeat.

    ``max_steal`` is the largest share of its CPU time that a hypervisor may withhold:
    steal ÷ (busy + steal). ``max_others`` is the largest share of the used CPU time that other
    processes may have, where it is known. ``metric`` is a metric of the case that measures the rate
    of the machine; ``max_change`` is the largest change of it from one repeat to the next, as a
    share of the larger value.
    """

    max_steal: float = Field(gt=0, lt=1)
    max_others: float = Field(gt=0, le=1)
    metric: Name
    max_change: float = Field(gt=0, lt=1)


Scope = Literal["job", "each-node", "each-pair"]
"""What one step measures: its nodes together, each of them by itself, or disjoint pairs of them."""


class SuiteUse(StrictModel):
    """How a case runs in one suite: its sweep there replaces the case's own, axis by axis.

    ``when`` is asked once for the machine: if it is false, the suite goes without this use.
    ``where`` chooses among the points, beside the case's own. ``modes`` are names of modes; a
    partition that has none of them runs the use in its current mode. ``repeats`` is how often its
    steps run, one after the other, in each repeat of the suite.
    """

    sweep: Sweep = {}
    let: dict[Name, Scalar] = {}
    when: str | None = None
    where: str | None = None
    modes: list[Slug] = []
    scope: Scope = "job"
    repeats: int = Field(default=1, ge=1)


def _listed(given: Any) -> Any:
    return [given] if isinstance(given, dict) else given


Uses = Annotated[
    list[SuiteUse],
    Field(min_length=1),
    BeforeValidator(_listed, json_schema_input_type=SuiteUse | list[SuiteUse]),
]
"""One use, or several that differ in more than a sweep can say."""


class Case(RenamedKeys):
    """One benchmark: command, sweep, output and how it is read and judged.

    With ``copies`` the command is started so many times at once, each with its share of the ranks
    (of 2n ranks copy i has i and i + n); ``concurrent`` tells whether they measured at once.
    ``labels`` are parameters that follow from the machine. ``constraints`` are conditions that
    every point has to meet, with the words for what is accepted: a suite that requests another
    point is refused; ``where`` leaves it out. ``stability`` says when a repeat is disturbed.
    ``stagger`` spreads the starts of a step that each node runs by itself over so many seconds.
    """

    RENAMED = {
        "accepts": "constraints",
        "together": "concurrent",
    }

    title: Text
    package: Slug
    program: Text
    launch: Literal["mpi", "threads", "process"]
    arguments: list[Scalar] = []
    inputs: dict[FileName, str] = {}
    environment: dict[Variable, Scalar] = {}
    output: FileName = "stdout"
    sweep: Sweep = {}
    let: dict[Name, Scalar] = {}
    labels: dict[Name, Scalar] = {}
    where: str | None = None
    constraints: dict[Braces, Text] = {}
    variants: list[Name] = []
    copies: Scalar = 1
    concurrent: Concurrent | None = None
    stability: Stability | None = None
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
                f"inputs and output under other names: {', '.join(taken)} is the kit's"
            )
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
        texts += [self.copies, self.stagger, *self.let.values(), *self.labels.values()]
        texts += self.constraints
        for use in self.uses():
            texts += [use.where, *use.let.values()]
        return names_in(texts) | set(self.variants)

    def told(self) -> set[str]:
        """Return every parameter that a figure of the case may carry, and so be chosen by."""
        axes = {*self.sweep, *(axis for use in self.uses() for axis in use.sweep)}
        own = {axis.rstrip("_") for axis in axes} | {*self.labels}
        own |= {"fs_block_bytes"} if FILE_SYSTEM in axes else set()
        return {"benchmark", "placement", "ranks", "threads"} | own | set(self.reader().parameters)

    def uses(self) -> Iterator[SuiteUse]:
        """Yield how the case runs in all its suites."""
        for uses in self.suites.values():
            yield from uses

    def reader(self) -> ReadSpec:
        """Return how the output is read; `load_cases` has resolved ``same_as``."""
        assert isinstance(self.read, ReadSpec)
        return self.read


class Suite(StrictModel):
    """A named selection of cases, and how often each step is repeated."""

    title: Text
    repeats: int = Field(default=1, ge=1)


class Benchmarks(StrictModel):
    """All cases and suites of one folder."""

    folder: Path
    cases: dict[str, Case]
    suites: dict[str, Suite]

    def case(self, name: str) -> Case:
        """Return the case `name`; `BadInput` with the nearest right word where there is none."""
        return _pick(self.cases, name, self.folder, "case")

    def suite(self, name: str) -> Suite:
        """Return the suite `name`; `BadInput` with the nearest right word where there is none."""
        return _pick(self.suites, name, self.folder / SUITES_FILE, "suite")

    def members(self, suite: str) -> dict[str, Case]:
        """Return the cases that run in `suite`, by id."""
        return {name: case for name, case in self.cases.items() if suite in case.suites}


def _pick(items: Mapping[str, Item], name: str, file: Path, key: str) -> Item:
    if name not in items:
        hint = nearest(name, items)
        raise bad_input(file, key, f"unknown {key} {name!r}{hint}", ", ".join(items))
    return items[name]
