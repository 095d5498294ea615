"""Rows and other lines of tables, with small blocks of rules."""

from __future__ import annotations

from typing import Any

import pytest
from tests.fixtures.rules import reader_of_rules

from proofmark.cases.reader.engine import Reading, program_runs, read_output
from proofmark.cases.reader.reader import Reader

SIZE = {"parameter": "n"}
RATE = {"metric": "rate", "unit": "B/s"}
TABLE = {"header": "size .*", "columns": {"size": SIZE, "rate": RATE, "more": {}}}
NAMED = {
    "header": "name .*|rate",
    "columns": {"name": {"names": {"a:": "a"}}, "rate": {"unit": "B/s"}, "more": {}},
}


def spec_of(*, kind: str = "int", **text: Any) -> Reader:
    parameters = {"n": kind, "m": "int"}
    text = {"starts": "begin", "untitled": True, "tables": [TABLE], **text}
    return reader_of_rules(parameters, **text)


def read(output: str, **text: Any) -> list[Reading]:
    return read_output(spec_of(**text), "mine", output)


def test_a_skipped_line_may_look_like_a_row() -> None:
    readings = read("size rate\n1 2\n7 3\n4 5\n", tables=[{**TABLE, "skip": "7 .*"}])
    assert [each.value for each in readings] == [2, 5]


def test_foreign_lines_before_a_row_are_a_note() -> None:
    [run] = program_runs(spec_of(), "size rate\n1 2\nwords here\nx y z\n3 4\nlast words\n")
    assert [(each.value, each.problems) for each in run.builders] == [(2, []), (4, [])]
    assert run.notes == ["2 lines of another program in a table, the first is 'words here'"]


@pytest.mark.fault("outputs-mixed")
@pytest.mark.parametrize("line", ["words x3 4", "words 3 4", "[n1:12] WARN3 4"])
def test_a_row_after_words_of_another_program_is_not_lost(line: str) -> None:
    readings = read(f"size rate\n1 2\n{line}\n5 6\n")
    assert [each.value for each in readings] == [2, None, 6]
    assert line in readings[1].reason


def test_broken_rows_around_a_row_are_two_readings() -> None:
    readings = read("size rate\n1\n2 3\n4\n")
    assert [(each.value, each.reason) for each in readings] == [
        (None, "not a row of its table: '1'"),
        (3, ""),
        (None, "not a row of its table: '4'"),
    ]


def test_a_row_that_was_given_up_has_the_parameters_of_its_header() -> None:
    table = {
        **TABLE,
        "header": ".*rate",
        "gives_up": r"(?P<n>\d+) (?P<m>\d+) gave up: (?P<reason>.*)",
    }
    for header, parameters in (("size rate", {"n": 1}), ("rate", {})):
        [reading] = read(f"{header}\n1 2 gave up: no memory\n", tables=[table])
        assert (reading.parameters, reading.reason) == (
            parameters,
            "the program gave up: no memory",
        )


def test_a_value_without_the_name_of_its_metric_is_not_read() -> None:
    [reading] = read("rate\n3\n", tables=[NAMED])
    assert (reading.metric, reading.value) == ("a", None)
    assert reading.reason == "not a row of its table: '3'"


def test_a_name_without_a_value_is_not_a_row() -> None:
    [reading] = read("name more\na: 3\n", tables=[NAMED])
    assert reading.reason == "not a row of its table: 'a: 3'"


def test_a_refused_word_is_shortened() -> None:
    table = {"header": "rate check", "columns": {"rate": RATE, "check": {"accept": "ok"}}}
    for word, quoted in (("x" * 40, "x" * 40), ("x" * 41, f"{'x' * 20}…{'x' * 19}")):
        [reading] = read(f"rate check\n1 {word}\n", tables=[table])
        assert reading.reason == f"'{quoted}' instead of 'ok'"


ROUNDED = "size rate\n976.56KiB 2\n"
RUN = "run (?P<command>.*)"


def spec_of_sizes() -> Reader:
    columns = {"size": {"parameter": "block_bytes"}, "rate": RATE}
    text: dict[str, Any] = {"starts": "begin", "untitled": True}
    text |= {"command": RUN, "tables": [{"header": "size .*", "columns": columns}]}
    return reader_of_rules({"block_bytes": "size"}, "ior", **text)


def test_a_rounded_size_has_the_exact_size_of_its_command() -> None:
    [reading] = read_output(spec_of_sizes(), "mine", f"run -b 999999\n{ROUNDED}")
    assert (reading.value, reading.parameters) == (2, {"block_bytes": 999999})


@pytest.mark.fault("size-of-another-output")
def test_a_rounded_size_has_no_exact_size_of_another_output() -> None:
    spec = spec_of_sizes()
    for size in (1000000, 999999):
        [reading] = read_output(spec, "mine", f"run -b {size}\n{ROUNDED}")
        assert (reading.value, reading.parameters) == (2, {"block_bytes": size})
    [reading] = read_output(spec, "mine", ROUNDED)
    assert (reading.value, reading.reason) == (None, "not a row of its table: '976.56KiB 2'")


STRAY = {**TABLE, "stray": r"\d+ .*", "ends": "end"}


def test_strays_around_a_row_after_the_table_are_two_readings() -> None:
    readings = read("size rate\n1 2\nend\n3 4 x\n5 6\n7 8 x\n", tables=[STRAY])
    assert [(each.value, each.valid) for each in readings] == [
        (2, True),
        (None, False),
        (6, False),
        (None, False),
    ]
    assert not any("more lines" in each.reason for each in readings)


def test_a_context_line_ends_the_table() -> None:
    readings = read("size rate\n1 2\nm=3\n4 5\n", context=[{"match": r"m=(?P<m>\d+)"}])
    assert [each.value for each in readings] == [2]


def test_a_failure_ends_the_table() -> None:
    """The line after the failure looks like a row, but it is outside of the table."""
    header, row, later = "size rate\n", "1 2\n", "4 5\n"
    readings = read(f"{header}{row}FAILED\n{later}", fails=["FAILED"])
    assert [each.value for each in readings] == [2, None]


def test_a_failure_has_the_benchmark_that_was_printed_before() -> None:
    rules: dict[str, Any] = {
        "context": [{"match": "run (?P<benchmark>.*)"}],
        "fails": ["FAILED( (?P<benchmark>.+))?"],
    }
    readings = read("run A\nsize rate\n1 2\nFAILED\nrun B\nFAILED C\n", **rules)
    assert [(each.benchmark, each.valid) for each in readings] == [
        ("A", True),
        ("A", False),
        ("C", False),
    ]


def test_a_second_header_is_mixed_only_if_the_block_says_so() -> None:
    output = "size rate\n1 2\nsize rate\n3 4\n"
    assert all(each.valid for each in read(output))
    assert all(each.valid for each in read(output, once="ends"))
    assert {each.reason for each in read(output, once="rows")} == {
        "several outputs are mixed: a run has two headers"
    }
