"""Reads what shows why the jobs of a stability run failed, from the folder of the run."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import chain

from proofmark.common.files import paths_in, text_or_empty
from proofmark.packages.stability.job_causes import JobEnd, NodeShown, Shown, cause_of
from proofmark.records.read import read_run
from proofmark.records.run_facts import RunParts
from proofmark.runs.attempts import Attempt, attempts, files_reports
from proofmark.runs.nodes import Node, nodes_of
from proofmark.runs.run import Run, benchmarks_of, site_of
from proofmark.runs.run_files import StepFiles
from proofmark.runs.stability_log import BLIND_S, JobRun, Look, looks_at
from proofmark.software.software import software_of

Reasons = Mapping[tuple[str, int], set[str]]
"""The codes why executions are INVALID, by the step and the number of the execution."""


def causes_of(run: Run, jobs: Sequence[JobRun]) -> list[JobEnd | None]:
    """Return why each of `jobs` did not finish.

    None for those that finished, that have not ended, and that the kit withdrew.
    """
    return endings_of(run, jobs)[0]


def endings_of(run: Run, jobs: Sequence[JobRun]) -> tuple[list[JobEnd | None], dict[str, set[str]]]:
    """Return the result of `causes_of`, and the nodes whose hardware failed, by the id of the job.

    The scheduler may not have noticed it: the kernel or a counter of the node shows it.
    """
    if not jobs:
        return [], {}
    faulty: dict[str, set[str]] = {}
    looks, nodes = looks_at(run.files), nodes_of(run)
    reasons = _reasons(run, nodes, {each.job.steps[0].id for each in jobs})
    following: dict[str, float] = {}
    found: list[JobEnd | None] = []
    for each in reversed(jobs):
        until = following.get(each.job.id, float("inf"))
        following[each.job.id] = each.submitted
        shown = _shown(run, each, until, reasons, nodes)
        if shown.faulty:
            faulty.setdefault(each.job.id, set()).update(shown.faulty)
        found.append(cause_of(each, shown, node_down=bool(nodes_lost(each, looks))))
    return found[::-1], faulty


def _reasons(run: Run, nodes: Mapping[str, Node], steps: Collection[str]) -> Reasons:
    parts = RunParts(run, benchmarks_of(run), site_of(run), software_of(run), nodes)
    records = read_run(parts, steps)
    codes: dict[tuple[str, int], set[str]] = {}
    for execution, reason in zip(records.execution.tolist(), records.reason.tolist(), strict=True):
        if reason >= 0:
            made = records.executions[execution]
            key = made.step, made.attempt
            codes.setdefault(key, set()).add(records.reasons[reason].main_code)
    return codes


def _shown(
    run: Run, each: JobRun, until: float, reasons: Reasons, nodes: Mapping[str, Node]
) -> Shown:
    """Return what the newest execution of a submission shows; it began before `until`."""
    step = each.job.steps[0].id
    folder = run.files.step(step).folder
    own = [one for one in attempts(folder) if each.submitted - 1 <= one.start_s < until]
    places = [own[-1].files] if own else [*map(StepFiles, paths_in(folder, "unfinished-*"))]
    outputs = chain.from_iterable((place.stdout, place.stderr) for place in places)
    said = map(text_or_empty, [*outputs, run.files.job(each.job.id).messages])
    if not own:
        return Shown("\n".join(said))
    reports = files_reports(run.files, step, own[-1]).values()
    return Shown(
        "\n".join(said),
        nodes={
            host: _node_shown(nodes[host], step, own[-1])
            for host in each.job.nodes
            if host in nodes
        },
        program=each.job.steps[0].program,
        files=any(report.problem for report in reports),
        code=own[-1].rc,
        timed_out=own[-1].timed_out,
        reasons=reasons.get((step, own[-1].number), ()),
    )


def _node_shown(node: Node, step: str, execution: Attempt) -> NodeShown:
    kernel, counters = list[str](), set[str]()
    for job in node.jobs:
        if job.covers(step, execution):
            kernel += job.provenance.kernel
            rose = (change for change in job.provenance.changes if change.difference)
            counters |= {change.meaning.code for change in rose}
    return NodeShown(kernel, counters)


def nodes_lost(each: JobRun, looks: Sequence[Look]) -> set[str]:
    """Return the nodes of a job that went down while it ran, or until the first look after it.

    The kit cancels jobs when it stops itself, so that it may not look again for days: after such a
    job only a look that follows soon counts.
    """
    if not each.started <= each.ended:
        return set()
    before = [look for look in looks if look.time <= each.started]
    during = [look for look in looks if each.started < look.time < each.ended]
    late = each.ended + BLIND_S if each.withdrawn else float("inf")
    after = [look for look in looks if each.ended <= look.time <= late]
    later = set(chain.from_iterable(look.down for look in (*during, *after[:1])))
    return (later - (before[-1].down.keys() if before else set())) & {*each.job.nodes}
