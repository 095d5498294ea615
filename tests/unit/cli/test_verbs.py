"""Each verb with each option, through the real command line, with a value that a user gives.

``tests/verbs.txt`` has the command lines. The verbs and options that they must cover come from the
parsers: a new one fails `test_each_verb_and_each_option_has_a_row` until it has its line.
"""

from __future__ import annotations

import re
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.fixtures.verbs import World, filled_in, world
from tests.folders import ROOT

from proofmark.cli.parser import COMMANDS, command_of, parser

pytestmark = pytest.mark.rest("a command for each verb with each option")


class Row(NamedTuple):
    """A command line, with the placeholders of `tests.fixtures.verbs`, and what it must do."""

    codes: frozenset[int]
    words: str
    seen: str
    stdin: str = ""


def read_rows() -> dict[str, list[Row]]:
    """Return the rows of each command; ``""`` is ``proofmark`` itself."""
    names: dict[str, str] = {}
    rows: dict[str, list[Row]] = {}
    lines = (ROOT / "tests/verbs.txt").read_text(encoding="utf-8").splitlines()
    for line in (each for each in lines if each and not each.startswith("#")):
        if line.startswith("== "):
            command = line.removeprefix("== ")
            into = rows.setdefault("" if command == "proofmark" else command, [])
        elif name := re.match("([A-Z0-9]+) = (.*)", line):
            names[name[1]] = defined(name[2], names)
        else:
            code, words, *rest = line.split(" | ")
            codes = frozenset(map(int, code.split("/")))
            into.append(Row(codes, defined(words, names), *rest))
    return rows


def defined(text: str, names: Mapping[str, str]) -> str:
    """Return `text` with the texts of `names`."""
    return re.sub(r"\{([A-Z0-9]+)\}", lambda match: names[match[1]], text)


ROWS = read_rows()


def called(words: str) -> tuple[str, str]:
    """Return the command of a command line, and the words after it."""
    if words.startswith("-"):
        return "", words
    first, _, rest = words.partition(" ")
    second, _, further = rest.partition(" ")
    both = f"{first} {second}"
    return (both, further) if both in COMMANDS else (first, rest)


def needed(name: str) -> Iterator[tuple[str, str]]:
    """Yield each verb of a command with each option.

    A command without verbs has the verb ``""``. The name ``""`` is ``proofmark`` itself.
    """
    made = ArgumentParser(add_help=False) if name else parser()
    if name:
        command_of(name).arguments(made)
    verbs = [verb for each in made._actions if each.dest == "verb" for verb in each.choices or ()]
    options = [each.option_strings for each in made._actions if each.option_strings]
    uses = command_of(name).uses if name else ()
    of_verbs = [each for each in uses if each.beside and {*each.beside.split()} <= {*verbs}]
    for verb, names in product(verbs or [""], [[""], *options]):
        refused = any([*each.mistakes({verb, *names})] for each in of_verbs)
        if names[0] not in PASSED and not refused:
            yield verb, names[0]


PASSED = ("--groups-fd", "-h")
"""Options of many commands: one row has the first, and `test_cli.py` calls each help."""


def covered(name: str) -> Iterator[tuple[str, str]]:
    """Yield the verb and the options of each row of a command."""
    verbs = {verb for verb, _ in needed(name)}
    for row in (row for rows in ROWS.values() for row in rows):
        found, rest = called(row.words)
        verb = rest.partition(" ")[0]
        if found == name:
            options = [word for word in rest.split() if word.startswith("-")]
            yield from product([verb if verb in verbs else ""], ["", *options])


def test_each_row_is_of_a_command() -> None:
    assert ROWS.keys() == {"", *COMMANDS}


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_each_verb_and_each_option_has_a_row(name: str) -> None:
    assert sorted({*needed(name)} - {*covered(name)}) == []


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with world(tmp_path_factory.mktemp("verbs")) as yielded:
        yield yielded


def problems(row: Row, code: int, printed: str, names: dict[str, str]) -> list[str]:
    """Return what of a row was not observed."""
    found = [] if code in row.codes else [f"exit code {code}, not {sorted(row.codes)}"]
    for part in row.seen.split(" && "):
        seen = filled_in(part, names)
        path, is_content, pattern = seen.partition(" ~ ")
        if seen[0] in "+!":
            good = Path(seen[1:]).exists() == (seen[0] == "+")
        elif is_content:
            content = Path(path).read_text() if Path(path).exists() else ""
            good = bool(re.search(pattern, content, re.MULTILINE))
        else:
            good = bool(re.search(seen, printed, re.MULTILINE))
        found += [] if good else [f"not seen: {seen}"]
    return found


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_each_row_does_what_its_options_say(made: World, name: str) -> None:
    names = made.place(name)
    for row in ROWS[name]:
        code, printed = made.call(row.words, names, row.stdin)
        assert problems(row, code, printed, names) == [], f"{row.words}\n{printed}"
