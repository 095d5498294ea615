"""Outputs in what Ansible prints of a registered result.

Its callbacks print the lines of a program as a list in JSON or YAML, or the whole result in one
line (`ansible-playbook -v`).
"""

from __future__ import annotations

import json
import re
from typing import Any

import yaml

_ITEM = r'[ \t]*"(?:[^"\\\n]|\\.)*",?[ \t]*'
_JSON = re.compile(rf'(stdout_lines": \[)\n((?:{_ITEM}\n)+)')
_YAML = re.compile(r"((?:^|\n) *[\w.]*stdout_lines:[ ]*)\n((?:[ ]*- .*\n|[ ]*-\n)+)")
_TEXT = re.compile(r'"(?:[\w.]+\.)?stdout": ("(?:[^"\\\n]|\\.)*")')
_RESULT = re.compile(r"^(\w+: \[[^\]\n]+\][^{\n]*=> )(\{.*\})$", re.MULTILINE)
_MARK = "stdout"
_UNREADABLE = (ValueError, RecursionError)
"""What `json` raises for a text that is damaged, or that has too many levels."""


def program_lines(text: str) -> str:
    """Return `text` with the lines of registered outputs as the programs printed them.

    A result has its output twice, as a text and as a list of lines. The list counts.
    """
    if _MARK not in text:
        return text
    text = _RESULT.sub(_of_result, text)
    text, lists = _JSON.subn(lambda match: f"{match[1]}\n{_of_json(match[2])}", text)
    text, more = _YAML.subn(lambda match: f"{match[1]}\n{_of_yaml(match[2])}", text)
    return text if lists or more else _TEXT.sub(_of_text, text)


def _of_result(match: re.Match[str]) -> str:
    """Return a result in one line as the lines of its output; unchanged if it has none."""
    try:
        result = json.loads(match[2])
    except _UNREADABLE:
        return match[0]
    # A loop has a result for each item.
    items = result.get("results")
    results: list[Any] = items if isinstance(items, list) else [result]
    texts = [each["stdout"] for each in results if isinstance(each, dict) and _has_output(each)]
    return "\n".join([match[1], *texts]) if texts else match[0]


def _has_output(result: dict[str, Any]) -> bool:
    return isinstance(result.get("stdout"), str)


def _of_json(items: str) -> str:
    """Return the items of a list as lines; a damaged item is unchanged."""
    return "".join(f"{_text(line)}\n" for line in items[:-1].split("\n"))


def _text(line: str) -> str:
    """Return the text that a line states as JSON; the line itself if it is damaged."""
    try:
        text: str = json.loads(line.strip(" \t").removesuffix(","), strict=False)
    except _UNREADABLE:
        return line
    return text


def _of_yaml(items: str) -> str:
    """Return the items of a list as lines. An item in several lines is not recognised as a list."""
    lines = []
    for item in items[:-1].split("\n"):
        try:
            read = yaml.load(item, Loader=yaml.CBaseLoader)  # makes texts, lists and mappings only
        except (yaml.YAMLError, RecursionError):
            read = item
        lines.append(
            read[0] if isinstance(read, list) and read and isinstance(read[0], str) else item
        )
    return "".join(f"{line}\n" for line in lines)


def _of_text(match: re.Match[str]) -> str:
    text = _text(match[1])
    return f'"stdout":\n{text}\n' if "\n" in text else match[0]
