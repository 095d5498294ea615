"""The state of a site: what begins it, whose it is, and what a removed run leaves."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tests.fixtures.kit import Kit, make_kit

from proofmark.common.errors import BadInput
from proofmark.runs.journal import Journal
from proofmark.runs.node_locks import NodeLocks, node_locks_of, reservation_of
from proofmark.runs.run import Run, open_run
from proofmark.runs.run_files import RunFiles
from proofmark.runs.state import (
    Busy,
    RunState,
    begin,
    check_safe,
    find,
    is_locked,
    journals_of,
    lock,
    planned,
    site_folder,
    state_lock,
    word,
)


@pytest.fixture
def kit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kit:
    for name in ("PROOFMARK_STATE", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, f"{tmp_path / 'state'}")
    kit = make_kit(tmp_path)
    kit.case()
    return kit


def refused(error: pytest.ExceptionInfo[BadInput]) -> tuple[str, str, str]:
    (mistake,) = error.value.mistakes
    return mistake.file, mistake.found, mistake.accepted


def test_a_run_begins_its_state_once(kit: Kit) -> None:
    run = kit.run(run_id="one")
    site, folder = site_folder("here"), site_folder("here") / "runs/one"
    assert planned(run) == RunState(folder, site, run.folder, run.plan.partition)
    assert find("here", run.folder) is None and journals_of(run.folder) is None
    assert not site.exists()
    state = begin(run)
    assert state == planned(run) == begin(run) == find("here", run.folder)
    assert (state.id, state.files.folder) == ("one", folder)
    about = json.loads(state.files.identity.read_text())
    assert (about["folder"], about["partition"]) == (f"{run.folder}", run.plan.partition)
    assert journals_of(run.folder) == state.files.journal
    assert journals_of(run.folder.with_name("two")) is None
    assert state.files.identity.stat().st_mode & 0o777 == 0o644


def test_the_id_of_another_run_is_refused_until_that_is_gone(kit: Kit, tmp_path: Path) -> None:
    run = kit.run(run_id="one")
    state = begin(run)
    copy = open_run(shutil.copytree(run.folder, tmp_path / "other/one", symlinks=True))
    with pytest.raises(BadInput) as error:
        begin(copy)
    file, found, accepted = refused(error)
    assert (file, accepted) == ("run_id", "another run id")
    assert found.startswith(f"one: the id of the run in {run.folder}, since 20")
    assert journals_of(copy.folder) is None
    shutil.rmtree(run.folder)
    Journal(state.folder, "n1").intent("drain", address="")
    with pytest.raises(BadInput, match="another run id"):
        begin(copy)
    Journal(state.folder, "n1").result("open")
    state.files.mounted.touch()
    with pytest.raises(BadInput, match="another run id"):
        begin(copy)
    state.files.mounted.unlink()
    assert begin(copy).run == copy.folder
    assert journals_of(copy.folder) == state.files.journal


def test_another_plan_is_refused_while_a_node_waits(kit: Kit) -> None:
    run = kit.run(run_id="one")
    state = begin(run)
    Journal(state.folder, "n1").intent("drain", address="")
    run.files.plan.write_text(run.files.plan.read_text() + "\n")
    with pytest.raises(BadInput) as error:
        begin(run)
    file, found, accepted = refused(error)
    assert (file, accepted) == (f"{run.files.plan}", "the plan of the run, or a new run id")
    assert found.startswith("another plan than at 20") and found.endswith("first used a node")
    Journal(state.folder, "n1").result("open")
    assert begin(run) == state and not state.files.journal.joinpath("n1.jsonl").exists()


def test_the_run_gets_a_copy_of_its_journals(kit: Kit) -> None:
    run = kit.run(run_id="one")
    state = begin(run)
    state.export()
    assert not run.files.journal.exists()
    journal = Journal(state.folder, "n1")
    journal.intent("drain", address="a")
    state.export()
    assert (run.files.journal / "n1.jsonl").read_bytes() == journal.path.read_bytes()
    shutil.rmtree(run.folder)
    state.export()
    assert not run.folder.exists()


def test_one_command_holds_a_lock(kit: Kit) -> None:
    run = kit.run(run_id="one")
    state = begin(run)
    with state.locked(), pytest.raises(BadInput) as error, state_lock(state.files.lock, "one"):
        pytest.fail("two hold it")
    file, found, accepted = refused(error)
    assert (file, accepted) == ("run_id", "one process at a time")
    assert found.startswith("one: in use by process ")
    with state.locked():
        pass
    assert not is_locked(run.folder)
    with lock(run.folder):
        assert is_locked(run.folder)
        with pytest.raises(Busy, match=r"one: in use by process \d+ on "), lock(run.folder):
            pytest.fail("two hold it")
        run.files.lock.write_text("\x1b\n")
        with pytest.raises(Busy, match="in use by another process"), lock(run.folder):
            pytest.fail("two hold it")
    assert not is_locked(run.folder) and not is_locked(run.folder.with_name("none"))


@pytest.mark.parametrize("name", ["", ".", "../x", "-x", "a b", "a/b", "é"])
def test_a_name_of_a_site_is_a_word(name: str) -> None:
    with pytest.raises(BadInput) as error:
        site_folder(name)
    accepted = "letters, digits, dots, dashes and underscores"
    assert refused(error) == ("the name of the site", repr(name), accepted)
    assert word("A.b-c_9", "it") == "A.b-c_9"


def test_a_folder_that_others_can_write_is_refused(kit: Kit) -> None:
    run = kit.run(run_id="one")
    state = begin(run)
    state.folder.chmod(0o777)
    accepted = "accepted: folders that only root"
    with pytest.raises(BadInput, match=accepted):
        check_safe(state.folder)
    with pytest.raises(BadInput, match=accepted):
        begin(run)
    with pytest.raises(BadInput, match=accepted):
        journals_of(run.folder)


def locks_of(kit: Kit, name: str) -> tuple[Run, NodeLocks]:
    run = kit.run(run_id=name)
    return run, node_locks_of(begin(run))


def test_a_node_is_held_by_one_run(kit: Kit) -> None:
    _, first = locks_of(kit, "one")
    run, second = locks_of(kit, "two")
    assert (first.holder("n1"), first.other("n1"), first.holds("n1")) == (None, "", False)
    assert [first.claim(node) for node in ("n2", "n1", "n1")] == ["", "", ""]
    assert (first.holds("n1"), [*first.nodes()], [*second.nodes()]) == (True, ["n1", "n2"], [])
    held = f"held by run one in {first.run_folder} since 20"
    assert second.claim("n1").startswith(held) and second.other("n1").startswith(held)
    second.release("n1")
    assert first.holds("n1") and not second.holds("n1")
    taking = node_locks_of(begin(run), take_over=True)
    assert (taking.other("n1"), taking.claim("n1"), taking.claim("n1")) == ("", "", "")
    assert taking.holds("n1") and [*first.nodes()] == ["n2"]
    taking.release("n1")
    assert taking.holder("n1") is None
    (first.folder / "n3.json").write_text("{")
    assert "n3.json" in first.other("n3") and not first.holds("n3")
    assert first.claim("n3") == first.other("n3")
    assert {path.name for path in first.folder.iterdir()} == {"n2.json", "n3.json"}
    with pytest.raises(BadInput, match="node: found"):
        first.holder("../n1")


def test_the_reason_of_a_drain_names_run_and_controller(kit: Kit) -> None:
    run, locks = locks_of(kit, "one")
    assert locks.name == f"proofmark:one on {locks.controller}"
    assert locks.reason(" to \n check ") == f"{locks.name} to check"
    assert locks.mark == f"{locks.name}, run folder {run.folder}, state {site_folder('here')}"


def test_a_reservation_is_that_of_the_folder(kit: Kit) -> None:
    run = kit.run(run_id="one")
    assert reservation_of(run) == ""
    path = site_folder("here") / "reservations/one.json"
    path.parent.mkdir(parents=True)
    for folder, name in ((run.folder, "r1"), (run.folder.with_name("two"), "")):
        path.write_text(json.dumps({"name": "r1", "run": f"{folder}"}))
        assert reservation_of(run) == name
    assert RunFiles(run.folder).lock.name == "lock"
