"""What the files of an execution and of a failed try of a node state."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.fixtures.finished import END, START, write_execution

from proofmark.common.files import moment_of
from proofmark.common.message import Message
from proofmark.plan.rank_cpus import RankCpus
from proofmark.runs.attempts import (
    Attempt,
    BindingReport,
    RankReport,
    ReadOnce,
    ThreadReport,
    attempts,
    damage,
    files_reports,
    finished_executions,
    has_result,
    interrupted,
    numbered_execution,
    read_binding,
    read_files_report,
    results,
    running_execution,
)
from proofmark.runs.run_files import RunFiles, StepFiles

BINDING = [
    {"rank": 1, "host": "n2", "cpus": "4-5", "memory": "bind:1"},
    {"rank": 0, "host": "n1", "cpus": "2,0"},
    {"rank": 2, "host": "n2", "cpus": "6"},
    {"thread": 3, "host": "n3", "cpus": "0-1"},
    {"thread": 4, "host": "n1", "cpus": "1"},
    {"threads_of": 1, "host": "n2", "cpus": "4"},
]


def executed(folder: Path, **more: Any) -> Attempt:
    """Return an execution whose ``when.json`` has further values."""
    write_execution(folder, "n1", exit_code=3, seconds=7.5, binding=BINDING, timed_out=True)
    path = StepFiles(folder / "execution-1").when
    path.write_text(json.dumps({**json.loads(path.read_text()), **more}))
    (found,) = attempts(folder)
    return found


def test_an_execution_is_what_its_files_state(tmp_path: Path) -> None:
    survivors = [{"name": "caf\xc3\xa9\n", "pid": "7"}, {"name": "b", "pid": 8}]
    origin = {"attempt": "j1/attempt-2", "boot": "b1", "ended": 12.5}
    ticks = {"busy_ticks": 300, "stolen_ticks": 100, "own_ticks": 60}
    found = executed(tmp_path, survivors=survivors, **origin, **ticks)
    assert found == Attempt(
        *(1, f"{tmp_path}/execution-1", 3, "n1", START, END, True, 7.5),
        json.dumps(BINDING).encode(),
        *(0.25, 0.8, "j1/attempt-2", "b1", ("café (pid 7)", "b (pid 8)")),
        ended=12.5,
    )
    assert found.start_s == moment_of(START).timestamp()
    assert found.binding_report == BindingReport(
        ["n2", "n1"],
        [
            RankReport(1, RankCpus(0, (4, 5)), "bind:1"),
            RankReport(0, RankCpus(1, (0, 2))),
            RankReport(2, RankCpus(0, (6,))),
        ],
        [ThreadReport(3, "n3", "0-1"), ThreadReport(4, "n1", "1")],
        {1: frozenset({4})},
    )
    assert found.binding_report.all_hosts == ["n2", "n1", "n3"]
    assert read_binding([]) == BindingReport([], [], [])


def test_what_a_step_did_not_record_is_not_known(tmp_path: Path) -> None:
    found = executed(tmp_path)
    assert (found.job_attempt, found.boot_id, found.survivors) == (None, None, ())
    assert all(map(math.isnan, (found.steal, found.others, found.ended)))
    assert executed(tmp_path, survivors=None, attempt="").job_attempt == ""


@pytest.mark.parametrize(
    ("busy", "stolen", "own", "steal", "others"),
    [
        (0, 0, 0, 0, math.nan),
        (0, 5, 0, 1, math.nan),
        (100, 0, 100, 0, 0),
        (100, 0, 101, 0, 0),
        (100, 0, 0, 0, 1),
        (75, 25, None, 0.25, math.nan),
        (1, 0, 1, 0, 0),
    ],
)
def test_the_ticks_of_a_node_are_shares(
    tmp_path: Path, busy: int, stolen: int, own: int | None, steal: float, others: float
) -> None:
    found = executed(tmp_path, busy_ticks=busy, stolen_ticks=stolen, own_ticks=own)
    assert (found.steal, found.others) == pytest.approx((steal, others), nan_ok=True)


@pytest.mark.parametrize(
    ("error", "problem"),
    [
        (KeyError("host"), "no key 'host'"),
        (OSError(2, "No such file"), "No such file"),
        (ValueError(""), "ValueError"),
        (ValueError("a\nb" + "x" * 300), "a b" + "x" * 197),
    ],
)
def test_the_damage_of_a_file_is_one_short_line(error: Exception, problem: str) -> None:
    assert damage("rc", error) == Message("file-damaged", file="rc", problem=problem)


def test_the_executions_of_a_step_are_those_that_ended(tmp_path: Path) -> None:
    step = StepFiles(tmp_path)
    assert finished_executions(step) == [] and running_execution(step) is None
    step.started.write_text("n1 1 now job 1\n")
    assert running_execution(step) == step
    step.exit_code.write_text("0\n")
    assert running_execution(step) is None
    assert finished_executions(step) == [step] and has_result(step)
    for number in (10, 2):
        write_execution(tmp_path, "n1", number=number)
        (tmp_path / f"unfinished-{number + 1}").mkdir()
    second, tenth = (StepFiles(tmp_path / f"execution-{number}") for number in (2, 10))
    assert finished_executions(step) == results(step) == [second, tenth]
    assert [each.number for each in attempts(tmp_path)] == [2, 10]
    assert numbered_execution(step, 10) == tenth
    assert running_execution(step) == StepFiles(tmp_path / "unfinished-11")
    assert interrupted(step) == 2
    tenth.started.write_text("n9 1 now other 1\n")
    assert (results(step), has_result(step)) == ([second], True)
    second.started.write_text("n9 1 now other\n")
    assert not has_result(step)


def test_a_file_is_read_once_within_its_limit(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("12345")
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner/file").write_text("67")
    contents = ReadOnce(f"{tmp_path}")
    assert contents.read("file", 5) == b"12345"
    (tmp_path / "file").write_text("changed")
    assert contents.read("file", 5) == b"12345"
    with pytest.raises(OSError, match="more than 4 B"):
        contents.read("file", 4)
    (tmp_path / "later").touch()
    with pytest.raises(FileNotFoundError) as missing:
        contents.read("later")
    assert missing.value.filename == f"{tmp_path}/later"
    assert (contents.content("later"), contents.content("inner/file")) == (b"", b"67")
    assert contents.read_names == {"file", "inner/file"}
    assert contents.names == {"file", "inner"}
    assert ReadOnce(f"{tmp_path}/none").names == frozenset()


REPORT: Mapping[str, Any] = {
    **{"host": "n1", "scratch": "/caf\xc3\xa9", "answered": True},
    **{"seconds": 5, "why": ""},
}


@pytest.mark.parametrize(
    ("changes", "code", "fields"),
    [
        ({}, "", {}),
        ({"why": "x\n"}, "files-said", {"problem": "x"}),
        ({"why": "f: Disk quota exceeded"}, "files-full", {"problem": "Disk quota exceeded"}),
        ({"why": "No space left on device"}, "files-full", {"problem": "No space left on device"}),
        ({"why": "a: f: Input/output error"}, "files-said", {"problem": "Input/output error"}),
        ({"why": "x", "answered": False}, "files-silent", {"seconds": 5}),
    ],
)
def test_a_try_of_a_node_says_what_failed(
    tmp_path: Path, changes: Mapping[str, Any], code: str, fields: Mapping[str, Any]
) -> None:
    (tmp_path / "r").write_text(json.dumps({**REPORT, **changes}))
    found = read_files_report(tmp_path / "r")
    assert found and (found.host, found.folder) == ("n1", "/café")
    assert found.problem == Message(code, **fields)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"host": "n1"}'])
def test_a_damaged_report_of_a_node_is_none(tmp_path: Path, content: str) -> None:
    (tmp_path / "r").write_text(content)
    assert read_files_report(tmp_path / "r") is None
    assert read_files_report(tmp_path / "none") is None


def test_the_report_of_the_node_itself_has_priority(tmp_path: Path) -> None:
    files = RunFiles(tmp_path)
    folder = files.step("s").folder
    for place, hosts in (("j/attempt-1", ("n1", "n2")), ("j/attempt-2", ("n3",))):
        for host in hosts:
            path = files.work.jobs / place / "files/s" / host
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps({**REPORT, "host": host, "why": f"of {place}"}))
            path.with_suffix(".new").write_text(path.read_text())
    found = executed(folder, attempt="j/attempt-1")
    assert sorted(files_reports(files, "s", found)) == ["n1", "n2"]
    own = json.dumps({**REPORT, "why": "its own"})
    found.files.files_report.write_text(own)
    whys = {host: each.why for host, each in files_reports(files, "s", found).items()}
    assert whys == {"n1": "its own", "n2": "of j/attempt-1"}
    by_hand = executed(folder, attempt="../j/attempt-2")
    assert [*files_reports(files, "s", by_hand)] == ["n1"]
    every = [[path.name for path in paths] for paths in files.work.files_reports("s")]
    assert every == [["n1", "n2"], ["n3"]]
