"""Every script of nodes in a layout of another user changes nothing of root and the run user."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from proofmark.machine.node_commands import SCRIPTS, script_text

pytestmark = pytest.mark.root
EACH_MODE = pytest.mark.rest("the folder with the usual mode of a shared one is in make test")
OTHER_MODES = [pytest.param(0o777, marks=EACH_MODE)]
ALICE = 65534
"""The run user, nobody."""
BOB = 65533
RUN = "run1"
NAMES = ("-rf", "pm", "p m", "p\nm", "*", "'$(id)")
WORDS: dict[str, list[list[str]]] = {
    "scratch-clean.sh": [["nobody", RUN, "PATH"], ["", RUN, "PATH"]],
    "scratch-probe.sh": [
        ["-u", "nobody", "-c", "-w", "-k", "token", "PATH"],
        ["-c", "-w", "-k", "token", "PATH"],
        ["-u", "nobody", "-d", "token", "PATH"],
    ],
    "scratch-mount.sh": [["mount", "PATH", "tmpfs", "none", "MOUNT", "umount PATH"]],
    "missing-programs.sh": [["PATH", "PATH/run1/file"]],
    "mount-source.sh": [[]],
    "run-user.sh": [[]],
}
"""The arguments with which the kit starts each script; PATH is the path of another user."""


@pytest.fixture
def top() -> Iterator[Path]:
    with TemporaryDirectory(prefix="proofmark-test-", dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def start(name: str, words: list[str], top: Path) -> subprocess.CompletedProcess[str]:
    """Run a script as `run_on_nodes` does, in a mount namespace, with a program `file` in PATH."""
    text = f"(\nset -- {shlex.join(words)}\n{script_text(name)}\n) </dev/null || exit\n"
    return subprocess.run(
        ["unshare", "--mount", "sh", "-s"],
        input=text,
        cwd="/",
        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "PROOFMARK_NOTES": f"{top}/notes"},
        capture_output=True,
        text=True,
        check=False,
    )


def arguments(words: list[str], path: Path, top: Path) -> list[str]:
    """Return `words` with the path; the mount command leaves a file, as its mount ends soon."""
    mount = f"touch {top}/mounted; mount -t tmpfs none {shlex.quote(f'{path}')}"
    words = [mount if word == "MOUNT" else word for word in words]
    return [word.replace("PATH", f"{path}") for word in words]


def tree(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Return mode, owner and content of all below `folder`."""
    found = {}
    for path in (folder, *folder.rglob("*")):
        status = path.lstat()
        content = path.read_bytes() if path.is_file() else b""
        found[f"{path}"] = (status.st_mode, status.st_uid, content)
    return found


def victim(folder: Path, owner: int) -> Path:
    """Make a folder with files at each place that a script could reach through a link to it."""
    for parts in ("", "a", "a/pm", "pm"):
        (folder / parts / RUN).mkdir(parents=True)
        (folder / parts / RUN / "file").write_text("precious")
        (folder / parts / ".proofmark-token").write_text("precious")
    for path in (folder, *folder.rglob("*")):
        os.chown(path, owner, owner)
    return folder


def hostile(top: Path, weak: str, mode: int, other: int, target: Path) -> Path:
    """Return a path of which `other` has replaced the part `weak` by a link to `target`.

    Args:
        top: where the path begins.
        weak: a part of it, or a part behind a link of root.
        mode: of the folder with the link; it belongs to `other` if only its owner can write it.
        other: who made the link.
        target: where the link leads.
    """
    path = top / "scratch/a/pm"
    if weak == "behind":
        place = top / "shared/x"
        path.parent.mkdir(parents=True)
        path.symlink_to(place)
    else:
        place = {"scratch": top / "sc/scratch", "a": path.parent, "pm": path}[weak]
        path = top / "sc/scratch/a/pm" if weak == "scratch" else path
    place.parent.mkdir(parents=True)
    place.symlink_to(target)
    os.chown(place, other, other, follow_symlinks=False)
    if not mode & 0o002:
        os.chown(place.parent, other, other)
    place.parent.chmod(mode)
    return path


CASES = [(name, words) for name, calls in WORDS.items() for words in calls]


