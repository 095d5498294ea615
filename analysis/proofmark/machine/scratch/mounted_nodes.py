"""The nodes on which a run has mounted scratch."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from proofmark.common.errors import bad_input
from proofmark.common.files import read_bytes, write_whole
from proofmark.common.json_text import parse_json
from proofmark.common.nodesets import fold, unfold
from proofmark.runs.run_files import RunFiles


def read_mounted(state: Path) -> list[str]:
    """Return the nodes on which this run may have mounted the file system."""
    path = RunFiles(state).mounted
    try:
        return unfold(parse_json(read_bytes(path)))
    except FileNotFoundError:
        return []
    except (OSError, TypeError, ValueError) as error:
        raise bad_input(path, "", f"damaged: {error}", "the file that the kit wrote") from None


def write_mounted(state: Path, names: Iterable[str]) -> None:
    """Keep the nodes with a mount; without one there is no file."""
    if sets := fold(dict.fromkeys(names)):
        write_whole(RunFiles(state).mounted, json.dumps(sets) + "\n")
    else:
        RunFiles(state).mounted.unlink(missing_ok=True)
