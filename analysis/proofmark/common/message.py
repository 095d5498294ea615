"""Messages: what the kit states about a run, as a code with fields. One function prints them.

A message is made where its reason is born. Decisions read its code and its fields, never its text.
It is a `str` with its English text, so that files for programs need no conversion.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cached_property, lru_cache
from typing import Any, Final

from proofmark.common.message_table import template
from proofmark.common.text import Counted
from proofmark.common.translation import ENGLISH, N_, language, translated

Field = str | int | float | tuple[str, ...]
"""A value of a message. A message in it is printed in the language of the page."""
SEVERAL = "several"
THE_NODE = N_("the node")
OF_NODES = frozenset({"node", "nodes"})
"""The fields of a message that name nodes."""
_ONLY_FIELD = re.compile(r"\{\w+\}", re.ASCII)
"""The template of a message whose text is that of a program or of a file. It is not translated."""


class English(str):
    """A text in English on a page of another language; the page marks its language."""


class Term(str):
    """A word or phrase that has a translation, as a field of a message."""


class Message(str):
    """A message; the default is the empty one, which states nothing.

    Attributes:
        code: of a template; empty for the empty message.
        fields: the values of the template.
    """

    code: str
    fields: Mapping[str, Field]

    def __new__(cls, code: str = "", /, **fields: Field) -> Message:
        """Return the message `code` with the values `fields` of its template.

        Raises:
            KeyError: there is no such code, or a value of its template is missing.
        """
        shown = {name: _joined_text(value, str) for name, value in fields.items()}
        made = super().__new__(cls, template(code).format(**shown) if code else "")
        vars(made).update(code=code, fields=fields)
        return made

    def __setattr__(self, name: str, value: object) -> None:
        """Refuse the change: a message is frozen."""
        raise AttributeError(f"{type(self).__name__} is frozen: {name}")

    def __getnewargs_ex__(self) -> tuple[tuple[str], dict[str, Field]]:
        """Return how to rebuild the message in another process."""
        return (self.code,), dict(self.fields)

    @property
    def parts(self) -> Iterator[Message]:
        """The message itself, or the messages that `joined` put together."""
        if self.code != SEVERAL:
            yield self
        else:
            parts = self.fields["parts"]
            assert isinstance(parts, tuple)
            yield from (each for each in parts if isinstance(each, Message))

    def nested(self) -> Iterator[Message]:
        """Yield the message, and all messages in it."""
        yield self
        for value in self.fields.values():
            for each in value if isinstance(value, tuple) else (value,):
                if isinstance(each, Message):
                    yield from each.nested()

    @cached_property
    def codes(self) -> tuple[str, ...]:
        """The code of the message, and those of all messages in it."""
        return tuple(each.code for each in self.nested())

    @property
    def names_node(self) -> bool:
        """Whether the message names nodes. A message inside it can name them, too."""
        return any(not each.fields.keys().isdisjoint(OF_NODES) for each in self.nested())

    def without_nodes(self, nodes: Collection[str]) -> Message:
        """Return the message with ``the node`` in place of each of `nodes` in its fields.

        Like nodes then have the same message. A node can be named in the text of a program too.
        """
        names = "|".join(re.escape(node) for node in nodes if node)
        pattern = re.compile(rf"(?<![\w.-])(?:{names})(?![\w-])")

        def changed(value: str) -> str:
            if isinstance(value, Message):
                return value.without_nodes(nodes)
            if isinstance(value, Term):
                return value
            return Term(THE_NODE) if pattern.fullmatch(value) else pattern.sub(THE_NODE, value)

        if not self or not names:
            return self
        return Message(
            self.code, **{name: _each(value, changed) for name, value in self.fields.items()}
        )

    @property
    def begins_with_value(self) -> bool:
        """Whether the text begins with a value, for example with the name of a node."""
        return bool(self) and template(self.main_code).startswith("{")

    @property
    def main_code(self) -> str:
        """The code of the first of the `parts`."""
        return next(self.parts).code

    def stored(self) -> dict[str, Any]:
        """Return the code and the values, for a file of a run."""
        return {"code": self.code, "fields": fields_json(self)}

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: object) -> Any:
        """Return how models read a message from a file, and how they write it."""
        from pydantic_core.core_schema import (
            no_info_plain_validator_function,
            plain_serializer_function_ser_schema,
        )

        return no_info_plain_validator_function(
            _read, serialization=plain_serializer_function_ser_schema(cls.stored)
        )

    def as_json(self, key: str) -> dict[str, Any]:
        """Return the text as `key`, the code as ``<key>_code``, the values as ``<key>_fields``."""
        return {
            key: str(self),
            f"{key}_code": self.main_code,
            f"{key}_fields": fields_json(self),
        }


@lru_cache(maxsize=4096, typed=True)
def shared(code: str, /, **fields: Field) -> Message:
    """Return the message `code`: one object for the many figures with the same values.

    A message in `fields` is known by its text.
    """
    return Message(code, **fields)


def _each(value: Field, change: Callable[[str], str]) -> Field:
    """Return a field with each of its texts changed."""
    if isinstance(value, tuple):
        return tuple(map(change, value))
    return change(value) if isinstance(value, str) else value


def _read(value: Any) -> Message:
    """Return a stored message.

    Raises:
        ValueError: it is none.
    """
    if isinstance(value, Message):
        return value
    try:
        fields = {name: _value(each) for name, each in value["fields"].items()}
        flat = all(isinstance(each, (int, float)) or type(each) is str for each in fields.values())
        return (shared if flat else Message)(value["code"], **fields)
    except (AttributeError, LookupError, TypeError) as error:
        raise ValueError(f"no message: {error}") from None


def _value(value: Any) -> Field:
    if isinstance(value, dict):
        return _read(value)
    if isinstance(value, list):
        return tuple(str(each) if isinstance(each, str) else _read(each) for each in value)
    if isinstance(value, (str, int, float)):
        return value
    raise TypeError(f"{value!r} is no field")


def fields_json(message: Message) -> dict[str, Any]:
    """Return the values of a message for JSON."""
    return {name: _value_json(value) for name, value in message.fields.items()}


def _value_json(value: Field) -> Any:
    if isinstance(value, Message):
        return value.stored()
    return [_value_json(each) for each in value] if isinstance(value, tuple) else value


NOTHING: Final = Message()


def joined(messages: Iterable[Message]) -> Message:
    """Return several messages as one, in this order; empty ones and copies are left out."""
    every: list[Message] = []
    for each in messages:
        if each:
            every += each.parts
    parts = tuple(dict.fromkeys(every))
    if len(parts) < 2:
        return parts[0] if parts else NOTHING
    return Message(SEVERAL, parts=parts)


def rendered(message: Message) -> str:
    """Return a message in the current language."""
    if not message:
        return ""
    text, values = template(message.code), message.fields.values()
    if language() != ENGLISH and _ONLY_FIELD.fullmatch(text) and {*map(type, values)} == {str}:
        return English(message)
    shown = {name: _joined_text(value, _shown) for name, value in message.fields.items()}
    return translated(text).format(**shown)


def _shown(text: str) -> str:
    if isinstance(text, Message):
        return rendered(text)
    return translated(text) if isinstance(text, Term) else text


def _joined_text(value: Field, show: Callable[[str], str]) -> str | int | float:
    if isinstance(value, tuple):
        return "; ".join(map(show, value))
    if isinstance(value, str):
        return show(value)
    return Counted(value) if type(value) is int else value


def localized(text: str) -> str:
    """Return a message of another room in the current language.

    Any other text is of a program or a file. On a page of another language it is `English`.
    """
    if isinstance(text, Message):
        return rendered(text)
    return English(text) if text and language() != ENGLISH else text


WORDS: tuple[str, ...] = (
    # the verdicts, the kinds of references, the origins
    *("PASS", "FAIL", "INVALID", "UNJUDGED", "NO FAULT FOUND"),
    *("contract", "expected", "floor", "baseline"),
    *("peers", "links", "over time"),
    *("measured", "emulated", "predicted"),
    # the states of jobs that ended
    *("lost a node", "stopped at its time limit", "cancelled by another user"),
    "its own command was stopped and cancelled it",
    *("requeued too often", "preempted"),
    # the parts of the baseline
    *("the same node in the baseline", "the like nodes in the baseline"),
    # the answers of judges, the states of a step, statistics
    *("holds", "does not hold", "cannot be told"),
    *("waiting", "running", "interrupted", "done"),
    *("mean", "min", "max"),
    "single run",
    # the properties in which nodes differ
    *("rack", "switch", "processor", "sockets", "cores online", "threads per core", "microcode"),
    *("stepping", "kernel", "kernel command line", "operating system", "governor", "turbo"),
    *("transparent huge pages", "memory", "DIMM part", "DIMM speed", "adapter firmware"),
    *("fabric rate", "NIC firmware", "PCIe link", "BIOS date", "board"),
    *("NIC driver", "frequency driver"),
)
"""Words of all rooms that a report shows. A word that equals its translation is not listed."""
