"""Back ends: who sets a machine's firmware. One small module each, all with the same verbs.

A module has ``open_back_end(given: Given) -> BackEnd``. Adding one is adding a module here;
nothing else names them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules
from typing import Protocol

from proofmark.common.errors import bad_input, nearest
from proofmark.machine.bmc.credentials import Credentials
from proofmark.machine.bmc.model import Host, Reading
from proofmark.site.firmware import Firmware, Settings


class Shell(Protocol):
    """Runs a POSIX shell script on a node and returns what it printed.

    Raises:
        Failed: the node cannot be reached, or the script did not exit 0.
    """

    def __call__(self, node: str, script: str, arguments: tuple[str, ...] = ()) -> str:
        """Run `script` with `arguments` on `node`."""


class BackEnd(Protocol):
    """The verbs. Each takes one host and raises `Failed` with an outcome."""

    sets: bool
    """Whether it can change anything."""
    drains: bool
    """Whether a node must be out of service before its reset: not where the scheduler resets."""
    knows_now: bool
    """Whether `read` tells what acts now, and not what the next boot brings."""

    def read(self, host: Host, wanted: Settings) -> Reading:
        """Read what acts, what waits for the next boot, and what may be set. Changes nothing."""

    def stage(self, host: Host, reading: Reading, wanted: Settings) -> None:
        """Let `wanted` act from the next boot on."""

    def reset(self, host: Host, reading: Reading, wanted: Settings) -> None:
        """Restart the machine; returns when that has been asked for."""

    def verify(self, host: Host, wanted: Settings) -> Settings | None:
        """Read what acts after the boot; None where the firmware cannot tell."""


@dataclass(frozen=True)
class Given:
    """All that a back end may need."""

    firmware: Firmware
    credentials: Credentials
    shell: Shell


def names() -> list[str]:
    """Return the names of all back ends."""
    return sorted(module.name for module in iter_modules(__path__))


def back_end(given: Given) -> BackEnd:
    """Return the back end that the firmware's facts name.

    Raises:
        BadInput: there is no such back end, or it lacks something.
    """
    name = given.firmware.back_end
    if name not in names():
        hint = nearest(name, names())
        raise bad_input("partition", "firmware.back_end", f"{name!r}{hint}", ", ".join(names()))
    opened: Callable[[Given], BackEnd] = import_module(f"{__name__}.{name}").open_back_end
    return opened(given)


def only(attributes: Settings, wanted: Settings) -> Mapping[str, str | int | bool]:
    """Return those of `attributes` that `wanted` names: a BIOS has hundreds."""
    return {name: attributes[name] for name in wanted if name in attributes}
