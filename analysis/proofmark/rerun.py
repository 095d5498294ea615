"""Runs finished steps once more; their new output stands beside the first, and both count."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from proofmark.attempts import attempts, last_words
from proofmark.batch import Request, State
from proofmark.declared import Queue
from proofmark.errors import bad_input, nearest
from proofmark.execute import follow, unproven
from proofmark.runs import Run, lock, site_of
from proofmark.schedulers import none


@dataclass(frozen=True)
class Execution:
    """What is run again: a folder below ``steps/``, and the node if it is one node's alone."""

    folder: str
    host: str | None
    seconds: float


def pick(run: Run, wanted: Sequence[str]) -> list[Execution]:
    """Return what is called `wanted`: steps by id or by number, ``<step>/<node>`` for one node's.

    Raises:
        BadInput: there is no such step or node, or it has not been measured yet.
    """
    steps = {step.id: step for step in run.plan.steps()}
    numbers = {name.split("-", 1)[0].lstrip("0"): name for name in steps}
    found = []
    for word in wanted:
        step, _, instance = word.partition("/")
        name = step if step in steps else numbers.get(step.lstrip("0"), "")
        if not name:
            hint = nearest(step, steps)
            raise bad_input("STEP", "", f"{word!r}{hint}", f"a step of {run.id}: proofmark status")
        there = steps[name].instances()
        if instance and instance not in there:
            hint = nearest(instance, there)
            raise bad_input("STEP", "", f"{word!r}{hint}", "a node that measures it by itself")
        folder = f"{name}/{instance}" if instance else name
        if not (run.folder / "steps" / folder / "rc").exists():
            raise bad_input("STEP", "", f"{folder}: not finished yet", "a finished step")
        host = there[instance][0] if instance else None
        found.append(Execution(folder, host, steps[name].seconds))
    return found


def rerun(run: Run, executions: Sequence[Execution], say: Callable[[str], None]) -> None:
    """Run each of `executions` again, in order; what one node measured, on that node.

    Raises:
        BadInput: somebody is running this run, or a result could not be written.
        Stopped: SIGINT or SIGTERM came; the step has been stopped in order.
    """
    log = run.folder / "jobs" / "rerun.messages"
    away = site_of(run).connection != "local"
    plan = {
        step.id: (step, group.mode)
        for group in run.plan.groups
        for job in group.jobs
        for step in job.steps
    }
    with lock(run):
        for each in executions:
            step, mode = plan[each.folder.partition("/")[0]]
            if why := unproven(run, [each.host] if each.host else step.nodes, mode):
                accepted = f"nodes that are proven to be in mode {mode}"
                raise bad_input(each.folder, "", why, accepted)
            say(f"{each.folder}: about {each.seconds:.0f} s")
            folder = run.folder / "steps" / each.folder
            earlier = len(attempts(folder))
            script = folder / "run.sh"
            if each.host and away:
                script = run.folder / "jobs" / "rerun.sh"
                script.write_text(_elsewhere(each.host, folder / "run.sh"))
            follow(_Script(script, log), lambda: None)
            if len(found := attempts(folder)) == earlier:
                said = last_words(log) or "no message"
                raise bad_input(
                    each.folder, "", f"no result: {said}", "a result that can be written"
                )
            say(f"{each.folder}: exit code {found[-1].rc}, in {found[-1].folder.name}")


def _elsewhere(host: str, script: Path) -> str:
    command = shlex.join(["ssh", "-o", "BatchMode=yes", host, f"sh {shlex.quote(str(script))}"])
    return f"#!/bin/sh\nexec {command}\n"


class _Script:
    """One script, run here and now."""

    pause = none.POLL_S

    def __init__(self, script: Path, log: Path) -> None:
        self._job = none.submit(script, Request("rerun", ["localhost"], 0, log, Queue()))

    def turn(self) -> bool:
        return none.states([self._job])[self._job].state is State.RUNNING

    def cancel(self, why: str) -> None:
        none.cancel([self._job])
