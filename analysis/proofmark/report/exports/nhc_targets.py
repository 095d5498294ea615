"""Match expressions of LBNL Node Health Check: the names of nodes before ``||``."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ClusterShell.RangeSet import RangeSet

_RANGEABLE = re.compile(
    r"(?P<prefix>[A-Za-z0-9_-]*[A-Za-z_-])(?P<digits>[0-9]{1,18})"
    r"(?P<suffix>[A-Za-z-]*(?:\.[A-Za-z0-9.-]*)?)"
)
"""A name that NHC accepts in a range. Its shell compares the digits as numbers of 64 bits."""


def match_expressions(names: Iterable[str]) -> list[str]:
    """Return the match expressions that match exactly the hosts in `names`: one or two.

    NHC's ranges have one pair of brackets, without commas, and compare the number of digits
    (``mcheck_range`` in ``scripts/common.nhc`` of NHC 1.4.3). A name that fits no range is part of
    a regular expression. A dot is ``[.]`` there, because NHC's ``read`` removes backslashes.

    Args:
        names: names of hosts, as `nodesets.NAME` defines them.
    """
    groups: dict[tuple[str, str, int], set[int]] = {}
    others: list[str] = []
    for name in sorted(set(names)):
        match = _RANGEABLE.fullmatch(name)
        if match is None:
            others.append(name.replace(".", "[.]"))
            continue
        key = match["prefix"], match["suffix"], len(match["digits"])
        groups.setdefault(key, set()).add(int(match["digits"]))
    ranges = ",".join(
        f"{prefix}{part}{suffix}"
        for (prefix, suffix, width), numbers in sorted(groups.items())
        for part in _parts(numbers, width)
    )
    expressions = [f"{{{ranges}}}"] if ranges else []
    return expressions + ([f"/^({'|'.join(others)})$/"] if others else [])


def _parts(numbers: set[int], width: int) -> Iterable[str]:
    """Yield ``[03-07]`` for each contiguous part of `numbers`, and ``09`` for a single number."""
    padded = RangeSet.fromlist(f"{number:0{width}d}" for number in numbers)
    for part in str(padded).split(","):
        yield f"[{part}]" if "-" in part else part
