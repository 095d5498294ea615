"""Tools of an operator: values of a search, telemetry of the BMCs.

May import: every room.
"""

from __future__ import annotations

from proofmark.cli.command import AddedCommand
from proofmark.common.plugins import PluginTable

FOLDER = "proofmark.packages.tools"
TELEMETRY = AddedCommand("run", f"{FOLDER}.telemetry", "read power, temperature")
TUNE = AddedCommand("site", f"{FOLDER}.tune", "facts from a search")

PLUGINS: PluginTable = {
    "proofmark.cli.commands": {
        "telemetry": ":TELEMETRY",
        "tune": ":TUNE",
    },
}
