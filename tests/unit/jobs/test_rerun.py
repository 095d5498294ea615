"""Repetition of finished steps."""

from __future__ import annotations

import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from tests.fixtures.finished import written_verdict
from tests.fixtures.fleet import fleet_run
from tests.fixtures.kit import (
    SOUND,
    Kit,
    carried_out,
    execution,
    left_behind,
    snapshot,
    steps_of,
    until,
)
from tests.forks import tool
from tests.processes import running

from proofmark.common.errors import BadInput
from proofmark.jobs.execute import execute, pick, rerun
from proofmark.judge.judging import judge_run
from proofmark.report.products import write_page
from proofmark.report.run_data import gather
from proofmark.runs.job_folder import JobFolder
from proofmark.runs.run import Run
from proofmark.runs.state import lock


@pytest.fixture
def run(kit: Kit) -> Run:
    return carried_out(kit.run())


def ids(run: Run, *names: str) -> list[str]:
    return [str(each.instance) for each in pick(run, names)]


def test_a_step_is_chosen_by_its_id_or_number(run: Run) -> None:
    for word in ("0002-fake-2", "2", "0002"):
        assert ids(run, word) == ["0002-fake-2"]
    assert ids(run, "2", "1") == ["0002-fake-2", "0001-fake-1"], "in the requested order"


def test_an_unknown_step_is_refused(run: Run) -> None:
    for word in ("0", "3", "fake", "0002-fake-22", ""):
        with pytest.raises(BadInput, match=f"STEP: found {word!r}"):
            pick(run, [word])


def test_a_step_that_has_not_run_is_refused(run: Run) -> None:
    shutil.rmtree(execution(steps_of(run)[0]))
    with pytest.raises(BadInput, match="0001-fake-1: not finished yet"):
        pick(run, ["1"])


def test_a_repeated_step_keeps_the_first_output_and_both_count(kit: Kit, run: Run) -> None:
    before, messages = snapshot(run.folder / "workdir/steps"), list[str]()
    kit.program(SOUND.replace("100", "50"))
    rerun(run, pick(run, ["1"]), messages.append)
    after = snapshot(run.folder / "workdir/steps")
    assert {name: after[name] for name in before} == before
    assert messages[-1] == "0001-fake-1: exit code 0, in execution-2"
    first, second = judge_run(run).results
    assert (first.values, first.record.value) == ((100, 50), 75)
    assert second.values == (100,)


def test_a_repeated_step_may_fail(kit: Kit, run: Run) -> None:
    kit.program("exit 74")
    messages: list[str] = []
    rerun(run, pick(run, ["1"]), messages.append)
    assert messages[-1] == "0001-fake-1: exit code 74, in execution-2"
    assert judge_run(run).results[0].verdict == "UNJUDGED"  # the first execution is valid


@pytest.mark.fault("crash-then-success")
@pytest.mark.parametrize("crash", ["exit 74", "kill -SEGV $$", "echo FAKE broken"])
def test_no_later_success_removes_a_crash(kit: Kit, crash: str) -> None:
    kit.program(crash)
    run = carried_out(kit.run())
    kit.program(SOUND)
    for _ in range(2):
        rerun(run, pick(run, ["1", "2"]), lambda line: None)
    verdict = judge_run(run)
    assert [each.values for each in verdict.results] == [(100, 100)] * 2
    assert [(each.step, each.crashed, each.executions) for each in verdict.executions.crashes] == [
        ("0001-fake-1", 1, 3),
        ("0002-fake-2", 1, 3),
    ]
    assert {fault.node for fault in verdict.faults} == {verdict.results[0].record.node}
    assert (verdict.counts["INVALID"], verdict.exit_code()) == (0, 1)


def test_a_reason_sets_earlier_crashes_aside_and_is_in_the_report(kit: Kit) -> None:
    kit.program("exit 74")
    run = carried_out(kit.run())
    kit.program(SOUND)
    rerun(run, pick(run, ["1"]), lambda line: None, "the library was missing")
    rerun(run, pick(run, ["2"]), lambda line: None)
    verdict = judge_run(run)
    (aside, fault) = verdict.executions.crashes
    assert (aside.step, aside.set_aside) == ("0001-fake-1", "the library was missing")
    assert (fault.step, fault.set_aside) == ("0002-fake-2", "")
    assert [each.reason.fields["step"] for each in verdict.faults] == ["0002-fake-2"]
    write_page(gather(run, written_verdict(run)))
    assert "the library was missing" in run.files.report.read_text()
    kit.program("exit 75")
    rerun(run, pick(run, ["1"]), lambda line: None)
    found = [each.set_aside for each in judge_run(run).executions.crashes]
    assert sorted(found) == ["", "", "the library was missing"]


