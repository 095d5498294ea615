"""What a back end says of one machine's firmware, and what follows from it. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from proofmark.common.errors import nearest
from proofmark.site.firmware import Scalar, Settings


@dataclass(frozen=True, order=True)
class Host:
    """A node and the address of what controls it."""

    node: str
    address: str


@dataclass(frozen=True)
class AttributeSpec:
    """What a firmware says of one of its attributes.

    Attributes:
        values: all that may be set, or empty where any may.
        lower: least number, where it is one; likewise `upper`.
    """

    read_only: bool = False
    values: tuple[Scalar, ...] = ()
    lower: int | None = None
    upper: int | None = None


@dataclass(frozen=True)
class FirmwareState:
    """The firmware of one machine at one moment.

    Attributes:
        current: attributes as they act now, or what the back end knows of them.
        pending: those that the next boot will change, with their next values.
        offers: every attribute that may be named; None where the back end cannot tell.
        handle: what the back end needs to change this machine; nobody else looks at it.
    """

    current: Settings
    pending: Settings = field(default_factory=dict)
    offers: Mapping[str, AttributeSpec] | None = None
    handle: Mapping[str, str] = field(default_factory=dict)


def refused_settings(wanted: Settings, offers: Mapping[str, AttributeSpec] | None) -> Iterator[str]:
    """Yield what is wrong with wishing for `wanted`: misspelt, read-only, not offered."""
    if offers is None:
        return
    for name, value in wanted.items():
        offer = offers.get(name)
        if offer is None:
            yield f"{name}: no such attribute{nearest(name, offers)}"
        elif offer.read_only:
            yield f"{name}: read-only"
        elif offer.values and value not in offer.values:
            hint = nearest(str(value), map(str, offer.values))
            yield f"{name}: no value {value!r}{hint}; offered: {_listed(offer.values)}"
        elif isinstance(value, int) and not _within(value, offer):
            yield f"{name}: {value} is not between {offer.lower} and {offer.upper}"


def foreign_pending(
    reading: FirmwareState, ours: Collection[tuple[str, Scalar]]
) -> dict[str, Scalar]:
    """Return the pending values that we never asked for; `ours` are all that we ever did."""
    return {name: value for name, value in reading.pending.items() if (name, value) not in ours}


def to_change(reading: FirmwareState, wanted: Settings) -> dict[str, Scalar]:
    """Return those of `wanted` that do not act now."""
    return {name: value for name, value in wanted.items() if reading.current.get(name) != value}


def _within(value: int, offer: AttributeSpec) -> bool:
    least = value if offer.lower is None else offer.lower
    most = value if offer.upper is None else offer.upper
    return least <= value <= most


def _listed(values: tuple[Scalar, ...]) -> str:
    return ", ".join(map(str, values))
