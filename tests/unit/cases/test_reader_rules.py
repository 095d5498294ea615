"""Rules of documents and of lines that may be rows, with small blocks of rules."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.fixtures.rules import reader_of_rules, table_of
from tests.fixtures.shipped import shipped_benchmarks

from proofmark.cases.reader.engine import Reading, read_output
from proofmark.cases.reader.reader import Reader
from proofmark.cases.reader.table import is_rowlike

TABLE = {
    "header": "size rate",
    "columns": {"size": {"parameter": "n"}, "rate": {"metric": "rate", "unit": "B/s"}},
}


def spec_of() -> Reader:
    return reader_of_rules({"n": "int"}, starts="begin", untitled=True, tables=[TABLE])


def read_ior(**changes: Any) -> Reading:
    """Return the reading of a document of IOR with these changes."""
    given = {"api": "POSIX", "blockSize": 4, "transferSize": 2, "deadlineForStonewall": 0}
    options = {"access": "shared", "tasks": "1", "type": "independent"}
    row = {"access": "write", "bwMiB": 1.5}
    document: dict[str, Any] = {"Version": "4.0.0", "Finished": "now"}
    parts: dict[str, dict[str, Any]] = {"Parameters": given, "Options": options, "row": row}
    for key, value in changes.items():
        whole = next((part for part in parts.values() if key in part), document)
        whole[key] = value
    test = {"Parameters": given, "Options": options, "Results": [row]}
    text = json.dumps({**document, "tests": [test]})
    [reading] = read_output(shipped_benchmarks().case("ior").reader(), "ior", text)
    return reading


@pytest.mark.parametrize("value", [None, False, True, [], {"a": 1}])
@pytest.mark.parametrize("name", ["api", "blockSize", "tasks"])
def test_a_parameter_that_each_document_has(name: str, value: Any) -> None:
    assert read_ior().valid  # the control
    reading = read_ior(**{name: value})
    assert (reading.value, reading.valid) == (1.5, False)
    assert "neither a number nor a word" in reading.reason


@pytest.mark.parametrize(("value", "valid"), [(None, True), (False, True), (True, False)])
def test_a_parameter_that_a_document_can_lack(value: Any, valid: bool) -> None:
    reading = read_ior(type=value)
    assert (reading.valid, "type" in reading.parameters) == (valid, False)


@pytest.mark.parametrize("value", ["", [], {}, None, False])
def test_an_empty_value_proves_no_end(value: Any) -> None:
    assert read_ior(Finished=value).reason == 'no "Finished": cut off'


@pytest.mark.parametrize("value", ["x", [1], {"a": 1}, 0, True])
def test_any_other_value_proves_it(value: Any) -> None:
    assert read_ior(Finished=value).valid


@pytest.mark.parametrize("value", [None, [], {"a": 1}, True])
def test_a_place_without_a_number_has_no_value(value: Any) -> None:
    reading = read_ior(bwMiB=value)
    assert (reading.value, reading.valid) == (None, False)
    assert reading.reason == "neither a number nor a word at result.bwMiB"


def test_a_document_only_block_reads_no_text() -> None:
    spec = shipped_benchmarks().case("fio-cache").reader()
    [reading] = read_output(spec, "mine", "size rate\n1 2\n")
    assert reading.reason == "no fio job that writes or reads found; no JSON document"


def test_a_text_only_block_reads_no_document() -> None:
    [reading] = read_output(spec_of(), "mine", 'size rate\n1 2\n{"jobs": []}\n')
    assert (reading.value, reading.valid) == (2, True)
    assert (reading.benchmark, reading.case) == ("mine", "mine")


def test_colours_are_removed_once() -> None:
    [reading] = read_output(spec_of(), "mine", "size rate\n\x1b[31m1 \x1b[0m2\n")
    assert (reading.value, reading.parameters) == (2, {"n": 1})


NAMED = {
    "header": "name .*",
    "columns": {
        "name": {"names": {"copy:": "copy", "add:": "add"}},
        "rate": {"unit": "B/s"},
        "size": {"parameter": "n"},
        "more": {},
    },
}


@pytest.mark.parametrize(
    ("titles", "line", "rowlike"),
    [
        ("size rate", "1", True),
        ("size rate", "+1 x", True),
        ("size rate", ".5 x", True),
        ("size rate", "1x", True),
        ("size rate", "x 1", False),
        ("size rate", "x 1 2", True),
        ("size rate", "x 1 2 y", True),
        ("size rate", "x 1 y 2", False),
        ("size rate", "x1 2", True),
        ("size rate", "x1 y", False),
        ("size rate", "n1 NCCL INFO Channel 00/02 : 0 1 2 3", False),
        ("size rate", "n1 UCX WARN x16 2.5", True),
        ("size rate", "x y z", False),
        ("size rate", "2026-04-01 1 x", False),
        ("size rate", "2026-04-01 1 2", True),
        ("size rate", "12:30 x", False),
        ("size rate", "1:30:00 x", False),
        ("size rate", "123:30 x", True),
        ("rate", "x 1", False),
        ("rate", "1", True),
    ],
)
def test_whether_a_line_may_be_a_row(titles: str, line: str, rowlike: bool) -> None:
    table = table_of(TABLE)
    assert is_rowlike(line.split(), table.layout(titles)) is rowlike


@pytest.mark.parametrize(
    ("line", "rowlike"),
    [
        ("copy: 1", True),
        ("co", True),
        ("ad 1 2", True),
        ("x copy: y", True),
        ("1 2 3", True),
        ("1 2", False),
        ("copying", False),
        ("total 1 2", True),  # fits the columns
        ("total x 2", False),
        ("total 1", False),
    ],
)
def test_whether_a_line_may_be_a_named_row(line: str, rowlike: bool) -> None:
    table = table_of(NAMED)
    assert is_rowlike(line.split(), table.layout("name rate size")) is rowlike


def test_the_columns_that_are_not_read_may_have_any_word() -> None:
    table = table_of(NAMED)
    assert is_rowlike(["x", "total", "1", "2", "z"], table.layout("name rate size more"))
    assert not is_rowlike(["x", "total", "1", "z", "2"], table.layout("name rate size more"))
