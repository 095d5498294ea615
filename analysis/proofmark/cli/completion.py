"""The words that complete the values of arguments in a shell, as argcomplete asks for them.

A folder of a run is never opened: its name is completed, and no program or plug-in starts.
"""

from __future__ import annotations

import os
import re
from argparse import Action, ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from proofmark.common.errors import BadInput
from proofmark.common.kit import kit_folder, result_folder
from proofmark.site.choice import LINK

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")
"""A name that no shell reads in another way. Other names of sites and runs are left out."""
Completer = Callable[[str, Namespace], Iterable[str]]
"""Returns the words for the begin of a word, and for the options of the line."""


def quiet(words: Completer) -> Callable[..., list[str]]:
    """Return a completer of argcomplete, which has no words where `words` fails."""

    def completer(
        prefix: str, action: Action, parser: ArgumentParser, parsed_args: Namespace
    ) -> list[str]:
        with suppress(BadInput, OSError):
            return [*words(prefix, parsed_args)]
        return []

    return completer


def fixed(words: Iterable[str]) -> Callable[..., list[str]]:
    """Return a completer of argcomplete with these words."""
    return quiet(lambda *_: words)


def other(prefix: str, action: Action, **_: Any) -> list[str]:
    """Return the words of an argument without a completer: those of a path, or none."""
    return quiet(paths)(prefix, action, None, None) if action.type is Path else []


def sites(prefix: str, _: Namespace) -> Iterator[str]:
    """Yield the folders of the sites of the checkout, or those that `prefix` begins."""
    return _known_or_typed(kit_folder() / "inventory", prefix)


def names_of_sites(prefix: str, options: Namespace) -> Iterator[str]:
    """Yield the names of the sites of the checkout, or folders where `prefix` has a slash."""
    yield from _folders(kit_folder() / "inventory")
    if "/" in prefix:
        yield from sites(prefix, options)


def runs(prefix: str, _: Namespace) -> Iterator[str]:
    """Yield the folders of runs."""
    return _known_or_typed(result_folder(kit_folder(), "runs"), prefix)


def partitions(_: str, options: Namespace) -> Iterable[str]:
    """Return the partitions of the site of the line: the folders with their facts."""
    given = (getattr(options, "inventory", None) or [kit_folder() / LINK])[0]
    site = Path(given)
    return _folders((site.parent if site.is_file() else site) / "group_vars")


def suites(*_: Any) -> Iterable[str]:
    """Return the suites of an acceptance."""
    import yaml  # few completions read a file

    with (kit_folder() / "benchmarks" / "suites.yml").open("rb") as file:
        known = yaml.load(file, Loader=yaml.CSafeLoader)["suites"]
    hidden = ("practice", "study")  # as `Suite.listed`
    return [name for name, suite in known.items() if suite.get("kind") not in hidden]


def cases(*_: Any) -> Iterable[str]:
    """Return the names of the cases."""
    files = (kit_folder() / "benchmarks").glob("*.yml")
    return sorted({file.stem for file in files} - {"suites"})


def environments(*_: Any) -> Iterable[str]:
    """Return the names of the environments."""
    return _folders(kit_folder() / "environments")


def outputs(*_: Any) -> Iterable[str]:
    """Return the names of the cases, each with an equals sign."""
    return (f"{name}=" for name in cases())


def paths(prefix: str, _: Namespace | None) -> Iterator[str]:
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
