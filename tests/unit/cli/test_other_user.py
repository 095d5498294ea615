"""Root works in a run of another user, who can change every file of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from proofmark.runs.owner import as_owner
from proofmark.runs.run_names import open_names
from tests.fixtures.phi import NOBODY, Phi, phi_site
from tests.forks import tool

from proofmark.cli.main import main
from proofmark.common.errors import BadInput
from proofmark.runs.evidence import acceptance_folder
from proofmark.runs.journal import Journal, unverified
from proofmark.runs.run import Run
from proofmark.runs.run_files import RunFiles
from proofmark.runs.state import begin, find, proofs_of

pytestmark = pytest.mark.root
HEMISPHERE = {"n1": "Hemisphere", "n2": "Hemisphere"}
QUADRANT = {"n1": "Quadrant", "n2": "Quadrant"}


@pytest.fixture
def phi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Phi]:
    with phi_site(tmp_path, monkeypatch) as made:
        yield made


def state_folder(phi: Phi, run: str = "acc1") -> Path:
    return phi.folder / "state/phi/runs" / run


def owners(folder: Path) -> set[int]:
    return {path.lstat().st_uid for path in folder.rglob("*")}


def test_root_changes_modes_and_writes_the_run_as_its_owner(phi: Phi) -> None:
    """Control: no fault is injected."""
    run = phi.run(owner=NOBODY.pw_uid)
    assert phi.enter(run) == 0
    assert phi.clusters() == HEMISPHERE
    assert phi.main("-v", "modes", "status", run.folder) == 0
    assert phi.change("restore", run) == 0
    assert phi.clusters() == QUADRANT
    written = {path.name for path in run.folder.iterdir()}
    assert written >= {"journal", "entered", "lock", "trace.log"}
    assert owners(run.folder) == {NOBODY.pw_uid}
    assert {path.name for path in run.files.journal.iterdir()} == {"n1.jsonl", "n2.jsonl"}
    assert owners(phi.folder / "state") == {0}
    assert list((phi.folder / "state/phi/nodes").iterdir()) == []


@pytest.mark.fault("run-user-link")
@pytest.mark.parametrize("name", ["lock", "journal", "journal/n1.jsonl", "entered", "trace.log"])
def test_a_link_of_the_run_user_leads_root_nowhere(phi: Phi, name: str) -> None:
    run = phi.run(owner=NOBODY.pw_uid)
    secret = phi.folder / "secret"
    secret.mkdir(mode=0o700)
    target = secret / "file"
    target.write_text("of root, without a last newline")
    place = run.folder / name
    if name == "entered":  # a link there is refused before the first change
        assert phi.enter(run) == 0
        place.unlink()
    place.parent.mkdir(exist_ok=True)
    os.chown(place.parent, NOBODY.pw_uid, NOBODY.pw_gid)
    place.symlink_to(secret if name == "journal" else target)
    os.chown(place, NOBODY.pw_uid, NOBODY.pw_gid, follow_symlinks=False)

    mode = ("--mode", "hemisphere-flat", "--confirm-reboot")
    entered = phi.main("-v", "modes", "enter", run.folder, *mode)
    assert entered == (3 if name in ("lock", "entered") else 0)
    assert phi.change("restore", run) == 0, "the user cannot prevent it"
    assert phi.clusters() == QUADRANT and phi.slurm.drained == {}
    assert target.read_text() == "of root, without a last newline"
    assert (target.stat().st_uid, [each.name for each in secret.iterdir()]) == (0, ["file"])


@pytest.mark.fault("run-user-site")
@pytest.mark.parametrize(
    "words",
    [
        "modes verify RUN",
        "modes enter RUN --mode hemisphere-flat --confirm-reboot",
        "scratch check RUN",
        "scratch verify RUN",
        "stage check-programs RUN",
    ],
)
def test_a_command_in_the_site_of_the_run_is_not_executed(phi: Phi, words: str) -> None:
    run = phi.run(owner=NOBODY.pw_uid)
    proof = phi.folder / "executed"
    site = json.loads(run.files.site.read_text())
    shell = ["sh", "-c", f"id -u >>{proof}; exit 1"]
    site["remote_shell"] = shell
    site["partition"]["firmware"]["remote_shell"] = shell
    run.files.site.write_text(json.dumps(site))
    phi.forge(run)
    assert phi.main(*words.replace("RUN", str(run.folder)).split()) == 0
    assert not proof.exists()


@pytest.mark.fault("run-user-plan")
def test_a_node_that_is_no_host_of_the_inventory_is_refused(
    phi: Phi, capsys: pytest.CaptureFixture[str]
) -> None:
    """The plan of the run user names a node of another partition."""
    run = phi.run(owner=NOBODY.pw_uid)
    text = run.files.plan.read_text()
    run.files.plan.write_text(text.replace('"n[1-2]"', '"n1", "login1"'))
    phi.forge(run)
    assert set(open_names(run.folder).names.nodes) == {"n1", "login1"}
    for verb in (["modes", "verify"], ["scratch", "verify"]):
        assert phi.main(*verb, run.folder) == 3
        assert "does not select: login1" in capsys.readouterr().err
    assert phi.enter(run) == 3
    assert phi.clusters() == QUADRANT
    assert not (phi.folder / "state").exists()


@pytest.mark.fault("run-user-plan")
@pytest.mark.parametrize("kind", ["link", "pipe", "large"])
def test_a_plan_that_is_no_regular_file_is_refused(
    phi: Phi, kind: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = phi.run(owner=NOBODY.pw_uid)
    plan = run.files.plan
    if kind == "large":
        with plan.open("r+b") as file:
            file.truncate((1 << 30) + 1)  # a sparse file
    else:
        secret = phi.folder / "secret.json"
        plan.rename(secret)
        secret.chmod(0o600)
        if kind == "link":
            plan.symlink_to(secret)
        else:
            os.mkfifo(plan)
    assert phi.enter(run) == 3
    assert phi.clusters() == QUADRANT


@pytest.mark.fault("run-user-journal")
@pytest.mark.parametrize("how", ["changed", "removed", "folder removed"])
def test_restore_does_not_read_the_run(phi: Phi, how: str) -> None:
    """The user changes the values to restore, or removes the journals or the whole run."""
    run = phi.run(owner=NOBODY.pw_uid)
    assert phi.enter(run) == 0
    if how == "folder removed":
        run.folder.rename(phi.folder / "away")
    for path in run.files.journal.glob("*"):
        if how == "changed":
            path.write_text(path.read_text().replace('"Quadrant"', '"All2All"'))
        else:
            path.unlink()
    assert phi.change("restore", run) == 0
    assert phi.clusters() == QUADRANT


@pytest.mark.fault("foreign-run-executed")
@pytest.mark.parametrize("words", ["stage execute", "rerun", "stage record-software"])
def test_programs_of_another_user_are_not_started(
    phi: Phi, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run = phi.run(owner=NOBODY.pw_uid)
    more = ["1"] if words == "rerun" else []
    before = {path: path.lstat().st_mtime_ns for path in run.folder.rglob("*")}
    assert main([*words.split(), str(run.folder), *more]) == 3
    error = capsys.readouterr().err
    assert "a folder of the user nobody, whose files root would execute" in error
    assert "the same command as nobody" in error
    assert {path: path.lstat().st_mtime_ns for path in run.folder.rglob("*")} == before


def test_programs_of_root_are_started(phi: Phi) -> None:
    """Control: no fault is injected."""
    run = phi.run()
    assert main(["stage", "execute", str(run.folder), "--scripts"]) == 0


@pytest.mark.fault("run-user-link")
def test_a_report_by_root_is_not_written_where_the_owner_can_write(phi: Phi) -> None:
    """It is in the state of root. A link of the run user to a file of root is not written."""
    run = phi.run(owner=NOBODY.pw_uid)

    def by_root(*words: str) -> subprocess.CompletedProcess[str]:
        command = [tool("proofmark"), *words, str(run.folder)]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    refused = by_root("report")
    assert refused.returncode == 3
    assert "a run of nobody, of which nothing is sealed" in refused.stderr
    assert not run.files.report.exists()

    secret = phi.folder / "secret"
    secret.mkdir(mode=0o700)
    products = ("report", "verdict", "junit", "records", "vendor_list")
    with as_owner(run.folder):
        (run.folder / "evidence").symlink_to(secret)
        for name in products:
            path: Path = getattr(run.files, name)
            path.symlink_to(secret / path.name)
            path.with_name(f"{path.name}.new").symlink_to(secret / path.name)
    assert (done := by_root("stage", "collect")).returncode == 0, done.stderr
    assert (done := by_root("report")).returncode == 0, done.stderr
    acceptance = acceptance_folder(run.folder)
    assert acceptance.parent == phi.folder / "state/acceptances"
    assert all(getattr(RunFiles(acceptance), name).is_file() for name in products)
    assert owners(acceptance) == {0}
    assert owners(run.folder) == {NOBODY.pw_uid}
    assert list(secret.iterdir()) == []


def as_nobody(work: str, *words: object) -> subprocess.CompletedProcess[str]:
    """Run Python code as the run user."""
    user = ["setpriv", "--reuid=nobody", f"--regid={NOBODY.pw_gid}", "--clear-groups"]
    command = [*user, sys.executable, "-c", work, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


UNVERIFIED = """
import sys
from pathlib import Path
from proofmark.runs.journal import unverified
from proofmark.runs.run import open_run
from proofmark.runs.state import proofs_of
run = open_run(Path(sys.argv[1]))
print(unverified(proofs_of(run), ["n1", "n2"], sys.argv[2]))
"""


def test_the_run_user_reads_the_proofs_of_root(phi: Phi) -> None:
    """They are readable although the umask of root is 077. A journal in the run is ignored."""
    run = phi.run(owner=NOBODY.pw_uid)
    before = os.umask(0o077)
    try:
        assert phi.enter(run) == 0
    finally:
        os.umask(before)
    done = as_nobody(UNVERIFIED, run.folder, "hemisphere-flat")
    assert done.stdout.strip() == "{}", done.stderr
    with as_owner(run.folder):
        Journal(run.folder, "n1").result("verified", mode="quadrant-flat", seen={})
    done = as_nobody(UNVERIFIED, run.folder, "quadrant-flat")
    assert "in mode hemisphere-flat" in done.stdout, done.stderr


@pytest.mark.fault("state-writable")
@pytest.mark.parametrize("place", ["state", "state/phi", "state/phi/runs/acc1"])
@pytest.mark.parametrize("how", ["mode", "owner", "link"])
def test_a_state_that_others_can_change_is_refused(phi: Phi, place: str, how: str) -> None:
    run = phi.run()
    begin(open_names(run.folder))
    folder = phi.folder / place
    if how == "mode":
        folder.chmod(0o777)
    elif how == "owner":
        os.chown(folder, NOBODY.pw_uid, NOBODY.pw_gid)
    elif place != "state":  # the name of the whole state may be a link of root
        folder.rename(phi.folder / "elsewhere")
        folder.symlink_to(phi.folder / "elsewhere")
    else:
        return
    assert phi.enter(run) == 3
    assert phi.clusters() == QUADRANT


@pytest.mark.fault("run-id-elsewhere")
def test_a_run_of_the_same_id_elsewhere_is_refused(
    phi: Phi, capsys: pytest.CaptureFixture[str]
) -> None:
    first = phi.run()
    second = phi.run(folder="other")
    assert phi.enter(first) == 0
    assert phi.enter(second) == 3
    error = capsys.readouterr().err
    assert f"acc1: the id of the run in {first.folder}, since 20" in error
    assert phi.change("restore", first) == 0
    first.folder.rename(phi.folder / "away")
    assert phi.enter(second) == 0, "the first one has been restored and removed"


def test_a_removed_run_with_changed_nodes_keeps_its_id(phi: Phi) -> None:
    """The control of the last line of the test above."""
    first, second = phi.run(), phi.run(folder="other")
    assert phi.enter(first) == 0
    first.folder.rename(phi.folder / "away")
    assert phi.enter(second) == 3
    assert find("phi", first.folder) is not None


def test_a_changed_plan_is_refused_and_restored(phi: Phi) -> None:
    run = phi.run()
    assert phi.enter(run) == 0
    run.files.plan.write_text(run.files.plan.read_text() + "\n")
    assert phi.enter(run) == 3
    phi.forge(run)
    assert phi.enter(run) == 3
    plan = run.files.plan.read_text()
    run.files.plan.unlink()
    assert phi.change("restore", run) == 0
    assert phi.clusters() == QUADRANT
    run.files.plan.write_text(plan)
    assert phi.enter(run) == 0, "no node waits for the restore of the first plan"


@pytest.mark.parametrize("verb", ["restore", "status"])
def test_a_lost_state_is_not_taken_for_unchanged_nodes(
    phi: Phi, verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The copies of the journals in the run prove nothing: its owner can change them."""
    run = phi.run()
    assert phi.enter(run) == 0
    state_folder(phi).rename(phi.folder / "lost")
    confirmed = ["--confirm-reboot"] if verb == "restore" else []
    assert phi.main("modes", verb, run.folder, *confirmed) == 3
    assert "found journals of 2 nodes, without their state in" in capsys.readouterr().err
    assert phi.clusters() == HEMISPHERE


