"""The comparison of a run with the copy of the baseline in its folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from proofmark.cases.suite import Benchmarks
from proofmark.common.message import Message
from proofmark.judge.aggregate import Aggregates
from proofmark.judge.baseline.changes import changes, lost_parts
from proofmark.judge.baseline.circumstances import Circumstances
from proofmark.judge.baseline.comparison import BaselineComparison, compare_with_baseline
from proofmark.site.accepted_baseline import read_baseline


@dataclass(frozen=True)
class AgainstBaseline:
    """The comparison of a run with a baseline, and the parts that each node lost since then."""

    comparison: BaselineComparison
    lost: Mapping[str, tuple[Message, ...]]


@dataclass(frozen=True)
class BaselineOfRun:
    """The baseline in `folder`, for a run with these circumstances."""

    folder: Path
    about: Circumstances

    def compare(
        self, figures: Aggregates, benchmarks: Benchmarks, family_level: float
    ) -> AgainstBaseline:
        """Return the comparison of the figures of the run.

        Args:
            figures: of the run.
            benchmarks: the cases; their metrics state whether higher or lower is better.
            family_level: probability that any figure of an unchanged machine fails.

        Raises:
            BadInput: the baseline is damaged.
        """
        baseline, accepted = read_baseline(self.folder)
        values = self.about.values(figures, benchmarks)
        since = changes(baseline, self.about.traits(), self.about.libraries())
        found = compare_with_baseline(values, baseline, accepted, len(figures), family_level, since)
        return AgainstBaseline(found, lost_parts(baseline, self.about.nodes))
