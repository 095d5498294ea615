"""Each bench runs with its smallest size, and fails if what it measures fails."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest
from tests.bench import __main__ as overview
from tests.bench import acceptance, bmc, claims, odd_answers, overhead, pairs, scale, trend
from tests.fixtures.kit import make_kit
from tests.folders import ROOT
from tests.forks import tools

from proofmark.judge.judging import read_and_judge, write_results
from proofmark.machine.bmc import client
from proofmark.machine.schedulers import slurm
from proofmark.report.products import write_page
from proofmark.report.run_data import gather
from proofmark.runs.evidence import seal

pytestmark = pytest.mark.rest("the benches measure the kit, and do not test it")

T = TypeVar("T")

HERE = {
    *("__main__", "acceptance", "bmc", "claims", "odd_answers", "overhead", "pairs"),
    *("scale", "trend"),
}
"""The benches that this file runs."""
ELSEWHERE = {"kills": "roles/test_kills.py", "mutants": "repository/test_mutants.py"}
"""The benches that other tests run."""


def test_each_bench_is_run() -> None:
    names = {path.stem for path in (ROOT / "tests/bench").glob("*.py")}
    assert names == HERE | ELSEWHERE.keys()
    assert all((ROOT / "tests" / test).exists() for test in ELSEWHERE.values())


def test_the_overhead_of_steps(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    small = ["--steps=3", "--pairs=0", "--bmcs=0", "--nodes=0", "--scale=0"]
    overview.main(small)
    assert "overhead of the step" in capsys.readouterr().out
    monkeypatch.setattr(overhead, "STAMP", "exit 7")
    with pytest.raises(subprocess.CalledProcessError):
        overview.main(small)


@pytest.mark.slow
def test_an_acceptance_starts_a_node_once_in_each_stage(tmp_path: Path) -> None:
    """The stages build, scratch and run; in scratch the first node is started three times more."""
    log = tmp_path / "log"
    nodes = 6
    cost = acceptance.measure(nodes, log)
    assert cost.starts == 3 * nodes + 3, acceptance.sentence(cost)
    assert "PLAY [Nodes that failed]" in log.read_text()


def test_the_checkout_of_an_acceptance_may_have_a_blank_in_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix = tmp_path / "my kit" / ".venv"
    (prefix / "bin").mkdir(parents=True)
    (prefix / "pyvenv.cfg").touch()
    (prefix / "bin/proofmark").write_text('#!/bin/sh\necho "$@"\nexit 5\n')
    (prefix / "bin/proofmark").chmod(0o755)
    monkeypatch.setattr(sys, "prefix", f"{prefix}")
    folder = tmp_path / "a folder"
    folder.mkdir()
    command = acceptance.make(folder, 2).with_name("proofmark")
    done = subprocess.run([command, "plan", "x"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (5, "plan x\n", "")
    assert (folder / "commands").read_text().startswith("plan\n")


@pytest.mark.parametrize(
    ("code", "verdict", "found"),
    [
        (2, None, "no verdict"),
        (4, '{"coverage": {"measured": 0}}', "exit code 4"),
        (2, '{"coverage": {"measured": 0}, "stage_faults": [{"stage": "a", "text": "b"}]}', "a: b"),
        (2, '{"coverage": {"measured": 0}}', ""),
    ],
)
def test_the_end_of_an_acceptance_is_checked(
    tmp_path: Path, code: int, verdict: str | None, found: str
) -> None:
    if verdict:
        (tmp_path / "verdict.json").write_text(verdict)
    mistake = acceptance.mistake_of(code, tmp_path / "verdict.json")
    assert found in mistake and bool(found) == bool(mistake)


def test_bmcs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "FIRST_PAUSE_S", 0.01)
    with bmc.emulated(2, 0.0) as room:
        assert bmc.by_the_kit(room, 2).bmcs == 2
        with pytest.raises(SystemExit, match="found 2 BMCs that failed"):
            bmc.by_the_kit({**room, "password": "wrong"}, 2)


def test_odd_answers_of_bmcs(monkeypatch: pytest.MonkeyPatch) -> None:
    # The bench changes them for its process; they are restored after the test.
    monkeypatch.setenv("PATH", os.environ["PATH"])
    monkeypatch.setattr(slurm, "folded", vars(slurm)["folded"])
    monkeypatch.setattr(client, "FIRST_PAUSE_S", client.FIRST_PAUSE_S)
    odd_answers.main(10, 1, bmcs=2)
    report = odd_answers.Report(left={"n1": "FAILED"})
    monkeypatch.setattr(odd_answers, "soak", lambda *_, **__: report)
    with pytest.raises(SystemExit, match="n1: FAILED"):
        odd_answers.main(10, 1)


def test_claims_on_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    small = ["--claims", "C1.2", "--trials=1", "--factors", "1"]
    claims.main(small)
    monkeypatch.setattr(claims, "LEAST_WITH", 1.1)
    with pytest.raises(SystemExit):
        claims.main(small)


def test_trends(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    trend.main(["--trials=1", "--runs", "2"])
    assert capsys.readouterr().out.startswith("2 runs: ")
    monkeypatch.setattr(trend, "shares", lambda *_: (0.0, 0.9))
    with pytest.raises(SystemExit):
        trend.main(["--runs"])


def test_a_run_of_many_nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", f"{tools() / 'python'}")  # its commands are forks
    run = scale.make_run(tmp_path, 10, repeats=3)
    scale.measure(run)
    output = next(run.glob("workdir/steps/*hpl/knl00002/execution-1/stdout"))
    output.write_text("")
    shutil.rmtree(run / "evidence")  # the sealed output counts
    with pytest.raises(SystemExit, match="INVALID"):
        scale.measure(run)


def test_time_and_memory_grow_as_the_nodes(tmp_path: Path) -> None:
    """Work of each part grows as the nodes, not as their pairs.

    Four times the nodes then need four times the processor time and memory, and not sixteen times.
    The limit is the geometric mean of both: beside other work on the same core a second of
    processor time does up to a half less, and several processes read the files of a large run
    ahead. The first run pays what only a process pays once: imports and simulated critical values.
    """
    _, small, large = (
        costs_of(scale.make_run(tmp_path / f"{place}", nodes, repeats=1))
        for place, nodes in enumerate((5, 20, 80))
    )
    for part, few in small.items():
        most = large[part]
        assert most[0] < 8 * few[0] and most[1] <= 8 * few[1], (part, few, most)


def costs_of(folder: Path) -> dict[str, tuple[float, int]]:
    """Return the processor time in s of each part of a report, and the traced memory in bytes.

    The memory is what the verdict keeps, and what the writers need more at most. That of the page
    is not traced.
    """
    costs: dict[str, tuple[float, int]] = {}

    def cost(part: str, work: Callable[[], T]) -> T:
        tracemalloc.reset_peak()
        before, begin = tracemalloc.get_traced_memory()[0], time.process_time()
        made = work()
        kept, most = tracemalloc.get_traced_memory()
        memory = kept if part == "verdict" else most
        costs[part] = time.process_time() - begin, memory - before
        return made

    tracemalloc.start()
    run = cost("evidence", lambda: seal(folder)).run()
    records, verdict = cost("verdict", lambda: read_and_judge(run))
    assert verdict.results
    cost("its files", lambda: write_results(run, records, verdict))
    tracemalloc.stop()  # it doubles the time of the plots
    cost("page", lambda: write_page(gather(run, verdict)))
    return costs


def test_steps_by_the_kit_and_by_hand(tmp_path: Path) -> None:
    kit = make_kit(tmp_path)
    kit.case(sweep={"size": 1})
    program = kit.program()
    wanted = [pairs.Figure("fake", "rate")]
    assert pairs.compare(kit.run(), wanted, 1).row_count == 1
    program.write_text("#!/bin/sh\nexit 7\n")
    with pytest.raises(subprocess.CalledProcessError):
        pairs.compare(kit.run(run_id="broken"), wanted, 1)
