"""The verdict that is written in a run: whether the run may be signed, and what it says."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field, ValidationError

from proofmark.common.errors import bad_input
from proofmark.common.files import read_bytes
from proofmark.common.input_limits import MAX_VERDICT_BYTES
from proofmark.common.message import Message, Term
from proofmark.judge.headline import FLOOR, PASSING, Headline, Judged
from proofmark.judge.references.judgement import PEERS
from proofmark.judge.verdict import Verdict
from proofmark.runs.run import Run

_COUNTS = {"passed": "PASS", "failed": "FAIL", "invalid": "INVALID", "unjudged": "UNJUDGED"}


Kind = Annotated[str, Field(pattern=f"^({'|'.join((*PASSING, FLOOR, PEERS))})$")]


class _Coverage(BaseModel):
    expected: int
    measured: int


class _Headline(BaseModel):
    word: str
    kinds: dict[Kind, Judged]


class WrittenVerdict(BaseModel):
    """The head of ``verdict.json``.

    Attributes:
        run: the id of the run.
        headline: the verdict in a word, and what judged.
        counts: the number of results by verdict.
        coverage: the number of planned steps, and of measured ones.
        unlisted: the number of results that only ``records.parquet`` has (`write_verdict`).
    """

    run: str
    headline: _Headline
    counts: dict[str, int]
    coverage: _Coverage
    unlisted: int = 0

    @property
    def line(self) -> Message:
        """The verdict with its counts, as in the last lines of an acceptance."""
        return Message(
            "past-verdict",
            text=Term(self.headline.word),
            judged=Headline(self.headline.word, self.headline.kinds).text,
            **{key: self.counts.get(word, 0) for key, word in _COUNTS.items()},
            measured=self.coverage.measured,
            expected=self.coverage.expected,
        )

    @property
    def missing(self) -> int:
        """The number of planned steps without a record."""
        return self.coverage.expected - self.coverage.measured


def read_written(path: Path) -> WrittenVerdict | None:
    """Return the verdict in ``verdict.json``; None if the file is missing or not a verdict."""
    try:
        return WrittenVerdict.model_validate_json(read_bytes(path, MAX_VERDICT_BYTES))
    except (OSError, ValidationError):
        return None


def refuse_unfinished(run: Run, verdict: Verdict) -> None:
    """Refuse a run without a result of each planned step: it must not be signed.

    Raises:
        BadInput: steps are missing.
    """
    coverage = verdict.coverage
    if missing := coverage.expected - coverage.measured:
        found = f"unfinished: {missing} of {coverage.expected} steps are missing"
        raise bad_input(run.folder, "", found, "a run with a result of each planned step")
