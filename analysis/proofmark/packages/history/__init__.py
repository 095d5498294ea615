"""The history of figures: many runs on one page, two runs figure by figure.

May import: every room.
"""

from __future__ import annotations

from proofmark.common.plugins import PluginTable

PLUGINS: PluginTable = {
    "proofmark.cli.commands": {
        "trend": "command_line:TREND",
    },
}
