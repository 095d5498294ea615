"""A command of the command line: its arguments, those that several commands share, and RUN.

Nothing here imports models or tables: a help and a completion must not wait for them.
"""

from __future__ import annotations

from argparse import (
    SUPPRESS,
    ArgumentParser,
    ArgumentTypeError,
    Namespace,
    _ArgumentGroup,
)
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from proofmark.common.errors import BadInput, InputError, bad_input, nearest
from proofmark.common.input_limits import MAX_REPEATS
from proofmark.common.kit import DEFAULT_SUITE, kit_folder, result_folder
from proofmark.common.plugins import installed
from proofmark.common.progress_lines import say
from proofmark.common.text import whole_number
from proofmark.common.translation import ENGLISH, LANGUAGES
from proofmark.site.choice import chosen_site

SECRETS: ContextVar[Mapping[str, str]] = ContextVar("SECRETS")
"""The secrets that this process took from its environment, by the name of the variable.

They are no option: an option of the same name would replace them.
"""
NEWEST = Path("the newest run of the chosen site")
"""What RUN is if the line has none; `follow_links` puts the run in its place."""
OPTIONS = "proofmark.cli.options"
"""The group of the functions by which optional packages add arguments to a command, whose name is
the first word of the name of the entry. Those of ``plan`` are the options of kinds of runs."""
Parser = ArgumentParser | _ArgumentGroup


@dataclass(frozen=True)
class ArgumentUse:
    """Arguments that have a meaning only beside other words of the command line, or without them.

    A word is a verb, an option, or the metavar of an argument. Blanks separate the words.

    Attributes:
        beside: words of which one is needed; empty: none is needed.
        without: words beside which they have no meaning.
    """

    of: str
    beside: str = ""
    without: str = ""

    def mistakes(self, given: Collection[str]) -> Iterator[InputError]:
        """Yield a mistake for each argument without a meaning beside the words `given`."""
        needed = self.beside.split()
        taken = ", ".join(word for word in self.without.split() if word in given)
        for name in self.of.split():
            if name not in given:
                continue
            if needed and not {*needed} & {*given}:
                words = " or ".join(needed)
                yield InputError(name, "", f"no {words}", f"{name} with {words}")
            if taken:
                yield InputError(name, "", f"also {taken}", f"one of them: {taken}, or {name}")


def run_argument(parser: ArgumentParser, *, optional: bool = False) -> None:
    """Add RUN to `parser`. Where it is `optional` its default is `NEWEST`.

    A command that decides something, or that has further arguments behind RUN, needs it.
    """
    about = "the run's folder"
    if optional:
        about += f" (default: {NEWEST})"
    nargs, default = ("?", NEWEST) if optional else (None, None)
    parser.add_argument(
        "folder", metavar="RUN", type=Path, nargs=nargs, default=default, help=about
    )


def language_argument(parser: ArgumentParser) -> None:
    """Add the language of texts for people to `parser`."""
    parser.add_argument(
        "--language",
        default=ENGLISH,
        metavar="CODE",
        help=f"language of texts for people: {', '.join(LANGUAGES)}; JSON stays English",
    )


def verb_argument(parser: ArgumentParser, verbs: Mapping[str, str | Callable[..., object]]) -> None:
    """Add the verb of a command to `parser`: one of `verbs`, with its text or its docstring."""
    texts = {
        name: each if isinstance(each, str) else (each.__doc__ or "").rstrip(".")
        for name, each in verbs.items()
    }

    def known(word: str) -> str:
        if word not in verbs:
            accepted = ", ".join(sorted(verbs))
            raise ArgumentTypeError(f"found {word!r}{nearest(word, verbs)}; accepted: {accepted}")
        return word

    text = "; ".join(f"{name}: {meaning}" for name, meaning in texts.items())
    parser.add_argument("verb", type=known, choices=sorted(verbs), help=text)


def site_argument(parser: ArgumentParser, note: str = "the site's inventory") -> None:
    """Add ``--inventory`` to `parser`, and the option by which a play hands over its groups."""
    parser.add_argument("-i", "--inventory", action="append", default=[], help=note)
    parser.add_argument("--groups-fd", type=whole(0, 65535), help=SUPPRESS)


def limit_argument(parser: ArgumentParser, note: str = "", **options: Any) -> None:
    """Add ``--limit`` to `parser`; `note` is its help, or empty for the usual one."""
    note = note or "a partition, or hosts of one"
    parser.add_argument("-l", "--limit", help=note, **options)


def suite_argument(parser: Parser, default: str | None = DEFAULT_SUITE, note: str = "") -> None:
    """Add ``--suite`` to `parser`; `note` is its help, or empty for the usual one."""
    usual = f"a suite (default: {default})" if default else "only the cases of this suite"
    parser.add_argument("--suite", default=default, help=note or usual)


def repeats_argument(parser: Parser) -> None:
    """Add ``--repeats`` to `parser`."""
    note = "how often each step runs (default: that of the suite)"
    parser.add_argument("--repeats", type=whole(1, MAX_REPEATS), metavar="N", help=note)


def added_arguments(command: str, parser: Parser) -> None:
    """Add what optional packages add to `command` to `parser`."""
    for name, point in sorted(installed(OPTIONS).items()):
        if name.partition(" ")[0] == command:
            point.load()(parser)


def runs_folder_argument(parser: ArgumentParser) -> None:
    """Add ``--runs`` to `parser`."""
    note = "the folder of all runs (default: runs)"
    parser.add_argument("--runs", default="", help=note)


def prefixes_argument(parser: ArgumentParser) -> None:
    """Add ``--prefixes`` to `parser`."""
    note = "folder of installations, whose path must not be too long (default: .provision)"
    parser.add_argument("--prefixes", default="", metavar="FOLDER", help=note)


