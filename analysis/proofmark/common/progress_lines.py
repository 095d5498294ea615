"""Progress messages of the commands, on stderr."""

from __future__ import annotations

import sys
from contextlib import suppress

from proofmark.common.text import one_line


def say(line: str) -> None:
    """Print `line` as one line and flush it. A stderr that takes nothing ends no command.

    A message of a BMC or a scheduler cannot begin a line of its own (`one_line`).
    """
    with suppress(OSError):
        print(one_line(line), file=sys.stderr, flush=True)
