"""The forecast of a mode change: what changes on which nodes, and how long it takes."""

from __future__ import annotations

from collections.abc import Mapping

from proofmark.common.nodesets import folded
from proofmark.machine.bmc.bmc_model import to_change
from proofmark.machine.modes.rollout import CheckedNode, ModeRollout


def forecast(rollout: ModeRollout, nodes: Mapping[str, CheckedNode]) -> tuple[list[str], float]:
    """Return the changes, one line for all nodes with the same changes, and their seconds."""
    nodes_of: dict[str, list[str]] = {}
    to_reset = 0
    for node, checked in nodes.items():
        text = f"nothing, in mode {checked.target.mode} already"
        if not rollout.arrived(checked):
            to_reset += 1
            current = checked.state.current
            changes = [
                f"{name}: {current.get(name, 'unknown')} → {value}"
                for name, value in to_change(checked.state, checked.target.attributes).items()
            ]
            text = ", ".join([*changes, "drain, reset, resume"])
        nodes_of.setdefault(text, []).append(node)
    firmware = rollout.transition.firmware
    lines = [f"{folded(names)}: {text}" for text, names in nodes_of.items()]
    return lines, -(-to_reset // firmware.batch_size) * firmware.boot_s
