"""Estimates the time of the resets of a plan."""

from __future__ import annotations

from proofmark.plan.plan import Plan
from proofmark.site.firmware import Firmware


def resets_s(plan: Plan, firmware: Firmware | None) -> float:
    """Return the seconds of all resets: into each mode but the current one, and back."""
    if firmware is None:
        return 0.0
    batches = [
        -(-len({node for job in group.jobs for node in job.nodes}) // firmware.batch_size)
        for group in plan.groups
        if group.mode != plan.current_mode
    ]
    return (sum(batches) + max(batches, default=0)) * firmware.boot_s
