"""The commands of the package in the help of the command line, without their modules."""

from __future__ import annotations

from proofmark.cli.command import AddedCommand

MODULE = "proofmark.packages.service.gate"
GATE = AddedCommand("sign and keep", MODULE, "return nodes to service")
DECIDE = AddedCommand("stage", MODULE, "decide which nodes of a run return to service")
