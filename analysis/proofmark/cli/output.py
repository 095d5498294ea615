"""The results of commands on stdout: JSON and tables."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table


def print_json(content: Any) -> None:
    """Print `content` as JSON."""
    json.dump(content, sys.stdout, indent=1, default=str)
    print()


def print_table(table: Table) -> None:
    """Print `table`; a pipe gets every word of it, only a terminal has an edge."""
    from rich.console import Console

    width = None if sys.stdout.isatty() else 1000
    Console(width=width, markup=False).print(table)
