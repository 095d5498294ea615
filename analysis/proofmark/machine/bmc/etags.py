"""The forms in which BMCs accept their own ETag in the header If-Match.

A weak ETag never matches (RFC 9110, section 13.1.1), but some BMCs send weak ones and accept them.
Others compare without quotes, put a second pair of quotes around the header, have the right value
only in the body, or accept none. Clients of Redfish try these forms one after the other: the module
utils of community.general take the header, then ``@odata.etag``, and have options to remove the
quotes and to send no If-Match. Sushy (OpenStack) changes weak ETags to strong ones, and the scripts
of Lenovo send ``@odata.etag`` or ``*``.
"""

from __future__ import annotations

import re
from typing import NamedTuple

ANY = "*"
"""Matches each version of a resource that exists."""
_VALUE = re.compile(r"[!-~]{1,200}")
"""What is sent in a header: printable ASCII without a blank."""


class Etags(NamedTuple):
    """The ETags of one response: the header ``ETag``, and ``@odata.etag`` of its body."""

    header: str
    body: str


def conditions(etags: Etags) -> list[dict[str, str]]:
    """Return the headers of a conditional request, in the order in which they are tried.

    The exact forms come first. The last two are the condition that the resource exists, and no
    condition. Without an ETag these two come in the other order.
    """
    given = [value.strip() for value in etags if value.strip()]
    opaque = [value.removeprefix("W/").replace("\\", "").strip('"') for value in given]
    exact = [*given, *(f'"{value}"' for value in opaque if value), *opaque]
    usable = [value for value in dict.fromkeys(exact) if _VALUE.fullmatch(value)]
    matches = [{"If-Match": value} for value in dict.fromkeys((*usable, ANY))]
    return [*matches, {}] if usable else [{}, *matches]
