"""The experiments of papers P1 … P5: their claims, their figures, and what they published.

May import: every room.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from pathlib import Path

from proofmark.cli.command import flag
from proofmark.common.plugins import PluginTable

MESSAGES: Mapping[str, str] = {
    "claim-elsewhere": "the figures are of {systems}; the claim is of {wanted}",
    "claim-figures": "figures of {system}",
    "claim-missing": "missing: {text}",
    "claim-all-points": "all {points:point|points} of {sweep}",
    "claim-points": "{missing} of {points} points of {sweep}",
}
"""The messages of the package: the code of each, and its English template."""

PLUGINS: PluginTable = {
    "proofmark.common.message_table": {
        "papers": ":MESSAGES",
    },
    "proofmark.cli.options": {
        "verdict claims": ":claims_options",
    },
    "proofmark.judge.additions": {
        "papers": "claims_of_runs:ClaimsJudge",
    },
    "proofmark.report.additions": {
        "figures": "plots_page:PlotsOnPage",
        "papers": "claims_of_runs:ClaimsOnPage",
    },
}


def claims_options(parser: ArgumentParser) -> None:
    """Add ``--claims`` and the further runs to the command ``verdict``."""
    note = (
        "print which claims of the papers hold in RUN and MORE; they are information: exit code 0"
    )
    flag(parser, "--claims", note)
    note = "with --claims: further runs"
    parser.add_argument("more", metavar="MORE", nargs="*", type=Path, help=note)
    parser.set_defaults(instead=_instead)


def _instead(options: Namespace) -> int | None:
    from proofmark.packages.papers.claims_of_runs import print_claims  # it imports polars

    return print_claims(options)
