"""Back ends that need no BMC: Intel's syscfg, and a person.

syscfg (S7200AP and similar boards) runs on the node itself. It shows and sets the values of the
next boot, not the current ones. Therefore `verify` returns None, and only the operating system
proves a mode. A value is set by its number. The numbers are read from the node, because BIOS
versions number the values differently.

A person sets firmware without remote control (old Opteron, Nehalem, POWER). The operating system
must show the mode, as with every back end.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from proofmark.common.grouping import flat
from proofmark.machine.bmc.back_end import (
    AttributeSpec,
    BackEnd,
    BackEndContext,
    FirmwareState,
    Host,
    format_settings,
)
from proofmark.machine.outcome import NodeError, Outcome
from proofmark.site.firmware import Settings

SHOW = """#: syscfg-show.sh NAME...
for name; do syscfg /d BIOSSETTINGS "$name" || exit; done
"""
SET = """#: syscfg-set.sh NAME NUMBER ...
while [ $# -gt 0 ]; do
    syscfg /bcs "" BIOSSETTINGS "$1" "$2" || exit
    shift 2
done
"""
# In the background, so that the connection ends before the restart.
RESTART = """#: restart.sh
(sleep 1; systemctl reboot || reboot) </dev/null >/dev/null 2>&1 &
"""
CURRENT = re.compile(r"Current Value\s*:\s*(\S.*?)\s*")
POSSIBLE = re.compile(r"(\S.*?)\s*:\s*([0-9A-Fa-f]{1,2})")
RULE = re.compile(r"[=-]{3,}")


@dataclass(frozen=True)
class ShownSetting:
    """One setting as syscfg shows it: the value of the next boot, and the number of each value."""

    value: str
    numbers: Mapping[str, str]


class Syscfg(BackEnd):
    """Changes settings by ``syscfg`` over the remote shell."""

    name = "syscfg"
    sets = True
    reads_current_values = False

    def __init__(self, context: BackEndContext) -> None:
        self._shell = context.shell

    def read(self, host: Host, wanted: Settings) -> FirmwareState:
        """Return the settings of `wanted`, with the values of the next boot."""
        settings = read_settings(self._shell(host.node, SHOW, tuple(wanted)))
        offers = {
            name: AttributeSpec(values=tuple(shown.numbers)) for name, shown in settings.items()
        }
        next_boot = {name: shown.value for name, shown in settings.items()}
        numbers: dict[str, str] = {}
        for name, shown in settings.items():
            for value, number in shown.numbers.items():
                numbers[f"{name}={value}"] = number
        return FirmwareState(next_boot, offers=offers, handle=numbers)

    def stage(self, host: Host, state: FirmwareState, wanted: Settings) -> None:
        """Set each value by its number, and read it again."""
        numbers = {name: state.handle[f"{name}={value}"] for name, value in wanted.items()}
        pairs = flat(numbers.items())
        self._shell(host.node, SET, tuple(pairs))
        settings = read_settings(self._shell(host.node, SHOW, tuple(wanted)))
        for name, value in wanted.items():
            if settings[name].value != value:
                problem = f"{name} is {settings[name].value}, not {value}"
                raise NodeError(Outcome.NOT_APPLIED, f"accepted and not set: {problem}")

    def reset(self, host: Host, state: FirmwareState, wanted: Settings) -> None:
        """Restart the node by a command on the node."""
        self._shell(host.node, RESTART)

    def verify(self, host: Host, wanted: Settings) -> Settings | None:
        """Return None: syscfg shows only the values of the next boot."""
        return None


def read_settings(text: str) -> dict[str, ShownSetting]:
    """Read the output of ``syscfg /d BIOSSETTINGS`` for one or more settings.

    A setting is its name with a line of ``=`` below, then ``Current Value : NAME``, then a line
    ``NAME : NN`` for each value.
    """
    settings: dict[str, ShownSetting] = {}
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    title = ""
    numbers: dict[str, str] = {}
    for line, after in zip(lines, [*lines[1:], ""], strict=True):
        if after.startswith("===") and RULE.fullmatch(after):
            title, numbers = line, {}
        elif match := CURRENT.fullmatch(line):
            settings[title] = ShownSetting(match[1], numbers)
        elif title in settings and (match := POSSIBLE.fullmatch(line)):
            numbers[match[1]] = match[2]
    return settings


class ManualBackEnd(BackEnd):
    """Reads no firmware and refuses each change."""

    name = "manual"
    sets = False
    reads_current_values = False

    def __init__(self, context: BackEndContext) -> None:
        """Store nothing."""

    def read(self, host: Host, wanted: Settings) -> FirmwareState:
        """Return an empty state."""
        return FirmwareState(current={})

    def stage(self, host: Host, state: FirmwareState, wanted: Settings) -> None:
        """Refuse the change."""
        problem = "no remote control of the firmware; set it by hand"
        raise NodeError(Outcome.CANNOT_SET, f"{problem}: {format_settings(wanted)}")

    def reset(self, host: Host, state: FirmwareState, wanted: Settings) -> None:
        """Refuse the reset."""
        raise NodeError(Outcome.CANNOT_SET, "no remote control of the node; restart it by hand")

    def verify(self, host: Host, wanted: Settings) -> Settings | None:
        """Return None: only the operating system shows the mode."""
        return None
