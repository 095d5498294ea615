"""Writes the arguments of all commands, which complete a command line and make the help.

``python -m tests.completion`` writes the file from the parsers. A test compares it with them.
"""

from __future__ import annotations

import argparse
import json
from argparse import Action, ArgumentParser, HelpFormatter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from proofmark.cli.arguments import FILE
from proofmark.cli.command import Command, Words
from proofmark.cli.commands import COMMANDS, about, command_of

OPTION = ("nargs", 0)
"""What the file has of an option without a value. Other empty values are left out."""


def arguments(command: Command, parser: ArgumentParser) -> Iterator[dict[str, Any]]:
    """Add the arguments of a command to a new parser, and yield them as the file has them.

    Hidden ones are left out.
    """
    own = {*parser._action_groups}
    command.arguments(parser)
    titles: dict[int, str | None] = {}
    for group in parser._action_groups:
        titles |= dict.fromkeys(map(id, group._group_actions), "" if group in own else group.title)
    alone: set[int] = set()
    for group in parser._mutually_exclusive_groups:
        alone.update(map(id, group._group_actions))
    for action in parser._actions:
        if action.help != argparse.SUPPRESS:
            text = HelpFormatter(parser.prog)._expand_help(action) if action.help else ""
            found = _argument(action, text)
            found |= {"group": titles[id(action)], "alone": id(action) in alone}
            yield {key: value for key, value in found.items() if value or (key, value) == OPTION}


def _argument(action: Action, about: str) -> dict[str, Any]:
    choices = f"{{{','.join(map(str, action.choices))}}}" if action.choices else None
    named = action.dest.upper() if action.option_strings else action.dest
    return {
        "names": list(action.option_strings) or [action.dest],
        "nargs": action.nargs,
        "repeated": type(action).__name__ == "_AppendAction",
        "words": _words(action),
        "metavar": (action.metavar or choices or named) if action.nargs != 0 else None,
        "required": bool(action.option_strings) and action.required,
        "about": about,
    }


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
        command, parser = command_of(name), ArgumentParser(description="", add_help=False)
        lines = ",\n".join(f"  {json.dumps(each)}" for each in arguments(command, parser))
        head: dict[str, Any] = {"about": about(command), "example": command.example}
        if parser.description:  # the arguments have added to it
            head["lists_plugins"] = True
        values = ", ".join(f"{json.dumps(key)}: {json.dumps(head[key])}" for key in head)
        commands.append(f' {json.dumps(name)}: {{{values}, "arguments": [\n{lines}\n ]}}')
    return "{\n" + ",\n".join(commands) + "\n}\n"


def main() -> None:
    """Write the file."""
    FILE.write_text(text(), encoding="utf-8")


if __name__ == "__main__":
    main()
