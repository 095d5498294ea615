"""The facts and counters of one node for a job: ``runs/<id>/nodes/<host>.json``."""

from __future__ import annotations

import re

from proofmark.common.message import Message, joined
from proofmark.common.strict_model import StrictModel
from proofmark.site.node.counters import (
    KINDS,
    CounterChange,
    Counters,
    counter_differences,
    counters_of,
    disturbance,
)
from proofmark.site.node.facts import NodeFacts, facts_of
from proofmark.site.node.probe_sections import COUNTERS, INFORMATION, check_sections, groups_of
from proofmark.site.node.probe_text import read_stream
from proofmark.site.node.unread import Unread

_TIME = re.compile(r"\[ *(\d{1,12}\.\d{1,9})\]", re.ASCII)
"""The time of a message of the kernel, in seconds since the node started."""


class NodeProvenance(StrictModel):
    """The facts of a node, and its counters before and after a job.

    Attributes:
        after: None if the second probe did not run.
        changes: the counters that changed during the job.
        disturbances: the processes that ran on the node when it should have been idle.
    """

    facts: NodeFacts
    before: Counters
    after: Counters | None
    changes: tuple[CounterChange, ...]
    disturbances: tuple[Message, ...]

    @property
    def kernel(self) -> tuple[str, ...]:
        """The messages of the kernel about errors in the time of the job."""
        if self.after is None:
            return ()
        restarted = self.after.boot_id != self.before.boot_id
        since = 0.0 if restarted else self.before.uptime_s
        timed = [(match, line) for line in self.after.kernel if (match := _TIME.match(line))]
        return tuple(
            line for match, line in timed if since is not None and float(match[1]) >= since
        )

    @property
    def invalid(self) -> Message:
        """Return why all results of the job are INVALID, or `NOTHING`."""
        return joined(change.message for change in self.changes if change.invalid)


def node_provenance(before: str, after: str | None, source: str, node: str = "") -> NodeProvenance:
    """Return the provenance of one node from its two probes of a job.

    Args:
        before: the output of ``probe.sh facts`` before the job.
        after: the output of ``probe.sh after`` after the job, or None.
        source: the name of the probes in messages.
        node: the name of the node in the inventory; empty: the name that it reports.

    Raises:
        BadInput: a probe is not complete, states nothing in a section, or has nothing in a section
            of which no value can be read; the two have different groups of counters, or are of
            different nodes.
    """
    facts, first = _first(before, f"{source}.before")
    last = None if after is None else _last(after, f"{source}.after", first)
    if node and node != facts.hostname:
        facts = facts.model_copy(update={"hostname": node, "reported": facts.hostname})
        first = first.model_copy(update={"hostname": node})
        last = last and last.model_copy(update={"hostname": node})
    readings = [first] if last is None else [first, last]
    return NodeProvenance(
        facts=facts,
        before=first,
        after=last,
        changes=tuple(counter_differences(first, last)) if last else (),
        disturbances=tuple(filter(None, map(disturbance, readings))),
    )


def _first(text: str, source: str) -> tuple[NodeFacts, Counters]:
    """Return the facts and the counters of the probe before a job."""
    stream, unread = read_stream(text, source, "facts"), Unread()
    check_sections(stream)
    facts = facts_of(stream, unread)
    for section in unread.garbled:
        found = next(text for name, text in unread.values.items() if _section(name) == section)
        raise stream.wrong(section, f"no value that can be read: {found!r}", "one or more")
    return facts, counters_of(stream)


def _section(name: str) -> str:
    return name.partition(".")[0]


def _last(text: str, source: str, first: Counters) -> Counters:
    """Return the counters of the probe after a job; it has all groups that `first` has."""
    stream = read_stream(text, source, *KINDS)
    check_sections(stream)
    last = counters_of(stream)
    if last.hostname != first.hostname:
        raise stream.wrong("hostname", last.hostname, first.hostname)
    for group in sorted(groups_of(first.values) ^ groups_of(last.values)):
        if group in INFORMATION:
            continue
        lacking, when = (last, "after") if group in groups_of(first.values) else (first, "before")
        reason = lacking.absent.get(f"{COUNTERS}.{group}", "no value")
        raise stream.wrong(
            f"{COUNTERS}.{group}", f"{when} the job: {reason}", "it at both readings"
        )
    for section in ("load", "busy"):
        if (section in first.absent) != (section in last.absent):
            raise stream.wrong(section, "it at one of the readings only", "it at both")
    return last
