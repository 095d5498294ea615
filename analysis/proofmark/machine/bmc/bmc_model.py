"""The firmware state of one node, and comparisons of settings with it. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from proofmark.common.errors import nearest
from proofmark.site.firmware import Scalar, Settings


@dataclass(frozen=True, order=True)
class Host:
    """A node and the address of its BMC."""

    node: str
    address: str


@dataclass(frozen=True)
class AttributeSpec:
    """The specification of one firmware attribute.

    Attributes:
        read_only: whether the attribute cannot be set.
        values: the values that may be set; empty if any value may.
        lower: the lowest number, for a number with a limit.
        upper: the highest number, for a number with a limit.
        damage: why the specification cannot be used; empty if it can.
    """

    read_only: bool = False
    values: tuple[Scalar, ...] = ()
    lower: int | None = None
    upper: int | None = None
    damage: str = ""


@dataclass(frozen=True)
class FirmwareState:
    """The firmware of one node at one moment.

    Attributes:
        current: the values in effect, or the values that the back end can read.
        pending: the values that the next boot changes, by attribute.
        offers: every attribute that may be set; None if the back end cannot list them.
        handle: data of the back end for its next request; no other code reads it.
        serial: the serial number of the system, or its UUID; empty if the back end has none.
        blocked: why the firmware refuses every change now; empty if it does not.
    """

    current: Settings
    pending: Settings = field(default_factory=dict)
    offers: Mapping[str, AttributeSpec] | None = None
    handle: Mapping[str, str] = field(default_factory=dict)
    serial: str = ""
    blocked: str = ""


def refused_settings(wanted: Settings, offers: Mapping[str, AttributeSpec] | None) -> Iterator[str]:
    """Yield a message for each setting that is misspelt, read-only or not offered."""
    if offers is None:
        return
    for name, value in wanted.items():
        offer = offers.get(name)
        if offer is None:
            yield f"{name}: no such attribute{nearest(name, offers)}"
        elif offer.damage:
            yield f"{name}: damaged in the registry: {offer.damage}"
        elif offer.read_only:
            yield f"{name}: read-only"
        elif offer.values and value not in offer.values:
            hint = nearest(str(value), map(str, offer.values))
            yield f"{name}: no value {value!r}{hint}; offered: {', '.join(map(str, offer.values))}"
        elif isinstance(value, int) and not _within(value, offer):
            yield f"{name}: {value} is not between {offer.lower} and {offer.upper}"


def foreign_pending(
    state: FirmwareState, requested: Collection[tuple[str, Scalar]]
) -> dict[str, Scalar]:
    """Return the pending values that are not in `requested`, all that this kit ever requested."""
    return {name: value for name, value in state.pending.items() if (name, value) not in requested}


def to_change(state: FirmwareState, wanted: Settings) -> dict[str, Scalar]:
    """Return the settings of `wanted` that are not in effect."""
    return {name: value for name, value in wanted.items() if state.current.get(name) != value}


def format_settings(settings: Mapping[str, object]) -> str:
    """Return `settings` as ``name=value``, separated by commas."""
    return ", ".join(f"{name}={value}" for name, value in settings.items())


def _within(value: int, offer: AttributeSpec) -> bool:
    least = value if offer.lower is None else offer.lower
    most = value if offer.upper is None else offer.upper
    return least <= value <= most
