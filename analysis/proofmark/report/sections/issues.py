"""Issues of a run: failures, findings, changed error counters, steps that did not run.

The comparison of like nodes finds slow nodes, populations of nodes, and single values.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import chain

from proofmark.cases.vocabulary import BLAS_KERNEL
from proofmark.common.files import is_regular
from proofmark.common.grouping import gathered
from proofmark.common.message import Message, localized
from proofmark.common.nodesets import folded, hosts_of, hosts_of_nodes
from proofmark.common.text import one_line
from proofmark.common.translation import N_, _, translated
from proofmark.judge.ending import named_nodes, named_steps, of_like_nodes
from proofmark.judge.results import Result
from proofmark.judge.verdict import Verdict
from proofmark.plan.kinds import kind_of
from proofmark.plan.step import StepInstance
from proofmark.records.columns import EMULATED, Execution, Record
from proofmark.report.page import (
    LONGEST_LIST,
    Block,
    Cell,
    Cells,
    PageLink,
    Section,
    listed,
    numeric,
    tabled,
)
from proofmark.report.run_data import RunData
from proofmark.report.sections.figure_tables import (
    figure_cell,
    median_text,
    verdict_cell,
)
from proofmark.report.words import count, number, pairs
from proofmark.runs.attempts import numbered_execution
from proofmark.site.partition import Partition, untried


def added_executions(run_data: RunData) -> Iterator[Block]:
    """Yield the nodes that something disturbs mostly, and the executions that a site added."""
    verdict = run_data.verdict
    if verdict.executions.disturbed:
        found = of_like_nodes((each.node, each.message) for each in verdict.executions.disturbed)
        nodes = (f"{folded(hosts)}: {localized(why)}" for why, hosts in found.items())
        yield listed(_("Nodes that are disturbed mostly"), nodes)
    if verdict.conditions.replaced:
        caption = _("Values of the inventory that options replaced")
        yield listed(caption, map(localized, verdict.conditions.replaced))
    if verdict.executions.added:
        why = _(
            "These steps were run again although they had a sound execution. All executions count, "
            "and a figure fails if the planned ones alone fail."
        )
        caption = _("Executions that were added to the plan")
        yield listed(caption, _added(verdict), why)


def _added(verdict: Verdict) -> Iterator[str]:
    """Yield a line for all steps of which as many executions were planned and added."""
    found = verdict.executions.added
    groups = gathered(((each.planned, each.added), each.step) for each in found)
    for (planned, added), steps in groups.items():
        yield _("{step}: {planned} planned, {added} added").format(
            step=named_steps(steps), planned=planned, added=added
        )


def output_links(run_data: RunData, record: Record) -> tuple[PageLink, ...]:
    """Return links to the outputs of the execution that measured `record`.

    If the outputs have no figures, it is the file with the states of the nodes.
    """
    files = run_data.run.files
    if not kind_of(run_data.run.plan).has_figures:
        return (PageLink(files.link(files.node_states), files.node_states.name),)
    execution = numbered_execution(files.step(record.step), record.attempt)
    outputs = (execution.stdout, execution.stderr)
    return tuple(PageLink(files.link(path), path.name) for path in outputs if is_regular(path))


NOT_RUN = {
    "waiting": N_("never started"),
    "running": N_("still running when the report was written"),
    "interrupted": N_("started, but stopped before its end"),
    "done": N_("ran, but its output contains no value"),
}
NO_COPY = N_("the copy of its output is missing in the run")
REST = N_("The complete list is in verdict.json.")


def section(run_data: RunData) -> Section:
    """Return the issues of a run, the most serious first."""
    blocks = [
        *_failures(run_data),
        *chain.from_iterable(each.issues() for each in run_data.additions),
        *_crashes(run_data),
        *added_executions(run_data),
        *_before_jobs(run_data),
        *_stated(run_data.verdict),
        *fleet_blocks(run_data),
        *_not_run(run_data),
        *_counters(run_data, invalid=True),
    ]
    none = Block(paragraphs=(_("None."),))
    return Section("attention", _("Issues"), tuple(blocks) or (none,))


def observations(run_data: RunData) -> Iterator[Section]:
    """Yield the section with what was noticed and is no issue, if there is anything."""
    blocks = [
        *_other_modes(run_data),
        *_findings(run_data),
        *(Block(paragraphs=(text,)) for text in other_kernels(run_data)),
        *_counters(run_data, invalid=False),
        *_disturbed_executions(run_data),
        *_disturbances(run_data),
        *_no_provenance(run_data),
    ]
    if text := never_ran(run_data.site.partition):
        blocks.append(Block(paragraphs=(text,)))
    if blocks:
        yield Section("observations", _("Observations"), tuple(blocks))


def never_ran(partition: Partition) -> str:
    """Return which back ends of `partition` never ran with the real thing; empty if all did."""
    names = ", ".join(f"{key}: {name}" for key, name in untried(partition).items())
    text = _("Parts of the kit that never ran with the real thing: {names}")
    return text.format(names=names) if names else ""


def _failures(run_data: RunData) -> Iterator[Block]:
    """Yield FAIL and INVALID results; results of one step with the same reason share a row."""
    groups: dict[tuple[str, str, Message], list[Result]] = {}
    for verdict in ("FAIL", "INVALID"):
        for result in run_data.verdict.of(verdict):
            node = result.record.node
            reason = result.reason.without_nodes({node, *hosts_of(node)})
            # Figures with values of their own have reasons of their own, and so a row each.
            step = StepInstance.parse(result.record.step).step
            groups.setdefault((verdict, step, reason), []).append(result)
    if not groups:
        return
    rows = [_failure(run_data, verdict, results) for (verdict, *_rest), results in groups.items()]
    columns = (
        _("Verdict"),
        _("Figure"),
        _("Node"),
        numeric(_("Median")),
        _("Reason"),
        _("Step"),
    )
    caption = _("Figures that are FAIL or INVALID")
    yield tabled(caption, columns, rows, rest=translated(REST))


def _failure(run_data: RunData, verdict: str, results: Sequence[Result]) -> Cells:
    """Return the row of results of one step with the same reason, on all nodes that have it."""
    first = results[0]
    nodes = dict.fromkeys(result.record.node for result in results)
    several = len(nodes) > 1
    hosts = dict.fromkeys(hosts_of_nodes(nodes))
    reason = first.reason.without_nodes({*nodes, *hosts}) if several else first.reason
    steps = named_steps(dict.fromkeys(result.record.step for result in results))
    return (
        verdict_cell(verdict),
        _figures(run_data, results),
        named_nodes([*hosts]) if several else first.record.node,
        median_text(first) if len(results) == 1 else "–",
        Cell(localized(reason), "reason"),
        Cell(steps, "code", links=output_links(run_data, first.record)),
    )


def _crashes(run_data: RunData) -> Iterator[Block]:
    """Yield the executions that crashed beside a sound one, and why a site sets them aside."""
    if found := run_data.verdict.executions.crashes:
        caption = _("Executions that crashed beside a sound one")
        columns = (_("Node"), _("Crashes"), _("Set aside, because"))
        groups = gathered((each.set_aside, (each.node, each.message)) for each in found)
        rows = []
        for why, crashes in groups.items():
            rows += [
                (named_nodes(hosts), Cell(localized(message), "reason"), one_line(why) or "–")
                for message, hosts in of_like_nodes(crashes).items()
            ]
        yield tabled(caption, columns, rows, rest=translated(REST))


def _before_jobs(run_data: RunData) -> Iterator[Block]:
    """Yield what failed in the stages that start no job: modes, scratch, programs, restore."""
    if faults := run_data.verdict.conditions.stage_faults:
        caption = _("Failures outside the jobs")
        columns = (_("Stage"), _("Nodes"), _("Code"), _("Reason"))
        rows = [(each.stage, each.nodes, Cell(each.code, "code"), each.text) for each in faults]
        yield tabled(caption, columns, rows, rest=translated(REST))


def _stated(verdict: Verdict) -> Iterator[Block]:
    """Yield what the verdict states in messages."""
    why = _(
        "A limit of the contract for a planned figure, and each required metric of the suite, must "
        "be judged on each class of nodes. These were not judged, so the run is not accepted."
    )
    stopped = _("Jobs that ended before all of their steps, or ran without a node")
    for caption, messages, *reason in (
        (_("File systems that failed"), [each.message for each in verdict.storage.file_systems]),
        (_("Required, but not judged"), verdict.unmet, why),
        (_("Missed, but excused"), verdict.excused),
        (stopped, verdict.coverage.stopped),
    ):
        if messages:
            yield listed(caption, map(localized, messages), *reason)


def _figures(run_data: RunData, results: Sequence[Result]) -> Cell:
    if len(results) == 1:
        return figure_cell(results[0], run_data.benchmarks)
    records = [result.record for result in results]
    benchmarks = dict.fromkeys(record.benchmark for record in records)
    metrics = dict.fromkeys(record.metric for record in records)
    return Cell(
        f"{', '.join(dict.fromkeys(each.case for each in records))}: "
        f"{count(len(results), 'figure')}",
        "strong",
        details=(_some(benchmarks), _some(metrics)),
    )


def _some(names: Collection[str]) -> str:
    more = _(" and {count} more").format(count=len(names) - 8) if len(names) > 8 else ""
    return ", ".join([*names][:8]) + more


def _other_modes(run_data: RunData) -> Iterator[Block]:
    if not_run := run_data.verdict.coverage.not_run:
        caption = _("Steps for other firmware modes")
        why = _("These steps need a mode that is entered only if a reboot is confirmed.")
        modes = gathered((each.mode, each.step) for each in not_run)
        text = _("mode {mode}: {count}, {steps}")
        items = (
            text.format(mode=mode, count=count(len(steps), "step"), steps=named_steps(steps))
            for mode, steps in modes.items()
        )
        yield listed(caption, items, why)


def _not_run(run_data: RunData) -> Iterator[Block]:
    missing = {each.step for each in run_data.verdict.coverage.missing}
    states = [state for state in run_data.states if state.step.id in missing]
    if not states:
        return
    many = len(states) > LONGEST_LIST
    groups = gathered(
        ((each.step.case if many else StepInstance.parse(each.step.id).step, each.state), each.step)
        for each in states
    )
    rows = []
    for (_name, why), members in groups.items():
        hosts = dict.fromkeys(chain.from_iterable(step.nodes for step in members))
        steps = named_steps(step.id for step in members)
        rows.append((Cell(steps, "code"), folded(hosts), translated(NOT_RUN.get(why, NO_COPY))))
    caption = _("Steps that were not run")
    again = _("To run them, repeat the command that started the run.")
    columns = (_("Step"), _("Nodes"), _("State"))
    yield tabled(caption, columns, rows, again, rest=_("The complete list is in plan.json."))


def _findings(run_data: RunData) -> Iterator[Block]:
    software = run_data.software
    found: dict[str, list[str]] = {}
    for package, provided in software.packages.items() if software else ():
        for finding in provided.findings:
            found.setdefault(localized(finding), []).append(package)
    if found:
        lines = [f"{', '.join(packages)}: {text}" for text, packages in found.items()]
        yield listed(_("Findings about the software"), lines)


def _counters(run_data: RunData, *, invalid: bool) -> Iterator[Block]:
    """Yield the changed counters that make figures INVALID, or the others."""
    rows = []
    for node in run_data.nodes:
        for job in node.jobs:
            rows += [
                (
                    verdict_cell("INVALID") if invalid else Cell(_("information")),
                    Cell(localized(change.meaning), "strong"),
                    node.host,
                    Cell(change.name, "code"),
                    change.place or "–",
                    change.before,
                    change.after,
                )
                for change in job.provenance.changes
                if change.invalid == invalid
            ]
    if not rows:
        return
    columns = (
        _("Effect"),
        _("Meaning"),
        _("Node"),
        _("Counter"),
        _("Place"),
        numeric(_("Before")),
        numeric(_("After")),
    )
    caption = _("Error counters that changed while the benchmarks ran")
    effect = _("INVALID: figures that were measured on this node at that time are not valid.")
    why = (effect,) if invalid else ()
    yield tabled(caption, columns, rows, *why, rest=_("The complete list is in nodes/."))


def _disturbed_executions(run_data: RunData) -> Iterator[Block]:
    executions = run_data.verdict.results.aggregates.records.executions
    cases = {state.step.id: state.step.case for state in run_data.states}
    groups: dict[tuple[str, ...], list[Execution]] = {}
    for each in executions:
        if reason := each.disturbed or each.unsteady:
            case = cases.get(each.step, StepInstance.parse(each.step).step)
            groups.setdefault((case, *reason.codes), []).append(each)
    if not groups:
        return
    emulated = run_data.site.partition.origin == EMULATED
    effect = (
        _("The nodes are emulated: these executions are valid.")
        if emulated
        else _("These executions do not count if another execution of the step was undisturbed.")
    )
    lines = map(_of_one_cause, groups.values())
    yield listed(_("Disturbed executions"), lines, effect)


def _of_one_cause(found: Sequence[Execution]) -> str:
    """Return the executions of a case that one cause disturbed: one by its number, else all."""
    first, text = found[0], _("{step}, execution {execution}: {reason}")
    reason = localized(first.disturbed or first.unsteady)
    if len(found) == 1:
        return text.format(step=first.step, execution=first.attempt, reason=reason)
    several = _("{executions} of {steps}; the first: {reason}")
    steps = named_steps(dict.fromkeys(each.step for each in found))
    amount = count(len(found), "disturbed execution")
    return several.format(executions=amount, steps=steps, reason=reason)


def _disturbances(run_data: RunData) -> Iterator[Block]:
    jobs = chain.from_iterable(node.jobs for node in run_data.nodes)
    every = dict.fromkeys(chain.from_iterable(job.provenance.disturbances for job in jobs))
    if every:
        yield listed(_("Nodes that were not idle"), map(localized, every))


def _no_provenance(run_data: RunData) -> Iterator[Block]:
    planned = run_data.run.plan.nodes()
    gap = len(planned) - len(run_data.nodes)
    if gap > 0:
        missing = _("{missing} of {nodes} without provenance in nodes/.").format(
            missing=gap, nodes=count(len(planned), "node")
        )
        yield Block(titles=(_("Nodes without provenance"),), paragraphs=(missing,))


_POPULATIONS = ("pairs-populations", "nodes-populations")


def fleet_blocks(run_data: RunData) -> Iterator[Block]:
    """Yield one line for the populations of a case, and one for each node with single values."""
    fleet = run_data.verdict.fleet
    apart = gathered(
        (_what(figure.record), figure)
        for figure in fleet.figures
        if figure.apart or figure.fleet_limit.powerless.code in _POPULATIONS
    )
    if apart:
        lines = (
            f"{' '.join(what)}, {count(len(figures), 'figure')}: "
            f"{localized(figures[0].apart or figures[0].fleet_limit.powerless)}"
            for what, figures in apart.items()
        )
        yield listed(_("Like nodes that are not one population"), lines)
    spiked = (run_data.verdict.results[place] for place in fleet.spiked.tolist())
    single = gathered(((each.record.node, *_what(each.record)), each) for each in spiked)
    if single:
        yield listed(
            _("Values to measure again: off at single message sizes"),
            (
                f"{' '.join(what)}: {'; '.join(_value(each) for each in of)}"
                for what, of in single.items()
            ),
        )


def _what(record: Record) -> tuple[str, ...]:
    words = (record.case, record.benchmark, record.metric)
    return tuple(dict.fromkeys(filter(None, words)))


def _value(result: Result) -> str:
    record = result.record
    return f"{number(record.value)} {record.unit} ({pairs(record.parameters)})"


def other_kernels(run_data: RunData) -> Iterator[str]:
    """Yield each choice of a BLAS kernel that the output of its program does not confirm."""
    wanted: dict[str, str] = {}
    for package in run_data.software.packages.values() if run_data.software else ():
        blas = next((each.blas for each in package.programs.values() if each.blas), None)
        default = (blas.chosen or blas.built_for or "") if blas else ""
        for choice, environment in package.variants.get(BLAS_KERNEL, {}).items():
            if kernel := ", ".join(environment.values()) or default:
                wanted.setdefault(choice, kernel)
    for choice, kernel in wanted.items():
        names = run_data.kernels.get(choice, ())
        if names and {name.casefold() for name in names} != {kernel.casefold()}:
            printed = _(" and ").join(names)
            yield _("{choice}: {wanted} was wanted, the output reports {printed}.").format(
                choice=choice, wanted=kernel, printed=printed
            )
