"""Disturbed steps: their repetition, what status shows of it, the next command, and fail_fast."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.fixtures.finished import written_verdict
from tests.fixtures.hogs import DISTURB
from tests.fixtures.kit import OUTPUT, Kit, execution, steps_of, until
from tests.forks import tool
from tests.processes import running

from proofmark.cli.main import main
from proofmark.jobs.execute import execute
from proofmark.jobs.scripts import Manner
from proofmark.judge.judging import judge_run
from proofmark.runs.progress import Progress, progress
from proofmark.runs.run import Run
from proofmark.runs.run_files import RunFiles
from proofmark.runs.step_state import GAVE_UP, RUNNING, Repeat, disturbing, repeats_of_job

GO = 'until [ "${BINDING##*/unfinished-1/}" = binding ] || [ -e "$GO" ]; do sleep 0.02; done'
"""The first execution ends at once. Each later one waits for the test."""


def staged(kit: Kit, program: str = "", **case: Any) -> Run:
    """Return a run of one step. Each of its executions is disturbed, whatever else runs there."""
    kit.program(f"{DISTURB}\n{program}\n{OUTPUT}")
    kit.case(**{"launch": "threads", "sweep": {"size": 1}, **case})
    return kit.run()


def executed(run: Run, **how: Any) -> list[str]:
    lines: list[str] = []
    execute(run, "none", lines.append, **how)
    return lines


def now(run: Run, *, active: bool = False) -> Progress:
    return progress(run, active=active)


def started(run: Run, command: str, *options: str) -> subprocess.Popen[str]:
    """Start a command of the kit on `run` in a process."""
    words = [tool("proofmark"), *command.split(), str(run.folder), *options]
    pipe = subprocess.PIPE
    return subprocess.Popen(words, text=True, stdout=pipe, stderr=pipe)


def test_a_run_has_not_ended_while_a_disturbed_step_is_repeated(
    kit: Kit, capsys: pytest.CaptureFixture[str]
) -> None:
    """Status names the step, its execution, the disturbing process and the time."""
    run = staged(kit, GO, environment={"GO": str(kit.folder / "go")})
    (step,) = steps_of(run)
    with running(started(run, "stage execute")) as executing:
        until(lambda: (step / "unfinished-2").exists())
        with running(started(run, "status", "--watch")) as watching:
            assert main(["status", str(run.folder)]) == 0
            text = capsys.readouterr().out
            assert (
                "1/1 steps · repeating 0001-fake (execution 2 of 3) · disturbed by "
                "backup (45 % of a CPU)" in text
            )
            what = "repeated because of a disturbance: 0001-fake: execution 2 of at most 3 runs"
            assert what in text
            assert "ended" not in text
            assert "\nend: about 20" in text
            assert main(["status", str(run.folder), "--json"]) == 0
            told = json.loads(capsys.readouterr().out)
            assert (told["ended"], told["active"]) == (None, True)
            assert told["end"] is not None
            assert told["left_s"] > 0
            assert [each["state"] for each in told["repeats"]] == [RUNNING]
            assert watching.stdout is not None
            first = watching.stdout.readline()  # a loaded machine starts it late
            assert watching.poll() is None
            (kit.folder / "go").touch()
            executing.communicate(timeout=300)
            out, _ = watching.communicate(timeout=300)
    assert "repeating 0001-fake (execution 2 of 3)" in first + out


def test_a_step_that_stays_disturbed_is_named_at_the_end(
    kit: Kit, capsys: pytest.CaptureFixture[str]
) -> None:
    waits = 'until [ -e "$SEEN/${BINDING%/binding}" ]; do sleep 0.02; done'
    run = staged(kit, waits, environment={"SEEN": str(kit.folder / "seen")})
    seen = Path(f"{kit.folder / 'seen'}{steps_of(run)[0]}")
    (seen / "unfinished-1").mkdir(parents=True)
    lines: list[str] = []

    def told(line: str) -> None:
        lines.append(line)
        for number in (2, 3):
            if f"repeating 0001-fake (execution {number} of 3)" in line:
                (seen / f"unfinished-{number}").mkdir(exist_ok=True)

    execute(run, "none", told)
    assert any("repeating 0001-fake (execution 3 of 3)" in line for line in lines), lines
    assert "1 step disturbed in all executions" in lines[-1]
    (said,) = (line for line in lines if "disturbed by " in line)
    assert "backup (45 % of a CPU)" in said
    assert [(each.execution, each.state) for each in now(run).repeats] == [(3, GAVE_UP)]
    assert main(["status", str(run.folder)]) == 0
    text = capsys.readouterr().out
    assert "disturbed in all executions: 0001-fake\ndisturbed by: " in text
    assert "\nended: " in text


def test_the_next_command_repeats_only_what_was_disturbed(kit: Kit) -> None:
    kit.program(f"if [ -e {kit.folder}/busy ]; then {DISTURB} fi\n{OUTPUT}")
    kit.case(launch="threads", sweep={"size": 1})
    run = kit.run()
    (step,) = steps_of(run)
    (kit.folder / "busy").touch()
    executed(run)
    assert len(list(step.glob("execution-*"))) == 3
    assert judge_run(run).results[0].verdict == "INVALID"
    (kit.folder / "busy").unlink()
    for _ in range(2):
        executed(run)
        assert len(list(step.glob("execution-*"))) == 4
        assert not (execution(step, 4) / "disturbed").exists()
        assert now(run).complete


def test_a_stop_during_a_repetition_is_no_end(kit: Kit, capsys: pytest.CaptureFixture[str]) -> None:
    run = staged(kit, GO, environment={"GO": str(kit.folder / "go")})
    (step,) = steps_of(run)
    with running(started(run, "stage execute")) as process:
        until(lambda: (step / "unfinished-2").exists())
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=300)
    assert process.returncode == 130
    current = now(run)
    assert not current.complete
    assert current.line().endswith("left · nothing runs: the same command continues it")
    written_verdict(run)
    again = kit.run()
    assert again.folder == run.folder, "a run with a verdict is continued if a step waits"


@pytest.mark.fault("all-disturbed")
def test_a_job_ends_when_each_step_in_a_row_is_disturbed(
    kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says what to stop. Then the same command runs the steps that are left."""
    monkeypatch.setattr("proofmark.jobs.scripts.LOST_S", 0)
    run = staged(kit, sweep={"size": [*range(1, 8)]})
    lines = executed(run)
    ran = [len(list(step.glob("execution-*"))) for step in steps_of(run)]
    assert ran == [1, 1, 1, 1, 1, 0, 0]
    why = "each of the last 5 steps was disturbed, by backup (45 % of a CPU). Stop what disturbs."
    assert any(why in line for line in lines), lines
    (stopped,) = judge_run(run).coverage.stopped
    assert why in stopped
    kit.program(OUTPUT)
    executed(run)
    assert now(run).done == 7


