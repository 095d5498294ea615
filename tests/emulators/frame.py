"""What the emulated commands of batch systems share: their folder, their jobs and their calls.

In the folder ``PROOFMARK_FAKE_BATCH`` the file ``jobs.json`` has the jobs of the queue, and
``refuse`` a message with which each command fails. Each call is appended to ``calls``.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

FOLDER = Path(os.environ.get("PROOFMARK_FAKE_BATCH", "/nonexistent"))
Job = dict[str, object]


def jobs() -> dict[str, Job]:
    """Return the fields of each job by its id."""
    path = FOLDER / "jobs.json"
    queue: dict[str, Job] = json.loads(path.read_text()) if path.exists() else {}
    return queue


def setting(name: str, default: str) -> str:
    """Return the content of a file of the folder: what the administrator has set."""
    path = FOLDER / name
    return path.read_text().strip() if path.exists() else default


def run(commands: Mapping[str, Callable[..., int]]) -> int:
    """Run the command by whose name the program is called; return its exit code."""
    command = Path(sys.argv[0]).name
    with (FOLDER / "calls").open("a") as calls:
        calls.write(" ".join([command, *sys.argv[1:]]) + "\n")
    if message := setting("refuse", ""):
        print(message, file=sys.stderr)
        return 1
    return commands[command](*sys.argv[1:])
