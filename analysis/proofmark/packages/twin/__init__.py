"""The twin of a partition: a model of its nodes and network, on which SimGrid runs MPI programs.

May import: every room.
"""

from __future__ import annotations

from proofmark.common.plugins import PluginTable

PLUGINS: PluginTable = {
    "proofmark.cli.commands": {
        "twin": "command_line:TWIN",
    },
    "proofmark.report.additions": {
        "twin": "twin_page:TwinOfPartition",
    },
    "proofmark.jobs.launchers": {
        "twin": "smpirun:SmpirunLauncher",
    },
    "proofmark.machine.schedulers": {
        "simulated": "simulated_nodes:SimulatedNodes",
    },
    "proofmark.software.providers": {
        "twin": "twin_programs:TwinPrograms",
    },
}
