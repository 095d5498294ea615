"""The options of a run of days in the command line, without the modules of its plan."""

from __future__ import annotations

import re
from argparse import ArgumentTypeError

from proofmark.cli.command import Parser, above_zero

_DURATION = re.compile(r"(\d+(?:\.\d+)?)(|d|h|min|s)", re.ASCII)
_PER_DAY = {"": 1, "d": 1, "h": 24, "min": 1440, "s": 86400}


def stability_options(parser: Parser) -> None:
    """Add the terms of the run to `parser`."""
    note = "of the suite stability: its duration, in days, or as 36h or 90min"
    parser.add_argument("--stability-days", type=_days, metavar="DAYS", help=note)
    note = "of the suite stability: the share of the nodes that jobs use (default: 0.9)"
    parser.add_argument("--stability-load", type=_share, metavar="SHARE", help=note)


def _days(text: str) -> float | None:
    """Return a duration in days; None for an empty text."""
    from proofmark.packages.stability.terms import MAX_DAYS  # it imports pydantic

    match = _DURATION.fullmatch(text)
    days = float(match[1]) / _PER_DAY[match[2]] if match else 0.0
    if text and not 0 < days <= MAX_DAYS:
        raise ArgumentTypeError(f"{text!r}: accepted: days, or a duration as 36h or 90min")
    return days if text else None


def _share(text: str) -> float | None:
    """Return a share of the nodes; None for an empty text."""
    return above_zero(1.0)(text) if text else None
