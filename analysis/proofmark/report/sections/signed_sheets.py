"""The sheets that the parties sign: the next steps, what limits the verdict, and the signatures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from proofmark.common.files import is_regular, sha256_of
from proofmark.common.message import localized
from proofmark.common.nodesets import folded
from proofmark.common.printed_command import SCRIPT, STEP, PrintedCommand, of_run
from proofmark.common.text import one_line
from proofmark.common.translation import N_, _, translated
from proofmark.judge import next_steps as advice
from proofmark.judge.next_steps import NextStep
from proofmark.judge.results import Again
from proofmark.records.columns import EMULATED
from proofmark.report.page import Block, Cell, Section, Table, titled
from proofmark.report.run_data import RunData
from proofmark.report.sections.figure_tables import verdict_cell
from proofmark.report.sections.issues import never_ran
from proofmark.report.words import count, grouped, visible
from proofmark.runs.play_variables import (
    acceptance_command,
    inventory_part,
    not_in,
    restore_command,
)
from proofmark.runs.run_files import RunFiles
from proofmark.site.contract_document import Contract


def signatures(run_data: RunData, products: RunFiles) -> tuple[Section, ...]:
    """Return the section; nothing without a contract, because there is nothing to accept."""
    contract = run_data.site.contract
    if not run_data.verdict.contract or contract is None:
        return ()
    declaration = _(
        "The parties have read the verdict {word}, the items and what limits it on these pages. "
        "The full report and all outputs are in the run {run}."
    ).format(word=translated(run_data.verdict.headline().word), run=run_data.run.id)
    files, seal, software = run_data.run.files, run_data.run.seal, run_data.software
    written = (products.verdict, products.records)
    rows = (
        *(((seal.archive, seal.digest),) if seal else ()),
        *((products.link(path), sha256_of(path)) for path in written if is_regular(path)),
        *((files.link(path), sha256_of(path)) for path in (files.plan, files.site)),
        (_("Steps of the plan"), run_data.run.plan.digest),
        (_("Programs"), software.environment_hash if software else _("not recorded")),
    )
    caption = _("Digests (SHA-256)")
    cells = [(name, Cell(digest, "code")) for name, digest in rows]
    tables = (signature_table(contract), titled(caption, (_("File"), "SHA-256"), cells))
    block = Block(paragraphs=(declaration,), tables=tables)
    return (Section("signatures", _("Signatures"), (block,)),)


def signature_table(contract: Contract) -> Table:
    """Return a row for each party of a contract, with room for its signature."""
    rows = [
        (Cell(visible(name), "strong", details=(visible(role),)), "", "", "")
        for role, name in contract.parties.items()
    ]
    columns = (_("Party"), _("Name"), _("Place, date"), _("Signature"))
    return titled(_("Signatures"), columns, rows)


MOST_SHOWN = 20
"""The largest number of groups of problems that the section shows."""


def next_steps(run_data: RunData) -> tuple[NextStep, ...]:
    """Return the next steps as the page prints them, with a full stop and the command."""
    steps = advice.next_steps(run_data.verdict)
    return tuple(
        replace(step, action=f"{step.action}.", command=_command(step, run_data)) for step in steps
    )


def next_step_section(run_data: RunData) -> tuple[Section, ...]:
    """Return the section; nothing for a run without FAIL, INVALID and open requirements."""
    steps = next_steps(run_data)
    if not steps:
        return ()
    title = _("What to do now")
    rows = [
        (
            verdict_cell(step.word),
            Cell(step.problem, "strong", _figures(step.figures)),
            step.nodes or "–",
            Cell(step.action, "reason"),
            Cell(step.command or "–", "code commands" if step.command else ""),
        )
        for step in steps[:MOST_SHOWN]
    ]
    columns = (_("Verdict"), _("Problem"), _("Nodes"), _("Next step"), _("Commands"))
    built = titled(title, columns, rows)
    more = len(steps) - MOST_SHOWN
    notes = []
    if more > 0:
        notes.append(_("{count} more groups of problems: see Issues.").format(count=more))
    if any(step.command for step in steps) and (
        missing := not_in(acceptance_command(run_data.run, run_data.site))
    ):
        notes.append(localized(missing))
    block = Block(tables=(built,), paragraphs=tuple(notes))
    return (Section("next", title, (block,)),)


def _figures(figures: int) -> tuple[str, ...]:
    return (count(figures, "figure"),) if figures else ()


def _command(step: NextStep, run_data: RunData) -> str:
    run, site = run_data.run, run_data.site
    if not run.executed:
        return ""
    if step.again is Again.RERUN:
        again = run_data.verdict.rerun(step.steps)
        folder = of_run(f"runs/{run.id}", SCRIPT, "RUN")
        words = [of_run(name, STEP, "STEP") for name in again]
        report = PrintedCommand("proofmark", "report", folder)
        return f"{PrintedCommand('proofmark', 'rerun', folder, *words)}\n{report}" if again else ""
    others: Mapping[Again, Callable[[], str]] = {
        Again.NOTHING: str,
        Again.CONTINUE: lambda: acceptance_command(run, site),
        Again.FRESH: lambda: acceptance_command(run, site, fresh="true"),
        Again.REPEATS: lambda: acceptance_command(
            run, site, fresh="true", repeats=f"{run_data.verdict.results.repeats_needed}"
        ),
        Again.RESTORE: lambda: restore_command(run, site),
        Again.COMPARE: lambda: PrintedCommand("proofmark", "init", inventory_part(site), "--diff"),
    }
    return others[step.again]()


Row = tuple[str, str, str]
"""The kind of an exception, what it is, and the nodes."""
NOTE, DEGRADED, NOT_RUN, EXCUSED = N_("NOTE"), N_("DEGRADED"), N_("NOT RUN"), N_("EXCUSED")
"""The kinds of exceptions that are no verdict."""


def exception_section(run_data: RunData) -> tuple[Section, ...]:
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
    coverage = verdict.coverage
    modes = sorted({each.mode for each in coverage.not_run})
    if modes:
        text = _("Steps of modes that were not entered ({modes}): {count}")
        listed = ", ".join(modes)
        yield NOT_RUN, text.format(count=len(coverage.not_run), modes=listed), ""
    if coverage.stopped:
        text = _("Jobs that ended before their last step, {count}: {first}")
        first = localized(coverage.stopped[0])
        yield NOT_RUN, text.format(count=len(coverage.stopped), first=first), ""
    partition = run_data.site.partition
    of_kind = verdict.of_kind
    if of_kind and of_kind.note:
        yield NOTE, localized(of_kind.note), ""
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
    yield from _provenance(run_data)
    yield from _noise(run_data)


def _provenance(run_data: RunData) -> Iterator[Row]:
    planned = run_data.run.plan.nodes_to_run()
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
        yield NOTE, localized(drift.message), drift.hosts


def _noise(run_data: RunData) -> Iterator[Row]:
    """Yield how many figures are not judged, and of how many the noise is not known."""
    verdict = run_data.verdict
    if unjudged := verdict.counts["UNJUDGED"]:
        text = _("UNJUDGED figures, as no limit says that they are good enough: {count}")
        yield NOTE, text.format(count=grouped(unjudged)), ""
    if single := verdict.results.single_runs:
        text = _("Figures that were measured once, with unknown noise: {count}")
        yield NOTE, text.format(count=grouped(single)), ""
    executions = verdict.results.aggregates.records.executions
    if disturbed := sum(bool(each.disturbed or each.unsteady) for each in executions):
        text = _("Executions that other work disturbed: {count}")
        yield NOTE, text.format(count=grouped(disturbed)), ""
