"""The summary of a plan that the playbooks use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from tests.fixtures.kit import make_kit

from proofmark.cli.plan import cost_line, plan_summary
from proofmark.plan.plan import Plan


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    return make_kit(tmp_path).plan()


def with_jobs(plan: Plan, **groups: Sequence[Mapping[str, str]]) -> Plan:
    """Return `plan` with a group for each mode. A job has one step for each of its packages."""
    data = plan.model_dump()
    step = data["groups"][0]["jobs"][0]["steps"][0]
    data["groups"] = [
        {
            "mode": mode,
            "environment": "local",
            "jobs": [
                {
                    "id": f"{mode}-{number}",
                    "nodes": [job["nodes"]],
                    "steps": [{**step, "package": name} for name in job["packages"].split()],
                }
                for number, job in enumerate(jobs)
            ],
        }
        for mode, jobs in groups.items()
    ]
    return Plan.model_validate(data)


def test_each_package_and_each_node_of_a_plan_is_counted_once(plan: Plan) -> None:
    first = {"nodes": "knl[0001-0004]", "packages": "hpcc fio hpcc"}
    second = {"nodes": "knl0003,knl0009", "packages": "hpcc"}
    summary = plan_summary(with_jobs(plan, flat=[first], cache=[first, second]))
    assert summary["packages"] == ["fio", "hpcc"]
    assert summary["nodes"] == 5


def test_modes_are_in_the_order_of_the_plan(plan: Plan) -> None:
    job = {"nodes": "knl0001", "packages": "hpcc"}
    assert plan_summary(with_jobs(plan, flat=[job], cache=[job]))["modes"] == ["flat", "cache"]


def test_the_cost_of_a_plan_is_one_line(plan: Plan) -> None:
    totals = plan.totals.model_copy(
        update={
            "jobs": 2,
            "steps": 16,
            "node_hours": 0.5,
            "wall_s": 187,
            "bytes": 4 * 2**30,
            "scratch_peak_bytes": 3 * 2**30,
        }
    )
    costed = plan.model_copy(update={"totals": totals})
    assert cost_line(costed) == (
        "suite: quick, partition: local, jobs: 2, steps: 16, time: about 3 min 07 s, "
        "node-hours: 0.50, written to scratch: 4.0 GiB, at most 3.0 GiB at one time"
    )
    assert plan_summary(costed)["cost"] == cost_line(costed)