@pytest.mark.parametrize("seconds", [120, 0])
def test_a_job_goes_on_if_the_disturbance_is_short_or_has_gaps(
    kit: Kit, monkeypatch: pytest.MonkeyPatch, seconds: int
) -> None:
    """Control: six steps in a few seconds, or each second step."""
    monkeypatch.setattr("proofmark.jobs.scripts.LOST_S", seconds)
    even = "case $1 in *[02468]) false ;; esac" if seconds == 0 else "true"
    kit.program(f"if {even}; then {DISTURB} fi\n{OUTPUT.replace('size 1', 'size $1')}")
    kit.case(launch="threads", sweep={"size": [*range(1, 10)]})
    run = kit.run()
    executed(run)
    assert now(run).done == 9


@pytest.mark.fault("fail-fast-disturbed")
def test_fail_fast_stops_after_the_first_step_that_stays_disturbed(kit: Kit) -> None:
    run = staged(kit, sweep={"size": [1, 2, 3]})
    early = execute(run, "none", lambda line: None, manner=Manner.FAIL_FAST)
    assert early.endswith(": step 0001-fake-1: disturbed in all its executions")
    counts = [len(list(step.glob("execution-*"))) for step in steps_of(run)]
    assert counts == [3, 0, 0]
    (stopped,) = judge_run(run).coverage.stopped
    assert stopped.endswith(
        ": stopped by fail_fast: step 0001-fake-1: disturbed in all its executions; "
        "2 of 3 steps left"
    )


