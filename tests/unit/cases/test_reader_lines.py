"""Rules of lines, rows and tables, with small blocks of rules."""

from __future__ import annotations

from typing import Any

import pytest
from tests.fixtures.rules import reader_of_rules

from proofmark.cases.reader.engine import Reading, program_runs, read_output
from proofmark.cases.reader.reader import Reader
from proofmark.cases.reader.settings import StartedCommand

ROW = {"begins": "T.*", "match": r"T (?P<n>\S+) (?P<rate>\S+)", "metrics": {"rate": "B/s"}}
SIZE = {"parameter": "n"}
RATE = {"metric": "rate", "unit": "B/s"}
TABLE = {"header": "size .*", "columns": {"size": SIZE, "rate": RATE, "more": {}}}
NAMED = {"a": {"names": {"x": "rate"}}, "r": {"unit": "MB/s"}}
COMMAND = "run (?P<command>.*)"


def spec_of(*, parameters: Any = None, program: str | None = None, **text: Any) -> Reader:
    given = text if {"rows", "tables", "keys"} & text.keys() else {"rows": [ROW], **text}
    given = {"starts": "begin", "untitled": "starts" not in text, **given}
    return reader_of_rules(parameters or {"n": "int", "m": "int"}, program, **given)


def read(output: str, request: StartedCommand | None = None, **text: Any) -> list[Reading]:
    return read_output(spec_of(**text), "mine", output, request)


def test_a_row_needs_its_own_confirmation() -> None:
    row = {**ROW, "confirm": "ok", "refuse": "bad"}
    for lines, expected in (
        ("T 1 2\nT 2 3\nok\n", [False, True]),
        ("T 1 2\nok\nT 2 3\n", [True, False]),
        ("T 1 2\nbad\nT 2 3\nok\n", [False, True]),
        ("T 1 2\nok\nok\nT 2 3\nok\n", [True, True]),
        ("T 1 2\nok\nbad\nT 2 3\nok\n", [False, True]),
        ("ok\nT 1 2\n", [False]),
    ):
        assert [each.valid for each in read(lines, rows=[row])] == expected
    refused = read("T 1 2\nbad\n", rows=[row])
    assert refused[0].reason == "the output contains 'bad'"
    plain = {**ROW, "refuse": "bad"}
    assert [each.valid for each in read("T 1 2\nT 2 3\nbad\n", rows=[plain])] == [True, False]


def test_a_row_with_a_wrong_parameter_is_broken() -> None:
    [reading] = read("T x 2\n")
    assert (reading.value, reading.reason) == (None, "broken line 'T x 2'")


@pytest.mark.parametrize(("count", "valid"), [("2", True), ("1", False), ("2000000000", False)])
def test_the_number_of_rows(count: str, valid: bool) -> None:
    row = {**ROW, "count": r"(?P<count>\d+) rows"}
    readings = read(f"T 1 2\nT 2 3\n{count} rows\n", rows=[row])
    assert [reading.valid for reading in readings] == [valid] * 2


def test_one_of_two_numbers_of_rows_counts() -> None:
    row = {**ROW, "count": r"(?P<count>\d+) rows"}
    assert all(each.valid for each in read("T 1 2\nT 2 3\n1 rows\n2 rows\n", rows=[row]))


REQUESTS: dict[str, Any] = {
    "program": "ior",
    "command": COMMAND,
    "parameters": {"iteration": "int"},
    "rows": [
        {
            "begins": "T.*",
            "match": r"T (?P<iteration>\S+) (?P<write>\S+)",
            "metrics": {"write": "MiB/s"},
        }
    ],
}
"""Rules of a program that proves its end by the rows that its command line requests."""


def test_requested_rows_replace_the_lines_of_an_end() -> None:
    rules: dict[str, Any] = {"require": {"end": "END"}, **REQUESTS}
    assert read("run -w\nT 0 2\n", **rules)[0].valid
    [reading] = read("T 0 2\n", **rules)
    assert reading.reason == "no line 'end': truncated, or a check failed"
    assert read("T 0 2\n", StartedCommand(["-w"]), **rules)[0].valid
    without = {**rules, "command": None}
    assert not read("run -w\nT 0 2\n", StartedCommand(["-w"]), **without)[0].valid


def test_a_known_request_precedes_a_printed_one() -> None:
    rules: dict[str, Any] = {"require": {"end": "END"}, **REQUESTS}
    assert not read("run -w -i 2\nT 0 2\n", **rules)[0].valid
    assert read("run -w -i 2\nT 0 2\n", StartedCommand(["-w"]), **rules)[0].valid


