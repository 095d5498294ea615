# PYTHON_ARGCOMPLETE_OK
"""The command line: it parses the arguments, calls one function and returns the exit code.

A command is a line of `COMMANDS` here, and an entry of the same name in `COMMANDS` of its module.
The module is imported when the command runs or prints its help.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from textwrap import fill
from typing import Any, NoReturn

from proofmark import __version__
from proofmark.cli.amounts import whole
from proofmark.cli.command import Command
from proofmark.cli.newest import follow_links
from proofmark.cli.streams import close_streams, drop, open_streams, use_utf8
from proofmark.common.environment import take_secrets
from proofmark.common.errors import BadInput, Stopped, nearest
from proofmark.common.home import provide_home
from proofmark.common.messages import say

BAD_INPUT = 3
STOPPED = 130
INTERNAL_ERROR = 70
"""EX_SOFTWARE of sysexits.h: an error of the kit. 1 means FAIL."""
COMPLETION = "_ARGCOMPLETE"
"""Environment variable that a shell sets when it completes a command line (argcomplete)."""
BROKEN_PIPE = 141
"""128 + SIGPIPE, as shells report it. 0 would mean PASS."""

COMMANDS = {
    "init": ("init", "write the inventory of a site from what its scheduler and nodes report"),
    "site": ("choose", "choose the site of commands without -i, or print it"),
    "cases": ("cases", "list the cases and suites"),
    "plan": ("plan", "print the steps of an acceptance and their cost"),
    "validate": (
        "plan",
        "check a site, and print the cost of each suite there",
    ),
    "fabric": (
        "plan",
        "convert a topology.conf, or the output of ibnetdiscover, to the fabric of a partition",
    ),
    "read": ("cases", "read outputs of a case"),
    "status": ("status", "print the progress of a run, its steps and nodes, and its end"),
    "explain": (
        "explain",
        "print what a step runs, where, with which inputs, and what its verdict depends on",
    ),
    "twin": ("twin", "simulate a suite on a model of a partition, on this machine"),
    "adopt": ("adopt", "create a run from outputs that others produced"),
    "verdict": ("judge", "judge a run"),
    "claims": ("judge", "print which claims of the papers hold in runs"),
    "report": ("report", "write the report.html of a run, and a summary of two pages"),
    "baseline": ("baseline", "accept a signed run as the reference of later runs"),
    "compare": ("judge", "compare later runs with the first one"),
    "trend": ("trend", "write one page with the figures of all runs over time"),
    "tune": ("tune", "accept the best values of a search as facts of the partition"),
    "export": ("report", "write a run in the format of another program"),
    "sign": ("sign", "write the checksums of a run and sign them with an ssh key"),
    "verify": ("sign", "check a run against its signed checksums"),
    "rerun": ("run", "run steps again; the earlier outputs stay"),
    "record-software": ("run", "record the programs of a run (for playbooks)"),
    "execute": ("run", "run the jobs of a run and wait for their end (for playbooks)"),
    "collect": ("run", "write the facts of the nodes of a run (for playbooks)"),
    "telemetry": ("telemetry", "ask the BMCs for power and temperature while a run runs"),
    "modes": ("modes", "change the firmware mode of the nodes of a run, and restore it"),
    "preflight": ("preflight", "check the requirements of an acceptance; change nothing"),
    "scratch": (
        "scratch",
        "mount, check, unmount and clean the scratch directory on the nodes of a run",
    ),
    "gate": ("gate", "return nodes to service by measurement; print which nodes are held or kept"),
    "gate-decide": ("gate", "decide which nodes of a run return to service (for playbooks)"),
    "check-programs": ("nodes", "check the programs on the nodes of a run (for playbooks)"),
    "install": ("software", "install the programs of a run"),
    "build-program": ("software", "compile a program of the kit (for playbooks)"),
    "lock": ("lock", "write the lock of an environment, or of a site"),
    "sources": ("sources", "list the sources of a lock, and which of them a folder has"),
    "bundle": ("software", "write a bundle for an installation without a network"),
    "cache": ("software", "push the installed packages to a signed build cache"),
}
"""The module and the summary of each command, in the order of ``--help``."""
RENAMED = {
    "provide": "record-software",
    "programs": "check-programs",
    "stage": "execute --scripts",
}
"""New names of commands by their old names."""
GC_THRESHOLD = 50_000
"""The garbage collector runs after this number of new objects. With Python's default of 700 it
takes a seventh of the CPU time of a short command. Such a command frees few objects."""


class _Parser(argparse.ArgumentParser):
    """A parser with exit code 3 for wrong usage. argparse has 2, which means INVALID here."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        say(f"{self.prog}: {message}")
        sys.exit(BAD_INPUT)


