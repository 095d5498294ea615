"""Monitoring of jobs: every state is reported within its limit, by a scripted scheduler."""

from __future__ import annotations

import errno
import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.fixtures.finished import write_execution
from tests.fixtures.kit import Kit, steps_of

from proofmark.common.errors import BadInput
from proofmark.jobs import watch as watch_module
from proofmark.jobs.execute import poll_until_done
from proofmark.jobs.job_request import BatchQueue, JobSupply
from proofmark.jobs.watch import JobMonitor
from proofmark.judge.judging import judge_run
from proofmark.machine.scheduler import (
    BUSY,
    DOWN,
    IDLE,
    NO_SUCH_JOB,
    NodeState,
    NodeUse,
    Request,
    SchedulerError,
    SchedulerUnavailable,
    SubmitLimitReached,
)
from proofmark.plan.plan import Job
from proofmark.runs.job_folder import JobFolder, JobStatus, State
from proofmark.runs.run import Run, site_of
from proofmark.site.execution import Queue


class Scripted:
    """A scheduler that reports the next of `words` at each query; the last one is repeated."""

    poll_s = 0.01
    isolates_jobs = True
    starts_when_stopped = True

    def __init__(self, *words: JobStatus | Exception | None, run: Run | None = None) -> None:
        self.words, self.run = list(words), run
        self.submitted: list[str] = []
        self.cancelled: list[str] = []
        self.alive: dict[str, str] = {}
        self.queries = 0
        self.conditions: Mapping[str, NodeState] = {}
        self.by_id: JobStatus | None = None
        self.refuses: Exception | None = None
        self.finishes = False

    def header(self, request: Request) -> list[str]:
        return []

    def host_list(self, request: Request) -> str:
        return ""

    def fan_out(self, request: Request) -> list[str]:
        return ["on_all() { :; }"]

    def submit(self, script: Path, request: Request) -> str:
        if self.refuses:
            raise self.refuses
        self.submitted.append(script.parent.name)
        return str(len(self.submitted))

    def find(self, name: str) -> str:
        return self.alive.get(name, "")

    def states(self, ids: Sequence[str]) -> Mapping[str, JobStatus]:
        self.queries += 1
        word = self.words.pop(0) if len(self.words) > 1 else self.words[0]
        if isinstance(word, Exception):
            raise word
        if self.finishes and self.run:
            for step in self.run.plan.steps():
                write_execution(self.run.folder / "workdir/steps" / step.id, "")
        return {} if word is None else dict.fromkeys(ids, word)

    def ended(self, job: str) -> JobStatus | None:
        return self.by_id

    def limits(self, job: str) -> str:
        return f"MaxWall of {job}: 1:00"

    def had_nodes(self, job: str) -> bool:
        return False

    def cancel(self, ids: Sequence[str]) -> None:
        self.cancelled += ids

    def nodes(self, names: Sequence[str]) -> Mapping[str, NodeState]:
        return self.conditions


def watch(
    kit: Kit, scheduler: Scripted, monkeypatch: pytest.MonkeyPatch, run: Run | None = None, **q: Any
) -> tuple[Run, list[str]]:
    """Monitor the jobs of a run until they end; return the run and the messages."""
    run = run or kit.run()
    scheduler.run = run
    monkeypatch.setattr(watch_module, "scheduler", lambda name: scheduler)
    monkeypatch.setattr("proofmark.jobs.scripts.scheduler", lambda name: scheduler)
    messages: list[str] = []
    jobs: list[Job] = [job for group in run.plan.groups for job in group.jobs]
    batch = BatchQueue("fake", Queue(**{"stall_timeout_s": 0.2, **q}))
    poll_until_done(JobMonitor(run, JobSupply(jobs), batch, messages.append), lambda: None)
    return run, messages


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (State.HELD, "held: XX, given up after 0 s"),
        (State.UNAVAILABLE, "its nodes are not available: XX, given up after 0 s"),
        (State.SUSPENDED, "suspended: XX, given up after 0 s"),
        pytest.param(
            State.UNKNOWN,
            "in an unknown state: XX, given up after 0 s",
            marks=pytest.mark.fault("job-state-unknown"),
        ),
        (State.ENDED_UNKNOWN, "ended, and its results are still missing: XX, given up after 0 s"),
        (State.KILLED, "killed: XX"),
        (State.CANCELLED, "cancelled by another user: XX"),
        (State.TIME_LIMIT, "stopped at its time limit: XX"),
        (State.NODE_FAILED, "lost a node: XX"),
        (State.PREEMPTED, "preempted: XX"),
    ],
)
def test_every_final_or_stuck_state_is_reported(
    kit: Kit, monkeypatch: pytest.MonkeyPatch, state: State, words: str
) -> None:
    scheduler = Scripted(JobStatus(State.RUNNING), JobStatus(state, "XX"))
    run, messages = watch(kit, scheduler, monkeypatch)
    assert judge_run(run).coverage.stopped == (f"job 00-0001: {words}; 2 of 2 steps left",)
    assert messages[-1] == f"job 00-0001: {words}"
    assert scheduler.cancelled == (["1"] if state.stuck else [])
    assert not list(run.folder.rglob("ticket.json"))