def test_the_command_line_before_a_title_is_of_the_next_run() -> None:
    rules: dict[str, Any] = {"starts": "BEGIN", "require": {"end": "END"}, **REQUESTS}
    output = "run -w\nBEGIN\nT 0 2\nrun -w -i 2\nBEGIN\nT 0 3\nBEGIN\nT 0 4\n"
    assert [reading.valid for reading in read(output, **rules)] == [True, False, False]
    output = "run -w\nBEGIN\nT 0 2\nrun -w\nBEGIN\nT 0 3\n"
    assert [reading.valid for reading in read(output, **rules)] == [True, True]


def test_titles_may_be_beginnings_of_others() -> None:
    columns = {"size": SIZE, "rate": RATE, "rate max": {"metric": "most", "unit": "B/s"}}
    table = {**TABLE, "columns": columns}
    readings = read("size rate max rate\n1 2 3\n", tables=[table])
    assert [(each.metric, each.value) for each in readings] == [("most", 2), ("rate", 3)]


def test_an_unknown_title_is_shortened() -> None:
    for title in ("x" * 41, "x" * 100):
        readings = read(f"size {title}  rate\n1 2 3\n", tables=[TABLE])
        assert [each.valid for each in readings] == [False, True]
        assert readings[0].reason == f"unknown column title '{'x' * 20}…{'x' * 19}'"


def test_a_table_without_values_has_no_row() -> None:
    readings = read("size more\n1 2\n", tables=[TABLE])
    assert [each.value for each in readings] == [None]
    assert "not a row of its table" in readings[0].reason


def test_named_and_unnamed_values_of_one_table() -> None:
    columns = {
        "name": {"names": {"a:": "a", "b:": "b"}},
        "rate": {"unit": "B/s"},
        "time": {"metric": "time", "unit": "s"},
    }
    table = {"header": "name .*", "columns": columns}
    readings = read("name rate time\na: 1 2\nb: 3 4\nc: 5 6\n", tables=[table])
    found = [(each.metric, each.value) for each in readings if each.valid]
    assert found == [("a", 1), ("time", 2), ("b", 3), ("time", 4)]
    assert [each.value for each in readings if not each.valid] == [None]


def test_a_table_without_stray_rows_beside_one_with() -> None:
    with_stray = {**TABLE, "header": "other .*", "stray": r"\d+ \d+"}
    readings = read("1 2\nsize rate\n3 4\n", tables=[TABLE, with_stray])
    assert [(each.value, each.valid) for each in readings] == [(None, False), (4, True)]
    assert "a row outside of any table: '1 2'" in readings[0].reason


def test_stray_rows_without_once_are_one_reading_and_not_mixed() -> None:
    table = {**TABLE, "stray": r"\d+ \d+", "ends": "end"}
    readings = read("1 2\n3 4\nsize rate\n5 6\nend\n7 8\n", tables=[table])
    assert [(each.value, each.valid) for each in readings] == [
        (None, False),
        (6, True),
        (8, False),
    ]
    assert "(and 1 more line)" in readings[0].reason
    assert readings[2].parameters == {"n": 7}


def test_a_context_line_forgets_the_table() -> None:
    table = {**TABLE, "stray": r"\d+ \d+", "ends": "end"}
    rules: dict[str, Any] = {"tables": [table], "context": [{"match": r"m=(?P<m>\d+)"}]}
    readings = read("size rate\n5 6\nend\nm=3\n7 8\n", **rules)
    assert [each.value for each in readings] == [6, None]


def test_columns_of_a_table_may_be_ignored() -> None:
    assert [each.value for each in read("size more rate\n1 x 3\n", tables=[TABLE])] == [3]


def test_a_repeated_end_is_mixed_only_if_the_block_says_so() -> None:
    rules: dict[str, Any] = {"require": {"end": "END"}}
    assert read("T 1 2\nEND\nEND\n", **rules)[0].valid
    [reading] = read("T 1 2\nEND\nEND\n", once="ends", **rules)
    assert reading.reason == "several outputs are mixed: a run has two lines 'end'"


def test_equal_rows_are_mixed_only_if_the_block_says_so() -> None:
    assert all(each.valid for each in read("T 1 2\nT 1 2\n", once="ends"))
    assert not any(each.valid for each in read("T 1 2\nT 1 2\n", once="rows"))
    assert all(each.valid for each in read("T 1 2\nT 2 2\n", once="rows"))


