"""Nodes that arrive one after the other, and nodes that return to service.

A rolling run measures each node or rack when it is available, and grows until it is signed.

May import: every room.
"""

from __future__ import annotations

from proofmark.common.plugins import PluginTable

PLUGINS: PluginTable = {
    "proofmark.cli.commands": {
        "gate": "command_lines:GATE",
        "stage gate-decide": "command_lines:DECIDE",
    },
    "proofmark.plan.kinds": {
        "rolling": "rolling_plan:RollingRun",
    },
    "proofmark.judge.judging": {
        "rolling": "rolling_nodes:RollingJudge",
    },
    "proofmark.report.additions": {
        "rolling": "nodes_by_rack:RollingPage",
    },
}
