"""The texts that the kit writes into an inventory: literals in YAML, and open questions.

Ansible evaluates no text that `literal_yaml` wrote. All code of the kit that writes or prints a
part of an inventory uses it. A node, a scheduler or the run user may have produced a text.

A question is a fact that ``proofmark init`` did not find. A required key without an answer has the
value ``QUESTION: …``. Any other question is a comment, ``# QUESTION: …``. ``grep -rn QUESTION
inventory/<site>`` finds both.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from proofmark.common.files import text_or_empty
from proofmark.common.input_limits import MAX_YAML_BYTES

MARK = "QUESTION:"
_COMMENT = re.compile(rf"^\s*#\s*{MARK}\s*(.+)$")
_KEY = re.compile(r"^(\s*)([\w.-]+):(.*)$")
_VALUE = re.compile(rf"^\s*(?:!unsafe\s+)?(['\"]?){MARK}\s*(.+?)\1\s*$")


def unanswered(value: Any, place: tuple[str | int, ...] = ()) -> Iterator[tuple[Any, str]]:
    """Yield the place and the text of each question in the values of `value`."""
    if isinstance(value, str):
        if value.startswith(MARK):
            yield place, value.removeprefix(MARK).strip()
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from unanswered(inner, (*place, str(key)))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from unanswered(inner, (*place, number))


def required(inventory: Path) -> Iterator[tuple[str, str]]:
    """Yield ``file:line`` and the text of each question that is a value: no run starts before it.

    The text begins with the key below ``partition``.
    """
    for file in sorted(inventory.rglob("*.yml")):
        above: list[tuple[int, str]] = []
        lines = text_or_empty(file, MAX_YAML_BYTES).splitlines()
        for number, line in enumerate(lines, start=1):
            if not (found := _KEY.match(line)):
                continue
            depth = len(found[1])
            above = [*(each for each in above if each[0] < depth), (depth, found[2])]
            if question := _VALUE.match(found[3]):
                key = ".".join(name for _, name in above).removeprefix("partition.")
                text = question[2].replace("''", "'") if question[1] == "'" else question[2]
                yield f"{file}:{number}", f"{key}: {text}"


def comments(inventory: Path) -> Iterator[tuple[str, str]]:
    """Yield ``file:line`` and the text of each question in the comments of an inventory."""
    for file in sorted(inventory.rglob("*.yml")):
        lines = text_or_empty(file, MAX_YAML_BYTES).splitlines()
        for number, line in enumerate(lines, start=1):
            if match := _COMMENT.match(line):
                yield f"{file}:{number}", match[1]


TEMPLATES = ("{{", "{%", "{#")
"""Ansible evaluates a text that contains one of these."""
OVERRIDE = "#jinja2:"
"""A text that begins with it names other marks (Ansible, "Overriding Jinja2 variables")."""
BREAKS = "\x85\u2028\u2029"
"""YAML 1.1 ends a line at these characters, too. Only a text in double quotes keeps them."""
UNSAFE = "!unsafe"
"""The tag of a text that Ansible does not evaluate."""


class _Dumper(yaml.SafeDumper):
    """Tags texts that Ansible would evaluate."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    if is_template(text):
        return dumper.represent_scalar(UNSAFE, text, style='"')
    if any(mark in text for mark in BREAKS):
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"')
    return dumper.represent_str(text)


_Dumper.add_representer(str, _text)


def is_template(text: str) -> bool:
    """Return whether Ansible would evaluate `text` as a value of an inventory."""
    return text.startswith(OVERRIDE) or any(mark in text for mark in TEMPLATES)


def literal_yaml(value: Any, *, flow: bool = False, width: float = 10**6) -> str:
    """Return `value` as YAML whose texts are literals.

    Args:
        value: texts, numbers, truth values and None, and lists and mappings of them.
        width: the longest line, where YAML allows a break.
    """
    dumped: str = yaml.dump(
        value,
        Dumper=_Dumper,
        default_flow_style=flow,
        sort_keys=False,
        width=width,
        allow_unicode=True,
    )
    return dumped
