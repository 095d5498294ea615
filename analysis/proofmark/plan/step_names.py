"""Finds a step of a plan by its id, its number or the beginning of its id."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from proofmark.common.errors import bad_input, nearest
from proofmark.common.printed_command import NAME, PrintedCommand, of_run
from proofmark.plan.step import Step, StepInstance

MOST_NAMED = 5
"""The largest number of steps that a message offers."""


def instance_named(word: str, steps: Iterable[Step], run: str) -> tuple[Step, StepInstance]:
    """Return the step and the instance that `word` names; without ``/<node>`` the whole step.

    Args:
        word: as of `step_named`, or this and ``/<node>`` or ``/<node>+<node>``.
        steps: the steps of the plan.
        run: the name of the run, for messages.

    Raises:
        BadInput: as of `step_named`; or no such node or pair measures the step alone.
    """
    named = StepInstance.parse(word)
    step = step_named(named.step, steps, run)
    instance = named._replace(step=step.id)
    if instance.name and instance not in (instances := step.instances()):
        found = f"{word!r}{nearest(instance.name, [each.name for each in instances])}"
        raise bad_input("STEP", "", found, "a node that measures this step alone, or a pair")
    return step, instance


def step_named(word: str, steps: Iterable[Step], run: str = "") -> Step:
    """Return the step with the id or the number `word`, or whose id alone begins with it.

    Args:
        word: the id, the number with or without zeros before it, or the beginning of one id.
        steps: the steps of the plan.
        run: the name of the run, for messages; empty for a plan without a run.

    Raises:
        BadInput: no step, or several steps, have this name; the message has the nearest ids.
    """
    by_id = {step.id: step for step in steps}
    if word in by_id:
        return by_id[word]
    numbers = {name.split("-", 1)[0].lstrip("0"): name for name in by_id}
    if word.isascii() and word.isdigit() and (name := numbers.get(word.lstrip("0"))):
        return by_id[name]
    begun = [name for name in by_id if word and name.startswith(word)]
    if len(begun) == 1:
        return by_id[begun[0]]
    if begun:
        listed = ", ".join(begun[:MOST_NAMED])
        more = f" and {len(begun) - MOST_NAMED} more" if len(begun) > MOST_NAMED else ""
        raise bad_input("STEP", "", f"{word!r}, which {len(begun)} ids begin with", listed + more)
    close = get_close_matches(word, by_id, n=MOST_NAMED, cutoff=0.4)
    hint = f", did you mean {', '.join(map(repr, close))}?" if close else ""
    status = PrintedCommand("proofmark", "status", of_run(run, NAME, "RUN"), "--steps")
    lists = f"{run}: {status}" if run else "the plan: proofmark plan -v"
    accepted = f"a step of {lists} lists them"
    raise bad_input("STEP", "", f"{word!r}{hint}", accepted)
