"""Times in files of others: texts in ISO 8601 with a zone, and numbers of seconds.

Each is checked where it is read, so that no later computation or print can fail: a year of
``datetime`` is 1 to 9999, a naive time cannot be subtracted from one with a zone, and NaN is in
every order.
"""

from __future__ import annotations

import math
from datetime import datetime
from typing import Annotated, Any

from pydantic import AfterValidator

LATEST = 253_370_764_800.0
"""Begin of the year 9999, in seconds since 1970."""


def moment_of(text: Any) -> datetime:
    """Return a time in ISO 8601 with its zone, of the years 1970 to 9998.

    Raises:
        ValueError: it is none.
    """
    moment = datetime.fromisoformat(text) if isinstance(text, str) else None
    if moment is None or moment.tzinfo is None or not 1970 <= moment.year < 9999:
        raise ValueError(f"{text!r:.60} is no time of ISO 8601 with its zone")
    return moment


def moment_text(text: str) -> str:
    """Return `text`, which is a time as in `moment_of`.

    Raises:
        ValueError: it is none.
    """
    moment_of(text)
    return text


Moment = Annotated[str, AfterValidator(moment_text)]
"""A time as in `moment_of`, in a file that a model reads."""


def seconds_of(value: Any) -> float:
    """Return a number of seconds: of a duration, or since 1970. It is finite and not negative.

    Raises:
        ValueError: it is none, or later than `LATEST`.
    """
    number = value if isinstance(value, (int, float)) and not isinstance(value, bool) else math.nan
    if not 0 <= number <= LATEST:
        raise ValueError(f"{value!r:.60} is no number of seconds")
    return float(number)
