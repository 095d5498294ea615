"""The progress of a run by mode and case, its end, its jobs, and the progress of each node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from proofmark.plan.plan import Job
from proofmark.plan.step import Step
from proofmark.runs.job_folder import JobFolder, last_state
from proofmark.runs.progress import Progress, RemainingTime
from proofmark.runs.run import Run
from proofmark.runs.step_state import StepState, state_of


@dataclass(frozen=True)
class CaseProgress:
    """The steps of one case in one mode.

    Attributes:
        done: the number of steps with a result, also of those that failed.
        failed: the number of results other than exit code 0.
        waiting: the number of steps without a result that do not run, also of interrupted ones.
        measured_s: the seconds of the results together.
        left_s: the expected seconds of the other steps.
    """

    mode: str
    case: str
    steps: int
    done: int
    failed: int
    running: int
    waiting: int
    measured_s: float
    left_s: float


def case_progress(run: Run, current: Progress) -> list[CaseProgress]:
    """Return the progress of each case in each mode, in the order of the plan."""
    of_step = {state.step.id: state for state in current.steps}
    groups: dict[tuple[str, str], list[StepState]] = {}
    for group in run.plan.to_run():
        for job in group.jobs:
            for step in job.steps:
                groups.setdefault((group.mode, step.case), []).append(of_step[step.id])
    return [_of_case(mode, case, states, current.left) for (mode, case), states in groups.items()]


def _of_case(
    mode: str, case: str, states: Sequence[StepState], left: RemainingTime
) -> CaseProgress:
    done = sum(state.state == "done" for state in states)
    running = sum(state.state == "running" for state in states)
    return CaseProgress(
        mode=mode,
        case=case,
        steps=len(states),
        done=done,
        failed=sum(state.failed for state in states),
        running=running,
        waiting=len(states) - done - running,
        measured_s=sum(state.seconds or 0.0 for state in states),
        left_s=sum(left.by_step.get(state.step.id, 0.0) for state in states),
    )


def other_modes(run: Run) -> dict[str, int]:
    """Return the number of steps of each mode that the run does not enter."""
    entered = {group.mode for group in run.plan.to_run()}
    return {
        group.mode: sum(len(job.steps) for job in group.jobs)
        for group in run.plan.needed()
        if group.mode not in entered
    }


def unfinished_jobs(run: Run, current: Progress) -> dict[str, str]:
    """Return the last state of each submitted job with a step that has no result, by its id."""
    open_steps = {state.step.id for state in current.steps if state.state != "done"}
    found: dict[str, str] = {}
    for group in run.plan.to_run():
        for job in group.jobs:
            unfinished = any(step.id in open_steps for step in job.steps)
            if unfinished and (state := last_state(JobFolder(run, job))):
                found[job.id] = state
    return found


def span(current: Progress) -> tuple[float, float] | None:
    """Return the start of the first and the end of the last result, seconds since 1970.

    None if no result has both.
    """
    started = [state.started for state in current.steps if state.started and state.ended]
    ended = [state.ended for state in current.steps if state.ended]
    return (min(started), max(ended)) if started and ended else None


MEASURED, RUNNING, FAILED, WAITING, EXCLUDED = (
    "measured",
    "running",
    "failed",
    "waiting",
    "excluded",
)
NODE_STATES = (FAILED, EXCLUDED, RUNNING, WAITING, MEASURED)
"""The states of a node. The first one that applies counts."""
MOST_INSTANCES = 50_000
"""The largest number of folders of nodes that are read, unless all are requested."""
MISSING = "missing"
"""The state of a measurement that a finished step lacks."""


@dataclass
class NodeCounts:
    """The measurements of one node: each step counts once.

    Attributes:
        done: with exit code 0.
        failed: with another exit code, also of steps that several nodes measure together.
        alone: the failed ones that only this node measured.
        missing: those that a finished step lacks: the node was left out.
    """

    done: int = 0
    failed: int = 0
    alone: int = 0
    running: int = 0
    waiting: int = 0
    missing: int = 0

    def add(self, state: str, nodes: int) -> None:
        """Count a measurement of `nodes` nodes together; `state` is the name of a count."""
        setattr(self, state, getattr(self, state) + 1)
        if state == "failed" and nodes == 1:
            self.alone += 1

    def plus(self, other: NodeCounts) -> NodeCounts:
        """Return the sums of both."""
        return NodeCounts(*(a + b for a, b in zip(self.key, other.key, strict=True)))

    @property
    def key(self) -> tuple[int, ...]:
        """The counts, in the order of the attributes."""
        return (self.done, self.failed, self.alone, self.running, self.waiting, self.missing)

    @property
    def state(self) -> str:
        """One of `NODE_STATES`. A failure of several nodes is the failure of none of them."""
        applies = {
            FAILED: self.alone,
            EXCLUDED: self.missing,
            RUNNING: self.running,
            WAITING: self.waiting,
        }
        return next((state for state, count in applies.items() if count), MEASURED)


@dataclass(frozen=True)
class NodeProgress:
    """The nodes of a run.

    Attributes:
        counts: the counts of each node, in the order of the plan.
        without: the planned nodes that jobs did not get, with the reason, by job.
        unread: the steps whose nodes were not read one by one, because there were more than
            `MOST_INSTANCES`. All their nodes count like the step.
    """

    counts: Mapping[str, NodeCounts]
    without: Mapping[str, str] = field(default_factory=dict)
    unread: Sequence[str] = ()

    def groups(self) -> dict[str, list[str]]:
        """Return the nodes of each state that a node has, in the order of `NODE_STATES`."""
        by_state: dict[str, list[str]] = {state: [] for state in NODE_STATES}
        for node, counts in self.counts.items():
            by_state[counts.state].append(node)
        return {state: nodes for state, nodes in by_state.items() if nodes}


def node_progress(run: Run, states: Sequence[StepState], *, every: bool = False) -> NodeProgress:
    """Return the progress of each node of the steps that `run` runs.

    A step that ended with exit code 0 on all of its nodes is not read node by node.

    Args:
        states: the states of its steps (`proofmark.runs.progress.progress`).
        every: whether the folders of all nodes are read, also more than `MOST_INSTANCES`.
    """
    of_step = {state.step.id: state for state in states}
    counts: dict[str, NodeCounts] = {}
    without: dict[str, str] = {}
    unread: list[str] = []
    room = MOST_INSTANCES
    for group in run.plan.to_run():
        for job in group.jobs:
            if reason := _without(run, job):
                without[job.id] = reason
            common = NodeCounts()
            own: dict[str, NodeCounts] = {}
            for step in job.steps:
                state = of_step[step.id]
                detailed = _is_detailed(state, left_out=bool(reason))
                if detailed and not every and step.measurements > room:
                    unread.append(step.id)
                    detailed = False
                if not detailed and _measures_each_node(step):
                    common.add(_name(state), 1 if step.scope == "each-node" else len(step.nodes))
                    continue
                if detailed:
                    room -= step.measurements
                for name, nodes in _measurements(run, step, state, detailed=detailed):
                    for node in nodes:
                        own.setdefault(node, NodeCounts()).add(name, len(nodes))
            for node in job.nodes:
                total = common.plus(own.get(node, NodeCounts()))
                counts[node] = total.plus(counts[node]) if node in counts else total
    return NodeProgress(counts, without, unread)


def _without(run: Run, job: Job) -> str:
    """Return the nodes that `job` did not get, with the reason; empty if it got all."""
    events = JobFolder(run, job).history()
    return next((event["without"] for event in reversed(events) if event["without"]), "")


def _is_detailed(state: StepState, *, left_out: bool) -> bool:
    """Return whether the nodes of a step can differ in their state."""
    if state.step.scope == "job" or state.state in ("waiting", "unreadable"):
        return False
    return state.state != "done" or state.rc != 0 or left_out


def _measures_each_node(step: Step) -> bool:
    """Return whether each node of `step` has one measurement."""
    return step.scope != "each-pair" or 2 * step.measurements == len(step.nodes)


def _name(state: StepState) -> str:
    """Return the name of the count of a step that all of its nodes have."""
    if state.state == "done":
        return "failed" if state.failed else "done"
    return "running" if state.state == "running" else "waiting"


def _measurements(
    run: Run, step: Step, state: StepState, *, detailed: bool
) -> Iterator[tuple[str, list[str]]]:
    """Yield the name of the count and the nodes of each measurement of `step`."""
    for instance, nodes in step.instances().items():
        if not detailed:
            yield _name(state), nodes
            continue
        files = run.files.step(str(instance))
        of_nodes = state_of(files, step, active=state.state == "running")
        lacking = of_nodes.state == "waiting" and state.state == "done"
        yield MISSING if lacking else _name(of_nodes), nodes
