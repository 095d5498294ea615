"""A node proves its state before and after each job: what is missing makes its steps INVALID."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.fixtures.finished import write_execution
from tests.fixtures.fleet import fleet_run
from tests.fixtures.kit import execution, make_kit, steps_of
from tests.unit.common.test_files import special

from proofmark.cli.main import main
from proofmark.common.files import read_text
from proofmark.judge.ending import failed_nodes
from proofmark.judge.judging import judge_run
from proofmark.runs.evidence import seal
from proofmark.runs.run import Run
from proofmark.site.partition import PREDICTED

RATES = dict.fromkeys(("n1", "n2", "n3"), 100.0)
RECORDED = {host: {"attempt": "{job}/attempt-1"} for host in RATES}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fleet_run(tmp_path_factory.mktemp("run"), RATES, executions=RECORDED).folder


@pytest.fixture
def run(made: Path, tmp_path: Path) -> Run:
    from proofmark.runs.run import open_run

    return open_run(shutil.copytree(made, tmp_path / made.name))


def job_of(run: Run) -> Path:
    (job,) = (job for group in run.plan.groups for job in group.jobs)
    return run.files.job(job.id).folder


def reasons(run: Run) -> dict[str, str]:
    """Collect and judge; return the reasons of the INVALID figures by node."""
    return {each.record.node: each.reason for each in judge_run(run).of("INVALID")}


def test_each_node_with_both_probes_is_valid(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    """Control: no fault is injected."""
    assert main(["stage", "collect", f"{run.folder}"]) == 0
    assert "INVALID" not in capsys.readouterr().err
    assert reasons(run) == {}


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def without_end(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"=== end\n", b""))


def empty(path: Path) -> None:
    path.write_bytes(b"")


def put(kind: str) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        path.unlink()
        special(path, kind)

    return change


FAULTS: dict[str, tuple[Callable[[Path], None], str]] = {
    "removed": (Path.unlink, "is missing"),
    "empty": (empty, "is damaged: it is empty"),
    "cut": (cut, "is damaged: its end is missing"),
    "without-end": (without_end, "is damaged: its end is missing"),
    **{
        kind: (put(kind), "is damaged: ")
        for kind in ("fifo", "folder", "socket", "device", "link", "sparse")
    },
}


@pytest.mark.fault("probe-missing")
@pytest.mark.parametrize("end", ["before", "after"])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_node_without_a_whole_probe_has_invalid_steps(
    run: Run, fault: str, end: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = job_of(run) / "attempt-1" / f"n2.{end}"
    change, found = FAULTS[fault]
    change(path)
    name = path.relative_to(run.folder)
    assert main(["stage", "collect", f"{run.folder}"]) == 1
    assert f"proofmark: n2: {name} {found}" in capsys.readouterr().err
    wrong = reasons(run)
    assert list(wrong) == ["n2"]
    assert f"{name} {found}" in wrong["n2"]


@pytest.mark.fault("probe-missing")
@pytest.mark.parametrize("sealed", [False, True])
def test_a_run_without_any_report_has_no_valid_step(run: Run, sealed: bool) -> None:
    shutil.rmtree(run.folder / "workdir/jobs")
    if sealed:
        run = seal(run.folder).run()
    wrong = {each.record.node: each.reason for each in judge_run(run).of("INVALID")}
    assert list(wrong) == [*RATES]
    assert wrong["n1"].startswith("the state of n1 is not proven: nodes/n1.json is missing")


@pytest.mark.fault("probe-missing")
def test_a_node_that_died_after_its_last_step_does_not_pass(run: Run) -> None:
    """It boots again, but no probe of its job follows."""
    (job_of(run) / "attempt-1" / "n3.after").unlink()
    assert list(reasons(run)) == ["n3"]
    assert judge_run(run).exit_code() == 2


def second_attempt(run: Run, host: str, change: Callable[[str], str] = str) -> None:
    """Let `host` begin a second attempt of the job; the first was killed before its last probe."""
    first, second = (job_of(run) / f"attempt-{number}" for number in (1, 2))
    second.mkdir()
    (first / f"{host}.after").unlink()
    (first / "finished").unlink()
    text = (first / f"{host}.before").read_text(encoding="utf-8")
    (second / f"{host}.before").write_text(change(text), encoding="utf-8")
    (second / f"{host}.after").write_text(text, encoding="utf-8")


def test_the_first_probe_of_the_next_attempt_ends_a_killed_one(run: Run) -> None:
    second_attempt(run, "n2")
    assert reasons(run) == {}
    assert main(["stage", "collect", f"{run.folder}"]) == 0


def not_probed(run: Run) -> list[str]:
    """Return the nodes that nobody probed after their steps; the run is not accepted with them."""
    verdict = judge_run(run)
    assert (verdict.exit_code(), verdict.headline().word) == (4, "UNJUDGED")
    return [each.nodes for each in verdict.conditions.open_stages if each.code == "NOT_PROBED"]


@pytest.mark.fault("probe-missing")
@pytest.mark.parametrize("code", ["", "143\n"], ids=["killed-at-once", "signal"])
def test_a_job_that_was_stopped_keeps_its_figures_and_accepts_no_node(
    run: Run, code: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A step that ended before has its figures. Nobody knows whether the hardware was sound."""
    for name in ("n2.after", "n3.after", "finished"):
        (job_of(run) / "attempt-1" / name).unlink()
    if code:
        (job_of(run) / "attempt-1" / "exit").write_text(code)
    assert main(["stage", "collect", f"{run.folder}"]) == 0
    assert reasons(run) == {}
    assert not_probed(run) == ["n[2-3]"]
    assert main(["report", f"{run.folder}"]) == 0
    assert main(["verdict", f"{run.folder}"]) == 4
    (step,) = steps_of(run)
    found = capsys.readouterr()
    again = f"proofmark rerun {run.folder} {step.name}/n2 {step.name}/n3"
    assert again in found.out, found
    assert "n[2-3]: run: NOT_PROBED: their job was stopped" in found.out
    assert "NOT_PROBED" in (run.folder / "report.html").read_text(encoding="utf-8")
    assert set(failed_nodes(judge_run(run), run.plan)) == {"n2", "n3"}


