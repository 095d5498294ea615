"""The command ``export``, which writes a run for other programs, and its formats.

May import: every room.
"""

from __future__ import annotations

from proofmark.cli.command import AddedCommand
from proofmark.common.plugins import PluginTable

FOLDER = "proofmark.packages.exports"
EXPORT = AddedCommand("sign and keep", f"{FOLDER}.export", "figures for other programs")

PLUGINS: PluginTable = {
    "proofmark.cli.commands": {
        "export": ":EXPORT",
    },
    f"{FOLDER}.export": {
        "csv": "tables:Csv",
        "parquet": "tables:Parquet",
        "junit": "junit:Junit",
        "hpl": "submission:HplSubmission",
        "nhc": "nhc:NodeHealthCheck",
    },
}
