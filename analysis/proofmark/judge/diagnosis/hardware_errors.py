"""Nodes whose hardware reports more errors than its rule accepts (docs/design/nodes.md).

All jobs of a run count together: many short ones must not hide a rate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from proofmark.common.message import Message
from proofmark.common.moments import moment_of
from proofmark.runs.nodes import Node
from proofmark.site.node.counters import CounterChange, meaning_of
from proofmark.site.node.error_rules import ErrorRule, bits_per_s, rule_of
from proofmark.site.node.provenance import NodeProvenance


def error_faults(nodes: Mapping[str, Node]) -> dict[str, tuple[Message, ...]]:
    """Return the errors of each node that are more than its rules accept, in all of its jobs."""
    found = {host: (*_before(node), *_during(node)) for host, node in nodes.items()}
    return {host: messages for host, messages in found.items() if messages}


def _during(node: Node) -> Iterator[Message]:
    """Yield the counters that rose too much while jobs ran."""
    jobs = [job.provenance for job in node.jobs]
    first: dict[str, tuple[CounterChange, NodeProvenance]] = {}
    events: dict[str, int] = {}
    for job in jobs:
        for change in job.changes:
            rule = rule_of(change.name)
            if rule is not None and (rise := _events(rule, change)) > 0:
                first.setdefault(change.name, (change, job))
                events[change.name] = events.get(change.name, 0) + rise
    hours = sum(map(_hours, jobs)) if first else 0.0
    for name, (change, job) in first.items():
        rule = rule_of(name)
        assert rule is not None
        limit = rule.limit(hours, bits_per_s(name, job.facts, job.before.values))
        if events[name] > limit:
            total = change if rule.falls else change.model_copy(update={"difference": events[name]})
            yield Message(
                "errors-judged",
                text=total.message,
                hours=f"{hours:.2g}",
                allowed=f"{limit:.0f}",
                source=rule.source,
            )


def _events(rule: ErrorRule, change: CounterChange) -> int:
    """Return the number of errors; 0 if the counter was reset or is gone."""
    if not rule.falls:
        return change.difference or 0
    numbers = change.before.isdecimal() and change.after.isdecimal()
    return int(change.before) - int(change.after) if numbers else 0


def _hours(job: NodeProvenance) -> float:
    """Return the time between the two readings of a job."""
    if job.after is None:
        return 0.0
    start, end = (moment_of(each.date) for each in (job.before, job.after))
    return max(0.0, (end - start).total_seconds() / 3600)


def _before(node: Node) -> Iterator[Message]:
    """Yield the counters that were too high before the first job, since the node started."""
    if not node.jobs:
        return
    reading = node.jobs[0].provenance.before
    for name, value in reading.values.items():
        rule = rule_of(name)
        if rule is None or not rule.before or not value.isdecimal():
            continue
        if reading.uptime_s is None and rule.hours:
            continue  # a number without a time is no rate
        hours = (reading.uptime_s or 0.0) / 3600
        if int(value) > (limit := rule.limit(hours, 0.0)):
            place = reading.places.get(name.rpartition("/")[0], "")
            yield Message(
                "errors-before",
                text=meaning_of(name),
                counter=f"{name} {place}".strip(),
                found=int(value),
                hours=f"{hours:.2g}" if reading.uptime_s else "?",
                allowed=f"{limit:.0f}",
                source=rule.source,
            )
