"""The metrics of a suite that a run must have judged."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from proofmark.cases.suite import Benchmarks, Required
from proofmark.plan.plan import Plan
from proofmark.plan.selection import possible_steps
from proofmark.site.contract_document import ContractItem


def required_metrics(
    plan: Plan, benchmarks: Benchmarks, items: Iterable[ContractItem]
) -> Sequence[Required]:
    """Return the metrics that must be judged besides the items of the contract.

    They are those of the suite. There are none if `plan` measures a mandatory one of `items`; a
    suite that only looks for faults has its own all the same.

    Args:
        plan: of the run.
        benchmarks: the cases and suites.
        items: of the contract, for the partition, without those that a party waived.
    """
    suite = benchmarks.suites.get(plan.suite)
    if suite is None:
        return ()
    mandatory = (each for each in items if each.severity == "mandatory")
    if suite.kind != "sanity" and any(
        possible_steps(each, each.case, plan, benchmarks) for each in mandatory
    ):
        return ()
    return suite.required_metrics
