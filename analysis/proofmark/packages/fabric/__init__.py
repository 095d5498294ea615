"""The links of a fabric: which element explains the slow pairs, and what pairs show.

May import: report and the rooms below it.
"""

from __future__ import annotations

from collections.abc import Mapping

from proofmark.common.plugins import PluginTable

MESSAGES: Mapping[str, str] = {
    "link-slow": "{ratio} × the usual value of {pairs} like pairs ({value}); slow: {element} "
    "(confidence {percent} %)",
    "all-rounds": "all rounds",
    "round-apart": "{step}, execution {execution}: {apart} of {pairs} pairs measured less than "
    "{share} of the time together with the others, or a clock is wrong: {listed}",
    "round-unknown": "{step}, execution {execution}: {unknown} of {pairs} pairs have no times",
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
        "pairs": "rounds:PairsJudge",
    },
    "proofmark.report.additions": {
        "fabric": "fabric_page:LinksOnPage",
        "pairs": "rounds:PairsOnPage",
    },
}
