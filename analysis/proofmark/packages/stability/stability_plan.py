"""The plan of a stability run: rounds of jobs of several sizes, which follow each other. Pure.

A round divides the nodes that the load allows among lanes. A lane is a set of nodes on which jobs
of this size follow each other for about the time of a round. The next round has other lanes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any

from pydantic import Field

from proofmark.common.errors import bad_input
from proofmark.common.input_limits import MAX_STEPS
from proofmark.common.message import Message
from proofmark.common.nodesets import Nodes
from proofmark.common.printed_command import setting
from proofmark.common.shared_models import StrictModel
from proofmark.packages.stability.terms import JobCause, StabilityTerms
from proofmark.plan.expansion import content_digest
from proofmark.plan.kinds import data_of
from proofmark.plan.plan import Group, Job, Plan, Totals
from proofmark.plan.step import COUNTED, Step
from proofmark.plan.totals import totals

KIND = "stability"
ROUNDS = 6
"""The least number of rounds of a run, unless a job takes longer than a round."""
LONGEST_ROUND_S = 4 * 3600.0


class StabilityTest(StrictModel):
    """What a stability run counts, and for how long.

    Attributes:
        hours: its duration, from the last failure that began the time again.
        load: the share of the nodes that jobs use.
        restart_on, good, bad: those of `StabilityTerms`.
        hosts: its nodes.
        counted: the step whose figures the kit counts. No job has it.
        mix: the steps that jobs repeat, each with the number of its nodes.
        assumed: whether nothing states the duration. Such a plan is only shown.
    """

    hours: float
    load: float
    restart_on: list[JobCause]
    good: float
    bad: float
    hosts: Nodes
    counted: Step
    mix: list[Step]
    assumed: bool = Field(default=False, exclude_if=lambda assumed: not assumed)


def test_of(plan: Plan) -> StabilityTest:
    """Return what the stability run of `plan` counts.

    Raises:
        BadInput: the plan is damaged.
    """
    return data_of(plan, StabilityTest)


def counted_step(plan: Plan) -> Step | None:
    """Return the step of a normal plan whose figures are counted; None if it has none."""
    return next((step for step in plan.steps() if step.launch == COUNTED), None)


def stability_plan(
    plan: Plan, hosts: Sequence[str], terms: StabilityTerms, *, assumed: bool = False
) -> Plan:
    """Return the plan of a stability run, with its first round.

    Args:
        plan: the normal plan of the suite. Its steps of one job are the mix.
        assumed: whether nothing states the days.

    Raises:
        BadInput: the days are not stated, or no step fits into the load.
    """
    if terms.days is None:
        accepted = f"{setting('stability_days', '14')}, or stability.days in contract.yml"
        raise bad_input("stability_days", "", "nothing", accepted)
    counted = counted_step(plan)
    assert counted is not None
    usable = max(1, int(terms.load * len(hosts)))
    every = [step for step in plan.steps() if step.launch != COUNTED and not step.reads]
    mix = [step for step in every if step.scope == "job" and len(step.nodes) <= usable]
    if not mix:
        found = f"no step of {plan.suite} for at most {usable} of {len(hosts)} nodes"
        raise bad_input("stability_load", "", found, "a greater load, or more nodes")
    larger = sorted({len(step.nodes) for step in every} - {len(step.nodes) for step in mix})
    left = [Message("left-load-size", nodes=size, usable=usable) for size in larger]
    test = StabilityTest(
        hours=24 * terms.days,
        load=terms.load,
        restart_on=terms.restart_on,
        good=terms.good,
        bad=terms.bad,
        hosts=list(hosts),
        counted=counted.model_copy(update={"id": f"0000-{counted.case}", "nodes": list(hosts)}),
        mix=mix,
        assumed=assumed,
    )
    first = plan.groups[0].model_copy(update={"jobs": []})
    update: dict[str, Any] = {
        "groups": [first],
        "digest": "",
        "kind": KIND,
        "hosts": [*hosts],
    }
    update["of_kind"] = test.model_dump(mode="json")
    empty = plan.model_copy(update={**update, "left_out": [*plan.left_out, *left]})
    made = with_round(empty, next_round(empty, hosts))
    digest = content_digest([made.model_dump(mode="json"), plan.digest])
    return made.model_copy(update={"digest": digest, "totals": _cost(made)})


def sizes_of(test: StabilityTest) -> list[int]:
    """Return the numbers of nodes of the jobs, the largest first."""
    return sorted({len(step.nodes) for step in test.mix}, reverse=True)


def round_s(test: StabilityTest) -> float:
    """Return the planned duration of a round in seconds."""
    longest = max(step.wall_s for step in test.mix)
    return max(longest, min(LONGEST_ROUND_S, 3600 * test.hours / ROUNDS))


def lanes(test: StabilityTest, first: int) -> Iterator[int]:
    """Yield the number of nodes of each lane of a round.

    Args:
        first: the place of the size that is tried first, modulo the number of sizes.
    """
    sizes, left = sizes_of(test), max(1, int(test.load * len(test.hosts)))
    order = [*sizes[first % len(sizes) :], *sizes[: first % len(sizes)]]
    while fitting := [size for size in order if size <= left]:
        for size in fitting:
            if size <= left:
                left -= size
                yield size


def next_round(plan: Plan, up: Sequence[str]) -> list[Job]:
    """Return the jobs of the round after those of `plan`.

    Args:
        plan: the plan of a stability run.
        up: the nodes that are not down. A lane that has not enough of them is left out.
    """
    test = test_of(plan)
    earlier = [*plan.jobs()]
    number = len({job.id.partition("-")[0] for job in earlier})
    numbers, jobs = count(len(earlier) + 1), list[Job]()
    shift = number * max(1, len(up) // 3) % max(1, len(up))
    free = [*up[shift:], *up[:shift]]
    for lane, size in enumerate(lanes(test, number)):
        nodes, free = free[:size], free[size:]
        if len(nodes) < size:
            break
        jobs += _lane(test, nodes, number, lane, numbers)
    return jobs


def _lane(
    test: StabilityTest, nodes: Sequence[str], number: int, lane: int, numbers: Iterator[int]
) -> Iterator[Job]:
    """Yield the jobs of a lane, one after the other for the time of a round."""
    programs = [step for step in test.mix if len(step.nodes) == len(nodes)]
    spent, place = 0.0, number + lane
    while spent < round_s(test):
        template = programs[place % len(programs)]
        made = next(numbers)
        name = template.id.partition("-")[2]
        step = template.model_copy(update={"id": f"{made:05d}-{name}", "nodes": list(nodes)})
        yield Job(id=f"{number:03d}-{made:05d}", nodes=list(nodes), steps=[step])
        spent, place = spent + max(step.wall_s, 1.0), place + 1


def with_round(plan: Plan, jobs: Sequence[Job]) -> Plan:
    """Return `plan` with further jobs.

    Raises:
        BadInput: the plan would have too many steps.
    """
    (group,) = plan.groups
    every = [*group.jobs, *jobs]
    if len(every) > MAX_STEPS:
        accepted = f"at most {MAX_STEPS:,}: longer jobs, or fewer days"
        raise bad_input("stability_days", "", f"{len(every):,} jobs", accepted)
    return plan.model_copy(update={"groups": [group.model_copy(update={"jobs": every})]})


def jobs_a_day(test: StabilityTest) -> float:
    """Return the expected number of jobs in 24 hours."""
    return 86400 * sum(_rate(test, size) for size in _lanes_of_sizes(test))


def _lanes_of_sizes(test: StabilityTest) -> list[int]:
    """Return the lanes of as many rounds as there are sizes."""
    every_lane: list[int] = []
    for first in range(len(sizes_of(test))):
        every_lane += lanes(test, first)
    return every_lane


def _rate(test: StabilityTest, size: int) -> float:
    """Return the share of the jobs per second that a lane of `size` nodes has."""
    of_size = [max(step.wall_s, 1.0) for step in test.mix if len(step.nodes) == size]
    return len(of_size) / sum(of_size) / len(sizes_of(test))


def _cost(plan: Plan) -> Totals:
    """Return the cost of the whole run; the bytes are those of its first round."""
    test = test_of(plan)
    jobs = round(jobs_a_day(test) * test.hours / 24)
    rounds = len(sizes_of(test))
    busy = sum(_lanes_of_sizes(test)) / rounds
    update = {"jobs": jobs, "steps": jobs, "wall_s": round(3600 * test.hours, 1)}
    update["node_hours"] = round(busy * test.hours, 4)
    return totals(plan.groups).model_copy(update=update)


def counted_plan(plan: Plan) -> Plan:
    """Return the plan from which a stability run is judged: the step that is counted.

    What its jobs measure is no figure of the verdict: they are the load.
    """
    test = test_of(plan)
    job = Job(id="counted", nodes=test.hosts, steps=[test.counted])
    group = Group(mode=plan.current_mode, environment=plan.groups[0].environment, jobs=[job])
    return plan.model_copy(update={"groups": [group]})
