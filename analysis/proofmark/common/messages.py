"""Progress messages of the commands, on stderr."""

from __future__ import annotations

import sys


def say(line: str) -> None:
    """Print a line and flush it."""
    print(line, file=sys.stderr, flush=True)
