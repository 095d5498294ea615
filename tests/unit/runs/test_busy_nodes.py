"""The warning that other processes run on nodes before the measurements."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from tests.fixtures.hogs import hogs
from tests.fixtures.kit import Kit, make_kit
from tests.folders import ROOT

from proofmark.jobs.execute import execute, warning_of_job, warning_of_probe
from proofmark.runs.run_files import RunFiles, write_scripts_of
from proofmark.site.machines import probe_here

PROBE = ROOT / "analysis/proofmark/site/node/probe.sh"


@pytest.fixture
def kit(tmp_path: Path) -> Kit:
    return make_kit(tmp_path)


def noted(folder: Path, *lines: str) -> str | None:
    """Return the warning of a job that noted `lines`."""
    attempt = folder / "workdir/jobs/j/attempt-1"
    attempt.mkdir(parents=True)
    (attempt / "busy").write_text("".join(f"{line}\n" for line in ("probed", *lines)))
    return warning_of_job(RunFiles(folder), "j")


@pytest.fixture
def low(monkeypatch: pytest.MonkeyPatch) -> None:
    """Warn of any share of a CPU: a loaded machine gives a busy process a small one."""
    monkeypatch.setattr("proofmark.jobs.execute.LEAST_PERCENT", 1)


@pytest.mark.usefixtures("low")
def test_a_run_warns_of_the_processes_before_its_first_step(kit: Kit) -> None:
    run = kit.run()
    write_scripts_of(run.folder, {"probe.sh": PROBE.read_text()})
    lines: list[str] = []
    with hogs(cpu=max(os.sched_getaffinity(0))):
        execute(run, "none", lines.append)
    (warning,) = [line for line in lines if "warning" in line]
    assert f"other processes run on {os.uname().nodename}: " in warning
    assert " % of a CPU)" in warning
    assert "fail_fast" in warning


@pytest.mark.usefixtures("low")
def test_the_probe_of_this_machine_warns_and_leaves_out_the_caller() -> None:
    with hogs():
        probe = probe_here()
    assert "warning: other processes run on " in warning_of_probe(probe, "probe")
    before, _, rest = probe.partition("=== busy\n")
    end = rest[rest.index("=== ") :]
    own, other = (f"{before}=== busy\n| {pid}: 99 x y\n{end}" for pid in (os.getpid(), 4194304))
    assert warning_of_probe(own, "probe") == ""
    assert ": x y (99 % of a CPU). A step" in warning_of_probe(other, "probe")


def test_like_nodes_are_one_group(tmp_path: Path) -> None:
    lines = [f"n{number} 7 98 stress" for number in (1, 2, 3)]
    warning = noted(tmp_path, *lines, "n4 8 30 kworker/0:1", "n5 9 60 a b")
    assert warning is not None
    assert "n[1-3]: stress (98 % of a CPU); n5: a b (60 % of a CPU). A step" in warning
    assert "n4" not in warning


def test_idle_nodes_give_no_warning(tmp_path: Path) -> None:
    assert noted(tmp_path, "n4 8 30 kworker/0:1") == ""


def test_a_job_that_was_not_probed_is_asked_again(tmp_path: Path) -> None:
    assert warning_of_job(RunFiles(tmp_path), "j") is None
    assert noted(tmp_path) == ""
    assert warning_of_job(RunFiles(tmp_path), "j", earlier=1) is None


def test_a_name_with_control_characters_is_one_line(tmp_path: Path) -> None:
    assert "a b (99 % of a CPU)" in f"{noted(tmp_path, 'n1 7 99 a' + chr(27) + 'b')}"


def test_this_shell_is_not_busy() -> None:
    """Control: a sleeping process is not named."""
    with subprocess.Popen(["sleep", "60"]) as process:
        assert "sleep" not in warning_of_probe(probe_here(), "probe")
        process.kill()