def test_rows_that_cannot_be_read_are_not_equal() -> None:
    readings = read("T 1 nan\nT 1 nan\nT 2 1\n", once="rows")
    assert [each.valid for each in readings] == [False, False, True]


@pytest.mark.parametrize("opener", ["m=3", "c=3", "size rate", "T 3 4", "k: 3"])
def test_what_begins_a_run_after_the_last_line_of_one(opener: str) -> None:
    rules: dict[str, Any] = {
        "closes": "END",
        "facts": [r"m=(?P<m>\d+)"],
        "context": [{"match": r"c=(?P<m>\d+)"}],
        "tables": [TABLE],
        "rows": [ROW],
        "keys": [
            {
                "match": "(?P<key>k): (?P<value>.*)",
                "metrics": {"k": {"metric": "k", "unit": "s"}},
            }
        ],
        "require": {"note": "NOTE"},
    }
    spec = spec_of(**rules)
    assert len(program_runs(spec, f"T 1 2\nEND\nNOTE\nwords\n{opener}\n")) == 2
    assert len(program_runs(spec, f"T 1 2\n{opener}\nEND\nNOTE\nwords\n")) == 1


def test_a_title_after_the_last_line_begins_one_run() -> None:
    spec = spec_of(starts="BEGIN", closes="END", facts=[r"m=(?P<m>\d+)"])
    assert len(program_runs(spec, "BEGIN\nm=1\nT 1 2\nEND\nBEGIN\nm=2\nT 1 2\nEND\n")) == 2
    assert len(program_runs(spec, "words\nBEGIN\nm=1\nT 1 2\nEND\n")) == 1


@pytest.mark.parametrize("kind", ["fact", "sticky"])
def test_a_complaint_that_is_normal_with_a_parameter(kind: str) -> None:
    rules: dict[str, Any] = {"complaints": [{"match": "WARN", "unless": "m"}]}
    pattern = r"m=(?P<m>\d+)"
    rules |= {"facts": [pattern]} if kind == "fact" else {"context": [{"match": pattern}]}
    assert read("m=1\nWARN\nT 1 2\n", **rules)[0].valid
    [reading] = read("WARN\nT 1 2\n", **rules)
    assert reading.reason == "the output contains 'WARN'"


def test_a_complaint_about_a_key() -> None:
    keys = {
        "match": "(?P<key>k|l): (?P<value>.*)",
        "metrics": {name: {"metric": name, "unit": "s"} for name in "kl"},
    }
    rules: dict[str, Any] = {"keys": [keys], "complaints": [{"match": "WARN"}]}
    for output, expected in (
        ("WARN\nk: 1\nl: 2\n", [False, True]),
        ("k: 1\nWARN\nl: 2\n", [True, False]),
        ("k: 1\nl: 2\nWARN\n", [True, False]),
    ):
        assert [each.valid for each in read(output, **rules)] == expected


def test_a_doubted_row_is_the_whole_row() -> None:
    columns = {"size": SIZE, "rate": RATE, "time": {"metric": "time", "unit": "s"}}
    rules: dict[str, Any] = {"tables": [{**TABLE, "columns": columns}]}
    rules["complaints"] = [{"match": "WARN"}]
    for output, expected in (
        ("size rate time\n1 2 3\nWARN\n4 5 6\n7 8 9\n", [True, True, False, False, True, True]),
        ("size rate time\n1 2 3\n4 5 6\nWARN\n", [True, True, False, False]),
    ):
        assert [each.valid for each in read(output, **rules)] == expected


def test_an_empty_run_before_another_is_mixed_only_if_the_block_says_so() -> None:
    rules: dict[str, Any] = {"starts": "BEGIN", "require": {"end": "END"}, "reject": ["BAD"]}
    sound = "BEGIN\nT 1 2\nEND\n"
    assert [each.valid for each in read(f"BEGIN\n{sound}", **rules)] == [False, True]
    readings = read(f"BEGIN\n{sound}", once="ends", **rules)
    assert [each.valid for each in readings] == [False, True]  # died at its banner
    for line in ("BAD", "END"):  # it failed, or it ended
        readings = read(f"BEGIN\n{line}\n{sound}", once="ends", **rules)
        assert [each.valid for each in readings] == [False, True]


def test_a_program_that_is_named_by_the_block_needs_no_name() -> None:
    rules: dict[str, Any] = {"starts": "T.*", "rows": [ROW], "needs": ["benchmark"]}
    [reading] = read_output(spec_of(**rules), "mine", "T 1 2\n")
    assert reading.reason == "no line has its benchmark"
    named = spec_of(**rules, benchmark="NAME")
    assert read_output(named, "mine", "T 1 2\n")[0].valid


