"""Damaged lines of the looks at nodes: named, and never a crash."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.fixtures.kit import make_kit

from proofmark.runs.job_folder import Look, add_look, read_looks
from proofmark.runs.run import Run

GOOD = [{"time": 60.0 * number, "down": {}} for number in range(6)]


def read(run: Run, lines: list[bytes]) -> tuple[list[Look], list[int]]:
    run.files.node_states.write_bytes(b"".join(line + b"\n" for line in lines))
    return read_looks(run.files)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    kit = make_kit(tmp_path)
    kit.case()
    return kit.run()


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{",
        b"\x00" * 40,
        b"[]",
        b"null",
        b'{"time": 130}',
        b'{"time": "130", "down": {}}',
        b'{"time": true, "down": {}}',
        b'{"time": NaN, "down": {}}',
        b'{"time": 1e999, "down": {}}',
        b'{"time": -1, "down": {}}',
        b'{"time": ' + b"9" * 400 + b', "down": {}}',
        b'{"time": 130, "down": ["n1"]}',
        b'{"time": 130, "down": {"n1": 1}}',
        b'{"time": 130, "down": {}, "unknown": "n1"}',
        b'{"time": 60, "down": {}}',
        b'{"time": 10, "down": {}}',
        b'{"time": 250000000000, "down": {}}',
        b"[" * 100_000,
    ],
    ids=str,
)
def test_a_damaged_line_is_named_and_its_time_is_not_seen(run: Run, line: bytes) -> None:
    lines = [json.dumps(each).encode() for each in GOOD]
    assert read(run, lines)[1] == []
    looks, damaged = read(run, [*lines[:3], line, *lines[3:]])
    assert damaged == [4]
    assert [look.time for look in looks] == [each["time"] for each in GOOD]
    assert [look.time for look in looks if look.cut] == [180]


def test_damage_at_both_ends_hides_nothing_between(run: Run) -> None:
    lines = [b"x", *(json.dumps(each).encode() for each in GOOD), b"x", b"y"]
    looks, damaged = read(run, lines)
    assert damaged == [1, 8, 9]
    assert not any(look.cut for look in looks)
    assert read(run, [b"x", b"y"]) == ([], [1, 2])


def test_a_clock_that_is_set_back_costs_the_lines_of_one_side(run: Run) -> None:
    times = [0, 60, 120, 30, 90, 150, 210]
    looks, damaged = read(run, [json.dumps({"time": t, "down": {}}).encode() for t in times])
    assert len(looks) == 5
    assert sorted([*damaged, *(times.index(round(each.time)) + 1 for each in looks)]) == [
        *range(1, 8)
    ]
    assert [each.time for each in looks] == sorted(each.time for each in looks)
    assert sum(each.cut for each in looks) == 1


def test_a_look_after_a_line_that_was_cut_begins_a_line(run: Run) -> None:
    add_look(run.files, Look(1, {"n1": "down"}, ("n2",)))
    with run.files.node_states.open("a") as file:
        file.write('{"time": 2')  # killed while it wrote
    add_look(run.files, Look(3, {}))
    looks, damaged = read_looks(run.files)
    assert damaged == [2]
    assert looks == [Look(1, {"n1": "down"}, ("n2",)), Look(3, {}, cut=True)]


def test_of_two_looks_of_one_time_the_first_counts(run: Run) -> None:
    lines = [{"time": 0, "down": {}}, *({"time": 60, "down": {n: "down"}} for n in ("n1", "n2"))]
    looks, damaged = read(run, [json.dumps(each).encode() for each in lines])
    assert (looks, damaged) == ([Look(0, {}), Look(60, {"n1": "down"})], [3])
