"""The parser of the command line, with the commands of this room and of other packages."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import chain, pairwise, zip_longest
from pathlib import Path
from textwrap import fill
from typing import Any, NoReturn

from proofmark import __version__
from proofmark.cli.command import AddedCommand, ArgumentUse, Command, whole
from proofmark.cli.commands import OF_VERBS, OWN, STAGES
from proofmark.common.errors import InputError, nearest, refuse
from proofmark.common.plugins import installed
from proofmark.common.printed_command import PrintedCommand, of_person
from proofmark.common.progress_lines import say
from proofmark.common.text import one_line

BAD_INPUT = 3
WIDTH = 78
"""The length of the lines of a help."""
WIDTH_OF_COLUMN = 40
"""The width of the first column of the commands in the help."""
ADDED = "proofmark.cli.commands"
"""The group of the entry points of other packages: each names an `AddedCommand`."""
FIRST_COLUMN = ("site", "before a run", "run")
"""The groups in the first column of ``--help``, those until a run has measured."""
STAGE = "stage"
"""The command that has the commands of playbooks; ``--help`` does not have it."""
MEANT = {
    **dict.fromkeys(("list", "ls", "suites"), "proofmark cases"),
    **dict.fromkeys(("run", "start"), ""),
}
"""Words that people try, each with the right command; empty: that of `measuring`."""
Known = Command | AddedCommand


def _groups() -> dict[str, dict[str, Known]]:
    """Return the commands of this room and of other packages, in their groups and `STAGE`.

    A package that cannot be loaded has no command, and a line states that.
    """
    groups: dict[str, dict[str, Known]] = {
        title: {**commands} for title, commands in {**OWN, STAGE: STAGES}.items()
    }
    for name, point in installed(ADDED).items():
        try:
            added = point.load()
        except Exception as error:  # the code of a site
            problem = f"{type(error).__name__}: {one_line(f'{error}')}"
            say(f"proofmark: {ADDED}: {point.value}: {problem}")
            continue
        if not isinstance(added, AddedCommand) or any(name in group for group in groups.values()):
            say(f"proofmark: {ADDED}: {point.value}: found no AddedCommand with a new name")
            continue
        groups.setdefault(added.group, {})[name] = added
    return groups


_EVERY = _groups()
GROUPS = {title: group for title, group in _EVERY.items() if title != STAGE}
"""The commands that people use, by phase."""
OF_PERSONS = {name: each for group in GROUPS.values() for name, each in group.items()}
COMMANDS: dict[str, Known] = {**OF_PERSONS, **OF_VERBS, **_EVERY[STAGE]}
"""All commands."""


def command_of(name: str) -> Command:
    """Return a command; the module of one of another package is imported."""
    known = COMMANDS[name]
    if isinstance(known, Command):
        return known
    command: Command = import_module(known.module).COMMANDS[name]
    return command


@dataclass(frozen=True)
class Called:
    """The command of a command line.

    Attributes:
        options: its options, and nothing else. No name of an option can replace the function of
            the command, or an option of ``proofmark`` itself.
        further: the options that the line could also have, each with whether it takes a value.
    """

    name: str
    options: argparse.Namespace
    further: Mapping[str, bool]

    @property
    def command(self) -> Command:
        """The command."""
        return command_of(self.name)

    @property
    def folder(self) -> Path | None:
        """RUN; None if the command has none."""
        return getattr(self.options, "folder", None)


def measuring(words: Sequence[str]) -> PrintedCommand:
    """Return the command that measures what `words` name: a suite or a case, a site, nodes."""
    given = dict(pairwise(["CASE", *words]))
    first = "SUITE" if given.get("CASE", "-").startswith("-") else given["CASE"]
    suite = of_person(f"suite={given.get('--suite', first)}", "suite=SUITE", "-e")
    limit = of_person(given.get("-l", "PARTITION"), "PARTITION", "-l")
    site = [of_person(given["-i"], "inventory/SITE", "-i")] if "-i" in given else []
    return PrintedCommand("ansible-playbook", "acceptance.yml", *site, limit, suite)


class _Parser(argparse.ArgumentParser):
    """A parser with exit code 3 for wrong usage. argparse has 2, which means INVALID here."""

    _words: Sequence[str] = ()

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse the words, and keep them for the message about an unknown command."""
        self._words = args or ()
        return super().parse_known_args(args, namespace)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Name the command that is nearest to one that does not exist."""
        known = [name for name in action.choices or () if name != STAGE]
        if isinstance(action, argparse._SubParsersAction) and value not in (*known, STAGE):
            if value in MEANT:
                same = MEANT[value] or measuring([*self._words][[*self._words].index(value) + 1 :])
                self.error(f"found the command {value!r}; accepted: {same}")
            hint = nearest(value, known)
            self.error(f"found the command {value!r}{hint}; accepted: {', '.join(known)}")
        super()._check_value(action, value)

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        say(f"{self.prog}: {message}")
        sys.exit(BAD_INPUT)


class _CommandParser(_Parser):
    """The parser of one command, or of `STAGE`.

    It becomes a parser with the arguments of the command when it is looked up (`_Parsers`): a line
    has one command of fifty. The result of a command is a `Called` with the name ``called``.
    """

    def __init__(self, *, command: str, **options: Any) -> None:
        self._name, self._options = command, options
        if not command:
            super().__init__(**options)
        self._command: Command | None = None
        self.verbs: dict[str, _CommandParser] = {}
        self.verb = ""
        self._uses: Sequence[ArgumentUse] = ()
        self._given: set[str] = set()

    def __repr__(self) -> str:
        return f"_CommandParser({self._name!r})"  # argcomplete prints parsers before they are used

    def load(self) -> None:
        """Add the arguments of the command and its example, once."""
        if self._command or not self._name:
            return
        self._command = command = command_of(self._name)
        super().__init__(**self._options, epilog=f"example: proofmark {command.example}")
        if self.verb:
            self.add_argument("verb", choices=[self.verb])
        command.arguments(self)
        self._uses = command.uses

    def format_help(self) -> str:
        """Return the help: what the command does, its forms with a verb, its arguments."""
        if self._command:
            lines = [fill(about(self._command), WIDTH)]
            for form in self.verbs.values():
                lines.append(f"proofmark {form._name} -h: {COMMANDS[form._name].summary}")
            lines += ["", self._command.listing()] if self._command.listing else []
            self.description = "\n".join(lines)
        return super().format_help()

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        if args and args[0] in self.verbs:
            verb = self.verbs[args[0]]
            verb.load()
            return verb.parse_known_args(args[1:], namespace)
        self._given.clear()
        options, rest = super().parse_known_args(args, namespace)
        if not self._command:
            return options, rest
        if rest:
            word = next((each for each in rest if each.startswith("-")), rest[0])
            every = (each for each in self._actions if each.help != argparse.SUPPRESS)
            known = [*chain.from_iterable(each.option_strings for each in every)]
            self.error(f"found {word!r}{nearest(word, known)}; accepted: {', '.join(known)}")
        mistakes: list[InputError] = []
        for use in self._uses:
            mistakes += use.mistakes(self._given)
        refuse(mistakes)
        return argparse.Namespace(called=Called(self._name, options, self._further())), rest

    def _further(self) -> dict[str, bool]:
        """Return the options that have a meaning beside the arguments of the line."""
        further = {}
        for option, action in self._option_string_actions.items():
            given = self._given | {option}
            if not any(any(use.mistakes(given)) for use in self._uses):
                further[option] = action.nargs != 0
        return further

    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> Any:
        """Remember the arguments of the line. In the result a default looks like a given value."""
        if action.option_strings:
            self._given.update(action.option_strings)
        elif arg_strings:
            self._given |= {*arg_strings} if action.dest == "verb" else {f"{action.metavar}"}
        return super()._get_values(action, arg_strings)


class _Parsers(dict[str, Any]):
    """The parsers of the commands by name, as argparse and argcomplete look them up."""

    def __getitem__(self, name: str) -> Any:
        found = super().__getitem__(name)
        if isinstance(found, _CommandParser):
            found.load()
        return found


def about(command: Command) -> str:
    """Return what a command does: the first sentences of the docstring of its function."""
    text = command.about or command.run.__doc__ or ""
    return " ".join(text.partition("\n\n")[0].replace("``", "").split())


def parser(completed: str = "") -> argparse.ArgumentParser:
    """Return the parser of the command line, whose result has a `Called` with the name ``called``.

    Args:
        completed: a command of two words of `OF_VERBS` that is completed. argcomplete knows no
            verbs: the parser of the first word has the arguments of this command.
    """
    top = _Parser(
        prog="proofmark",
        usage="%(prog)s [-h] [--version] [-v] COMMAND ...",
        description="\n".join(_overview()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=__version__)
    top.add_argument(
        "-v",
        "--verbose",
        action="store_true",
        help="trace each call of ssh, schedulers, BMCs and builds",
    )
    number = whole(0, 65535)
    top.add_argument("--failed-nodes-fd", type=number, metavar="FD", help=argparse.SUPPRESS)
    commands = _subparsers(top, help=argparse.SUPPRESS)
    stages = _subparsers(
        commands.add_parser(
            STAGE, prog=f"proofmark {STAGE}", command="", description="For playbooks."
        )
    )
    for name, known in COMMANDS.items():
        first, _, second = name.partition(" ")
        options: dict[str, Any] = {
            "prog": f"proofmark {name}",
            "command": name,
            "formatter_class": argparse.RawDescriptionHelpFormatter,  # keeps the example's lines
        }
        if name in OF_VERBS:
            form = _CommandParser(**options)
            commands.choices.get(first).verbs[second] = form
            if name == completed:
                form.verb = second
                commands.choices[first] = form
        else:
            group = stages if second else commands
            group.add_parser(second or first, help=known.summary, **options)
    return top


def _subparsers(to: argparse.ArgumentParser, **options: Any) -> Any:
    """Add the parsers of commands to a parser."""
    kind: Any = _CommandParser
    made = to.add_subparsers(metavar="COMMAND", required=True, parser_class=kind, **options)
    made._name_parser_map = made.choices = _Parsers()
    return made


def complete_line(line: str) -> None:
    """Write the completions of the line of a shell as argcomplete does, and end this process."""
    from argcomplete import autocomplete

    names = [word for word in line.split()[1:] if not word.startswith("-")]
    made = parser(" ".join(names[:2]))
    autocomplete(made, exclude=[STAGE])


def _overview() -> Iterator[str]:
    """Yield the lines of the help with the commands of persons, in two columns."""
    yield "From bare nodes to an acceptance verdict. proofmark COMMAND -h explains one."
    columns: tuple[list[str], list[str]] = ([], [])
    for title, group in GROUPS.items():
        column = columns[title not in FIRST_COLUMN]
        column.append(f"{title}:")
        column += (f"  {name:<11}{each.summary}" for name, each in group.items())
    for left, right in zip_longest(*columns, fillvalue=""):
        yield f"{left:<{WIDTH_OF_COLUMN}}{right}".rstrip()
