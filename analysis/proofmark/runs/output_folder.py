"""The files in a folder of others, by the patterns of the cases. Nothing is changed there."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import translate
from pathlib import Path

from proofmark.common.errors import BadInput, InputError, bad_input
from proofmark.common.input_limits import MAX_ADOPTED_FILES
from proofmark.runs.adopted import shown

MOST_NAMED = 10
"""The largest number of files that an error names."""


@dataclass(frozen=True)
class FoundOutputs:
    """The files below a folder, by their paths relative to it, sorted.

    Attributes:
        matched: the case of each file that matches a pattern. It may be a link or a special file.
        unmatched: the other files.
        not_entered: the folders that were not read, each with the reason.
    """

    matched: Mapping[str, str]
    unmatched: Sequence[str]
    not_entered: Mapping[str, str]


def find_outputs(folder: Path, patterns: Mapping[str, Sequence[str]]) -> FoundOutputs:
    """Return the files below `folder` by the `patterns` of each case.

    A pattern is for the whole relative path, as in `fnmatch`: ``*`` also matches ``/``. No link is
    followed.

    Raises:
        BadInput: `folder` is no folder, a file matches patterns of two cases, a pattern matches no
            file, or there are too many files.
    """
    if not folder.is_dir():
        raise bad_input("FOLDER", "", f"{folder}: not a folder", "the folder of the outputs")
    rules = [
        (case, pattern, re.compile(translate(pattern)))
        for case, of_case in patterns.items()
        for pattern in of_case
    ]
    paths, not_entered = _files_below(folder)
    matched: dict[str, str] = {}
    unmatched: list[str] = []
    two_cases: dict[str, list[str]] = {}
    used: set[tuple[str, str]] = set()
    for path in sorted(paths):
        fitting = [
            (case, pattern)
            for case, pattern, rule in rules
            if rule.fullmatch(f"/{path}") or rule.fullmatch(path)
        ]
        used.update(fitting)
        cases = list(dict.fromkeys(case for case, _ in fitting))
        if len(cases) > 1:
            two_cases[path] = cases
        elif cases:
            matched[path] = cases[0]
        else:
            unmatched.append(path)
    mistakes = [
        InputError("--case", case, f"{pattern!r}, which matches no file", _some(paths))
        for case, pattern, _ in rules
        if (case, pattern) not in used
    ]
    mistakes += named_errors(
        {path: f"patterns of {' and '.join(cases)}" for path, cases in two_cases.items()},
        "a file of one case",
    )
    if mistakes:
        raise BadInput(*mistakes)
    return FoundOutputs(matched, unmatched, dict(sorted(not_entered.items())))


def named_errors(problems: Mapping[str, str], accepted: str) -> list[InputError]:
    """Return an error for each of the first `MOST_NAMED` files, and one for the number of others.

    Args:
        problems: what was found, by the path of the file.
        accepted: what is accepted.
    """
    errors = [
        InputError(shown(path), "", found, accepted)
        for path, found in list(problems.items())[:MOST_NAMED]
    ]
    if more := len(problems) - len(errors):
        errors.append(InputError("FOLDER", "", f"{more} more files with this problem", accepted))
    return errors


def _files_below(folder: Path) -> tuple[list[str], dict[str, str]]:
    """Return the paths of all files below `folder`, and the folders that were not read."""
    paths: list[str] = []
    not_entered: dict[str, str] = {}
    waiting = [""]
    while waiting:
        name = waiting.pop()
        try:
            with os.scandir(folder / name) as entries:
                for entry in entries:
                    path = f"{name}/{entry.name}" if name else entry.name
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(path)
                    elif entry.is_dir():
                        not_entered[path] = "a link; accepted is a folder"
                    else:
                        paths.append(path)
        except OSError as error:
            not_entered[name or "."] = error.strerror or "unreadable"
        if len(paths) > MAX_ADOPTED_FILES:
            found = f"{folder}: more than {MAX_ADOPTED_FILES:,} files"
            raise bad_input("FOLDER", "", found, "a smaller part of the folder")
    return paths, not_entered


def _some(paths: Sequence[str]) -> str:
    first = ", ".join(repr(shown(path)) for path in sorted(paths)[:3])
    return f"a pattern for paths such as {first}" if first else "a folder with files"
