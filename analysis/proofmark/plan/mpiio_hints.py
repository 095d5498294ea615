"""Hints for MPI-IO, which ROMIO reads from a file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from proofmark.cases.models import HINTS, UNSET
from proofmark.common.errors import bad_input

HINTS_FILE = "romio-hints"
"""The input of a step with its hints. ROMIO opens it in the working directory of a rank."""

_HINT = re.compile(r"(?P<key>[A-Za-z_]\w*)=(?P<value>[^\s,=]+)", re.ASCII)


def hints_environment(point: Mapping[str, Any]) -> dict[str, str]:
    """Return the variables by which ROMIO reads the hints of a point; empty without hints.

    ROMIO reads the file that ``ROMIO_HINTS`` names (ROMIO User's Guide, "Hints"). Open MPI uses
    ROMIO only without its own component ``ompio``; other MPI libraries ignore this variable.
    """
    if point.get(HINTS, UNSET) == UNSET:
        return {}
    return {"ROMIO_HINTS": HINTS_FILE, "OMPI_MCA_io": "^ompio"}


def hints_input(point: Mapping[str, Any], file: str) -> dict[str, str]:
    """Return ROMIO's file for the hints of a point, by its name; empty without hints.

    Args:
        point: the values of the axes. The hints are ``key=value`` pairs, joined by commas.
        file: the case, for errors.

    Raises:
        BadInput: the hints have another form.
    """
    hints = point.get(HINTS, UNSET)
    if hints == UNSET:
        return {}
    pairs = [_HINT.fullmatch(word) for word in str(hints).split(",")]
    if not all(pairs):
        accepted = f"{UNSET}, or romio_cb_write=enable,cb_nodes=4"
        raise bad_input(file, "sweep.hints", repr(hints), accepted)
    return {HINTS_FILE: "".join(f"{pair['key']} {pair['value']}\n" for pair in pairs if pair)}
