"""Intel's ``syscfg`` on the node itself (S7200AP and its like), over the site's own way to a node.

It shows and sets what the *next* boot will be, so it cannot prove a mode: `verify` tells nothing.
Values go by number; the numbers are read from the node, because BIOS versions number differently.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from proofmark.machine.bmc.back_end import BackEnd, BackEndContext
from proofmark.machine.bmc.model import AttributeSpec, FirmwareState, Host
from proofmark.machine.outcome import NodeError, Outcome
from proofmark.site.firmware import Settings

SHOW = 'for name in "$@"; do syscfg /d BIOSSETTINGS "$name" || exit; done\n'
SET = """
while [ $# -gt 0 ]; do
    syscfg /bcs "" BIOSSETTINGS "$1" "$2" || exit
    shift 2
done
"""
# In the background, so that the connection ends before the node does.
RESTART = "(sleep 1; systemctl reboot || reboot) </dev/null >/dev/null 2>&1 &\n"
CURRENT = re.compile(r"Current Value\s*:\s*(\S.*?)\s*")
POSSIBLE = re.compile(r"(\S.*?)\s*:\s*([0-9A-Fa-f]{1,2})")
RULE = re.compile(r"[=-]{3,}")


@dataclass(frozen=True)
class Shown:
    """What syscfg says of one setting: the value of the next boot, and each value's number."""

    current: str
    numbers: Mapping[str, str]


class Syscfg(BackEnd):
    """The verbs by `shell`."""

    sets = True
    drains = True
    reads_current_values = False

    def __init__(self, context: BackEndContext) -> None:
        self._shell = context.shell

    def read(self, host: Host, wanted: Settings) -> FirmwareState:
        """Ask for the wanted settings; what acts now is known only if nothing waits."""
        shown = read_shown(self._shell(host.node, SHOW, tuple(wanted)))
        offers = {name: AttributeSpec(values=tuple(each.numbers)) for name, each in shown.items()}
        current = {name: each.current for name, each in shown.items()}
        numbers = {
            f"{name}={value}": number
            for name, each in shown.items()
            for value, number in each.numbers.items()
        }
        return FirmwareState(current, offers=offers, handle=numbers)

    def stage(self, host: Host, reading: FirmwareState, wanted: Settings) -> None:
        """Set each value by its number, and look whether it stands."""
        numbers = {name: reading.handle[f"{name}={value}"] for name, value in wanted.items()}
        pairs = [word for pair in numbers.items() for word in pair]
        self._shell(host.node, SET, tuple(pairs))
        there = read_shown(self._shell(host.node, SHOW, tuple(wanted)))
        for name, value in wanted.items():
            if there[name].current != value:
                found = f"{name} is {there[name].current}, not {value}"
                raise NodeError(Outcome.NOT_APPLIED, f"accepted and not set: {found}")

    def reset(self, host: Host, reading: FirmwareState, wanted: Settings) -> None:
        """Restart from within."""
        self._shell(host.node, RESTART)

    def verify(self, host: Host, wanted: Settings) -> Settings | None:
        """Tell nothing: what it shows is the next boot's."""
        return None


def read_shown(text: str) -> dict[str, Shown]:
    """Read what ``syscfg /d BIOSSETTINGS`` printed for one setting or several.

    A setting is its name over a line of signs, ``Current Value : NAME`` and ``NAME : NN`` lines.
    """
    found: dict[str, Shown] = {}
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    title = ""
    numbers: dict[str, str] = {}
    for line, after in zip(lines, [*lines[1:], ""], strict=True):
        if after.startswith("===") and RULE.fullmatch(after):
            title, numbers = line, {}
        elif match := CURRENT.fullmatch(line):
            found[title] = Shown(match[1], numbers)
        elif title in found and (match := POSSIBLE.fullmatch(line)):
            numbers[match[1]] = match[2]
    return found