class _CommandParser(_Parser):
    """The parser of one command. It imports the module of the command at its first use."""

    def __init__(self, *, command: str, **options: Any) -> None:
        super().__init__(**options)
        self._command = command

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        self.load()
        return super().parse_known_args(args, namespace)

    def load(self) -> None:
        """Import the module of the command and add its arguments, once."""
        name, self._command = self._command, ""
        if name:
            command = _load(name)
            self.epilog = f"example: proofmark {command.example}"
            self.set_defaults(run=command.run, rights=command.rights, traced=command.traced)
            command.arguments(self)


def _load(name: str) -> Command:
    module = import_module(f"proofmark.cli.{COMMANDS[name][0]}")
    command: Command = module.COMMANDS[name]
    return command


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    top = _Parser(prog="proofmark", description="From benchmark outputs to an acceptance verdict.")
    top.add_argument("--version", action="version", version=__version__)
    top.add_argument(
        "-v",
        "--verbose",
        action="store_true",
        help="trace each call of ssh, schedulers, BMCs and builds, also in trace.log of the run",
    )
    number = whole(0, 65535)
    top.add_argument("--failed-nodes-fd", type=number, metavar="FD", help=argparse.SUPPRESS)
    commands = top.add_subparsers(metavar="COMMAND", required=True, parser_class=_CommandParser)
    words = os.environ.get("COMP_LINE", "").split() if COMPLETION in os.environ else ()
    for name, (_, summary) in COMMANDS.items():
        command = commands.add_parser(
            name,
            command=name,
            help=summary,
            description=fill(f"{summary[0].upper()}{summary[1:]}.", 78),
            formatter_class=argparse.RawDescriptionHelpFormatter,  # keeps the lines of the example
        )
        if name in words:  # argcomplete reads the arguments before it parses
            command.load()
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. Errors are printed to stderr, one per line.

    An exception that nothing expects is an error of the kit, with the exit code `INTERNAL_ERROR`.
    """
    if arguments is not None:
        return _main(arguments)
    gc.set_threshold(GC_THRESHOLD)  # this process runs one command
    use_utf8()
    open_streams()
    complete = True
    try:
        code = _main(sys.argv[1:])
    finally:
        complete = close_streams()
    return code if complete or code else BAD_INPUT


def _main(words: Sequence[str]) -> int:
    command = next((word for word in words if not word.startswith("-")), "")
    if command in RENAMED:
        say(f"proofmark: {command}: an old command; its new name is {RENAMED[command]}")
        return BAD_INPUT
    top = parser()
    if command and command not in COMMANDS:
        hint = nearest(command, COMMANDS)
        top.error(f"found the command {command!r}{hint}; accepted: {', '.join(COMMANDS)}")
    if COMPLETION in os.environ:
        from argcomplete import autocomplete

        autocomplete(top)
    options = argparse.Namespace(verbose=False, failed_nodes_fd=None)
    try:
        with _failed_nodes_written(options):
            return _run(top, words, options)
    except KeyboardInterrupt:
        return STOPPED
    except BadInput as error:
        for mistake in error.mistakes:
            say(f"proofmark: {mistake}")
        return BAD_INPUT
    except Stopped as error:
        say(f"proofmark: stopped by {error}; the same command continues")
        return STOPPED
    except BrokenPipeError:
        # The reader closed the output. Without this, Python prints an error at its exit.
        drop(sys.stdout.fileno())
        return BROKEN_PIPE
    except OSError as error:
        say(f"proofmark: {error}")
        return BAD_INPUT
    except Exception as error:
        from proofmark.cli.trace import report_crash

        traced = getattr(options, "traced", False)
        folder = getattr(options, "folder", None) if traced else None
        report_crash(error, folder, verbose=options.verbose)
        return INTERNAL_ERROR


def _run(top: argparse.ArgumentParser, words: Sequence[str], options: argparse.Namespace) -> int:
    """Parse `words` into `options`, run the command and return its exit code."""
    top.parse_args(words, options)
    options.secrets = take_secrets(os.environ)
    follow_links(options)
    folder = getattr(options, "folder", None)
    options.rights.limit([folder] if folder else getattr(options, "folders", []))
    provide_home()  # of the user to whom the rights are limited
    if options.verbose:
        from proofmark.cli.trace import start_trace

        start_trace(folder if options.traced else None)
    result: int = options.run(options)
    sys.stdout.flush()
    return result


@contextmanager
def _failed_nodes_written(options: argparse.Namespace) -> Iterator[None]:
    """Write the nodes that fail in the block to the file descriptor of the option, if it is set."""
    try:
        yield
    except BadInput as error:
        if options.failed_nodes_fd is not None:
            from proofmark.common.failed_nodes import note_input_errors

            note_input_errors(error.mistakes)
        raise
    finally:
        if options.failed_nodes_fd is not None:
            from proofmark.common.failed_nodes import failed_nodes_json

            with os.fdopen(options.failed_nodes_fd, "wb") as file:
                file.write(failed_nodes_json())
