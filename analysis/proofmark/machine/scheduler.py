"""The base classes of schedulers and of their listings of nodes, and the request of a job.

Also which nodes of a run a stage works on: those that are up now if nodes join the run, and no node
that an active reservation keeps for other people.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import ClassVar, TypeVar

from proofmark.common.errors import BadInput, bad_input
from proofmark.common.nodesets import folded
from proofmark.common.plugins import Plugins
from proofmark.common.progress_lines import say
from proofmark.machine.outcome import NodeError, NodeErrors, Outcome, call_for_nodes
from proofmark.plan.kinds import kind_of
from proofmark.runs.job_folder import JobStatus, State
from proofmark.runs.run import Run
from proofmark.runs.run_files import JobFiles
from proofmark.site.execution import Queue
from proofmark.site.inventory import Site

NO_SUCH_JOB = JobStatus(State.VANISHED, "the scheduler no longer lists it")
"""The state of a job that has ended, and of which the scheduler keeps no record."""

_SHOWN = 5
"""The nodes that the reason of a job names."""


Ask = Callable[..., str]
"""Runs a command where the scheduler is installed, and returns what it prints.

Raises:
    NodeError: it did not start, gave no answer in time, or its exit code is not 0.
"""


@dataclass(frozen=True)
class QueueLimits:
    """The limits of a partition or queue of the scheduler; None is no limit.

    Attributes:
        default: whether jobs are submitted to it if they name none.
        max_walltime_s: the longest time limit of a job, in seconds.
        max_nodes: the largest number of nodes of a job.
        max_cpus: the largest number of CPUs of a job, on all of its nodes.
        closed: why it starts no job now, in words of the scheduler; empty if it starts jobs.
        source: the command that shows them.
    """

    default: bool = False
    max_walltime_s: int | None = None
    max_nodes: int | None = None
    max_cpus: int | None = None
    closed: str = ""
    source: str = ""


class SchedulerError(NodeError):
    """The scheduler refused a command for good.

    Attributes:
        code: the exit code of the command; 0 if it gave none.
        answer: all that the command printed about its failure.
    """

    kind: ClassVar[Outcome] = Outcome.UNEXPECTED

    def __init__(self, text: str, *, code: int = 0, answer: str = "") -> None:
        super().__init__(self.kind, text)
        self.args = (text,)
        self.code, self.answer = code, answer


class SchedulerUnavailable(SchedulerError):
    """The scheduler did not answer, or by a refusal that may end; the command may be repeated."""

    kind = Outcome.NO_ANSWER


class NoCommand(SchedulerError):
    """A command of the scheduler is not installed on this host."""

    kind = Outcome.UNREACHABLE


class SubmitLimitReached(SchedulerError):
    """The scheduler takes no further job until others leave; the job may be submitted later."""


@dataclass(frozen=True)
class Request:
    """The resources and settings that a job requests.

    Attributes:
        name: unique to this job of this run; at most 15 characters, the first one a letter.
        log: absolute path; the output of the job is appended.
        queue: the site's settings of its scheduler.
        independent: whether each node measures alone, so that the job continues if a node fails.
        tasks: the numbers of the ranks on each node, of the step with the most ranks. They are
            0, 1, … without a gap, and each node has one at least.
        threads: the largest number of CPUs of a rank.
    """

    name: str
    nodes: Sequence[str]
    seconds: int
    log: Path
    queue: Queue
    independent: bool = False
    cpus: int = 1
    tasks: Sequence[Sequence[int]] = ()
    threads: int = 1

    @property
    def host_file(self) -> Path:
        """The file of `Scheduler.host_list`, beside the messages of the job."""
        return JobFiles(self.log.parent).hosts

    @property
    def script(self) -> Path:
        """The script of the job, beside its messages."""
        return JobFiles(self.log.parent).script

    @property
    def clock(self) -> str:
        """The time limit as ``HH:MM:SS``."""
        minutes, seconds = divmod(self.seconds, 60)
        return f"{minutes // 60:02d}:{minutes % 60:02d}:{seconds:02d}"


class NodeUse(StrEnum):
    """Whether a node starts jobs."""

    IDLE = "idle"
    BUSY = "busy"
    """Its jobs, or a boot, must end first."""
    RESERVED = "reserved"
    """It only starts the jobs of its reservation."""
    DOWN = "down"
    """It starts none until a person or a repair changes that."""


class NodeState(str):
    """The state of a node for a job. As a text it has its use, and the words of its scheduler."""

    use: NodeUse

    def __new__(cls, use: NodeUse, *words: str) -> NodeState:
        """Return the state `use`; `words` are the state and the reason in words of others."""
        made = super().__new__(cls, " ".join(filter(None, (use, *words))))
        made.use = use
        return made


IDLE, BUSY, DOWN = (NodeState(use) for use in (NodeUse.IDLE, NodeUse.BUSY, NodeUse.DOWN))


NodeStates = Mapping[str, NodeState]
"""The states of nodes, by their names."""
JobStatuses = Mapping[str, JobStatus]
"""The states of jobs, by their ids."""
Queues = dict[str, QueueLimits]
"""The limits of queues, by their names."""


class Scheduler(ABC):
    """Base class of schedulers.

    All methods except `header`, `host_list` and `fan_out` call commands of the scheduler. They
    raise `SchedulerUnavailable` if it does not answer.

    Attributes:
        queue: the settings of the queue whose jobs and nodes are meant.
        poll_s: the longest pause between two polls, in seconds.
        isolates_jobs: whether two jobs never run on the same node at the same time.
        stop_command: the program that ends a job; empty if jobs are child processes.
        starts_when_stopped: whether `fan_out` still starts processes in a job that was cancelled,
            or has reached its time limit. If not, a process stays on each node and probes it then.
        confines_to_cpus: whether a job may be confined to the CPUs that it requests. The slots of
            Grid Engine are a number only.
        own_launcher: the launcher of the scheduler's own MPI, which the probe of programs does not
            recognize; empty if there is none.
        replaced_launchers: the launcher that starts ranks in its jobs, by the launcher of the MPI
            that cannot, if the site names none.
    """

    queue: Queue = Queue()
    poll_s: ClassVar[float]
    isolates_jobs: ClassVar[bool]
    stop_command: ClassVar[str]
    starts_when_stopped: ClassVar[bool] = True
    confines_to_cpus: ClassVar[bool] = True
    own_launcher: ClassVar[str] = ""
    replaced_launchers: ClassVar[Mapping[str, str]] = {}

    @abstractmethod
    def header(self, request: Request) -> list[str]:
        """Return the first lines of the job script.

        Raises:
            BadInput: the scheduler cannot run such a job.
        """

    def host_list(self, request: Request) -> str:
        """Return the text of `Request.host_file`; empty if the header names the nodes.

        Raises:
            BadInput: the scheduler cannot take so many nodes.
        """
        return ""

    @abstractmethod
    def fan_out(self, request: Request) -> list[str]:
        """Return the lines of the shell function ``on_all SCRIPT ARGUMENT…`` of the job script.

        The function runs the script by sh on every node of the job, waits for all, and forwards
        SIGTERM. It is the last command of its shell, so that it may ``exec``.
        """

    @abstractmethod
    def submit(self, script: Path, request: Request) -> str:
        """Submit `script` and return the id of the job.

        Raises:
            SubmitLimitReached: it takes no further job now.
            SchedulerError: the scheduler refuses the job.
        """

    def trial(self, script: Path, request: Request) -> bool:
        """Ask whether the scheduler takes the job of `script`, which is not submitted.

        Returns:
            Whether the scheduler can be asked that.

        Raises:
            SchedulerError: it refuses the job.
        """
        return False

    def queue_limits(self, ask: Ask) -> Queues:
        """Return the limits of the queues, by name; empty if the scheduler has no command for it.

        Raises:
            NodeError: as `ask`.
        """
        return {}

    @abstractmethod
    def find(self, name: str) -> str:
        """Return the id of the job `name` that has not ended; empty if there is none."""

    @abstractmethod
    def states(self, ids: Sequence[str]) -> JobStatuses:
        """Return the state of each job, by one call; jobs that it does not list are omitted."""

    @abstractmethod
    def ended(self, job: str) -> JobStatus | None:
        """Return the state of a job that `states` does not list; None if it is not known.

        It is asked for by its id: a listing can leave out a job that still waits or runs. The state
        is `NO_SUCH_JOB` only if the scheduler says of this id that it has no such job.
        """

    def had_nodes(self, job: str) -> bool:
        """Return whether a job that ended had got its nodes; False if the scheduler forgets it."""
        return False

    def limits(self, job: str) -> str:
        """Return the limits for one job that an administrator stated, in words of the scheduler.

        Args:
            job: the id of a job in the queue.
        """
        return ""

    @abstractmethod
    def cancel(self, ids: Sequence[str]) -> None:
        """End the jobs; the method need not wait for their end."""

    def unfit(self) -> str:
        """Return why the installed version cannot run the jobs of the kit; empty if it can.

        Raises:
            SchedulerError: the version cannot be read.
        """
        return ""

    @abstractmethod
    def nodes(self, names: Sequence[str]) -> NodeStates:
        """Return the state of each node with a known one."""


def is_down(state: NodeState) -> bool:
    """Return whether a node with `state` is out of service.

    No other function decides that. A reserved node is not: its reservation ends.
    """
    return state.use is NodeUse.DOWN


def is_closed(state: NodeState, reservation: str = "") -> bool:
    """Return whether a node with `state` starts no job now: it is down, or reserved for others.

    `reservation` is that of the job; empty if it has none.
    """
    return is_down(state) or (not reservation and state.use is NodeUse.RESERVED)


def waits_for(status: JobStatus, nodes: Sequence[str], states: NodeStates) -> JobStatus:
    """Return `status`, or UNAVAILABLE if the job waits for a node that is down or drained.

    The words for which a job waits do not decide: a scheduler has the same for a node that is busy.
    A node in a reservation of others is not down: the reservation ends.
    """
    down = [f"{node}: {states[node]}" for node in nodes if is_down(states.get(node, IDLE))]
    if not down or not (status.state is State.WAITING or status.key):
        return status
    return JobStatus(State.UNAVAILABLE, "; ".join(filter(None, (status.reason, *down[:_SHOWN]))))


@dataclass(frozen=True)
class NodeStatus:
    """The status of a node, as the scheduler reports it.

    Attributes:
        out: whether the node gets no new jobs.
        reserved: whether the node is only out because it is in a reservation, whose jobs start.
        listed: whether the scheduler lists the node.
    """

    out: bool
    idle: bool
    reason: str = ""
    states: tuple[str, ...] = field(default=(), compare=False)
    reserved: bool = field(default=False, compare=False)
    listed: bool = True

    @property
    def why(self) -> str:
        """The reason for which the node is out; without one its state."""
        if self.reason or not self.states:
            return self.reason
        return f"state {', '.join(self.states)}, no reason is given"

    def out_by_others(self, own: Collection[str]) -> bool:
        """Return whether the node is out, and not by a drain with one of the reasons `own`.

        Each command decides by this function whose drain it is. It resumes no node that is out by
        others, and replaces no reason of others.
        """
        return self.out and self.reason not in own


NodeStatuses = dict[str, NodeStatus]
"""The status of nodes, by their names."""


class DrainingScheduler(Scheduler):
    """Base class of schedulers whose nodes can be drained and resumed.

    Its own methods raise `NodeError` if the scheduler refuses or does not answer, or if its answer
    cannot be read.
    """

    @abstractmethod
    def node_status(self, nodes: Sequence[str]) -> NodeStatuses:
        """Return the status of each node; a node that the scheduler does not list is out."""

    @staticmethod
    def unlisted(program: str) -> NodeStatus:
        """Return the status of a node that `program` does not list. It must not be changed."""
        reason = f"{program} does not list the node"
        return NodeStatus(out=True, idle=False, reason=reason, listed=False)

    @abstractmethod
    def drain(self, nodes: Sequence[str], reason: str) -> None:
        """Drain the nodes: jobs that run continue, and no new job starts."""

    @abstractmethod
    def resume(self, nodes: Sequence[str]) -> None:
        """Resume the nodes: new jobs may start."""

    @abstractmethod
    def reservations(self) -> dict[str, list[str]]:
        """Return the nodes of each reservation that is active now."""

    @abstractmethod
    def missing_permission(self, node: str) -> str:
        """Return why this user may not drain `node`; empty if the user may. It changes nothing.

        Raises:
            NodeError: UNKNOWN if the scheduler does not report the rights; the text has the
                command that shows them. Another outcome if the scheduler does not answer.
        """


class ReservingScheduler(DrainingScheduler):
    """Base class of schedulers that can reserve nodes for the jobs of one user.

    Jobs that run on reserved nodes continue. A new job starts there only if it names the
    reservation (`Queue.reservation`) and is one of the user. The methods raise `NodeError` if the
    scheduler refuses or does not answer.
    """

    @abstractmethod
    def reserve(self, name: str, nodes: Sequence[str], user: str) -> None:
        """Reserve exactly `nodes` from now on, without an end that matters.

        An active reservation of this name is changed.
        """

    @abstractmethod
    def delete_reservation(self, name: str) -> None:
        """Delete the reservation `name`."""


Kind = TypeVar("Kind", bound=Scheduler)


SCHEDULERS = Plugins(Scheduler, "proofmark.machine.schedulers", "partition", "scheduler")
"""All schedulers; those of a site are entry points of this group."""


def scheduler(name: str, queue: Queue | None = None) -> Scheduler:
    """Return the scheduler `name` for the jobs and nodes of `queue`.

    Raises:
        BadInput: there is no such scheduler.
    """
    chosen = SCHEDULERS.get(name)()
    chosen.queue = queue or chosen.queue
    return chosen


def draining(name: str, queue: Queue | None = None) -> DrainingScheduler:
    """Return the scheduler `name` if it is a `DrainingScheduler`.

    Raises:
        BadInput: there is no such scheduler, or the kit cannot drain its nodes.
    """
    return of_kind(scheduler(name, queue), name, DrainingScheduler, "drain")


def of_kind(chosen: Scheduler, name: str, kind: type[Kind], verb: str) -> Kind:
    """Return a scheduler that is of a kind; the message of a refusal has the verb.

    Raises:
        BadInput: it is not of this kind.
    """
    if isinstance(chosen, kind):
        return chosen
    accepted = (other for other in SCHEDULERS.names() if issubclass(SCHEDULERS.get(other), kind))
    found = f"{name!r}, whose nodes the kit cannot {verb}"
    raise bad_input("", "partition.scheduler", found, ", ".join(accepted))


def present(run: Run, site: Site, nodes: Sequence[str], begun: Collection[str] = ()) -> list[str]:
    """Return `nodes`; if nodes arrive, those that `site` selects and that are not down.

    A node that is down or drained waits. All are up if the scheduler does not answer.

    Args:
        site: the partition under the limit.
        begun: nodes that this run has drained itself. They are returned, too.
    """
    if not kind_of(run.plan).nodes_arrive:
        return list(nodes)
    chosen, own = [n for n in nodes if n in site.hosts], site.partition.queue.reservation
    try:
        asked = scheduler(site.partition.scheduler, site.partition.queue)
        states = asked.nodes(chosen) if chosen else {}
    except (SchedulerError, BadInput):
        states = {}
    waiting = [n for n in chosen if is_closed(states.get(n, IDLE), own) and n not in begun]
    if waiting:
        say(f"{folded(waiting)}: down or drained; the run waits for them")
    return [node for node in chosen if node not in waiting]


def kept_for_others(scheduler: DrainingScheduler, nodes: Sequence[str], own: str) -> NodeErrors:
    """Return the nodes in an active reservation of others, or all nodes if that is unknown.

    Each command decides by this function who has reserved a node. A node that is HELD is in such a
    reservation.

    Args:
        own: the reservation of the own jobs; empty if there is none.
    """
    reserved: dict[str, list[str]] = {}
    unknown = call_for_nodes(lambda _: reserved.update(scheduler.reservations()), nodes[:1])
    if unknown:
        return dict.fromkeys(nodes, *unknown.values())
    names: dict[str, list[str]] = {}
    for name, members in reserved.items():
        for node in set(nodes).intersection(members) if name != own else ():
            names.setdefault(node, []).append(name)
    return {
        node: NodeError(Outcome.HELD, f"in the reservation {', '.join(found)} of another person")
        for node, found in names.items()
    }


def without_reservation(statuses: Mapping[str, NodeStatus]) -> NodeStatuses:
    """Return the statuses for a user whose jobs start in the reservations of the nodes."""
    return {
        node: replace(status, out=False, states=(), reserved=False) if status.reserved else status
        for node, status in statuses.items()
    }
