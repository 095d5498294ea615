"""The twin of a partition: a model of its nodes and network, on which SimGrid runs MPI programs.

May import: every room.
"""

from __future__ import annotations

from proofmark.cli.command import AddedCommand
from proofmark.common.plugins import PluginTable

LINK = "twin"
"""The first word of the names of the links to runs of twins."""
TWIN = AddedCommand("before a run", "proofmark.packages.twin.twin_command", "simulate a suite")

PLUGINS: PluginTable = {
    "proofmark.common.message_table": {
        "twin": "messages:MESSAGES",
    },
    "proofmark.cli.commands": {
        "twin": ":TWIN",
    },
    "proofmark.runs.run": {
        LINK: ":LINK",
    },
    "proofmark.report.additions": {
        "twin": "twin_page:TwinOfPartition",
    },
    "proofmark.jobs.launchers": {
        "twin": "simulated_jobs:SmpirunLauncher",
    },
    "proofmark.machine.schedulers": {
        "simulated": "simulated_jobs:SimulatedNodes",
    },
    "proofmark.software.providers": {
        "twin": "smpi:TwinPrograms",
    },
}
