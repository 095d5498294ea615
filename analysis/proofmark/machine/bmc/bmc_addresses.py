"""The addresses of BMCs, as plays and `modes` print them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from proofmark.common.expressions import render
from proofmark.common.nodesets import unfold
from proofmark.machine.bmc.back_end import BACK_ENDS
from proofmark.machine.bmc.bmc_model import Host
from proofmark.site.firmware import Firmware

NO_BMC = "none"
"""The text for a partition whose firmware is set without BMCs, and for one without firmware."""


def address_of(pattern: str, number: int, node: str, file: object, key: str = "bmc") -> str:
    """Return the address of the BMC of `node`, the host `number` of the partition; or its system.

    Raises:
        BadInput: `pattern`, the `key` of ``firmware`` in `file`, is no valid expression.
    """
    names = {"node": node, "number": number}
    return str(render(pattern, names, file=file, key=f"partition.firmware.{key}"))


def bmc_range(hosts: Mapping[str, Host], nodes: Sequence[str]) -> str:
    """Return the addresses of the BMCs of the first and the last of `nodes`, as a range."""
    if not nodes:
        return NO_BMC
    return _range(hosts[nodes[0]].address, hosts[nodes[-1]].address)


def _range(first: str, last: str) -> str:
    return first if first == last else f"{first} … {last}"


def bmcs_of_facts(facts: Mapping[str, Any], hosts: Sequence[str], nodes: str) -> str:
    """Return the addresses of the BMCs of `nodes`, for a play; `NO_BMC` if no BMC is used.

    Args:
        facts: the facts of a partition, which need not be valid.
        hosts: all hosts of the partition, in the order of the inventory.
        nodes: a node set of `hosts`.

    Raises:
        BadInput: there is no such back end, or ``firmware.bmc`` is no valid expression.
    """
    declared = facts.get("firmware")
    firmware = declared if isinstance(declared, Mapping) else {}
    planned = set(unfold([nodes]) if nodes else ())
    chosen = [host for host in hosts if host in planned]
    if not chosen or not firmware or not BACK_ENDS.get(f"{firmware.get('back_end')}").uses_bmcs:
        return NO_BMC
    pattern = f"{firmware.get('bmc', Firmware.model_fields['bmc'].default)}"
    ends = (
        address_of(pattern, hosts.index(node), node, "partition")
        for node in (chosen[0], chosen[-1])
    )
    return _range(*ends)
