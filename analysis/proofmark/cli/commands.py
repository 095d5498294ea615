"""The commands in groups, and the parser of the command line.

A command is a line of `OWN` or `STAGES` here, and an entry of the same name in `COMMANDS` of its
module. The module is imported when the command runs or prints its help.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import zip_longest
from pathlib import Path
from textwrap import fill
from typing import Any, NoReturn

from proofmark import __version__
from proofmark.cli.amounts import whole
from proofmark.cli.arguments import described
from proofmark.cli.command import AddedCommand, ArgumentUse, Command
from proofmark.common.errors import BadInput, InputError, nearest
from proofmark.common.plugins import installed
from proofmark.common.progress_lines import say
from proofmark.common.text import one_line

BAD_INPUT = 3
WIDTH = 78
"""The length of the lines of a help."""
WIDTH_OF_COLUMN = 40
"""The width of the first column of the commands in the help."""

Lines = Mapping[str, tuple[str, str]]
"""The module and the summary of each command."""

OWN: Mapping[str, Lines] = {
    "site": {
        "init": ("cli.init", "write a site from its nodes"),
        "site": ("cli.choose", "choose it for all commands"),
        "acceptance": ("cli.acceptance", "contract, and all its runs"),
    },
    "before a run": {
        "cases": ("cli.cases", "list cases and suites"),
        "check": ("cli.check", "site, suites, nodes"),
        "plan": ("cli.plan_command", "steps, time, refusals"),
    },
    "run": {
        "modes": ("cli.modes", "set and restore firmware"),
        "scratch": ("cli.scratch", "mount, check, clean it"),
        "rerun": ("cli.run_command", "run steps again"),
        "status": ("cli.status", "progress, steps, nodes"),
    },
    "judge": {
        "verdict": ("cli.verdict", "judge a run; claims"),
        "report": ("cli.report", "write page and summary"),
    },
    "sign and keep": {
        "sign": ("cli.sign", "sign evidence and verdict"),
        "verify": ("cli.sign", "check a signed run"),
        "baseline": ("cli.baseline", "accept a run for later ones"),
        "export": ("cli.report", "figures for other programs"),
    },
    "programs": {
        "install": ("cli.install", "of a run; bundles, caches"),
        "lock": ("cli.lock", "pin them for a system"),
    },
}
"""The commands of this room, below `proofmark`, by phase, in the order of ``--help``. It has two
columns and fits a screen of 24 lines with 80 letters, so a summary has at most 27 letters."""
ADDED = "proofmark.cli.commands"
"""The group of the entry points of other packages: each names an `AddedCommand`."""
FIRST_COLUMN = ("site", "before a run", "run")
"""The groups in the first column of ``--help``, those until a run has measured."""
VERBS: Mapping[str, Lines] = {
    "install": {
        "install sources": ("cli.install", "list the sources of a lock, and which a folder has"),
        "install bundle": ("cli.install", "write a bundle for an installation without a network"),
        "install cache": ("cli.install", "push the installed packages to a signed build cache"),
    },
}
"""The further forms of a command, each with a parser of its own: its first word is a verb."""
STAGE = "stage"
"""The command that has the commands of playbooks; ``--help`` does not have it."""
STAGES: Lines = {
    "stage record-software": ("cli.run_command", "record the programs of a run"),
    "stage check-programs": ("cli.program_check", "check the programs on the nodes of a run"),
    "stage build-program": ("cli.install", "compile a program of the kit"),
    "stage execute": ("cli.run_command", "run the jobs of a run and wait for their end"),
    "stage collect": ("cli.run_command", "seal what is new in a run as its evidence"),
}
"""The commands of playbooks."""
MEANT = {
    "list": "proofmark cases",
    "ls": "proofmark cases",
    "run": "ansible-playbook acceptance.yml -l PARTITION -e suite=SUITE",
    "start": "ansible-playbook acceptance.yml -l PARTITION -e suite=SUITE",
    "suites": "proofmark cases",
}
"""Words that people try, and what does it."""


def _of_room(lines: Lines) -> dict[str, tuple[str, str]]:
    """Return `lines` of this room with the whole names of their modules."""
    return {name: (f"proofmark.{module}", summary) for name, (module, summary) in lines.items()}


def _groups() -> dict[str, Lines]:
    """Return the commands of this room and of other packages, in their groups and `STAGE`.

    A package that cannot be loaded has no command, and a line states that.
    """
    groups = {title: _of_room(lines) for title, lines in {**OWN, STAGE: STAGES}.items()}
    for name, point in installed(ADDED).items():
        try:
            added = point.load()
        except Exception as error:  # the code of a site
            problem = f"{type(error).__name__}: {one_line(f'{error}')}"
            say(f"proofmark: {ADDED}: {point.value}: {problem}")
            continue
        if not isinstance(added, AddedCommand) or any(name in lines for lines in groups.values()):
            say(f"proofmark: {ADDED}: {point.value}: found no AddedCommand with a new name")
            continue
        groups.setdefault(added.group, {})[name] = (added.module, added.summary)
    return {**groups}


_EVERY = _groups()
OF_STAGES: Lines = _EVERY[STAGE]
"""The commands of playbooks."""
GROUPS: Mapping[str, Lines] = {name: each for name, each in _EVERY.items() if name != STAGE}
"""The commands that people use, by phase."""
OF_PERSONS = {name: line for lines in GROUPS.values() for name, line in lines.items()}
OF_VERBS: Lines = _of_room(VERBS["install"])
COMMANDS: Lines = {**OF_PERSONS, **OF_VERBS, **OF_STAGES}
"""All commands."""

Fill = Callable[[str, "_CommandParser"], None]
"""Adds the arguments of a command, which its name names, to its parser."""


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
        """Return the command; its module is imported."""
        return command_of(self.name)

    @property
    def folder(self) -> Path | None:
        """Return RUN; None if the command has none."""
        return getattr(self.options, "folder", None)


class _Parser(argparse.ArgumentParser):
    """A parser with exit code 3 for wrong usage. argparse has 2, which means INVALID here."""

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Name the command that is nearest to one that does not exist."""
        known = [name for name in action.choices or () if name != STAGE]
        if isinstance(action, argparse._SubParsersAction) and value not in (*known, STAGE):
            if value in MEANT:
                self.error(f"found the command {value!r}; accepted: {MEANT[value]}")
            hint = nearest(value, known)
            self.error(f"found the command {value!r}{hint}; accepted: {', '.join(known)}")
        super()._check_value(action, value)

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        say(f"{self.prog}: {message}")
        sys.exit(BAD_INPUT)


