"""The base class of back ends, which set firmware attributes and reset nodes; addresses of BMCs.

Also the firmware state of one node, comparisons of settings with it, and the log-in of its BMC. No
message of this package contains the password.
"""

from __future__ import annotations

import base64
import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from proofmark.common.errors import bad_input, nearest
from proofmark.common.expressions import render
from proofmark.common.files import parse_json
from proofmark.common.plugins import Plugins
from proofmark.site.firmware import Firmware, Scalar, Settings

WHOLE = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)


@dataclass(frozen=True, order=True)
class Host:
    """A node, the address of its BMC, and the id of its system; one BMC may have several."""

    node: str
    address: str
    system: str = ""


@dataclass(frozen=True)
class Condition:
    """A comparison of one attribute (``MapFrom`` of a registry).

    Attributes:
        operator: EQU, NEQ, GTR, GEQ, LSS or LEQ.
        term: AND or OR, which joins it with the conditions before.
    """

    attribute: str
    operator: str
    value: Scalar
    term: str = "AND"

    def holds(self, settings: Settings) -> bool:
        """Return whether it is true in `settings`; false if these do not have the attribute."""
        if self.attribute not in settings:
            return False
        found, value = settings[self.attribute], self.value
        if self.operator in ("EQU", "NEQ"):
            return (str(found).lower() == str(value).lower()) == (self.operator == "EQU")
        if isinstance(found, str) or isinstance(value, str):
            return False
        signs = {"GTR": found > value, "GEQ": found >= value, "LSS": found < value}
        return signs.get(self.operator, self.operator == "LEQ" and found <= value)


@dataclass(frozen=True)
class RegistryRule:
    """A dependency of a registry: what `conditions` make of an attribute.

    Attributes:
        makes: the property that it determines: ReadOnly, GrayOut or CurrentValue.
    """

    conditions: tuple[Condition, ...]
    makes: str
    value: Scalar

    def holds(self, settings: Settings) -> bool:
        """Return whether its conditions are true in `settings`, joined from left to right."""
        result = bool(self.conditions)
        for number, each in enumerate(self.conditions):
            held = each.holds(settings)
            joined = result or held if each.term == "OR" else result and held
            result = joined if number else held
        return result


