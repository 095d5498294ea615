"""The rules of tests/conftest.py do fail a test run."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).parents[1] / "conftest.py"

SKIPPED_TEST = "import pytest\n\ndef test_it() -> None:\n    pytest.skip('no such hardware')\n"
SKIPPED_MODULE = "import pytest\n\npytest.importorskip('no_such_module')\n"
LISTED = '[[skip]]\ntest = "test_inner.py::test_it"\n'


def run_pytest(folder: Path, test: str, skips: str = "") -> subprocess.CompletedProcess[str]:
    """Run `test` as the only test of `folder` under the rules, with `skips` as its skips.toml."""
    shutil.copy(CONFTEST, folder)
    (folder / "skips.toml").write_text(skips)
    (folder / "faults.yml").write_text("disk-full: the step is INVALID\n")
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = fault(id): as in the project\n")
    (folder / "test_inner.py").write_text(test)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", str(folder)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("test", [SKIPPED_TEST, SKIPPED_MODULE], ids=["test", "module"])
def test_unlisted_skip_fails(tmp_path: Path, test: str) -> None:
    result = run_pytest(tmp_path, test)
    assert result.returncode not in (0, 5)
    assert "a skip that tests/skips.toml does not list" in result.stdout


def test_listed_skip_is_allowed(tmp_path: Path) -> None:
    result = run_pytest(tmp_path, SKIPPED_TEST, LISTED)
    assert result.returncode == 0, result.stdout
    assert "1 skipped" in result.stdout


@pytest.mark.parametrize(("fault", "code"), [("disk-full", 0), ("disc-full", 4)])
def test_fault_mark_must_be_known(tmp_path: Path, fault: str, code: int) -> None:
    test = f"import pytest\n\n@pytest.mark.fault({fault!r})\ndef test_it() -> None: ...\n"
    assert run_pytest(tmp_path, test).returncode == code


LEFT = """
import gc, subprocess
import pytest

@pytest.fixture(scope="module")
def lasting():
    with subprocess.Popen(["sleep", "1000"]) as process:
        yield process
        {end}

def test_first(lasting) -> None:
    held = []
    held.append(held)  # a cycle, which lives until the collector comes
    {start}

def test_second() -> None:
    gc.collect()
"""
RUNNING = 'held.append(subprocess.Popen(["sleep", "1000"]))'
WITH_A_PIPE = 'held.append(subprocess.Popen(["true"], stdout=subprocess.PIPE)); held[-1].wait()'
WAITED_FOR = 'held.append(subprocess.Popen(["true"])); held[-1].wait()'


@pytest.mark.fault("process-left-by-a-test")
@pytest.mark.parametrize("start", [RUNNING, WITH_A_PIPE], ids=["running", "open pipe"])
def test_a_test_that_leaves_a_process_fails_and_no_other(tmp_path: Path, start: str) -> None:
    result = run_pytest(tmp_path, LEFT.format(start=start, end="process.kill()"))
    assert result.returncode == 1, result.stdout
    assert "2 passed, 1 error" in result.stdout
    assert "test_first: found process " in result.stdout
    assert "accepted: a process that was waited for" in result.stdout


@pytest.mark.fault("process-left-by-a-test")
def test_a_process_that_was_waited_for_is_no_fault(tmp_path: Path) -> None:
    """The control; the fixture's process outlives the first test and ends with the second."""
    result = run_pytest(tmp_path, LEFT.format(start=WAITED_FOR, end="process.kill()"))
    assert result.returncode == 0, result.stdout
