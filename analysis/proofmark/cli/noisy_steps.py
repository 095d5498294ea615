"""Repeats the steps of a run that are too noisy, within the time that its plan has for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from proofmark.common.text import duration
from proofmark.jobs.execute import RepeatedStep, rerun
from proofmark.judge.judging import evidence_of, judge
from proofmark.judge.repeats import RepeatRound, needs, next_round
from proofmark.plan.step import Step, StepInstance
from proofmark.runs.attempts import has_result
from proofmark.runs.journal import unverified
from proofmark.runs.run import Run, add_decisions, read_decisions, site_of
from proofmark.runs.state import planned


def repeat_noisy_steps(run: Run, say: Callable[[str], None]) -> None:
    """Run the steps of `run` that are too noisy again, until a material change would be seen.

    The executions are in ``decisions.json`` before they run, so that an interrupted run has spent
    their time. Only steps that are finished, on nodes in their mode, run again.

    Args:
        run: a run of which all steps that can run have ended.
        say: called with one line for each decision.

    Raises:
        BadInput: as of `rerun`; or a file of the run is damaged.
        Stopped: SIGINT or SIGTERM was received.
    """
    steps = _repeatable(run)
    while True:
        evidence = evidence_of(run)
        known = read_decisions(run.files).more
        spent = sum(count * steps[name].wall_s for name, count in known.items() if name in steps)
        left_s = run.plan.more_repeats_s - spent
        chosen = next_round(needs(judge(evidence).results, evidence.benchmarks, steps), left_s)
        if not chosen.executions:
            _report_left(chosen, left_s, say)
            return
        say(_described(chosen, steps, left_s))
        total = {name: known.get(name, 0) + count for name, count in chosen.executions.items()}
        add_decisions(run.files, more=total)
        for number in range(max(chosen.executions.values())):
            again = sorted(name for name, count in chosen.executions.items() if count > number)
            rerun(run, [RepeatedStep(steps[name], StepInstance(name)) for name in again], say)


def _repeatable(run: Run) -> Mapping[str, Step]:
    """Return the finished steps whose nodes are in their mode."""
    found: dict[str, Step] = {}
    proven = site_of(run).partition.firmware is not None
    for group in run.plan.to_run():
        for job in group.jobs:
            if proven and unverified(planned(run).folder, job.nodes, group.mode):
                continue
            found |= {each.id: each for each in job.steps if has_result(run.files.step(each.id))}
    return found


def _described(chosen: RepeatRound, steps: Mapping[str, Step], left_s: float) -> str:
    seconds = sum(count * steps[name].wall_s for name, count in chosen.executions.items())
    return (
        f"too noisy: {sum(chosen.executions.values())} more executions of "
        f"{len(chosen.executions)} steps, about {duration(seconds)} of {duration(left_s)}"
    )


def _report_left(chosen: RepeatRound, left_s: float, say: Callable[[str], None]) -> None:
    for need in chosen.unaffordable:
        why = "no number of repeats is enough"
        if need.more != float("inf"):
            why = f"{need.more:.0f} more repeats, about {duration(need.cost_s)}"
        say(f"{need.steps[0]}: too noisy, not repeated: {why}; {duration(left_s)} are left")
    if not chosen.unaffordable:
        say("repeats: each measured change that matters would be seen")
