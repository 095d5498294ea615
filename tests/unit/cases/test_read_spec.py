"""The models of a `read:` block: refused blocks, and what the message accepts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError
from tests.fixtures.kit import FAKE, make_kit
from tests.fixtures.shipped import shipped_benchmarks

from proofmark.cases.loading import load_benchmarks
from proofmark.cases.reader.engine import read_output
from proofmark.cases.reader.spec import Program, ReadBlock, ReadSpec, SameAs
from proofmark.common.errors import BadInput

ADAPTER: TypeAdapter[Any] = TypeAdapter(ReadBlock)
ROW = {"begins": "T .*", "match": r"T (?P<n>\S+) (?P<time>\S+)", "metrics": {"time": "s"}}

KEYS = {
    "match": "(?P<key>rate) (?P<value>.*)",
    "metrics": {"rate": {"metric": "rate", "unit": "s"}},
}
"""The lines of a site's own benchmark."""


def block(text: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    """Return a valid block with the changes."""
    rules = {"starts": "begin", "untitled": True, "no_end": True, "rows": [ROW], **(text or {})}
    return {"finds": "row", "parameters": {"n": "int"}, "text": rules, **changes}


def refusal(given: object) -> str:
    with pytest.raises(ValidationError) as caught:
        ADAPTER.validate_python(given)
    return "\n".join(f"{error['loc']} {error['msg']}" for error in caught.value.errors())


def test_a_valid_block_is_accepted() -> None:
    spec = ADAPTER.validate_python(block())
    assert isinstance(spec, ReadSpec)
    assert spec.metrics == {"time": "s"}
    [reading] = read_output(spec, "mine", "T 3 0.5\n")
    assert (reading.benchmark, reading.value, reading.parameters) == ("mine", 0.5, {"n": 3})


def test_same_as_is_a_separate_model_without_other_keys() -> None:
    assert ADAPTER.validate_python({"same_as": "hpl"}) == SameAs(same_as="hpl")
    assert "finds" in refusal({"same_as": "hpl", "finds": "row"})
    # A mistake is reported for one model only.
    assert "same_as" not in refusal(block(find="row"))


def table(**changes: Any) -> dict[str, Any]:
    valid = {"header": "Size .*", "columns": {"Size": {"metric": "time", "unit": "s"}}}
    return {"tables": [{**valid, **changes}]}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (block(find="x"), "Extra inputs"),
        ({"finds": "row"}, "Field required"),
        ({"finds": "row", "aside": {}}, "text is required, or a program that prints JSON"),
        ({"program": "hlp"}, "'hlp' is not a program, did you mean 'hpl'?"),
        ({"finds": "row", "text": {"keys": [KEYS], "reqire": {}}}, "Extra inputs"),
        ({"finds": "row", "text": {"keys": [{**KEYS, "match": "(?P<key>x)"}]}}, "no group 'value'"),
        (block({"rows": []}), "at least one of tables, rows and keys"),
        (block({"require": {"end": "(End"}}), "'(End' is not a regular expression"),
        (block({"require": {"end": 3}}), "3 is not a regular expression in quotes"),
        (block({"facts": [r"(?P<nn>\d+)"]}), "'nn' is not a parameter of this block, did you mean"),
        (block({"context": [{"match": "x", "resets": ["m"]}]}), "'m' is not a parameter"),
        (block({"expects": ["tim"]}), "'tim' is not a metric of this block, did you mean 'time'?"),
        (block({"needs": ["n", "q"]}), "'q' is not a parameter"),
        (block({"rows": [{**ROW, "metrics": {"tme": "s"}}]}), "'tme' is not a group of match"),
        (
            block({"rows": [{**ROW, "confirm": "(?P<x>ok)", "confirmed": {"y": "s"}}]}),
            "'y' is not a group of confirm",
        ),
        (block({"rows": [{**ROW, "count": "(?P<count>x)"}]}), r"no group (?P<count>\d+)"),
        (block({"reject": ["(?i)error"]}), "the patterns cannot be joined to one"),
        (block(table(columns={"Size": {}})), "none has a metric"),
        (block(table(columns={"Size": {"metric": "time"}})), "a column with metric"),
        (block(table(columns={"S": {"parameter": "n", "accept": "x"}})), "accept, parameter"),
        (
            block(table(columns={"Size": {"metric": "time", "unit": "us"}})),
            "metric 'time' in two units: 'us', 's'",
        ),
        (block(table(gives_up="time-out")), "no group (?P<reason>"),
        (block({"keys": [{"match": "(?P<key>x)", "metrics": {}}]}), "no group 'value'"),
        (block(parameters={"n": "integer"}), "'int', 'real', 'word'"),
        (block(program="fi"), "program: 'fi' is not a program, did you mean 'fio'?"),
        ({"finds": "row", "program": "osu"}, "a program that prints JSON"),
    ],
)
def test_a_wrong_block_is_refused(given: dict[str, Any], message: str) -> None:
    assert message in refusal(given)


@pytest.mark.parametrize("case", sorted(shipped_benchmarks().cases))
def test_a_block_is_unchanged_after_writing_and_reading(case: str) -> None:
    spec = shipped_benchmarks().case(case).reader()
    written = spec.model_dump_json(by_alias=True, exclude_unset=True)
    again = ReadSpec.model_validate_json(written)
    assert again.model_dump_json(by_alias=True, exclude_unset=True) == written


def test_a_proof_that_a_block_lacks_is_named() -> None:
    spec = ADAPTER.validate_python(block({"no_end": False, "starts": None}))
    assert isinstance(spec, ReadSpec)
    assert [key for key, _ in spec.lacking()] == ["read.text.starts", "read.text.require"]
    # The sizes of its rows prove the end of an output of OSU.
    spec = ADAPTER.validate_python(block({"no_end": False}, program="osu"))
    assert [*spec.lacking()] == []
    assert [*ADAPTER.validate_python(block()).lacking()] == []


def test_the_schema_of_a_block_can_be_made() -> None:
    schema = ADAPTER.json_schema()
    # The rules of a program in a case of an earlier release are no keys of a case.
    assert schema["$defs"].keys() == {
        "OfProgram",
        "OwnKeys",
        "OwnRules",
        "OwnText",
        "Quantity",
        "SameAs",
    }


def test_the_rules_of_a_program_are_refused_in_a_checkout_and_read_in_a_run(tmp_path: Path) -> None:
    kit = make_kit(tmp_path)
    kit.case("mine", read={**FAKE["read"], "agree": []})
    with pytest.raises(
        BadInput, match="read: found rules of a program; accepted: program, same_as"
    ):
        load_benchmarks(kit.cases)
    benchmarks = load_benchmarks(kit.cases, former=True)
    text = "size 1\nrate 100\nEND\n"
    read = (read_output(benchmarks.case(name).reader(), "x", text) for name in ("fake", "mine"))
    assert next(read) == next(read)


def test_a_program_without_rules_is_refused() -> None:
    with pytest.raises(ValueError, match="the program has no rules of its own"):
        Program().rules()