@pytest.mark.fault("probe-missing")
@pytest.mark.parametrize("code", ["0\n", "74\n", "65\n"])
def test_a_job_that_ended_by_itself_owes_its_probes(run: Run, code: str) -> None:
    for name in ("n2.after", "finished"):
        (job_of(run) / "attempt-1" / name).unlink()
    (job_of(run) / "attempt-1" / "exit").write_text(code)
    assert list(reasons(run)) == ["n2"]


@pytest.mark.fault("probe-missing")
@pytest.mark.parametrize("fault", ["empty", "cut", "removed"])
def test_a_next_attempt_without_a_whole_first_probe_ends_nothing(run: Run, fault: str) -> None:
    second_attempt(run, "n2")
    FAULTS[fault][0](job_of(run) / "attempt-2" / "n2.before")
    assert reasons(run) == {}
    assert not_probed(run) == ["n2"]


@pytest.mark.fault("probe-missing")
@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("edac/mc0/ue_count: 0", "edac/mc0/ue_count: 1", "uncorrected memory errors"),
        ("| boot_id: ", "| boot_id: 0", "the node was restarted"),
    ],
)
def test_the_next_attempt_shows_what_happened_in_the_killed_one(
    run: Run, old: str, new: str, reason: str
) -> None:
    second_attempt(run, "n2", lambda text: text.replace(old, new))
    wrong = reasons(run)
    assert list(wrong) == ["n2"]
    assert reason in wrong["n2"]


@pytest.mark.fault("probe-missing")
def test_an_error_counter_that_is_gone_after_the_job_proves_nothing(run: Run) -> None:
    path = job_of(run) / "attempt-1" / "n2.after"
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join(line for line in lines if "ue_count" not in line), encoding="utf-8")
    wrong = reasons(run)
    assert list(wrong) == ["n2"]
    assert "does not exist any more" in wrong["n2"]


def test_a_node_that_measured_nothing_needs_no_probe(run: Run) -> None:
    """It was down. Its step is missing, and the nodes that measured are valid."""
    (step,) = steps_of(run)
    shutil.rmtree(step / "n2")
    for end in ("before", "after"):
        (job_of(run) / "attempt-1" / f"n2.{end}").unlink()
    assert main(["stage", "collect", f"{run.folder}"]) == 0
    assert reasons(run) == {}
    assert judge_run(run).coverage.missing


@pytest.mark.fault("probe-missing")
@pytest.mark.parametrize("end", ["before", "after"])
def test_a_step_of_several_nodes_needs_the_probes_of_each(tmp_path: Path, end: str) -> None:
    run = pair_run(tmp_path)
    assert reasons(run) == {}
    (job_of(run) / "attempt-1" / f"n2.{end}").unlink()
    (reason,) = reasons(run).values()
    assert reason == f"workdir/jobs/{job_of(run).name}/attempt-1/n2.{end} is missing"


def pair_run(folder: Path) -> Run:
    """Return a run of one step that n1 and n2 measured together."""
    source = fleet_run(folder / "probes", {"n1": 1.0, "n2": 1.0})
    kit = make_kit(folder / "kit")
    kit.case(sweep={"size": 1, "nodes": 2}, network_bytes=0)
    site = kit.site(hosts=("n1", "n2"))
    changes = {"scheduler": "slurm"}
    partition = site.partition.model_copy(update=changes)
    run = kit.run(site=site.model_copy(update={"partition": partition}))
    (step,) = run.plan.steps()
    assert step.nodes == ["n1", "n2"]
    ranks = [{"rank": n, "host": host, "cpus": "0"} for n, host in enumerate(step.nodes)]
    write_execution(
        steps_of(run)[0],
        "n1",
        {"stdout": "size 1\nrate 100\nEND\n"},
        binding=ranks,
        attempt=f"{job_of(run).name}/attempt-1",
    )
    shutil.copytree(job_of(source) / "attempt-1", job_of(run) / "attempt-1")
    return run


def test_a_model_of_a_machine_has_no_nodes(tmp_path: Path) -> None:
    run = fleet_run(tmp_path, RATES, partition={"origin": PREDICTED}, executions=RECORDED)
    shutil.rmtree(run.files.job(job_of(run).name).folder / "attempt-1")
    assert reasons(run) == {}


def test_the_file_of_a_node_has_the_code_of_each_missing_probe(run: Run) -> None:
    (job_of(run) / "attempt-1" / "n2.after").unlink()
    sealed = seal(run.folder).run()
    (entry,) = json.loads(read_text(sealed.files.nodes / "n2.json"))["damaged"]
    assert (entry["code"], entry["attempt"], entry["awaited"]) == ("missing", 1, True)
    assert execution(steps_of(run)[0] / "n2").is_dir()
