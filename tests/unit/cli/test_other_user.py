"""Root plays for another user, who owns the work folder and can change every file of it."""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.fixtures.kit import SOUND, Kit, make_kit
from tests.fixtures.phi import NOBODY, Phi, phi_site
from tests.folders import let_all_enter
from tests.forks import tool

from proofmark.cli.main import main
from proofmark.common.archive import Change
from proofmark.common.errors import BadInput
from proofmark.common.rights import acting_as, run_user
from proofmark.runs.evidence import open_evidence, seal
from proofmark.runs.journal import unverified
from proofmark.runs.run import Run, open_run
from proofmark.runs.run_files import RunFiles, work_files
from proofmark.runs.state import begin, find, planned

pytestmark = [
    pytest.mark.root,
    pytest.mark.rest("a run for each way in which another user can change it"),
]
HEMISPHERE = {"n1": "Hemisphere", "n2": "Hemisphere"}
QUADRANT = {"n1": "Quadrant", "n2": "Quadrant"}


@pytest.fixture
def phi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Phi]:
    with phi_site(tmp_path, monkeypatch) as made:
        yield made


@pytest.fixture
def kit(tmp_path: Path) -> Kit:
    """Return a checkout whose programs another user can start."""
    let_all_enter(tmp_path)
    made = make_kit(tmp_path / "kit")
    made.case()
    made.program(SOUND)
    return made


def run_of_nobody(kit: Kit, **how: Any) -> Run:
    """Return a run of root whose programs `nobody` starts."""
    site = kit.site()
    work = kit.folder / "work-of-nobody"
    work.mkdir(exist_ok=True)
    os.chown(work, NOBODY.pw_uid, NOBODY.pw_gid)
    Path(site.partition.scratch.path).mkdir(exist_ok=True)
    Path(site.partition.scratch.path).chmod(0o1777)
    facts = {"run_user": "nobody", "work": f"{work}"}
    partition = site.partition.model_copy(update=facts)
    return kit.run(site=site.model_copy(update={"partition": partition}), **how)


def executed(kit: Kit) -> Run:
    run = run_of_nobody(kit)
    assert main(["stage", "execute", f"{run.folder}"]) == 0
    return run


def state_folder(phi: Phi, run: str = "acc1") -> Path:
    return phi.folder / "state/phi/runs" / run


def owners(folder: Path) -> set[int]:
    return {path.lstat().st_uid for path in folder.rglob("*")}


@pytest.mark.core("one run of root for another user")
def test_the_run_belongs_to_root_and_its_outputs_to_the_run_user(kit: Kit) -> None:
    """Control: no fault is injected."""
    run = executed(kit)
    assert run.run_by == "nobody"
    assert owners(run.folder) == {0}
    work = work_files(run.folder).folder
    assert run.files.work_folder.is_symlink()
    assert owners(work) == {NOBODY.pw_uid}
    assert len([*work.glob("steps/*/execution-1/stdout")]) == 2
    assert main(["stage", "collect", f"{run.folder}"]) == 0
    assert main(["report", f"{run.folder}"]) == 0
    sealed = open_evidence(run.folder)
    assert sealed and sealed.seal and sealed.seal.run_by == "nobody" and not sealed.seal.changes
    assert owners(run.folder) == {0}
    assert main(["rerun", f"{run.folder}", "1"]) == 0
    assert len([*work.glob("steps/*/execution-2/stdout")]) == 1
    assert main(["status", f"{run.folder}"]) == 0


def test_the_scripts_of_a_run_are_those_of_its_work_folder(kit: Kit) -> None:
    run = run_of_nobody(kit)
    scripts, work = run.files.scripts_folder, work_files(run.folder).folder
    names = {path.relative_to(scripts) for path in scripts.rglob("*") if path.is_file()}
    assert len(names) > 4
    assert {name for name in names if (work / name).read_bytes() == (scripts / name).read_bytes()}
    assert names == {path.relative_to(work) for path in work.rglob("*") if path.is_file()}


