"""The command ``trend`` in the help of the command line, without the modules of the command."""

from __future__ import annotations

from proofmark.cli.command import AddedCommand

TREND = AddedCommand(
    "judge", "proofmark.packages.history.trend_command", "compare runs, two or all"
)
