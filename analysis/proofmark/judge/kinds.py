"""How the runs of a kind are judged, when it is not the usual way (`proofmark.plan.kinds`)."""

from __future__ import annotations

from proofmark.common.plugins import Plugins
from proofmark.judge.evidence import Evidence
from proofmark.judge.judges import judge
from proofmark.judge.verdict import Verdict
from proofmark.runs.run import Run


class KindJudge:
    """Judges the runs of a kind."""

    def judge(self, run: Run, evidence: Evidence) -> Verdict:
        """Return the verdict of `run`, with the `KindResult` of its kind.

        Raises:
            BadInput: a file of the run is damaged.
        """
        return judge(evidence)


KIND_JUDGES = Plugins(KindJudge, "proofmark.judge.kinds", "plan.json", "kind")


def judge_of(kind: str) -> KindJudge:
    """Return the judge of the runs of `kind`; a kind without one has the usual verdict."""
    return KIND_JUDGES.get(kind)() if kind in KIND_JUDGES.names() else KindJudge()
