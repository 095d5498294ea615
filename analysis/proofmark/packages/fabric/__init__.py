"""The links of a fabric: which element explains the slow pairs of nodes, and the rate across it.

May import: report and the rooms below it.
"""

from __future__ import annotations

from collections.abc import Mapping

from proofmark.common.plugins import PluginTable

MESSAGES: Mapping[str, str] = {
    "link-slow": "{ratio} × the usual value of {pairs} like pairs ({value}); slow: {element} "
    "(confidence {percent} %)",
    "all-rounds": "all rounds",
}
"""The messages of the package: the code of each, and its English template."""

PLUGINS: PluginTable = {
    "proofmark.common.package_keys": {
        "partition.fabric": "keys:FabricKeys",
        "partition.fabric.levels": "keys:LevelKeys",
    },
    "proofmark.common.message_table": {
        "fabric": ":MESSAGES",
    },
    "proofmark.judge.additions": {
        "fabric": "links:FabricJudge",
    },
    "proofmark.report.additions": {
        "fabric": "fabric_page:LinksOnPage",
    },
}
