"""The head of the report: the verdict of the run in one line, and facts about the run."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from itertools import chain

from proofmark import __version__
from proofmark.common.host_names import HostTable
from proofmark.common.message import Message, localized
from proofmark.common.nodesets import folded, hosts_of_nodes
from proofmark.common.text import duration
from proofmark.common.translation import N_, _, translated
from proofmark.judge.ending import judged_line
from proofmark.judge.verdict import WORDS, Verdict
from proofmark.plan.kinds import origin_of
from proofmark.report.run_data import RunData
from proofmark.report.words import count, grouped, size_4_digits

MEANINGS = {
    "PASS": N_("measured, judged, and within every limit"),
    "FAIL": N_("measured, judged, and outside a limit"),
    "INVALID": N_("not a measurement of what was requested; it is never judged"),
    "UNJUDGED": N_("measured, but no limit says that it is good enough"),
}
"""The meaning of each verdict; the README has the same words."""


@dataclass(frozen=True)
class VerdictCount:
    """One of the four verdicts, the number of figures with it, and its meaning."""

    word: str
    count: str
    meaning: str


@dataclass(frozen=True)
class Summary:
    """The head of a report; `about` contains names and values of facts about the run."""

    word: str
    sentence: str
    tallies: tuple[VerdictCount, ...]
    about: tuple[tuple[str, str], ...]


def summary(run_data: RunData) -> Summary:
    """Return the head of the report."""
    verdict = run_data.verdict
    tallies = (
        VerdictCount(word, grouped(verdict.counts[word]), translated(MEANINGS[word]))
        for word in WORDS
    )
    plan, coverage = run_data.run.plan, verdict.coverage
    suite = run_data.benchmarks.suites.get(plan.suite)
    twice = count(coverage.duplicate, "figure") if coverage.duplicate else _("no figure")
    skipped = len(coverage.not_needed)
    not_needed = _(", {steps} not needed").format(steps=count(skipped, "step")) if skipped else ""
    return Summary(
        verdict.headline().word,
        headline(verdict),
        tuple(tallies),
        (
            (
                (_("Machine"), _machines(run_data)),
                (
                    _("Site"),
                    _("{site}, partition {partition}, {nodes}").format(
                        site=plan.site,
                        partition=plan.partition,
                        nodes=count(len(plan.nodes()), "node"),
                    ),
                ),
                (_("Suite"), f"{plan.suite} – {translated(suite.title)}" if suite else plan.suite),
                (
                    _("Coverage"),
                    _("{nodes}{measured} of {steps} measured, {twice} measured twice{more}").format(
                        nodes=_nodes(run_data),
                        measured=grouped(coverage.measured),
                        steps=count(coverage.expected, "step"),
                        twice=twice,
                        more=not_needed,
                    ),
                ),
                *_degraded(verdict),
                *_bad(verdict),
                *(
                    (_("Slow storage target"), localized(target.message))
                    for target in verdict.storage.targets[:MOST_NAMED]
                ),
                *chain.from_iterable(each.summary() for each in run_data.additions),
                (_("Measured"), when(run_data)),
                (
                    _("Origin"),
                    localized(Message(f"origin-{origin_of(plan, run_data.site)}")),
                ),
                (_("Run"), run_data.run.id),
                (
                    _("Report"),
                    _("written {time} by Proofmark {version}").format(
                        time=_minute(run_data.written), version=__version__
                    ),
                ),
            )
        ),
    )


def title(run_data: RunData) -> str:
    """Return the title: an acceptance needs a limit of the contract."""
    system = run_data.run.plan.system
    if run_data.verdict.contract:
        return _("Acceptance of {system}").format(system=system)
    return _("Sanity check of {system}").format(system=system)


def headline(verdict: Verdict) -> str:
    """Return the labels of a run, what the terminal prints after its word, and what is open."""
    labels = [each.label for each in (verdict.of_kind, verdict.degraded) if each and each.label]
    parts = [*map(localized, labels), judged_line(verdict)]
    if verdict.faults:
        nodes = count(len(verdict.faulty_hosts), "node")
        parts.append(_("{nodes} with a fault that no figure has").format(nodes=nodes))
    if verdict.unmet:
        open_ = count(len(verdict.unmet), "requirement")
        parts.append(_("{requirements} not judged").format(requirements=open_))
    return "; ".join(parts)


MOST_NAMED = 12
"""The largest number of bad nodes that the head of a report names."""


def _degraded(verdict: Verdict) -> tuple[tuple[str, str], ...]:
    """Return the label of a run that lacks nodes, and these nodes; nothing for another run."""
    if (lacking := verdict.degraded) is None:
        return ()
    missing = (
        _("; without {nodes}").format(nodes=folded(lacking.missing)) if lacking.missing else ""
    )
    some = _("{nodes} of {all} nodes").format(nodes=grouped(lacking.nodes), all=grouped(lacking.of))
    return ((_("Degraded"), f"{some}{missing}"),)


def _bad(verdict: Verdict) -> tuple[tuple[str, str], ...]:
    """Return the names of the bad nodes, the worst first; nothing for a run on a single node."""
    bad, compared = verdict.bad, grouped(verdict.compared())
    if bad.measured < 2:
        return ()
    if not bad.nodes:
        return ((_("Bad nodes"), _("none of {count}").format(count=compared)),)
    named = ", ".join(node.host for node in bad.nodes[:MOST_NAMED])
    more = len(bad.nodes) - MOST_NAMED
    rest = _(" and {count} more").format(count=grouped(more)) if more > 0 else ""
    of = _("{bad} of {all}").format(bad=grouped(len(bad.nodes)), all=compared)
    text = _("{nodes}{rest} ({share}, the worst first)").format(nodes=named, rest=rest, share=of)
    # A node that is measured again first is not in the list for the vendor.
    if again := sum(node.retest for node in bad.nodes):
        text += _("; {count} to be measured again before they are accused").format(
            count=grouped(again)
        )
    return ((_("Bad nodes"), text),)


def _nodes(run_data: RunData) -> str:
    """Return how many of the planned nodes were measured; nothing for a run on a single node."""
    wanted = run_data.run.plan.nodes_to_run()
    if len(wanted) < 2:
        return ""
    measured = HostTable.of(wanted).found(hosts_of_nodes(run_data.verdict.measured()))
    return _("{measured} of {nodes}, ").format(
        measured=grouped(len(measured)), nodes=count(len(wanted), "node")
    )


def _machines(run_data: RunData) -> str:
    kinds = Counter(
        f"{facts.cpu_model}, {count(facts.sockets, 'socket')}, "
        f"{count(facts.cores, 'core')}, {size_4_digits(facts.memory_bytes)}"
        + (_(", virtual ({machine})").format(machine=facts.virtual) if facts.virtual else "")
        for facts in run_data.facts
    )
    several = len(run_data.nodes) > 1
    named = [f"{number} × {kind}" if several else kind for kind, number in kinds.most_common(3)]
    more = (
        _("; {kinds} of node").format(kinds=count(len(kinds) - 3, "more kind"))
        if len(kinds) > 3
        else ""
    )
    return "; ".join(named) + more or _("unknown: no provenance was collected")


def when(run_data: RunData) -> str:
    """Return the start, the end and the duration of a run in words."""
    if not run_data.run.executed:
        return _("the times of the outputs are not recorded")
    if run_data.started is None or run_data.ended is None:
        return _("no step has recorded its time")
    took = duration((run_data.ended - run_data.started).total_seconds())
    same_day = run_data.started.date() == run_data.ended.date()
    ended = f"{run_data.ended:%H:%M UTC}" if same_day else _minute(run_data.ended)
    return _("{start} to {end} ({duration})").format(
        start=_minute(run_data.started), end=ended, duration=took
    )


def _minute(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M UTC")
