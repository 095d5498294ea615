"""The summary of a plan that the playbooks use."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from proofmark.common.nodesets import fold
from proofmark.common.text import duration, size
from proofmark.machine.node_commands import step_programs
from proofmark.plan.kinds import kind_of
from proofmark.plan.plan import Plan


def plan_summary(plan: Plan, hosts: Collection[str] = ()) -> dict[str, Any]:
    """Return suite, number of nodes, modes, packages and cost of `plan`.

    Args:
        hosts: the hosts that ``-l`` selects.

    Returns:
        `suite`; `partition`; `nodes`, their number; `node_set`, their names; `modes` in the order
        of the plan; `packages` of the steps, as the cases name them; `step_packages`, the Debian
        packages that the scripts of the steps need on a node; `cost`, one line; `rolling`: whether
        nodes join the run; then `only`, the names of `hosts`.

    Raises:
        BadInput: ``requirements/programs.yml`` is wrong.
    """
    programs = step_programs(bound_memory=plan.binds_memory()).values()
    return {
        "suite": plan.suite,
        "partition": plan.partition,
        "nodes": len(plan.nodes()),
        "node_set": ",".join(fold(plan.nodes())),
        "modes": [group.mode for group in plan.groups],
        "packages": list(plan.packages()),
        "step_packages": sorted({program.debian for program in programs} - {""}),
        "cost": cost_line(plan),
        "rolling": kind_of(plan).nodes_arrive,
        "only": ",".join(fold(hosts)) if kind_of(plan).nodes_arrive else "",
    }


def cost_line(plan: Plan) -> str:
    """Return one line with the numbers of jobs and steps, the time and the bytes of `plan`."""
    totals = plan.totals
    more = ""
    if plan.more_repeats_s:
        more = f", repeats of noisy steps: at most {duration(plan.more_repeats_s)} more"
    return (
        f"suite: {plan.suite}, partition: {plan.partition}, "
        f"jobs: {totals.jobs}, steps: {totals.steps}, "
        f"time: about {duration(totals.wall_s)}{more}, node-hours: {totals.node_hours:.2f}, "
        f"written to scratch: {size(totals.bytes)}, "
        f"at most {size(totals.scratch_peak_bytes)} at one time"
    )
