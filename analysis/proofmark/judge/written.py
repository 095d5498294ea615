"""The head of ``verdict.json``, and the line that states a verdict."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import BaseModel, Field

from proofmark.common.message import Message, Term
from proofmark.judge.headline import FLOOR, PASSING, Headline, Judged
from proofmark.judge.references.judgement import PEERS

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
        coverage = self.coverage.model_dump()
        return line_of(self.headline.word, self.headline.kinds, {**self.counts, **coverage})


def line_of(word: str, kinds: Mapping[str, Judged], counts: Mapping[str, int]) -> Message:
    """Return a verdict with its counts, as in the last lines of an acceptance.

    Args:
        kinds: what each kind of limits judged.
        counts: of results by verdict, and of steps: ``expected`` and ``measured``.
    """
    return Message(
        "past-verdict",
        text=Term(word),
        judged=Headline(word, kinds).text,
        **{key: counts.get(name, 0) for key, name in _COUNTS.items()},
        measured=counts.get("measured", 0),
        expected=counts.get("expected", 0),
    )
