"""How a run was made, as far as its verdict depends on it."""

from __future__ import annotations

from dataclasses import dataclass

from proofmark.common.message import Message
from proofmark.judge.evidence import Evidence
from proofmark.judge.fleet.fleet import Fleet
from proofmark.records.columns import EMULATED
from proofmark.runs.stage_faults import StageFault


@dataclass(frozen=True)
class RunConditions:
    """How a run was made.

    Attributes:
        imported: whether others produced the outputs. No step can be run again.
        fixed: the steps that cannot run again, because two steps use the same files in scratch.
        sanity: whether the suite only looks for faults, so that floors and peers suffice.
        rehearsed: the number of emulated figures that are like those of their peers. They stand for
            PASS in a run that only rehearses.
        replaced: the values of the inventory that options of the run replaced.
        stage_faults: what failed in stages that start no job, for example a mode or scratch. Steps
            that lack a record because of it are missing in the coverage.
    """

    imported: bool = False
    fixed: frozenset[str] = frozenset()
    sanity: bool = False
    rehearsed: int = 0
    replaced: tuple[Message, ...] = ()
    stage_faults: tuple[StageFault, ...] = ()

    @property
    def open_stages(self) -> tuple[StageFault, ...]:
        """The faults of stages that keep the run from being accepted."""
        return tuple(each for each in self.stage_faults if each.opens)


def run_conditions(evidence: Evidence, fleet: Fleet) -> RunConditions:
    """Return how the run was made."""
    plan = evidence.plan
    suite = evidence.benchmarks.suites.get(plan.suite)
    return RunConditions(
        imported=plan.imported,
        fixed=frozenset(step.id for step in plan.steps() if step.reads or step.kept),
        sanity=bool(suite and suite.kind == "sanity"),
        rehearsed=len(fleet.alike) if evidence.origins == {EMULATED} else 0,
        replaced=tuple(
            Message("option-replaced", option=name, found=value or "–", stated=stated or "–")
            for name, (stated, value) in evidence.replaced.items()
        ),
        stage_faults=evidence.stage_faults,
    )
