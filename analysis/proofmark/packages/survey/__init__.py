"""The survey of a machine: the first inventory of a site, its differences, slips in its files.

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
    "proofmark.site.groups": {
        "at_variables": "slips:at_variables",
        "encrypted": "slips:encrypted",
        "misnamed": "slips:misnamed",
        "mistakes_in": "slips:mistakes_in",
        "near_variables": "slips:near_variables",
        "of_nothing": "slips:of_nothing",
        "split_facts": "slips:split_facts",
    },
    "proofmark.packages.survey.listings": {
        "flux": "listings:FluxNodes",
        "lsf": "listings:LsfHosts",
        "pbs": "listings:PbsNodes",
        "sge": "listings:GridEngineHosts",
        "slurm": "listings:SlurmNodes",
    },
}
