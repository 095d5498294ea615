"""The history of figures: many runs on one page, two runs figure by figure.

May import: every room.
"""

from __future__ import annotations

from collections.abc import Mapping

from proofmark.cli.command import AddedCommand
from proofmark.common.plugins import PluginTable

TREND = AddedCommand(
    "judge", "proofmark.packages.history.trend_command", "compare runs, two or all"
)

MESSAGES: Mapping[str, str] = {
    "past-unfinished": "unfinished: it has no {file}",
    "past-unreadable": "unreadable: {problem}",
    "past-damaged": "damaged {file}: {problem}",
    "past-cut": "damaged {file}: it does not end as proofmark writes it",
    "past-records": "damaged {file}: records.parquet beside it has other figures",
    "past-empty": "{file} has no valid figure: each one is INVALID",
    "past-origins": "{file} has figures of several origins",
    "past-time": "damaged {file}: neither the run id {run} nor the facts of a node have a time",
    "past-file": "{file} is damaged",
    "past-programs": "{file} is missing or damaged",
    "trait-only": "package",
}
"""The messages of the package: the code of each, and its English template."""

PLUGINS: PluginTable = {
    "proofmark.common.message_table": {
        "history": ":MESSAGES",
    },
    "proofmark.cli.commands": {
        "trend": ":TREND",
    },
}