@pytest.mark.fault("job-time-limit")
@pytest.mark.parametrize("word", [State.TIME_LIMIT, State.PREEMPTED])
@pytest.mark.parametrize("further", [True, False])
def test_a_job_that_made_progress_is_submitted_again(
    kit: Kit, monkeypatch: pytest.MonkeyPatch, word: State, further: bool
) -> None:
    run, scheduler = kit.run(), Scripted(JobStatus(word, "XX"))
    first, _ = steps_of(run)
    submit = scheduler.submit

    def works(script: Path, request: Request) -> str:
        if further:
            write_execution(first, "")
        return submit(script, request)

    monkeypatch.setattr(scheduler, "submit", works)
    _, messages = watch(kit, scheduler, monkeypatch, run)
    # The second attempt makes no progress: it is not repeated.
    assert len(scheduler.submitted) == (2 if further else 1)
    assert (f"job 00-0001: {word.value}: XX; submitted again" in messages) == further
    assert "XX; " in judge_run(run).coverage.stopped[0]


@pytest.mark.parametrize("timeout", [500, 3000])
def test_a_job_that_made_no_progress_gets_the_time_of_its_longest_step_once(
    kit: Kit, monkeypatch: pytest.MonkeyPatch, timeout: int
) -> None:
    kit.case(timeout=timeout)
    run, scheduler = kit.run(), Scripted(JobStatus(State.TIME_LIMIT))
    requested: list[int] = []
    submit = scheduler.submit

    def noted(script: Path, request: Request) -> str:
        requested.append(request.seconds)
        return submit(script, request)

    monkeypatch.setattr(scheduler, "submit", noted)
    watch(kit, scheduler, monkeypatch, run)
    assert requested == ([600, 3000] if timeout == 3000 else [600])