def test_a_folder_of_root_that_another_user_can_replace_is_refused(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    run = shared / "run"
    run.mkdir(parents=True)
    with as_owner(run):
        assert os.geteuid() == 0
    os.chown(shared, NOBODY.pw_uid, NOBODY.pw_gid)
    with pytest.raises(BadInput, match="another user can replace it"), as_owner(run):
        pass
    os.chown(shared, 0, 0)
    (tmp_path / "link").symlink_to(shared)
    with pytest.raises(BadInput, match="a link"), as_owner(tmp_path / "link/run"):
        pass


def test_the_rights_of_the_owner_are_those_of_its_groups(tmp_path: Path) -> None:
    os.chown(tmp_path, NOBODY.pw_uid, NOBODY.pw_gid)
    before = (os.geteuid(), os.getegid(), os.getgroups())
    with pytest.raises(ZeroDivisionError), as_owner(tmp_path):
        inside: tuple[Any, ...] = (os.geteuid(), os.getegid(), set(os.getgroups()))
        assert inside == (NOBODY.pw_uid, NOBODY.pw_gid, {NOBODY.pw_gid})
        raise ZeroDivisionError
    assert (os.geteuid(), os.getegid(), os.getgroups()) == before


def test_a_node_without_proof_is_named(phi: Phi) -> None:
    run: Run = phi.run()
    assert not RunFiles(proofs_of(run)).journal.exists()
    assert unverified(proofs_of(run), ["n1"], "quadrant-flat") == {"n1": "not verified"}
