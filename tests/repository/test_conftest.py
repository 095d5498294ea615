"""A test run that breaks a rule of tests/conftest.py fails."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from tests.folders import ROOT

pytestmark = pytest.mark.rest("a pytest of its own for each rule of the tests")

CONFTEST = ROOT / "tests/conftest.py"

SKIPPED_TEST = "import pytest\n\ndef test_it() -> None:\n    pytest.skip('no such hardware')\n"
SKIPPED_MODULE = "import pytest\n\npytest.importorskip('no_such_module')\n"
LISTED = '[[skip]]\ntest = "test_inner.py::test_it"\n'


def run_pytest(
    folder: Path, test: str, skips: str = "", *options: str, umask: int = -1, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run `test` as the only test of `folder` under the rules, with `skips` as its skips.toml.

    It has the `umask` and the environment `variables` of its caller.
    """
    shutil.copy(CONFTEST, folder)
    (folder / "skips.toml").write_text(skips)
    tiers = {"disk-full": "test", "play-stopped": "rest", "long-run": "soak"}
    faults = {fault: {"tier": tier} for fault, tier in tiers.items()}
    (folder / "faults.yml").write_text(yaml.safe_dump(faults))
    (folder / "tiers.yml").write_text(f"{folder.name}/plays: as in the project\n")
    marks = ("fault(id)", "core(reason)", "rest(reason)", "soak")
    markers = "".join(f"  {mark}: as in the project\n" for mark in marks)
    (folder / "pytest.ini").write_text(f"[pytest]\nmarkers =\n{markers}")
    (folder / "test_inner.py").write_text(test)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options, str(folder)]
    # The folders of tests that fail stay.
    environment = {**os.environ, "TMPDIR": f"{folder}", **variables}
    return subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        umask=umask,
    )


@pytest.mark.parametrize("test", [SKIPPED_TEST, SKIPPED_MODULE], ids=["test", "module"])
def test_unlisted_skip_fails(tmp_path: Path, test: str) -> None:
    result = run_pytest(tmp_path, test)
    assert result.returncode not in (0, 5)
    assert "a skip that tests/skips.toml does not list" in result.stdout


def test_listed_skip_is_allowed(tmp_path: Path) -> None:
    result = run_pytest(tmp_path, SKIPPED_TEST, LISTED)
    assert result.returncode == 0, result.stdout
    assert "1 skipped" in result.stdout


SEES_ITS_PLACE = """
import os, time

def test_it(tmp_path):
    (tmp_path / "file").touch()
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o644
    assert {name: os.environ[name] for name in os.environ if name[:2] in ("LA", "LC", "TZ")} == {
        "LC_ALL": "C.UTF-8"
    }
    assert time.timezone == 0
"""


@pytest.mark.parametrize("umask", [0o077, 0o027])
def test_the_umask_the_locale_and_the_time_zone_of_the_caller_change_nothing(
    tmp_path: Path, umask: int
) -> None:
    place = {"LANG": "tr_TR.ISO-8859-9", "LC_ALL": "", "TZ": "UTC-14"}
    result = run_pytest(tmp_path, SEES_ITS_PLACE, umask=umask, **place)
    assert result.returncode == 0, result.stdout


OPENS_ITS_FOLDERS = """
import subprocess, sys

def test_of_the_second_pytest(tmp_path):
    assert tmp_path.exists()

def test_it(tmp_path):
    folders = [each for each in (tmp_path, *tmp_path.parents) if each.stat().st_mode & 0o5 != 0o5]
    assert tmp_path in folders
    for folder in folders:
        folder.chmod(0o755)
    second = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-k", "second", __file__]
    subprocess.run(second, check=True)
    assert [folder for folder in folders if folder.stat().st_mode & 0o5 != 0o5] == []
"""


def test_a_second_pytest_closes_no_folder_of_the_first(tmp_path: Path) -> None:
    """Tests open their folders for other users."""
    result = run_pytest(tmp_path, OPENS_ITS_FOLDERS)
    assert result.returncode == 0, result.stdout
    assert not [*tmp_path.glob("proofmark-pytest-*")], "they are removed"


LEAVES_A_PROCESS = """
import gc, subprocess
import pytest

@pytest.fixture(scope="module")
def lasting():
    with subprocess.Popen(["sleep", "1000"]) as process:
        yield process
        {end}

def test_first(lasting) -> None:
    held = []
    held.append(held)  # a cycle, which lives until the garbage collector runs
    {start}

def test_second() -> None:
    gc.collect()
"""
RUNNING = 'held.append(subprocess.Popen(["sleep", "1000"]))'
WITH_A_PIPE = 'held.append(subprocess.Popen(["true"], stdout=subprocess.PIPE)); held[-1].wait()'
WAITED_FOR = 'held.append(subprocess.Popen(["true"])); held[-1].wait()'


@pytest.mark.core("one rule")
@pytest.mark.fault("process-left-by-a-test")
@pytest.mark.parametrize("start", [RUNNING, WITH_A_PIPE], ids=["running", "open pipe"])
def test_only_the_test_that_leaves_a_process_fails(tmp_path: Path, start: str) -> None:
    result = run_pytest(tmp_path, LEAVES_A_PROCESS.format(start=start, end="process.kill()"))
    assert result.returncode == 1, result.stdout
    assert "2 passed, 1 error" in result.stdout
    assert "test_first: found process " in result.stdout
    assert "accepted: a process that was waited for" in result.stdout


