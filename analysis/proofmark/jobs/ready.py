"""Decides during a run which steps can run now: those that a search needs, and reading steps."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from proofmark.common.errors import bad_input
from proofmark.common.message import Message
from proofmark.plan.plan import Group, Job, Step
from proofmark.plan.search import Figures, Search, available, decide
from proofmark.runs.attempts import attempts, has_result
from proofmark.runs.decisions import add_decisions, read_decisions
from proofmark.runs.disturbed_steps import needs_execution
from proofmark.runs.run import Run, with_decisions

FigureReader = Callable[[Run, Search, Collection[str]], Figures]
"""Returns the figures of finished steps of a search, by the ids of the steps."""


class ReadySteps:
    """The steps of one group of a run that can run now; each step is returned once.

    A step that ran without a result is not returned again: the next execution continues it. A step
    of which all executions were disturbed before is returned.

    Args:
        run: the run.
        group: jobs of one mode.
        figures: reads the figures of finished steps; None if the plan has no search.
        say: called with one line when a search ends, or when a step cannot run.

    Attributes:
        run: the run with the decisions so far.
    """

    def __init__(
        self, run: Run, group: Group, figures: FigureReader | None, say: Callable[[str], None]
    ) -> None:
        if run.plan.searches and figures is None:
            raise bad_input("plan.json", "searches", "no reader of figures", "a reader of figures")
        self.run, self._group, self._figures, self._say = run, group, figures, say
        steps: list[Step] = []
        for job in group.jobs:
            steps += job.steps
        ids = {step.id for step in steps}
        ended = read_decisions(run.files).searches
        self._searches = [
            search
            for search in run.plan.searches
            if search.id not in ended and ids.issuperset(search.steps())
        ]
        self._read: dict[str, Figures] = {}
        self._given: set[str] = set()
        self._later = {step.id for step in steps if step.reads}
        for search in self._searches:
            self._later.update(search.steps())
        self._due = {step.id for step in steps if needs_execution(run.files, step)}
        self._first = True

    def jobs(self) -> list[Job]:
        """Return the parts of the jobs with the steps that can run now and were not returned yet.

        Raises:
            BadInput: a decision cannot be written, or an output cannot be read.
        """
        if not (self._first or self._searches or self._later - self._given):
            return []
        candidates = self._first_or_later()
        held = set(self._decided())
        held |= set(self._unwritten(candidates))
        ready: list[Job] = []
        for job, steps in candidates:
            chosen = [
                step
                for step in steps
                if step.id not in held and step.id not in self.run.plan.not_needed
            ]
            if chosen:
                self._given.update(step.id for step in chosen)
                ready.append(job.model_copy(update={"steps": chosen}))
        return ready

    def _first_or_later(self) -> list[tuple[Job, list[Step]]]:
        """Return the steps that a job had to run and that were not returned yet, by job."""
        first, self._first = self._first, False
        return [
            (
                job,
                [
                    step
                    for step in job.steps
                    if step.id not in self._given
                    and (first or step.id in self._later)
                    and step.id in self._due
                ],
            )
            for job in self._group.jobs
        ]

    def _decided(self) -> Iterator[str]:
        """Yield the steps that no search needs yet. Write why searches ended."""
        for search in list(self._searches):
            candidates = available(search, self.run.plan.repeated)
            decision = decide(candidates, self._figures_of(candidates))
            rest = [step for step in candidates.steps() if step not in decision.needed]
            if not decision.ended:
                yield from rest
                continue
            self._searches.remove(search)
            self._say(f"{search.id}: {decision.ended}")
            self._add(
                searches={search.id: decision.ended}, not_needed=dict.fromkeys(rest, decision.ended)
            )

    def _figures_of(self, search: Search) -> Figures:
        """Return the figures of the finished steps; each new set of them is read once."""
        finished = [step for step in search.steps() if has_result(self.run.files.step(step))]
        if {*self._read.get(search.id, {})} != {*finished}:
            assert self._figures is not None
            self._read[search.id] = self._figures(self.run, search, finished)
        return self._read.get(search.id, {})

    def _unwritten(self, candidates: Sequence[tuple[Job, list[Step]]]) -> Iterator[str]:
        """Yield the steps whose files are not written yet. Write which will not be written."""
        not_run: dict[str, Message] = {}
        not_needed: dict[str, Message] = {}
        found = []
        for _, steps in candidates:
            found += [step for step in steps if step.reads]
        for step in found:
            if why := self.run.plan.not_needed.get(step.reads):
                not_needed[step.id] = Message("same-files", step=step.reads, text=why)
            elif not has_result(self.run.files.step(step.reads)):
                yield step.id
            elif problem := write_problem(self.run, step.reads):
                failed = Message("writer-failed", step=step.reads, problem=problem)
                not_run[step.id] = failed
        for name, reason in not_run.items():
            self._say(f"{name}: {reason}")
        if not_run or not_needed:
            self._add(not_run=not_run, not_needed=not_needed)

    def _add(
        self,
        *,
        searches: Mapping[str, Message] | None = None,
        not_needed: Mapping[str, Message] | None = None,
        not_run: Mapping[str, Message] | None = None,
    ) -> None:
        add_decisions(self.run.files, searches=searches, not_needed=not_needed, not_run=not_run)
        self.run = with_decisions(self.run)


def write_problem(run: Run, step: str) -> str:
    """Return why the files of a finished step are not complete; empty if they are.

    The newest execution wrote them.
    """
    finished = attempts(run.files.step(step).folder)
    if not finished:
        return "has no result"
    newest = finished[-1]
    if newest.timed_out:
        return f"timed out after {newest.seconds:.0f} s"
    return f"ended with exit code {newest.rc}" if newest.rc else ""
