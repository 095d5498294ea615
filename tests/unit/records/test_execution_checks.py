"""Tests the checks of one execution by its own files with boundary values."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest
from tests.fixtures.finished import seal
from tests.unit.records.test_binding import make_plan_of

from proofmark.common.message import NOTHING, Message
from proofmark.plan.plan import Step
from proofmark.records.binding import BindingCheck, HostNames
from proofmark.records.execution_checks import file_system_reason, invalid_reason, read_before
from proofmark.runs.attempts import Attempt, FilesReport
from proofmark.runs.run_files import StepFiles

FILES = {
    "started": b"n1 1 now job 1\n",
    "stdout": b"out",
    "stderr": b"",
    "rc": b"0\n",
    "when.json": b"{}",
    "binding.json": b"[]",
    "noise.json": b"[\n]\n",
}


@pytest.fixture(scope="module")
def step() -> Step:
    """Return a step of two nodes whose ranks have no planned CPUs."""
    (planned,) = make_plan_of("mpi").steps()
    return planned.model_copy(update={"nodes": ["n1", "n2"], "cpus": []})


def attempt(folder: Path, **changes: Any) -> Attempt:
    """Return a sound execution on n1, with `changes`; its files are written with their digests."""
    for name, content in FILES.items():
        (folder / name).write_bytes(content)
    seal(folder)
    usual: dict[str, Any] = {
        "number": 1,
        "path": str(folder),
        "rc": 0,
        "host": "n1",
        "start": "2026-11-21T10:18:00Z",
        "end": "2026-11-21T10:19:00Z",
        "timed_out": False,
        "seconds": 60.0,
        "binding": b"[]",
    }
    return Attempt(**{**usual, **changes})


def reason(step: Step, execution: Attempt, **how: Any) -> str:
    return invalid_reason(step, execution, BindingCheck(step, None), **how)


def test_a_sound_execution_has_an_empty_reason(step: Step, tmp_path: Path) -> None:
    assert reason(step, attempt(tmp_path)) == ""
    assert reason(step, attempt(tmp_path), hosts=["n1"]) == ""


@pytest.mark.parametrize("read", [False, True])
def test_the_content_that_was_read_is_checked(step: Step, tmp_path: Path, read: bool) -> None:
    """What a file has after it was read does not count."""
    execution = attempt(tmp_path)
    (tmp_path / "stdout").write_bytes(b"changed")
    if read:
        execution.contents.read("stdout")
        (tmp_path / "stdout").write_bytes(FILES["stdout"])
    assert reason(step, execution) == "stdout changed after the step ended"


@pytest.mark.parametrize(("host", "wrong"), [("n1", False), ("n2", False), ("n3", True)])
def test_any_node_of_a_step_may_run_its_launcher(
    step: Step, tmp_path: Path, host: str, wrong: bool
) -> None:
    found = reason(step, attempt(tmp_path, host=host))
    assert found == ("ran on n3, planned on n[1-2]" if wrong else "")


@pytest.mark.parametrize(("host", "wrong"), [("n2", False), ("n1", True), ("n3", True)])
def test_the_first_node_of_an_instance_runs_it(
    step: Step, tmp_path: Path, host: str, wrong: bool
) -> None:
    """The nodes of the instance count, not those of the step."""
    found = reason(step, attempt(tmp_path, host=host), hosts=["n2", "n3"])
    assert found == (f"ran on {host}, planned on n2" if wrong else "")


@pytest.mark.parametrize(("hosts", "planned"), [((), "n[1-2]"), (("n1", "n3"), "n[1,3]")])
def test_ranks_run_on_the_nodes_of_the_instance(
    step: Step, tmp_path: Path, hosts: tuple[str, ...], planned: str
) -> None:
    report = b'[{"rank": 0, "host": "n1", "cpus": "0"}, {"rank": 1, "host": "%s", "cpus": "0"}]'
    right = attempt(tmp_path, binding=report % b"n3" if hosts else report % b"n2")
    wrong = attempt(tmp_path, binding=report % b"n2" if hosts else report % b"n3")
    assert reason(step, right, hosts=hosts) == ""
    assert reason(step, wrong, hosts=hosts) == f"ran on {'n2' if hosts else 'n3'}, planned on " + (
        planned
    )


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM, max(signal.Signals)])
def test_an_exit_code_above_128_is_a_signal(step: Step, tmp_path: Path, number: int) -> None:
    found = reason(step, attempt(tmp_path, rc=128 + number))
    assert found == f"killed by {signal.Signals(number).name}"


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (1, "exit code 1"),
        (125, "exit code 125"),
        (126, "exit code 126 (fake cannot be executed)"),
        (127, "exit code 127 (fake not found)"),
        (128, "exit code 128"),
        (-1, "exit code -1"),
    ],
)
@pytest.mark.parametrize("message", ["", "no room"])
def test_an_exit_code_has_its_meaning_and_the_last_message(
    step: Step, tmp_path: Path, code: int, expected: str, message: str
) -> None:
    execution = attempt(tmp_path, rc=code)
    (tmp_path / "stderr").write_text(message)
    seal(tmp_path)
    assert reason(step, execution) == expected + (f": {message}" if message else "")


def test_processes_that_survive_are_named(step: Step, tmp_path: Path) -> None:
    execution = attempt(tmp_path, survivors=("spin (pid 7)", "spin (pid 8)"))
    assert reason(step, execution) == "left processes behind: spin (pid 7), spin (pid 8)"


def test_the_time_limit_precedes_the_exit_code(step: Step, tmp_path: Path) -> None:
    execution = attempt(tmp_path, timed_out=True, rc=137, seconds=61.4)
    limited = step.model_copy(update={"timeout": 61})
    assert reason(limited, execution) == "timed out after 61 s (limit 61 s)"


def test_the_damage_of_the_files_precedes_all(step: Step, tmp_path: Path) -> None:
    execution = attempt(tmp_path, damage="rc is damaged", rc=-1, host="n9")
    assert reason(step, execution) == "rc is damaged"


class TestHostNames:
    """Few names are compared one by one, more names by sets; both have the same rule."""

    @pytest.mark.parametrize("count", [1, 2, 3, 10])
    def test_each_name_of_a_node_is_accepted(self, count: int) -> None:
        nodes = [f"n{number}" for number in range(count)]
        names = HostNames({f"{node}.site": [f"{node}-ib.site"] for node in nodes})
        assert names.wrong_host(nodes, nodes) == ""
        assert names.wrong_host(nodes, [f"{node}-ib" for node in nodes]) == ""
        assert names.wrong_host(nodes, [f"{node}.site" for node in nodes]) == ""

    @pytest.mark.parametrize("count", [1, 2, 3, 10])
    def test_the_first_other_name_is_reported(self, count: int) -> None:
        nodes = [f"n{number}" for number in range(count)]
        names = HostNames({"n0": ["n0-ib"], "x": ["y"]})
        reason = names.wrong_host(nodes, [*nodes[1:], "n0-ib", "y", "z"])
        assert reason.startswith("ran on y, planned on n")
        assert HostNames().wrong_host(nodes, ["n0-ib"]).startswith("ran on n0-ib, planned on n")


@pytest.mark.parametrize(
    ("unfinished", "reason"),
    [
        (0, NOTHING),
        (1, Message("read-before-once")),
        (2, Message("read-before", times=2)),
    ],
)
def test_a_reading_step_that_was_interrupted_may_read_from_the_page_cache(
    tmp_path: Path, unfinished: int, reason: Message
) -> None:
    for number in range(unfinished):
        (tmp_path / f"unfinished-{number + 1}").mkdir()
    (tmp_path / "execution-9").mkdir()
    assert read_before(StepFiles(tmp_path)) == reason


def test_a_scratch_folder_that_failed_names_the_nodes_and_those_that_could_write() -> None:
    def report(host: str, why: str) -> FilesReport:
        return FilesReport(host, "/scratch", True, 5, why)

    full, denied = "f: No space left on device", "f: Permission denied"
    every = [report("n1", full), report("n2", ""), report("n3", denied), report("n4", full)]
    reports = {each.host: each for each in every}
    parts = (
        Message("scratch-full-on", problem=every[0].problem, nodes="n[1,4]"),
        Message("scratch-failed-on", problem=every[2].problem, nodes="n3"),
    )
    sound = Message("scratch-worked-on", nodes="n2")
    found = file_system_reason(reports)
    assert found == Message("scratch-failed", folder="/scratch", problems=(*parts, sound))
    del reports["n2"]
    found = file_system_reason(reports)
    assert found == Message("scratch-failed", folder="/scratch", problems=parts)
    assert file_system_reason({"n2": every[1]}) == file_system_reason({}) == NOTHING
