"""The plan: modes x cases x placements of one suite on one partition, expanded, ordered, costed.

The plan names programs by package, not by path: it is made before anything is installed, and its
digest does not depend on the place of the installation. A person names a step by its id, its number
or the beginning of its id.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from itertools import chain
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from proofmark.common.errors import bad_input, nearest
from proofmark.common.grouping import gathered
from proofmark.common.message import Message
from proofmark.common.nodesets import Nodes
from proofmark.common.printed_command import NAME, PrintedCommand, of_run
from proofmark.common.shared_models import StrictModel
from proofmark.plan.rank_cpus import RankCpus
from proofmark.plan.step import COUNTED, Identifier, StepInstance
from proofmark.plan.step import SCRATCH as SCRATCH
from proofmark.plan.step import Step as Step
from proofmark.site.execution import HostCpus
from proofmark.site.hardware import CURRENT


class Job(StrictModel):
    """A job of the scheduler: steps that share a set of nodes."""

    id: Identifier
    nodes: Nodes
    steps: list[Step]

    @property
    def wall_s(self) -> float:
        """The expected time of its steps, which run one after the other, in seconds."""
        return sum(step.wall_s for step in self.steps)


class Group(StrictModel):
    """Jobs with the same mode of the machine and the same environment of programs."""

    mode: str
    environment: str
    jobs: list[Job]

    def steps(self) -> Iterator[Step]:
        """Yield every step in the order of execution."""
        for job in self.jobs:
            yield from job.steps

    def nodes(self) -> set[str]:
        """Return the nodes of all jobs."""
        return set[str]().union(*(job.nodes for job in self.jobs))


class Totals(StrictModel):
    """The cost of a plan. ``scratch_peak_bytes`` is the most data in scratch at one time."""

    jobs: int
    steps: int
    node_hours: float
    bytes: int
    scratch_peak_bytes: int
    wall_s: float


LeftOut = Annotated[
    Message,
    BeforeValidator(
        lambda given: Message("left-said", text=given) if type(given) is str else given
    ),
]
"""Why a plan lacks a part of its suite. A run that was sealed earlier has only a text."""


class Plan(StrictModel):
    """All steps of one acceptance.

    Attributes:
        digest: SHA-256 of the plan and of the facts of its partition.
        current_mode: the mode of the machine now. Groups of other modes need a confirmed reboot.
        left_out: the parts of the suite that the plan lacks, each with the message of its reason.
        assumed: the assumed facts of the hardware, by key.
        fewer_nodes: the cases whose largest step has fewer nodes than on the whole partition, each
            with the number of nodes that it has there (docs/design/cases.md).
        at_once: the number of jobs that run at the same time; 1 if that is not known.
        kind: the name of the kind of run (`proofmark.plan.kinds`); empty for the usual one.
        of_kind: the data of this kind, in the form of JSON.
        hosts: the nodes of the run, if jobs that join it later may have nodes that no job has yet.
        allowed_modes: the modes that the run may enter; the folder of the run has them, not
            plan.json.
        repeated: the steps that repeat the command of another step, each with the reason. They
            follow from the programs: the folder of the run has them, not plan.json.
        not_needed: the steps in `repeated`, and those whose files were not written,
            each with the reason. The folder of the run has them.
    """

    digest: str
    site: str
    partition: str
    suite: str
    system: str
    groups: list[Group]
    totals: Totals
    cases: dict[str, str]
    current_mode: str = CURRENT
    left_out: list[LeftOut] = []
    assumed: dict[str, str] = {}
    fewer_nodes: dict[str, int] = Field(default={}, exclude_if=lambda cases: not cases)
    at_once: int = Field(default=1, ge=1, exclude_if=lambda jobs: jobs == 1)
    kind: str = Field(default="", exclude_if=lambda kind: not kind)
    of_kind: dict[str, Any] = Field(default={}, exclude_if=lambda data: not data)
    hosts: Nodes = Field(default=[], exclude_if=lambda hosts: not hosts)
    allowed_modes: list[str] = Field(default=[], exclude=True)
    repeated: dict[str, Message] = Field(default={}, exclude=True)
    not_needed: dict[str, Message] = Field(default={}, exclude=True)

    def nodes(self) -> list[str]:
        """Return the nodes of all jobs, those of later jobs too, each once."""
        if self.hosts:
            return list(self.hosts)
        return [*dict.fromkeys(chain.from_iterable(job.nodes for job in self.jobs()))]

    def jobs(self) -> Iterator[Job]:
        """Yield every job in the order of execution."""
        for group in self.groups:
            yield from group.jobs

    def steps(self) -> Iterator[Step]:
        """Yield every step in the order of execution."""
        for group in self.groups:
            yield from group.steps()

    def programs(self) -> Iterator[Step]:
        """Yield every step, and the load of each step that has one: all programs of the plan."""
        for step in self.steps():
            if step.program and step.launch != COUNTED:
                yield step
                if step.load:
                    yield step.load.step

    def packages(self) -> dict[str, list[str]]:
        """Return the names of the programs of the plan, by package; both sorted."""
        found = gathered((step.package, step.program) for step in self.programs())
        return {package: sorted({*names}) for package, names in sorted(found.items())}

    def binds_memory(self) -> bool:
        """Return whether a program of the plan binds memory."""
        return any(step.membind for step in self.programs())

    def to_run(self) -> list[Group]:
        """Return the needed groups of the current mode and of the modes that the run may enter."""
        modes = {self.current_mode, *self.allowed_modes}
        return [group for group in self.needed() if group.mode in modes]

    def needed(self) -> list[Group]:
        """Return all groups, without the steps in `not_needed`."""
        if not self.not_needed:
            return self.groups
        return [
            group.model_copy(
                update={
                    "jobs": [
                        job.model_copy(update={"steps": steps})
                        for job in group.jobs
                        if (steps := [step for step in job.steps if step.id not in self.not_needed])
                    ]
                }
            )
            for group in self.groups
        ]

    def jobs_to_run(self) -> Iterator[Job]:
        """Yield every job of the groups of `to_run` in the order of execution."""
        for group in self.to_run():
            yield from group.jobs

    def steps_to_run(self) -> Iterator[Step]:
        """Yield every step of the groups of `to_run` in the order of execution."""
        for job in self.jobs_to_run():
            yield from job.steps

    def nodes_to_run(self) -> list[str]:
        """Return the nodes of `steps_to_run`, each once."""
        return [*dict.fromkeys(chain.from_iterable(step.nodes for step in self.steps_to_run()))]


MOST_NAMED = 5
"""The largest number of steps that a message offers."""


def instance_named(word: str, steps: Iterable[Step], run: str) -> tuple[Step, StepInstance]:
    """Return the step and the instance that `word` names; without ``/<node>`` the whole step.

    Args:
        word: as of `step_named`, or this and ``/<node>`` or ``/<node>+<node>``.

    Raises:
        BadInput: as of `step_named`; or no such node or pair measures the step alone.
    """
    named = StepInstance.parse(word)
    step = step_named(named.step, steps, run)
    instance = named._replace(step=step.id)
    if instance.name and instance not in (instances := step.instances()):
        found = f"{word!r}{nearest(instance.name, [each.name for each in instances])}"
        raise bad_input("STEP", "", found, "a node that measures this step alone, or a pair")
    return step, instance


def step_named(word: str, steps: Iterable[Step], run: str = "") -> Step:
    """Return the step with the id or the number `word`, or whose id alone begins with it.

    Args:
        word: the id, the number with or without zeros before it, or the beginning of one id.
        run: the name of the run, for messages; empty for a plan without a run.

    Raises:
        BadInput: no step, or several steps, have this name; the message has the nearest ids.
    """
    by_id = {step.id: step for step in steps}
    if word in by_id:
        return by_id[word]
    numbers = {name.split("-", 1)[0].lstrip("0"): name for name in by_id}
    if word.isascii() and word.isdigit() and (name := numbers.get(word.lstrip("0"))):
        return by_id[name]
    begun = [name for name in by_id if word and name.startswith(word)]
    if len(begun) == 1:
        return by_id[begun[0]]
    if begun:
        listed = ", ".join(begun[:MOST_NAMED])
        more = f" and {len(begun) - MOST_NAMED} more" if len(begun) > MOST_NAMED else ""
        raise bad_input("STEP", "", f"{word!r}, which {len(begun)} ids begin with", listed + more)
    close = get_close_matches(word, by_id, n=MOST_NAMED, cutoff=0.4)
    hint = f", did you mean {', '.join(map(repr, close))}?" if close else ""
    status = PrintedCommand("proofmark", "status", of_run(run, NAME, "RUN"), "--steps")
    lists = f"{run}: {status}" if run else "the plan: proofmark plan -v"
    accepted = f"a step of {lists} lists them"
    raise bad_input("STEP", "", f"{word!r}{hint}", accepted)


def host_rank_cpus(step: Step, host_cpus: HostCpus | None) -> list[RankCpus]:
    """Return the CPUs of each rank on the machine: on real nodes the planned ones."""
    if host_cpus is None:
        return list(step.cpus)
    count = len(host_cpus)
    return [
        RankCpus(node, tuple(host_cpus[(virtual + node) % count] for virtual in cpus))
        for node, cpus in step.cpus
    ]


def host_numa_domains(step: Step, host_cpus: HostCpus | None) -> list[int]:
    """Return the NUMA domains of the machine that memory must come from; empty: any."""
    if host_cpus is None:
        return step.membind
    return [0] if step.membind else []