@dataclass(frozen=True)
class AttributeSpec:
    """The specification of one firmware attribute.

    Attributes:
        gray_out: whether other settings keep it from being set now.
        kind: its type in the registry: Enumeration, Integer, Boolean, String; empty if unknown.
        values: the values that may be set; empty if any value may.
        lower: the lowest number, for a number with a limit.
        upper: the highest number, for a number with a limit; for a text its length.
        rules: the dependencies that determine the attribute.
        damage: why the specification cannot be used; empty if it can.
    """

    read_only: bool = False
    values: tuple[Scalar, ...] = ()
    lower: int | None = None
    upper: int | None = None
    damage: str = ""
    gray_out: bool = False
    kind: str = ""
    step: int | None = None
    rules: tuple[RegistryRule, ...] = ()

    def locked(self, settings: Settings) -> str:
        """Return why the attribute cannot be set in a system with `settings`; empty if it can."""
        states = {"ReadOnly": self.read_only, "GrayOut": self.gray_out}
        for rule in self.rules:
            if rule.makes in states and rule.holds(settings):
                states[rule.makes] = rule.value is True
        if states["ReadOnly"]:
            return "read-only"
        return "grayed out: other settings keep it from being set" if states["GrayOut"] else ""


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
        no_reset: why the node cannot be reset; empty if it can. Nothing is staged then.
    """

    current: Settings
    pending: Settings = field(default_factory=dict)
    offers: Mapping[str, AttributeSpec] | None = None
    handle: Any = None
    serial: str = ""
    blocked: str = ""
    no_reset: str = ""


def refused_settings(
    wanted: Settings,
    offers: Mapping[str, AttributeSpec] | None,
    current: Settings | None = None,
) -> Iterator[str]:
    """Yield a message for each setting that is misspelt, locked or not offered.

    Args:
        offers: every attribute that may be set; None if they are not known.
        current: the values in effect, on which the dependencies of attributes are checked.
    """
    if offers is None:
        return
    next_boot = {**(current or {}), **wanted}
    for name, value in wanted.items():
        offer = offers.get(name)
        if offer is None:
            yield f"{name}: no such attribute{nearest(name, offers)}"
        elif offer.damage:
            yield f"{name}: damaged in the registry: {offer.damage}"
        elif offer.read_only and not offer.rules:
            yield f"{name}: read-only"
        elif offer.values and (type(value), value) not in [(type(v), v) for v in offer.values]:
            # In Python 1 equals True.
            hint = nearest(str(value), map(str, offer.values))
            yield f"{name}: no value {value!r}{hint}; offered: {', '.join(map(str, offer.values))}"
        elif problem := _wrong_value(value, offer):
            yield f"{name}: {problem}"
        elif current is None or current.get(name) != value:
            if locked := offer.locked(next_boot):
                yield f"{name}: {locked}"
            for rule in offer.rules:
                forced = rule.makes == "CurrentValue" and rule.value != value
                if forced and rule.holds(next_boot):
                    causes = ", ".join(
                        f"{each.attribute}={next_boot.get(each.attribute)}"
                        for each in rule.conditions
                    )
                    yield f"{name}: not {value!r}: {causes} makes it {rule.value!r}"


def not_settable(state: FirmwareState, name: str) -> Iterator[str]:
    """Yield why the current value of the attribute `name` could not be set again."""
    others = {each: value for each, value in state.current.items() if each != name}
    return refused_settings({name: state.current[name]}, state.offers, others)


def typed(wanted: Settings, offers: Mapping[str, AttributeSpec] | None) -> dict[str, Scalar]:
    """Return `wanted` with the types of the registry; a value that has no such form stays."""
    return {
        name: _typed(value, offers[name].kind) if offers and name in offers else value
        for name, value in wanted.items()
    }


def _typed(value: Scalar, kind: str) -> Scalar:
    if isinstance(value, str):
        if kind == "Integer" and WHOLE.fullmatch(value):
            return int(value)
        if kind == "Boolean":
            return {"true": True, "false": False}.get(value.lower(), value)
    elif kind in ("Enumeration", "String") and not isinstance(value, bool):
        return str(value)
    return value


def _wrong_value(value: Scalar, offer: AttributeSpec) -> str:
    """Return why `value` has another type than `offer`, or is outside its limits."""
    number = isinstance(value, int) and not isinstance(value, bool)
    if offer.kind == "Integer" and not number:
        return f"found {value!r}; accepted: a whole number"
    if offer.kind in ("String", "Password") and not isinstance(value, str):
        return f"found {value!r}; accepted: a text"
    if isinstance(value, str):
        if offer.kind == "String" and not _within(len(value), offer):
            return f"{len(value)} characters are not between {offer.lower} and {offer.upper}"
        return ""
    if not _within(value, offer):
        return f"{value} is not between {offer.lower} and {offer.upper}"
    if offer.step and (value - (offer.lower or 0)) % offer.step:
        return f"{value} is not {offer.lower or 0} plus a multiple of {offer.step}"
    return ""


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


VARIABLES = ("PROOFMARK_BMC_USER", "PROOFMARK_BMC_PASSWORD")
HIDDEN = "***"


@dataclass(frozen=True)
class Credentials:
    """A user and a password."""

    user: str = ""
    password: str = field(default="", repr=False)

    @property
    def basic(self) -> str:
        """The value of the header ``Authorization`` (RFC 7617)."""
        return "Basic " + base64.b64encode(f"{self.user}:{self.password}".encode()).decode()

    def hide(self, text: str) -> str:
        """Return `text` without the password, plain or as in the header ``Authorization``.

        A BMC may quote a request in its error message.
        """
        for secret in (self.basic.removeprefix("Basic "), self.password):
            if secret:
                text = text.replace(secret, HIDDEN)
        return text


def credentials(content: bytes, secrets: Mapping[str, str]) -> Credentials:
    """Return the credentials in `content`, a JSON object, or else those of `secrets`.

    `secrets` are the variables that `take_secrets` took from the environment.

    Raises:
        BadInput: `content` has another format; the message does not quote it.
    """
    if not content.strip():
        return Credentials(*(secrets.get(name, "") for name in VARIABLES))
    try:
        values = parse_json(content)
        return Credentials(str(values["user"]), str(values["password"]))
    except (ValueError, KeyError, TypeError):
        accepted = '{"user": …, "password": …}'
        raise bad_input("--credentials", "", "another format (not shown)", accepted) from None


class Shell(Protocol):
    """Runs a POSIX shell script on a node and returns what it printed.

    Raises:
        NodeError: the node cannot be reached, or the script did not exit 0.
    """

    def __call__(self, node: str, script: str, arguments: tuple[str, ...] = ()) -> str:
        """Run `script` with `arguments` on `node`."""


@dataclass(frozen=True)
class BackEndContext:
    """Everything that a back end may need."""

    firmware: Firmware
    credentials: Credentials
    shell: Shell


class BackEnd(ABC):
    """Base class of back ends. Each method handles one host and raises `NodeError`.

    Attributes:
        name: of a back end of the kit; that of a site has the name of its entry point.
        sets: whether the back end can change a setting.
        reads_current_values: whether `read` returns the values that are in effect, not those of
            the next boot.
        uses_bmcs: whether it connects to ``firmware.bmc`` of a node.
    """

    name: ClassVar[str]
    sets: ClassVar[bool]
    reads_current_values: ClassVar[bool]
    uses_bmcs: ClassVar[bool] = False

    @abstractmethod
    def __init__(self, context: BackEndContext) -> None:
        """Store the parts of `context` that the back end needs.

        Raises:
            BadInput: a part of the context is missing, or one of its files cannot be read.
        """

    @abstractmethod
    def read(self, host: Host, wanted: Settings) -> FirmwareState:
        """Return the current values, the pending ones, and the values that may be set."""

    def attributes(self, state: FirmwareState, settings: Mapping[str, str]) -> Settings:
        """Return the firmware's attributes for abstract `settings` (`firmware.abstract`).

        A back end without vendors has none, because the inventory cannot name a vendor for it.
        """
        return {}

    @abstractmethod
    def stage(self, host: Host, state: FirmwareState, wanted: Settings) -> None:
        """Set `wanted` for the next boot."""

    @abstractmethod
    def reset(self, host: Host, state: FirmwareState, wanted: Settings) -> None:
        """Request a restart of the node; do not wait for it."""

    def outstanding(self, host: Host) -> str:
        """Return the name of the work of `stage` that has not ended; empty if there is none."""
        return ""

    def await_outstanding(self, host: Host, name: str) -> None:  # noqa: B027  # nothing to wait for
        """Wait for the end of the work that `outstanding` named, also in an earlier command.

        Raises:
            NodeError: it has not ended. Its failure is no error: nothing is staged then.
        """

    def resume_reset(self, host: Host) -> None:  # noqa: B027  # a reset is one request
        """Finish a reset that was interrupted between its requests, if it has several."""

    @abstractmethod
    def verify(self, host: Host, wanted: Settings) -> Settings | None:
        """Return the values in effect after the boot; None if the firmware cannot report them."""

    def not_restorable(self, state: FirmwareState, wanted: Settings) -> Iterator[str]:
        """Yield each setting that a change to `wanted` replaces and that cannot be restored.

        A value can be restored if the firmware reports it and offers it.
        """
        for name in to_change(state, wanted):
            if name not in state.current:
                yield f"{name}: its current value is not reported"
            else:
                yield from not_settable(state, name)


BACK_ENDS = Plugins(
    BackEnd,
    "proofmark.machine.bmc.backends",
    "partition",
    "firmware.back_end",
    named=True,
)
"""All back ends; those of a site are entry points of this group."""


def back_end(context: BackEndContext) -> BackEnd:
    """Return the back end that ``firmware.back_end`` names.

    Raises:
        BadInput: there is no such back end, or its context is incomplete.
    """
    return BACK_ENDS.get(context.firmware.back_end)(context)


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
    first, last = (hosts[nodes[place]].address for place in (0, -1))
    return first if first == last else f"{first} … {last}"
