"""The comparison of a run with the copy of the baseline in its folder."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import polars as pl

from proofmark.cases.suite import Benchmarks
from proofmark.judge.aggregate import Aggregates
from proofmark.judge.baseline.changes import accepted_parts, changes
from proofmark.judge.baseline.circumstances import Circumstances
from proofmark.judge.baseline.comparison import BaselineComparison, compare_with_baseline
from proofmark.site.accepted_baseline import Baseline, read_baseline
from proofmark.site.installed_parts import Parts


@dataclass(frozen=True)
class BaselineOfRun:
    """The baseline in `folder`, for a run with these circumstances."""

    folder: Path
    about: Circumstances

    @cached_property
    def _content(self) -> tuple[Baseline, pl.DataFrame]:
        return read_baseline(self.folder)

    def parts(self) -> dict[str, Parts]:
        """Return the parts that each node of the run had in the baseline.

        Raises:
            BadInput: the baseline is damaged.
        """
        return accepted_parts(self._content[0], self.about.nodes)

    def compare(
        self, figures: Aggregates, benchmarks: Benchmarks, family_level: float
    ) -> BaselineComparison:
        """Return the comparison of the figures of the run.

        Args:
            figures: of the run.
            benchmarks: the cases; their metrics state whether higher or lower is better.
            family_level: probability that any figure of an unchanged machine fails.

        Raises:
            BadInput: the baseline is damaged.
        """
        baseline, accepted = self._content
        values = self.about.values(figures, benchmarks)
        since = changes(baseline, self.about.traits(), self.about.libraries())
        return compare_with_baseline(values, baseline, accepted, len(figures), family_level, since)