@pytest.mark.fault("job-vanished")
def test_a_job_that_the_scheduler_no_longer_lists_is_reported(
    kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    scheduler = Scripted(JobStatus(State.RUNNING), None)
    scheduler.by_id = NO_SUCH_JOB
    run, _ = watch(kit, scheduler, monkeypatch)
    (line,) = judge_run(run).coverage.stopped
    assert line.startswith("job 00-0001: vanished: the scheduler no longer lists it, given up")
    assert scheduler.cancelled == []


@pytest.mark.fault("node-dies")
@pytest.mark.parametrize(
    ("state", "shown"),
    [
        (NodeState(NodeUse.DOWN, "down"), "lost a node: NODE: down down; "),
        (BUSY, "vanished: "),
        (None, "vanished: "),
    ],
)
@pytest.mark.parametrize("ended", [None, State.ENDED_UNKNOWN])
def test_a_job_that_is_forgotten_after_the_death_of_its_node_names_the_node(
    kit: Kit,
    monkeypatch: pytest.MonkeyPatch,
    ended: State | None,
    state: NodeState | None,
    shown: str,
) -> None:
    """A PBS server with default settings has no history: the job is gone, its node is down."""
    last = JobStatus(ended, "F") if ended else None
    scheduler = Scripted(JobStatus(State.RUNNING), last)
    scheduler.by_id = NO_SUCH_JOB
    run = kit.run()
    (group,) = run.plan.groups
    (node,) = group.jobs[0].nodes
    query = scheduler.states

    def breaks(ids: Sequence[str]) -> Mapping[str, JobStatus]:
        if scheduler.queries:
            scheduler.conditions = {node: state} if state else {}
        return query(ids)

    monkeypatch.setattr(scheduler, "states", breaks)
    watch(kit, scheduler, monkeypatch, run)
    (line,) = judge_run(run).coverage.stopped
    expected = shown.replace("NODE", node)
    if ended:
        expected = expected.replace("vanished: ", "ended, and its results are still missing: ")
    assert line.startswith(f"job 00-0001: {expected}")
    assert "given up after" in line


@pytest.mark.fault("job-vanished")
def test_a_job_is_neither_removed_nor_vanished_because_a_listing_lacks_it(
    kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The scheduler does not say of its id that it has no such job."""
    scheduler = Scripted(JobStatus(State.RUNNING), None)
    run, _ = watch(kit, scheduler, monkeypatch)
    (line,) = judge_run(run).coverage.stopped
    assert line.startswith("job 00-0001: the scheduler does not answer: it does not say whether")
    assert scheduler.cancelled == []
    assert len(list(run.folder.rglob("ticket.json"))) == 1  # the next command asks again
    scheduler.words = [JobStatus(State.RUNNING), JobStatus(State.ENDED)]
    scheduler.finishes = True
    watch(kit, scheduler, monkeypatch, run)
    assert judge_run(run).coverage.stopped == ()
    assert scheduler.submitted == ["00-0001"]


@pytest.mark.fault("nodes-unavailable")
@pytest.mark.parametrize(
    ("state", "words"),
    [
        (
            NodeState(NodeUse.DOWN, "offline DIMM"),
            "its nodes are not available: Q busy; NODE: down offline DIMM, given",
        ),
        (BUSY, "waiting: Q busy, given up"),
        (NodeState(NodeUse.RESERVED, "maint"), "waiting: Q busy, given up"),
    ],
)
def test_only_a_node_that_is_down_makes_a_job_unavailable(
    kit: Kit, monkeypatch: pytest.MonkeyPatch, state: NodeState, words: str
) -> None:
    """It went down after the submission."""
    scheduler = Scripted(JobStatus(State.WAITING, "Q busy"))
    submit = scheduler.submit

    def breaks(script: Path, request: Request) -> str:
        scheduler.conditions = dict.fromkeys(request.nodes, state)
        return submit(script, request)

    monkeypatch.setattr(scheduler, "submit", breaks)
    run, messages = watch(kit, scheduler, monkeypatch, queue_timeout_s=0.4)
    (node,) = site_of(run).hosts
    text = judge_run(run).coverage.stopped[0]
    assert text.startswith(f"job 00-0001: {words.replace('NODE', node)}")
    said = [line for line in messages if line.startswith("job 00-0001: its nodes are not")]
    assert len(said) == (2 if "down" in state else 0)  # at once, and at the end


@pytest.mark.parametrize("leaves", [True, False])
def test_a_submit_limit_is_tried_again_while_other_jobs_leave(
    kit: Kit, monkeypatch: pytest.MonkeyPatch, leaves: bool
) -> None:
    scheduler = Scripted(JobStatus(State.RUNNING), JobStatus(State.CANCELLED, "the end"))
    submit, tries = scheduler.submit, []

    def full(script: Path, request: Request) -> str:
        tries.append(request.name)
        if leaves and len(tries) > 3:
            return submit(script, request)
        raise SubmitLimitReached("qsub: would exceed the limit")

    monkeypatch.setattr(scheduler, "submit", full)
    limit = 30 if leaves else 0.4
    run, messages = watch(kit, scheduler, monkeypatch, stall_timeout_s=0.1, queue_timeout_s=limit)
    (line,) = judge_run(run).coverage.stopped
    expected = "cancelled by another user: the end" if leaves else "waiting: to be submitted: qsub"
    assert line.startswith(f"job 00-0001: {expected}")
    assert len(tries) > 3 or not leaves
    assert scheduler.cancelled == []
    assert not any("refused" in each for each in messages)


def test_a_job_that_is_no_longer_listed_after_its_end_is_complete(
    kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control of the faults here: its exit code is read from its own file."""
    run = kit.run()
    scheduler = Scripted(JobStatus(State.RUNNING), None)

    def submit(script: Path, request: Request) -> str:
        (script.parent / "attempt-1").mkdir()
        (script.parent / "attempt-1" / "exit").write_text("0\n")
        return "7"

    monkeypatch.setattr(scheduler, "submit", submit)
    scheduler.finishes = True
    _, messages = watch(kit, scheduler, monkeypatch, run)
    assert judge_run(run).coverage.stopped == ()
    assert messages == []


@pytest.mark.fault("job-requeued")
def test_a_job_that_is_requeued_again_and_again_is_given_up(
    kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = [JobStatus(State.RUNNING), JobStatus(State.WAITING, "again")] * 5
    scheduler = Scripted(*turns)
    run, _ = watch(kit, scheduler, monkeypatch)
    (line,) = judge_run(run).coverage.stopped
    assert "requeued too often: 4 times" in line
    assert scheduler.cancelled == ["1"]


def test_a_short_failure_of_the_scheduler_is_harmless(
    kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    scheduler = Scripted(
        SchedulerUnavailable("busy"), SchedulerUnavailable("busy"), JobStatus(State.CANCELLED)
    )
    run, messages = watch(kit, scheduler, monkeypatch, stall_timeout_s=30)
    assert "the scheduler does not answer: busy" in messages[0]
    assert "cancelled" in judge_run(run).coverage.stopped[0]


def test_a_refused_job_is_reported(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    scheduler = Scripted(None)
    scheduler.refuses = SchedulerError("sbatch: no such account")
    run, _ = watch(kit, scheduler, monkeypatch)
    assert "refused: sbatch: no such account" in judge_run(run).coverage.stopped[0]


@pytest.mark.parametrize(
    ("after", "last", "shown"),
    [
        (590, JobStatus(State.RUNNING), "stopped at its time limit: a signal stopped it after "),
        (20, JobStatus(State.RUNNING), "stopped by a signal: a signal stopped it; the "),
        (20, JobStatus(State.RUNNING, limit_s=20), "stopped at its time limit: a signal "),
        (20, JobStatus(State.RUNNING, "E by root", end=State.CANCELLED), "cancelled by another "),
    ],
)
def test_a_job_that_a_signal_stopped_is_named_without_a_history(
    kit: Kit, monkeypatch: pytest.MonkeyPatch, after: int, last: JobStatus, shown: str
) -> None:
    """The script notes the signal at once: a scheduler kills it before its probes have ended."""
    run, scheduler = kit.run(), Scripted(last, None)
    scheduler.by_id = NO_SUCH_JOB
    attempt = run.folder / "workdir/jobs/00-0001/attempt-1"
    query = scheduler.states

    def ends(ids: Sequence[str]) -> Mapping[str, JobStatus]:
        if scheduler.queries and not attempt.exists():
            attempt.mkdir()
            (attempt / "exit").write_text("143\n")
            (attempt / "stopped").write_text(f"{after}\n")
        return query(ids)

    monkeypatch.setattr(scheduler, "states", ends)
    watch(kit, scheduler, monkeypatch, run)
    (line,) = judge_run(run).coverage.stopped
    assert line.startswith(f"job 00-0001: {shown}")


def test_a_job_that_a_signal_stops_is_asked_for_at_once(
    kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PBS without a history has its reason while it ends, for some seconds."""
    monkeypatch.setattr("proofmark.jobs.watch._LOOK_S", 0.01)
    run, scheduler = kit.run(), Scripted(JobStatus(State.RUNNING))
    monkeypatch.setattr(scheduler, "poll_s", 60.0)
    monkeypatch.setattr(watch_module, "scheduler", lambda name: scheduler)
    monkeypatch.setattr("proofmark.jobs.scripts.scheduler", lambda name: scheduler)
    of_run: list[Job] = [job for group in run.plan.groups for job in group.jobs]
    jobs = JobMonitor(run, JobSupply(of_run), BatchQueue("fake"), lambda line: None)
    assert jobs.poll()
    jobs._changed -= 1e4  # it has run for hours
    assert jobs.pause == 60.0
    attempt = run.folder / "workdir/jobs/00-0001/attempt-1"
    attempt.mkdir()
    (attempt / "stopped").write_text("10000\n")
    began = time.monotonic()
    jobs.rest()
    assert time.monotonic() - began < 30


@pytest.mark.parametrize("exit_code", ["0", "143"])
@pytest.mark.parametrize(
    "cut", [State.TIME_LIMIT, State.CANCELLED, State.KILLED, State.NODE_FAILED]
)
def test_a_script_that_had_ended_was_not_stopped(
    kit: Kit, monkeypatch: pytest.MonkeyPatch, exit_code: str, cut: State
) -> None:
    """The limit of a job of Flux, or the epilog of Slurm or Grid Engine, ends after its script."""
    run, scheduler = kit.run(), Scripted(JobStatus(cut, "TO"))
    submit = scheduler.submit

    def works(script: Path, request: Request) -> str:
        for step in steps_of(run):
            write_execution(step, "")
        attempt = run.folder / "workdir/jobs/00-0001/attempt-1"
        attempt.mkdir()
        (attempt / "exit").write_text(f"{exit_code}\n")
        return submit(script, request)

    monkeypatch.setattr(scheduler, "submit", works)
    watch(kit, scheduler, monkeypatch, run)
    last = next(iter(run.folder.rglob("history.jsonl"))).read_text().splitlines()[-1]
    assert json.loads(last)["state"] == ("ENDED" if exit_code == "0" else cut.name)


def test_a_signal_is_named_with_the_words_of_the_scheduler(
    kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, scheduler = kit.run(), Scripted(JobStatus(State.ENDED_UNKNOWN, "EXIT TERM_LOAD: load"))
    submit = scheduler.submit

    def works(script: Path, request: Request) -> str:
        attempt = run.folder / "workdir/jobs/00-0001/attempt-1"
        attempt.mkdir()
        (attempt / "exit").write_text("143\n")
        (attempt / "stopped").write_text("20\n")
        return submit(script, request)

    monkeypatch.setattr(scheduler, "submit", works)
    watch(kit, scheduler, monkeypatch, run)
    (line,) = judge_run(run).coverage.stopped
    assert "a signal stopped it; the scheduler says EXIT TERM_LOAD: load" in line


def test_a_job_that_never_ran_has_lost_no_node(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    run, scheduler = kit.run(), Scripted(JobStatus(State.WAITING), None)
    scheduler.by_id = NO_SUCH_JOB
    node = next(iter(run.plan.jobs())).nodes[0]
    scheduler.conditions = {node: NodeState(NodeUse.DOWN, "d")}
    watch(kit, scheduler, monkeypatch, run)
    (line,) = judge_run(run).coverage.stopped
    expected = "vanished: the scheduler no longer lists it (deleted while it waited?), given up"
    assert line.startswith(f"job 00-0001: {expected}")
    assert f"now down: {node}: down d" in line


@pytest.mark.parametrize(
    ("had_nodes", "shown"),
    [
        (True, "lost a node: NODE: down drained Prolog error"),
        (False, "cancelled by another user: CANCELLED; now down: NODE: down drained Prolog error"),
    ],
)
def test_a_job_whose_node_could_not_start_it_names_the_node(
    kit: Kit, monkeypatch: pytest.MonkeyPatch, had_nodes: bool, shown: str
) -> None:
    run, scheduler = kit.run(), Scripted(JobStatus(State.CANCELLED, "CANCELLED"))
    monkeypatch.setattr(scheduler, "had_nodes", lambda job: had_nodes)
    node = next(iter(run.plan.jobs())).nodes[0]
    scheduler.conditions = {node: NodeState(NodeUse.DOWN, "drained", "Prolog error")}
    watch(kit, scheduler, monkeypatch, run)
    (line,) = judge_run(run).coverage.stopped
    assert line.startswith(f"job 00-0001: {shown.replace('NODE', node)}")


def test_a_job_that_never_starts_ends_at_once(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    never = JobStatus(State.UNAVAILABLE, "PENDING LIMIT", "queue.max_walltime_s")
    scheduler = Scripted(JobStatus(State.WAITING), never)
    run, _ = watch(kit, scheduler, monkeypatch, stall_timeout_s=3600)
    assert scheduler.cancelled == ["1"]
    (line,) = judge_run(run).coverage.stopped
    limit = "PENDING LIMIT; MaxWall of 1: 1:00; it never starts; change `queue.max_walltime_s`"
    assert limit in line


def test_a_job_whose_node_is_down_may_start(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    """A scheduler can say of a job that it never starts while its node is down."""
    never = JobStatus(State.UNAVAILABLE, "Can Never Run", "queue.options")
    scheduler = Scripted(never, never, JobStatus(State.CANCELLED))
    host = next(iter(kit.run().plan.jobs())).nodes[0]
    scheduler.conditions = {host: NodeState(NodeUse.DOWN, "offline")}
    run, _ = watch(kit, scheduler, monkeypatch, stall_timeout_s=3600)
    assert "cancelled by another user" in judge_run(run).coverage.stopped[0]


def test_a_refusal_that_may_end_is_repeated(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    scheduler = Scripted(JobStatus(State.CANCELLED))
    refusals = ["sbatch: Munge encode failed"] * 2

    def submit(script: Path, request: Request) -> str:
        if refusals:
            raise SchedulerUnavailable(refusals.pop(), code=1)
        return "41"

    monkeypatch.setattr(scheduler, "submit", submit)
    run, messages = watch(kit, scheduler, monkeypatch, stall_timeout_s=30)
    assert messages[0] == "job 00-0001: not accepted yet: sbatch: Munge encode failed"
    assert "cancelled" in judge_run(run).coverage.stopped[0]


def test_a_refusal_that_does_not_end_is_final(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    scheduler = Scripted(None)
    scheduler.refuses = SchedulerUnavailable("sbatch: Munge encode failed", code=1)
    run, _ = watch(kit, scheduler, monkeypatch)
    expected = "refused: sbatch: Munge encode failed, given up after 0 s"
    assert expected in judge_run(run).coverage.stopped[0]
    assert list(run.folder.rglob("ticket.json")), "the scheduler may have the job"


def test_a_submission_without_a_response_is_searched_before_it_is_repeated(
    kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    scheduler = Scripted(JobStatus(State.CANCELLED))
    tries: list[str] = []

    def submit(script: Path, request: Request) -> str:
        tries.append(request.name)
        scheduler.alive[request.name] = "41"  # it was submitted
        raise SchedulerUnavailable("timed out")

    monkeypatch.setattr(scheduler, "submit", submit)
    run, _ = watch(kit, scheduler, monkeypatch, stall_timeout_s=30)
    assert len(tries) == 1
    assert (
        '"job": "41", "state": "CANCELLED"' in next(run.folder.rglob("history.jsonl")).read_text()
    )


def test_a_script_that_fails_stops_the_run(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    scheduler = Scripted(JobStatus(State.FAILED, "exit code 74"))
    with pytest.raises(BadInput, match="job 00-0001: found exit code 74; no message; "):
        watch(kit, scheduler, monkeypatch)


def test_idle_nodes_come_first_and_no_more_jobs_than_the_site_allows(
    kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    kit.case(suites={"quick": {"scope": "each-node", "sweep": {"size": 1}}})
    scheduler = Scripted(
        JobStatus(State.RUNNING), JobStatus(State.RUNNING), JobStatus(State.CANCELLED)
    )
    scheduler.conditions = {"n1": BUSY, "n2": DOWN, "n3": IDLE}
    site = kit.site(hosts=("n1", "n2", "n3"))
    partition = site.partition.model_copy(update={"nodes_per_job": 1})
    monkeypatch.setattr(
        "proofmark.machine.schedulers.none.NoScheduler.header", lambda self, request: []
    )
    run = kit.run(site=site.model_copy(update={"partition": partition}))
    watch(kit, scheduler, monkeypatch, run, max_jobs=2)
    assert scheduler.submitted == ["00-0003", "00-0001", "00-0002"]


def test_one_query_for_all_jobs_and_longer_pauses_without_changes(
    kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    kit.case(suites={"quick": {"scope": "each-node", "sweep": {"size": 1}}})
    site = kit.site(hosts=[f"n{number}" for number in range(20)])
    partition = site.partition.model_copy(update={"nodes_per_job": 1})
    monkeypatch.setattr(
        "proofmark.machine.schedulers.none.NoScheduler.header", lambda self, request: []
    )
    run = kit.run(site=site.model_copy(update={"partition": partition}))
    scheduler = Scripted(JobStatus(State.RUNNING), JobStatus(State.CANCELLED))
    watch(kit, scheduler, monkeypatch, run, max_jobs=20)
    assert (len(scheduler.submitted), scheduler.queries) == (20, 2)
    jobs = JobMonitor(run, JobSupply([]), BatchQueue("fake"), lambda line: None)
    scheduler.poll_s = 15.0
    jobs._changed -= 100
    assert jobs.pause == pytest.approx(5, abs=0.2)
    jobs._changed -= 10_000
    assert jobs.pause == 15.0


@pytest.mark.fault("disk-full")
def test_a_full_disk_is_reported_with_ticket_json_and_leaves_no_job(
    kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, scheduler = kit.run(), Scripted(JobStatus(State.CANCELLED))
    opened = os.open
    room = 1  # for ticket.json before the submission, not for the one with the id

    def full(path: str | Path, *args: Any, **kwargs: Any) -> int:
        nonlocal room
        if Path(path).name == "ticket.json.new":
            room -= 1
            if room < 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return opened(path, *args, **kwargs)

    monkeypatch.setattr(os, "open", full)
    with pytest.raises(BadInput, match=r"ticket\.json: found cannot be written: No space left"):
        watch(kit, scheduler, monkeypatch, run)
    assert scheduler.cancelled == ["1"]
    room = 100
    watch(kit, scheduler, monkeypatch, run)
    assert scheduler.submitted == ["00-0001", "00-0001"]


def test_steps_that_became_ready_wait_for_the_submitted_part_of_their_job(
    kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The controller was killed while the first part of a job was in the queue."""
    run, scheduler = kit.run(), Scripted(JobStatus(State.RUNNING), JobStatus(State.ENDED))
    job = run.plan.groups[0].jobs[0]
    first, second = (job.model_copy(update={"steps": [step]}) for step in job.steps)
    folder = JobFolder(run, first)
    folder.save(replace(folder.create("fake", "name"), id="77"))
    write_execution(steps_of(run)[0], "")
    parts: list[str] = []

    def submit(script: Path, request: Request) -> str:
        assert scheduler.queries == 2  # the first part ended before
        parts.append(script.read_text())
        write_execution(steps_of(run)[1], "")
        return "78"

    monkeypatch.setattr(scheduler, "submit", submit)
    monkeypatch.setattr(watch_module, "scheduler", lambda name: scheduler)
    monkeypatch.setattr("proofmark.jobs.scripts.scheduler", lambda name: scheduler)
    messages: list[str] = []
    monitor = JobMonitor(run, JobSupply([second]), BatchQueue("fake"), messages.append)
    poll_until_done(monitor, lambda: None)
    (script,) = parts
    assert (job.steps[0].id in script, job.steps[1].id in script) == (False, True)
    assert messages == []


@pytest.mark.parametrize("reservation", ["", "proofmark-gate-1"])
def test_a_job_is_submitted_without_the_nodes_that_are_down(
    kit: Kit, monkeypatch: pytest.MonkeyPatch, reservation: str
) -> None:
    """A gate holds its nodes by a reservation. The job waits for a node in one of others."""
    header = "proofmark.machine.schedulers.none.NoScheduler.header"
    monkeypatch.setattr(header, lambda self, request: [])
    kit.case(suites={"quick": {"scope": "each-node", "sweep": {"size": 1}}})
    run = kit.run(site=kit.site(hosts=("n1", "n2", "n3")))
    scheduler = Scripted(JobStatus(State.ENDED, ""), run=run)
    scheduler.finishes = True
    reserved, down = NodeState(NodeUse.RESERVED, "MAINT"), NodeState(NodeUse.DOWN, "bad DIMM")
    scheduler.conditions = {"n1": reserved, "n2": BUSY, "n3": down}
    _, messages = watch(kit, scheduler, monkeypatch, run, reservation=reservation)
    (script,) = run.folder.glob("workdir/jobs/*/job.sh")
    assert "\nNODES=2\n" in script.read_text()
    assert any("without n3: down bad DIMM" in line for line in messages)


@pytest.mark.fault("states-of-another-type")
def test_a_plug_in_that_names_states_by_text_is_refused_before_a_job(
    kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control is the test above: its states have the type."""
    run = kit.run()
    scheduler = Scripted(JobStatus(State.ENDED, ""), run=run)
    states: Any = dict.fromkeys(run.plan.nodes(), "idle")
    scheduler.conditions = states
    with pytest.raises(BadInput, match="Scripted: nodes: found 'idle'; accepted: a NodeState"):
        watch(kit, scheduler, monkeypatch, run)
    assert scheduler.submitted == []
