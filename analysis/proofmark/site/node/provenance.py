"""The facts and counters of one node for a job: ``runs/<id>/nodes/<host>.json``."""

from __future__ import annotations

from proofmark.common.errors import bad_input
from proofmark.common.message import Message, joined
from proofmark.common.strict_model import StrictModel
from proofmark.site.node.counters import (
    CounterChange,
    Counters,
    counter_differences,
    disturbance,
    parse_counters,
)
from proofmark.site.node.facts import NodeFacts, parse_probe


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
        BadInput: a probe is not complete, or the two are of different nodes.
    """
    facts = parse_probe(before, f"{source}.before")
    first = parse_counters(before, f"{source}.before")
    last = None if after is None else parse_counters(after, f"{source}.after")
    if last is not None and last.hostname != first.hostname:
        raise bad_input(f"{source}.after", "hostname", last.hostname, first.hostname)
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