@pytest.mark.core("its control")
@pytest.mark.fault("process-left-by-a-test")
def test_a_process_that_was_waited_for_is_no_fault(tmp_path: Path) -> None:
    """The control. The process of the fixture outlives the first test and ends after the second."""
    result = run_pytest(tmp_path, LEAVES_A_PROCESS.format(start=WAITED_FOR, end="process.kill()"))
    assert result.returncode == 0, result.stdout


KNOWN = """
import pytest

@pytest.mark.fault("disk-full")
def test_short() -> None: ...

@pytest.mark.rest("a play")
@pytest.mark.fault("play-stopped")
def test_play() -> None: ...

@pytest.mark.soak
@pytest.mark.fault("long-run")
@pytest.mark.fault("disk-full")
def test_long() -> None: ...
"""


def test_faults_of_all_tiers_are_accepted_also_in_a_later_test(tmp_path: Path) -> None:
    result = run_pytest(tmp_path, KNOWN)
    assert result.returncode == 0, result.stdout
    assert "3 passed in" in result.stdout


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"disk-full")\ndef', '"disc-full")\ndef', "found fault('disc-full',); accepted: one of ["),
        ('"disk-full")\ndef test_short', '"long-run")\ndef test_short', "accepted: soak or later"),
        ('"disk-full")\ndef test_short', '"play-stopped")\ndef test_short', "of the tier test; "),
        ("play-stopped", "long-run", "found a test of the tier rest; accepted: soak or later"),
        ('rest("a play")', "rest", "found rest(); accepted: one reason"),
    ],
    ids=["unknown", "test for soak", "test for rest", "rest for soak", "without a reason"],
)
def test_fault_mark_must_be_known_and_of_its_tier(
    tmp_path: Path, old: str, new: str, words: str
) -> None:
    result = run_pytest(tmp_path, KNOWN.replace(old, new))
    assert result.returncode == 4
    assert words in result.stderr


OF_EACH_TIER = """
import pytest
from hypothesis import given, settings, strategies

def test_short() -> None: ...

@pytest.mark.rest("a play")
def test_play() -> None: ...

@pytest.mark.soak
def test_long() -> None: ...

@given(strategies.integers())
def test_property(number: int) -> None:
    assert settings().max_examples == EXAMPLES
"""


@pytest.mark.parametrize(
    ("options", "examples", "expected"),
    [
        (["-k", "long or property"], 20, {"test_long", "test_property"}),
        (["--tier=test"], 5, {"test_short", "test_property"}),
        (["--tier=rest"], 20, {"test_play", "test_property"}),
        (["--tier=soak"], 2000, {"test_long", "test_property"}),
    ],
    ids=["no tier", "test", "rest", "soak"],
)
def test_tier_deselects_tests_and_sets_the_number_of_examples(
    tmp_path: Path, options: list[str], examples: int, expected: set[str]
) -> None:
    test = OF_EACH_TIER.replace("EXAMPLES", str(examples))
    result = run_pytest(tmp_path, test, "", "-v", *options)
    assert result.returncode == 0, result.stdout
    assert set(re.findall(r"::(\w+) PASSED", result.stdout)) == expected


LATER = """
import pytest

def test_of_the_folder() -> None: ...

@pytest.mark.core("one play")
def test_of_the_core() -> None: ...
"""
OF_A_FILE = """
import pytest

pytestmark = [
    pytest.mark.rest("long")
]

def test_of_a_long_file() -> None: ...

@pytest.mark.core("one of them")
class TestThese:
    def test_of_its_class(self) -> None: ...
"""


@pytest.mark.parametrize(
    ("tier", "expected"),
    [
        ("test", {"test_of_the_core", "test_of_its_class", "test_it"}),
        ("rest", {"test_of_the_folder", "test_of_a_long_file"}),
    ],
)
def test_the_nearest_reason_decides_and_other_files_are_not_imported(
    tmp_path: Path, tier: str, expected: set[str]
) -> None:
    plays = tmp_path / "plays"
    plays.mkdir()
    (plays / "test_later.py").write_text(LATER)
    (tmp_path / "test_long.py").write_text(OF_A_FILE)
    wrong = "raise ImportError\n"
    of_the_other_tier = {"test": "plays/test_no_core.py", "rest": "test_no_rest.py"}[tier]
    (tmp_path / of_the_other_tier).write_text(wrong)
    result = run_pytest(tmp_path, "def test_it() -> None: ...\n", "", "-v", f"--tier={tier}")
    assert result.returncode == 0, result.stdout
    assert set(re.findall(r"::(\w+) PASSED", result.stdout)) == expected


def test_the_time_of_each_folder_is_printed_with_its_setup_and_teardown(tmp_path: Path) -> None:
    test = """
import time, pytest
@pytest.fixture
def slow():
    time.sleep(0.2)
    yield
    time.sleep(0.2)
def test_it(slow):
    time.sleep(0.2)
"""
    result = run_pytest(tmp_path, test, "", "--tier=test")
    _, found, after = result.stdout.partition("time of each folder")
    assert found, result.stdout
    seconds, _, folder = after.splitlines()[1].partition("s ")
    assert float(seconds) >= 0.6 and folder == "."
