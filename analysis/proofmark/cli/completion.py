"""Completes a command line in a shell (argcomplete), without the modules of the commands.

A key must not wait for these: the arguments are those of `proofmark.cli.arguments`.

A folder of a run is never opened: its name is completed, and no program or plug-in starts.
"""

from __future__ import annotations

import os
import re
from argparse import Action, ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from argcomplete import autocomplete

from proofmark.cli.arguments import described
from proofmark.cli.command import Words
from proofmark.cli.commands import COMMANDS, OF_VERBS, STAGE, VERBS, parser
from proofmark.common.errors import BadInput
from proofmark.common.kit import kit_folder, result_folder
from proofmark.site.choice import LINK

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")
"""A name that no shell reads in another way. Other names of sites and runs are left out."""


def complete_line(line: str) -> None:
    """Write the completions of the line of a shell as argcomplete does, and end this process."""
    known = described()
    named = _commands_in(line.split())

    def add_arguments(name: str, to: ArgumentParser) -> None:
        # argcomplete does not see the parser of a verb: its arguments are those of the command.
        verbs = VERBS.get(name, {})
        for verb in verbs.keys() & {*named}:
            to.add_argument("verb", choices=[verb.removeprefix(f"{name} ")])
            name = verb
        if name in known:
            known[name].add_to(to, _Completer)

    made = parser(add_arguments, [name for name in named if name not in OF_VERBS])
    autocomplete(made, exclude=[STAGE])


def _commands_in(words: Sequence[str]) -> list[str]:
    """Return the command of a line; an empty list if there is none yet."""
    names = [word for word in words[1:] if not word.startswith("-")]
    return [name for name in (" ".join(names[:1]), " ".join(names[:2])) if name in COMMANDS]


class _Completer:
    """Returns the words of an argument; argcomplete calls it."""

    def __init__(self, words: Words | Iterable[str]) -> None:
        self._words = words

    def __call__(
        self, prefix: str, action: Action, parser: ArgumentParser, parsed_args: Namespace
    ) -> list[str]:
        if not isinstance(self._words, Words):
            return [*self._words]
        with suppress(BadInput, OSError):
            return [*_WORDS[self._words](prefix, parsed_args)]
        return []


def _sites(prefix: str, _: Namespace) -> Iterator[str]:
    return _known_or_typed(kit_folder() / "inventory", prefix)


def _names_of_sites(prefix: str, options: Namespace) -> Iterator[str]:
    yield from _folders(kit_folder() / "inventory")
    if "/" in prefix:
        yield from _sites(prefix, options)


def _runs(prefix: str, _: Namespace) -> Iterator[str]:
    return _known_or_typed(result_folder(kit_folder(), "runs"), prefix)


def _partitions(_: str, options: Namespace) -> Iterable[str]:
    """Return the partitions of the site of the line: the folders with their facts."""
    given = (getattr(options, "inventory", None) or [kit_folder() / LINK])[0]
    site = Path(given)
    return _folders((site.parent if site.is_file() else site) / "group_vars")


def _suites(*_: Any) -> Iterable[str]:
    import yaml  # few completions read a file

    with (kit_folder() / "benchmarks" / "suites.yml").open("rb") as file:
        suites = yaml.load(file, Loader=yaml.CSafeLoader)["suites"]
    hidden = ("practice", "study")  # as `Suite.listed`
    return [name for name, suite in suites.items() if suite.get("kind") not in hidden]


def _cases(*_: Any) -> Iterable[str]:
    files = (kit_folder() / "benchmarks").glob("*.yml")
    return sorted({file.stem for file in files} - {"suites"})


def _environments(*_: Any) -> Iterable[str]:
    return _folders(kit_folder() / "environments")


def _outputs(*_: Any) -> Iterable[str]:
    return (f"{name}=" for name in _cases())


def _paths(prefix: str, _: Namespace) -> Iterator[str]:
    """Yield the files and folders whose path begins with `prefix`."""
    head, slash, _name = prefix.rpartition("/")
    with os.scandir(f"{head}{slash}" or ".") as entries:
        for entry in sorted(entries, key=lambda each: each.name):
            if entry.name.isprintable():  # argcomplete quotes what a shell would read
                yield f"{head}{slash}{entry.name}" + "/" * entry.is_dir()


def _known_or_typed(folder: Path, prefix: str) -> Iterator[str]:
    """Yield the folders in `folder`, and the folders whose path begins with `prefix`."""
    here = Path.cwd()
    shown = folder.relative_to(here) if folder.is_relative_to(here) else folder
    known = [f"{shown / name}" for name in _folders(folder)]
    yield from known
    head, slash, _ = prefix.rpartition("/")
    typed = [f"{head}{slash}{name}" for name in _folders(Path(f"{head}{slash}" or "."))]
    if prefix:
        yield from (f"{path}/" for path in typed if path not in known)


def _folders(folder: Path) -> list[str]:
    """Return the sorted names of the folders in `folder`; none if it cannot be listed."""
    try:
        with os.scandir(folder) as entries:
            names = [each.name for each in entries if each.is_dir()]
    except OSError:
        return []
    return sorted(name for name in names if NAME.fullmatch(name))


_WORDS: Mapping[Words, Callable[[str, Namespace], Iterable[str]]] = {
    Words.SITE: _sites,
    Words.NAME_OF_SITE: _names_of_sites,
    Words.PARTITION: _partitions,
    Words.SUITE: _suites,
    Words.RUN: _runs,
    Words.CASE: _cases,
    Words.ENVIRONMENT: _environments,
    Words.OUTPUTS: _outputs,
    Words.PATH: _paths,
}