@pytest.mark.core("a verdict")
@pytest.mark.fault("run-user-script")
@pytest.mark.parametrize("name", ["steps/0001-fake-1/run.sh", "jobs/*/job.sh", "probe.sh"])
def test_a_script_that_the_run_user_changed_makes_its_steps_invalid(kit: Kit, name: str) -> None:
    """A script of a step is that of the step alone, and any other one is of both steps."""
    run = executed(kit)
    (path,) = work_files(run.folder).folder.glob(name)
    with acting_as(run_user("nobody")):
        path.write_text(path.read_text() + "# edited\n")
    evidence = seal(run.folder)
    place = f"workdir/{path.relative_to(work_files(run.folder).folder)}"
    assert evidence.changes == {place: Change.SCRIPT}
    done = subprocess.run(
        [tool("proofmark"), "verdict", f"{run.folder}", "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert f"{place} is not the script of the run" in done.stdout
    assert done.stdout.count('"verdict": "INVALID"') == (1 if name.startswith("steps") else 2)


@pytest.mark.fault("run-user-link")
@pytest.mark.parametrize(
    "place",
    [
        *("steps", "jobs", "steps/0001-fake-1", "steps/0001-fake-1/execution-1"),
        *("steps/0001-fake-1/execution-1/stdout", "steps/0001-fake-1/execution-1/rc"),
        *("jobs/00-0001/attempt-1", "jobs/00-0001/messages", "steps/0001-fake-1/run.sh"),
    ],
)
def test_a_link_of_the_run_user_leads_root_nowhere(
    kit: Kit, place: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """Root reads and writes the work folder with the rights of its owner."""
    run = executed(kit)
    secret = kit.folder / "secret"
    shutil.copytree(work_files(run.folder).folder, secret)
    for path in secret.rglob("*"):
        if path.is_file():
            path.write_text("of root: geheim\n")
    secret.chmod(0o700)
    before = {path: path.lstat().st_mtime_ns for path in (secret, *secret.rglob("*"))}
    target = work_files(run.folder).folder / place
    with acting_as(run_user("nobody")):
        target.rename(f"{target}.away")
        target.symlink_to(secret / place)
    for words in (
        *(["status"], ["stage", "collect"], ["report"], ["stage", "execute"]),
        *(["rerun"], ["stage", "collect"], ["verdict"], ["trend"]),
    ):
        more = ["1"] if words[0] == "rerun" else []
        assert main([*words, f"{run.folder}", *more]) in (0, 1, 2, 3, 4)
    said = capfd.readouterr()
    assert "geheim" not in said.out + said.err
    for archive in run.folder.glob("evidence/*.tar"):
        assert b"geheim" not in archive.read_bytes()
    for path in run.folder.rglob("*.html"):
        assert "geheim" not in path.read_text()
    assert {path: path.lstat().st_mtime_ns for path in (secret, *secret.rglob("*"))} == before


@pytest.mark.fault("run-user-values")
def test_nothing_but_outputs_is_taken_from_the_work_folder(kit: Kit) -> None:
    """The run user plants a plan, decisions, a site and evidence beside the outputs."""
    run = executed(kit)
    work = work_files(run.folder).folder
    planted = ("decisions.json", "plan.json", "run.json", "not-needed.json", "software.json")
    with acting_as(run_user("nobody")):
        for name in planted:
            (work / name).write_text('{"not_needed": {"0001-fake-1": {"code": "x"}}}')
        for name in ("inputs", "evidence", "queue", "growth", "stage-faults", "signed"):
            (work / name).mkdir()
            (work / name / "site.json").write_text("{}")
    assert main(["stage", "collect", f"{run.folder}"]) == 0
    sealed = open_evidence(run.folder)
    assert sealed and [*sealed.plan.not_needed] == []
    assert sealed.plan == open_run(run.folder).plan
    with tarfile.open(run.folder / "evidence/0001.tar") as tar:
        assert {f"workdir/{name}" for name in planted} <= {*tar.getnames()}
        assert tar.getnames().count("plan.json") == 1


@pytest.mark.parametrize("removed", ["a step", "all"])
def test_outputs_that_the_run_user_removed_are_missing(kit: Kit, removed: str) -> None:
    run = executed(kit)
    work = work_files(run.folder).folder
    shutil.rmtree(work / "steps/0001-fake-1" if removed == "a step" else work)
    assert main(["stage", "collect", f"{run.folder}"]) == 0
    assert main(["verdict", f"{run.folder}"]) == 2
    sealed = open_evidence(run.folder)
    assert sealed and len([*sealed.plan.steps()]) == 2


@pytest.mark.fault("shared-runs")
@pytest.mark.parametrize("how", ["mode", "owner", "link"])
def test_a_run_in_a_folder_that_others_can_write_is_refused(
    kit: Kit, how: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The control is the first test of this page."""
    runs = kit.folder / "runs"
    run = run_of_nobody(kit)
    if how == "mode":
        runs.chmod(0o777)
    elif how == "owner":
        os.chown(runs, NOBODY.pw_uid, NOBODY.pw_gid)
    else:
        shared = kit.folder / "shared"
        shared.mkdir()
        shared.chmod(0o1777)
        (shared / "runs").symlink_to(runs)
        os.lchown(shared / "runs", NOBODY.pw_uid, NOBODY.pw_gid)
        runs = shared / "runs"
    for words in (["stage", "execute"], ["stage", "collect"], ["report"], ["status"]):
        assert main([*words, f"{runs / run.id}"]) == 3
        assert "accepted: a run that only its user and root can change" in capsys.readouterr().err
    if how != "link":
        with pytest.raises(BadInput, match="only this user and root can write"):
            kit.run(run_id="second")


def test_a_work_folder_that_the_run_user_cannot_make_is_named(kit: Kit) -> None:
    site = kit.site()
    closed = kit.folder / "closed"
    closed.mkdir(mode=0o700)
    facts = {"run_user": "nobody", "work": f"{closed}"}
    partition = site.partition.model_copy(update=facts)
    with pytest.raises(BadInput, match=r"partition\.work: found .*Permission denied, for the user"):
        kit.run(site=site.model_copy(update={"partition": partition}), run_id="a")
    assert not (kit.folder / "runs/a").exists()


@pytest.mark.core("the control")
def test_root_changes_modes_of_a_run_whose_programs_another_user_starts(phi: Phi) -> None:
    """Control: no fault is injected."""
    phi.write_run_user("nobody")
    run = phi.run()
    assert phi.enter(run) == 0
    assert phi.clusters() == HEMISPHERE
    assert phi.main("-v", "modes", "status", run.folder) == 0
    assert phi.change("restore", run) == 0
    assert phi.clusters() == QUADRANT
    written = {path.name for path in run.folder.iterdir()}
    assert written >= {"journal", "entered", "lock", "trace.log"}
    assert owners(run.folder) == {0}
    assert {path.name for path in run.files.journal.iterdir()} == {"n1.jsonl", "n2.jsonl"}
    assert owners(phi.folder / "state") == {0}
    assert list((phi.folder / "state/phi/nodes").iterdir()) == []


@pytest.mark.core("one restore")
@pytest.mark.fault("run-user-journal")
@pytest.mark.parametrize("how", ["changed", "removed", "folder removed"])
def test_restore_does_not_read_the_run(phi: Phi, how: str) -> None:
    """The user changes the values to restore, or removes the journals or the whole run."""
    run = phi.run()
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


def test_programs_of_root_are_started(phi: Phi) -> None:
    """Control: no fault is injected."""
    run = phi.run()
    assert main(["stage", "execute", str(run.folder), "--scripts"]) == 0


@pytest.mark.fault("state-writable")
@pytest.mark.parametrize("place", ["state", "state/phi", "state/phi/runs/acc1"])
@pytest.mark.parametrize("how", ["mode", "owner", "link"])
def test_a_state_that_others_can_change_is_refused(phi: Phi, place: str, how: str) -> None:
    run = phi.run()
    begin(run)
    folder = phi.folder / place
    if how == "mode":
        folder.chmod(0o777)
    elif how == "owner":
        os.chown(folder, NOBODY.pw_uid, NOBODY.pw_gid)
    elif place != "state":  # the name of the whole state may be a link of root
        folder.rename(phi.folder / "elsewhere")
        folder.symlink_to(phi.folder / "elsewhere")
        os.lchown(folder, NOBODY.pw_uid, NOBODY.pw_gid)
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


def test_a_node_without_proof_is_named(phi: Phi) -> None:
    run: Run = phi.run()
    assert not RunFiles(planned(run).folder).journal.exists()
    assert unverified(planned(run).folder, ["n1"], "quadrant-flat") == {"n1": "not verified"}


def test_the_rights_of_a_user_are_those_of_its_groups(tmp_path: Path) -> None:
    nobody = run_user("nobody")
    before = (os.geteuid(), os.getegid(), os.getgroups())
    with pytest.raises(ZeroDivisionError), acting_as(nobody):
        inside: tuple[Any, ...] = (os.geteuid(), os.getegid(), set(os.getgroups()))
        assert inside == (NOBODY.pw_uid, NOBODY.pw_gid, {NOBODY.pw_gid})
        raise ZeroDivisionError
    assert (os.geteuid(), os.getegid(), os.getgroups()) == before


@pytest.mark.fault("variables-of-root")
def test_the_variables_of_root_are_not_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control is this user."""
    roots = dict.fromkeys(
        (
            *("ANSIBLE_LIBRARY", "ANSIBLE_COLLECTIONS_PATH", "PYTHONPATH", "LD_LIBRARY_PATH"),
            *("XDG_CONFIG_HOME", "SSH_AUTH_SOCK", "TMPDIR", "PROOFMARK_BMC_PASSWORD"),
        ),
        "x",
    )
    for name, value in {**roots, "SLURM_CONF": "/etc/s"}.items():
        monkeypatch.setenv(name, value)
    variables = run_user("nobody").environment("scheduler")
    assert not roots.keys() & variables.keys()
    expected = {"USER": "nobody", "LOGNAME": "nobody", "SLURM_CONF": "/etc/s"}
    assert expected.items() <= variables.items()
    own = {"XDG_CONFIG_HOME", "TMPDIR"}
    assert own <= run_user("").environment("scheduler").keys()
