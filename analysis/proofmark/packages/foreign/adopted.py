"""The kind of an adopted run, and ``inputs/adopted.json``: where its outputs come from."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from proofmark.common.files import read_json
from proofmark.common.message import Message
from proofmark.common.shared_models import StrictModel
from proofmark.common.translation import N_
from proofmark.plan.kinds import RunKind
from proofmark.runs.run_files import RunFiles

KIND = N_("imported")
"""The name of the kind, and the origin of its figures."""


class AdoptedRun(RunKind):
    """The run of outputs that others produced."""

    origin = KIND
    executed = False


Lines = tuple[tuple[int, int | None], ...]
"""Ranges of lines: the first one, from 0, and the one after the last; None: to the end."""


class AdoptedFile(StrictModel):
    """A file that was adopted, or the part of it that is the output of one program.

    Attributes:
        source: its path below the adopted folder, as `shown` returns it.
        sha256: of its content, in hexadecimal digits; empty if it was not read.
        moments: the number of times of day in its lines.
        figures: the number of different numbers in its lines that have a decimal point and four
            digits or more.
        numbers: the SHA-256 of all numbers and times in its lines, in hexadecimal digits; empty if
            it was not read. Names of hosts and other words are no part of it.
        problem: why it was not read; empty if it was.
        lines: of the program; empty: all. The copy has the whole file.
    """

    source: str
    sha256: str = ""
    bytes: int = 0
    moments: int = 0
    figures: int = 0
    numbers: str = ""
    problem: str = ""
    lines: Lines = ()


class Contradiction(StrictModel):
    """The nodes of an output whose text names others than its path. The text counts.

    Attributes:
        path: the nodes in its path, as a node set.
        text: the nodes in its text.
    """

    path: str
    text: str

    def message(self) -> Message:
        """Return the contradiction as a message."""
        return Message("adopt-text-counts", path=self.path, text=self.text)


class Adopted(StrictModel):
    """The content of ``inputs/adopted.json``.

    Attributes:
        patterns: the patterns of the paths of each case.
        node: the regular expression for the nodes in a path; empty if there was none.
        files: each adopted file, by the folder of its step below ``steps/``.
        unmatched: the other files in the folder, which match no case.
        not_entered: the folders, archives and files of archives that were not read, each with the
            reason.
        labels: the options ``--label``.
        contradicted: the outputs whose text names other nodes than their path, by path.
        unselected: the cases of outputs in adopted files that no ``--case`` selected, by path.
    """

    folder: str
    patterns: dict[str, list[str]]
    node: str
    files: dict[str, AdoptedFile]
    unmatched: list[str]
    not_entered: dict[str, str] = {}
    labels: list[str] = []
    contradicted: dict[str, Contradiction] = {}
    unselected: dict[str, list[str]] = {}

    def other_programs(self) -> Iterator[tuple[str, Message]]:
        """Yield each adopted file with an output that is left over, and of which case it is."""
        for path, cases in self.unselected.items():
            yield path, Message("adopt-other-program", cases=tuple(cases))


def path_of(files: RunFiles) -> Path:
    """Return the path of ``adopted.json`` of a run."""
    return files.inputs / "adopted.json"


def adopted_files(files: RunFiles) -> Mapping[str, AdoptedFile]:
    """Return the files of an adopted run, by the folder of the step below ``steps/``.

    Raises:
        BadInput: ``adopted.json`` is missing or damaged.
    """
    return read_json(path_of(files), Adopted).files


def shown(name: str) -> str:
    r"""Return the name of a file as text; bytes that are not UTF-8 are escaped (``\\xff``)."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def lines_of(text: str, lines: Lines) -> str:
    """Return these lines of `text`; all of them if `lines` is empty."""
    if not lines:
        return text
    every = text.split("\n")
    parts = ("\n".join([*every[first:end], *([""] if end else [])]) for first, end in lines)
    return "".join(parts)
