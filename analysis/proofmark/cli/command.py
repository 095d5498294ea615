"""A command of the command line, and the arguments of several commands."""

from __future__ import annotations

from argparse import Action, ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from enum import StrEnum, auto
from pathlib import Path

from proofmark.common.errors import InputError, nearest
from proofmark.common.translation import ENGLISH, LANGUAGES

SECRETS: ContextVar[Mapping[str, str]] = ContextVar("SECRETS")
"""The secrets that this process took from its environment, by the name of the variable.

They are no option: an option of the same name would replace them.
"""


class Words(StrEnum):
    """What completes the value of an argument in a shell."""

    SITE = auto()
    NAME_OF_SITE = auto()
    PARTITION = auto()
    SUITE = auto()
    RUN = auto()
    CASE = auto()
    ENVIRONMENT = auto()
    OUTPUTS = auto()
    """The name of a case, and an equals sign."""
    PATH = auto()


def complete(action: Action, words: Words | Iterable[str]) -> None:
    """State which words complete the value of `action`; `proofmark.cli.completion` does it."""
    action.words = words  # type: ignore[attr-defined]


NEWEST = Path("the newest run of the chosen site")
"""What RUN is if the line has none; `proofmark.cli.newest` puts the run in its place."""


def run_argument(parser: ArgumentParser, *, optional: bool = False) -> None:
    """Add RUN to `parser`. Where it is `optional` its default is `NEWEST`.

    A command that decides something, or that has further arguments behind RUN, needs it.
    """
    about = "the run's folder"
    if optional:
        about += f" (default: {NEWEST})"
    nargs, default = ("?", NEWEST) if optional else (None, None)
    run = parser.add_argument(
        "folder", metavar="RUN", type=Path, nargs=nargs, default=default, help=about
    )
    complete(run, Words.RUN)


def language_argument(parser: ArgumentParser) -> None:
    """Add the language of texts for people to `parser`."""
    language = parser.add_argument(
        "--language",
        default=ENGLISH,
        metavar="CODE",
        help=f"language of texts for people: {', '.join(LANGUAGES)}; JSON stays English",
    )
    complete(language, LANGUAGES)


def verb_argument(parser: ArgumentParser, verbs: Mapping[str, Callable[..., object]]) -> None:
    """Add the verb of a command to `parser`: one of `verbs`, with its function's docstring."""
    meanings = {name: (function.__doc__ or "").rstrip(".") for name, function in verbs.items()}
    text = "; ".join(f"{name}: {meaning}" for name, meaning in meanings.items())

    def known(word: str) -> str:
        if word not in verbs:
            accepted = ", ".join(sorted(verbs))
            raise ArgumentTypeError(f"found {word!r}{nearest(word, verbs)}; accepted: {accepted}")
        return word

    parser.add_argument("verb", type=known, choices=sorted(verbs), help=text)


@dataclass(frozen=True)
class ArgumentUse:
    """Arguments that have a meaning only beside other words of the command line, or without them.

    A word is a verb, an option, or the metavar of an argument.

    Attributes:
        of: the options, or metavars of arguments.
        beside: words of which one is needed; empty: none is needed.
        without: words beside which they have no meaning.
    """

    of: tuple[str, ...]
    beside: tuple[str, ...] = ()
    without: tuple[str, ...] = ()

    def mistakes(self, given: Collection[str]) -> Iterator[InputError]:
        """Yield a mistake for each argument without a meaning beside the words `given`."""
        taken = [word for word in self.without if word in given]
        lacks = self.beside and not any(word in given for word in self.beside)
        for name in self.of:
            if name not in given:
                continue
            if lacks:
                words = " or ".join(self.beside)
                yield InputError(name, "", f"no {words}", f"{name} with {words}")
            if taken:
                words = ", ".join(taken)
                yield InputError(name, "", f"also {words}", f"one of them: {words}, or {name}")


@dataclass(frozen=True)
class Command:
    """A command.

    Attributes:
        run: the function of the command; it returns the exit code.
        example: an example of its command line, without `proofmark`.
        arguments: the function that adds its arguments to a parser.
        traced: whether ``-v`` writes a trace into the run.
        uses: the arguments that would be ignored beside some words, and are refused there.
    """

    run: Callable[[Namespace], int]
    example: str
    arguments: Callable[[ArgumentParser], None] = run_argument
    traced: bool = True
    uses: Sequence[ArgumentUse] = ()


@dataclass(frozen=True)
class AddedCommand:
    """A command of another package, which an entry point names; its name is that of the entry.

    It is loaded at each start of ``proofmark``, so its module imports nothing that costs time.

    Attributes:
        group: of ``--help``; ``stage``: a command of playbooks, whose name begins with this word.
        module: has `COMMANDS` with the command. It is imported when the command is used.
        summary: for ``--help``.
    """

    group: str
    module: str
    summary: str
