"""What an installation by Spack prints before, during and instead of a build."""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from proofmark.common.progress_lines import IDLE_S
from proofmark.software.build_process import run
from proofmark.software.spack.install import POLL_S, LockHolder, job_words, one_at_a_time, progress
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
        "run(['make', '-s'], environment_of(), folder / 'log', print, folder=folder)"
    )
    outer = ["make", "-f", f"{tmp_path}/outer", "PROGRAMS=spack"]
    command = f"COMMAND={shlex.join([sys.executable, '-c', code])}"
    subprocess.run([*outer, command], check=True, capture_output=True)
    assert (tmp_path / "log").read_text().split() == ["own"]


def test_progress_is_due_also_while_the_builder_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proofmark.software.build_process.IDLE_S", 0.3)
    events: list[str] = []
    command = ["sh", "-c", "for i in 1 2 3 4 5 6 7 8; do echo x; sleep 0.2; done"]
    code = run(command, os.environ, tmp_path / "log", events.append, lambda: events.append("due"))
    assert code == 0
    assert events.count("x") == 8
    assert events.index("due") < max(at for at, event in enumerate(events) if event == "x")


class Ended(Exception):
    """Ends the wait of a test."""


def waits(path: Path, polls: int) -> list[str]:
    """Return the lines of an installation that waits `polls` times."""
    lines: list[str] = []
    left = [polls]

    def pause(seconds: float) -> None:
        assert seconds == POLL_S
        left[0] -= 1
        if left[0] < 0:
            raise Ended

    with pytest.raises(Ended), one_at_a_time(path, "knl", lines.append, pause):
        raise AssertionError("two installations at a time")
    return lines


@pytest.mark.fault("second-install-waits")
def test_a_second_installation_says_at_once_for_whom_it_waits_and_repeats_it(
    tmp_path: Path,
) -> None:
    path, lines = tmp_path / "lock", list[str]()
    with one_at_a_time(path, "local", lines.append):
        assert lines == []  # the first one does not wait
        at_once = waits(path, 0)
        repeated = waits(path, round(2 * IDLE_S / POLL_S))
    me = f"waiting for process {os.getpid()} on {os.uname().nodename}, which installs local"
    assert len(at_once) == 1
    assert at_once[0].startswith(f"{me} in the same folder since 20")
    assert [line.rpartition("; ")[2] for line in repeated] == [
        "waited for 0 s",
        "waited for 30 s",
        "waited for 1 min 00 s",
    ]
    with one_at_a_time(path, "local", lines.append):
        assert lines == []


def test_it_continues_when_the_other_one_has_ended(tmp_path: Path) -> None:
    path, lines = tmp_path / "lock", list[str]()
    other = path.open("w")
    fcntl.flock(other, fcntl.LOCK_EX)
    other.write("a text\x1b of nobody")
    other.flush()
    with one_at_a_time(path, "local", lines.append, lambda _: other.close()):
        holder = LockHolder.model_validate(json.loads(path.read_text()))
        assert (holder.process, holder.work) == (os.getpid(), "local")
    assert lines == [
        "waiting for another installation in the same folder; waited for 0 s",
        "the other installation has ended after 0 s",
    ]
    assert path.read_text() == ""
