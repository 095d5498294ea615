"""Writes the arguments of all commands, which complete a command line in a shell.

``python -m tests.completion`` writes the file from the parsers. A test compares it with them.
"""

from __future__ import annotations

import argparse
import json
from argparse import Action, ArgumentParser
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from proofmark.cli.command import Words
from proofmark.cli.commands import COMMANDS, command_of
from proofmark.cli.completion import ARGUMENTS


def arguments(name: str) -> Iterator[dict[str, Any]]:
    """Yield the arguments of a command as the file has them; hidden ones are left out."""
    parser = ArgumentParser(add_help=False)
    command_of(name).arguments(parser)
    for action in parser._actions:
        if action.help != argparse.SUPPRESS:
            yield _argument(action)


def _argument(action: Action) -> dict[str, Any]:
    named: dict[str, Any] = {"names": list(action.option_strings) or [action.dest]}
    if action.nargs is not None:
        named["nargs"] = action.nargs
    if type(action).__name__ == "_AppendAction":
        named["repeated"] = True
    words = _words(action)
    return {**named, "words": words} if words else named


def _words(action: Action) -> str | list[str]:
    """Return the kind of words, or the words, that complete the value of `action`."""
    given = getattr(action, "words", action.choices)
    if isinstance(given, Words):
        return given.value
    if given is not None:
        return [str(word) for word in given]
    return Words.PATH.value if action.type is Path else []


def text() -> str:
    """Return the content of the file: one argument in a line."""
    commands = []
    for name in COMMANDS:
        lines = ",\n".join(f"  {json.dumps(each)}" for each in arguments(name))
        commands.append(f" {json.dumps(name)}: [\n{lines}\n ]")
    return "{\n" + ",\n".join(commands) + "\n}\n"


def main() -> None:
    """Write the file."""
    ARGUMENTS.write_text(text(), encoding="utf-8")


if __name__ == "__main__":
    main()
