"""The system of a node: one BMC may have several, for example that of a blade with two nodes."""

from __future__ import annotations

from collections.abc import MutableMapping

from proofmark.machine.bmc.client import RedfishConnection
from proofmark.machine.bmc.collection import path_of_member, read_members
from proofmark.machine.outcome import NodeError, Outcome

SYSTEMS = "/redfish/v1/Systems"


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
