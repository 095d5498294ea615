"""The arguments of all commands as data, so that nothing waits for the modules of the commands.

These modules import the libraries of models and tables, which takes up to a second. A key of a
shell and a help must not wait for that. ``python -m tests.completion`` writes the file from the
parsers.
"""

from __future__ import annotations

import json
from argparse import ArgumentParser, _ActionsContainer
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from proofmark.cli.command import Words

FILE = Path(__file__).with_name("arguments.json")
"""The `Described` of each command, by its name."""
ALONE = "-"
"""The key of the options that have no meaning beside each other; no title of a group is a sign."""


@dataclass(frozen=True)
class Argument:
    """An argument of a command.

    Attributes:
        names: the option strings; of a positional argument one name.
        nargs: as in `argparse`; 0 is an option without a value.
        repeated: whether the option may be given more than once.
        words: what completes a value: a kind of `Words`, or the words.
        metavar: the name of a value in the help.
        required: whether the command needs the option.
        group: the title of its group in the help; empty for the groups of `argparse`.
        alone: whether the other such options of the command have no meaning beside it.
    """

    names: Sequence[str]
    nargs: int | str | None = None
    repeated: bool = False
    words: str | Sequence[str] = ()
    metavar: str | None = None
    about: str = ""
    required: bool = False
    group: str = ""
    alone: bool = False

    def add_to(self, parser: _ActionsContainer, completer: Callable[[Any], object]) -> None:
        """Add the argument to a parser, with what `completer` makes of its words."""
        about = self.about.replace("%", "%%")
        if self.nargs == 0:
            parser.add_argument(*self.names, action="store_true", help=about)
            return
        kind = "append" if self.repeated else "store"
        needed: dict[str, Any] = {"required": True} if self.required else {}
        action = parser.add_argument(
            *self.names, nargs=self.nargs, action=kind, metavar=self.metavar, help=about, **needed
        )
        words = Words(self.words) if isinstance(self.words, str) else self.words
        action.completer = completer(words)  # type: ignore[attr-defined]


@dataclass(frozen=True)
class Described:
    """A command as its help shows it.

    Attributes:
        about: what it does.
        example: a command line, without `proofmark`.
        arguments: its arguments; hidden ones are left out.
        lists_plugins: whether its help also lists plug-ins, which its module finds.
    """

    about: str
    example: str
    arguments: Sequence[Argument]
    lists_plugins: bool = False

    def add_to(
        self,
        parser: ArgumentParser,
        completer: Callable[[Words | Iterable[str]], object] = lambda words: None,
    ) -> None:
        """Add the arguments to the parser of the command."""
        groups: dict[str, _ActionsContainer] = {"": parser}
        for each in self.arguments:
            if each.group not in groups:
                groups[each.group] = parser.add_argument_group(each.group)
            if each.alone and ALONE not in groups:
                groups[ALONE] = parser.add_mutually_exclusive_group()
            each.add_to(groups[ALONE if each.alone else each.group], completer)


@cache
def described() -> Mapping[str, Described]:
    """Return the commands of the kit by name; those of other packages are not among them."""
    known = json.loads(FILE.read_text(encoding="utf-8"))
    return {
        name: Described(
            command["about"],
            command["example"],
            [Argument(**each) for each in command["arguments"]],
            command.get("lists_plugins", False),
        )
        for name, command in known.items()
    }
