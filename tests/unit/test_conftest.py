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