def test_a_repeated_step_without_a_result_is_an_error(run: Run) -> None:
    (steps_of(run)[0] / "run.sh").write_text("echo 'no disk' >&2; exit 74\n")
    with pytest.raises(BadInput, match="0001-fake-1: found no result: no disk"):
        rerun(run, pick(run, ["1"]), lambda line: None)


def test_a_run_in_use_is_refused(run: Run) -> None:
    before = snapshot(run.folder / "workdir/steps")
    with lock(run.folder), pytest.raises(BadInput, match="in use by process"):
        rerun(run, pick(run, ["1"]), lambda line: None)
    assert snapshot(run.folder / "workdir/steps") == before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_the_step_and_all_its_processes(
    kit: Kit, run: Run, number: signal.Signals
) -> None:
    kit.program("echo on; trap '' TERM; while :; do sleep 100; done")
    before = snapshot(run.folder / "workdir/steps")
    command = [tool("proofmark"), "rerun", str(run.folder), "1"]
    out = steps_of(run)[0] / "unfinished-2" / "stdout"
    with running(subprocess.Popen(command, stderr=subprocess.PIPE, text=True)) as process:
        until(lambda: out.exists() and out.read_text() == "on\n")
        process.send_signal(number)
        _, messages = process.communicate(timeout=300)
    assert process.returncode == 130
    assert f"stopped by {number.name}" in messages
    assert left_behind(f"PROOFMARK_STEP={run.folder}") == []
    after = snapshot(run.folder / "workdir/steps")
    assert {name: after[name] for name in before} == before
    result = judge_run(run).results[0]
    assert result.values == (100,), result.reason


class TestOneNode:
    """Repetition on one node; tests/roles/test_slurm.py runs it on that node."""

    def test_a_node_is_chosen_by_its_name(self, tmp_path: Path) -> None:
        run = fleet_run(tmp_path, {"n1": 100.0, "n2": 90.0})
        (execution,) = pick(run, ["1/n2"])
        assert (str(execution.instance), execution.nodes) == ("0001-fake/n2", ["n2"])
        with pytest.raises(BadInput, match="did you mean 'n2'"):
            pick(run, ["1/n22"])

    def test_a_node_without_a_result_can_be_chosen_after_the_step_finished(
        self, tmp_path: Path
    ) -> None:
        run = fleet_run(tmp_path, {"n1": 100.0, "n2": 90.0})
        step = run.folder / "workdir/steps" / "0001-fake"
        shutil.rmtree(execution(step / "n2"))
        with pytest.raises(BadInput, match="0001-fake/n2: not finished yet"):
            pick(run, ["1/n2"])
        (step / "rc").write_text("0\n")
        assert ids(run, "1/n2") == ["0001-fake/n2"]
        assert [len(each.attempts(run)) for each in pick(run, ["1/n2", "1"])] == [0, 1]


def test_a_repeated_step_is_an_attempt_of_its_job_with_probes(run: Run) -> None:
    rerun(run, pick(run, ["2", "1"]), lambda line: None)
    (job,) = (run.folder / "workdir/jobs").glob("*-*")
    assert {path.name for path in job.glob("attempt-*")} == {"attempt-1", "attempt-2"}
    assert {path.suffix for path in (job / "attempt-2").glob("*.*")} == {".before", ".after"}
    started = [(execution(step, 2) / "started").stat().st_mtime_ns for step in steps_of(run)]
    assert started[1] < started[0]  # in the order of the call
    before = snapshot(run.folder / "workdir/steps")
    execute(run, "none", lambda line: None)
    assert snapshot(run.folder / "workdir/steps") == before


def test_a_job_that_is_still_in_the_queue_is_not_disturbed(run: Run) -> None:
    (job,) = run.plan.groups[0].jobs
    folder = JobFolder(run, job)
    folder.create("none", "name")
    with pytest.raises(BadInput, match="00-0001: may still be in the queue"):
        rerun(run, pick(run, ["1"]), lambda line: None)
