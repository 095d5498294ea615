"""The summary of a plan that the playbooks use."""

from __future__ import annotations

from typing import Any

from proofmark.common.text import duration, size
from proofmark.machine.programs import called, step_programs
from proofmark.plan.plan import Plan


def plan_summary(plan: Plan) -> dict[str, Any]:
    """Return the facts of `plan` that the roles need.

    Returns:
        `suite`; `nodes`, their number; `modes` in the order of the plan; `packages` of the steps,
        as the cases name them; `step_packages`, the Debian packages that the scripts of the steps
        need on a node; `cost`, one line.

    Raises:
        BadInput: ``requirements/programs.yml`` is wrong.
    """
    bound = any(step.membind for step in plan.steps())
    programs = step_programs(called(), bound=bound).values()
    return {
        "suite": plan.suite,
        "nodes": len(plan.nodes()),
        "modes": [group.mode for group in plan.groups],
        "packages": sorted({step.package for step in plan.steps()}),
        "step_packages": sorted({program.debian for program in programs} - {""}),
        "cost": _cost(plan),
    }


def _cost(plan: Plan) -> str:
    totals = plan.totals
    return (
        f"suite: {plan.suite}, partition: {plan.partition}, "
        f"steps: {totals.steps}, jobs: {totals.jobs}, "
        f"time: about {duration(totals.wall_s)}, node-hours: {totals.node_hours:.2f}, "
        f"scratch: up to {size(totals.scratch_peak_bytes)} at one time"
    )
