"""docs/troubleshooting.md quotes messages that the kit, its plays or their programs print."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest
from tests.folders import ROOT

PAGE = ROOT / "docs/troubleshooting.md"
SOURCES = ("analysis", "plugins", "roles", "playbooks", "acceptance.yml")
OF_OTHERS = {"leaves us with no hosts to target"}
"""Messages of Ansible."""
_VALUE = re.compile(r"^found |: |…|\bNAME\b|\bHOME\b|\d+|partition\.node\.")
"""What stands in a quoted message in place of a value, or joins two texts."""


def quoted() -> list[str]:
    """Return the messages in the first column of the tables."""
    rows = re.findall(r"^\| (.*?) \|", PAGE.read_text("utf-8"), re.MULTILINE)
    texts: list[str] = []
    for row in rows:
        texts += re.findall(r"`([^`]+)`", row)
    return [text for text in texts if not text.startswith("-")]


def texts_of_code() -> Iterator[str]:
    """Yield each text in the code of the kit, a blank in place of a value, and each other file."""
    for name in SOURCES:
        folder = ROOT / name
        for path in [folder] if folder.is_file() else sorted(folder.rglob("*")):
            if path.suffix == ".py":
                for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                    if isinstance(node, ast.Constant) and isinstance(node.value, str):
                        yield node.value
            elif path.suffix in (".yml", ".sh", ".j2"):
                yield path.read_text("utf-8")


@pytest.fixture(scope="module")
def code() -> str:
    return "\n".join(" ".join(text.split()) for text in texts_of_code())


def missing(message: str, code: str) -> list[str]:
    """Return the parts of a message between its values that no text of the code has."""
    parts = (part.strip(" '\"():,;?") for part in _VALUE.split(message))
    return [part for part in parts if part and part not in code]


@pytest.mark.parametrize("message", sorted({*quoted()} - OF_OTHERS))
def test_a_quoted_message_is_one_that_the_kit_prints(message: str, code: str) -> None:
    assert missing(message, code) == []


def test_a_message_that_nobody_prints_is_found(code: str) -> None:
    assert len(quoted()) >= 40
    assert missing("found a selection of nothing at all, 7 times", code)
