"""Collections of resources (DSP0266), read to their end over all their pages."""

from __future__ import annotations

from proofmark.machine.bmc.client import RedfishConnection
from proofmark.machine.bmc.json_body import Part
from proofmark.machine.outcome import NodeError, Outcome

NEXT = "Members@odata.nextLink"
COUNT = "Members@odata.count"
MOST_PAGES = 1000
"""The largest number of pages of a collection; a BMC that has more sends its pages in a circle."""


def read_members(bmc: RedfishConnection, path: str, *, counted: bool = False) -> list[Part]:
    """Return all members of the collection at `path`, of all pages.

    Args:
        bmc: the connection.
        path: of the collection, with its query.
        counted: whether the number of members must be at least that which the BMC states.

    Raises:
        NodeError: a request failed; UNEXPECTED: a page follows itself, or members are missing.
    """
    members: list[Part] = []
    seen: set[str] = set()
    page, count = path, 0
    while page:
        if page in seen or len(seen) >= MOST_PAGES:
            text = f"{path}: the page {page} of the collection follows itself"
            raise NodeError(Outcome.UNEXPECTED, text)
        seen.add(page)
        body = bmc.get(page).body
        members += body.items("Members")
        count = max(count, body.number(COUNT) or 0)
        page = body.path(NEXT)
    if counted and len(members) < count:
        text = f"{path}: found {len(members)} members; the collection states {count}"
        raise NodeError(Outcome.UNEXPECTED, text)
    return members


def path_of_member(member: Part) -> str:
    """Return the path of a member of a collection.

    Raises:
        NodeError: UNEXPECTED: the member has no path.
    """
    path = member.path("@odata.id")
    if not path:
        raise NodeError(Outcome.UNEXPECTED, f"{member.place}: found no @odata.id; accepted: a path")
    return path
