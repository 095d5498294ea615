"""The cases and suites of an earlier run, whose files may have former keys.

What a former key stated follows from another key now, or is in the code: the program of a case
(`reader.programs`), and a change that matters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import model_validator

from proofmark.cases.case import Case
from proofmark.cases.suite import Suite
from proofmark.cases.vocabulary import Slug
from proofmark.common.strict_model import StrictModel

Block = Mapping[str, Any]

_OF_PROGRAM = ("doubling", "operations", "phases", "exact")
"""The former keys of `command` that its program states."""
_SETS = {"osu-micro-benchmarks": "osu", "npb": "npb"}
"""Package → the module of all of its programs. Other programs have a module with their name."""
_KINDS = ("sanity", "practice", "study")
"""The former keys of a suite that are values of `kind`."""


class RecordedCase(Case):
    """A case as it was at the start of a run."""

    @model_validator(mode="before")
    @classmethod
    def _former(cls, given: Any) -> Any:
        if not isinstance(given, Mapping):
            return given
        case = {**given, "read": _block(given.get("read"), lambda read: _read(read, given))}
        case["metrics"] = _each(given.get("metrics"), lambda metric: _without(metric, "material"))
        concurrent = given.get("concurrent")
        if isinstance(concurrent, Mapping):
            case["concurrent"] = concurrent.get("seconds")
        if "facts" in given:
            case["facts"] = _each(given["facts"], _fact)
        if "suites" in given:
            case["suites"] = _each(given["suites"], _use)
        return case


class RecordedSuite(Suite):
    """A suite as it was at the start of a run."""

    @model_validator(mode="before")
    @classmethod
    def _former(cls, given: Any) -> Any:
        if not isinstance(given, Mapping) or not {*_KINDS} & given.keys():
            return given
        kinds = [kind for kind in _KINDS if given.get(kind)]
        return {**_without(given, *_KINDS), "kind": kinds[0] if kinds else "acceptance"}


class RecordedSuites(StrictModel):
    """The file `suites.yml` of a run."""

    suites: dict[Slug, RecordedSuite]


def _block(given: Any, change: Callable[[Block], Any]) -> Any:
    """Return `change` of a block; anything else as it is, for the model to refuse."""
    return change(given) if isinstance(given, Mapping) else given


def _each(given: Any, change: Callable[[Block], Any]) -> Any:
    """Return a block with `change` of each block in it, or in a list in it."""

    def changed(value: Any) -> Any:
        if isinstance(value, list):
            return [_block(item, change) for item in value]
        return _block(value, change)

    return _block(given, lambda block: {name: changed(value) for name, value in block.items()})


def _without(block: Block, *keys: str) -> dict[str, Any]:
    return {key: value for key, value in block.items() if key not in keys}


def _fact(rule: Block) -> Block:
    return {rule["holds"]: rule["accepted"]} if rule.keys() == {"holds", "accepted"} else rule


def _use(use: Block) -> Block:
    changed = _without(use, "at_most", "alone")
    if use.get("alone"):
        changed["pairs"] = "alone"
    return changed


def _read(block: Block, case: Block) -> Block:
    """Return the block `read` of a case without its former keys."""
    text = block.get("text")
    former = "json" in block or "derive" in block
    changed = _without(block, "json", "derive", "own_line") if "same_as" not in block else {**block}
    if isinstance(text, Mapping):
        command = text.get("command")
        if "corrects" in text:
            former = True
            changed["aside"] = {**block.get("aside", {}), "active": "int"}
        changed["text"] = _text(text)
        if isinstance(command, Mapping):
            former = former or any(key in command for key in _OF_PROGRAM)
            changed["text"]["command"] = command.get("match")
    return {**changed, "program": _program(case)} if former else changed


def _text(rules: Block) -> dict[str, Any]:
    changed = _without(rules, "corrects")
    if "corrects" in rules:
        active = [f"{line}".replace("?P<ranks>", "?P<active>") for line in rules["corrects"]]
        changed["facts"] = [*rules.get("facts", ()), *active]
    if "tables" in rules:
        changed["tables"] = [
            {**table, "columns": _each(table.get("columns"), _column)} for table in rules["tables"]
        ]
    return changed


def _column(column: Block) -> Block:
    """Return a column whose unit has the former power of ten: GB/s for 3 and MB/s."""
    return {**_without(column, "power"), "unit": "GB/s"} if column.get("power") == 3 else column


def _program(case: Block) -> str:
    """Return the module of the program of a case."""
    return _SETS.get(f"{case.get('package')}", f"{case.get('program')}")