def test_each_script_is_tried() -> None:
    assert {path.name for path in SCRIPTS.iterdir()} == WORDS.keys()


@pytest.mark.fault("path-of-another-user")
@pytest.mark.parametrize("mode", [0o1777, *OTHER_MODES, pytest.param(0o755, marks=EACH_MODE)])
@pytest.mark.parametrize("weak", ["scratch", "a", "pm", "behind"])
def test_nothing_of_root_changes(top: Path, weak: str, mode: int) -> None:
    """The run user, and a third one, put links in the way; the victim is root."""
    for number, other in enumerate((ALICE, BOB)):
        for case, (name, words) in enumerate(CASES):
            folder = top / f"{number}-{case}"
            target = victim(folder / "victim", 0)
            path = hostile(folder, weak, mode, other, target)
            before = tree(target)
            start(name, arguments(words, path, folder), folder)
            assert tree(target) == before, (name, words, other)
            assert not (folder / "mounted").exists(), "mounted over it"


@pytest.mark.fault("path-of-another-user")
@pytest.mark.parametrize("mode", [0o1777, *OTHER_MODES])
@pytest.mark.parametrize("weak", ["scratch", "a", "pm", "behind"])
def test_nothing_of_the_run_user_changes(top: Path, weak: str, mode: int) -> None:
    """A third user leads the run user to files of its own."""
    for case, (name, words) in enumerate(CASES):
        folder = top / f"{case}"
        target = victim(folder / "victim", ALICE)
        path = hostile(folder, weak, mode, BOB, target)
        before = tree(target)
        done = start(name, arguments(words, path, folder), folder)
        assert tree(target) == before, (name, words)
        if "nobody" in words:
            assert " belongs to " in done.stdout + done.stderr
    refused = start("scratch-clean.sh", ["nobody", RUN, f"{path}"], top)
    assert refused.returncode == 74


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("user", ["nobody", ""])
def test_own_folders_are_removed_once(top: Path, name: str, user: str) -> None:
    """Only the folder of the run is removed. A second call prints nothing. This is the control."""
    shared = top / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    path = shared / name
    made = start("scratch-probe.sh", [*(["-u", user] if user else []), "-c", "-w", f"{path}"], top)
    assert "| result: ok" in made.stdout, made.stdout + made.stderr
    assert path.stat().st_uid == (ALICE if user else 0)
    for each in (RUN, "other"):
        (path / each).mkdir()
        (path / each / "file").write_text("x")
        for part in (path / each, path / each / "file"):
            os.chown(part, path.stat().st_uid, -1)
    done = start("scratch-clean.sh", [user, RUN, f"{path}"], top)
    assert (done.returncode, done.stdout) == (0, f"removed {path}/{RUN}\n"), done.stderr
    assert [each.name for each in path.iterdir()] == ["other"]
    again = start("scratch-clean.sh", [user, RUN, f"{path}"], top)
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "")


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../victim"])
def test_only_a_name_is_removed(top: Path, name: str) -> None:
    before = tree(victim(top / "victim", 0))
    done = start("scratch-clean.sh", ["", name, f"{top}/victim/a"], top)
    assert done.returncode == 3
    assert tree(top / "victim") == before


@pytest.mark.parametrize("parent", ["of-root", "of-bob"])
def test_root_makes_a_folder_only_where_no_other_user_decides(top: Path, parent: str) -> None:
    """The run user cannot write there: root makes the folder and gives it away."""
    place = top / parent
    place.mkdir(mode=0o755)
    if parent == "of-bob":
        os.chown(place, BOB, BOB)
    done = start("scratch-probe.sh", ["-u", "nobody", "-c", "-w", f"{place}/pm"], top)
    assert (place / "pm").exists() == (parent == "of-root")
    if parent == "of-bob":
        assert f"root does not make it: {place} belongs to" in done.stdout
    else:
        assert (place / "pm").stat().st_uid == ALICE


def test_root_mounts_only_where_no_other_user_decides(top: Path) -> None:
    """Control: a mount point of root, which is made."""
    words = arguments(WORDS["scratch-mount.sh"][0], top / "point", top)
    done = start("scratch-mount.sh", words, top)
    assert (done.returncode, (top / "mounted").exists()) == (0, True), done.stderr
