"""``inputs/adopted.json``: where the outputs of an imported run come from, and their SHA-256."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from proofmark.common.errors import bad_input
from proofmark.common.files import read_json, write_atomic
from proofmark.common.message import Message
from proofmark.common.shared_models import StrictModel
from proofmark.plan.step import StepInstance
from proofmark.runs.run import Run
from proofmark.runs.run_files import RunFiles

_Text = Annotated[str, Field(min_length=1)]


class AnyFigure(StrictModel):
    """A value in `unit`, and what it is the value of.

    Attributes:
        parameters: of the step and of the row of its output.
    """

    case: str = Field(min_length=1)
    benchmark: str
    metric: str = Field(min_length=1)
    unit: str
    mode: str
    placement: str
    parameters: dict[str, str | int | float]
    value: float


class Assumption(StrictModel):
    """One figure or property of the model, with its source or assumption.

    Attributes:
        value: with its unit.
        why: the source, or what was assumed.
        sourced: whether `why` is a source.
    """

    what: Message
    value: Message
    why: Message
    sourced: bool

    def as_json(self) -> dict[str, Any]:
        """Return the form of ``verdict.json``."""
        return {
            **self.what.as_json("what"),
            **self.value.as_json("value"),
            **self.why.as_json("why"),
            "sourced": self.sourced,
        }


class ErrorRow(StrictModel):
    """The ratios predicted ÷ measured of one metric of a case.

    Attributes:
        figures: the number of figures that both runs have.
        median, smallest, largest: of the ratios.
    """

    case: str
    metric: str
    figures: int
    median: float
    smallest: float
    largest: float

    def range_of(self, predicted: float) -> tuple[float, float]:
        """Return the smallest and the largest real value that the ratios allow for `predicted`."""
        return predicted / self.largest, predicted / self.smallest


class PredictedFigure(AnyFigure):
    """One figure of the twin: the median of its repeats; `nodes` is a node set."""

    nodes: _Text


class Predictions(StrictModel):
    """The predictions of one run of a twin.

    Attributes:
        site, partition: what was simulated.
        selector: SimGrid's imitation of an MPI library, for the algorithms of collectives.
        assumptions: what the model contains.
        errors: the errors of the model; empty if they are not known.
    """

    format: Literal[1] = 1
    run: _Text
    site: _Text
    partition: _Text
    selector: _Text
    figures: tuple[PredictedFigure, ...]
    assumptions: tuple[Assumption, ...]
    errors: tuple[ErrorRow, ...] = ()


def read_predictions(path: Path) -> Predictions:
    """Return the predictions in a file of a run.

    Raises:
        BadInput: the file is damaged.
    """
    return read_json(path, Predictions)


def write_predictions(path: Path, expected: Predictions) -> None:
    """Write predictions to a file in a new folder."""
    path.parent.mkdir(parents=True)
    write_atomic(path, expected.model_dump_json(indent=1) + "\n")


Lines = tuple[tuple[int, int | None], ...]
"""Ranges of lines: the first one, from 0, and the one after the last; None: to the end."""
DATE_IN_PATH = "(?<![0-9])(20[0-9]{2}([-_.]?)[01][0-9]\\2[0-3][0-9])(?![0-9])"


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


def adopted_files(files: RunFiles) -> Mapping[str, AdoptedFile]:
    """Return the files of an imported run, by the folder of the step below ``steps/``.

    Raises:
        BadInput: ``adopted.json`` is missing or damaged.
    """
    return read_json(files.adopted, Adopted).files


def sources_of(run: Run) -> Mapping[str, str]:
    """Return the paths of the outputs of an imported run, by step; of an own run nothing.

    Raises:
        BadInput: ``adopted.json`` is missing or damaged.
    """
    if not run.imported:
        return {}
    return {step: file.source for step, file in adopted_files(run.files).items()}


def files_of_executions(run: Run) -> Callable[[str, int], str]:
    """Return the file with the values of an execution, as a function of its step and number.

    It is the path below the adopted folder if others produced the output, else below the run.
    """
    sources = sources_of(run)
    outputs = {step.id: step.output for step in run.plan.steps()}

    def path(step: str, attempt: int) -> str:
        output = outputs.get(StepInstance.parse(step).step, "")
        return sources.get(step, f"workdir/steps/{step}/execution-{attempt}/{output}")

    return path


def refuse_imported(run: Run) -> None:
    """Refuse to run steps of `run` if others produced its outputs.

    Raises:
        BadInput: the run is imported.
    """
    if run.imported:
        found = f"{run.id}: outputs that others produced"
        raise bad_input("RUN", "", found, "a run of this kit, which has commands")


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


def dates_in(text: str) -> Iterator[str]:
    """Yield the dates in a path as ``2026-04-01``."""
    for match in re.finditer(DATE_IN_PATH, text):
        digits = re.sub(r"\D", "", match[1])
        try:
            yield date(int(digits[:4]), int(digits[4:6]), int(digits[6:])).isoformat()
        except ValueError:
            continue
