"""Faults of a file system: which cause follows from what the nodes report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fixtures.kit import examples, make_kit
from tests.fixtures.probes import node_facts
from tests.unit.judge.test_verdict import record

from proofmark.common.message import NOTHING
from proofmark.judge.baseline import Circumstances
from proofmark.judge.diagnosis.storage_faults import (
    failed_access,
    of_servers,
    slow_alike,
)
from proofmark.judge.references.judgement import Judgement
from proofmark.judge.results import Result
from proofmark.records.execution_checks import file_system_reason
from proofmark.runs.attempts import FilesReport, read_files_report, read_files_reports
from proofmark.site.node.parts import MountedFileSystem
from proofmark.software.software import Software

FULL = "dd: error writing 'x': No space left on device"
HOSTS = [f"n{number}" for number in range(1, 5)]

SERVERS = "its servers, or the network to them"


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
    assert fault.message == f"file system of /pfs/run/step: {line}"
    assert fault.as_json()["line"] == fault.message
    assert fault.problem.split(" or ")[0] in file_system_reason(by_host)


def result(
    node: str,
    *ratios: float | None,
    value: float | None = 1.0,
    kind: str = "contract",
    size: int = 1,
) -> Result:
    """Return a figure of `node` with a limit of 0.5 for each ratio."""
    limits = tuple(
        Judgement(
            kind, "s", "FAIL" if (ratio or 1) < 0.5 else "PASS", NOTHING, 1.0, ratio, 0.5, None
        )
        for ratio in ratios
    )
    return Result(record(size, node=node, value=value), (), "", NOTHING, limits)


def slow(*results: Result) -> list[str]:
    return [fault.message for fault in slow_alike(results, "/pfs")]


def test_the_servers_are_the_cause_if_every_node_misses_a_limit() -> None:
    line = f"file system of /pfs: fake rate slow alike on all nodes (n[1-2]): {SERVERS}"
    assert slow(result("n1", 0.3), result("n2", 0.49)) == [line]
    assert slow(result("n1", 0.9, 0.3), result("n2", 0.3, 0.9)) == [line], "one missed limit counts"
    assert slow(result("n[1-2]", 0.3)) == [line]
    both = [result(node, 0.3, size=size) for node in ("n1", "n2") for size in (1, 2)]
    assert slow(*both) == [line], "one line for each figure"


@pytest.mark.parametrize(
    "others",
    [
        [result("n2", 0.5)],  # kept exactly
        [result("n2", 0.9)],
        [result("n2", 0.3), result("n2", 0.9)],  # once kept on this node
        [result("n2", 0.9), result("n2", 0.3)],
        [],  # one node is no proof
        [result("n2", 0.3, size=2)],  # another measurand
    ],
)
def test_the_servers_are_not_the_cause_if_a_node_keeps_the_limit(others: list[Result]) -> None:
    assert slow(result("n1", 0.3), *others) == []


@pytest.mark.parametrize(
    "odd",
    [
        result("n3", 0.9, value=None),
        result("n3", 0.9, kind="peers"),
        result("n3", None),
        result("n3"),
    ],
)
def test_a_figure_without_a_limit_is_left_out(odd: Result) -> None:
    assert len(slow(result("n1", 0.3), result("n2", 0.3), odd)) == 1
    assert slow(odd, odd) == []


def test_a_maximum_is_no_missed_minimum() -> None:
    most = Judgement("contract", "s", "FAIL", NOTHING, 1.0, 0.3, None, 0.2)
    alike = [Result(record(node=node), (), "", NOTHING, (most,)) for node in ("n1", "n2")]
    assert slow(*alike) == []


def test_the_servers_explain_a_limit_and_not_a_difference_from_peers() -> None:
    first, second = result("n1", 0.3), result("n2", 0.3)
    faults = slow_alike([first, second], "/pfs")
    assert of_servers(faults, first)
    assert not of_servers((), first)
    assert not of_servers(faults, result("n1", 0.3, size=2))
    peers = result("n1", 0.3, kind="peers")
    assert not of_servers(faults, peers)
    assert of_servers(faults, result("n1", 0.9, kind="peers"))


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


def mounts(*targets: str) -> tuple[MountedFileSystem, ...]:
    """Return a mount at each place; its source and its options name the place."""
    return tuple(
        MountedFileSystem(source=f"on{target}", target=target, kind="ext4", options=f"rw,{target}")
        for target in targets
    )


@pytest.mark.parametrize(
    ("targets", "place"),
    [
        (("/", "/pfs", "/pfs/scratch/other", "/pfs/scratch2"), "/pfs"),
        (("/pfs/scratch", "/pfs", "/"), "/pfs/scratch"),
        (("/", "/pfs/scratch2"), "/"),
        (("/pfs/scratch/below",), ""),
        ((), ""),
    ],
)
def test_the_scratch_of_a_node_is_its_nearest_mount(
    tmp_path: Path, targets: tuple[str, ...], place: str
) -> None:
    """It is a trait of the node, which two runs compare."""
    site = make_kit(tmp_path).site(hosts=("n1",))
    scratch = site.partition.scratch.model_copy(update={"path": "/pfs/scratch"})
    partition = site.partition.model_copy(update={"scratch": scratch})
    site = site.model_copy(update={"partition": partition})
    about = Circumstances(site, {"n1": node_facts(mounts=mounts(*targets))}, Software(packages={}))
    wanted = f"ext4 on{place} at {place} (rw,{place})" if place else None
    assert about.traits()["n1"].get("scratch") == wanted
