"""Outputs that others produced: a run from them, and the scores of IO500 submissions.

May import: every room.
"""

from __future__ import annotations

from proofmark.common.plugins import PluginTable

PLUGINS: PluginTable = {
    "proofmark.cli.commands": {
        "adopt": "command_line:ADOPT",
        "io500": "command_line:IO500",
    },
    "proofmark.report.additions": {
        "adopted": "adopted_page:AdoptedOnPage",
    },
}
