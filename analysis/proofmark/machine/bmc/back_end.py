"""A back end: what sets the firmware of machines."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Protocol

from proofmark.common.plugins import Plugins
from proofmark.machine.bmc.credentials import Credentials
from proofmark.machine.bmc.model import FirmwareState, Host
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
    """All that a back end may need."""

    firmware: Firmware
    credentials: Credentials
    shell: Shell


class BackEnd(ABC):
    """Sets the firmware of machines. Each method takes one host and raises `NodeError`.

    Attributes:
        sets: whether it can change anything.
        drains: whether a node must be out of service before its reset; False if the scheduler
            resets the node.
        reads_current_values: whether `read` returns the values that are in effect, not those of
            the next boot.
    """

    sets: ClassVar[bool]
    drains: ClassVar[bool]
    reads_current_values: ClassVar[bool]

    @abstractmethod
    def __init__(self, context: BackEndContext) -> None:
        """Keep what the back end needs of `context`.

        Raises:
            BadInput: the context lacks something, or a file of it cannot be read.
        """

    @abstractmethod
    def read(self, host: Host, wanted: Settings) -> FirmwareState:
        """Read what is in effect, what waits for the next boot, and what may be set."""

    @abstractmethod
    def stage(self, host: Host, reading: FirmwareState, wanted: Settings) -> None:
        """Let `wanted` take effect at the next boot."""

    @abstractmethod
    def reset(self, host: Host, reading: FirmwareState, wanted: Settings) -> None:
        """Restart the machine; returns when the restart has been requested."""

    @abstractmethod
    def verify(self, host: Host, wanted: Settings) -> Settings | None:
        """Read what is in effect after the boot; None where the firmware cannot report it."""


BACK_ENDS = Plugins(BackEnd, "proofmark.machine.bmc.backends", "partition", "firmware.back_end")
"""All back ends; a site's own are entry points of this group."""


def back_end(context: BackEndContext) -> BackEnd:
    """Return the back end that the firmware's facts name.

    Raises:
        BadInput: there is no such back end, or it lacks something.
    """
    return BACK_ENDS.get(context.firmware.back_end)(context)


def only(attributes: Settings, wanted: Settings) -> Mapping[str, str | int | bool]:
    """Return those of `attributes` that `wanted` names: a BIOS has hundreds."""
    return {name: attributes[name] for name in wanted if name in attributes}
