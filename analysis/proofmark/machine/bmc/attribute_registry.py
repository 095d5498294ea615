"""Attribute registries of BMCs: the values that the firmware accepts."""

from __future__ import annotations

from dataclasses import dataclass

from proofmark.machine.bmc.bmc_model import AttributeSpec, refused_settings
from proofmark.machine.bmc.client import RedfishConnection
from proofmark.machine.bmc.json_body import Part
from proofmark.machine.outcome import NodeError, Outcome
from proofmark.site.bmc_vendors.vendor_model import BmcVendor
from proofmark.site.firmware import Scalar, Settings

ROOT = "/redfish/v1"


@dataclass(frozen=True)
class Registry:
    """An attribute registry, the address of the BMC that sent it, and whether another BMC agrees.

    Nodes share a copy. A copy that refuses a setting is believed only if two BMCs sent it, so that
    one damaged answer affects one node.
    """

    specs: dict[str, AttributeSpec]
    address: str
    confirmed: bool = False


def doubtful(shared: Registry, address: str, wanted: Settings) -> bool:
    """Return whether a registry that one other BMC sent refuses a setting."""
    if shared.confirmed or shared.address == address:
        return False
    return any(refused_settings(wanted, shared.specs))


def read_registry(bmc: RedfishConnection, name: str, vendor: BmcVendor) -> dict[str, AttributeSpec]:
    """Return the attributes of the registry `name`, as the BMC sends it.

    Raises:
        NodeError: REFUSED: the BMC has no such registry, or the registry has no file.
    """
    response = bmc.request("GET", f"{ROOT}/Registries/{name}", accept=(200, 404))
    if response.status != 200:
        # Some BMCs list a registry without the last part of its version, or with another version.
        members = bmc.get(f"{ROOT}/Registries").body.items("Members")
        paths = {path: path.rstrip("/").rpartition("/")[2] for path in map(path_of_member, members)}
        matches = [path for path, listed in paths.items() if name.startswith(listed)] or [
            path
            for path, listed in paths.items()
            if vendor.registry and listed.startswith(vendor.registry)
        ]
        if not matches:
            problem = f"no attribute registry {name}: settings cannot be checked"
            raise NodeError(Outcome.REFUSED, problem)
        response = bmc.get(max(matches, key=len))
    uri = next(filter(None, (item.path("Uri") for item in response.body.items("Location"))), "")
    if not uri:
        problem = f"registry {name} has no file: settings cannot be checked"
        raise NodeError(Outcome.REFUSED, problem)
    entries = bmc.get(uri).body.part("RegistryEntries").items("Attributes")
    key = vendor.value_names
    return {item.text("AttributeName"): _attribute_spec(item, key) for item in entries}


def _attribute_spec(item: Part, key: str) -> AttributeSpec:
    """Return the specification of an attribute; a damaged one is an attribute that cannot be set.

    A registry has hundreds of attributes, and the kit sets a few.
    """
    try:
        values: tuple[Scalar, ...] = tuple(each.text(key) for each in item.items("Value"))
        if item.text("Type") == "Boolean":
            values = (True, False)
        return AttributeSpec(
            item.flag("ReadOnly"), values, item.number("LowerBound"), item.number("UpperBound")
        )
    except NodeError as error:
        return AttributeSpec(damage=error.text)


def path_of_member(member: Part) -> str:
    """Return the path of a member of a collection.

    Raises:
        NodeError: UNEXPECTED: the member has no path.
    """
    path = member.path("@odata.id")
    if not path:
        raise NodeError(Outcome.UNEXPECTED, f"{member.place}: found no @odata.id; accepted: a path")
    return path
