"""The commands in groups, and the parser of the command line.

A command is a line of `OWN` or `STAGES` here, and an entry of the same name in `COMMANDS` of its
module. The module is imported when the command runs or prints its help.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from textwrap import fill
from typing import Any, NoReturn

from proofmark import __version__
from proofmark.cli.amounts import whole
from proofmark.cli.command import AddedCommand, Command
from proofmark.common.errors import nearest
from proofmark.common.plugins import installed
from proofmark.common.progress_lines import say
from proofmark.common.text import one_line

BAD_INPUT = 3
WIDTH = 78
"""The length of the lines of a help."""

Lines = Mapping[str, tuple[str, str]]
"""The module and the summary of each command."""

OWN: Mapping[str, Lines] = {
    "plan and check": {
        "cases": ("cli.cases", "list the cases and suites"),
        "validate": (
            "cli.validate_command",
            "check a site, and print the cost of each suite there",
        ),
        "plan": (
            "cli.plan_command",
            "print what a run will start, and how long; write its scripts and inputs",
        ),
        "preflight": (
            "cli.preflight_command",
            "check the requirements of an acceptance; change nothing",
        ),
    },
    "run": {
        "install": ("cli.software_command", "install the programs of a run"),
        "modes": ("cli.modes", "change the firmware mode of the nodes of a run, and restore it"),
        "scratch": (
            "cli.scratch",
            "mount, check, unmount and clean the scratch directory on the nodes of a run",
        ),
        "telemetry": (
            "cli.telemetry_command",
            "ask the BMCs for power and temperature while a run runs",
        ),
        "rerun": ("cli.run_command", "run steps again; the earlier outputs stay"),
    },
    "look": {
        "status": ("cli.status", "print the progress of a run, its steps and nodes, and its end"),
        "explain": (
            "cli.explain",
            "print what a step runs, where, with which inputs, and what its verdict depends on",
        ),
        "report": ("cli.report", "write the report.html of a run, and a summary of two pages"),
        "trend": ("cli.trend_command", "write one page with the figures of all runs over time"),
    },
    "judge": {
        "verdict": ("cli.judge", "judge a run, or print which claims of the papers hold in runs"),
        "compare": ("cli.judge", "compare later runs with the first one"),
        "adopt": ("cli.adopt", "create a run from outputs that others produced, or print them"),
        "io500": ("cli.io500_command", "compute the scores of submissions to IO500 again"),
    },
    "keep": {
        "sign": (
            "cli.sign",
            "sign the evidence, the verdict and the page of a run with an ssh key",
        ),
        "verify": ("cli.sign", "check a signed acceptance, and judge its evidence again"),
        "baseline": ("cli.baseline", "accept a signed run as the reference of later runs"),
        "tune": ("cli.tune", "accept the best values of a search as facts of the partition"),
        "export": ("cli.report", "write a run in the format of another program"),
    },
    "clusters": {
        "init": (
            "cli.init",
            "write the inventory of a site from what its scheduler and nodes report",
        ),
        "contract": (
            "cli.contract",
            "check and print the contract of a site; waive an item of it for a run",
        ),
        "site": ("cli.choose", "choose the site of commands without -i, or print it"),
        "gate": (
            "cli.gate",
            "return nodes to service by measurement; print which nodes are held or kept",
        ),
        "lock": ("cli.lock", "write the lock of an environment, or of a site"),
        "sources": ("cli.sources", "list the sources of a lock, and which of them a folder has"),
        "bundle": ("cli.software_command", "write a bundle for an installation without a network"),
        "cache": ("cli.software_command", "push the installed packages to a signed build cache"),
    },
}
"""The commands of this room, below `proofmark`."""
ADDED = "proofmark.cli.commands"
"""The group of the entry points of other packages: each names an `AddedCommand`."""


def _groups() -> dict[str, Lines]:
    """Return the commands of this room and of other packages, in their groups.

    A package that cannot be loaded has no command, and a line states that.
    """
    groups: dict[str, dict[str, tuple[str, str]]] = {}
    for title, lines in OWN.items():
        groups[title] = {
            name: (f"proofmark.{module}", text) for name, (module, text) in lines.items()
        }
    for name, point in installed(ADDED).items():
        try:
            added = point.load()
        except Exception as error:  # the code of a site
            say(
                f"proofmark: {ADDED}: {point.value}: {type(error).__name__}: {one_line(f'{error}')}"
            )
            continue
        if not isinstance(added, AddedCommand) or any(name in lines for lines in groups.values()):
            say(f"proofmark: {ADDED}: {point.value}: found no AddedCommand with a new name")
            continue
        groups.setdefault(added.group, {})[name] = (added.module, added.summary)
    return {**groups}


GROUPS: Mapping[str, Lines] = _groups()
"""The commands that people use, in the groups and the order of ``--help``."""
STAGE = "stage"
"""The command that has the commands of playbooks; ``--help`` does not have it."""
STAGES: Lines = {
    "stage record-software": ("proofmark.cli.run_command", "record the programs of a run"),
    "stage check-programs": (
        "proofmark.cli.program_check",
        "check the programs on the nodes of a run",
    ),
    "stage build-program": ("proofmark.cli.software_command", "compile a program of the kit"),
    "stage execute": ("proofmark.cli.run_command", "run the jobs of a run and wait for their end"),
    "stage collect": ("proofmark.cli.run_command", "seal what is new in a run as its evidence"),
    "stage gate-decide": ("proofmark.cli.gate", "decide which nodes of a run return to service"),
}
"""The commands of playbooks."""
RENAMED = {
    "claims": "verdict --claims",
    "fabric": "init --fabric",
    "preview": "plan",
    "read": "adopt --print",
}
"""The commands of 0.1 that are options of others now, for one release."""
OF_PERSONS = {name: line for lines in GROUPS.values() for name, line in lines.items()}
COMMANDS: Lines = {**OF_PERSONS, **STAGES}
"""All commands."""

Fill = Callable[[str, argparse.ArgumentParser], None]
"""Adds the arguments of a command, which its name names, to its parser."""


@dataclass(frozen=True)
class Called:
    """The command of a command line.

    Attributes:
        name: its name in `COMMANDS`.
        options: its options, and nothing else. No name of an option can replace the function of
            the command, or an option of ``proofmark`` itself.
    """

    name: str
    options: argparse.Namespace

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
            if value in RENAMED:
                self.error(f"found the command {value!r}; accepted: proofmark {RENAMED[value]}")
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

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        self.load()
        options, rest = super().parse_known_args(args, namespace)
        if self._command:
            options = argparse.Namespace(called=Called(self._command, options))
        return options, rest

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


def _arguments(name: str, parser: argparse.ArgumentParser) -> None:
    """Add the arguments of a command and its example to `parser`."""
    command = command_of(name)
    parser.epilog = f"example: proofmark {command.example}"
    command.arguments(parser)


def parser(arguments: Fill = _arguments, now: Collection[str] = ()) -> argparse.ArgumentParser:
    """Return the parser of the command line, whose result has a `Called` with the name ``called``.

    Args:
        arguments: adds the arguments of a command when the command is parsed.
        now: the commands that get their arguments at once.
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
        help="trace each call of ssh, schedulers, BMCs and builds, also in trace.log of the run",
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
        command = (stages if second else commands).add_parser(
            second or first,
            prog=f"proofmark {name}",
            command=name,
            arguments=arguments,
            help=summary,
            description=fill(f"{summary[0].upper()}{summary[1:]}.", WIDTH),
            formatter_class=argparse.RawDescriptionHelpFormatter,  # keeps the lines of the example
        )
        if name in now:
            command.load()
    return top


def _overview() -> Iterator[str]:
    """Yield the lines of the help with the commands of persons."""
    yield "From benchmark outputs to an acceptance verdict."
    for title, lines in GROUPS.items():
        yield f"\n{title}:"
        for name, (_, summary) in lines.items():
            yield fill(summary, WIDTH, initial_indent=f"  {name:<12}", subsequent_indent=" " * 14)
