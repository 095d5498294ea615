"""For firmware that nothing can set from afar (old Opteron, Nehalem, POWER): it records.

The operating system still has to prove the mode; where it is another, a person sets the machine.
"""

from __future__ import annotations

from proofmark.machine.bmc.back_end import BackEnd, BackEndContext
from proofmark.machine.bmc.model import FirmwareState, Host
from proofmark.machine.outcome import NodeError, Outcome
from proofmark.site.firmware import Settings


class ManualBackEnd(BackEnd):
    """Sets nothing, ever."""

    sets = False
    drains = True
    reads_current_values = False

    def __init__(self, context: BackEndContext) -> None:
        """Keep nothing."""

    def read(self, host: Host, wanted: Settings) -> FirmwareState:
        """Know nothing of the firmware."""
        return FirmwareState(current={})

    def stage(self, host: Host, reading: FirmwareState, wanted: Settings) -> None:
        """Refuse."""
        settings = ", ".join(f"{name}={value}" for name, value in wanted.items())
        raise NodeError(Outcome.CANNOT_SET, f"set it at the machine: {settings}")

    def reset(self, host: Host, reading: FirmwareState, wanted: Settings) -> None:
        """Refuse."""
        raise NodeError(Outcome.CANNOT_SET, "restart it at the machine")

    def verify(self, host: Host, wanted: Settings) -> Settings | None:
        """Leave it to the operating system."""
        return None
