"""The command ``twin`` in the help of the command line, without the modules of the command."""

from __future__ import annotations

from proofmark.cli.command import AddedCommand

TWIN = AddedCommand("before a run", "proofmark.packages.twin.twin_command", "simulate a suite")
