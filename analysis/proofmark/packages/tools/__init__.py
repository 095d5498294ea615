"""Tools of an operator: what a step does, values of a search as facts, telemetry of the BMCs.

May import: every room.
"""

from __future__ import annotations

from proofmark.common.plugins import PluginTable

PLUGINS: PluginTable = {
    "proofmark.cli.commands": {
        "explain": "tool_commands:EXPLAIN",
        "telemetry": "tool_commands:TELEMETRY",
        "tune": "tool_commands:TUNE",
    },
}
