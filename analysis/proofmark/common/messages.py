"""Messages of a command that works: lines on stderr, at once."""

from __future__ import annotations

import sys


def say(line: str) -> None:
    """Print a line of progress."""
    print(line, file=sys.stderr, flush=True)
