"""Rank tags: launchers can print the rank before each line.

A tag is recognised only if every line has one. A single line without it means that the numbers
before the other lines may be output of the program.
"""

from __future__ import annotations

import re

_TAGS = (
    re.compile(r" *\d+: ?", re.ASCII),  # srun -l
    # mpirun --tag-output of Open MPI 4, and of 5
    re.compile(r"\[\d+,\d+\]<(?:stdout|stderr|stddiag)>: ?", re.ASCII),
    re.compile(r"\[[\w.@-]+,\d+\]<(?:stdout|stderr|stddiag)>: ?", re.ASCII),
    re.compile(r"\[\d+\] ?", re.ASCII),  # mpiexec -l of MPICH and Intel MPI
)


def without_tags(text: str) -> str:
    """Return `text` without rank tags; unchanged if not every line has a tag of the same form."""
    *lines, last = text.split("\n")
    tagged = [*lines, last] if last else lines
    for tag in _TAGS:
        if all(map(tag.match, tagged)):
            stripped = [tag.sub("", line, count=1) for line in tagged]
            return "\n".join(stripped if last else [*stripped, ""])
    return text
