"""Outputs that others produced: a run from them.

May import: every room.
"""

from __future__ import annotations

from proofmark.cli.command import AddedCommand
from proofmark.common.plugins import PluginTable

ADOPT = AddedCommand("judge", "proofmark.packages.foreign.adopt", "outputs of others")
LINK = "adopted"
"""The first word of the names of the links to adopted runs."""

PLUGINS: PluginTable = {
    "proofmark.common.message_table": {
        "foreign": "messages:MESSAGES",
    },
    "proofmark.cli.commands": {
        "adopt": ":ADOPT",
    },
    "proofmark.runs.run": {
        LINK: ":LINK",
    },
    "proofmark.plan.kinds": {
        "imported": "adopted:AdoptedRun",
    },
    "proofmark.records.read": {
        "imported": "adopted_outputs:AdoptedOutputs",
    },
    "proofmark.judge.judging": {
        "imported": "adopted_outputs:AdoptedJudge",
    },
    "proofmark.report.additions": {
        "adopted": "adopted_page:AdoptedOnPage",
    },
}
