"""The commands of outputs of others in the help of the command line, without their modules."""

from __future__ import annotations

from proofmark.cli.command import AddedCommand

ADOPT = AddedCommand("judge", "proofmark.packages.foreign.adopt", "outputs of others")
IO500 = AddedCommand("judge", "proofmark.packages.foreign.io500", "score submissions again")
