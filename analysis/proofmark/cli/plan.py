"""The command ``plan``: what a run will start, and what is known of it before."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from proofmark.cases.suite import Benchmarks
from proofmark.cases.vocabulary import RAIL
from proofmark.cli.inputs import (
    doubts,
    inventory_of,
    kit_benchmarks,
    only_nodes,
    packages_of_kit,
    place,
    plan_of,
    prefixes,
)
from proofmark.cli.output import print_json, print_line, print_table, print_text, table_text
from proofmark.common.errors import (
    NodeFailure,
    NothingToRun,
    bad_input,
    note_failed_nodes,
    refuse,
)
from proofmark.common.kit import kit_folder, result_folder
from proofmark.common.nodesets import fold, folded
from proofmark.common.printed_command import setting
from proofmark.common.progress_lines import say
from proofmark.common.text import counted, duration, one_line, size
from proofmark.jobs.job_request import job_mistakes, site_mistakes
from proofmark.jobs.scripts import RUN_ID, Preview, Scripts, shown
from proofmark.jobs.step_script import environment_of_step, package_of_step
from proofmark.judge.foreseen import (
    ACCEPT,
    Unjudged,
    refusals,
    refusing,
    unjudged_of,
)
from proofmark.machine.node_commands import run_text, step_programs
from proofmark.machine.preflight import refuse_unseen
from proofmark.machine.scheduler import present
from proofmark.plan.kinds import kind_of
from proofmark.plan.lacking import available_at, in_words, lacking
from proofmark.plan.plan import Plan, Step, step_named
from proofmark.plan.totals import JobTime, idle_cores, job_times, mode_lines
from proofmark.plan.validation import refuse_wrong_facts, without_figures
from proofmark.runs.play_variables import play_variable_names, write_play_variables
from proofmark.runs.progress import due_nodes
from proofmark.runs.run import LATEST, Run
from proofmark.runs.run_files import launch_command, planned_work
from proofmark.runs.start import Copied, RunInputs, start_or_continue
from proofmark.site.accepted_baseline import ACCEPTED, chosen_baseline
from proofmark.site.execution import MPIS_OF_LAUNCHER
from proofmark.site.inventory import Site, load_site, load_sites
from proofmark.site.machines import Machine
from proofmark.site.node.probe_text import unread_lines
from proofmark.software.provider import check_provider
from proofmark.software.provision import planned_software
from proofmark.software.software import Software

UNKNOWN, UNJUDGED = "not known", "not judged"
DOUBT = "note"
"""A warning, or cores that stay idle."""
OF_KIND = "kind"
"""What the kind of the run needs, and its risks."""
LIMIT = "limit"
"""A limit of the site that judges no figure of the plan, and what other sites accepted."""


def plan_notes(
    made: Plan,
    benchmarks: Benchmarks,
    site: Site,
    machines: Callable[[str], Machine],
    probe: str = "",
) -> dict[str, list[str]]:
    """Return unknown facts, doubts, idle cores and limits without a figure, each by its kind.

    Args:
        probe: the output of the probe of a node; empty if the hardware is declared.
    """
    kind, launcher = kind_of(made), site.partition.launch.launcher
    rails = launcher not in MPIS_OF_LAUNCHER and any(RAIL in s.parameters for s in made.steps())
    judged = kind.judged(made)
    return {
        UNKNOWN: unread_lines(machines(site.partition.current_mode).unread),
        DOUBT: [*doubts(site, benchmarks), *idle_cores(made, machines)],
        UNJUDGED: [f"one rail alone, unless {RAILS_KNOWN}"] * rails,
        OF_KIND: [*kind.notes(made, [*site.items.values()])],
        LIMIT: [*without_figures(judged, benchmarks, site, machines)],
    }


def note_lines(notes: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yield each note; its kind stands before it if it does not state this itself."""
    for kind, texts in notes.items():
        begin = f"{kind}: " if kind in (UNKNOWN, UNJUDGED) else ""
        yield from (f"{begin}{text}" for text in texts)


RAILS_KNOWN = "the MPI of the programs is Open MPI, MPICH, MVAPICH or Intel MPI"
"""The condition under which a program can be limited to one rail (``site/data/rails.yml``)."""


