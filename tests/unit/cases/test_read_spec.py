"""The models of a `read:` block: refused blocks, and what the message accepts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError
from tests.fixtures.kit import FAKE, make_kit
from tests.folders import BENCHMARKS

from proofmark.cases.loading import load_benchmarks
from proofmark.cases.reader.engine import read_output
from proofmark.cases.reader.own_rules import OwnRules, ReadBlock, SameAs, program_names, reader_of
from proofmark.common.errors import BadInput

ADAPTER: TypeAdapter[Any] = TypeAdapter(ReadBlock)
KEYS = {r"(?P<key>time)(?: (?P<n>\S+))? (?P<value>.*)": {"time": "time"}}
"""The lines of a site's own benchmark."""


def block(**changes: Any) -> dict[str, Any]:
    """Return a valid block with the changes."""
    rules = {"finds": "row", "parameters": {"n": "int"}, "starts": "begin", "untitled": True}
    return {**rules, "keys": KEYS, **changes}


def refusal(given: object) -> str:
    with pytest.raises(ValidationError) as caught:
        ADAPTER.validate_python(given)
    return "\n".join(f"{error['loc']} {error['msg']}" for error in caught.value.errors())


def test_a_valid_block_is_accepted() -> None:
    rules = ADAPTER.validate_python(block())
    assert isinstance(rules, OwnRules)
    reader = rules.reader({"time": "s"})
    assert reader.units == {"time": "s"}
    [reading] = read_output(reader, "mine", "time 3 0.5\n")
    assert (reading.benchmark, reading.value, reading.parameters) == ("mine", 0.5, {"n": 3})


def test_same_as_is_a_separate_model_without_other_keys() -> None:
    assert ADAPTER.validate_python({"same_as": "hpl"}) == SameAs(same_as="hpl")
    assert "finds" in refusal({"same_as": "hpl", "finds": "row"})
    # A mistake is reported for one model only.
    assert "same_as" not in refusal(block(find="row"))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (block(find="x"), "Extra inputs"),
        ({"finds": "row"}, "Field required"),
        ({"program": "hlp"}, "'hlp' is not a program, did you mean 'hpl'?"),
        ({"finds": "row", "keys": KEYS, "reqire": {}}, "Extra inputs"),
        (block(text={"keys": KEYS}), "Extra inputs"),
        (block(keys={"(?P<key>x)": {}}), "no group 'value'"),
        (block(keys={}), "at least 1 item"),
        (block(keys={"(?P<key>x": {}}), "a regular expression: missing ), unterminated"),
        (block(require={"end": "(End"}), "a regular expression: missing ), unterminated"),
        (block(require={"end": 3}), "a regular expression in quotes"),
        (block(facts=[r"(?P<nn>\d+)"]), "'nn' is not a parameter of this block, did you mean"),
        (block(keys={"(?P<q>x)(?P<key>x)(?P<value>x)": {}}), "'q' is not a parameter"),
        (block(keys={"(?P<value>x)": {}}), "no group 'key'"),
        (block(reject=["(?i)error"]), "the patterns cannot be joined to one"),
        (block(parameters={"n": "integer"}), "'int', 'real', 'word'"),
        (block(rows=[]), "'row' is a result of no program"),
    ],
)
def test_a_wrong_block_is_refused(given: dict[str, Any], message: str) -> None:
    assert message in refusal(given)


def test_a_block_is_unchanged_after_writing_and_reading() -> None:
    rules = ADAPTER.validate_python(block())
    written = rules.model_dump_json(by_alias=True, exclude_unset=True)
    again = OwnRules.model_validate_json(written)
    assert again.model_dump_json(by_alias=True, exclude_unset=True) == written


def test_a_proof_that_a_block_lacks_is_named() -> None:
    rules = ADAPTER.validate_python(block(starts=None))
    assert [key for key, _ in rules.lacking()] == ["read.starts", "read.require"]
    rules = ADAPTER.validate_python(block(require={"end": "END"}))
    assert [*rules.lacking()] == []


def test_the_schema_of_a_block_can_be_made() -> None:
    schema = ADAPTER.json_schema()
    # The rules of a program in a case of an earlier release are no keys of a case.
    assert schema["$defs"].keys() == {"OfProgram", "OwnRules", "SameAs"}


def test_the_rules_of_a_program_are_refused_in_a_checkout_and_read_in_a_run(tmp_path: Path) -> None:
    """The case of an earlier release names its program by the name of a result only."""
    kit = make_kit(tmp_path)
    units = reader_of("npb").units
    metric = {"better": "higher", "bound": "universal", "what": "how fast"}
    metrics = {name: {**metric, "unit": unit} for name, unit in units.items()}
    kit.case("mine", read={"finds": "BT timing", "agree": []}, metrics=metrics)
    with pytest.raises(
        BadInput, match="read: found rules of a program; accepted: program, same_as"
    ):
        load_benchmarks(kit.cases)
    benchmarks = load_benchmarks(kit.cases, former=True)
    assert benchmarks.case("mine").reader().units == units
    without = {name: each for name, each in metrics.items() if name != "io_rate"}
    kit.case("mine", read={"finds": "BT timing", "agree": []}, metrics=without)
    reader = load_benchmarks(kit.cases, former=True).case("mine").reader()
    text = (BENCHMARKS / "samples" / "npb-3.4_bt.S_n4.txt").read_text()
    assert {each.metric for each in read_output(reader, "mine", text)} <= {*without}
    kit.case("mine", read={**FAKE["read"], "agree": []})
    with pytest.raises(BadInput, match="'rate' is a result of no program of the kit"):
        load_benchmarks(kit.cases, former=True)


@pytest.mark.parametrize("program", program_names())
def test_each_program_has_a_reader_of_its_own_results(program: str) -> None:
    reader = reader_of(program)
    assert reader.units and (reader.read or reader.documents)
    assert {*reader.expects} <= {*reader.units}
    for rule in reader.agree:
        names = set[str]().union(*(each.names for each in rule.expressions))
        names = {each.removesuffix("_again") for each in names}
        assert {rule.metric, *names} <= {*reader.units, *reader.types}
    for pattern in reader.facts:
        assert {*pattern.groupindex} <= {*reader.types, "node"}
    assert {*reader.needs} <= {*reader.parameters, "benchmark"}


def test_an_unknown_program_is_refused() -> None:
    with pytest.raises(BadInput, match="found 'hlp', did you mean 'hpl'"):
        reader_of("hlp")
