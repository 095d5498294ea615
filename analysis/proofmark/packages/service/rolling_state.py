"""The nodes of a rolling run by rack, and since when comparisons with like nodes judge them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from proofmark.common.message import Message
from proofmark.judge.additions import KindResult
from proofmark.packages.service.rolling_plan import KIND

Standing = Literal["accepted", "waiting", "failed", "unjudged"]
"""``waiting``: a step of the node has no result, and none failed. ``unjudged``: the node has all
results and no fault, but a required metric of it was not judged."""
NO_RACK = "–"


@dataclass(frozen=True)
class NodeStanding:
    """The standing of a node, with its rack (`NO_RACK` if that is not known) and the reason."""

    node: str
    rack: str
    standing: Standing
    reason: str


@dataclass(frozen=True)
class PeersSince:
    """Since when like nodes judge a figure.

    Attributes:
        figure: the case, the metric and the setting.
        nodes: the number of like nodes that were measured.
        needed: with how many of them, of 4, 8, 16, …, it got its limit; 0: it has none.
        since: when the last of these had measured, in seconds since 1970; NaN: it has no limit.
    """

    figure: str
    nodes: int
    needed: int
    since: float

    @property
    def time(self) -> str:
        """`since` as ``2026-11-26 05:00 UTC``; empty if it is not known."""
        if math.isnan(self.since):
            return ""
        return f"{datetime.fromtimestamp(self.since, UTC):%Y-%m-%d %H:%M} UTC"


@dataclass(frozen=True)
class RollingState(KindResult):
    """The state of a rolling run."""

    kind = KIND
    nodes: tuple[NodeStanding, ...]
    peers: tuple[PeersSince, ...]

    @property
    def label(self) -> Message:
        """The number of nodes with each standing."""
        counts = Counter(each.standing for each in self.nodes)
        named = {"open": counts["unjudged"]}
        named |= {word: counts[word] for word in ("accepted", "waiting", "failed")}
        return Message("rolling-nodes", **named)

    def racks(self) -> Mapping[str, Mapping[str, list[str]]]:
        """Return the nodes by rack and standing."""
        found: dict[str, dict[str, list[str]]] = {}
        for each in self.nodes:
            found.setdefault(each.rack, {}).setdefault(each.standing, []).append(each.node)
        return found

    def as_json(self) -> dict[str, Any]:
        """Return the form of ``verdict.json``."""
        peers = [{**vars(each), "since": each.time} for each in self.peers]
        return {"nodes": [vars(each) for each in self.nodes], "peers": peers}
