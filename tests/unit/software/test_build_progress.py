"""What an installation by Spack prints before, during and instead of a build."""

from __future__ import annotations

import fcntl
import os
import shlex
import subprocess
import sys
from pathlib import Path
from threading import Event, Thread

import pytest

from proofmark.common import progress_lines
from proofmark.software.build_process import run
from proofmark.software.spack import install
from proofmark.software.spack.install import job_words, one_at_a_time, progress
from proofmark.software.spack.lock_file import Spec


def hashed(name: str) -> Spec:
    return Spec(name, "1.0", (name * 32)[:32], "zen3", f"{name}@1.0", False, (), ())


ONE, TWO = hashed("a"), hashed("b")


def test_a_line_of_progress_is_from_what_is_installed() -> None:
    """The database of Spack says it; its output has another form in each release."""
    assert progress([ONE, TWO], (), 0) == "0 of 2 packages installed after 0 s; next: a@1.0"
    assert progress([ONE, TWO], {ONE.hash, "x"}, 90) == (
        "1 of 2 packages installed after 1 min 30 s; next: b@1.0"
    )
    assert progress([ONE], {ONE.hash}, 90) == "1 of 1 packages installed after 1 min 30 s"


def test_processes_that_the_site_states_are_not_cut_to_the_cores() -> None:
    """So does ``spack install -j``, and so does not its setting ``build_jobs``."""
    assert (job_words(200), job_words(0)) == (["-j", "200"], [])


def test_a_build_does_not_see_the_variables_of_the_make_that_started_it(tmp_path: Path) -> None:
    """Automake has a variable PROGRAMS, too."""
    (tmp_path / "outer").write_text("all:\n\t$(COMMAND)\n")
    (tmp_path / "Makefile").write_text("PROGRAMS = own\nall:\n\t@echo $(PROGRAMS)\n")
    code = (
        "from pathlib import Path; from proofmark.software.build_process import run; "
        "from proofmark.common.processes import environment_of; "
        f"folder = Path('{tmp_path}'); "
        "run(['make', '-s'], environment_of(), folder / 'log', folder=folder)"
    )
    outer = ["make", "-f", f"{tmp_path}/outer", "PROGRAMS=spack"]
    command = f"COMMAND={shlex.join([sys.executable, '-c', code])}"
    subprocess.run([*outer, command], check=True, capture_output=True)
    assert (tmp_path / "log").read_text().split() == ["own"]


def test_progress_is_due_also_while_the_builder_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proofmark.software.build_process.IDLE_S", 0.3)
    log, seen = tmp_path / "log", list[int]()
    log.write_text("earlier\n")
    command = ["sh", "-c", "for i in 1 2 3 4 5 6 7 8; do echo x; sleep 0.2; done"]
    done = run(command, os.environ, log, lambda: seen.append(log.read_text().count("x")))
    assert (done.returncode, done.stdout) == (0, 8 * "x\n")
    assert seen[0] < 8
    assert log.read_text() == f"earlier\n{done.stdout}"


def test_of_a_long_output_its_end_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proofmark.software.build_process.END_BYTES", 6)
    log = tmp_path / "log"
    assert run(["sh", "-c", "echo 1; echo 22; echo 333"], os.environ, log).stdout == "2\n333\n"
    assert run(["sh", "-c", "echo 4"], os.environ, log).stdout == "4\n"
    assert log.read_text() == "1\n22\n333\n4\n"


@pytest.mark.fault("second-install-waits")
def test_a_second_installation_says_at_once_for_whom_it_waits_and_repeats_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress_lines, "IDLE_S", 0.02)
    path, lines = tmp_path / "lock", list[str]()
    enough = Event()

    def said(line: str) -> None:
        lines.append(line)
        if len(lines) == 3:
            enough.set()

    monkeypatch.setattr(install, "say", said)

    def second() -> None:
        with one_at_a_time(path, "knl"):
            lines.append("installs")

    with one_at_a_time(path, "local"):
        assert lines == []  # the first one does not wait
        thread = Thread(target=second)
        thread.start()
        assert enough.wait(60)
        assert "installs" not in lines, "two installations at a time"
    thread.join()
    me = (
        f"waiting for process {os.getpid()} on {os.uname().nodename}, which installs local since 20"
    )
    assert lines[0].startswith(me)
    assert lines[0].endswith(" in the same folder")
    assert all(line.startswith(f"{lines[0]}, for ") for line in lines[1:-2])
    assert lines[-2:] == ["the other installation has ended", "installs"]
    lines.clear()
    with one_at_a_time(path, "local"):
        assert lines == []


def test_it_continues_when_the_other_one_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, lines = tmp_path / "lock", list[str]()
    other = path.open("w")
    fcntl.flock(other, fcntl.LOCK_EX)

    def said(line: str) -> None:
        lines.append(line)
        other.close()

    monkeypatch.setattr(install, "say", said)
    with one_at_a_time(path, "local"):
        assert path.read_text().startswith(f"process {os.getpid()} on ")
    assert lines[0] == "waiting for another installation in the same folder"
    assert path.read_text() == ""
