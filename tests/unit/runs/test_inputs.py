"""A run whose inputs were changed after its start is not opened."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.fixtures.kit import Kit, contract_of, item, make_kit
from tests.unit.common.test_files import special

from proofmark.cli.main import main
from proofmark.common.errors import BadInput
from proofmark.jobs.execute import execute
from proofmark.runs.identity import add_input, check_inputs
from proofmark.runs.run import Run, enter_mode, open_run
from proofmark.runs.run_files import RunFiles
from proofmark.site.hardware import Mode

INPUTS = (
    *("plan.json", "inputs/site.json", "inputs/facts.probe", "software.json"),
    *("inputs/benchmarks/fake.yml", "inputs/benchmarks/suites.yml"),
)


@pytest.fixture
def run(kit: Kit) -> Run:
    made = kit.run()
    add_input(made.folder, made.files.software)
    return made


def test_control_the_run_is_opened_at_every_stage(run: Run) -> None:
    enter_mode(run.folder, "")
    execute(run, "none", lambda line: None)
    for command in ("stage collect", "report", "verdict", "status"):
        assert main([*command.split(), f"{run.folder}"]) in (0, 4)  # no limit: UNJUDGED
    assert open_run(run.folder).plan.digest == run.plan.digest


def flip(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(bytes([content[0] ^ 1]) + content[1:] if content else b"x")


@pytest.mark.fault("input-changed")
@pytest.mark.parametrize("name", INPUTS)
@pytest.mark.parametrize(("how", "word"), [(flip, "changed"), (Path.unlink, "removed")])
def test_a_changed_input_is_named(
    run: Run, name: str, how: Callable[[Path], None], word: str
) -> None:
    how(run.folder / name)
    with pytest.raises(BadInput, match=f"{name}: found {word} after the start of the run"):
        check_inputs(run.folder)
    with pytest.raises(BadInput):
        open_run(run.folder)


@pytest.mark.fault("input-changed")
def test_a_limit_that_was_lowered_is_refused_and_nothing_is_judged(
    kit: Kit, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    execute(run, "none", lambda line: None)
    site = json.loads(run.files.site.read_text())
    contract = contract_of([item(case="fake", metric="rate", value=1, at_least=0.5)])
    assert contract is not None
    site["contract"] = contract.model_dump(mode="json")
    run.files.site.write_text(json.dumps(site))
    for command in ("report", "verdict", "stage execute"):
        assert main([*command.split(), f"{run.folder}"]) == 3
        assert "inputs/site.json: found changed after the start" in capsys.readouterr().err
    assert not run.files.verdict.exists()
    other = kit.run(fresh=True, run_id="other")
    assert other.id == "other"


@pytest.mark.fault("input-changed")
def test_an_added_benchmark_is_named_and_other_files_are_not_read(run: Run) -> None:
    (run.files.benchmarks / "fake.yml~").write_text("of an editor")
    open_run(run.folder)
    (run.files.benchmarks / "new.yml").write_text("")
    with pytest.raises(BadInput, match=r"new\.yml: found added after the start of the run"):
        open_run(run.folder)


def changed(**fields: Any) -> Callable[[Path], None]:
    """Return a change of fields of ``run.json`` that a person makes with an editor."""

    def change(path: Path) -> None:
        path.write_text(json.dumps(json.loads(path.read_text()) | fields))

    return change


def without_plan(path: Path) -> None:
    identity = json.loads(path.read_text())
    del identity["inputs"]["plan.json"]
    path.write_text(json.dumps(identity))


def previous_format(path: Path) -> None:
    """Write the fields of format 4, which did not state the user of the programs."""
    identity = json.loads(path.read_text())
    del identity["run_by"]
    path.write_text(json.dumps(identity | {"format": 4}))


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def put(kind: str) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        path.unlink()
        special(path, kind)

    return change


IDENTITIES: dict[str, tuple[Callable[[Path], None], str]] = {
    "removed": (Path.unlink, "found no such file"),
    "empty": (emptied, "found unreadable"),
    "cut": (cut, "found unreadable"),
    "first-format": (changed(format=1), "format: found 1, written by the kit "),
    "older-format": (changed(format=2), "format: found 2, written by the kit "),
    "previous-format": (previous_format, "format: found 4, written by the kit "),
    "later-format": (changed(format=99), "format: found 99, written by the kit "),
    "no-inputs": (changed(inputs={}), "sha256: found changed after the kit wrote the file"),
    "no-plan": (without_plan, "sha256: found changed after the kit wrote the file"),
    "other-run": (changed(run="x"), "sha256: found changed after the kit wrote the file"),
    "no-own-digest": (changed(sha256=""), "sha256: found changed after the kit wrote the file"),
    **{kind: (put(kind), "found ") for kind in ("fifo", "folder", "link", "device", "sparse")},
}


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of an executed run, which no test changes."""
    made = make_kit(tmp_path_factory.mktemp("executed")).run()
    add_input(made.folder, made.files.software)
    execute(made, "none", lambda line: None)
    return made.folder


