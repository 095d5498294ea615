"""The history of figures: many runs on one page, two runs figure by figure.

May import: every room.
"""

from __future__ import annotations

from proofmark.cli.command import AddedCommand
from proofmark.common.plugins import PluginTable

TREND = AddedCommand(
    "judge", "proofmark.packages.history.trend_command", "compare runs, two or all"
)

PLUGINS: PluginTable = {
    "proofmark.common.message_table": {
        "history": "messages:MESSAGES",
    },
    "proofmark.cli.commands": {
        "trend": ":TREND",
    },
}
