"""The models of what a command line proves about the output of its program.

The command line is read from the output. If the output has none, it is that of the step
(`command.Request`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import model_validator

from proofmark.cases.reader.spec_types import Pattern
from proofmark.common.strict_model import StrictModel


class Largest(StrictModel):
    """The largest size of the benchmarks whose name matches, if no option states it."""

    benchmark: Pattern
    size: int


class Doubling(StrictModel):
    """Rows of sizes that double up to a requested one. A missing row makes the run INVALID.

    Attributes:
        parameter: the size of a row.
        option: the option `[MIN:]MAX`.
        largest: the largest sizes without the option; the first match counts.
        memory_option: the option with the memory that limits the sizes, bytes.
        memory: that memory without the option. The largest size times the ranks is at most this.
    """

    parameter: str
    option: str
    largest: tuple[Largest, ...]
    memory_option: str
    memory: int


class Operations(StrictModel):
    """The rows that the command line requests. All of them together prove the end of a run.

    Attributes:
        proves: the name of the line of `require` that they replace.
        options: option → the metric of its row.
        otherwise: the metrics of a command line with none of these options.
        repeats: the option with the number of rows of each metric; 1 without it.
        numbered: the parameter that numbers these rows from 0.
        unless: options with which the requested rows are not known.
    """

    proves: str
    options: Mapping[str, str]
    otherwise: tuple[str, ...]
    repeats: str
    numbered: str
    unless: tuple[str, ...] = ()


class CommandLine(StrictModel):
    """The command line of a run, and what it proves.

    Attributes:
        match: the line of the output that has it, as the group `command`.
        exact: parameter → the option with its exact size, which the program may print rounded.
        doubling: the sizes that a table must have.
        operations: the rows that prove the end of a run.
        phases: groups of options, each with the metrics that it selects. A run has the metrics that
            every group selects; a group without an option in the command line selects all of its
            metrics. A missing one is INVALID; another one was not measured and is no reading.
    """

    match: Pattern
    exact: Mapping[str, str] = {}
    doubling: Doubling | None = None
    operations: Operations | None = None
    phases: tuple[Mapping[str, tuple[str, ...]], ...] = ()

    @model_validator(mode="after")
    def _group(self) -> CommandLine:
        if "command" not in self.match.groupindex:
            raise ValueError(f"match: {self.match.pattern!r} has no group (?P<command>…)")
        return self


class Complaint(StrictModel):
    """A line by which the program itself doubts a figure.

    Attributes:
        match: the line.
        metrics: all figures of these metrics of the run are INVALID, because any process may print
            the line at any time. Without `metrics` it is the figures of the next row, or of the
            last row if none follows.
        unless: a parameter. With it the line is normal.
    """

    match: Pattern
    metrics: tuple[str, ...] = ()
    unless: str | None = None


Once = Literal["ends", "rows"]
"""What occurs once in a run of an output that is not mixed with another one."""