def planned_run_arguments(parser: ArgumentParser) -> None:
    """Add RUN to `parser`, and the options that plan a run if RUN is missing."""
    parser.add_argument("folder", metavar="RUN", nargs="?", type=Path, help="the run's folder")
    site_arguments(parser)
    planned = parser.add_argument_group("without RUN, a plan is made from -i, -l and")
    suite_argument(planned)
    repeats_argument(planned)
    added_arguments("plan", planned)
    planned.add_argument("--provision-from", help="replaces the value of the inventory")


def planned_options() -> str:
    """Return the options of `planned_run_arguments` that plan a run, as in an `ArgumentUse`."""
    of_kinds = ArgumentParser(add_help=False)
    added_arguments("plan", of_kinds)
    return " ".join(["--suite --repeats", *of_kinds._option_string_actions, "--provision-from"])


def site_arguments(parser: ArgumentParser) -> None:
    """Add ``-i`` and ``-l``, which select the site of a run, to `parser`."""
    site_argument(parser, "the site")
    note = "a partition, or hosts of one (default: the partition of the run)"
    limit_argument(parser, note)


def credentials_argument(parser: ArgumentParser) -> None:
    """Add the option ``--credentials`` to `parser`."""
    parser.add_argument(
        "--credentials",
        metavar="FILE",
        help="JSON with user and password of the BMCs; -: stdin; default: the variables "
        "PROOFMARK_BMC_USER and PROOFMARK_BMC_PASSWORD",
    )


def flag(parser: Parser, name: str, about: str) -> None:
    """Add an option without a value to `parser`."""
    parser.add_argument(name, action="store_true", help=about)


def path_option(
    parser: Parser, name: str, metavar: str, about: str, *short: str, **options: Any
) -> None:
    """Add an option whose value is a path to `parser`; `short` is its short form."""
    parser.add_argument(*short, name, type=Path, metavar=metavar, help=about, **options)


def whole(least: int, most: int) -> Callable[[str], int]:
    """Return the type of an option that takes a whole number from `least` to `most`."""

    def parse(text: str) -> int:
        number = whole_number(text)
        if number is None or not least <= number <= most:
            raise _refused(text, f"a whole number from {least} to {most}")
        return number

    return parse


def above_zero(most: float) -> Callable[[str], float]:
    """Return the type of an option that takes a number above 0, at most `most`."""

    def parse(text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            number = 0.0
        if 0 < number <= most:
            return number
        raise _refused(text, f"a number above 0, at most {most:g}")

    return parse


def _refused(text: str, accepted: str) -> ArgumentTypeError:
    return ArgumentTypeError(f"found {text[:80]!r}; accepted: {accepted}")


@dataclass(frozen=True)
class Command:
    """A command.

    Attributes:
        run: its function, or that of a module which is imported when the command runs: as of an
            entry point, below this room (``module:function``).
        about: what it does, if the docstring of `run` does not say it.
        traced: whether ``-v`` writes a trace into the run.
        uses: the arguments that would be ignored beside some words, and are refused there.
    """

    run: Callable[[Namespace], int] | str
    example: str
    arguments: Callable[[ArgumentParser], None] = run_argument
    traced: bool = True
    uses: Sequence[ArgumentUse] = ()
    listing: Callable[[], str] | None = None
    about: str = ""
    summary: str = ""

    def function(self) -> Callable[[Namespace], int]:
        """Return the function of the command."""
        if not isinstance(self.run, str):
            return self.run
        module, _, name = self.run.partition(":")
        function: Callable[[Namespace], int] = getattr(import_module(f"{PACKAGE}.{module}"), name)
        return function


PACKAGE = __name__.rpartition(".")[0]
"""This room, whose modules have the functions of its commands."""


@dataclass(frozen=True)
class AddedCommand:
    """A command of another package, which an entry point names; its name is that of the entry.

    It is loaded at each start of ``proofmark``, so its module imports nothing that costs time.

    Attributes:
        group: of ``--help``; ``stage``: a command of playbooks, whose name begins with this word.
        module: has `COMMANDS` with the command. It is imported when the command is used.
    """

    group: str
    module: str
    summary: str


def with_link(path: Path) -> Path:
    """Return `path` with the run in place of a link to it; print the run on stderr, in one line.

    Raises:
        BadInput: the link points to no run.
    """
    from proofmark.runs.run import followed  # it imports models

    found = followed(path)
    if found is None:
        return path
    say(f"{path} is {found}")
    return found


def _newest_of_chosen_site() -> Path:
    """Return the newest run of the chosen site in the folder of the runs of this checkout."""
    from proofmark.runs.run import LATEST, link_path, runs_below

    kit = kit_folder()
    root = result_folder(kit, "runs")
    try:
        site = chosen_site(kit)
    except BadInput:
        accepted = f"{runs_below(root)}, or a chosen site: make site SITE=…"
        raise bad_input("RUN", "", "nothing, and no site is chosen", accepted) from None
    link = link_path(root, LATEST, site.resolve().name)
    if not link.is_symlink():
        found = f"nothing, and no run of the chosen site {site.resolve().name}"
        raise bad_input("RUN", "", found, runs_below(root))
    return with_link(link)


def follow_links(options: Namespace) -> None:
    """Replace the links in all paths of `options`. The command keeps its run if a link moves.

    Raises:
        BadInput: a link points to no run; or no run is named, and the chosen site has none.
    """
    for name, value in vars(options).items():
        if value is NEWEST:
            setattr(options, name, _newest_of_chosen_site())
        elif isinstance(value, Path):
            setattr(options, name, with_link(value))
        elif isinstance(value, list) and all(isinstance(each, Path) for each in value):
            setattr(options, name, [with_link(each) for each in value])
