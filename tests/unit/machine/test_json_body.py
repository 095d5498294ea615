"""JSON bodies of BMCs: limits, and parts with other types than expected."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fixtures.json_values import JSON

from proofmark.common.input_limits import MAX_DEPTH
from proofmark.machine.bmc.https import BodyPart, JsonError, is_path, parse
from proofmark.machine.outcome import LONGEST_TEXT, NodeError, Outcome


@given(st.binary() | st.text().map(str.encode))
def test_any_bytes_are_an_object_or_a_named_error(raw: bytes) -> None:
    try:
        assert isinstance(parse(raw), dict)
    except JsonError as error:
        assert "accepted: a JSON object" in str(error)


@pytest.mark.fault("bmc-deep-json")
@pytest.mark.parametrize("levels", [MAX_DEPTH, MAX_DEPTH + 1, 100_000])
@pytest.mark.parametrize("ends", [True, False])
def test_json_with_too_many_levels_is_not_parsed(levels: int, ends: bool) -> None:
    inside = levels - 1
    raw = b'{"a":' + b"[" * inside + (b"]" * inside + b"}" if ends else b"")
    if levels <= MAX_DEPTH and ends:
        assert list(parse(raw)) == ["a"]
        return
    with pytest.raises(
        JsonError, match=f"more than {MAX_DEPTH} levels" if levels > MAX_DEPTH else "not JSON"
    ):
        parse(raw)


@pytest.mark.parametrize(
    ("raw", "found"),
    [
        (b"", "no body"),
        (b"[]", "a list"),
        (b"null", "nothing"),
        (b"5", "a number (5)"),
        (b"true", "true or false (True)"),
        (b"{", "not JSON"),
        (b'{"a": "\xf6"}', "not JSON"),
        ('{"a": 1}'.encode("utf-16"), "not JSON"),
        (b'{"a": 1' + b"0" * 5000 + b"}", "not JSON"),
    ],
)
def test_a_body_that_is_no_object_is_named(raw: bytes, found: str) -> None:
    with pytest.raises(JsonError) as error:
        parse(raw)
    assert found in str(error.value)


CALLS: dict[str, tuple[Callable[[BodyPart], object], str]] = {
    "part": (lambda part: part.part("x"), "an object"),
    "items": (lambda part: part.items("x"), "a"),
    "texts": (lambda part: part.texts("x"), "a"),
    "text": (lambda part: part.text("x"), "a text"),
    "flag": (lambda part: part.flag("x"), "true or false"),
    "number": (lambda part: part.number("x"), "a whole number"),
    "path": (lambda part: part.path("x"), "a"),
    "link": (lambda part: part.link("x"), "a"),
    "settings": (lambda part: part.settings("x", {"a": 1}), "a"),
}


@pytest.mark.fault("bmc-other-types")
@given(JSON)
def test_a_value_of_another_type_is_named_with_its_place(value: Any) -> None:
    part = BodyPart("/redfish/v1/Systems/1", {"x": value})
    for call, accepted in CALLS.values():
        try:
            call(part)
        except NodeError as error:
            assert error.outcome is Outcome.UNEXPECTED
            assert error.text.startswith("/redfish/v1/Systems/1")
            assert "found " in error.text and f"accepted: {accepted}" in error.text
            assert error.text.isprintable() and len(error.text) <= LONGEST_TEXT


def test_values_of_the_expected_type_are_returned() -> None:
    """The control of the faults of other types."""
    body: dict[str, Any] = {
        "link": {"@odata.id": "/redfish/v1/x"},
        "Attributes": {"a": "1", "b": 2, "c": True, "d": None, "e": [1]},
        "names": ["a"],
        "items": [{"n": 5, "f": True}],
    }
    part = BodyPart("/p", body)
    assert part.link("link") == "/redfish/v1/x"
    assert part.settings("Attributes", dict.fromkeys("abcd")) == {"a": "1", "b": 2, "c": True}
    assert part.texts("names") == ["a"] and part.text("missing") == ""
    (item,) = part.items("items")
    assert (item.number("n"), item.flag("f"), item.place) == (5, True, "/p items[0]")


@pytest.mark.fault("bmc-link-leaves-host")
@pytest.mark.parametrize(
    ("path", "accepted"),
    [
        ("/redfish/v1/Systems/1", True),
        ("https://192.0.2.1/redfish/v1", False),
        ("//192.0.2.1/redfish/v1", False),
        ("redfish/v1", False),
        ("/a b", False),
        ("/a\r\nHost: x", False),
        ("/é", False),
        ("/" + "a" * 5_000, False),
    ],
)
def test_a_link_stays_on_the_bmc(path: str, accepted: bool) -> None:
    assert is_path(path) is accepted
    part = BodyPart("/p", {"x": {"@odata.id": path}})
    if accepted:
        assert part.link("x") == path
    else:
        with pytest.raises(NodeError, match="accepted: a path on the same BMC"):
            part.link("x")
