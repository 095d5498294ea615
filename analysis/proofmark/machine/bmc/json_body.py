"""JSON bodies of Redfish responses, with limits, and their parts, with checks of each type.

A BMC may send anything. Each function raises an exception of the package that names what was found.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from proofmark.common.errors import ProofmarkError
from proofmark.common.json_text import parse_json
from proofmark.machine.outcome import NodeError, Outcome
from proofmark.site.firmware import Scalar

PATH = re.compile(r"/(?!/)[!-~]{0,1000}")
"""A path on the same host: printable ASCII, and no host name after a second slash."""
KINDS = {dict: "an object", list: "a list", str: "a text", bool: "true or false", int: "a number"}
SHOWN = 80
"""Limit of a quoted value in characters."""


class JsonError(ProofmarkError):
    """The body is no JSON object within the limits."""


def parse(raw: bytes) -> Mapping[str, Any]:
    """Return the JSON object in `raw`.

    Raises:
        JsonError: `raw` is not JSON (`parse_json`), or is no object.
    """
    try:
        body = parse_json(raw)
    except ValueError as error:
        found = f"a body that is not JSON ({error})" if raw.strip() else "no body"
        raise JsonError(f"found {found}; accepted: a JSON object") from None
    if not isinstance(body, dict):
        raise JsonError(f"found {described(body)}; accepted: a JSON object")
    return body


def serialized(content: Mapping[str, Any]) -> bytes:
    """Return `content` as JSON."""
    return json.dumps(content).encode()


def is_path(text: str) -> bool:
    """Return whether `text` is an absolute path on the same host."""
    return PATH.fullmatch(text) is not None


def described(value: object) -> str:
    """Return the type of `value`, and the value if it is short."""
    if value is None:
        return "nothing"
    kind = KINDS.get(type(value), "a number")
    return f"{kind} ({value!r:.{SHOWN}})" if isinstance(value, (str, int, float)) else kind


@dataclass(frozen=True)
class BodyPart:
    """One object of a response.

    The methods return an empty value if the object does not have the key, or has null.

    Attributes:
        place: the path of the resource and the keys to the object, for messages.
        content: the object.
    """

    place: str
    content: Mapping[str, Any]

    def part(self, key: str) -> BodyPart:
        """Return the object at `key`.

        Raises:
            NodeError: UNEXPECTED: it is no object.
        """
        return BodyPart(f"{self.place} {key}", self._typed(key, dict, {}))

    def required(self, key: str) -> BodyPart:
        """Return the object at `key`.

        Raises:
            NodeError: UNEXPECTED: there is none, or it is no object.
        """
        if self.content.get(key) is None:
            raise self._wrong(key, None, "an object")
        return self.part(key)

    def items(self, key: str) -> list[BodyPart]:
        """Return the list of objects at `key`.

        Raises:
            NodeError: UNEXPECTED: it is no list, or one of its items is no object.
        """
        values = self._typed(key, list, [])
        for number, value in enumerate(values):
            if not isinstance(value, dict):
                raise self._wrong(f"{key}[{number}]", value, "an object")
        return [
            BodyPart(f"{self.place} {key}[{number}]", value) for number, value in enumerate(values)
        ]

    def texts(self, key: str) -> list[str]:
        """Return the list of texts at `key`.

        Raises:
            NodeError: UNEXPECTED: it is no list, or one of its items is no text.
        """
        values: list[Any] = self._typed(key, list, [])
        for number, value in enumerate(values):
            if not isinstance(value, str):
                raise self._wrong(f"{key}[{number}]", value, "a text")
        return values

    def text(self, key: str) -> str:
        """Return the text at `key`.

        Raises:
            NodeError: UNEXPECTED: it is no text.
        """
        return str(self._typed(key, str, ""))

    def flag(self, key: str) -> bool:
        """Return the truth value at `key`.

        Raises:
            NodeError: UNEXPECTED: it is neither true nor false.
        """
        return bool(self._typed(key, bool, False))

    def number(self, key: str) -> int | None:
        """Return the whole number at `key`.

        Raises:
            NodeError: UNEXPECTED: it is no whole number.
        """
        value = self.content.get(key)
        if value is None or (isinstance(value, int) and not isinstance(value, bool)):
            return value
        raise self._wrong(key, value, "a whole number")

    def path(self, key: str) -> str:
        """Return the path at `key`; empty if there is none.

        Raises:
            NodeError: UNEXPECTED: it is no path on the same host.
        """
        value = self.text(key)
        if value and not is_path(value):
            raise self._wrong(key, value, "a path on the same BMC")
        return value

    def link(self, key: str) -> str:
        """Return the path that the link at `key` has.

        Raises:
            NodeError: UNEXPECTED: there is no link, or it leaves the BMC.
        """
        path = self.part(key).path("@odata.id")
        if not path:
            raise self._wrong(key, self.content.get(key), "a link")
        return path

    def settings(self, key: str, names: Mapping[str, object]) -> dict[str, Scalar]:
        """Return the attributes of the object at `key` that `names` contains.

        Raises:
            NodeError: UNEXPECTED: there is no object, or an attribute is no text, whole number or
                truth value.
        """
        attributes = self.required(key)
        found = {name: attributes.content.get(name) for name in names}
        for name, value in found.items():
            if value is not None and not isinstance(value, (str, int)):
                raise attributes._wrong(name, value, "a text, a whole number, true or false")
        return {name: value for name, value in found.items() if value is not None}

    def _typed(self, key: str, kind: type, empty: Any) -> Any:
        value = self.content.get(key)
        if value is None:
            return empty
        if not isinstance(value, kind):
            raise self._wrong(key, value, KINDS[kind])
        return value

    def _wrong(self, key: str, value: object, accepted: str) -> NodeError:
        text = f"{self.place}: {key}: found {described(value)}; accepted: {accepted}"
        return NodeError(Outcome.UNEXPECTED, text)
