"""How long nodes were seen to be up, and how long nobody looked at them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isfinite

from proofmark.runs.stability_log import JobRun, Look, Span, length, seen_pairs, seen_spans


@dataclass(frozen=True)
class SeenNodes:
    """What looks at the nodes show of a time.

    Attributes:
        hours: from the begin to the end of the time.
        looked: the hours of it in which the controller looked at the nodes.
        unseen: the hours of it in which a node was not seen, mean of the nodes.
        up: the share of the time in which nodes were seen to be up, mean of the nodes; None if no
            node was seen. A node that nobody saw is not available.
        up_when_seen: the share of the time in which nodes were seen; None if no node was.
    """

    hours: float
    looked: float
    unseen: float
    up: float | None
    up_when_seen: float | None


def window_of(begin: float, end: float, runs: Sequence[JobRun], looks: Sequence[Look]) -> Span:
    """Return the time that is judged; of a run that is not over, until the last that is known."""
    if isfinite(end):
        return begin, end
    known = [look.time for look in looks[-1:]]
    for each in runs:
        # A job that has not started or ended has NaN, which is not equal to itself.
        known += [time for time in (each.started, each.ended) if time == time]
    return begin, max(known, default=begin)


def seen_nodes(hosts: Sequence[str], looks: Sequence[Look], window: Span) -> SeenNodes:
    """Return what `looks` show of `hosts` in a time. After a look nodes are as it saw them."""
    begin, end = window
    if not -inf < begin < end < inf:
        return SeenNodes(0.0, 0.0, 0.0, None, None)
    wall, looked = end - begin, length(seen_spans(looks, ()), *window)
    down_s = unknown_s = 0.0
    for one, other in seen_pairs(looks):
        seconds = length([(one.time, other.time)], *window)
        down = one.down.keys() & {*hosts}
        down_s += seconds * len(down)
        unknown_s += seconds * len({*one.unknown}.intersection(hosts) - down)
    whole_s, seen_s = len(hosts) * wall, len(hosts) * looked - unknown_s
    unseen_s = whole_s - seen_s
    up = 1 - (down_s + unseen_s) / whole_s if seen_s > 0 else None
    up_when_seen = 1 - down_s / seen_s if seen_s > 0 else None
    hours = wall / 3600, looked / 3600, unseen_s / len(hosts) / 3600
    return SeenNodes(*hours, up, up_when_seen)
