"""A program beside a step: it runs before, during and until the end of the measured program."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.fixtures.finished import reports_of
from tests.fixtures.kit import FAKE, SOUND, Kit, execution, left_behind, make_kit, steps_of, until
from tests.processes import running

from proofmark.common.files import read_json
from proofmark.records.columns import Record
from proofmark.records.read import read_run
from proofmark.records.run_facts import RunParts
from proofmark.runs.run import Run, benchmarks_of, site_of
from proofmark.software.software import Software

ENDLESS = 'echo "load begins"; while :; do sleep 0.05; done'
STARTED = 'until grep -q begins "${BINDING%/*}"/../load/unfinished-*/stdout; do sleep 0.05; done'
BUSY = f"{STARTED}; sleep 0.5; {SOUND}"
"""The program waits for the first line of its load, which a loaded machine starts late."""
LOAD: dict[str, Any] = {"case": "noisy", "place": "same-nodes"}


def loaded(tmp_path: Path, load: str = ENDLESS, program: str = BUSY, **use: Any) -> Run:
    """Return a run of one step with a load; the step has one of two CPUs."""
    kit = make_kit(tmp_path)
    kit.program(program)
    kit.program(load, "noisy")
    kit.case("noisy", program="noisy", sweep={"size": 7}, suites={})
    how = {"sweep": {"size": 1}, "load": {**LOAD, **use.pop("load", {})}, **use}
    kit.case(launch="threads", sweep={"threads": 1}, let={"size": 1}, suites={"quick": how})
    return kit.run()


def run_step(step: Path) -> int:
    return subprocess.run(["sh", step / "run.sh"], check=False).returncode


def records_of(run: Run) -> list[Record]:
    software = read_json(run.files.software, Software)
    return list(
        read_run(RunParts(run, benchmarks_of(run), site_of(run), software, reports_of(run)))
    )


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """Return a run whose step was executed beside its load."""
    run = loaded(tmp_path_factory.mktemp("loaded"))
    assert run_step(*steps_of(run)) == 0
    yield run
    shutil.rmtree(run.folder)


class TestALoadThatRunsToTheEnd:
    def test_the_figure_is_valid_and_names_the_load(self, done: Run) -> None:
        (record,) = records_of(done)
        assert (record.valid, record.reason) == (True, "")
        assert record.parameters["load"] == "noisy"

    def test_program_and_load_have_disjoint_cpus(self, done: Run) -> None:
        (step,) = steps_of(done)
        own = json.loads((execution(step) / "binding.json").read_text())
        of_load = json.loads((execution(step) / "load.json").read_text())["binding"]
        assert {each["cpus"] for each in own if "rank" in each} == {"0"}
        assert {each["cpus"] for each in of_load} == {"1"}

    def test_the_load_began_before_and_ended_after_the_program(self, done: Run) -> None:
        (step,) = steps_of(done)
        report = json.loads((execution(step) / "load.json").read_text())
        assert report["running"] is True
        assert report["warm_up_s"] >= 0.2
        assert report["seconds"] >= report["warm_up_s"] + 0.5
        assert left_behind(f"PROOFMARK_STEP={step}/") == []

    def test_its_output_is_kept_and_not_judged(self, done: Run) -> None:
        (step,) = steps_of(done)
        (output,) = step.glob("load/unfinished-*/stdout")
        assert output.read_text() == "load begins\n"
        assert not [*step.glob("load/execution-*")]

    def test_the_report_of_the_load_is_one_of_the_hashed_outputs(self, done: Run) -> None:
        (step,) = steps_of(done)
        assert " load.json" in (execution(step) / "outputs.sha256").read_text()


@pytest.mark.fault("load-ends-early")
def test_a_load_that_ends_early_makes_the_step_invalid(tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    ended = 'until [ -e "${BINDING%/*}/../load/execution-1" ]; do sleep 0.1; done'
    run = loaded(
        tmp_path,
        load=f"until [ -e {begun} ]; do sleep 0.1; done",
        program=f"touch {begun}; {ended}; {SOUND}",
    )
    run_step(*steps_of(run))
    (record,) = records_of(run)
    assert record.reason.startswith("the load noisy ended before the program")


@pytest.mark.fault("load-ends-early")
def test_a_load_that_does_not_start_keeps_the_program_from_starting(tmp_path: Path) -> None:
    """The script of the load ends before any rank of it begins."""
    run = loaded(tmp_path, program=f"touch {tmp_path}/started; {SOUND}")
    (step,) = steps_of(run)
    (step / "load/run.sh").write_text("exit 1\n")
    run_step(step)
    (record,) = records_of(run)
    assert record.reason.startswith("the load noisy did not start: 0 of 1 ranks began")
    assert not (tmp_path / "started").exists()


def test_an_interrupted_step_ends_its_load(tmp_path: Path) -> None:
    run = loaded(tmp_path, program=f"touch {tmp_path}/started; sleep 60; {SOUND}")
    (step,) = steps_of(run)
    with running(subprocess.Popen(["sh", step / "run.sh"], stderr=subprocess.PIPE)) as process:
        until((tmp_path / "started").exists)
        os.kill(process.pid, signal.SIGTERM)
        assert process.wait(60) == 143
    assert left_behind(f"PROOFMARK_STEP={step}/") == []


def test_a_killed_step_is_repeated_without_its_old_load(tmp_path: Path) -> None:
    run = loaded(tmp_path, program=f"touch {tmp_path}/started; sleep 1; {SOUND}")
    (step,) = steps_of(run)
    with running(subprocess.Popen(["sh", step / "run.sh"])) as process:
        until((tmp_path / "started").exists)
        os.kill(process.pid, signal.SIGKILL)
        process.wait(60)
    assert run_step(step) == 0
    (record,) = records_of(run)
    assert record.reason == ""
    assert left_behind(f"PROOFMARK_STEP={step}/") == []


def test_each_node_runs_its_own_load(tmp_path: Path) -> None:
    kit = Kit(tmp_path)
    make_kit(tmp_path)
    kit.program(BUSY)
    kit.program(ENDLESS, "noisy")
    kit.case("noisy", program="noisy", inputs={"in.txt": "7"}, sweep={"size": 7}, suites={})
    use = {"scope": "each-node", "load": LOAD}
    kit.case(launch="threads", sweep={"threads": 1}, let={"size": 1}, suites={"quick": use})
    host = os.uname().nodename
    run = kit.run(site=kit.site(hosts=(host, "another"), scheduler="slurm"))
    (step,) = steps_of(run)
    assert run_step(step) == 0
    assert (step / host / "load" / "in.txt").read_text() == "7"
    valid = [record for record in records_of(run) if record.valid]
    assert [record.node for record in valid] == [host]
    assert FAKE["metrics"].keys() == {record.metric for record in valid}