def plan_summary(plan: Plan, hosts: Collection[str] = ()) -> dict[str, Any]:
    """Return suite, number of nodes, modes, packages and cost of `plan`.

    Returns:
        `suite`; `partition`; `nodes`, their number; `node_set`, their names; `modes` in the order
        of the plan; `packages` of the steps, as the cases name them; `step_packages`, the Debian
        packages that the scripts of the steps need on a node; `cost`, one line;
        `nodes_arrive`: whether nodes join the run; then `only`, the names of `hosts`.

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
        "nodes_arrive": kind_of(plan).nodes_arrive,
        "only": ",".join(fold(hosts)) if kind_of(plan).nodes_arrive else "",
    }


def cost_line(plan: Plan) -> str:
    """Return one line with the numbers of jobs and steps, the time and the bytes of `plan`."""
    totals = plan.totals
    return (
        f"suite: {plan.suite}, partition: {plan.partition}, "
        f"jobs: {totals.jobs}, steps: {totals.steps}, "
        f"time: about {duration(totals.wall_s)}, node-hours: {totals.node_hours:.2f}, "
        f"written to scratch: {size(totals.bytes)}, "
        f"at most {size(totals.scratch_peak_bytes)} at one time"
    )


def unjudged_lines(unjudged: Sequence[Unjudged]) -> Iterator[str]:
    """Yield a line for each figure that will stay unjudged, and whether a run is refused."""
    for each in unjudged:
        yield f"unjudged: {each.message}"
    if refusing(unjudged):
        yield f"refused without {setting(ACCEPT)}"


def _job(time: JobTime) -> dict[str, Any]:
    """Return a job for JSON: its mode, id, numbers of nodes and steps, and its times in seconds."""
    counts = {"nodes": len(time.job.nodes), "steps": len(time.job.steps)}
    times = {"expected_s": round(time.expected_s, 1), "requested_s": time.requested_s}
    return {"mode": time.mode, "job": time.job.id, **counts, **times}


def print_steps(made: Plan) -> None:
    """Print the steps of a plan as a table."""
    headers = ("mode", "job", "nodes", "step", "ranks", "threads", "placement", "duration", "limit")
    rows = []
    for group in made.groups:
        for job in group.jobs:
            nodes = folded(job.nodes)
            for step in job.steps:
                ranks = str(step.ranks) if step.cpus else "–"
                rows.append(
                    (
                        *(group.mode, job.id, nodes, step.id, ranks),
                        *(str(step.threads), step.placement or "–", duration(step.seconds)),
                        duration(step.timeout),
                    )
                )
    print_table(headers, rows)


REACH_S = 60.0
"""The time in which a node must answer, in seconds."""


def plan(options: Namespace) -> int:
    """Print what a run will start, and how long; write its scripts, or create the run."""
    benchmarks = kit_benchmarks()
    overrides = {
        "provision_from": options.provision_from,
        "scratch_dir": options.scratch_dir,
        "reservation": options.reservation,
    }
    from proofmark.cli.check import site_checks  # it imports all plug-ins

    inventory, checks = inventory_of(options), site_checks(kit_folder())
    runs = result_folder(kit_folder(), "runs", options.runs)
    if not options.create:
        sites = [
            only_nodes(site, options.only)
            for site in load_sites(inventory, options.limit, overrides)
        ]
        for site in sites:
            refuse_wrong_facts(site, benchmarks, checks)
        if options.json:
            _print_json(options, benchmarks, sites)
        else:
            _print(options, benchmarks, sites, runs)
        return 0
    site = only_nodes(load_site(inventory, options.limit, overrides), options.only)
    refuse_wrong_facts(site, benchmarks, checks)
    check_provider(site.partition.provision_from, prefixes(options))
    made, machines, probe = plan_of(options, benchmarks, site)
    refuse(replace(each, file=f"{site.facts}") for each in job_mistakes(site, [made]))
    unjudged = unjudged_of(made, benchmarks, site, machines, probe, options.baseline)
    refuse(() if options.accept_unjudged else refusals(unjudged, site))
    refuse_unseen(site, runs)
    site, baseline = with_baseline(site, options.baseline)
    run, continued = start_or_continue(
        runs,
        RunInputs(made, benchmarks, site, probe),
        Copied(baseline=baseline),
        run_id=options.run_id,
        fresh=options.fresh,
        link="" if options.no_link else LATEST,
    )
    if not continued:
        given = {name: getattr(options, name) for name in play_variable_names()}
        write_play_variables(run, {name: str(value) for name, value in given.items() if value})
    notes = plan_notes(made, benchmarks, site, machines, probe)
    for line in (*note_lines(notes), *unjudged_lines(unjudged)):
        say(line)
    print_json(
        {
            **plan_summary(run.plan, site.hosts),
            **_representative(run, site),
            "run": run.id,
            "folder": str(run.folder),
            "continued": continued,
            "digest": made.digest,
        }
    )
    return 0


def _print_json(options: Namespace, benchmarks: Benchmarks, sites: Sequence[Site]) -> None:
    """Print the plans that can run, one for each partition, with their notes.

    stderr has the notes too, because a playbook prints stderr.

    Raises:
        BadInput: a site lacks programs of the suite.
    """
    texts = []
    for site in sites:
        made, machines, probe = plan_of(options, benchmarks, site)
        notes = [*note_lines(plan_notes(made, benchmarks, site, machines, probe))]
        notes += place(site, options)
        unjudged = unjudged_of(made, benchmarks, site, machines, probe, options.baseline)
        texts.append(
            {
                **made.model_dump(mode="json"),
                "summary": plan_summary(made),
                "jobs": [_job(job) for job in job_times(made, site.partition.queue)],
                "unjudged": [one.as_json() for one in unjudged],
                "notes": notes,
            }
        )
        for line in (*notes, *unjudged_lines(unjudged)):
            say(line)
    print_json(texts[0] if len(texts) == 1 else {"partitions": texts})


def _print(options: Namespace, benchmarks: Benchmarks, sites: Sequence[Site], runs: Path) -> None:
    """Print the plans with the reasons why a run would be refused; write the scripts into -o."""
    if options.output and options.output.exists() and any(options.output.iterdir()):
        raise bad_input("--output", "", f"{options.output}, with files", "a new or empty folder")
    totals = []
    for site in sites:
        try:
            made, machines, probe = plan_of(options, benchmarks, site, shown=True)
        except NothingToRun as error:
            if len(sites) == 1:
                raise
            for each in error.mistakes:
                print_line(f"no step: {site.partition_name}: {each.accepted}")
            continue
        totals.append(made.totals)
        planned = Planned(
            site=site,
            plan=made,
            benchmarks=benchmarks,
            machines=machines,
            runs=runs,
            probe=probe,
            baseline=options.baseline,
            lines=[*place(site, options)],
        )
        if options.step:
            lines = planned.step(step_named(options.step, made.steps()))
        else:
            if options.verbose:
                print_steps(made)
            lines = planned.summary(sys.maxsize if options.verbose else MOST_LINES)
        if options.output:
            folder = options.output / (site.partition_name if len(sites) > 1 else "")
            planned.preview.write(folder)
            lines.append(f"scripts and inputs: {folder}")
        if options.reach:
            nodes = dict.fromkeys([min(site.hosts), *made.nodes()])  # playbooks run on the first
            _, failed = run_text(site, [*nodes], "exit 0\n", timeout_s=REACH_S)
            reasons = {node: NodeFailure(why.text, why.outcome) for node, why in failed.items()}
            note_failed_nodes(reasons)
            lines += [f"not reached: {folded(failed)}"] if failed else []
        print_text("\n".join(lines))
    if len(totals) > 1:
        hours = sum(each.node_hours for each in totals)
        print_line(
            f"{len(totals)} partitions: {counted(sum(each.jobs for each in totals), 'job')}, "
            f"{counted(sum(each.steps for each in totals), 'step')}, {hours:.2f} node-hours; "
            "one run per partition"
        )


def with_baseline(site: Site, name: str | None) -> tuple[Site, Path | None]:
    """Return the site, with the option if it replaces the accepted baseline, and the baseline."""
    chosen, usual = (
        chosen_baseline(site.inventory, site.partition_name, each) for each in (name, None)
    )
    if not usual or not name or chosen == usual:
        return site, chosen
    replaced = {**site.replaced, "baseline": (ACCEPTED, name)}
    return site.model_copy(update={"replaced": replaced}), chosen


def _representative(run: Run, site: Site) -> dict[str, str]:
    """Return a node that is up, one with waiting steps first; nothing if no nodes arrive."""
    if not kind_of(run.plan).nodes_arrive:
        return {}
    up = present(run, site, list(dict.fromkeys([*due_nodes(run), *site.hosts])))
    return {"representative": up[0] if up else ""}


MOST_LINES = 6
"""The largest number of lines of one kind in a summary."""
MOST_ROWS = 16
"""The largest number of rows for jobs in a summary."""


@dataclass(frozen=True)
class Planned:
    """A plan with what a run of it would write into the folder `runs`.

    Attributes:
        probe: of the machine; empty if its hardware is declared.
        baseline: the name of the accepted runs to compare with; None: the usual one.
        lines: what else is known before the run.
    """

    site: Site
    plan: Plan
    benchmarks: Benchmarks
    machines: Callable[[str], Machine]
    runs: Path
    probe: str = ""
    baseline: str | None = None
    lines: Sequence[str] = ()

    @cached_property
    def preview(self) -> Preview:
        """The scripts of the run."""
        site, (software, _) = self.site, self._programs
        scripts = Scripts.of(site.partition, software, site.aliases, self.benchmarks)
        return Preview(self.plan, scripts, planned_work(self.runs.resolve() / RUN_ID, site))

    @cached_property
    def _times(self) -> dict[str, JobTime]:
        """The expected and the requested time of each job, by id of the job."""
        queue = self.site.partition.queue
        return {each.job.id: each for each in job_times(self.plan, queue)}

    @cached_property
    def _programs(self) -> tuple[Software, list[str]]:
        return planned_software(kit_folder(), self.site, self.plan)

    def summary(self, most: int = MOST_LINES) -> list[str]:
        """Return the lines of one screen, at most `most` of a kind."""
        plan, site = self.plan, self.site
        longest = max(self._times.values(), key=lambda each: each.requested_s)
        asked = (plan, self.benchmarks, site, self.machines, self.probe)
        notes, unjudged = plan_notes(*asked), unjudged_of(*asked, self.baseline)
        kinds: Mapping[str, Sequence[str]] = {
            "": [*mode_lines(plan, site.partition), *notes[LIMIT]],
            "unjudged": [str(each.message) for each in unjudged],
            "a run is refused": [
                *([f"without {setting(ACCEPT)}"] if refusing(unjudged) else []),
                *self._refusals(),
            ],
            "left out": plan.left_out,
            "degraded": [
                f"{case}: fewer than the {intended:,} nodes of the whole partition"
                for case, intended in plan.fewer_nodes.items()
            ],
            "assumed": [f"{fact}: {why}" for fact, why in plan.assumed.items()],
            UNKNOWN: [*notes[UNKNOWN], *self._programs[1]],
            UNJUDGED: notes[UNJUDGED],
            DOUBT: notes[DOUBT],
            " ": self.lines,
        }
        headers = ("mode", "jobs", "nodes of a job", "steps", "expected", "requested wall time")
        lines: list[str] = []
        for kind, texts in kinds.items():
            lines += _few(kind, texts, most)
        return [
            f"site: {plan.site}",
            f"{cost_line(plan)}; digest: {plan.digest[:12]}",
            *table_text(headers, [*self._job_rows()], None).splitlines(),
            f"longest job: {longest.job.id}, {_job_text(longest)}",
            *notes[OF_KIND],
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


def _span(numbers: Iterable[float], text: Callable[[float], str]) -> str:
    ordered = sorted(numbers)
    return " to ".join(dict.fromkeys((text(ordered[0]), text(ordered[-1]))))


def _few(kind: str, texts: Sequence[str], most: int) -> Iterator[str]:
    """Yield the first lines of a kind, and how many more there are."""
    begin = f"{kind}: " if kind.strip() else ""
    yield from (f"{begin}{one_line(text)}" for text in texts[:most])
    if len(texts) > most:
        yield f"{begin}and {len(texts) - most} more"
