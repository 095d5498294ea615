"""Faults of a file system: which cause follows from what the nodes report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fixtures.kit import examples

from proofmark.judge.diagnosis.file_systems import SERVERS, failed_access
from proofmark.records.file_systems import file_system_reason
from proofmark.runs.files_report import FilesReport, read_files_report, read_files_reports

FULL = "dd: error writing 'x': No space left on device"
HOSTS = [f"n{number}" for number in range(1, 5)]


def report(host: str, *, answered: bool = True, why: str = "") -> FilesReport:
    return FilesReport(host, "/pfs/run/step", answered, 30, why)


def looks(**states: FilesReport) -> dict[str, FilesReport]:
    return states


@pytest.mark.parametrize(
    ("reports", "line"),
    [
        (
            [report("n1"), report("n2", answered=False), report("n3")],
            "no answer within 30 s on n2: the client of this node, or its network",
        ),
        (
            [report("n1", answered=False), report("n2", why="dd: fsync: Input/output error")],
            f"Input/output error or no answer within 30 s on all nodes (n[1-2]): {SERVERS}",
        ),
        ([report("n1", why=FULL)], "No space left on device on n1: no free space or quota"),
        (
            [report("n1", answered=False)],
            f"no answer within 30 s on n1: the client of this node, or {SERVERS}",
        ),
        (
            [report("n1"), report("n2", answered=False), report("n3", answered=False)],
            "no answer within 30 s on n[2-3]: the client of these nodes, or its network",
        ),
    ],
)
def test_the_cause_follows_from_the_nodes_that_could_write(
    reports: list[FilesReport], line: str
) -> None:
    by_host = {each.host: each for each in reports}
    (fault,) = failed_access([by_host])
    assert str(fault) == f"file system of /pfs/run/step: {line}"
    assert fault.as_json()["line"] == str(fault)
    assert fault.problem.split(" or ")[0] in file_system_reason(by_host)


@given(states=st.lists(st.tuples(st.sampled_from(HOSTS), st.booleans()), min_size=1))
@examples(0.5)
def test_a_node_that_could_write_is_never_accused(states: list[tuple[str, bool]]) -> None:
    reports = {host: report(host, answered=answered) for host, answered in states}
    bad = {host for host, each in reports.items() if not each.answered}
    faults = failed_access([reports])
    assert {host for fault in faults for host in fault.nodes} == bad
    assert all(set(fault.others) == reports.keys() - bad for fault in faults)
    assert bool(file_system_reason(reports)) == bool(bad)


def test_a_report_is_read_as_the_script_wrote_it(tmp_path: Path) -> None:
    text = "dd: échec".encode().decode("latin-1")
    entry = {"host": "n1", "scratch": "/pfs", "answered": True, "seconds": 30, "why": text}
    path = tmp_path / "n1"
    path.write_text(json.dumps(entry))
    assert read_files_report(path) == FilesReport("n1", "/pfs", True, 30, "dd: échec")


@pytest.mark.parametrize(
    "content", ["", "[]", '{"host": "../x"}', '{"host": "n1", "seconds": "x"}']
)
def test_a_damaged_report_counts_as_none(tmp_path: Path, content: str) -> None:
    path = tmp_path / "n1"
    path.write_text(content)
    assert read_files_reports([path, tmp_path / "missing"]) == {}
