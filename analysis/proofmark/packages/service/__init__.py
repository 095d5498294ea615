"""Nodes that arrive one after the other, and nodes that return to service.

A rolling run measures each node or rack when it is available, and grows until it is signed.

May import: every room.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from proofmark.cli.command import AddedCommand, Parser
from proofmark.common.plugins import PluginTable
from proofmark.common.printed_command import CallVariable

MODULE = "proofmark.packages.service.gate"
GATE = AddedCommand("sign and keep", MODULE, "return nodes to service")
DECIDE = AddedCommand("stage", MODULE, "decide which nodes of a run return to service")

MESSAGES: Mapping[str, str] = {
    "left-rolling": "{case}: {count:step of several nodes does|steps of several nodes do} not "
    "roll; -e run_id=RUN without rolling=true adds them",
    "rolling-nodes": "nodes: {accepted} accepted, {waiting} waiting, {failed} failed, {open} not "
    "judged",
}
"""The messages of the package: the code of each, and its English template."""

_ROLLS = re.compile(r"(?i:true|false|node|rack)")


def _no_rolling(text: str) -> str:
    return "" if _ROLLS.fullmatch(text) else "true, false, node or rack"


VARIABLES: Mapping[str, CallVariable] = {
    "rolling": CallVariable("str", _ROLLS, of_plan=True, mistake=_no_rolling),
    "gate_accept_unjudged": CallVariable("bool", stage="gate"),
    "gate_whole_partition": CallVariable("bool", stage="gate"),
    "gate_node_hours": CallVariable("float"),
}
"""The variables of a call that the package adds."""

PLUGINS: PluginTable = {
    "proofmark.common.message_table": {
        "service": ":MESSAGES",
    },
    "proofmark.site.extra_vars": {
        "service": ":VARIABLES",
    },
    "proofmark.cli.commands": {
        "gate": ":GATE",
        "stage gate-decide": ":DECIDE",
    },
    "proofmark.cli.options": {
        "plan rolling": ":rolling_option",
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


def rolling_option(parser: Parser) -> None:
    """Add ``--rolling``: false and an empty value are the usual run, and true is a node."""
    note = "one job for each node or rack, which starts when its nodes are available"
    words = ("", "false", "true", "node", "rack")
    parser.add_argument("--rolling", type=str.lower, choices=words, default="", help=note)
