"""Runs finished steps once more; their new output stands beside the first, and both count."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from proofmark.attempts import attempts, last_words
from proofmark.batch import Request, State
from proofmark.declared import Queue
from proofmark.errors import bad_input, nearest
from proofmark.execute import follow
from proofmark.plan import Step
from proofmark.runs import Run, lock
from proofmark.schedulers import none


def pick(run: Run, wanted: Sequence[str]) -> list[Step]:
    """Return the steps called `wanted`, by id or by number.

    Raises:
        BadInput: there is no such step, or it has not been written yet.
    """
    steps = {step.id: step for step in run.plan.steps()}
    numbers = {name.split("-", 1)[0].lstrip("0"): name for name in steps}
    found = []
    for word in wanted:
        name = word if word in steps else numbers.get(word.lstrip("0"), "")
        if not name:
            hint = nearest(word, steps)
            raise bad_input("STEP", "", f"{word!r}{hint}", f"a step of {run.id}: proofmark status")
        if not (run.folder / "steps" / name / "rc").exists():
            raise bad_input("STEP", "", f"{name}: not finished yet", "a finished step")
        found.append(steps[name])
    return found


def rerun(run: Run, steps: Sequence[Step], say: Callable[[str], None]) -> None:
    """Run each of `steps` again, in order.

    Raises:
        BadInput: somebody is running this run, or a result could not be written.
        Stopped: SIGINT or SIGTERM came; the step has been stopped in order.
    """
    log = run.folder / "jobs" / "rerun.messages"
    with lock(run):
        for step in steps:
            say(f"{step.id}: about {step.seconds:.0f} s")
            folder = run.folder / "steps" / step.id
            earlier = len(attempts(folder))
            follow(_Script(folder / "run.sh", log), lambda: None)
            if len(found := attempts(folder)) == earlier:
                said = last_words(log) or "no message"
                raise bad_input(step.id, "", f"no result: {said}", "a result that can be written")
            say(f"{step.id}: exit code {found[-1].rc}, in {found[-1].folder.name}")


class _Script:
    """One script, run here and now."""

    pause = none.POLL_S

    def __init__(self, script: Path, log: Path) -> None:
        self._job = none.submit(script, Request("rerun", ["localhost"], 0, log, Queue()))

    def turn(self) -> bool:
        return none.states([self._job])[self._job].state is State.RUNNING

    def cancel(self, why: str) -> None:
        none.cancel([self._job])
