"""What somebody has to look at: failures, findings, error counters, steps that did not run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from proofmark.judge.verdict import Result
from proofmark.report import blas_kernels
from proofmark.report.page import TITLED, Block, Cell, Column, Link, Section, table
from proofmark.report.results import figure, measured, word
from proofmark.report.run_data import RunData
from proofmark.report.text import count, folded
from proofmark.runs.progress import StepState

NOT_RUN = {
    "waiting": "never started",
    "running": "still running when the report was written",
    "interrupted": "started, but stopped before its end",
    "done": "ran, but its output gave nothing to read",
}
REST = "All stand in verdict.json."


def section(material: RunData) -> Section:
    """Return what needs attention, the gravest first."""
    blocks = [
        *_failures(material),
        *_retest(material),
        *_not_run(material),
        *_stopped(material),
        *_other_modes(material),
        *_findings(material),
        *blas_kernels.block(material),
        *_counters(material),
        *_disturbances(material),
        *_no_provenance(material),
    ]
    calm = Block(paragraphs=("Nothing: no failure, no finding, no error counter moved.",))
    return Section("attention", "What needs attention", tuple(blocks) or (calm,))


def _failures(material: RunData) -> Iterator[Block]:
    """Yield FAIL and INVALID results; those of one step with one reason are one row."""
    alike: dict[tuple[str, str, str], list[Result]] = {}
    for verdict in ("FAIL", "INVALID"):
        for result in material.verdict.of(verdict):
            key = (verdict, result.record.step, result.reason)
            alike.setdefault(key, []).append(result)
    if not alike:
        return
    rows = [
        (
            word(verdict),
            _figures(material, results),
            results[0].record.node,
            measured(results[0]) if len(results) == 1 else "–",
            Cell(reason, "reason"),
            Cell(step, "code", links=_files(material, step)),
        )
        for (verdict, step, reason), results in alike.items()
    ]
    columns = (
        "Verdict",
        "Figure",
        "Node",
        Column("Median", "number"),
        "Reason",
        "Step",
    )
    caption = "Figures that are FAIL or INVALID"
    yield Block(titles=(caption,), tables=(table(caption, columns, rows, kind=TITLED, rest=REST),))


def _retest(material: RunData) -> Iterator[Block]:
    if command := material.verdict.retest_command():
        again = sum(result.retest for result in material.verdict.of("FAIL"))
        why = (
            f"{count(again, 'figure')} outside the limits by less than the noise. Before they "
            "count against anything, measure again; what is measured then counts beside the first."
        )
        yield Block(
            titles=("Failures to measure again first",), paragraphs=(why,), codes=(command,)
        )


def _figures(material: RunData, results: Sequence[Result]) -> Cell:
    if len(results) == 1:
        return figure(results[0], material.benchmarks)
    records = [result.record for result in results]
    benchmarks = dict.fromkeys(record.benchmark for record in records)
    metrics = dict.fromkeys(record.metric for record in records)
    cases = dict.fromkeys(record.case for record in records)
    return Cell(
        f"{', '.join(cases)}: {count(len(results), 'figure')}",
        "strong",
        details=(_some(benchmarks), _some(metrics)),
    )


def _some(names: Iterable[str], most: int = 8) -> str:
    found = list(names)
    more = f" and {len(found) - most} more" if len(found) > most else ""
    return ", ".join(found[:most]) + more


def _files(material: RunData, step: str) -> tuple[Link, ...]:
    files = material.run.files
    own = files.step(step)
    return tuple(
        Link(files.link(path), path.name) for path in (own.stdout, own.stderr) if path.is_file()
    )


def _other_modes(material: RunData) -> Iterator[Block]:
    if not_run := material.verdict.coverage.not_run:
        caption = "Steps for other modes of the machine"
        why = "They run in a mode that is entered only when a reboot is confirmed."
        yield Block(titles=(caption,), paragraphs=(why,), items=not_run)


def _not_run(material: RunData) -> Iterator[Block]:
    missing = {line.partition(":")[0] for line in material.verdict.coverage.missing}
    states = [state for state in material.states if state.step.id in missing]
    if not states:
        return
    rows = [(_step(state), folded(state.step.nodes), NOT_RUN[state.state]) for state in states]
    caption = "Steps that were not run"
    again = "The same command that started the run goes on with them."
    block = table(
        caption, ("Step", "Nodes", "What happened"), rows, kind=TITLED, rest="See plan.json."
    )
    yield Block(titles=(caption,), paragraphs=(again,), tables=(block,))


def _stopped(material: RunData) -> Iterator[Block]:
    if stopped := material.verdict.coverage.stopped:
        caption = "Jobs that ended before their steps, or did without a node"
        yield Block(titles=(caption,), items=stopped)


def _step(state: StepState) -> Cell:
    return Cell(state.step.id, "code")


def _findings(material: RunData) -> Iterator[Block]:
    software = material.software
    found = [
        f"{package}: {finding}"
        for package, provided in (software.packages.items() if software else ())
        for finding in provided.findings
    ]
    if found:
        yield Block(titles=("Findings about the software",), items=tuple(found))


def _counters(material: RunData) -> Iterator[Block]:
    rows = [
        (
            word("INVALID") if change.invalid else Cell("information"),
            Cell(change.meaning, "strong"),
            node.host,
            Cell(change.name, "code"),
            change.place or "–",
            change.before,
            change.after,
        )
        for node in material.nodes
        for job in node.jobs
        for change in job.provenance.changes
    ]
    if not rows:
        return
    columns = (
        "Weight",
        "Meaning",
        "Node",
        "Counter",
        "Place",
        Column("Before", "number"),
        Column("After", "number"),
    )
    caption = "Error counters that changed while the benchmarks ran"
    invalid = "INVALID: no figure that was measured meanwhile on this node can be trusted."
    yield Block(
        titles=(caption,),
        paragraphs=(invalid,) if any(row[0].text == "INVALID" for row in rows) else (),
        tables=(table(caption, columns, rows, kind=TITLED, rest="All stand in nodes/."),),
    )


def _disturbances(material: RunData) -> Iterator[Block]:
    found = tuple(
        dict.fromkeys(
            each
            for node in material.nodes
            for job in node.jobs
            for each in job.provenance.disturbances
        )
    )
    if found:
        yield Block(titles=("Nodes that were not idle",), items=found[:200])


def _no_provenance(material: RunData) -> Iterator[Block]:
    named = {host for step in material.run.plan.steps() for host in step.nodes}
    gap = len(named) - len(material.nodes)
    if gap > 0:
        missing = f"{count(gap, 'node')} of {len(named)} left no provenance in nodes/."
        yield Block(titles=("Nodes without provenance",), paragraphs=(missing,))
