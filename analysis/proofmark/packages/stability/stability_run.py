"""The kind of a run of days that counts jobs: its options, its plan and its terms."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Collection, Iterator

from proofmark.common.errors import BadInput, InputError
from proofmark.common.text import duration
from proofmark.packages.stability.sampling import ahead, unreachable
from proofmark.packages.stability.stability_plan import (
    counted_plan,
    counted_step,
    stability_plan,
    test_of,
    with_round,
)
from proofmark.packages.stability.terms import JobCause, StabilityTerms, terms_of
from proofmark.plan.kinds import Part, PlanRequest, RunKind
from proofmark.plan.plan import Job, Plan
from proofmark.site.contract_document import CONTRACT, Contract, ContractItem
from proofmark.site.inventory import Site

DAYS = 1.0
"""The duration that is shown if none is stated."""
SHORT_JOB_S = 60
"""A run of shorter jobs gets a note."""


def _terms(options: Namespace, site: Site) -> StabilityTerms:
    """Return the terms of a stability run: the contract's, or stricter ones of the options.

    Raises:
        BadInput: an option asks for less than the contract.
    """
    signed = terms_of(site.contract)
    agreed = signed or StabilityTerms()
    options_of = {"days": options.stability_days, "load": options.stability_load}
    given = {key: each for key, each in options_of.items() if each is not None}
    found = agreed.model_copy(update=given)
    if signed and (weaker := weaker_terms(signed, found.days or 0.0, found.load, found.restart_on)):
        place = f"stability of {site.inventory / CONTRACT}"
        raise BadInput(
            *(
                InputError(f"stability_{name}", "", has, f"at least {needed}, {place}")
                for name, has, needed in weaker
            )
        )
    return found


class StabilityRun(RunKind):
    """Rounds of jobs that follow each other until the time of the run is over."""

    options = ("stability_days", "stability_load")
    needs = "the suite stability, which does not roll"
    grows = True
    has_figures = False

    def plan(self, request: PlanRequest) -> Plan | None:
        """Return the plan of a suite with a step whose figures are counted."""
        if not counted_step(request.usual):
            return None
        terms = _terms(request.options, request.site)
        assumed = request.shown and terms.days is None
        if assumed:
            terms = terms.model_copy(update={"days": DAYS})
        return stability_plan(request.usual, request.site.hosts, terms, assumed=assumed)

    def grown(self, plan: Plan, part: Part) -> Plan:
        """Return `plan` with the jobs of a round."""
        jobs: list[Job] = []
        for group in part:
            jobs += group.jobs
        return with_round(plan, jobs)

    def judged(self, plan: Plan) -> Plan:
        """Return the plan with the step that is counted."""
        return counted_plan(plan)

    def refused(self, item: ContractItem, contract: Contract) -> tuple[str, str] | None:
        """Return what no machine can reach in the time of the contract."""
        terms = terms_of(contract)
        return unreachable(item, terms) if terms else None

    def notes(self, plan: Plan, items: Collection[ContractItem]) -> Iterator[str]:
        """Yield what the terms of the run need, their risks, and what is odd in it."""
        test = test_of(plan)
        yield from ahead(plan, [*items])
        longest = max(step.wall_s for step in test.mix)
        if longest < SHORT_JOB_S:
            yield (
                f"note: stability: each of its {plan.totals.jobs:,} jobs takes {duration(longest)} "
                "at most: they test the start of jobs more than the nodes"
            )
        if test.assumed:
            yield f"note: stability: {DAYS:g} day is shown, because no duration is stated"


def weaker_terms(
    agreed: StabilityTerms, days: float, load: float, restart_on: Collection[JobCause]
) -> list[tuple[str, str, str]]:
    """Return which terms of a run are weaker than `agreed`: the name, the run's, the agreed one.

    A run of no stated duration (0 days) is weaker than none.
    """
    found = []
    if days and days < (agreed.days or 0.0):
        found.append(("days", f"{days:.4g} days", f"{agreed.days:g} days"))
    if load < agreed.load:
        found.append(("load", f"{load:g}", f"{agreed.load:g}"))
    if lacking := [cause for cause in agreed.restart_on if cause not in restart_on]:
        found.append(("restart_on", f"not {', '.join(lacking)}", ", ".join(agreed.restart_on)))
    return found