def test_without_fail_fast_all_steps_run(kit: Kit) -> None:
    """Control: a disturbed step stops nothing."""
    run = staged(kit, sweep={"size": [1, 2]})
    executed(run)
    counts = [len(list(step.glob("execution-*"))) for step in steps_of(run)]
    assert counts == [3, 3]


def test_fail_fast_stops_after_the_first_step_that_fails(kit: Kit) -> None:
    kit.case(sweep={"size": [1, 2, 3]})
    kit.program('[ "$1" != 2 ] || exit 7\n' + OUTPUT.replace('"size 1"', '"size $1"'))
    run = kit.run()
    with running(started(run, "stage execute", "--fail-fast")) as process:
        _, said = process.communicate(timeout=300)
    assert process.returncode == 6
    assert "stopped by fail_fast: step 0002-fake-2: exit code 7" in said
    assert [step.name for step in steps_of(run) if execution(step).exists()] == [
        "0001-fake-1",
        "0002-fake-2",
    ]
    execute(run, "none", lambda line: None)
    assert now(run).complete


def test_notes_of_a_full_disk_are_left_out(tmp_path: Path) -> None:
    """A line that was cut counts as missing; a later attempt replaces what an earlier one noted."""
    notes = {
        1: "wait 2 0001-a 0001-a\nleft 3 0002-b 0002-b/n1\nwai",
        2: "start 2 0001-a 0001-a\nend 2 0001-a 0001-a\n",
    }
    for number, text in notes.items():
        folder = tmp_path / f"workdir/jobs/j/attempt-{number}"
        folder.mkdir(parents=True)
        (folder / "repeats").write_text(text)
    assert repeats_of_job(RunFiles(tmp_path), "j") == {
        "0002-b": Repeat("0002-b", 3, GAVE_UP, "0002-b/n1")
    }


def test_the_processes_with_the_largest_shares_are_named(tmp_path: Path) -> None:
    files = RunFiles(tmp_path)
    for name, others in {"a": {"x": 1.0, "y": 6.0}, "b": {"x": 8.0, "z": 0.05}}.items():
        _sampled(files.step(name).folder, others)
    repeats = [Repeat(name, 2, RUNNING, name) for name in ("a", "b")]
    assert disturbing(files, repeats) == "x (45 % of a CPU), y (30 % of a CPU)"


def test_the_process_that_disturbs_now_is_named_with_user_number_and_command(
    tmp_path: Path, kit: Kit
) -> None:
    """The step of an earlier execution had another one."""
    kit.case(sweep={"size": 1})
    run = kit.run()
    (step,) = run.plan.steps()
    folder = run.files.step(step.id).folder
    _sampled(folder, {"gone": 6.0})
    repeats = [Repeat(step.id, 2, RUNNING, step.id)]
    assert disturbing(run.files, repeats, [step]) == "gone (60 % of a CPU)"
    samples = json.loads((folder / "execution-1/noise.json").read_text())[0]
    about = {"pid": 4711, "user": "alice", "command": "python train.py"}
    samples["others"] = [{"name": "python", "seconds": 14.5, **about}]
    live = folder / "unfinished-2/noise/n1"
    live.mkdir(parents=True)
    (live / "sums").write_text(json.dumps(samples)[:-9])  # it is being written
    assert disturbing(run.files, repeats, [step]) == "gone (60 % of a CPU)"
    (live / "sums").write_text(json.dumps(samples))
    assert disturbing(run.files, repeats, [step]) == (
        "python (145 % of a CPU, pid 4711 of alice: python train.py)"
    )


def _sampled(step: Path, others: Mapping[str, float]) -> None:
    """Write the samples of an execution of 10 s."""
    zero = ("others_s", "steal_s", "worst_steal_s", "worst_delay_s", "burst", "burst_others")
    node: dict[str, Any] = dict.fromkeys(zero, 0.0)
    node |= {"host": "n1", "cpus": 1, "seconds": 10.0, "rank_seconds": 10.0, "ranks_s": 9.0}
    node["others"] = [{"name": name, "seconds": took} for name, took in others.items()]
    (step / "execution-1").mkdir(parents=True)
    (step / "execution-1" / "rc").write_text("0\n")
    (step / "execution-1" / "started").write_text(f"{os.uname().nodename} 1 t job 1\n")
    (step / "execution-1" / "noise.json").write_text(json.dumps([node]))
