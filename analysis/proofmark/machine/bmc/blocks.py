"""States in which a BMC refuses changes, such as a lockdown."""

from __future__ import annotations

from collections.abc import Sequence

from proofmark.machine.bmc.client import RedfishConnection
from proofmark.machine.bmc.json_body import Part
from proofmark.site.bmc_vendors.vendor_model import Block


def blocking(bmc: RedfishConnection, blocks: Sequence[Block]) -> str:
    """Return the state that blocks changes, and its remedy; empty if there is none.

    A BMC without the resource of a state does not have this state.

    Raises:
        NodeError: a request failed, or the resource has another form.
    """
    for block in blocks:
        response = bmc.request("GET", block.resource, accept=(200, 404))
        if response.status == 200 and _value(response.body, block.key) in block.values:
            return f"{block.name}: the BMC refuses changes; {block.remedy}"
    return ""


def _value(body: Part, keys: Sequence[str]) -> object:
    for key in keys[:-1]:
        body = body.part(key)
    return body.content.get(keys[-1])
