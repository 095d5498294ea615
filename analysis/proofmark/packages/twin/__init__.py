"""The twin of a partition: a model of its nodes and network, on which SimGrid runs MPI programs.

May import: every room.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from proofmark.cli.command import AddedCommand, Parser, only_beside
from proofmark.common.plugins import PluginTable
from proofmark.common.printed_command import PATH, CallVariable

if TYPE_CHECKING:
    from proofmark.site.inventory import Site

LINK = "twin"
"""The first word of the names of the links to runs of twins."""
TWIN = AddedCommand("before a run", "proofmark.packages.twin.twin_command", "simulate a suite")

VARIABLES: Mapping[str, CallVariable] = {"expected": CallVariable("path", PATH, of_plan=True)}
"""The variable of a call that the package adds."""

PLUGINS: PluginTable = {
    "proofmark.common.message_table": {
        "twin": "messages:MESSAGES",
    },
    "proofmark.site.extra_vars": {
        "twin": ":VARIABLES",
    },
    "proofmark.cli.options": {
        "create twin": ":expected_option",
    },
    "proofmark.cli.commands": {
        "twin": ":TWIN",
    },
    "proofmark.runs.run": {
        LINK: ":LINK",
    },
    "proofmark.judge.additions": {
        "twin": "predictions:PredictionsJudge",
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


def expected_option(parser: Parser) -> None:
    """Add ``--expected``: a run of a twin, whose figures are shown beside the measured ones."""
    note = "with --create: a run of a twin, whose figures are shown beside the measured ones"
    expected = parser.add_argument("--expected", type=Path, metavar="RUN", help=note)
    only_beside(expected, "--create")
    parser.set_defaults(further_inputs=_predictions)


def _predictions(options: Namespace, site: Site) -> Mapping[str, str]:
    if options.expected is None:
        return {}
    from proofmark.packages.twin.twin_error import expected_inputs  # it imports polars

    return expected_inputs(options.expected.expanduser(), site)
