"""After SIGKILL, a full disk or a read-only folder, the next call of a command continues."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.fixtures.place import open_kit
from tests.folders import let_all_enter
from tests.forks import tool

from proofmark.cli.main import main
from proofmark.runs.run_files import RunFiles

pytestmark = pytest.mark.rest("each command is killed at many points")

NOBODY = 65534
BAD_INPUT = 3
COMMANDS = (("stage", "collect"), ("report",))
COMMAND = "import sys; from proofmark.cli.main import main; sys.exit(main())"
KILLED = """
import os, signal, sys
import polars, scipy.stats
import proofmark.cli.run, proofmark.cli.verdict, proofmark.report.products
import proofmark.records.stored_readings
from proofmark.cli.main import main
*words, target = sys.argv[1:]
EVENTS = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.chmod", "os.link", "os.truncate")

def stop():
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)

def hook(event, arguments):
    written = event == "open" and isinstance(arguments[2], int) and arguments[2] & os.O_ACCMODE
    if (written or event in EVENTS) and str(arguments[0]).startswith(target):
        stop()

def fsync(number, real=os.fsync):
    stop()
    real(number)

for line in sys.stdin:
    left = int(line)
    child = os.fork()
    if not child:
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, 1)
        os.dup2(nothing, 2)
        os.fsync = fsync
        sys.addaudithook(hook)
        os._exit(main([*words, target]))
    print(os.waitpid(child, 0)[1], flush=True)
"""
"""Runs the command once in a fork for each number N of the input, and kills it at its Nth call."""


def results(run: Path) -> dict[str, Any]:
    """Return what the verdict of a run says, without what depends on the moment of the seal."""
    verdict: dict[str, Any] = json.loads(RunFiles(run).verdict.read_text())
    return {key: verdict[key] for key in ("headline", "counts", "coverage", "results")}


def finished(run: Path, words: tuple[str, ...]) -> dict[str, Any]:
    """Run a command to its end, and the report of what it left; return the results."""
    for each in dict.fromkeys((words, ("report",))):
        assert main([*each, f"{run}"]) == 0
    assert not [*run.rglob("*.new")]
    return results(run)


def prepared(finished_run: Path, folder: Path, words: tuple[str, ...]) -> Path:
    """Return a copy of the run. Before `report` it is sealed, and what was read is not stored."""
    run = Path(shutil.copytree(finished_run, folder / finished_run.name))
    if words == ("report",):
        assert main(["stage", "collect", f"{run}"]) == 0
        RunFiles(run).readings.unlink()
    return run


@pytest.mark.fault("collect-killed")
@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_after_a_kill_at_any_point_the_next_call_continues(
    finished_run: Path, tmp_path: Path, words: tuple[str, ...]
) -> None:
    """The control is the last round, in which nothing is killed."""
    run = prepared(finished_run, tmp_path / "runs", words)
    kept = Path(shutil.copytree(run, tmp_path / "kept"))
    expected = finished(run, words)
    command, pipe = [sys.executable, "-c", KILLED, *words, f"{run}"], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as forks:
        assert forks.stdin and forks.stdout
        for left in range(1, 200):
            shutil.rmtree(run)
            shutil.copytree(kept, run)
            print(left, file=forks.stdin, flush=True)
            status = os.waitstatus_to_exitcode(int(forks.stdout.readline()))
            assert status in (0, -signal.SIGKILL)
            assert finished(run, words) == expected
            if status == 0:
                assert left > 5
                return
    raise AssertionError("the command has no end")


@contextmanager
def mounted(folder: Path) -> Iterator[Path]:
    """Yield a small file system."""
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


@pytest.mark.root
@pytest.mark.fault("disk-full")
@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_after_a_full_disk_the_next_call_continues(
    finished_run: Path, tmp_path: Path, words: tuple[str, ...]
) -> None:
    """The control is the last round, in which there is space."""
    with mounted(tmp_path / "disk") as disk:
        run = prepared(finished_run, disk / "runs", words)
        kept = Path(shutil.copytree(run, tmp_path / "kept"))
        expected = finished(run, words)
        for space in range(0, 4096, 12):
            shutil.rmtree(run)
            shutil.copytree(kept, run)
            free = shutil.disk_usage(disk).free - (space << 10)
            (disk / "filler").write_bytes(bytes(free))
            # Another process: this one may free a removed file of the round before, and its space.
            command = [sys.executable, "-c", COMMAND, *words, f"{run}"]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            code = done.returncode
            assert code in (0, BAD_INPUT)
            if code:
                assert "No space left on device" in done.stderr
            (disk / "filler").unlink()
            assert finished(run, words) == expected
            if code == 0:
                assert space > 12
                return
    raise AssertionError("the command has no end")


@pytest.mark.root
@pytest.mark.fault("folder-read-only")
@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("part", [".", "evidence"])
@pytest.mark.parametrize("user", [0, NOBODY])
def test_after_a_read_only_folder_the_next_call_continues(
    finished_run: Path, tmp_path: Path, words: tuple[str, ...], part: str, user: int
) -> None:
    """The file system is read-only for root, and the folder for another user."""
    environment = {**os.environ, "HOME": f"{tmp_path}", "PROOFMARK_STATE": f"{tmp_path}/own"}

    program = f"{open_kit()[1] / 'proofmark'}" if user else tool("proofmark")

    def called(words: tuple[str, ...], folder: Path) -> subprocess.CompletedProcess[str]:
        command = [program, *words, f"{folder}"]
        return subprocess.run(
            command, user=user, group=user, env=environment, capture_output=True, text=True,
            check=False,
        )  # fmt: skip

    with mounted(tmp_path / "disk") as disk:
        run = Path(shutil.copytree(finished_run, disk / "runs" / finished_run.name))
        (run / part).mkdir(exist_ok=True)
        for path in (disk, *disk.rglob("*")):
            os.chown(path, user, user)
        let_all_enter(run)
        if words == ("report",):
            assert called(("stage", "collect"), run).returncode == 0
            RunFiles(run).readings.unlink()
        if user:
            (run / part).chmod(0o555)
        else:
            subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        done = called(words, run)
        allowed = (0, BAD_INPUT) if words == ("report",) and part == "evidence" else (BAD_INPUT,)
        assert done.returncode in allowed, done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        if user:
            (run / part).chmod(0o755)
        else:
            subprocess.run(["mount", "-o", "remount,rw", disk], check=True)
        done = called(words, run)
        assert done.returncode == 0, done.stdout + done.stderr
