"""Settings that a program prints and no rule names: they make two figures different.

They are found by the form of a header or of a command line. What differs in each run is none:
times, names of hosts, process numbers, free memory, and such parts of a path.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from proofmark.cases.reader.values import parameter
from proofmark.cases.vocabulary import Parameters

SET = "set"
"""The value of an option without a value."""
_OF_A_RUN = re.compile(
    r"date|time ?stamp|start(?:s|ed)?(?: ?time)?|end(?:ed|s)?|began|finished|host(?:name)?s?"
    r"|machine|p?pid|seed|rand_?seed|user|uid|uuid|job ?id|test ?id|free|used|avail(?:able)?"
    r"|inodes|log|\w+_log"
    r"|summary ?file|output|hosts?file|machinefile",
    re.IGNORECASE | re.ASCII,
)
"""Names of what differs in each run."""
_MOMENT = re.compile(r"\d{1,2}:\d\d:\d\d|\b\d{4}-\d\d-\d\d\b", re.ASCII)
_INTEGER = re.compile(r"\d{1,18}", re.ASCII)
_OPTION = re.compile(r"--?[A-Za-z][\w.-]*", re.ASCII)
_MOUNT = re.compile(
    r"(?a)(?:[a-z]\w*:)?/(?:(?:mnt|media|net|gpfs|lustre|lus|beegfs|p)/)?[^/]+(?:/[A-Za-z]+(?=/))?"
)
"""The file system of a path, a driver of ROMIO before it, and a word below it as in /data/nvme/."""
_DATA = frozenset({"test_filename", "-o", "-d"})
"""Names of the file or folder with the data: its file system counts."""
_LONGEST = 200
"""Letters of a longer value that count."""


def named(name: str, word: str, skipped: Collection[str]) -> Parameters:
    """Return a setting by its name as a parameter; nothing if it is none.

    Args:
        skipped: names that other rules read, or that are no settings.
    """
    plain = "_".join(re.findall(r"\w+", name.lower())) if not name.startswith("-") else name
    if {name, plain} & {*skipped} or not plain:
        return {}
    value = word.strip().strip("'\"")
    if _OF_A_RUN.fullmatch(name.strip("- ")) or _MOMENT.search(value):
        return {}
    if _INTEGER.fullmatch(value):
        return {plain: int(value)}
    if plain in _DATA and not value.startswith("/dev/"):
        mount = _MOUNT.match(value)
        return {plain: mount[0]} if mount else {}
    # Without the parts of its paths that can differ in each run: numbers at the end of words, and
    # random letters as those of mktemp. A device and a file system keep their names.
    words = re.split(r"([\s:,@=]+)", value)
    return {plain: "".join(map(_lasting_path, words))[:_LONGEST] or SET}


def of_command(words: Sequence[str], skipped: Collection[str]) -> Parameters:
    """Return the options of a command line, without its program and its other words."""
    found: Parameters = {}
    for option, value in _options([word.strip("'\"") for word in words[1:]]):
        found |= named(option, value, skipped)
    return found


def of_mapping(options: Mapping[str, object], skipped: Collection[str]) -> Parameters:
    """Return the options in a document that are words or numbers."""
    found: Parameters = {}
    for name, value in options.items():
        if isinstance(value, str | int | float):
            found |= named(name, f"{value}", skipped)
    return found


def _options(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield each option with its value; also a word ``name=value``."""
    for place, word in enumerate(words):
        name, equals, value = word.partition("=")
        if equals and not name.startswith("/"):
            yield name, value
        elif _OPTION.fullmatch(word):
            after = words[place + 1] if place + 1 < len(words) else ""
            yield word, "" if _OPTION.match(after) or "=" in after else after


def _lasting_path(word: str) -> str:
    if "/" not in word or word.startswith("/dev/"):
        return word
    kept = (_MOUNT.match(word) or [""])[0]
    return kept + re.sub("[A-Za-z0-9]+", lambda part: _lasting_word(part[0]), word[len(kept) :])


def _lasting_word(word: str) -> str:
    stem = word.rstrip("0123456789")
    mixed = len(word) >= 6 and not (word.islower() or word.isupper() or word.istitle())
    return "#" if mixed or any(letter.isdigit() for letter in stem) else stem


@dataclass(frozen=True)
class StartedCommand:
    """What was started.

    Attributes:
        arguments: of the program, without its name.
        ranks: the number of ranks; None if it is not known.
    """

    arguments: Sequence[str]
    ranks: int | None = None


def value_of(request: StartedCommand, option: str) -> str | None:
    """Return the word after the last `option`, or the end of a word `option=`; None without it."""
    found = None
    words = request.arguments
    for place, word in enumerate(words):
        if word == option:
            found = words[place + 1] if place + 1 < len(words) else ""
        elif word.startswith(f"{option}="):
            found = word[len(option) + 1 :]
    return found


def size_of(word: str | None) -> int | None:
    """Return the size in a word such as `16m`, bytes; None if it has none."""
    try:
        size = parameter("suffixed", word or "")
    except ValueError:
        return None
    return size if isinstance(size, int) else None
