"""Attribute registries of BMCs: the values that the firmware accepts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from proofmark.machine.bmc.bmc_model import (
    AttributeSpec,
    Condition,
    RegistryRule,
    refused_settings,
    typed,
)
from proofmark.machine.bmc.client import RedfishConnection, path_of_member, read_members
from proofmark.machine.bmc.https import BodyPart
from proofmark.machine.outcome import NodeError, Outcome
from proofmark.site.firmware import BmcVendor, Scalar, Settings

ROOT = "/redfish/v1"
KIND = "attributeregistry"
"""A part of the names of registries that may be the one of the BIOS."""
MAKES = ("ReadOnly", "GrayOut", "CurrentValue")
"""The properties of an attribute that a dependency determines, and that a change depends on."""


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
    return any(refused_settings(typed(wanted, shared.specs), shared.specs))


def read_registry(bmc: RedfishConnection, name: str, vendor: BmcVendor) -> dict[str, AttributeSpec]:
    """Return the attributes of the registry `name`, as the BMC sends it.

    Raises:
        NodeError: REFUSED: the BMC has no such registry, or the registry has no file.
    """
    file = _file_of(bmc, name, vendor)
    entries = file.part("RegistryEntries")
    key = vendor.value_names
    rules = _rules(entries)
    return {
        attribute: _attribute_spec(item, key, rules.get(attribute, ()))
        for item in entries.items("Attributes")
        if (attribute := item.text("AttributeName"))
    }


def _file_of(bmc: RedfishConnection, name: str, vendor: BmcVendor) -> BodyPart:
    """Return the file of the registry `name`: by its path, by its names, or by those of its file.

    BMCs list a registry under another path than its name, without the last part of its version, or
    with another version.
    """
    response = bmc.request("GET", f"{ROOT}/Registries/{name}", accept=(200, 404))
    if response.status == 200:
        return _located(bmc, response.body, name)
    paths = [path_of_member(each) for each in read_members(bmc, f"{ROOT}/Registries")]
    listed = {path: path.rstrip("/").rpartition("/")[2] for path in paths}
    if matches := [path for path, each in listed.items() if name.startswith(each)]:
        return _located(bmc, bmc.get(max(matches, key=len)).body, name)
    entries = [bmc.get(path).body for path in paths]
    for entry in entries:
        if name in (entry.text("Id"), entry.text("Registry")):
            return _located(bmc, entry, name)
    candidates = [
        entry
        for entry in entries
        if any(KIND in entry.text(key).lower() for key in ("Id", "Registry", "Name"))
    ]
    files = [_located(bmc, entry, name) for entry in candidates]
    for file in files:
        if name in (file.text("Id"), file.text("Registry")):
            return file
    if vendor.registry:
        for path, each in listed.items():
            if each.startswith(vendor.registry):
                return _located(bmc, bmc.get(path).body, name)
    problem = f"no attribute registry {name}: settings cannot be checked"
    raise NodeError(Outcome.REFUSED, problem)


def _located(bmc: RedfishConnection, entry: BodyPart, name: str) -> BodyPart:
    """Return the file of the registry that `entry` describes, in English if there is a choice."""
    found: dict[str, str] = {}
    for item in entry.items("Location"):
        # iLO 4 and 5 have the path inside an object.
        nested = isinstance(item.content.get("Uri"), Mapping)
        uri = item.part("Uri").path("extref") if nested else item.path("Uri")
        if uri:
            found.setdefault(item.text("Language"), uri)
    english = next((uri for language, uri in found.items() if language.startswith("en")), "")
    uri = english or next(iter(found.values()), "")
    if not uri:
        problem = f"registry {name} has no file: settings cannot be checked"
        raise NodeError(Outcome.REFUSED, problem)
    return bmc.get(uri).body


def _attribute_spec(item: BodyPart, key: str, rules: tuple[RegistryRule, ...]) -> AttributeSpec:
    """Return the specification of an attribute; a damaged one is an attribute that cannot be set.

    A registry has hundreds of attributes, and the kit sets a few.
    """
    try:
        kind = item.text("Type")
        values: tuple[Scalar, ...] = tuple(each.text(key) for each in item.items("Value"))
        if kind == "Boolean":
            values = (True, False)
        limits = ("MinLength", "MaxLength") if kind == "String" else ("LowerBound", "UpperBound")
        lower, upper = (item.number(each) for each in limits)
        return AttributeSpec(
            item.flag("ReadOnly"),
            values,
            lower,
            upper,
            gray_out=item.flag("GrayOut"),
            kind=kind,
            step=item.number("ScalarIncrement"),
            rules=rules,
        )
    except NodeError as error:
        return AttributeSpec(damage=error.text)


def _rules(entries: BodyPart) -> dict[str, tuple[RegistryRule, ...]]:
    """Return the dependencies of a registry that determine an attribute, by the attribute.

    A dependency on another property than the value of an attribute, and one in another form, is
    left out: the BMC itself refuses what it forbids.
    """
    rules: dict[str, tuple[RegistryRule, ...]] = {}
    for item in entries.items("Dependencies"):
        try:
            if item.text("Type") not in ("Map", ""):
                continue
            part = item.part("Dependency")
            makes, value = part.text("MapToProperty"), part.content.get("MapToValue")
            conditions = tuple(map(_condition, part.items("MapFrom")))
            attribute = part.text("MapToAttribute")
        except NodeError:
            continue
        if makes in MAKES and conditions and isinstance(value, (str, int)):
            rules[attribute] = (*rules.get(attribute, ()), RegistryRule(conditions, makes, value))
    return rules


def _condition(part: BodyPart) -> Condition:
    """Return one condition.

    Raises:
        NodeError: it is in another form.
    """
    value = part.content.get("MapFromValue")
    if part.text("MapFromProperty") != "CurrentValue" or not isinstance(value, (str, int)):
        raise NodeError(Outcome.UNEXPECTED, f"{part.place}: not a condition on a value")
    term = part.text("MapTerms") or "AND"
    return Condition(part.text("MapFromAttribute"), part.text("MapFromCondition"), value, term)
