"""Models as JSON with shared parts: what is read is what was written."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofmark.common.message import Message
from proofmark.common.shared_models import StrictModel, read, written


class Part(StrictModel):
    number: int | float | bool | None = None
    words: tuple[str, ...] = ()
    counts: dict[str, int | float] = {}


class Whole(StrictModel):
    name: str
    parts: tuple[Part, ...]
    why: dict[str, Message] = {}


NUMBERS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
)
PARTS = st.builds(
    Part,
    number=NUMBERS,
    words=st.lists(st.text()).map(tuple),
    counts=st.dictionaries(st.text(), st.integers() | st.floats(-9, 9)),
)
MESSAGES = st.builds(lambda path: Message("readings-stale", path=path), st.text(min_size=1))
WHOLES = st.builds(
    Whole,
    name=st.text(),
    parts=st.lists(PARTS).map(tuple),
    why=st.dictionaries(st.text(), MESSAGES),
)


@given(models=st.dictionaries(st.text(), WHOLES))
def test_what_is_read_was_written(models: dict[str, Whole]) -> None:
    back = read(written(models))
    assert back == models
    assert repr(back) == repr(models)
    assert [each.model_fields_set for each in back.values()] == [
        each.model_fields_set for each in models.values()
    ]


def test_equal_parts_are_written_and_kept_once() -> None:
    models = {f"{n}": Whole(name=f"{n}", parts=(Part(words=("a" * 999,)),)) for n in range(9)}
    text = written(models)
    assert text.count(b"a" * 999) == 1
    parts = [each.parts[0] for each in read(text).values() if isinstance(each, Whole)]
    assert len(parts) == 9 and all(each is parts[0] for each in parts)


ROOT: Mapping[str, Any] = {"roots": {"n": [0]}}


@pytest.mark.parametrize(
    "rows",
    [
        [["builtins.eval", {"name": "1"}]],
        [["pathlib.Path", {}]],
        [[f"{Part.__module__}.Part", {"number": "x"}]],
        [[f"{Part.__module__}.Part", {"unknown": 1}]],
        [[f"{Part.__module__}.Part", {"words": [7]}]],
        [[f"{Part.__module__}.Part", {"words": [0]}], ["tuple", []]],
        [],
        ["x"],
        7,
    ],
)
def test_a_damaged_text_is_refused(rows: Any) -> None:
    with pytest.raises((ValueError, LookupError, TypeError)):
        read(json.dumps({**ROOT, "rows": rows}).encode())


def test_another_value_is_refused_when_it_is_written() -> None:
    class Other(StrictModel):
        values: frozenset[str]

    with pytest.raises(TypeError):
        written({"n": Other(values=frozenset("a"))})
