"""Whether a line that cannot be read may be a damaged row of a table.

Job scripts print lines around a table. Only their words distinguish them from rows.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from proofmark.cases.reader.spec_table import Layout
from proofmark.cases.reader.values import measured

_NUMBER_BEGINS = re.compile(r"[+-]?\.?\d", re.ASCII)
_DATE_OR_TIME = re.compile(r"\d{4}-\d\d-\d\d|\d{1,2}:\d\d", re.ASCII)


def is_rowlike(words: Sequence[str], layout: Layout) -> bool:
    """Return whether a line may be a row that is cut or damaged, or hidden behind other words.

    It is if it begins like a row, that is with a number or with (the beginning of) a name, or if
    as many successive words as the table has columns fit the columns.

    Args:
        words: the words of the line, at least one.
        layout: of the table.
    """
    names = [name for _, known in layout.names for name in known]
    if any(name.startswith(words[0]) or name in words for name in names):
        return True
    if not names and _NUMBER_BEGINS.match(words[0]) and not _DATE_OR_TIME.match(words[0]):
        return True
    numbers = [
        *(place for place, _ in layout.parameters),
        *(place for place, _, _ in layout.values),
    ]
    width = layout.width
    return width > 1 and any(
        all(measured(words[start + place])[0] is not None for place in numbers)
        for start in range(len(words) - width + 1)
    )
