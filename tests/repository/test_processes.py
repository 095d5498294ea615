"""A process that was started is waited for, also if the code after it fails."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from plugins.action.cli import _Child, _running_beside
from tests.fixtures.kit import left_behind, until
from tests.processes import namespace, running

from proofmark.software import build_process

WAITS = "echo line >&2; exec sleep 3600"


class Broken(Exception):
    """The error that the tests inject."""


def fails(*_line: str) -> None:
    raise Broken


def ended(process: subprocess.Popen[str]) -> bool:
    pipes = (process.stdin, process.stdout, process.stderr)
    return process.returncode is not None and all(pipe is None or pipe.closed for pipe in pipes)


@pytest.mark.parametrize("group", [True, False], ids=["a group", "no group"])
def test_an_error_in_a_test_kills_its_process(group: bool) -> None:
    command = ["sleep", "3600"]
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, start_new_session=group
    )
    with pytest.raises(Broken), running(process):
        raise Broken
    assert ended(process)


def test_a_process_that_ends_by_itself_is_waited_for() -> None:
    """The control: it is not killed."""
    with running(subprocess.Popen(["sh", "-c", "sleep 0.1; exit 3"], text=True)) as process:
        pass
    assert process.returncode == 3


@pytest.mark.root
def test_a_namespace_ends_with_an_error() -> None:
    with pytest.raises(Broken), namespace("n1") as holder:
        raise Broken
    assert ended(holder)


def test_a_builder_ends_if_its_progress_cannot_be_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build_process, "IDLE_S", 0.05)
    environment = {**os.environ, "MARK": f"{tmp_path}"}
    log = tmp_path / "log"
    with pytest.raises(Broken):
        build_process.run(["sh", "-c", WAITS], environment, log, fails)
    assert left_behind(f"MARK={tmp_path}") == []
    done = build_process.run(["sh", "-c", "echo line; exit 3"], environment, log)
    assert (done.returncode, done.stdout[-5:]) == (3, "line\n")


@pytest.mark.parametrize("count", [1, 64 << 10, 1 << 20])
def test_a_command_prints_before_it_reads_a_text_larger_than_a_pipe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    """A pipe has 64 KiB. The command first prints more than that, and then reads its input."""
    script = "head -c 200000 /dev/zero | tr '\\0' x >&2; sha256sum"
    (tmp_path / "proofmark").write_text(f"#!/bin/sh\n{script}\n")
    (tmp_path / "proofmark").chmod(0o755)
    monkeypatch.setattr(sys, "executable", f"{tmp_path}/python")
    text = "x" * count
    lines: list[str] = []
    with tempfile.TemporaryFile() as stdout:
        code, errors = _Child([], stdout, text).wait(lines.append)
        stdout.seek(0)
        printed = stdout.read().decode()
    digest = hashlib.sha256(text.encode()).hexdigest()
    assert (code, errors, printed) == (0, [], f"{digest}  -\n")
    assert list(map(len, lines)) == [200_000]


def test_a_command_of_a_playbook_ends_if_its_lines_cannot_be_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: every play of tests/roles."""
    (tmp_path / "proofmark").write_text(f"#!/bin/sh\n{WAITS}\n")
    (tmp_path / "proofmark").chmod(0o755)
    monkeypatch.setattr(sys, "executable", f"{tmp_path}/python")
    with tempfile.TemporaryFile() as stdout:
        child = _Child([], stdout)
        with pytest.raises(Broken):
            child.wait(fails)
    process = child._process
    assert process.returncode == -15
    assert process.stderr and process.stderr.closed


@pytest.mark.parametrize(
    ("script", "shown", "warnings"),
    [
        pytest.param(WAITS, ["line"], [], id="it runs until the end"),
        pytest.param("echo line >&2", ["line"], [], id="it has nothing to do"),
        pytest.param("echo proofmark: broken >&2; exit 3", [], ["broken"], id="it fails"),
        pytest.param("exit 3", [], ["proofmark telemetry r: exit code 3"], id="without a message"),
    ],
)
def test_a_command_beside_another_ends_with_it_and_its_errors_are_warnings(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    script: str,
    shown: list[str],
    warnings: list[str],
) -> None:
    begins = f"#!/bin/sh\necho $$ >{tmp_path}/begins\nmv {tmp_path}/begins {tmp_path}/started\n"
    (tmp_path / "proofmark").write_text(f"{begins}{script}\n")
    (tmp_path / "proofmark").chmod(0o755)
    monkeypatch.setattr(sys, "executable", f"{tmp_path}/python")
    lines: list[str] = []
    warned: list[str] = []
    with (
        tempfile.TemporaryFile() as groups,
        _running_beside(["telemetry", "r"], "", groups, lines.append, warned.append),
    ):
        until((tmp_path / "started").exists)
        stat = Path("/proc", (tmp_path / "started").read_text().strip(), "stat")
        until(lambda: "(sleep)" in stat.read_text() or ") Z " in stat.read_text())  # all is printed
    assert (lines, warned) == (shown, warnings)
