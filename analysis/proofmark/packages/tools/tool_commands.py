"""The commands of the tools in the help of the command line, without their modules."""

from __future__ import annotations

from proofmark.cli.command import AddedCommand

FOLDER = "proofmark.packages.tools"
EXPLAIN = AddedCommand("judge", f"{FOLDER}.explain", "one step, whole")
TELEMETRY = AddedCommand("run", f"{FOLDER}.telemetry", "read power, temperature")
TUNE = AddedCommand("site", f"{FOLDER}.tune", "accept values of a search")
