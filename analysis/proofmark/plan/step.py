"""A step: one command of the plan, made from a point of a sweep.

A step of pairs has the sizes of the switches and the number of its round, not the names of the
pairs: a round of 8,305 nodes has 4,152 of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import chain, groupby
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, Self

from pydantic import BeforeValidator, Field, PlainSerializer, model_validator

from proofmark.cases.case import NODES_EACH, Scope
from proofmark.cases.vocabulary import (
    ALONE,
    AXES,
    BLAS_KERNEL,
    DISTANCE,
    FILE_SYSTEM,
    MEASURED,
    Measured,
    Parameters,
    Scalar,
    Slug,
)
from proofmark.common.errors import bad_input
from proofmark.common.expressions import render
from proofmark.common.input_limits import MAX_NODES
from proofmark.common.nodesets import Nodes
from proofmark.common.shared_models import StrictModel
from proofmark.plan.file_layout import FileLayout, driver_environment
from proofmark.plan.rank_cpus import RankCpusList
from proofmark.plan.sweep import Point, Sweep, count, number
from proofmark.site.execution import of_mpi
from proofmark.site.inventory import Site

if TYPE_CHECKING:
    from proofmark.plan.pairings import Numbers

_RUN = re.compile(r"(?:(\d{1,7})\*)?(\d{1,7})")


def _sizes(given: Any) -> Any:
    if not isinstance(given, str):
        return given
    runs = [_RUN.fullmatch(word) for word in given.split()]
    if not all(runs) or sum(int(run[1] or 1) for run in runs if run) > MAX_NODES:
        raise ValueError(f"{given[:80]!r} is no list of sizes such as '259*32 17'")
    sizes = []
    for run in runs:
        if run:
            sizes += [int(run[2]) for _ in range(int(run[1] or 1))]
    return sizes


def _short(sizes: Sequence[int]) -> str:
    runs = [(size, len(list(same))) for size, same in groupby(sizes)]
    return " ".join(f"{times}*{size}" if times > 1 else f"{size}" for size, times in runs)


Size = Annotated[int, Field(ge=1)]
Sizes = Annotated[
    tuple[Size, ...], BeforeValidator(_sizes), PlainSerializer(_short, when_used="json")
]
"""The numbers of hosts of successive switches. The JSON is a text such as ``259*32 17``."""


class PairRound(StrictModel):
    """The rule of one round of pairs (`proofmark.plan.pairings`).

    The hosts of each switch follow each other in the nodes of the step.

    Attributes:
        measured: ``together``: all pairs of a round of `rounds`; ``alone``: a wave of `waves`.
        number: of the round or wave, from 1.
        most: the largest number of rounds or waves.
        distance: the level of every pair, or ``top``; empty if the pairs differ in it.
        top: the distance of two hosts that share no switch.
        switches: the hosts of the successive switches by level, the nearest level first.
    """

    measured: Measured
    number: Size
    most: Size
    distance: Slug | Literal[""] = ""
    top: Slug
    switches: dict[Slug, Sizes] = {}

    def pairs(self, hosts: int) -> Numbers:
        """Return the pairs of numbers of hosts, of shape (pairs, 2); the first one sends.

        Raises:
            ValueError: the switches are not those of so many hosts, or there is no such round.
        """
        for name, sizes in self.switches.items():
            if (found := sum(sizes)) != hosts:
                raise ValueError(f"round.switches.{name}: {found} nodes, but the step has {hosts}")
        from proofmark.plan.pairings import schedule  # numpy costs time; few steps have rounds

        made = schedule(tuple(self.switches.values()), hosts, self.most, self.measured)
        if self.number > len(made):
            raise ValueError(f"round.number: {self.number}, but there are {len(made)} rounds")
        return made[self.number - 1].pairs

    @property
    def levels(self) -> list[str]:
        """The names of the possible distances of a pair, the nearest first."""
        return [*self.switches, self.top]

    @property
    def slug(self) -> str:
        """The part of the id of a step that names the round."""
        return f"{'wave' if self.measured == ALONE else 'round'}-{self.number}"


SCRATCH = "{scratch}"
"""Placeholder in arguments and inputs for the scratch folder of the step."""

COUNTED = "counted"
"""The value of ``launch`` of a case without a program: the kit counts its figures from the jobs."""
LEAST_NETWORK_BYTES = 64 << 20
"""The network of a step that moves less is not checked: that may be the traffic of a login."""


Identifier = Annotated[str, Field(pattern=r"^([A-Za-z0-9][A-Za-z0-9._-]{0,252})?$")]
"""The id of a step or a job: one word for a shell, and one name of a folder."""


class StepInstance(NamedTuple):
    """One measurement of a step: by all of its nodes, or by one node or pair of it.

    Its text is its folder below ``steps/``: ``<step>``, or ``<step>/<name>``. Records have this
    text in their column ``step``.

    Attributes:
        name: the node or the pair ``<node>+<node>``; empty if the whole step is one measurement.
    """

    step: str
    name: str = ""

    @classmethod
    def parse(cls, text: str) -> StepInstance:
        """Return the instance with the text `text`; no name of a step or a node has a slash."""
        step, _, name = text.partition("/")
        return cls(step, name)

    def __str__(self) -> str:
        return f"{self.step}/{self.name}" if self.name else self.step


class WrittenFiles(StrictModel):
    """The least that the files of a step in scratch reach: bytes together, and their number.

    ``removed`` says whether the program removes them itself.
    """

    bytes: int
    files: int
    removed: bool


class StepLoad(StrictModel):
    """The program that runs beside a step.

    Attributes:
        place: on the nodes of the step, or on other nodes.
        warm_up_s: seconds from the start of its last rank to the start of the measured program.
        step: the program with its nodes and CPUs; its output is kept, and not judged.
    """

    place: Literal["same-nodes", "other-nodes"]
    warm_up_s: float
    step: Step

    def of_instances(self, scope: Scope) -> StepLoad:
        """Return the load of a step that is measured with `scope`."""
        return self.model_copy(update={"step": self.step.model_copy(update={"scope": scope})})


class Step(StrictModel):
    """One command of the plan.

    A step with the scope ``each-node`` or ``each-pair`` is measured by each node, or by disjoint
    pairs of nodes, at the same time (`instances`). Then ``ranks``, ``cpus``, ``seconds`` and
    ``bytes`` are those of one instance.

    Attributes:
        ranks, threads, timeout: 0 if they are not known: of an output of others.
        parameters: the values of the axes of the sweep.
        derived: the values that the case computes from them.
        cpus: the CPUs of each rank; empty if the program binds its own processes.
        bytes: the most data that it leaves in scratch.
        pairing: number of the pairing of neighbours, see `instances`.
        round: the round of pairs; None for pairs of neighbours. A plan without it does not name it.
        membind: the NUMA domains that memory must come from; empty: any.
        file_system: empty for the scratch of the partition.
        copies: copies of the program that run at the same time.
        stagger: the longest pause of a node before it starts, seconds.
        bind_threads: whether each thread of an MPI rank is bound to one CPU, and reports it.
        directory: the working directory of its ranks; empty for the folder of the execution.
        writes: the files that it must write in scratch; None if that is not known.
        network_bytes: the least number of bytes that it moves to and from a node; 0 if nobody looks
            at the network of its messages.
        reads: the id of the step whose files in scratch it reads, instead of own ones.
        kept: whether another step reads its files in scratch, so that they are kept at its end.
        layout: the layout of its files in scratch; None: that of the scratch directory.
        load: the program that runs beside it. If that runs on other nodes, these are the last ones
            of `nodes`, and have no rank of the step.
    """

    id: Identifier
    case: str
    repeat: int
    nodes: Nodes
    ranks: int
    threads: int
    placement: str
    parameters: Parameters
    derived: dict[str, Scalar]
    package: str
    program: str
    launch: Literal["mpi", "threads", "process", "counted"]
    arguments: list[str]
    environment: dict[str, str]
    inputs: dict[str, str]
    output: str
    variants: dict[str, str]
    cpus: RankCpusList
    seconds: float
    timeout: int
    bytes: int
    scope: Scope = "job"
    pairing: int = 1
    round: PairRound | None = Field(default=None, exclude_if=lambda each: each is None)
    membind: list[int] = []
    file_system: str = ""
    copies: int = 1
    stagger: int = 0
    bind_threads: bool = False
    directory: str = ""
    writes: WrittenFiles | None = None
    network_bytes: int = 0
    reads: Identifier = ""
    kept: bool = False
    layout: FileLayout | None = None
    load: StepLoad | None = None

    @model_validator(mode="after")
    def _known_round(self) -> Self:
        if self.round is not None:
            if self.scope != "each-pair":
                raise ValueError("round: only accepted if scope is each-pair")
            self.round.pairs(len(self.nodes))
        return self

    @property
    def recorded(self) -> dict[str, Scalar]:
        """The parameters that every figure of the step has, before its output adds others."""
        planned = dict(self.parameters)
        if self.round:
            planned[MEASURED] = self.round.measured
        counts = self.counts
        if self.launch == "mpi" and "ranks" in counts:
            planned["ranks"] = self.ranks
        if chosen := {name: text for name, text in self.environment.items() if of_mpi(name)}:
            # Figures of other variables are not alike. Those of the site are in the package.
            planned["environment"] = " ".join(f"{name}={chosen[name]}" for name in sorted(chosen))
        if self.threads > 1 or (self.launch == "threads" and "threads" in counts):
            planned["threads"] = self.threads
        return planned

    @property
    def counts(self) -> dict[str, int]:
        """The numbers of ranks and threads, as far as they are known."""
        counts = {"ranks": self.ranks, "threads": self.threads}
        return {name: number for name, number in counts.items() if number}

    @property
    def planned(self) -> dict[str, Scalar]:
        """The parameters that an output must not contradict."""
        return {**self.parameters, **self.derived, **self.counts}

    def instances(self) -> dict[StepInstance, list[str]]:
        """Return the nodes of each measurement of the step; of the scope ``job`` it is one.

        The pairs of a round follow from its rule, `PairRound`. Without a round, pairing 1 has the
        nodes 1+2, 3+4, …; pairing 2 has 2+3, 4+5, …, last+1, so that every node is paired with both
        neighbours; pairing 3 has last+1 of an odd number of nodes.
        """
        if self.scope == "job":
            return {StepInstance(self.id): self.nodes}
        if self.scope == "each-node":
            return {StepInstance(self.id, node): [node] for node in self.nodes}
        pairs = self._pairs()
        return {StepInstance(self.id, "+".join(pair)): pair for pair in pairs}

    def _pairs(self) -> list[list[str]]:
        if self.round:
            numbers = self.round.pairs(len(self.nodes)).tolist()
            return [[self.nodes[one], self.nodes[other]] for one, other in numbers]
        ordered = self._neighbours()
        return [list(pair) for pair in zip(ordered[::2], ordered[1::2], strict=False)]

    def _neighbours(self) -> list[str]:
        """Return the nodes in the order of the pairs; the last one of an odd number has no pair."""
        if self.pairing == 3:
            return [self.nodes[-1], self.nodes[0]]
        if self.pairing == 1:
            return self.nodes
        return self.nodes[1:] if len(self.nodes) % 2 else [*self.nodes[1:], self.nodes[0]]

    def nodes_in_order(self) -> list[str]:
        """Return the nodes of all measurements, in their order, without the measurements."""
        if self.scope != "each-pair":
            return self.nodes
        return list(chain.from_iterable(self._pairs()))

    @property
    def pause_s(self) -> int:
        """The seconds over which the starts of its nodes are spread."""
        return self.stagger if self.scope != "job" else 0

    @property
    def wall_s(self) -> float:
        """The expected seconds from the start of its first node to the end of its last node."""
        return self.seconds + self.pause_s

    @property
    def uses_scratch(self) -> bool:
        """Whether the step needs a folder in scratch."""
        texts = [*self.arguments, *self.environment.values(), *self.inputs.values()]
        stated = (self.bytes, self.directory, self.writes, self.layout, self.reads, self.kept)
        return any(stated) or any(SCRATCH in text for text in texts)

    @property
    def measurements(self) -> int:
        """The number of measurements at the same time: 1, or the number of instances."""
        if self.round:
            return len(self.round.pairs(len(self.nodes)))
        if self.scope == "each-pair":
            return 1 if self.pairing == 3 else len(self.nodes) // 2
        return len(self.nodes) if self.scope == "each-node" else 1

    @property
    def nodes_each(self) -> int:
        """The number of nodes of one measurement."""
        return NODES_EACH.get(self.scope, len(self.nodes))

    def folders(self) -> list[str]:
        """Return the folders of its results below ``steps/``: one, or one per instance."""
        return [str(instance) for instance in self.instances()]

    def nodes_of(self, instance: StepInstance) -> list[str]:
        """Return the nodes of an instance; all nodes of the step if it is the whole step."""
        return self.instances()[instance] if instance.name else self.nodes


def step_of(name: str, sweep: Sweep, point: Point) -> Step:
    """Return the step of one point of the case `name`; its id is empty.

    Raises:
        BadInput: a value of the case cannot be computed.
    """
    case, file, site = sweep.case, sweep.file, sweep.site
    scope = {**sweep.symbols, **point.values, "scratch": SCRATCH}

    def rendered(value: Any, key: str) -> Any:
        return render(value, scope, file=file, key=key)

    def real(value: Any, key: str, least: int = 0) -> float:
        return number(rendered(value, key), file, key, least=least)

    def whole(value: Any, key: str, least: int = 0) -> int:
        return count(rendered(value, key), file, key, least=least)

    def plain(keys: Iterable[str]) -> dict[str, Scalar]:
        # An expression has class_ for class, which is a keyword of Python.
        values = {key.rstrip("_"): point.values[key] for key in keys}
        return {key: value for key, value in values.items() if not isinstance(value, list)}

    seconds = real(case.cost.seconds, "cost.seconds")
    timeout = 60 + 10 * seconds
    if case.timeout is not None:
        timeout = real(case.timeout, "timeout", least=1)
    labels = {key: rendered(text, f"labels.{key}") for key, text in case.labels.items()}
    swept = {*case.sweep, *sweep.use.sweep}
    recorded = [
        axis for axis in point.axes if axis not in AXES or (axis == "nodes" and axis in swept)
    ]
    if FILE_SYSTEM in point.values:
        recorded.append("fs_block_bytes")
    arguments = []
    for item in case.arguments:
        words = rendered(item, "arguments")
        arguments += [str(word) for word in (words if isinstance(words, list) else [words])]
    moved = int(real(case.network_bytes, "network_bytes"))
    return Step(
        id="",
        case=name,
        repeat=1,
        nodes=_nodes(site, point, file),
        ranks=point.count("ranks"),
        threads=point.count("threads"),
        placement=str(point.values.get("placement", "")),
        parameters=plain(recorded) | labels,
        derived=plain(point.lets),
        package=case.package,
        program=str(rendered(case.program, "program")),
        launch=case.launch,
        arguments=arguments,
        environment={
            key: str(rendered(item, f"environment.{key}")) for key, item in case.environment.items()
        }
        | driver_environment(point.values),
        inputs={
            key: text
            for key, template in case.inputs.items()
            if (text := str(rendered(template, f"inputs.{key}")))
        },
        output=case.output,
        variants={BLAS_KERNEL: str(scope[BLAS_KERNEL])} if BLAS_KERNEL in point.values else {},
        cpus=point.placement or [],
        seconds=seconds,
        timeout=int(timeout),
        bytes=whole(case.cost.bytes, "cost.bytes"),
        membind=list(point.membind),
        file_system=str(point.values.get(FILE_SYSTEM, "")),
        copies=whole(case.copies, "copies", least=1),
        stagger=whole(case.stagger, "stagger"),
        bind_threads=case.launch == "mpi" and point.count("threads") > 1,
        directory=case.directory,
        writes=case.writes
        and WrittenFiles(
            bytes=whole(case.writes.bytes, "writes.bytes"),
            files=whole(case.writes.files, "writes.files", least=1),
            removed=case.writes.removes,
        ),
        network_bytes=moved if point.count("nodes") > 1 and moved >= LEAST_NETWORK_BYTES else 0,
        layout=point.layout,
    )


def _nodes(site: Site, point: Point, file: str) -> list[str]:
    """Return the nodes of a point: the first ones, or the first two at the requested distance."""
    nodes = point.count("nodes")
    if nodes > len(site.hosts):
        found = f"{nodes} nodes"
        raise bad_input(file, "sweep.nodes", found, f"at most {len(site.hosts)} of -l")
    if (level := point.values.get(DISTANCE)) is None:
        return list(site.hosts[:nodes])
    if nodes != 2:
        raise bad_input(
            file, f"sweep.{DISTANCE}", f"{nodes} nodes", "2 nodes: a pair has a distance"
        )
    return site.pair_at(str(level))


def labelled(name: str, points: Sequence[Point], steps: Sequence[Step]) -> list[Step]:
    """Return `steps` with ids: the name of the case and the values that differ among `points`."""
    varying = [
        key for key in points[0].axes if len({str(point.values[key]) for point in points}) > 1
    ]

    def slug(point: Point) -> str:
        words = [name, *(f"{point.values[key]}" for key in varying)]
        return re.sub(r"[^a-z0-9]+", "-", "-".join(words).lower()).strip("-")[:80]

    return [
        step.model_copy(update={"id": slug(point)})
        for point, step in zip(points, steps, strict=True)
    ]
