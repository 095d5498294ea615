"""What a run will start, where, with which settings: the summary of a plan, and its scripts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from proofmark.cases.suite import Benchmarks
from proofmark.cli.command_inputs import packages_of_kit
from proofmark.cli.output import table_text
from proofmark.cli.plan_notes import NoteKind, plan_notes
from proofmark.cli.plan_summary import cost_line
from proofmark.common.kit import kit_folder
from proofmark.common.nodesets import folded
from proofmark.common.printed_command import setting
from proofmark.common.text import duration, one_line
from proofmark.jobs.job_request import site_mistakes
from proofmark.jobs.scripts import RUN_ID, Preview, Scripts, shown
from proofmark.jobs.step_script import environment_of_step, package_of_step
from proofmark.judge.foreseen import ACCEPT, Unjudged, refusing, unjudged_of
from proofmark.plan.lacking import available_at, in_words, lacking
from proofmark.plan.plan import Plan, Step
from proofmark.plan.totals import JobTime, job_times, mode_lines
from proofmark.runs.cost_history import MeasuredCost, measured_cost
from proofmark.runs.run import Run, benchmarks_of, reported_names, site_of
from proofmark.runs.run_files import WorkFiles, launch_command
from proofmark.runs.work_folder import planned_work
from proofmark.site.inventory import Site
from proofmark.site.machines import Machine
from proofmark.software.provision import planned_software
from proofmark.software.software import Software, software_of

MOST_LINES = 6
"""The largest number of lines of one kind in a summary."""
MOST_ROWS = 16
"""The largest number of rows for jobs in a summary."""


class Foreseen(NamedTuple):
    """What else is known before a run: the probe of the machine, the baseline, further lines."""

    probe: str = ""
    baseline: str | None = None
    lines: Sequence[str] = ()


NOTHING_FORESEEN = Foreseen()


@dataclass(frozen=True)
class Planned:
    """A plan with what a run of it would write into the folder `runs`."""

    site: Site
    plan: Plan
    benchmarks: Benchmarks
    machines: Callable[[str], Machine]
    runs: Path
    foreseen: Foreseen = NOTHING_FORESEEN

    @cached_property
    def preview(self) -> Preview:
        """The scripts of the run."""
        site, (software, _) = self.site, self._programs
        measured = self._cost.seconds
        scripts = Scripts.of(site.partition, software, site.aliases, self.benchmarks, measured)
        return Preview(self.plan, scripts, planned_work(self.runs.resolve() / RUN_ID, site))

    @cached_property
    def _cost(self) -> MeasuredCost:
        return measured_cost(self.plan, self.runs)

    @cached_property
    def _times(self) -> dict[str, JobTime]:
        """The expected and the requested time of each job, by id of the job."""
        queue = self.site.partition.queue
        return {each.job.id: each for each in job_times(self.plan, queue, self._cost.seconds)}

    @cached_property
    def _programs(self) -> tuple[Software, list[str]]:
        return planned_software(kit_folder(), self.site, self.plan)

    def summary(self, most: int = MOST_LINES) -> list[str]:
        """Return the lines of one screen, at most `most` of a kind."""
        plan, site = self.plan, self.site
        longest = max(self._times.values(), key=lambda each: each.requested_s)
        unjudged = self._unjudged()
        notes: dict[NoteKind, list[str]] = {kind: [] for kind in NoteKind}
        for note in plan_notes(plan, self.benchmarks, site, self.machines, self.foreseen.probe):
            notes[note.kind].append(note.text)
        kinds: Mapping[str, Sequence[str]] = {
            "": [*mode_lines(plan, site.partition), *notes[NoteKind.LIMIT]],
            "unjudged": [str(each.message) for each in unjudged],
            "a run is refused": [
                *([f"without {setting(ACCEPT)}"] if refusing(unjudged) else []),
                *self._refusals(),
            ],
            "left out": plan.left_out,
            NoteKind.LOST: notes[NoteKind.LOST],
            "degraded": [
                f"{case}: fewer than the {intended:,} nodes of the whole partition"
                for case, intended in plan.fewer_nodes.items()
            ],
            "assumed": [f"{fact}: {why}" for fact, why in plan.assumed.items()],
            NoteKind.UNKNOWN: [*notes[NoteKind.UNKNOWN], *self._programs[1]],
            NoteKind.UNJUDGED: notes[NoteKind.UNJUDGED],
            NoteKind.DOUBT: notes[NoteKind.DOUBT],
            " ": self.foreseen.lines,
        }
        headers = ("mode", "jobs", "nodes of a job", "steps", "expected", "requested wall time")
        lines: list[str] = []
        for kind, texts in kinds.items():
            lines += _few(kind, texts, most)
        return [
            f"site: {plan.site}",
            f"{cost_line(plan)}; digest: {plan.digest[:12]}",
            *_history(plan, self._cost),
            *table_text(headers, [*self._job_rows()], None).splitlines(),
            f"longest job: {longest.job.id}, {_job_text(longest)}",
            *notes[NoteKind.OF_KIND],
            *lines,
        ]

    def step(self, step: Step) -> list[str]:
        """Return the lines of one step: its job, launch lines, environment and inputs."""
        found = self.preview
        job = next(job for job in found.jobs if step in job.steps)
        texts = found.step(step)
        script = found.job(job).get(f"jobs/{job.id}/job.sh", found.refused.get(job.id, ""))
        variables = environment_of_step(step, package_of_step(step, self._programs[0]))
        parts = {
            f"job {job.id}: {_job_text(self._times[job.id])}": script.partition("\nRUN=")[0],
            **{f"{name}: launch": launch_command(text) for name, text in texts.items()},
            "environment": "\n".join(f"{key}={value}" for key, value in variables.items()),
            **{name: texts[f"steps/{step.id}/{name}"] for name in step.inputs},
        }
        ranks = f"ranks: {step.ranks}, threads: {step.threads}, placement: {step.placement or '–'}"
        times = f"expected {duration(step.wall_s)}, limit {duration(step.timeout)}"
        return [
            f"{step.id}: nodes: {folded(step.nodes)}, {ranks}, {times}",
            *(f"\n== {name}\n{shown(text).rstrip()}" for name, text in parts.items() if text),
        ]

    def _unjudged(self) -> Sequence[Unjudged]:
        probe, baseline, _ = self.foreseen
        return unjudged_of(self.plan, self.benchmarks, self.site, self.machines, probe, baseline)

    def _refusals(self) -> Iterator[str]:
        """Yield why a run would be refused."""
        plan, site = self.plan, self.site
        available, wrong = available_at(site, packages_of_kit)
        yield from (f"{replace(each, file=f'{site.facts}')}" for each in wrong)
        for each in site_mistakes(site, [plan]):
            yield f"{each.key}: {each.found}"
        if lacks := in_words(lacking(plan.packages(), available)):
            yield f"{site.partition.provision_from!r} lacks {lacks}"
        yield from (f"job {job}: {why}" for job, why in self.preview.refused.items())

    def _job_rows(self) -> Iterator[tuple[str, ...]]:
        """Yield a row for the jobs of a mode on as many nodes, or for all jobs of a mode."""
        rows: dict[tuple[str, int], list[JobTime]] = {}
        several = len({(each.mode, len(each.job.nodes)) for each in self._times.values()})
        for each in self._times.values():
            nodes = len(each.job.nodes) if several <= MOST_ROWS else 0
            rows.setdefault((each.mode, nodes), []).append(each)
        for (mode, _), times in rows.items():
            yield (
                *(mode, str(len(times)), _span((len(each.job.nodes) for each in times), str)),
                str(sum(len(each.job.steps) for each in times)),
                _span((each.expected_s for each in times), duration),
                _span((each.requested_s for each in times), duration),
            )


def _job_text(time: JobTime) -> str:
    return (
        f"nodes: {len(time.job.nodes)}, steps: {len(time.job.steps)}, "
        f"expected {duration(time.expected_s)}, requested {duration(time.requested_s)}"
    )


def unwritten(run: Run, step: Step) -> str:
    """Return the script that runs the program of `step` of `run`; empty if it has none."""
    site, programs = site_of(run), software_of(run)
    if run.imported:
        return ""
    if step.package not in programs.packages:
        programs, _ = planned_software(kit_folder(), site, run.plan)
    names = reported_names(run, site)
    made = Scripts.of(site.partition, programs, names, benchmarks_of(run), {})
    texts, files = made.of_step(run.id, step), WorkFiles(Path()).step(step.id)
    return shown(texts.get(f"{files.node_script}", texts[f"{files.script}"]))


def _span(numbers: Iterable[float], text: Callable[[float], str]) -> str:
    ordered = sorted(numbers)
    return " to ".join(dict.fromkeys((text(ordered[0]), text(ordered[-1]))))


def _few(kind: str, texts: Sequence[str], most: int) -> Iterator[str]:
    """Yield the first lines of a kind, and how many more there are."""
    begin = f"{kind}: " if kind.strip() else ""
    yield from (f"{begin}{one_line(text)}" for text in texts[:most])
    if len(texts) > most:
        yield f"{begin}and {len(texts) - most} more"


def _history(plan: Plan, cost: MeasuredCost) -> Iterator[str]:
    """Yield the cost from the durations of earlier runs, if there are any."""
    if cost.steps:
        yield (
            f"{cost.steps} of {plan.totals.steps} steps have durations from {cost.runs} earlier "
            f"runs: with their medians {cost.node_hours:.2f} node-hours, about "
            f"{duration(cost.wall_s)}"
        )
