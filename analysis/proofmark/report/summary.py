"""The answer of a run in one line, and what it is the answer about."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime

from proofmark import __version__
from proofmark.common.nodesets import hosts_of, short_name
from proofmark.common.text import duration
from proofmark.judge.diagnosis.bad_nodes import BadNodes
from proofmark.judge.verdict import WORDS, Verdict
from proofmark.report.run_data import RunData
from proofmark.report.text import count, grouped, sentence, size

_WORDS_BY_CODE = {0: "PASS", 1: "FAIL", 2: "INVALID", 4: "UNJUDGED"}
MEANINGS = {
    "PASS": "measured, judged, and within every limit",
    "FAIL": "measured, judged, and outside a limit",
    "INVALID": "not a measurement of what was requested; it is never judged",
    "UNJUDGED": "measured, but no limit or reference applies",
}
"""What the verdict of a figure means; the README has the same words."""


@dataclass(frozen=True)
class Tally:
    """One of the four words, how many figures carry it, and what it means."""

    word: str
    count: str
    meaning: str


@dataclass(frozen=True)
class Answer:
    """The head of a report; `about` is names and values."""

    word: str
    sentence: str
    tallies: tuple[Tally, ...]
    about: tuple[tuple[str, str], ...]


def answer(material: RunData) -> Answer:
    """Return the head of the report."""
    verdict = material.verdict
    tallies = (Tally(word, grouped(verdict.counts[word]), MEANINGS[word]) for word in WORDS)
    return Answer(overall(verdict), headline(verdict), tuple(tallies), _about(material))


def overall(verdict: Verdict) -> str:
    """Return the word for the whole run; it means what the exit code means."""
    return _WORDS_BY_CODE[verdict.exit_code()]


def headline(verdict: Verdict) -> str:
    """Return why the run gets its word, in one sentence."""
    counts, coverage = verdict.counts, verdict.coverage
    judged = counts["PASS"] + counts["FAIL"]
    invalid, failed = counts["INVALID"], counts["FAIL"]
    gap = coverage.expected - coverage.measured
    parts = []
    if gap:
        parts.append(f"{count(gap, 'step')} of {grouped(coverage.expected)} not measured")
    if coverage.duplicate:
        parts.append(f"{count(coverage.duplicate, 'figure')} measured twice by one step")
    if invalid:
        does = (
            "does not measure what it claims" if invalid == 1 else "do not measure what they claim"
        )
        parts.append(f"{count(invalid, 'figure')} {does}")
    if failed:
        parts.append(f"{failed} of {count(judged, 'judged figure')} outside the limits")
    elif judged:
        all_of = "the one judged figure is" if judged == 1 else f"all {judged} judged figures are"
        parts.append(f"{all_of} within the limits")
    else:
        parts.append("no figure could be judged")
    if counts["UNJUDGED"]:
        parts.append(f"{count(counts['UNJUDGED'], 'figure')} UNJUDGED")
    return sentence(parts)


def _about(material: RunData) -> tuple[tuple[str, str], ...]:
    plan, coverage = material.run.plan, material.verdict.coverage
    suite = material.benchmarks.suites.get(plan.suite)
    twice = f"{coverage.duplicate} figures twice" if coverage.duplicate else "none twice"
    spared = f", {len(coverage.not_needed)} not needed" if coverage.not_needed else ""
    return (
        ("Machine", _machines(material)),
        (
            "Site",
            f"{plan.site}, partition {plan.partition}, {count(len(_hosts(material)), 'node')}",
        ),
        ("Suite", f"{plan.suite} – {suite.title}" if suite else plan.suite),
        (
            "Coverage",
            f"{_nodes(material)}{grouped(coverage.measured)} of "
            f"{count(coverage.expected, 'step')} measured, {twice}{spared}",
        ),
        *_bad(material.verdict.bad),
        ("Measured", _when(material)),
        ("Origin", _origin(material.site.partition.origin)),
        ("Run", material.run.id),
        (
            "Report",
            f"written {_minute(material.written)} by Proofmark {__version__}",
        ),
    )


MOST_NAMED = 12
"""Bad nodes that the head of a report names."""


def _bad(bad: BadNodes) -> tuple[tuple[str, str], ...]:
    """Return the bad nodes by name, the worst first; nothing of a run on a single node."""
    if bad.asked < 2:
        return ()
    if not bad.nodes:
        return (("Bad nodes", f"none of {grouped(bad.asked)}"),)
    named = ", ".join(node.host for node in bad.nodes[:MOST_NAMED])
    more = len(bad.nodes) - MOST_NAMED
    rest = f" and {grouped(more)} more" if more > 0 else ""
    of = f"{grouped(len(bad.nodes))} of {grouped(bad.asked)}"
    return (("Bad nodes", f"{named}{rest} ({of}, the worst first)"),)


def _nodes(material: RunData) -> str:
    """Return how many nodes were measured, of how many; nothing of a run on a single node."""
    wanted = {short_name(host) for step in material.run.plan.steps_to_run() for host in step.nodes}
    if len(wanted) < 2:
        return ""
    names = material.verdict.measured()
    there = {short_name(host) for name in names for host in hosts_of(name)} & wanted
    return f"{grouped(len(there))} of {count(len(wanted), 'node')}, "


def _hosts(material: RunData) -> set[str]:
    return {host for step in material.run.plan.steps() for host in step.nodes}


def _machines(material: RunData) -> str:
    kinds = Counter(
        f"{facts.cpu_model}, {count(facts.sockets, 'socket')}, "
        f"{count(facts.cores, 'core')}, {size(facts.memory_bytes)}"
        + (f", virtual ({facts.virtual})" if facts.virtual else "")
        for facts in material.facts
    )
    several = len(material.nodes) > 1
    named = [f"{number} × {kind}" if several else kind for kind, number in kinds.most_common(3)]
    more = f"; {count(len(kinds) - 3, 'more kind')} of node" if len(kinds) > 3 else ""
    return "; ".join(named) + more or "unknown: no provenance was collected"


def _when(material: RunData) -> str:
    if material.started is None or material.ended is None:
        return "nothing yet"
    took = duration((material.ended - material.started).total_seconds())
    same_day = material.started.date() == material.ended.date()
    ended = f"{material.ended:%H:%M UTC}" if same_day else _minute(material.ended)
    return f"{_minute(material.started)} to {ended} ({took})"


def _minute(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M UTC")


def _origin(origin: str) -> str:
    meanings = {
        "measured": "measured on the machine itself",
        "emulated": "emulated: a rehearsal, no measure of any machine",
        "predicted": "predicted by a model, not measured",
    }
    return meanings.get(origin, origin)
