"""Messages: their table, their languages, and that nothing decides by their text."""

from __future__ import annotations

import ast
import copy
import json
import pickle
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from string import Formatter

import pytest
from babel.messages.pofile import read_po
from pydantic import ValidationError
from tests.catalogues import catalogue
from tests.folders import PACKAGE, ROOT

from proofmark.common import message_table
from proofmark.common.message import (
    NOTHING,
    English,
    Message,
    Term,
    fields_json,
    joined,
    rendered,
)
from proofmark.common.message_table import MESSAGES, added_messages
from proofmark.common.plugins import installed
from proofmark.common.shared_models import StrictModel
from proofmark.common.translation import in_language

EVERY = {**MESSAGES, **added_messages()}
"""The templates of the kit and of its packages, by code."""
TIMED_OUT = Message("timed-out", seconds="61", limit=60)
KILLED = Message("killed", signal="SIGSEGV")
TEXTS = {"reason", "reasons", "message", "messages", "likely", "powerless", "disturbed"} | {
    *("unsteady", "unmet", "not_evaluated", "sentence", "sentences", "problem", "problems"),
    *("meaning", "why_unknown", "finding", "findings", "label"),
}
"""Names of attributes and variables that have messages.

The words that a program printed, which the kit may parse, have another name.
"""
OPERATIONS = {"split", "rsplit", "partition", "rpartition", "startswith", "endswith"} | {
    *("find", "index", "replace", "removeprefix", "removesuffix", "strip", "count"),
}


class _Stored(StrictModel):
    why: Message


@cache
def modules() -> Sequence[tuple[Path, ast.Module]]:
    """Return the path and the syntax tree of each module of the package."""
    paths = sorted(PACKAGE.rglob("*.py"))
    return [(path, ast.parse(path.read_text(encoding="utf-8"))) for path in paths]


def fields_of(code: str) -> set[str]:
    return {field for _, field, _, _ in Formatter().parse(EVERY[code]) if field}


def test_a_message_is_its_english_text_in_each_language() -> None:
    assert TIMED_OUT == "timed out after 61 s (limit 60 s)"
    with in_language("ko"):
        assert Message("killed", signal="SIGSEGV") == KILLED
        assert rendered(KILLED) == "SIGSEGV 신호로 종료됨"
    assert rendered(KILLED) == KILLED
    assert rendered(NOTHING) == NOTHING == ""


def test_messages_and_terms_in_a_message_are_translated_but_no_other_value() -> None:
    inside = Message("load-binding", case="contract", problem=KILLED)
    counter = Message("counter-rose", text=Term("no free space or quota"), counter="x", rise=1)
    with in_language("ko"):
        assert rendered(inside) == "부하 contract: SIGSEGV 신호로 종료됨"
        assert "no free space" not in rendered(counter)
        assert isinstance(rendered(Message("output", problem="x")), English)


def test_several_messages_are_joined_once_and_keep_their_codes() -> None:
    several = joined([NOTHING, KILLED, joined([TIMED_OUT, KILLED])])
    assert several == f"{KILLED}; {TIMED_OUT}"
    assert list(several.parts) == [KILLED, TIMED_OUT]
    assert several.main_code == "killed"
    assert [*several.codes] == ["several", "killed", "timed-out"]
    assert joined([KILLED, NOTHING]) is KILLED
    assert joined([]) is NOTHING


@pytest.mark.parametrize("made", [copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))])
def test_a_copy_has_code_and_fields(made: object) -> None:
    assert callable(made)
    again = made(Message("load-binding", case="fio", problem=KILLED))
    assert (again, again.code) == ("the load fio: killed by SIGSEGV", "load-binding")
    assert again.fields["problem"].code == "killed"


def test_the_json_of_a_message_has_its_codes() -> None:
    found = joined([KILLED, TIMED_OUT])
    assert found.as_json("why") == {
        "why": f"{KILLED}; {TIMED_OUT}",
        "why_code": "killed",
        "why_fields": {
            "parts": [
                {"code": "killed", "fields": {"signal": "SIGSEGV"}},
                {"code": "timed-out", "fields": {"seconds": "61", "limit": 60}},
            ]
        },
    }
    assert fields_json(NOTHING) == {}


def test_a_model_stores_a_message_with_its_codes() -> None:
    inside = Message("exit-code-said", code=1, message="no")
    several = joined([KILLED, Message("load-binding", case="fio", problem=inside)])
    stored = _Stored(why=several).model_dump_json()
    assert json.loads(stored)["why"]["code"] == "several"
    again = _Stored.model_validate_json(stored).why
    assert (again, [*again.codes]) == (several, [*several.codes])
    assert _Stored(why=again).model_dump_json() == stored


