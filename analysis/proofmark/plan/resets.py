"""The changes of firmware modes by a plan: in words, and the time of its resets."""

from __future__ import annotations

from collections.abc import Sequence

from proofmark.common.printed_command import setting
from proofmark.common.text import duration
from proofmark.plan.plan import Plan
from proofmark.site.firmware import Firmware, abstract, wanted
from proofmark.site.partition import Partition


def nodes_to_reset(plan: Plan) -> list[int]:
    """Return the number of nodes of each mode but the current one."""
    return [len(group.nodes()) for group in plan.groups if group.mode != plan.current_mode]


def resets_s(nodes: Sequence[int], firmware: Firmware | None) -> float:
    """Return the seconds of all resets: into each mode but the current one, and back.

    Args:
        firmware: None: no reset.
    """
    if firmware is None:
        return 0.0
    batches = [-(-number // firmware.batch_size) for number in nodes]
    return (sum(batches) + max(batches, default=0)) * firmware.boot_s


def mode_lines(plan: Plan, partition: Partition) -> list[str]:
    """Return a line for each mode that a run enters, and one with the number of resets.

    The settings of a mode are those that differ from the mode before it.
    """
    firmware, nodes = partition.firmware, nodes_to_reset(plan)
    others = [group for group in plan.groups if group.mode != plan.current_mode]
    if not others:
        return [f"modes: only {plan.current_mode}, the current one; no reset, no BIOS change"]
    lines, before = [], plan.current_mode
    for group, count in zip(others, nodes, strict=True):
        steps = len([*group.steps()])
        need = (
            f"resets of {count} nodes, else {steps} steps are NOT RUN ({setting('confirm_reboot')})"
        )
        if firmware is None:
            need = f"{steps} steps are NOT RUN: partition.firmware is missing"
        lines.append(f"mode {group.mode}: {_changes(partition, before, group.mode)}; {need}")
        before = group.mode
    if firmware:
        back = len(set[str]().union(*(group.nodes() for group in others)))
        lines.append(
            f"resets of nodes: {sum(nodes) + back}, of which {back} back to {plan.current_mode}: "
            f"about {duration(resets_s(nodes, firmware))}"
        )
    return lines


def _changes(partition: Partition, before: str, mode: str) -> str:
    """Return the BIOS settings of `mode` that differ from those of the mode `before`."""
    old, firmware = partition.modes[before].settings, partition.firmware
    settings = partition.modes[mode].settings
    new = {name: value for name, value in settings.items() if old.get(name) != value}
    shown = {**wanted(firmware, new), **abstract(firmware, new)} if firmware else new
    return ", ".join(f"{name}={value}" for name, value in shown.items()) or "no BIOS change"
