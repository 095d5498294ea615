"""The experiments of papers P1 … P5: their claims, their figures, and what they published.

May import: report and the rooms below it.
"""

from __future__ import annotations

from proofmark.common.plugins import PluginTable

PLUGINS: PluginTable = {
    "proofmark.judge.claims": {
        "papers": "all_claims:Papers",
    },
    "proofmark.report.plots": {
        "p1_hpl": "figures.p1_hpl:HplOverNodes",
        "p1_ior": "figures.p1_ior:IorOverFileSize",
        "p1_stream": "figures.p1_stream:StreamOverThreads",
        "p2_threads": "figures.p2_threads:PlacementOfThreads",
        "p3_between": "figures.p3_between:PairsBetween",
        "p3_contention": "figures.p3_contention:SimultaneousPairs",
        "p3_inside": "figures.p3_inside:PairsInside",
        "p4_btio": "figures.p4_btio:BtIo",
        "p5_placements": "figures.p5_placements:CollectivesByPlacement",
    },
}
