"""The firmware's attributes for abstract settings, chosen from what a BMC offers. Pure."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Collection, Mapping
from dataclasses import replace

from proofmark.machine.bmc.bmc_model import AttributeSpec
from proofmark.machine.outcome import NodeError, Outcome
from proofmark.site.bmc_vendors.vendor_model import BmcVendor
from proofmark.site.firmware import Scalar, Settings

Offers = Mapping[str, AttributeSpec]


def resolve(
    vendor: BmcVendor, settings: Mapping[str, str], offers: Offers, current: Settings
) -> dict[str, Scalar]:
    """Return the attributes that make the abstract `settings`, with those that a change needs.

    Args:
        vendor: of the BMC.
        settings: value by abstract setting.
        offers: the attributes that the BMC offers.
        current: the values in effect. An attribute that has its value needs no other one.

    Raises:
        NodeError: REFUSED: the BMC offers no alternative of a setting, or two settings need
            different values of an attribute.
    """
    attributes: dict[str, Scalar] = {}
    owners: dict[str, str] = {}
    for setting, value in settings.items():
        owner = f"{setting}={value}"
        chosen = _chosen(vendor, setting, value, offers)
        for name, wanted in _with_needs(vendor, chosen, current).items():
            if attributes.setdefault(name, wanted) != wanted:
                text = f"{owners[name]} sets {name}={attributes[name]}, and {owner} {name}={wanted}"
                raise NodeError(Outcome.REFUSED, text)
            owners.setdefault(name, owner)
    return attributes


def _chosen(vendor: BmcVendor, setting: str, value: str, offers: Offers) -> dict[str, Scalar]:
    alternatives = [each[value] for each in vendor.settings.get(setting, []) if value in each]
    for alternative in alternatives:
        named = {offered_name(vendor, name, offers): v for name, v in alternative.items()}
        if all(name and v in (offers[name].values or (v,)) for name, v in named.items()):
            return named
    tried = dict.fromkeys(f"{name}={v}" for each in alternatives for name, v in each.items())
    known = {
        name: ", ".join(map(str, offers[name].values))
        for each in alternatives
        for name in (offered_name(vendor, attribute, offers) for attribute in each)
        if name
    }
    found = "; ".join(f"{name} with {values}" for name, values in known.items()) or "none of them"
    text = f"{setting}={value}: looked for {', '.join(tried)}; the BMC offers {found}"
    raise NodeError(Outcome.REFUSED, text)


def _with_needs(vendor: BmcVendor, attributes: Settings, current: Settings) -> dict[str, Scalar]:
    needed = {
        name: value
        for attribute, wanted in attributes.items()
        if current.get(attribute) != wanted
        for name, value in vendor.needs.get(attribute, {}).items()
    }
    return {**needed, **attributes}


def offered_name(vendor: BmcVendor, attribute: str, offers: Collection[str]) -> str:
    """Return the name under which the BMC offers `attribute`; empty if it does not."""
    if attribute in offers or not vendor.suffix:
        return attribute if attribute in offers else ""
    return next((name for name in offers if vendor.is_name(name, attribute)), "")


def offered_names(vendor: BmcVendor, offers: Collection[str]) -> dict[str, None]:
    """Return every attribute of the vendor's settings that the BMC offers."""
    attributes = dict.fromkeys(name for name, _ in vendor.pairs())
    names = (offered_name(vendor, attribute, offers) for attribute in attributes)
    return dict.fromkeys(name for name in names if name)


def unlocked(vendor: BmcVendor, offers: dict[str, AttributeSpec]) -> Offers:
    """Return `offers` in which an attribute that needs another one is not read-only.

    The registry of a BMC has it as read-only as long as the other one has another value.
    """
    specs = {
        name: replace(offers[name], read_only=False, gray_out=False, rules=())
        for name in vendor.needs
        if name in offers
    }
    return ChainMap(specs, offers)


def settable(vendor: BmcVendor, wanted: Settings, current: Settings) -> Settings:
    """Return `wanted` without the attributes that the BMC refuses because a profile fixes them.

    In a profile, and after a return to it, the profile determines these attributes.
    """
    if not vendor.refuses_fixed:
        return wanted
    next_boot = {**current, **wanted}
    return {
        name: value
        for name, value in wanted.items()
        if all(
            next_boot.get(other, needed) == needed
            for other, needed in vendor.needs.get(name, {}).items()
        )
    }
