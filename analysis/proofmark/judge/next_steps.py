"""What to do after a run: the one list that the terminal and the page print."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import get_args

from proofmark.common.grouping import gathered
from proofmark.common.message import Message, joined, localized
from proofmark.common.nodesets import folded, hosts_of, hosts_of_nodes
from proofmark.common.text import one_line
from proofmark.common.translation import _, translated
from proofmark.judge.diagnosis.bad_nodes import BadNode
from proofmark.judge.results import CONFIRMING, WORDS, Again, InvalidCause, Result
from proofmark.judge.verdict import NODES_AGAIN, Verdict
from proofmark.runs.samples import Shares, disturbers
from proofmark.runs.stage_faults import NOT_PROBED, RESTORES
from proofmark.site.installed_parts import By

LONGEST_REASON = 160
"""Characters of a reason in a line; the report has the whole reason."""
FAIL, INVALID, OPEN = "FAIL", "INVALID", "UNJUDGED"
NOTHING_JUDGED = 4
"""The exit code of a verdict without a requirement that is open, and without a judged figure."""
MISSING = frozenset(f"hardware-{by}" for by in get_args(By))
"""The codes of faults of nodes with less hardware than stated."""
SAME_MACHINE = "same-machine"
SAME_OUTPUT = frozenset({"case", "nodes"})
"""The fields of a fault of several nodes with one output: no part of a node is broken."""


@dataclass(frozen=True)
class NextStep:
    """One group of problems with the same next step.

    Attributes:
        word: the verdict of its figures, one of the four words.
        action: the next step, as sentences without the last full stop.
        figures: the number of figures with the problem; 0 for a problem without figures.
    """

    word: str
    problem: str
    nodes: str
    action: str
    again: Again = Again.NOTHING
    steps: tuple[str, ...] = ()
    figures: int = 0
    cause: InvalidCause | None = None
    command: str = ""


def next_steps(verdict: Verdict) -> tuple[NextStep, ...]:
    """Return the next steps, one for each group of problems: first those of the bad nodes."""
    return (*_of_nodes(verdict), *other_next_steps(verdict))


def other_next_steps(verdict: Verdict) -> tuple[NextStep, ...]:
    """Return the next steps that are not about bad nodes, the most serious verdict first.

    Of several groups with the same verdict, the one with the most figures comes first.
    """
    failed = sorted(
        (*_of_fabric(verdict), *_of_storage(verdict), *_failed(verdict)),
        key=lambda each: -each.figures,
    )
    before = of_stages(verdict)
    invalid = invalid_steps(verdict)
    left = *_not_measured(verdict), *_measure_again(verdict), *_apart(verdict)
    return (*before, *failed, *invalid, *left, *_not_judged(verdict))


def invalid_steps(verdict: Verdict) -> list[NextStep]:
    """Return what to do about INVALID figures, by case, reason and cause; disturbed are one group.

    The group with the most figures comes first.
    """
    groups: dict[tuple[str, InvalidCause], list[Result]] = {}
    for result in verdict.of(INVALID):
        cause = result.cause or InvalidCause.OTHER
        problem = f"{result.record.case}: {shortened(_without_node(result))}"
        disturbed = cause is InvalidCause.DISTURBED
        groups.setdefault(("" if disturbed else problem, cause), []).append(result)
    processes = named(verdict.results.disturbers())
    found = []
    for (problem, cause), results in groups.items():
        if cause is InvalidCause.DISTURBED:
            cases = ", ".join(dict.fromkeys(result.record.case for result in results))
            problem = shortened(
                _("Figures of {cases} were disturbed by {processes}").format(
                    cases=cases, processes=processes
                )
            )
        action = translated(cause.text).format(processes=processes)
        found.append(_group(INVALID, problem, action, results, cause.again, cause))
    return sorted(found, key=lambda each: -each.figures)


def measured_again_first(verdict: Verdict) -> tuple[str, ...]:
    """Return the steps of `Verdict.retest` without those of nodes that need a repair first."""
    bad = chain.from_iterable(each.results for each in verdict.bad.nodes if not each.retest)
    after_repair = set(chain.from_iterable(result.steps for result in bad))
    return tuple(step for step in verdict.retest() if step not in after_repair)


def named(shares: Shares) -> str:
    """Return what disturbed a run, each with its share of a CPU."""
    return ", ".join(map(localized, disturbers(shares)))


def node_advice(node: BadNode) -> tuple[str, str]:
    """Return the problem of a bad node, and what to do. Like nodes have the same texts.

    A node that is measured again first has no other fault (`BadNode.retest`).
    """
    cases = ", ".join(dict.fromkeys(slow.result.record.case for slow in node.slow))
    slow = _("Figures of {cases} are outside the limits").format(cases=cases)
    if node.retest:
        return slow, _again()
    parts = ", ".join(dict.fromkeys(each.place for each in node.counters if each.place))
    meanings = ", ".join(
        dict.fromkeys(localized(each.meaning) for each in node.counters if each.invalid)
    )
    missing = [fault for fault in node.known if fault.code in MISSING]
    if missing:
        return (
            _capital(joined(missing)),
            _("Replace the parts that are missing. Measure again after that"),
        )
    if node.loss:
        return (
            _("Its port or its cable loses packets"),
            _("Replace the cable, then the port. Measure again after that"),
        )
    if parts:
        return (
            _("Error counters rose in {parts}").format(parts=parts),
            _("Replace the part in {parts}. Measure again after that").format(parts=parts),
        )
    if any(fault.code == SAME_MACHINE for fault in node.known):
        return (
            _capital(joined(node.known)),
            _("Find out which machine each of these names is. Measure again after that"),
        )
    if any(fault.fields.keys() >= SAME_OUTPUT for fault in node.known):
        return (
            _capital(joined(node.known)),
            _("Ask who measured for the own output of each node"),
        )
    repair = _("Send rma.csv to the vendor. Measure again after the repair")
    if meanings:
        return _("Error counters rose: {meanings}").format(meanings=meanings), repair
    if node.known:
        return _capital(joined(node.known)), repair
    if node.digits:
        return (
            _("It computes other digits than its peers, without an error message"),
            _("Take the node out of service. Test its processors and its memory"),
        )
    if node.slower:
        return slow, _("It became slower during the run: check its cooling and its power")
    if node.causes:
        shared = f"{translated(node.causes[0].trait)} {node.causes[0].value}"
        action = _("The bad nodes share {shared}. Check this first. Measure again after that")
        return slow, action.format(shared=shared)
    return slow, repair


def _capital(message: Message) -> str:
    """Return a message with a capital letter; the name of a node with which it begins is kept."""
    text = localized(message)
    return text if message.begins_with_value else f"{text[:1].upper()}{text[1:]}"


def _again() -> str:
    """Return the next step for failures that too few repeats show."""
    text = _("Measure again before you act: fewer than {number} undisturbed repeats show it")
    return text.format(number=CONFIRMING)


def _failure_advice(result: Result) -> tuple[str, str]:
    """Return the problem of a FAIL figure that no bad node explains, and what to do."""
    record = result.record
    problem = _("{figure} is outside the limits").format(figure=f"{record.case} {record.metric}")
    if result.retest:
        return problem, _again()
    missed = next((each for each in result.references if each.outcome == FAIL), None)
    if missed and missed.kind == "floor" and "blas_kernel" in record.parameters:
        return problem, _("Compare the kernel of the BLAS with the right one in this report")
    return problem, _("Compare the settings in the part Provenance with the required ones")


def _of_nodes(verdict: Verdict) -> Iterator[NextStep]:
    """Yield the bad nodes, grouped by problem and next step: first those with most figures.

    A node with a fault that no figure has counts as one figure for the order.
    """
    groups = gathered((node_advice(node), node) for node in verdict.bad.nodes)
    most = sorted(groups.items(), key=lambda group: -sum(len(n.results) or 1 for n in group[1]))
    for (problem, action), nodes in most:
        results = [*chain.from_iterable(node.results for node in nodes)]
        where = folded(node.host for node in nodes)
        yield NextStep(
            FAIL,
            problem,
            where,
            action,
            again=Again.RERUN,
            steps=_steps(results),
            figures=len(results),
        )


def _of_fabric(verdict: Verdict) -> Iterator[NextStep]:
    """Yield the suspects of added judges, then the slow links that none of them explains."""
    bad = verdict.bad
    for each in verdict.suspects():
        yield NextStep(FAIL, each.problem, each.nodes, each.action, figures=each.figures)
    if bad.links:
        hosts = set(hosts_of_nodes(pair for pair, _slow in bad.links))
        yield NextStep(
            FAIL,
            _("Links between nodes that are not bad are slow"),
            folded(hosts),
            _("Check the cables and the routes between these nodes. Then measure again"),
            again=Again.RERUN,
            steps=_steps((slow.result for _pair, slow in bad.links), every=True),
            figures=len(bad.links),
        )


def _of_storage(verdict: Verdict) -> Iterator[NextStep]:
    for target in verdict.storage.targets:
        action = _("Check the disks and the server of this storage target. Then measure again")
        steps = _steps(target.results, every=True)
        problem, figures = localized(target.message), len(target.results)
        yield NextStep(FAIL, problem, "", action, again=Again.RERUN, steps=steps, figures=figures)
    for fault in verdict.storage.file_systems:
        problem = f"{fault.folder}: {localized(fault.problem)}"
        action = _("Check {cause}. Then measure again").format(cause=localized(fault.likely))
        yield NextStep(FAIL, problem, folded(fault.nodes), action, again=Again.CONTINUE)


def _failed(verdict: Verdict) -> Iterator[NextStep]:
    """Yield the FAIL figures that neither a node, a link nor a storage target explains."""
    explained = _explained(verdict)
    groups = gathered(
        (_failure_advice(result), result)
        for result in verdict.of(FAIL)
        if (result.record.step, result.record.node) not in explained
    )
    for (problem, action), results in groups.items():
        yield _group(FAIL, problem, action, results, Again.RERUN)


def _explained(verdict: Verdict) -> set[tuple[str, str]]:
    """Return step and node of the FAIL figures that have a next step already."""
    shown = [slow.result for _pair, slow in verdict.bad.links]
    shown += chain.from_iterable(node.results for node in verdict.bad.nodes)
    shown += chain.from_iterable(target.results for target in verdict.storage.targets)
    suspected = set(chain.from_iterable(each.measured for each in verdict.suspects()))
    shown += (each for each in verdict.of(FAIL) if each.record.node in suspected)
    return {(result.record.step, result.record.node) for result in shown}


def _without_node(result: Result) -> str:
    """Return the reason with ``the node`` for its name, so that like nodes share a group."""
    names = {result.record.node, *hosts_of(result.record.node)}
    return localized(result.reason.without_nodes(names))


def shortened(text: str) -> str:
    """Return `text` as one printable line, cut at a blank if it is too long."""
    line = one_line(text)
    if len(line) <= LONGEST_REASON:
        return line
    return f"{line[:LONGEST_REASON].rpartition(' ')[0]} {_('(and more)')}"


def _group(
    word: str,
    problem: str,
    action: str,
    results: Sequence[Result],
    again: Again,
    cause: InvalidCause | None = None,
) -> NextStep:
    hosts = folded(set(hosts_of_nodes(result.record.node for result in results)))
    return NextStep(
        word,
        problem,
        hosts,
        action,
        again=again,
        steps=_steps(results),
        figures=len(results),
        cause=cause,
    )


def _steps(results: Iterable[Result], *, every: bool = False) -> tuple[str, ...]:
    """Return the steps of results, without repetition.

    They are those that a further execution can change; with `every` all of them.
    """
    found = (result.steps for result in results if every or result.rerun_helps)
    return tuple(dict.fromkeys(chain.from_iterable(found)))


def of_stages(verdict: Verdict) -> Iterator[NextStep]:
    """Yield what failed in the stages that start no job."""
    for fault in verdict.conditions.stage_faults:
        problem, again = shortened(f"{fault.reason}"), Again.CONTINUE
        action = _("Solve the cause on these nodes. Then run the same command again")
        if fault.stage in RESTORES:
            again = Again.RESTORE
            action = _("Solve the cause on these nodes. Then restore them")
        elif (fault.stage, fault.code) == ("collect", "CHANGED"):
            again = Again.FRESH
            action = _("Find out what changed the file. Its sealed content counts in this run")
        step = NextStep(OPEN, problem, fault.nodes, action, again=again)
        if fault.code == NOT_PROBED and not verdict.coverage.missing:
            left, named = set(hosts_of(fault.nodes)), list[Result]()
            for result in verdict.of(*WORDS):
                if of_it := left & {*hosts_of(result.record.node)}:
                    named.append(result)
                    left -= of_it
            action = _("Run one of their steps again: its first probe shows what they counted")
            step = replace(step, action=action, again=Again.RERUN, steps=_steps(named, every=True))
        yield step


def _not_measured(verdict: Verdict) -> Iterator[NextStep]:
    coverage = verdict.coverage
    if gap := coverage.expected - coverage.measured:
        problem = _("{count} of {all} steps were not measured").format(
            count=gap, all=coverage.expected
        )
        action = _("Run the same command again. It measures the missing steps")
        again = Again.CONTINUE
        if not verdict.conditions.executed:
            action = _("Ask for the missing outputs, then judge the complete folder")
            again = Again.NOTHING
        yield NextStep(INVALID, problem, "", action, again=again)
    if coverage.duplicate:
        problem = _("Figures that one step measured twice: {count}").format(
            count=coverage.duplicate
        )
        action = _("Read the output of the step: it has the same row twice")
        yield NextStep(INVALID, problem, "", action)


def _measure_again(verdict: Verdict) -> Iterator[NextStep]:
    """Yield the nodes whose repeats do not prove that they are slow."""
    if results := verdict.again:
        cases = ", ".join(dict.fromkeys(result.record.case for result in results))
        problem = _("Figures of {cases} are outside the limits").format(cases=cases)
        step = _group(OPEN, problem, "", results, Again.RERUN)
        if not step.steps:  # the planned executions alone stay open
            step = replace(step, again=Again.FRESH)
        action = _("Measure {nodes} again: its repeats do not prove a fault").format(
            nodes=step.nodes
        )
        yield replace(step, action=action)


def _apart(verdict: Verdict) -> Iterator[NextStep]:
    """Yield how like nodes lie apart: more repeats show nothing else."""
    for figure, apart in verdict.fleet.apart.items():
        problem = shortened(f"{figure}: {localized(apart)}")
        action = _("Compare cooling, power, parts, firmware and settings there. Measure after that")
        yield NextStep(OPEN, problem, "", action)


def _not_judged(verdict: Verdict) -> Iterator[NextStep]:
    left = [each for each in verdict.unmet if each.code != NODES_AGAIN]
    if left:
        problem = _("Requirements that were not judged, {count}: {first}").format(
            count=len(left), first=shortened(localized(left[0]))
        )
    elif verdict.again:
        return
    elif verdict.exit_code() == NOTHING_JUDGED and not verdict.conditions.open_stages:
        problem = _capital(verdict.headline().text)
    else:
        return
    action, again = open_advice(verdict)
    yield NextStep(OPEN, problem, "", action, again=again)


def open_advice(verdict: Verdict) -> tuple[str, Again]:
    """Return what to do about figures that must be judged and are not, and the command for it."""
    if keys := ", ".join(verdict.missing_keys):
        action = _("Add {keys} to the facts of the partition, then start a new run")
        return action.format(keys=keys), Again.FRESH
    if repeats := verdict.results.repeats_needed:
        text = _("Start a new run with {count} repeats: the figures are too noisy with fewer")
        return text.format(count=repeats), Again.REPEATS
    codes = {each.code for each in verdict.unmet}
    if "part-unread" in codes:
        return _("Let the probe read these parts of the nodes, then start a new run"), Again.FRESH
    if codes == {"limit-open"}:
        return _("Read the reason: another measurement or limit is needed"), Again.FRESH
    return _("Add items to contract.yml, then start a new run"), Again.FRESH
