"""Collections of resources (DSP0266), read to their end over all their pages.

The systems of a BMC are one: it may have several, for example that of a blade with two nodes.
"""

from __future__ import annotations

from collections.abc import MutableMapping

from proofmark.machine.bmc.client import RedfishConnection
from proofmark.machine.bmc.json_body import BodyPart
from proofmark.machine.outcome import NodeError, Outcome

SYSTEMS = "/redfish/v1/Systems"

NEXT = "Members@odata.nextLink"

COUNT = "Members@odata.count"

MOST_PAGES = 1000
"""The largest number of pages of a collection; a BMC that has more sends its pages in a circle."""


def path_of_system(bmc: RedfishConnection, system: str, known: MutableMapping[str, str]) -> str:
    """Return the path of `system`; without an id that of the only system of the BMC.

    Args:
        bmc: the connection.
        system: the id (``firmware.system``), or empty.
        known: the path of the only system by address; this function adds to it.

    Raises:
        NodeError: a request failed; UNEXPECTED: the BMC has not exactly one system.
    """
    if system:
        return f"{SYSTEMS}/{system}"
    if bmc.address not in known:
        paths = [path_of_member(each) for each in read_members(bmc, SYSTEMS)]
        if len(paths) != 1:
            names = ", ".join(path.rstrip("/").rpartition("/")[2] for path in paths)
            text = f"the BMC has {len(paths)} systems ({names}); name that of each node: "
            example = 'firmware.system, for example "Node{number % 2}"'
            raise NodeError(Outcome.UNEXPECTED, f"{text}{example}")
        known[bmc.address] = paths[0]
    return known[bmc.address]


def read_members(bmc: RedfishConnection, path: str, *, counted: bool = False) -> list[BodyPart]:
    """Return all members of the collection at `path`, of all pages.

    Args:
        bmc: the connection.
        path: of the collection, with its query.
        counted: whether the number of members must be at least that which the BMC states.

    Raises:
        NodeError: a request failed; UNEXPECTED: a page follows itself, or members are missing.
    """
    members: list[BodyPart] = []
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


def path_of_member(member: BodyPart) -> str:
    """Return the path of a member of a collection.

    Raises:
        NodeError: UNEXPECTED: the member has no path.
    """
    path = member.path("@odata.id")
    if not path:
        raise NodeError(Outcome.UNEXPECTED, f"{member.place}: found no @odata.id; accepted: a path")
    return path