def test_sizes_of_some_rows_are_enough_to_be_unproven() -> None:
    row = {**ROW, "match": r"T (?P<bytes>\S+) (?P<rate>\S+)"}
    keys = {"match": "(?P<key>k): (?P<value>.*)", "metrics": {"k": {"metric": "k", "unit": "s"}}}
    spec = spec_of(
        parameters={"bytes": "int"}, program="osu", rows=[row], keys=[keys], command=COMMAND
    )
    [run] = program_runs(spec, "T 1 2\nk: 3\n")
    assert run.unproven
    [run] = program_runs(spec, "k: 3\n")
    assert not run.unproven


def test_a_header_ends_the_open_table() -> None:
    readings = read("size rate\nsize rate\n1 2\n", tables=[TABLE])
    assert [each.value for each in readings] == [None, 2]
    assert "no row under" in readings[0].reason


def test_a_row_of_another_table_than_the_closed_one_is_not_read() -> None:
    one = {**TABLE, "ends": "end"}
    other = {**TABLE, "header": "other .*", "stray": r"\d+ \d+"}
    readings = read("size rate\n5 6\nend\n7 8\n", tables=[one, other])
    assert [each.value for each in readings] == [6, None]


def test_strays_at_two_places_are_two_readings() -> None:
    rules: dict[str, Any] = {"tables": [{**TABLE, "stray": r"\d+ \d+"}], "facts": [r"m=(?P<m>\d+)"]}
    readings = read("1 2\n3 4\nm=1\n5 6\n", **rules)
    assert ["more line" in each.reason for each in readings] == [True, False]


def test_blank_lines_are_no_stray_rows() -> None:
    table = {**TABLE, "stray": r".*"}
    assert [each.value for each in read("\n\nsize rate\n\n1 2\n", tables=[table])] == [2]


def test_a_line_with_another_rule_also_begins_a_run_after_the_last_line() -> None:
    spec = spec_of(closes="END", facts=[r"m=(?P<m>\d+).*"], complaints=[{"match": ".*WARN"}])
    assert len(program_runs(spec, "T 1 2\nEND\nm=3 WARN\n")) == 2
    assert len(program_runs(spec, "T 1 2\nEND\nWARN\n")) == 1


def test_a_run_that_contradicts_itself_is_not_a_sign_of_a_mixture() -> None:
    output = "BEGIN\nm=1\nm=2\nBEGIN\nT 1 2\n"
    readings = read(output, once="ends", starts="BEGIN", facts=[r"m=(?P<m>\d+)"])
    assert [each.valid for each in readings] == [False, True]


@pytest.mark.parametrize(
    ("after", "reasons"),
    [
        (
            "FAILED\nT 1 2\nT 2 3\n",
            ["the output contains 'FAILED'", "the output contains 'WARN'", ""],
        ),
        (
            "FAILED 1\nFAILED 2\n",
            [
                "the output contains 'FAILED 1'; the output contains 'WARN'",
                "the output contains 'FAILED 2'; the output contains 'WARN'",
            ],
        ),
    ],
    ids=["a row follows", "no row follows"],
)
def test_a_complaint_concerns_the_next_row_or_else_every_reading(
    after: str, reasons: list[str]
) -> None:
    readings = read(f"WARN\n{after}", complaints=[{"match": "WARN"}], fails=["FAILED.*"])
    assert [each.reason for each in readings] == reasons


def test_the_first_sign_of_a_mixture_is_the_reason() -> None:
    output = "T 1 2\nT 1 2\nEND\nEND\n"
    assert {each.reason for each in read(output, once="rows", require={"end": "END"})} == {
        "several outputs are mixed: a run has two lines 'end'"
    }


def test_the_first_line_of_a_rule_that_rejects_is_the_reason() -> None:
    [reading] = read("BAD 1\nT 1 2\nBAD 2\nWORSE\n", reject=["BAD.*", "WORSE"])
    assert reading.reason == "the output contains 'BAD 1'; the output contains 'WORSE'"


def test_rules_for_text_and_a_program_with_documents_read_the_document() -> None:
    spec = spec_of(**REQUESTS)
    document = '{"Version": "4", "tests": [{"Results": [{"access": "write", "bwMiB": 5}]}]}'
    assert [each.value for each in read_output(spec, "mine", f"{document}\nT 1 2\n")] == [5]
    assert [each.value for each in read_output(spec, "mine", "T 1 2\n")] == [2]
