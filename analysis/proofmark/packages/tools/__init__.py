"""Tools of an operator: what a step does, values of a search, telemetry of the BMCs.

May import: every room.
"""

from __future__ import annotations

from proofmark.cli.command import AddedCommand
from proofmark.common.plugins import PluginTable

FOLDER = "proofmark.packages.tools"
EXPLAIN = AddedCommand("judge", f"{FOLDER}.explain", "one step, whole")
TELEMETRY = AddedCommand("run", f"{FOLDER}.telemetry", "read power, temperature")
TUNE = AddedCommand("site", f"{FOLDER}.tune", "accept values of a search")

PLUGINS: PluginTable = {
    "proofmark.cli.commands": {
        "explain": ":EXPLAIN",
        "telemetry": ":TELEMETRY",
        "tune": ":TUNE",
    },
}
