"""What one node was during a job: ``runs/<id>/nodes/<host>.json``."""

from __future__ import annotations

from proofmark.common.errors import bad_input
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
    """Facts of a node, its counters before and after a job, and what their difference means.

    Attributes:
        after: None when the job ended without the second probe.
        disturbances: what ran on the node that should have been idle.
    """

    facts: NodeFacts
    before: Counters
    after: Counters | None
    changes: tuple[CounterChange, ...]
    disturbances: tuple[str, ...]

    @property
    def invalid(self) -> str:
        """Return why no figure of the job can be trusted, or an empty string."""
        return "; ".join(str(change) for change in self.changes if change.invalid)


def node_provenance(before: str, after: str | None, source: str) -> NodeProvenance:
    """Combine the two probes of a job on one node: ``facts`` before it, ``after`` behind it.

    Raises:
        BadInput: a probe is not whole, or the two are of different nodes.
    """
    facts = parse_probe(before, f"{source}.before")
    first = parse_counters(before, f"{source}.before")
    last = None if after is None else parse_counters(after, f"{source}.after")
    if last is not None and last.hostname != first.hostname:
        raise bad_input(f"{source}.after", "hostname", last.hostname, first.hostname)
    readings = [first] if last is None else [first, last]
    return NodeProvenance(
        facts=facts,
        before=first,
        after=last,
        changes=tuple(counter_differences(first, last)) if last else (),
        disturbances=tuple(filter(None, map(disturbance, readings))),
    )
