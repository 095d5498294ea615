"""Telemetry of the BMCs: power and temperature while a run runs.

May import: every room.
"""

from __future__ import annotations

from proofmark.cli.command import AddedCommand
from proofmark.common.plugins import PluginTable

FOLDER = "proofmark.packages.tools"
TELEMETRY = AddedCommand("run", f"{FOLDER}.telemetry", "read power, temperature")

PLUGINS: PluginTable = {
    "proofmark.cli.commands": {
        "telemetry": ":TELEMETRY",
    },
}