@pytest.mark.parametrize(
    "text",
    [
        '"killed by x"',
        '{"code": "killed"}',
        '{"code": "killed", "fields": {}}',
        '{"code": "other", "fields": {}}',
        '{"code": "killed", "fields": {"signal": null}}',
        '{"code": "killed", "fields": []}',
    ],
)
def test_anything_else_is_no_message(text: str) -> None:
    with pytest.raises(ValidationError, match="no message"):
        _Stored.model_validate_json(f'{{"why": {text}}}')


def test_a_message_is_frozen() -> None:
    with pytest.raises(AttributeError, match="frozen"):
        KILLED.code = "other"


def test_like_nodes_have_the_same_message_without_their_names() -> None:
    ran = Message("wrong-host", node="n12", nodes="n1")
    said = Message("exit-code-said", code=1, message="n1: no n12 on n1.site")
    assert ran.without_nodes(["n1"]) == "ran on n12, planned on the node"
    assert said.without_nodes(["n1"]) == "exit code 1: the node: no n12 on the node.site"
    several = Message("wrong-host", node="x", nodes="n[1-4]").without_nodes(["n[1-4]", "n1"])
    with in_language("ko"):
        assert "the node" not in rendered(several)


def test_each_code_is_unique_and_each_template_is_in_the_catalogues() -> None:
    tables = (
        node
        for node in ast.walk(ast.parse(Path(message_table.__file__).read_text(encoding="utf-8")))
        if isinstance(node, ast.Dict)
    )
    codes = [key.value for each in tables for key in each.keys if isinstance(key, ast.Constant)]
    for table in installed(message_table.__name__).values():
        codes += table.load()
    assert len(codes) == len({*codes}) == len(EVERY)
    with catalogue("ko").open("rb") as file:
        assert {*EVERY.values()} <= {each.id for each in read_po(file)}


def fits(given: set[str | None], fields: set[str]) -> bool:
    """Return whether a call gives the fields; None stands for fields of a dictionary."""
    return given - {None} <= fields if None in given else given == fields


def test_each_message_of_the_code_has_a_template_with_its_fields() -> None:
    """Some codes are made of parts. Each code of the table that fits the parts is used."""
    wrong: list[str] = []
    used: set[str] = {"several"}
    patterns: set[str] = set()
    for path, tree in modules():
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                used |= {node.value} & EVERY.keys()
            elif isinstance(node, ast.JoinedStr):
                parts = (
                    re.escape(str(each.value)) if isinstance(each, ast.Constant) else "[a-z-]+"
                    for each in node.values
                )
                pattern = "".join(parts)
                if re.search("[a-z]{3}", pattern.replace("[a-z-]+", "")):
                    patterns.add(pattern)
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
                continue
            if node.func.id != "Message" or not node.args or path.name == "message.py":
                continue
            (code,) = node.args
            if not isinstance(code, ast.Constant) or not isinstance(code.value, str):
                continue
            given = {each.arg for each in node.keywords}
            place = f"{path.name}:{node.lineno}: {code.value}"
            if code.value not in EVERY:
                wrong.append(place)
            elif not fits(given, fields_of(code.value)):
                wrong.append(f"{place}: {given}")
    assert wrong == []
    for compiled in map(re.compile, patterns):
        used |= {code for code in EVERY if compiled.fullmatch(code)}
    assert EVERY.keys() - used == set()


def decided_by_text(tree: ast.Module) -> Iterator[int]:
    """Yield the lines of operations on the text of a message, and of comparisons with a literal."""

    def is_text(node: ast.expr) -> bool:
        name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
        return name in TEXTS

    def is_literal(node: ast.expr) -> bool:
        literal = isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value
        return bool(literal) or isinstance(node, ast.JoinedStr)

    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            if any(map(is_text, sides)) and any(map(is_literal, sides)):
                yield node.lineno
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            own = node.func.attr in OPERATIONS and is_text(node.func.value)
            patterns = ("re.", "pattern.", "_pattern.")
            if own or (
                any(map(is_text, node.args)) and ast.unparse(node.func).lower().startswith(patterns)
            ):
                yield node.lineno


@pytest.mark.parametrize(
    "code",
    [
        'x.reason.startswith("disturbed")',
        'reason.split(": ")',
        're.search("node", result.reason)',
        '"bound" in each.reason',
        'verdict.unmet == f"{x} is"',
    ],
)
def test_a_decision_by_a_text_is_found(code: str) -> None:
    assert list(decided_by_text(ast.parse(code))) == [1]
    assert list(decided_by_text(ast.parse("x.reason.code == 'killed'; x.reason == ''"))) == []


def test_nothing_decides_by_the_text_of_a_message() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for path, tree in modules()
        for line in decided_by_text(tree)
    ]
    assert found == []
