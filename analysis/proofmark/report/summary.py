"""The head of the report: the verdict of the run in one line, and facts about the run."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime

from proofmark import __version__
from proofmark.common.nodesets import folded, hosts_of, short_name
from proofmark.common.text import duration
from proofmark.judge.diagnosis.bad_nodes import BadNodes
from proofmark.judge.verdict import WORDS, Verdict
from proofmark.report import links
from proofmark.report.run_data import RunData
from proofmark.report.text import count, grouped, sentence, size_4_digits
from proofmark.runs.plan_accuracy import time_of_steps
from proofmark.site.adopted import IMPORTED

_WORDS_BY_CODE = {0: "PASS", 1: "FAIL", 2: "INVALID", 4: "UNJUDGED"}
MEANINGS = {
    "PASS": "measured, judged, and within every limit",
    "FAIL": "measured, judged, and outside a limit",
    "INVALID": "not a measurement of what was requested; it is never judged",
    "UNJUDGED": "measured, but no limit or reference judges it",
}
"""The meaning of each verdict; the README has the same words."""


@dataclass(frozen=True)
class Tally:
    """One of the four verdicts, the number of figures with it, and its meaning."""

    word: str
    count: str
    meaning: str


@dataclass(frozen=True)
class Summary:
    """The head of a report; `about` contains names and values of facts about the run."""

    word: str
    sentence: str
    tallies: tuple[Tally, ...]
    about: tuple[tuple[str, str], ...]


def summary(run_data: RunData) -> Summary:
    """Return the head of the report."""
    verdict = run_data.verdict
    tallies = (Tally(word, grouped(verdict.counts[word]), MEANINGS[word]) for word in WORDS)
    return Summary(overall(verdict), headline(verdict), tuple(tallies), _about(run_data))


def overall(verdict: Verdict) -> str:
    """Return the verdict of the whole run, which corresponds to the exit code."""
    return _WORDS_BY_CODE[verdict.exit_code()]


def headline(verdict: Verdict) -> str:
    """Return the reason for the verdict of the whole run, in one sentence."""
    counts, coverage = verdict.counts, verdict.coverage
    judged = counts["PASS"] + counts["FAIL"]
    invalid, failed = counts["INVALID"], counts["FAIL"]
    gap = coverage.expected - coverage.measured
    parts = ["imported: others produced the outputs"] if verdict.imported else []
    parts += [verdict.degraded.label] if verdict.degraded else []
    if gap:
        parts.append(f"{grouped(gap)} of {count(coverage.expected, 'step')} not measured")
    if coverage.duplicate:
        parts.append(f"{count(coverage.duplicate, 'figure')} measured twice by one step")
    if invalid:
        parts.append(
            f"{count(invalid, 'figure')} INVALID (not a measurement of what was requested)"
        )
    if failed:
        parts.append(f"{failed} of {count(judged, 'judged figure')} outside the limits")
    elif judged:
        all_of = "the one judged figure is" if judged == 1 else f"all {judged} judged figures are"
        parts.append(f"{all_of} within the limits")
    else:
        parts.append("no figure could be judged")
    if verdict.faults:
        parts.append(f"{count(len(verdict.faults), 'node')} with a fault that no figure has")
    if verdict.unmet:
        parts.append(f"{count(len(verdict.unmet), 'requirement')} not judged")
    if counts["UNJUDGED"]:
        parts.append(f"{count(counts['UNJUDGED'], 'figure')} UNJUDGED")
    return sentence(parts)


def _about(run_data: RunData) -> tuple[tuple[str, str], ...]:
    plan, coverage = run_data.run.plan, run_data.verdict.coverage
    suite = run_data.benchmarks.suites.get(plan.suite)
    twice = count(coverage.duplicate, "figure") if coverage.duplicate else "no figure"
    skipped = len(coverage.not_needed)
    not_needed = f", {count(skipped, 'step')} not needed" if skipped else ""
    return (
        ("Machine", _machines(run_data)),
        (
            "Site",
            f"{plan.site}, partition {plan.partition}, {count(len(_hosts(run_data)), 'node')}",
        ),
        ("Suite", f"{plan.suite} – {suite.title}" if suite else plan.suite),
        (
            "Coverage",
            f"{_nodes(run_data)}{grouped(coverage.measured)} of "
            f"{count(coverage.expected, 'step')} measured, {twice} measured twice{not_needed}",
        ),
        *_degraded(run_data.verdict),
        *_bad(run_data.verdict.bad),
        *(("Slow storage target", f"{target}") for target in run_data.verdict.targets[:MOST_NAMED]),
        *links.head(run_data.verdict.links),
        ("Measured", _when(run_data)),
        *_planned_time(run_data),
        ("Origin", _origin(_origin_of(run_data))),
        ("Run", run_data.run.id),
        (
            "Report",
            f"written {_minute(run_data.written)} by Proofmark {__version__}",
        ),
    )


MOST_NAMED = 12
"""The largest number of bad nodes that the head of a report names."""


def _degraded(verdict: Verdict) -> tuple[tuple[str, str], ...]:
    """Return the label of a run that lacks nodes, and these nodes; nothing for another run."""
    if (lacking := verdict.degraded) is None:
        return ()
    missing = f"; without {folded(lacking.missing)}" if lacking.missing else ""
    return (("Degraded", f"{lacking.label.partition(': ')[2]}{missing}"),)


def _bad(bad: BadNodes) -> tuple[tuple[str, str], ...]:
    """Return the names of the bad nodes, the worst first; nothing for a run on a single node."""
    if bad.measured < 2:
        return ()
    if not bad.nodes:
        return (("Bad nodes", f"none of {grouped(bad.measured)}"),)
    named = ", ".join(node.host for node in bad.nodes[:MOST_NAMED])
    more = len(bad.nodes) - MOST_NAMED
    rest = f" and {grouped(more)} more" if more > 0 else ""
    of = f"{grouped(len(bad.nodes))} of {grouped(bad.measured)}"
    return (("Bad nodes", f"{named}{rest} ({of}, the worst first)"),)


def _nodes(run_data: RunData) -> str:
    """Return how many of the planned nodes were measured; nothing for a run on a single node."""
    wanted = {short_name(host) for step in run_data.run.plan.steps_to_run() for host in step.nodes}
    if len(wanted) < 2:
        return ""
    names = run_data.verdict.measured()
    measured = {short_name(host) for name in names for host in hosts_of(name)} & wanted
    return f"{grouped(len(measured))} of {count(len(wanted), 'node')}, "


def _hosts(run_data: RunData) -> set[str]:
    return {host for step in run_data.run.plan.steps() for host in step.nodes}


def _machines(run_data: RunData) -> str:
    kinds = Counter(
        f"{facts.cpu_model}, {count(facts.sockets, 'socket')}, "
        f"{count(facts.cores, 'core')}, {size_4_digits(facts.memory_bytes)}"
        + (f", virtual ({facts.virtual})" if facts.virtual else "")
        for facts in run_data.facts
    )
    several = len(run_data.nodes) > 1
    named = [f"{number} × {kind}" if several else kind for kind, number in kinds.most_common(3)]
    more = f"; {count(len(kinds) - 3, 'more kind')} of node" if len(kinds) > 3 else ""
    return "; ".join(named) + more or "unknown: no provenance was collected"


def _when(run_data: RunData) -> str:
    if run_data.run.plan.imported:
        return "the times of the outputs are not recorded"
    if run_data.started is None or run_data.ended is None:
        return "no step has ended"
    took = duration((run_data.ended - run_data.started).total_seconds())
    same_day = run_data.started.date() == run_data.ended.date()
    ended = f"{run_data.ended:%H:%M UTC}" if same_day else _minute(run_data.ended)
    return f"{_minute(run_data.started)} to {ended} ({took})"


def _planned_time(run_data: RunData) -> tuple[tuple[str, str], ...]:
    """Return the planned and the measured time of the finished steps; nothing without a step."""
    times = time_of_steps(run_data.states)
    if times.ratio is None:
        return ()
    hours = f"{times.planned_node_h:.4g} and {times.measured_node_h:.4g} node-hours"
    took = f"steps planned {duration(times.planned_s)}, measured {duration(times.measured_s)}"
    return (("Planned time", f"{took} ({times.ratio:.2f} times the plan); {hours}"),)


def _minute(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M UTC")


def _origin_of(run_data: RunData) -> str:
    return IMPORTED if run_data.run.plan.imported else run_data.site.partition.origin


def _origin(origin: str) -> str:
    meanings = {
        "measured": "measured on the machine itself",
        "emulated": "emulated: a rehearsal, not a measurement of a machine",
        IMPORTED: "imported: outputs that others produced, without their provenance",
        "predicted": "predicted by a model, not measured",
    }
    return meanings.get(origin, origin)
