"""What limits the meaning of a verdict: what was excused, not run, assumed, or not recorded."""

from __future__ import annotations

from collections.abc import Iterator

from proofmark.common.message import localized
from proofmark.common.nodesets import folded
from proofmark.common.text import one_line
from proofmark.common.translation import N_, _, translated
from proofmark.records.columns import EMULATED
from proofmark.report.page import Block, Cell, Section, titled
from proofmark.report.run_data import RunData
from proofmark.report.sections import disagreements
from proofmark.report.sections.issues import never_ran
from proofmark.report.words import grouped, visible

Row = tuple[str, str, str]
"""The kind of an exception, what it is, and the nodes."""
NOTE, DEGRADED, NOT_RUN, EXCUSED = N_("NOTE"), N_("DEGRADED"), N_("NOT RUN"), N_("EXCUSED")
"""The kinds of exceptions that are no verdict."""


def sections(run_data: RunData) -> tuple[Section, ...]:
    """Return what limits the meaning of a verdict that is signed; nothing without a contract."""
    if not run_data.verdict.contract:
        return ()
    rows = [
        (Cell(translated(kind), "strong"), visible(one_line(text)), visible(where) or "–")
        for kind, text, where in exceptions(run_data)
    ]
    caption = _("What limits this verdict")
    if not rows:
        return ()
    shown = titled(caption, (_("Kind"), _("Exception"), _("Nodes")), rows)
    return (Section("exceptions", caption, (Block(tables=(shown,)),)),)


def exceptions(run_data: RunData) -> Iterator[Row]:
    """Yield what limits the meaning of a verdict beside its next steps."""
    verdict = run_data.verdict
    for excuse in verdict.excused:
        yield EXCUSED, localized(excuse), ""
    if verdict.degraded:
        missing = folded(verdict.degraded.missing)
        label = localized(verdict.degraded.label)
        yield DEGRADED, label, _("without {nodes}").format(nodes=missing)
    yield from _not_run(run_data)
    yield from _stand_ins(run_data)
    yield from _provenance(run_data)
    yield from _noise(run_data)


def _not_run(run_data: RunData) -> Iterator[Row]:
    """Yield the steps of other modes, and the jobs that ended early."""
    coverage = run_data.verdict.coverage
    modes = sorted({each.mode for each in coverage.not_run})
    if modes:
        text = _("{count} steps of the modes {modes}: these modes were not entered")
        listed = ", ".join(modes)
        yield NOT_RUN, text.format(count=len(coverage.not_run), modes=listed), ""
    if coverage.stopped:
        text = _("{count} jobs ended before their last step: {first}")
        first = localized(coverage.stopped[0])
        yield NOT_RUN, text.format(count=len(coverage.stopped), first=first), ""


def _stand_ins(run_data: RunData) -> Iterator[Row]:
    """Yield what stands for the real machine: virtual nodes, emulated figures, assumed facts."""
    partition = run_data.site.partition
    if run_data.run.plan.imported:
        yield NOTE, _("Imported: others produced the outputs, their provenance is missing"), ""
    if partition.origin == EMULATED:
        yield NOTE, _("Emulated: a rehearsal, not a measurement of a machine"), ""
    if partition.host_cpus:
        yield NOTE, _("The CPUs of another machine stand for those of the nodes"), ""
    virtual = [facts.hostname for facts in run_data.facts if facts.virtual]
    if virtual:
        yield NOTE, _("Virtual nodes: another machine decides on their speed"), folded(virtual)
    if text := never_ran(partition):
        yield NOTE, text, ""
    if assumed := run_data.run.plan.assumed:
        text = _("Facts of the hardware without a source: {keys}")
        yield NOTE, text.format(keys=", ".join(assumed)), ""


def _provenance(run_data: RunData) -> Iterator[Row]:
    planned = set()
    for step in run_data.run.plan.steps_to_run():
        planned.update(step.nodes)
    gap = len(planned) - len(run_data.nodes)
    if gap > 0:
        text = _("{count} of {all} nodes without provenance")
        yield NOTE, text.format(count=grouped(gap), all=grouped(len(planned))), ""
    packages = run_data.software.packages if run_data.software else {}
    if not packages:
        yield NOTE, _("The programs were not recorded"), ""
    for name, package in packages.items():
        for finding in package.findings:
            yield NOTE, f"{name}: {localized(finding)}", ""
    for drift in run_data.verdict.bad.drift:
        drifting: list[str] = []
        for _value, members in drift.values:
            drifting += members
        hosts = folded(drifting)
        text = _("The nodes differ in {trait}; most have {usual}")
        yield NOTE, text.format(trait=translated(drift.trait), usual=drift.usual), hosts


def _noise(run_data: RunData) -> Iterator[Row]:
    """Yield how many figures are not judged, and of how many the noise is not known."""
    verdict = run_data.verdict
    if unjudged := verdict.counts["UNJUDGED"]:
        text = _("{count} figures are UNJUDGED: no limit says that they are good enough")
        yield NOTE, text.format(count=grouped(unjudged)), ""
    if single := verdict.results.single_runs:
        text = _("{count} figures were measured once: their noise is not known")
        yield NOTE, text.format(count=grouped(single)), ""
    for each in verdict.executions.disagreements:
        yield NOTE, disagreements.sentence(each, verdict), verdict.results[each.figure].record.node
    executions = verdict.results.aggregates.records.executions
    if disturbed := sum(bool(each.disturbed or each.unsteady) for each in executions):
        text = _("{count} executions were disturbed by other work")
        yield NOTE, text.format(count=grouped(disturbed)), ""
