"""A poll that fails is repeated, and the jobs go on, also if a command answers wrongly."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from tests.fixtures.kit import Kit, make_kit
from tests.unit.jobs.test_watch import Scripted

from proofmark.common.errors import BadInput, Stopped
from proofmark.jobs import watch
from proofmark.jobs.execute import execute, poll_until_done
from proofmark.jobs.job_request import BatchQueue, JobSupply
from proofmark.jobs.watch import JobMonitor
from proofmark.judge.judging import judge_run
from proofmark.machine.scheduler import SchedulerUnavailable
from proofmark.runs.job_folder import JobStatus, State
from proofmark.runs.run import Run
from proofmark.site.execution import Queue

JOB = "1234.pbs01"
QSUB = f"""#!/bin/sh
for script; do :; done
sh "$script" >"$PROOFMARK_FAKE/log" 2>&1 &
echo $! >"$PROOFMARK_FAKE/pid"
echo {JOB}
"""
QSTAT = f"""#!/bin/sh
polls=$(($(cat "$PROOFMARK_FAKE/polls" 2>/dev/null) + 1))
echo $polls >"$PROOFMARK_FAKE/polls"
if [ -e "$PROOFMARK_FAKE/damage-$polls" ]; then . "$PROOFMARK_FAKE/damage-$polls"; exit; fi
state=F
kill -0 "$(cat "$PROOFMARK_FAKE/pid")" 2>/dev/null && state=R
echo '{{"Jobs":{{"{JOB}":{{"job_state":"'$state'"}}}}}}'
"""
SITE = {
    "qsub": QSUB,
    "qstat": QSTAT,
    "qselect": "#!/bin/sh\n",
    "qdel": '#!/bin/sh\necho "$@" >>"$PROOFMARK_FAKE/deleted"\n',
    "pbsnodes": '#!/bin/sh\necho \'{"nodes":{"n1":{"state":"free"}}}\'\n',
}
DAMAGE = {
    "a quoted comment": """printf '{\\n"Jobs":{\\n"1.x":{\\n"comment":"a "b" c"\\n}\\n}\\n}\\n'""",
    "no JSON": "echo 'qstat: Segmentation fault'",
    "a list": "echo '[1, 2]'",
    "half an answer": """printf '{"Jobs":{"1234.pb'""",
    "bytes": "printf '\\377\\376\\000{'",
    "an error": "echo 'Bad UID for job execution' >&2; exit 1",
    "not executable": 'cd "$PROOFMARK_FAKE"; chmod -x qstat; '
    "(sleep 1; chmod +x qstat) >/dev/null 2>&1 &"
    "\nexit 1",
}


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a run whose job waits until its third poll, through commands of PBS."""
    fake = tmp_path / "fake"
    fake.mkdir()
    for name, text in SITE.items():
        (fake / name).write_text(text)
        (fake / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{fake}:{os.environ['PATH']}")
    monkeypatch.setenv("PROOFMARK_FAKE", str(fake))
    kit = make_kit(tmp_path / "kit")
    kit.program(
        f'while [ "$(cat {fake}/polls 2>/dev/null || echo 0)" -lt 4 ]; do sleep 0.05; done; '
        'echo "size $1"; echo "rate 100"; echo END'
    )
    queue = Queue(stall_timeout_s=60)
    return kit.run(site=kit.site(hosts=["n1"], scheduler="pbs", queue=queue))


def test_a_run_ends_without_damage(run: Run, tmp_path: Path) -> None:
    lines: list[str] = []
    execute(run, "pbs", lines.append)
    assert judge_run(run).coverage.stopped == ()
    assert not (tmp_path / "fake/deleted").exists()
    assert not any("does not answer" in line for line in lines if line.startswith("job "))


@pytest.mark.fault("poll-unreadable")
@pytest.mark.parametrize("damage", DAMAGE)
def test_a_run_goes_on_while_polls_cannot_be_read(run: Run, tmp_path: Path, damage: str) -> None:
    for number in (2, 3):
        (tmp_path / f"fake/damage-{number}").write_text(DAMAGE[damage])
    lines: list[str] = []
    execute(run, "pbs", lines.append)
    assert judge_run(run).coverage.stopped == ()
    assert not (tmp_path / "fake/deleted").exists()
    told = [line for line in lines if line.startswith("job ") and "does not answer" in line]
    assert bool(told) == (damage != "a quoted comment")


@pytest.mark.fault("poll-unreadable")
def test_bad_json_of_the_nodes_does_not_stop_the_run(run: Run, tmp_path: Path) -> None:
    (tmp_path / "fake/pbsnodes").write_text('#!/bin/sh\necho \'{"nodes":{"n1":{"state\'\n')
    execute(run, "pbs", lambda line: None)
    assert judge_run(run).coverage.stopped == ()


class Broken(Scripted):
    """A scheduler whose answers raise any exception, `times` times."""

    def __init__(self, error: Exception, times: int, run: Run) -> None:
        super().__init__(JobStatus(State.CANCELLED, "the end"), run=run)
        self.error, self.times = error, times

    def states(self, ids: Sequence[str]) -> Mapping[str, JobStatus]:
        self.times -= 1
        if self.times >= 0:
            raise self.error
        return super().states(ids)


def monitor(
    kit: Kit, scheduler: Scripted, monkeypatch: pytest.MonkeyPatch, run: Run
) -> tuple[JobMonitor, list[str]]:
    monkeypatch.setattr(watch, "scheduler", lambda name: scheduler)
    monkeypatch.setattr("proofmark.jobs.scripts.scheduler", lambda name: scheduler)
    lines: list[str] = []
    jobs = [job for group in run.plan.groups for job in group.jobs]
    batch = BatchQueue("fake", Queue(stall_timeout_s=30))
    return JobMonitor(run, JobSupply(jobs), batch, lines.append), lines


@pytest.mark.fault("poll-unreadable")
@pytest.mark.parametrize(
    "error",
    [
        json.JSONDecodeError("Expecting value", "x", 0),
        KeyError("nodes"),
        IndexError("list index out of range"),
        OSError(5, "Input/output error"),
        RecursionError("maximum recursion depth exceeded"),
        BadInput(),
    ],
)
def test_no_exception_of_a_poll_cancels_jobs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    kit = make_kit(tmp_path)
    run = kit.run()
    scheduler = Broken(error, 3, run)
    jobs, lines = monitor(kit, scheduler, monkeypatch, run)
    poll_until_done(jobs, lambda: None)
    assert scheduler.cancelled == []
    assert len([line for line in lines if "does not answer" in line]) == 1
    assert lines[-1] == "job 00-0001: cancelled by another user: the end"


@pytest.mark.fault("poll-unreadable")
def test_a_job_whose_state_is_not_known_by_its_id_is_not_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kit = make_kit(tmp_path)
    run = kit.run()
    scheduler = Scripted(JobStatus(State.RUNNING), None, None, JobStatus(State.CANCELLED, "end"))
    asked: list[str] = []

    def ended(job: str) -> JobStatus | None:
        asked.append(job)
        if len(asked) == 1:
            return JobStatus(State.RUNNING)
        raise SchedulerUnavailable("no answer")

    monkeypatch.setattr(scheduler, "ended", ended)
    jobs, lines = monitor(kit, scheduler, monkeypatch, run)
    poll_until_done(jobs, lambda: None)
    assert asked == ["1", "1"]
    assert scheduler.cancelled == []
    assert not any("vanished" in line for line in lines)


@pytest.mark.fault("poll-unreadable")
def test_an_exception_elsewhere_leaves_the_jobs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A report that fails ends the command. The jobs go on, and the same command finds them."""
    kit = make_kit(tmp_path)
    run = kit.run()
    scheduler = Scripted(JobStatus(State.RUNNING))
    jobs, lines = monitor(kit, scheduler, monkeypatch, run)

    def report() -> None:
        raise ValueError("a damaged file")

    with pytest.raises(ValueError, match="a damaged file"):
        poll_until_done(jobs, report)
    assert scheduler.cancelled == []
    assert lines[-1] == "jobs 1 go on; the same command finds them again"
    assert list(run.folder.rglob("ticket.json"))


def test_a_signal_cancels_the_jobs_also_if_polls_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: a signal cancels."""
    kit = make_kit(tmp_path)
    run = kit.run()
    scheduler = Broken(ValueError("x"), 4, run)
    jobs, _ = monitor(kit, scheduler, monkeypatch, run)
    reports = 0

    def report() -> None:
        nonlocal reports
        reports += 1
        if reports == 1:
            os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(Stopped):
        poll_until_done(jobs, report)
    assert scheduler.cancelled == ["1"]
    assert not list(run.folder.rglob("ticket.json"))