@pytest.mark.fault("input-changed")
@pytest.mark.parametrize("how", IDENTITIES)
def test_a_run_without_a_whole_run_json_is_refused(
    executed: Path, tmp_path: Path, how: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = shutil.copytree(executed, tmp_path / executed.name)
    files = RunFiles(folder)
    change, found = IDENTITIES[how]
    change(files.identity)
    flip(files.facts_probe)
    for command in ("report", "verdict", "stage collect", "stage execute", "status"):
        assert main([*command.split(), f"{folder}"]) == 3
        assert f"run.json: {found}" in capsys.readouterr().err
    assert not files.verdict.exists()


@pytest.mark.fault("input-changed")
@pytest.mark.parametrize("name", ["inputs/other", "inputs/baseline/figures.parquet"])
def test_a_file_that_was_added_to_the_inputs_is_named(run: Run, name: str) -> None:
    path = run.folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("")
    with pytest.raises(BadInput, match=f"{name}: found added after the start of the run"):
        open_run(run.folder)


def test_the_first_digest_of_an_input_stays(run: Run) -> None:
    before = run.files.identity.read_text()
    flip(run.files.software)
    add_input(run.folder, run.files.software)
    assert run.files.identity.read_text() == before


@pytest.mark.fault("input-changed")
@pytest.mark.parametrize("lost", [True, False])
def test_a_mode_in_which_jobs_ran_stays_entered(kit: Kit, lost: bool) -> None:
    """Without its line the steps of the mode would not be expected."""
    site = kit.site()
    partition = site.partition.model_copy(update={"modes": {"a": Mode(), "b": Mode()}})
    current = partition.model_copy(update={"current_mode": "a"})
    kit.case(suites={"quick": {"modes": ["a", "b"]}})
    made = kit.run(site=site.model_copy(update={"partition": current}))
    (job,) = (job for group in made.plan.groups if group.mode == "b" for job in group.jobs)
    enter_mode(made.folder, "b")
    (made.files.job(job.id).folder / "attempt-1").mkdir()
    assert open_run(made.folder).plan.allowed_modes == ["b"]
    made.files.entered.write_text("" if lost else "b\n")
    if lost:
        with pytest.raises(BadInput, match="entered: found no line 'b', but jobs of this mode ran"):
            open_run(made.folder)


@pytest.mark.fault("input-changed")
@pytest.mark.parametrize("name", ["decisions.json", "not-needed.json", "entered"])
@pytest.mark.parametrize("kind", ["fifo", "folder", "link", "dangling", "sparse"])
def test_a_file_of_decisions_that_is_no_regular_file_is_refused(
    run: Run, name: str, kind: str
) -> None:
    path = run.folder / name
    path.unlink(missing_ok=True)
    if kind == "dangling":
        path.symlink_to("nowhere")
    else:
        special(path, kind)
    with pytest.raises(BadInput, match=name):
        open_run(run.folder)