class _CommandParser(_Parser):
    """The parser of one command. It gets the arguments of the command at its first use.

    Its result is a `Called` with the name ``called``.
    """

    def __init__(self, *, command: str = "", arguments: Fill | None = None, **options: Any) -> None:
        super().__init__(**options)
        self._command, self._fill = command, arguments
        self.verbs: dict[str, _CommandParser] = {}
        self.uses: Sequence[ArgumentUse] = ()
        self._given: set[str] = set()

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        if args and args[0] in self.verbs:
            return self.verbs[args[0]].parse_known_args(args[1:], namespace)
        self.load()
        self._given.clear()
        options, rest = super().parse_known_args(args, namespace)
        mistakes: list[InputError] = []
        for use in self.uses:
            mistakes += use.mistakes(self._given)
        if mistakes:
            raise BadInput(*mistakes)
        if self._command:
            called = Called(self._command, options, self._further())
            options = argparse.Namespace(called=called)
        return options, rest

    def _further(self) -> dict[str, bool]:
        """Return the options that have a meaning beside the arguments of the line."""
        further = {}
        for option, action in self._option_string_actions.items():
            given = self._given | {option}
            if not any(any(use.mistakes(given)) for use in self.uses):
                further[option] = action.nargs != 0
        return further

    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> Any:
        """Remember the arguments of the line. In the result a default looks like a given value."""
        if action.option_strings:
            self._given.update(action.option_strings)
        elif arg_strings:
            self._given |= {*arg_strings} if action.dest == "verb" else {f"{action.metavar}"}
        return super()._get_values(action, arg_strings)

    def load(self) -> None:
        """Add the arguments of the command, once."""
        add, self._fill = self._fill, None
        if add:
            add(self._command, self)


def command_of(name: str) -> Command:
    """Import the module of a command, and return the command."""
    module = import_module(COMMANDS[name][0])
    command: Command = module.COMMANDS[name]
    return command


def _arguments(name: str, parser: _CommandParser) -> None:
    """Add the arguments of a command and its example to `parser`."""
    command = command_of(name)
    parser.uses = command.uses
    _describe(name, parser, about(command), command.example)
    command.arguments(parser)


def help_arguments(name: str, parser: _CommandParser) -> None:
    """Add the arguments of a command for its help, without its module if it is of the kit."""
    known = described().get(name)
    if known is None or known.lists_plugins:
        _arguments(name, parser)
        return
    _describe(name, parser, known.about, known.example)
    known.add_to(parser)


def _describe(name: str, parser: _CommandParser, about: str, example: str) -> None:
    parser.description = fill(about, WIDTH)
    for verb, (_, summary) in VERBS.get(name, {}).items():
        parser.description += f"\nproofmark {verb} -h: {summary}"
    parser.epilog = f"example: proofmark {example}"


def about(command: Command) -> str:
    """Return what a command does: the first sentences of the docstring of its function."""
    return " ".join((command.run.__doc__ or "").partition("\n\n")[0].replace("``", "").split())


def parser(arguments: Fill = _arguments, now: Collection[str] = ()) -> argparse.ArgumentParser:
    """Return the parser of the command line, whose result has a `Called` with the name ``called``.

    Args:
        arguments: adds the arguments of a command when the command is parsed.
        now: the commands that get their arguments at once, also those of a verb of the line.
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
    kind: Any = _CommandParser
    commands = top.add_subparsers(
        metavar="COMMAND", required=True, parser_class=kind, help=argparse.SUPPRESS
    )
    stage = commands.add_parser(STAGE, prog=f"proofmark {STAGE}", description="For playbooks.")
    stages = stage.add_subparsers(metavar="COMMAND", required=True, parser_class=kind)
    for name, (_, summary) in COMMANDS.items():
        first, _, second = name.partition(" ")
        options: dict[str, Any] = {
            "prog": f"proofmark {name}",
            "command": name,
            "arguments": arguments,
            "formatter_class": argparse.RawDescriptionHelpFormatter,  # keeps the example's lines
        }
        if name in OF_VERBS and first in now:
            continue
        if name in OF_VERBS:
            command = commands.choices[first].verbs[second] = _CommandParser(**options)
        else:
            group = stages if second else commands
            command = group.add_parser(second or first, help=summary, **options)
        if name in now:
            command.load()
    return top


def _overview() -> Iterator[str]:
    """Yield the lines of the help with the commands of persons, in two columns."""
    yield "From bare nodes to an acceptance verdict. proofmark COMMAND -h explains one."
    columns: tuple[list[str], list[str]] = ([], [])
    for title, lines in GROUPS.items():
        column = columns[title not in FIRST_COLUMN]
        column.append(f"{title}:")
        column += (f"  {name:<11}{summary}" for name, (_, summary) in lines.items())
    for left, right in zip_longest(*columns, fillvalue=""):
        yield f"{left:<{WIDTH_OF_COLUMN}}{right}".rstrip()
