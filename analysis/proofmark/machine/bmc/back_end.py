"""The base class of back ends, which set firmware attributes and reset nodes; addresses of BMCs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from proofmark.common.expressions import render
from proofmark.common.nodesets import unfold
from proofmark.common.plugins import Plugins
from proofmark.machine.bmc.bmc_model import (
    Credentials,
    FirmwareState,
    Host,
    refused_settings,
    to_change,
)
from proofmark.site.execution import Queue
from proofmark.site.firmware import Firmware, Settings


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
    queue: Queue = field(default_factory=Queue)


class BackEnd(ABC):
    """Base class of back ends. Each method handles one host and raises `NodeError`.

    Attributes:
        name: of a back end of the kit; that of a site has the name of its entry point.
        sets: whether the back end can change a setting.
        drains: whether a node must be drained before its reset; False if the scheduler resets
            the node.
        reads_current_values: whether `read` returns the values that are in effect, not those of
            the next boot.
        uses_bmcs: whether it connects to ``firmware.bmc`` of a node.
    """

    name: ClassVar[str]
    sets: ClassVar[bool]
    drains: ClassVar[bool]
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
                others = {each: value for each, value in state.current.items() if each != name}
                yield from refused_settings({name: state.current[name]}, state.offers, others)


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


def only(attributes: Settings, wanted: Settings) -> Mapping[str, str | int | bool]:
    """Return the entries of `attributes` that `wanted` names; a BIOS has hundreds."""
    return {name: attributes[name] for name in wanted if name in attributes}


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
