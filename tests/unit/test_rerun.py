"""Running finished steps once more."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.unit.fleets import fleet_run
from tests.unit.helpers import SOUND, Kit, left_behind, make_kit, snapshot, steps_of, until

from proofmark.acceptance import judged
from proofmark.errors import BadInput
from proofmark.execute import execute
from proofmark.rerun import pick, rerun
from proofmark.runs import Run, lock, site_of


@pytest.fixture
def kit(tmp_path: Path) -> Kit:
    return make_kit(tmp_path)


@pytest.fixture
def run(kit: Kit) -> Run:
    made = kit.run()
    execute(made, "none", lambda line: None)
    return made


def ids(run: Run, *wanted: str) -> list[str]:
    return [each.folder for each in pick(run, wanted)]


@pytest.mark.parametrize("word", ["0002-fake-2", "2", "0002"])
def test_a_step_is_called_by_its_name_or_number(run: Run, word: str) -> None:
    assert ids(run, word) == ["0002-fake-2"]


def test_steps_come_in_the_order_they_are_called(run: Run) -> None:
    assert ids(run, "2", "1") == ["0002-fake-2", "0001-fake-1"]


@pytest.mark.parametrize("word", ["0", "3", "fake", "0002-fake-22", ""])
def test_an_unknown_step_is_refused(run: Run, word: str) -> None:
    with pytest.raises(BadInput, match=f"STEP: found {word!r}"):
        pick(run, [word])


def test_a_step_that_has_not_run_is_refused(run: Run) -> None:
    (steps_of(run)[0] / "rc").unlink()
    with pytest.raises(BadInput, match="0001-fake-1: not finished yet"):
        pick(run, ["1"])


def test_a_repetition_stands_beside_the_first_output_and_both_count(kit: Kit, run: Run) -> None:
    before, said = snapshot(run.folder / "steps"), list[str]()
    kit.program(SOUND.replace("100", "50"))
    rerun(run, pick(run, ["1"]), said.append)
    after = snapshot(run.folder / "steps")
    assert {name: after[name] for name in before} == before
    assert said[-1] == "0001-fake-1: exit code 0, in again-1"
    first, second = judged(run).results
    assert (first.values, first.record.value) == ((100, 50), 75)
    assert second.values == (100,)


def test_a_repetition_may_fail(kit: Kit, run: Run) -> None:
    kit.program("exit 74")
    said: list[str] = []
    rerun(run, pick(run, ["1"]), said.append)
    assert said[-1] == "0001-fake-1: exit code 74, in again-1"
    assert judged(run).results[0].verdict == "UNJUDGED"  # the first, good one stands


def test_a_repetition_without_a_result_is_an_error(run: Run) -> None:
    (steps_of(run)[0] / "run.sh").write_text("echo 'no disk' >&2; exit 74\n")
    with pytest.raises(BadInput, match="0001-fake-1: found no result: no disk"):
        rerun(run, pick(run, ["1"]), lambda line: None)


def test_a_run_in_use_is_refused(run: Run) -> None:
    before = snapshot(run.folder / "steps")
    with lock(run), pytest.raises(BadInput, match="in use by process"):
        rerun(run, pick(run, ["1"]), lambda line: None)
    assert snapshot(run.folder / "steps") == before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_in_order(kit: Kit, run: Run, number: signal.Signals) -> None:
    kit.program("echo on; trap '' TERM; while :; do sleep 100; done")
    before = snapshot(run.folder / "steps")
    code = "import sys; from proofmark.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", code, "rerun", str(run.folder), "1"]
    out = steps_of(run)[0] / "again-1" / "stdout"
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        until(lambda: out.exists() and out.read_text() == "on\n")
        process.send_signal(number)
        _, said = process.communicate(timeout=30)
    assert process.returncode == 130
    assert f"stopped by {number.name}" in said
    assert left_behind(f"PROOFMARK_STEP={run.folder}") == []
    after = snapshot(run.folder / "steps")
    assert {name: after[name] for name in before} == before
    assert judged(run).results[0].values == (100,)


class TestOneNode:
    """What one node measured by itself is measured again on that node."""

    def run_of_two(self, folder: Path) -> Run:
        run = fleet_run(folder, {"n1": 100.0, "n2": 90.0})
        for host in ("n1", "n2"):
            there = run.folder / "steps" / "0001-fake" / host
            script = (
                'd="${0%/*}"; mkdir "$d/again-1"\n'
                'cp "$d/rc" "$d/when.json" "$d/binding.json" "$d/stdout" "$d/again-1"\n'
            )
            (there / "run.sh").write_text(script)
        return run

    def test_is_picked_by_its_name(self, tmp_path: Path) -> None:
        run = self.run_of_two(tmp_path)
        (found,) = pick(run, ["1/n2"])
        assert (found.folder, found.host) == ("0001-fake/n2", "n2")
        with pytest.raises(BadInput, match="did you mean 'n2'"):
            pick(run, ["1/n22"])

    def test_counts_beside_the_first(self, tmp_path: Path) -> None:
        run = self.run_of_two(tmp_path)
        rerun(run, pick(run, ["1/n2"]), lambda line: None)
        values = {result.record.node: len(result.values) for result in judged(run).results}
        assert values == {"n1": 1, "n2": 2}

    def test_goes_to_the_node_by_ssh(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        run = self.run_of_two(tmp_path)
        site = site_of(run).model_copy(update={"connection": "ssh"})
        (run.folder / "inputs" / "site.json").write_text(site.model_dump_json())
        fake = tmp_path / "bin" / "ssh"
        fake.parent.mkdir()
        fake.write_text(f'#!/bin/sh\necho "$3" >{tmp_path}/went-to\neval "$4"\n')
        fake.chmod(0o755)
        monkeypatch.setenv("PATH", f"{fake.parent}:{os.environ['PATH']}")
        rerun(run, pick(run, ["1/n2"]), lambda line: None)
        assert (tmp_path / "went-to").read_text() == "n2\n"
