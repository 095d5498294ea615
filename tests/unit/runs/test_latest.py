"""The links to the newest runs of sites."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.fixtures.kit import Kit
from tests.folders import let_all_enter

from proofmark.cli.main import main
from proofmark.common.errors import BadInput
from proofmark.runs.run import LATEST, Run, followed, is_reserved, newest_run, point
from proofmark.runs.start import RunInputs, start_or_continue


def started(kit: Kit, name: str, site: str, link: str = LATEST) -> Run:
    at = kit.site().model_copy(update={"name": site})
    root = kit.folder / "runs"
    return start_or_continue(
        root, RunInputs(kit.plan(site=at), kit.benchmarks(), at, ""), run_id=name, link=link
    )[0]


def links(kit: Kit) -> dict[str, str]:
    entries = sorted((kit.folder / "runs").iterdir())
    return {path.name: str(path.readlink()) for path in entries if path.is_symlink()}


@pytest.mark.fault("latest-of-another-site")
def test_each_site_and_each_kind_has_its_own_link(kit: Kit) -> None:
    started(kit, "r1", "a")
    started(kit, "r2", "b")
    started(kit, "r3", "a", "twin")
    started(kit, "r4", "a", "")
    assert links(kit) == {"latest-a": "r1", "latest-b": "r2", "twin-a": "r3"}


def test_a_later_run_of_the_site_moves_its_link(kit: Kit) -> None:
    """Control."""
    started(kit, "r1", "a")
    started(kit, "r2", "a")
    assert links(kit) == {"latest-a": "r2"}


def test_a_command_prints_the_run_that_it_takes(
    kit: Kit, capsys: pytest.CaptureFixture[str]
) -> None:
    run = started(kit, "r1", "a")
    link = kit.folder / "runs/latest-a"
    assert main(["status", str(link)]) == 0
    assert capsys.readouterr().err == f"{link} is {run.folder}\n"
    assert main(["status", str(run.folder)]) == 0
    assert capsys.readouterr().err == ""


def test_a_play_opens_the_newest_run_of_its_site(
    kit: Kit, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    run = started(kit, "r1", "a")
    started(kit, "r2", "b")
    (tmp_path / "inventory/a").mkdir(parents=True)
    site = f"--newest-of={tmp_path / 'inventory/a'}"
    assert main(["status", str(kit.folder / "runs"), site, "--plan"]) == 0
    assert json.loads(capsys.readouterr().out)["folder"] == str(run.folder)


def test_a_path_below_a_link_is_followed_too(kit: Kit) -> None:
    run = started(kit, "r1", "a")
    below = kit.folder / "runs/latest-a/workdir/steps/0001-fake-1"
    assert followed(below) == run.folder / "workdir/steps/0001-fake-1"
    assert followed(run.folder / "workdir/steps") is None


def test_a_link_to_a_deleted_run_is_refused(kit: Kit, capsys: pytest.CaptureFixture[str]) -> None:
    started(kit, "20260101T000000Z-a-quick", "a")
    link = kit.folder / "runs/latest-a"
    link.unlink()
    link.symlink_to("gone")
    assert main(["status", str(link)]) == 3
    said = capsys.readouterr().err
    assert f"{link}: a link to gone, which does not exist" in said
    assert "accepted: latest-a, 20260101T000000Z-a-quick" in said
    run = started(kit, "r2", "a")
    assert followed(link) == run.folder


@pytest.mark.parametrize("kind", ["folder", "file"])
def test_what_is_no_link_stays(kit: Kit, capsys: pytest.CaptureFixture[str], kind: str) -> None:
    place = kit.folder / "runs/latest-a"
    place.parent.mkdir()
    place.mkdir() if kind == "folder" else place.write_text("mine")
    run = started(kit, "r1", "a")
    assert run.folder.is_dir()
    assert "latest-a: no link; remove it" in capsys.readouterr().err
    assert not place.is_symlink()
    assert sorted(path.name for path in place.parent.iterdir()) == ["latest-a", "r1"]


@pytest.mark.root
def test_a_link_of_another_user_in_a_sticky_folder_stays(tmp_path: Path) -> None:
    root = tmp_path / "runs"
    root.mkdir()
    link = root / "latest-a"
    link.symlink_to("theirs")
    os.lchown(link, 65534, 65534)
    root.chmod(0o1777)
    let_all_enter(tmp_path)
    child = os.fork()
    if not child:
        try:
            os.setuid(12345)
            os._exit(0 if "not moved to mine: Operation not" in point(link, "mine") else 1)
        finally:
            os._exit(2)  # an exception must not run the other tests in the child
    assert os.waitpid(child, 0)[1] == 0
    assert str(link.readlink()) == "theirs"
    assert list(root.iterdir()) == [link]


def test_runs_that_start_at_the_same_time_leave_one_link(tmp_path: Path) -> None:
    names = [f"r{number}" for number in range(64)]
    with ThreadPoolExecutor(8) as threads:
        problems = list(threads.map(lambda name: point(tmp_path / "latest-a", name), names))
    assert set(problems) == {""}
    assert [path.name for path in tmp_path.iterdir()] == ["latest-a"]
    assert str((tmp_path / "latest-a").readlink()) in names


def test_the_link_of_a_site_is_its_newest_run(tmp_path: Path) -> None:
    point(tmp_path / "latest-a", "r1")
    point(tmp_path / "latest-b", "r2")
    assert newest_run(tmp_path, "a") == tmp_path / "latest-a"
    with pytest.raises(BadInput, match="no run of the site c; accepted: latest-a, latest-b"):
        newest_run(tmp_path, "c")


@pytest.mark.parametrize("name", ["latest", "twin", "adopted", "latest-a", "twin-a b"])
def test_no_run_has_the_name_of_a_link(name: str) -> None:
    assert is_reserved(name)
    assert not is_reserved(f"x{name}")
    assert not is_reserved("latest.1")
