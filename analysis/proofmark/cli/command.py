"""A command of the command line, and the arguments that several commands have."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path


def no_arguments(parser: ArgumentParser) -> None:
    """Add nothing to `parser`."""


def run_argument(parser: ArgumentParser) -> None:
    """Add RUN to `parser`."""
    parser.add_argument("folder", metavar="RUN", type=Path, help="the run's folder")


def runs_argument(parser: ArgumentParser) -> None:
    """Add RUN, once or more often, to `parser`."""
    parser.add_argument("folders", metavar="RUN", nargs="+", type=Path, help="folders of runs")


def site_argument(parser: ArgumentParser, note: str = "the site's inventory") -> None:
    """Add ``--inventory`` to `parser`."""
    parser.add_argument("-i", "--inventory", action="append", default=[], help=note)


def verb_argument(
    parser: ArgumentParser, verbs: Mapping[str, str], renamed: Mapping[str, str]
) -> None:
    """Add the verb of a command to `parser`: one of `verbs`, each with what it does."""

    def current(word: str) -> str:
        if word in renamed:
            raise ArgumentTypeError(f"{word}: a verb that is called {renamed[word]} now")
        return word

    said = "; ".join(f"{name}: {what.rstrip('.')}" for name, what in verbs.items())
    parser.add_argument("verb", type=current, choices=sorted(verbs), help=said)


@dataclass(frozen=True)
class Command:
    """A command.

    Attributes:
        run: does it; returns the exit code.
        example: its arguments in an example, with its name.
        arguments: adds its arguments to a parser.
    """

    run: Callable[[Namespace], int]
    example: str
    arguments: Callable[[ArgumentParser], None] = run_argument
