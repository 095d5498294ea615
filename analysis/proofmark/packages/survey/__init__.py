"""The survey of a machine: the first inventory of a site, and its differences from the machine.

May import: every room.
"""

from __future__ import annotations

from proofmark.cli.command import AddedCommand
from proofmark.common.plugins import PluginTable

INIT = AddedCommand("site", "proofmark.packages.survey.init", "write a site from its nodes")

PLUGINS: PluginTable = {
    "proofmark.cli.commands": {
        "init": ":INIT",
    },
    "proofmark.packages.survey.listings": {
        "flux": "listings:FluxNodes",
        "lsf": "listings:LsfHosts",
        "pbs": "listings:PbsNodes",
        "sge": "listings:GridEngineHosts",
        "slurm": "listings:SlurmNodes",
    },
}
