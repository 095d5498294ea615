"""Estimates the time of the resets of a plan."""

from __future__ import annotations

from collections.abc import Sequence

from proofmark.plan.plan import Plan
from proofmark.site.firmware import Firmware


def nodes_to_reset(plan: Plan) -> list[int]:
    """Return the number of nodes of each mode but the current one."""
    return [len(group.nodes()) for group in plan.groups if group.mode != plan.current_mode]


def resets_s(nodes: Sequence[int], firmware: Firmware | None) -> float:
    """Return the seconds of all resets: into each mode but the current one, and back.

    Args:
        nodes: see `nodes_to_reset`.
        firmware: None: no reset.
    """
    if firmware is None:
        return 0.0
    batches = [-(-number // firmware.batch_size) for number in nodes]
    return (sum(batches) + max(batches, default=0)) * firmware.boot_s
