"""The last three lines of an acceptance: the verdict, the worst figures, the next command.

What is the same on like nodes, or in like steps, is one line. A node that a run does not accept has
one reason.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from heapq import nlargest
from itertools import chain, islice
from pathlib import Path

from proofmark.common.grouping import gathered
from proofmark.common.message import Message, localized
from proofmark.common.nodesets import folded, hosts_of
from proofmark.common.printed_command import (
    LIMIT,
    NAME,
    STEP,
    Part,
    PrintedCommand,
    of_person,
    of_run,
)
from proofmark.common.text import one_line
from proofmark.common.translation import _, translated
from proofmark.judge.diagnosis.bad_nodes import BadNode
from proofmark.judge.headline import SANITY
from proofmark.judge.next_steps import (
    NextStep,
    invalid_steps,
    measured_again_first,
    of_stages,
    open_advice,
    shortened,
)
from proofmark.judge.results import Again, InvalidCause, Result
from proofmark.judge.verdict import Verdict
from proofmark.plan.kinds import kind_of
from proofmark.plan.plan import Plan
from proofmark.plan.step import StepInstance

MOST_NAMED = 3
"""The largest number of steps that a line names."""
MOST_NODES = 8
"""The largest number of nodes that a line names one by one."""


def of_like_nodes(found: Iterable[tuple[str, Message]]) -> dict[Message, tuple[str, ...]]:
    """Return the hosts by message, in which the name of its node is ``the node``."""
    groups: dict[Message, dict[str, None]] = {}
    for node, message in found:
        names = hosts_of(node)
        key = message.without_nodes({node, *names})
        groups.setdefault(key, {}).update(dict.fromkeys(names))
    return {message: tuple(hosts) for message, hosts in groups.items()}


def named_nodes(hosts: Sequence[str]) -> str:
    """Return hosts in one text: ``n03, n04``; more than `MOST_NODES` as a node set."""
    return ", ".join(sorted(hosts)) if len(hosts) <= MOST_NODES else folded(hosts)


def named_steps(steps: Iterable[str]) -> str:
    """Return the folders of steps in one text: ``0001-hpl/n[1-60], 0002-fio and 58 more``.

    Args:
        steps: folders below ``steps/``. A step that each node has for itself ends with the node.
    """
    groups: dict[str, list[str]] = {}
    for step in steps:
        instance = StepInstance.parse(step)
        groups.setdefault(instance.step, []).extend([instance.name] if instance.name else [])
    texts = [f"{name}/{folded(nodes)}" if nodes else name for name, nodes in groups.items()]
    text = ", ".join(texts[:MOST_NAMED])
    if (more := len(texts) - MOST_NAMED) > 0:
        text += _(" and {count} more").format(count=more)
    return text


UNKNOWN = PrintedCommand()
"""Stands for a command that is not known."""
MAX_FIGURES_NAMED = 3
"""The number of figures that the second line names."""
MOST_FAILED = 5
"""The number of FAIL figures that stand before the other reasons."""


def ending(
    verdict: Verdict,
    report: str,
    folder: str,
    *,
    again: PrintedCommand = UNKNOWN,
    strict: bool = False,
) -> tuple[str, str, str]:
    """Return the last three lines of an acceptance.

    Args:
        folder: the path of the run, as the next command names it.
        again: the command of the acceptance that continues the run; empty if it is not known.
        strict: whether UNJUDGED figures are refused.
    """
    several = len(verdict.measured()) > 1
    figures = _of_each_kind(verdict, several=several)
    every = chain(faults(verdict), figures, open_points(verdict))
    none = _("no figure failed") if verdict.headline().kinds else _("no figure was judged")
    worst = " | ".join(islice(every, MAX_FIGURES_NAMED)) or none
    labels = [verdict.of_kind.last_line] if verdict.of_kind else []
    labels += [verdict.degraded.label] if verdict.degraded else []
    lacking = "".join(f", {localized(label)}" for label in labels if label)
    command = next_command(verdict, verdict.exit_code(strict=strict), folder, again)
    word = translated(verdict.headline(strict=strict).word)
    return (
        f"{word}{lacking}: {judged_line(verdict, strict=strict)}",
        _("worst: {figures}").format(figures=worst),
        _("report: {report}; next: {command}").format(report=report, command=command),
    )


def judged_line(verdict: Verdict, *, strict: bool = False) -> str:
    """Return the text after the word of a verdict: what judged, the figures and the steps."""
    judged, coverage = localized(verdict.headline(strict=strict).text), verdict.coverage
    steps = _("{measured} of {expected} steps measured").format(
        measured=coverage.measured, expected=coverage.expected
    )
    return f"{judged}; {counts_line(verdict.counts)}; {steps}"


def counts_line(counts: Mapping[str, int]) -> str:
    """Return the number of results of each verdict as text."""
    return ", ".join(
        _("{count} {verdict}").format(count=count, verdict=translated(word))
        for word, count in counts.items()
    )


def next_command(
    verdict: Verdict,
    code: int,
    run: str,
    known: PrintedCommand = UNKNOWN,
    figures: PrintedCommand | None = None,
) -> str:
    """Return the next action after a verdict with this exit code; its command names `run`.

    Args:
        figures: the command that prints the judged figures; None: `proofmark verdict`.
    """
    coverage = verdict.coverage
    figures = figures or PrintedCommand("proofmark", "verdict", of_person(run, "RUN"))
    if not verdict.conditions.executed:
        return _sign(run) if code == 0 else figures
    again = known or _("run the same ansible-playbook command again")
    invalid = invalid_steps(verdict) if code == 2 else []
    for step in invalid:
        if step.cause is InvalidCause.DISTURBED:
            return _advised(step, verdict, run, known, figures)
    if steps := measured_again_first(verdict):
        return _rerun(run, verdict.rerun(steps), figures)
    if coverage.measured < coverage.expected:
        if verdict.degraded and (limit := verdict.degraded.limit):
            fewer = _(
                "with -l '{limit}' -e fresh=true it measures the other nodes, as degraded"
            ).format(limit=of_run(limit, LIMIT, "LIMIT").word)
            return _("{again}: it measures the missing steps; {fewer}").format(
                again=again, fewer=fewer
            )
        return _("{again}: it measures the missing steps").format(again=again)
    if invalid:
        return _advised(_with_all_steps(invalid), verdict, run, known, figures)
    if code in (1, 2):
        return figures
    if verdict.conditions.open_stages:
        return _advised(next(iter(of_stages(verdict))), verdict, run, known, figures)
    if coverage.not_run:
        return _("{again} -e confirm_reboot=true: it measures the other modes").format(again=again)
    if code == 4:
        action, fresh = open_advice(verdict)
        repeats = f" -e repeats={verdict.results.repeats_needed}"
        return f"{action} (-e fresh=true{repeats if fresh is Again.REPEATS else ''})"
    if verdict.headline().word == SANITY:
        if any(each.item for each in verdict.limits):
            return PrintedCommand("proofmark", "acceptance", "check", "-i", _inventory(known))
        if verdict.conditions.any_node:
            return PrintedCommand("proofmark", "init", "inventory/mysite")
    return _sign(run)  # a signed run can become the baseline of its site


def _with_all_steps(invalid: Sequence[NextStep]) -> NextStep:
    """Return the first next step, with the steps of all others of its cause."""
    same = (each.steps for each in invalid if each.cause is invalid[0].cause)
    return replace(invalid[0], steps=tuple(dict.fromkeys(chain.from_iterable(same))))


def _advised(
    step: NextStep, verdict: Verdict, run: str, known: PrintedCommand, figures: PrintedCommand
) -> str:
    command: str = ""
    if step.again is Again.RERUN:
        command = _rerun(run, verdict.rerun(step.steps), figures)
    elif step.again is Again.COMPARE:
        command = PrintedCommand("proofmark", "init", _inventory(known), "--diff")
    elif step.again is Again.CONTINUE:
        command = known or _("run the same ansible-playbook command with -e run_id={run}").format(
            run=of_run(Path(run).name, NAME, "RUN").word
        )
    return f"{step.action}: {command}" if command else step.action


def _sign(run: str) -> PrintedCommand:
    return PrintedCommand("proofmark", "sign", of_person(run, "RUN"), "--key", "FILE")


def _rerun(run: str, steps: Collection[str], otherwise: PrintedCommand) -> str:
    """Return the commands that run `steps` again and report; without steps `otherwise`."""
    if not steps:
        return otherwise
    folder, again = of_person(run, "RUN"), (of_run(step, STEP, "STEP") for step in steps)
    return _("{first}, then {second}").format(
        first=PrintedCommand("proofmark", "rerun", folder, *again),
        second=PrintedCommand("proofmark", "report", folder),
    )


def _inventory(command: PrintedCommand) -> Part:
    """Return the inventory of a command of the acceptance; a placeholder if it is not known."""
    words = shlex.split(command)
    known = words[words.index("-i") + 1] if "-i" in words else "INVENTORY"
    return of_person(known, "INVENTORY")


def worst_results(verdict: Verdict) -> Iterator[Result]:
    """Yield FAIL figures, the one furthest from its limit first, then INVALID ones.

    At most `MOST_FAILED` figures are FAIL. All INVALID figures of a case with one reason are one.
    """
    yield from nlargest(MOST_FAILED, verdict.of("FAIL"), key=_miss)
    seen: set[tuple[str, str]] = set()
    for result in verdict.of("INVALID"):  # all the figures of a step have one reason
        key = (result.record.case, result.reason)
        if key not in seen:
            yield result
        seen.add(key)


def _of_each_kind(verdict: Verdict, *, several: bool) -> Iterator[str]:
    """Yield the worst result of each kind, with the number of the others and their further nodes.

    A kind of FAIL is a metric with the code of its reason, one of INVALID a case with its cause.
    """
    failed = sorted(verdict.of("FAIL"), key=_miss, reverse=True)
    kinds = (
        gathered(
            ((each.record.case, each.record.metric, each.reason.code), each) for each in failed
        ),
        gathered(
            ((each.record.case, each.cause or each.reason.code), each)
            for each in verdict.of("INVALID")
        ),
    )
    for first, *others in chain.from_iterable(of.values() for of in kinds):
        more = _(" and {count} more").format(count=len(others)) if others else ""
        hosts = {host for each in others for host in hosts_of(each.record.node)}
        if further := sorted(hosts - {*hosts_of(first.record.node)}):
            more += f" ({shortened(named_nodes(further))})"
        yield _described(first, several=several) + more


def faults(verdict: Verdict) -> Iterator[str]:
    """Yield the faults of stages and of nodes that no figure has; like nodes have one."""
    yield from (shortened(str(fault)) for fault in verdict.conditions.stage_faults)
    found = of_like_nodes((fault.node, fault.reason) for fault in verdict.faults)
    for why, nodes in found.items():
        yield shortened(f"{named_nodes(nodes)}: {localized(why)}")


def open_points(verdict: Verdict, *, whole: bool = False) -> Iterator[str]:
    """Yield what is missing, not judged, excused, unlike, replaced, added or too noisy.

    Args:
        whole: whether reasons are not shortened.
    """
    several = len(verdict.measured()) > 1
    coverage, shown = verdict.coverage, str if whole else shortened
    for line in coverage.stopped or [each.message for each in coverage.missing]:
        yield _("not measured: {step}").format(step=shown(localized(line)))
    if coverage.duplicate:
        yield _("duplicate figures of one step: {count}").format(count=coverage.duplicate)
    for line in verdict.unmet:
        yield _("not judged: {requirement}").format(requirement=shown(localized(line)))
    yield from (shown(localized(line)) for line in verdict.excused)
    for figure, apart in verdict.fleet.apart.items():
        yield f"{figure}: {shown(localized(apart))}"
    yield from (f"{each.hosts}: {localized(each.message)}" for each in verdict.bad.drift)
    yield from map(localized, verdict.conditions.replaced)
    if added := verdict.executions.added:
        yield _("{step}: {added} executions were added to the plan").format(
            step=named_steps(each.step for each in added), added=sum(each.added for each in added)
        )
    for result, noise in verdict.results.too_noisy():
        yield _described(replace(result, reason=noise), several=several)


def _miss(result: Result) -> float:
    """Return the distance of a figure from the limit that it misses, as a share of that limit."""
    missed = ((answer.ratio, answer.missed_limit()) for answer in result.references)
    return max(
        (abs(ratio - limit) / limit for ratio, limit in missed if ratio and limit), default=0
    )


def _described(result: Result, *, several: bool) -> str:
    record = result.record
    value = _("no value") if record.value is None else f"{record.value:.4g} {record.unit}"
    place = _(" on {node}").format(node=record.node) if several else ""
    given = " ".join(f"{key}={each}" for key, each in record.parameters.items())
    which = f" ({shortened(given)})" if given else ""
    figure = f"{record.case} {record.metric}{which} {value}{place}"
    return f"{translated(result.verdict)} {figure}: {shortened(localized(result.reason))}"


REASON_CHARACTERS = 300
"""Characters of a reason; the report has the whole reason."""


def failed_nodes(verdict: Verdict, plan: Plan) -> dict[str, str]:
    """Return the reason of each node that failed.

    A node fails if it is bad, if one of its own figures is INVALID, or if a step that it measures
    alone has no record, or if a stage before its jobs failed. A result or step of several nodes is
    the failure of none of them. A node without a record waits if
    the run still grows.
    """
    reasons = {node.host: _of_bad(node) for node in verdict.bad.nodes}
    places = {step.id: step.instances() for step in plan.steps_to_run()}
    for result in verdict.of("INVALID"):
        instance = StepInstance.parse(result.record.step)
        # A record without output has no node. The plan has the nodes of its step.
        nodes = places[instance.step][instance]
        if len(nodes) == 1:
            figure = " ".join(dict.fromkeys((result.record.case, result.record.metric)))
            reasons.setdefault(nodes[0], f"INVALID {figure}: {result.reason}")
    for fault in verdict.storage.file_systems:
        for host in fault.nodes if fault.others else ():
            reasons[host] = fault.message
    for each in verdict.conditions.stage_faults:
        for host in hosts_of(each.nodes):
            reasons.setdefault(host, f"{each.reason}")
    for node, why in verdict.of_kind.failed_nodes.items() if verdict.of_kind else ():
        reasons.setdefault(node, why)
    for missing in () if kind_of(plan).grows else verdict.coverage.missing:
        if all(len(nodes) == 1 for nodes in places[missing.step].values()):
            for node in missing.nodes:
                reasons.setdefault(node, f"{missing.step}: not measured")
    return {node: one_line(reason)[:REASON_CHARACTERS] for node, reason in reasons.items()}


def _of_bad(node: BadNode) -> str:
    figures = [f"{slow.name} {slow.deviation:+.1%}" for slow in node.slow[:1]]
    figures += [f"{result.record.case}: wrong digits" for result in node.digits[:1]]
    return "; ".join([*figures, node.likely])
