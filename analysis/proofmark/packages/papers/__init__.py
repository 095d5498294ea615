"""The experiments of papers P1 … P5: their claims, their figures, and what they published.

May import: report and the rooms below it.
"""

from __future__ import annotations

from collections.abc import Mapping

from proofmark.common.plugins import PluginTable

MESSAGES: Mapping[str, str] = {
    "claim-elsewhere": "the figures are of {systems}; the claim is of {wanted}",
    "claim-figures": "figures of {system}",
    "claim-missing": "missing: {text}",
    "claim-all-points": "all {points} points of {sweep}",
    "claim-points": "{missing} of {points} points of {sweep}",
}
"""The messages of the package: the code of each, and its English template."""

PLUGINS: PluginTable = {
    "proofmark.common.message_table": {
        "papers": ":MESSAGES",
    },
    "proofmark.judge.claims": {
        "papers": "all_claims:Papers",
    },
    "proofmark.report.plots": {
        "p1_hpl": "node_plots:HplOverNodes",
        "p1_ior": "node_plots:IorOverFileSize",
        "p1_stream": "node_plots:StreamOverThreads",
        "p2_threads": "node_plots:PlacementOfThreads",
        "p3_between": "network_plots:PairsBetween",
        "p3_contention": "network_plots:SimultaneousPairs",
        "p3_inside": "network_plots:PairsInside",
        "p4_btio": "network_plots:BtIo",
        "p5_placements": "network_plots:CollectivesByPlacement",
    },
}
