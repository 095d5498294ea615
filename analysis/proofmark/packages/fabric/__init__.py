"""The links of a fabric: which element explains the slow pairs of nodes, and the rate across it.

May import: report and the rooms below it.
"""

from __future__ import annotations

from proofmark.common.plugins import PluginTable

PLUGINS: PluginTable = {
    "proofmark.judge.additions": {
        "fabric": "links:FabricJudge",
    },
    "proofmark.report.additions": {
        "fabric": "fabric_page:LinksOnPage",
    },
}
