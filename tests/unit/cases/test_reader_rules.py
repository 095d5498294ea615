"""Rules of documents and of lines that may be rows, with small blocks of rules."""

from __future__ import annotations

import json
from typing import Any

import pytest

from proofmark.cases.reader.engine import Reading, read_output
from proofmark.cases.reader.spec import ReadSpec
from proofmark.cases.reader.spec_table import TableRule
from proofmark.cases.reader.table import is_rowlike

DOCUMENT = {
    "banner": "output.jobs",
    "each": {"job": "output.jobs"},
    "values": {"rate": {"value": "job.rate", "unit": "B/s"}},
    "parameters": {"n": "job.n"},
}
TABLE = {
    "header": "size rate",
    "columns": {"size": {"parameter": "n"}, "rate": {"metric": "rate", "unit": "B/s"}},
}


def spec_of(document: dict[str, Any] | None = None, **changes: Any) -> ReadSpec:
    text = {"starts": "begin", "untitled": True, "no_end": True, "tables": [TABLE]}
    block: dict[str, Any] = {"finds": "row", "parameters": {"n": "int"}, "text": text}
    if document is not None:
        block["json"] = {**DOCUMENT, **document}
    return ReadSpec.model_validate({**block, **changes})


def read(document: dict[str, Any], *jobs: dict[str, Any], **output: Any) -> list[Reading]:
    text = json.dumps({"jobs": list(jobs), **output})
    return read_output(spec_of(document), "mine", text)


@pytest.mark.parametrize(
    ("value", "optional", "parameters", "valid"),
    [
        (3, [], {"n": 3}, True),
        (3, ["n"], {"n": 3}, True),
        (None, ["n"], {}, True),
        (False, ["n"], {}, True),
        (True, ["n"], {}, False),
        (None, [], {}, False),
        (False, [], {}, False),
        ("x", ["n"], {}, False),
    ],
)
def test_an_optional_parameter(
    value: Any, optional: list[str], parameters: dict[str, int], valid: bool
) -> None:
    [reading] = read({"optional": optional}, {"rate": 1.5, "n": value})
    assert (reading.parameters, reading.valid) == (parameters, valid)


@pytest.mark.parametrize("value", ["", [], {}, None, False])
def test_an_empty_value_is_no_condition(value: Any) -> None:
    [reading] = read({"require": {"no end": "output.end"}}, {"rate": 1.5, "n": 1}, end=value)
    assert reading.reason == "no end"
    [reading] = read({"reject": {"error": "job.error"}}, {"rate": 1.5, "n": 1, "error": value})
    assert reading.valid


@pytest.mark.parametrize("value", ["x", [1], {"a": 1}, 0, True])
def test_any_other_value_is_one(value: Any) -> None:
    [reading] = read({"require": {"no end": "output.end"}}, {"rate": 1.5, "n": 1}, end=value)
    assert reading.valid
    [reading] = read({"reject": {"error": "job.error"}}, {"rate": 1.5, "n": 1, "error": value})
    assert reading.reason == "error"


def test_a_condition_that_cannot_be_computed_is_the_unfavourable_one() -> None:
    [reading] = read({"require": {"no end": "abs(output.x)"}}, {"rate": 1.5, "n": 1}, x="a")
    assert reading.reason == "no end"
    [reading] = read({"reject": {"error": "abs(job.x)"}}, {"rate": 1.5, "n": 1, "x": "a"})
    assert reading.reason == "error"
    values = {"rate": {"value": "job.rate", "unit": "B/s", "when": "abs(job.x) == `1`"}}
    [reading] = read({"values": values}, {"rate": 1.5, "n": 1, "x": "a"})
    assert reading.value == 1.5


def test_a_place_that_cannot_be_computed_has_neither_a_value_nor_a_parameter() -> None:
    values = {"rate": {"value": "abs(job.rate)", "unit": "B/s"}}
    [reading] = read({"values": values}, {"rate": "a", "n": 2})
    assert (reading.value, reading.parameters) == (None, {"n": 2})
    assert reading.reason == "neither a number nor a word at abs(job.rate)"
    document = {"parameters": {"n": "abs(job.n)"}, "optional": ["n"]}
    [reading] = read(document, {"rate": 1.5, "n": "a"})
    assert (reading.value, reading.parameters, reading.valid) == (1.5, {}, True)


def test_the_condition_of_a_metric() -> None:
    values = {"rate": {"value": "job.rate", "unit": "B/s", "when": "job.on"}}
    readings = read({"values": values}, {"rate": 1, "n": 1, "on": 1}, {"rate": 2, "n": 1})
    assert [reading.value for reading in readings] == [1]


def test_a_document_only_block_reads_no_text() -> None:
    spec = spec_of({}, text=None)
    [reading] = read_output(spec, "mine", "size rate\n1 2\n")
    assert reading.reason == "no row found; no JSON document"


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
    table = TableRule.model_validate(TABLE)
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
    table = TableRule.model_validate(NAMED)
    assert is_rowlike(line.split(), table.layout("name rate size")) is rowlike


def test_the_columns_that_are_not_read_may_have_any_word() -> None:
    table = TableRule.model_validate(NAMED)
    assert is_rowlike(["x", "total", "1", "2", "z"], table.layout("name rate size more"))
    assert not is_rowlike(["x", "total", "1", "z", "2"], table.layout("name rate size more"))
