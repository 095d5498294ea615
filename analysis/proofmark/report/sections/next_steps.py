"""The next steps after a run: each failure with its nodes, the action and its command."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from proofmark.common.nodesets import folded, hosts_of
from proofmark.common.printed_command import SCRIPT, STEP, PrintedCommand, of_run
from proofmark.common.sentences import localized
from proofmark.common.text import one_line
from proofmark.common.translation import _
from proofmark.judge.diagnosis.bad_nodes import BadNode
from proofmark.judge.ending import named
from proofmark.judge.invalid_cause import InvalidCause
from proofmark.judge.verdict import Result
from proofmark.report.page import TITLED, Block, Cell, Column, Section, table
from proofmark.report.run_data import RunData
from proofmark.report.sections.figure_tables import verdict_cell
from proofmark.report.sections.remedies import of_failure, of_invalid, of_node
from proofmark.runs.asked import acceptance_command, inventory_part, not_in, restore_command
from proofmark.runs.stage_faults import RESTORES

MOST_STEPS = 8
"""The largest number of steps that a command names."""
LONGEST_REASON = 240
"""Characters of a reason; the table of issues has the whole reason."""
"""Stands for the name of the node in a reason."""
FAIL, INVALID, OPEN = "FAIL", "INVALID", "UNJUDGED"


@dataclass(frozen=True)
class NextStep:
    """One group of problems with the same next step.

    Attributes:
        word: the verdict of its figures, one of the four words.
        problem: what failed.
        nodes: where, as a node set; empty if it is not about nodes.
        action: the next step, as a sentence.
        command: the command that measures again; empty if there is none.
        figures: the number of figures with the problem; 0 for a problem without figures.
    """

    word: str
    problem: str
    nodes: str
    action: str
    command: str = ""
    figures: int = 0


def next_steps(run_data: RunData) -> tuple[NextStep, ...]:
    """Return the next steps, one for each group of problems: first those of the bad nodes."""
    nodes = sorted(_of_nodes(run_data), key=lambda each: -each.figures)
    return (*nodes, *other_next_steps(run_data))


def other_next_steps(run_data: RunData) -> tuple[NextStep, ...]:
    """Return the next steps that are not about bad nodes, the most serious verdict first.

    Of several groups with the same verdict, the one with the most figures comes first.
    """
    failed = sorted(
        (*_of_fabric(run_data), *_of_storage(run_data), *_failed(run_data)),
        key=lambda each: -each.figures,
    )
    invalid = sorted(_invalid(run_data), key=lambda each: -each.figures)
    before = _before_jobs(run_data)
    return (*before, *failed, *invalid, *_not_measured(run_data), *_not_judged(run_data))


def same_command(run_data: RunData, **more: str) -> PrintedCommand:
    """Return the command of the acceptance of this run, with the extra variables `more`."""
    return acceptance_command(run_data.run, run_data.site, **more)


def rerun_command(run_data: RunData, steps: Iterable[str]) -> str:
    """Return the commands that run `steps` again and judge; empty if it cannot name them.

    The steps of an imported run cannot run again.
    If there are too many steps of single nodes, the whole steps are named: all nodes of them
    measure again.
    """
    if run_data.run.plan.imported:
        return ""
    fixed = {step.id for step in run_data.run.plan.steps() if step.reads or step.kept}
    named = list(dict.fromkeys(step for step in steps if step.partition("/")[0] not in fixed))
    if len(named) > MOST_STEPS:
        named = list(dict.fromkeys(step.partition("/")[0] for step in named))
    if not named or len(named) > MOST_STEPS:
        return ""
    run = of_run(f"runs/{run_data.run.id}", SCRIPT, "RUN")
    again = (of_run(step, STEP, "STEP") for step in named)
    report = PrintedCommand("proofmark", "report", run, "--summary")
    return f"{PrintedCommand('proofmark', 'rerun', run, *again)}\n{report}"


def _of_nodes(run_data: RunData) -> Iterator[NextStep]:
    """Yield the bad nodes, grouped by problem and next step."""
    groups: dict[tuple[str, str], list[BadNode]] = {}
    for node in run_data.verdict.bad.nodes:
        groups.setdefault(of_node(node), []).append(node)
    for (problem, action), nodes in groups.items():
        results = [result for node in nodes for result in _results(node)]
        steps = [step for result in results if result.rerun_helps for step in result.steps]
        where = folded(node.host for node in nodes)
        command = rerun_command(run_data, steps)
        yield NextStep(FAIL, problem, where, action, command, len(results) or len(nodes))


def _results(node: BadNode) -> list[Result]:
    return [*node.digits, *(slow.result for slow in node.slow)]


def _of_fabric(run_data: RunData) -> Iterator[NextStep]:
    """Yield the slow elements of the fabric, then the slow links without such an element."""
    fit, bad = run_data.verdict.links, run_data.verdict.bad
    for element in fit.elements if fit else ():
        problem = _("{name} is slow: {ratio} of the usual rate").format(
            name=element.name, ratio=f"{element.ratio:.0%}"
        )
        action = _(
            "Check its cables and ports, and the error counters of the switch. Then measure again."
        )
        yield NextStep(FAIL, problem, element.nodes, action, "", element.slow)
    if bad.links:
        steps = [step for _pair, slow in bad.links for step in slow.result.steps]
        yield NextStep(
            FAIL,
            _("Links between nodes that are not bad are slow"),
            folded({host for pair, _slow in bad.links for host in hosts_of(pair)}),
            _("Check the cables and the routes between these nodes. Then measure again."),
            rerun_command(run_data, steps),
            len(bad.links),
        )


def _of_storage(run_data: RunData) -> Iterator[NextStep]:
    verdict = run_data.verdict
    for target in verdict.targets:
        steps = [step for result in target.results for step in result.steps]
        action = _("Check the disks and the server of this storage target. Then measure again.")
        command = rerun_command(run_data, steps)
        yield NextStep(FAIL, localized(target.message), "", action, command, len(target.results))
    for fault in verdict.file_systems:
        problem = f"{fault.folder}: {localized(fault.problem)}"
        action = _("Check {cause}. Then measure again.").format(cause=localized(fault.likely))
        yield NextStep(FAIL, problem, folded(fault.nodes), action, same_command(run_data))


def _failed(run_data: RunData) -> Iterator[NextStep]:
    """Yield the FAIL figures that neither a node, a link nor a storage target explains."""
    explained = _explained(run_data)
    groups: dict[tuple[str, str], list[Result]] = {}
    for result in run_data.verdict.of(FAIL):
        if (result.record.step, result.record.node) not in explained:
            groups.setdefault(of_failure(result), []).append(result)
    for (problem, action), results in groups.items():
        yield _group(run_data, FAIL, problem, action, results)


def _explained(run_data: RunData) -> set[tuple[str, str]]:
    """Return step and node of the FAIL figures that have a next step already."""
    verdict, fit = run_data.verdict, run_data.verdict.links
    shown = [result for node in verdict.bad.nodes for result in _results(node)]
    shown += [slow.result for _pair, slow in verdict.bad.links]
    shown += [result for target in verdict.targets for result in target.results]
    by_pair = {pair for element in fit.elements for pair in element.pairs} if fit else set()
    slow = {(result.record.step, result.record.node) for result in shown}
    return slow | {
        (result.record.step, result.record.node)
        for result in (verdict.of(FAIL) if by_pair else ())
        if result.record.node in by_pair
    }


def _invalid(run_data: RunData) -> Iterator[NextStep]:
    """Yield the INVALID figures by case, reason and next step; the disturbed ones are one group."""
    groups: dict[tuple[str, str], list[Result]] = {}
    disturbed: list[Result] = []
    for result in run_data.verdict.of(INVALID):
        cause = result.cause or InvalidCause.OTHER
        if cause is InvalidCause.DISTURBED:
            disturbed.append(result)
            continue
        key = (f"{result.record.case}: {_short(_without_node(result))}", of_invalid(cause))
        groups.setdefault(key, []).append(result)
    if disturbed:
        yield _disturbed(run_data, disturbed)
    for (problem, action), results in groups.items():
        yield _group(run_data, INVALID, problem, action, results)


def _disturbed(run_data: RunData, results: Sequence[Result]) -> NextStep:
    """Return the next step of the disturbed figures: the command that repeats their steps."""
    problem = _("Figures of {cases} were disturbed by {processes}").format(
        cases=", ".join(dict.fromkeys(result.record.case for result in results)),
        processes=named(run_data.verdict.results.disturbers()),
    )
    hosts = folded({host for result in results for host in hosts_of(result.record.node)})
    command = same_command(run_data)
    action = of_invalid(InvalidCause.DISTURBED)
    return NextStep(INVALID, _short(problem), hosts, action, command, len(results))


def _without_node(result: Result) -> str:
    """Return the reason with ``the node`` for its name, so that like nodes share a group."""
    names = {result.record.node, *hosts_of(result.record.node)}
    return localized(result.reason.without_nodes(names))


def _short(text: str) -> str:
    line = one_line(text)
    return line if len(line) <= LONGEST_REASON else f"{line[: LONGEST_REASON - 1]}…"


def _group(
    run_data: RunData, word: str, problem: str, action: str, results: Sequence[Result]
) -> NextStep:
    hosts = {host for result in results for host in hosts_of(result.record.node)}
    steps = (step for result in results if result.rerun_helps for step in result.steps)
    command = rerun_command(run_data, steps)
    if any(each.cause is InvalidCause.BINDING for each in results):
        command = PrintedCommand("proofmark", "init", inventory_part(run_data.site), "--diff")
    return NextStep(word, problem, folded(hosts), action, command, len(results))


def _before_jobs(run_data: RunData) -> Iterator[NextStep]:
    """Yield what failed in the stages that start no job."""
    for fault in run_data.verdict.stage_faults:
        problem = f"{fault.stage}: {fault.code}: {_short(fault.text)}"
        if fault.stage in RESTORES:
            action = _("Solve the cause on these nodes. Then restore them.")
            command = restore_command(run_data.run, run_data.site)
            yield NextStep(FAIL, problem, fault.nodes, action, command)
        elif (fault.stage, fault.code) == ("collect", "CHANGED"):
            action = _("Find out what changed the file. Its sealed content counts in this run.")
            fresh = same_command(run_data, fresh="true")
            yield NextStep(INVALID, problem, fault.nodes, action, fresh)
        elif (fault.stage, fault.code) == ("waive", "OUTDATED"):
            action = _("Waive the item for this evidence, or leave it as it was judged.")
            yield NextStep(INVALID, problem, fault.nodes, action)
        else:
            action = _("Solve the cause on these nodes. Then run the same command again.")
            yield NextStep(INVALID, problem, fault.nodes, action, same_command(run_data))


def _not_measured(run_data: RunData) -> Iterator[NextStep]:
    coverage = run_data.verdict.coverage
    if gap := coverage.expected - coverage.measured:
        problem = _("{count} of {all} steps were not measured").format(
            count=gap, all=coverage.expected
        )
        if run_data.run.plan.imported:
            action = _("Ask for the missing outputs, then adopt the complete folder.")
            yield NextStep(INVALID, problem, "", action)
        else:
            action = _("Run the same command again. It measures the missing steps.")
            yield NextStep(INVALID, problem, "", action, same_command(run_data))
    if coverage.duplicate:
        problem = _("{count} figures were measured twice by one step").format(
            count=coverage.duplicate
        )
        action = _("Read the output of the step: it has the same row twice.")
        yield NextStep(INVALID, problem, "", action)


def _not_judged(run_data: RunData) -> Iterator[NextStep]:
    verdict = run_data.verdict
    if not verdict.unmet:
        return
    problem = _("{count} requirements were not judged: {first}").format(
        count=len(verdict.unmet), first=_short(localized(verdict.unmet[0]))
    )
    if keys := ", ".join(verdict.missing_keys):
        action = _("Add {keys} to the facts of the partition, then start a new run.").format(
            keys=keys
        )
        command: str = same_command(run_data, fresh="true")
    else:
        action = _("Read the reasons below. Add the limits that are missing to the partition.")
        command = ""
    yield NextStep(OPEN, problem, "", action, command)


MOST_SHOWN = 20
"""The largest number of groups of problems that the section shows."""


def sections(run_data: RunData) -> tuple[Section, ...]:
    """Return the section; nothing for a run without FAIL, INVALID and open requirements."""
    steps = next_steps(run_data)
    if not steps:
        return ()
    title = _("What to do now")
    rows = [
        (
            verdict_cell(step.word),
            Cell(step.problem, "strong", _figures(step.figures)),
            Cell(step.nodes or "–"),
            Cell(step.action, "reason"),
            Cell(step.command or "–", "code commands" if step.command else ""),
        )
        for step in steps[:MOST_SHOWN]
    ]
    columns = tuple(
        Column(name) for name in (_("Verdict"), _("Problem"), _("Nodes"), _("Next step"))
    )
    built = table(title, (*columns, Column(_("Commands"))), rows, kind=TITLED)
    more = len(steps) - MOST_SHOWN
    notes = []
    if more > 0:
        notes.append(_("{count} more groups of problems: see Issues.").format(count=more))
    if any(step.command for step in steps) and (missing := not_in(same_command(run_data))):
        notes.append(localized(missing))
    block = Block(tables=(built,), paragraphs=tuple(notes))
    return (Section("next", title, (block,)),)


def _figures(count: int) -> tuple[str, ...]:
    if not count:
        return ()
    return (_("{count} figures").format(count=count) if count > 1 else _("1 figure"),)
