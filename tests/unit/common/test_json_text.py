"""The parser of JSON of others: its limit of levels, and its encoding."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from tests.fixtures.json_values import JSON

from proofmark.common.files import depth, parse_json


def levels(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max(map(levels, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(levels, value), default=0)
    return 0


@given(JSON)
def test_the_depth_is_that_of_the_parsed_value(value: Any) -> None:
    for ascii_only in (True, False):
        text = json.dumps(value, ensure_ascii=ascii_only)
        assert depth(text.encode(errors="surrogatepass")) == levels(value)


def test_brackets_in_texts_are_no_levels() -> None:
    raw = json.dumps({"a": "[{" * 1000, "b": '"[\\"{' * 100}).encode()
    assert depth(raw) == 1 and set(parse_json(raw)) == {"a", "b"}


@pytest.mark.parametrize("text", ["NaN", "[Infinity]", "[1e999]", "-1e999", '{"a": -Infinity}'])
def test_a_constant_that_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no number of JSON"):
        parse_json(text.encode())


def test_another_encoding_than_utf_8_is_refused() -> None:
    assert parse_json('{"a": "ö"}'.encode()) == {"a": "ö"}
    with pytest.raises(ValueError, match="decode"):
        parse_json('{"a": "ö"}'.encode("utf-16"))
