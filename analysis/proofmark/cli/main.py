"""The command line: arguments in, one function called, exit code out.

A command is a line of `COMMANDS` here, and an entry of the same name in `COMMANDS` of its module.
The module is imported when the command runs, or prints its help.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from textwrap import fill
from typing import Any, NoReturn

from proofmark import __version__
from proofmark.cli.command import Command
from proofmark.common.errors import BadInput, Stopped

BAD_INPUT = 3
STOPPED = 130
BROKEN_PIPE = 141
"""128 + SIGPIPE, as shells report it. 0 would mean PASS."""

COMMANDS = {
    "cases": ("cases", "list the cases and suites"),
    "plan": ("plan", "say what an acceptance would run, and what that costs"),
    "validate": (
        "plan",
        "name everything that is wrong with a site, or say what each suite costs there",
    ),
    "fabric": (
        "plan",
        "turn a topology.conf, or what ibnetdiscover printed, into a partition's fabric",
    ),
    "read": ("cases", "read outputs of a case"),
    "status": ("run", "say how far a run is"),
    "verdict": ("judge", "judge a run"),
    "claims": ("judge", "say which claims of the papers hold on the figures of runs"),
    "report": ("report", "write a run's report.html"),
    "compare": ("judge", "hold runs against the first of them, like with like"),
    "export": ("report", "write a run in a form that others collect"),
    "sign": ("sign", "write the checksums of a run and sign them with an ssh key"),
    "verify": ("sign", "check that a run is as its signer left it"),
    "rerun": ("run", "run steps once more, beside their first output"),
    "record-software": ("run", "record which programs a run uses (for playbooks)"),
    "stage": ("run", "write a run's steps (for playbooks)"),
    "execute": ("run", "run a run's jobs (for playbooks)"),
    "collect": ("run", "write the nodes' provenance (for playbooks)"),
    "modes": ("modes", "bring the nodes of a run into a mode of their firmware, and back"),
    "preflight": ("preflight", "look at what has to be right before a machine is touched"),
    "scratch": (
        "scratch",
        "mount and prove the scratch directory on the nodes of a run, or take the mount away",
    ),
    "check-programs": ("nodes", "check every node of a run for programs (for playbooks)"),
    "install": ("software", "provide the programs of a run"),
    "lock": ("software", "make the lock of an environment on this system"),
    "bundle": ("software", "pack what an install without a network needs"),
    "cache": ("software", "push what is installed, signed"),
}
"""Module and summary of each command, in the order of ``--help``."""
RENAMED = {"provide": "record-software", "programs": "check-programs"}
"""New names of commands by their old names."""


class _Parser(argparse.ArgumentParser):
    """argparse exits with 2 on wrong usage; here 2 means INVALID, and bad input is 3."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        print(f"{self.prog}: {message}", file=sys.stderr)
        sys.exit(BAD_INPUT)


class _CommandParser(_Parser):
    """The parser of one command; it imports the command's module when it is used."""

    def __init__(self, *, command: str, **options: Any) -> None:
        super().__init__(**options)
        self._command = command

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        name, self._command = self._command, ""
        if name:
            command = _load(name)
            self.epilog = f"example: proofmark {command.example}"
            self.set_defaults(run=command.run)
            command.arguments(self)
        return super().parse_known_args(args, namespace)


def _load(name: str) -> Command:
    module = import_module(f"proofmark.cli.{COMMANDS[name][0]}")
    command: Command = module.COMMANDS[name]
    return command


def parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    top = _Parser(prog="proofmark", description="From benchmark outputs to an acceptance verdict.")
    top.add_argument("--version", action="version", version=__version__)
    top.add_argument(
        "-v",
        "--verbose",
        action="store_true",
        help="trace each call of ssh, schedulers, BMCs and builds, also in trace.log of the run",
    )
    commands = top.add_subparsers(metavar="COMMAND", required=True, parser_class=_CommandParser)
    for name, (_, summary) in COMMANDS.items():
        commands.add_parser(
            name,
            command=name,
            help=summary,
            description=fill(f"{summary[0].upper()}{summary[1:]}.", 78),
            formatter_class=argparse.RawDescriptionHelpFormatter,  # breaks no line of an example
        )
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; print what went wrong to stderr, one line each."""
    words = sys.argv[1:] if arguments is None else arguments
    command = next((word for word in words if not word.startswith("-")), "")
    if command in RENAMED:
        print(
            f"proofmark: {command}: an old command; its new name is {RENAMED[command]}",
            file=sys.stderr,
        )
        return BAD_INPUT
    options = parser().parse_args(words)
    try:
        if options.verbose:
            from proofmark.cli.trace import start_trace

            start_trace(getattr(options, "folder", None))
        result: int = options.run(options)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return STOPPED
    except BadInput as error:
        for mistake in error.mistakes:
            print(f"proofmark: {mistake}", file=sys.stderr)
        return BAD_INPUT
    except Stopped as error:
        print(f"proofmark: stopped by {error}; the same command goes on", file=sys.stderr)
        return STOPPED
    except BrokenPipeError:
        # The reader of the output has closed it; Python would print an error at the exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except OSError as error:
        print(f"proofmark: {error}", file=sys.stderr)
        return BAD_INPUT
    return result
