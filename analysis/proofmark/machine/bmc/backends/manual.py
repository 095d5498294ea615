"""Back end for firmware without remote control (old Opteron, Nehalem, POWER).

A person sets the machine. The operating system must show the mode, as with every back end.
"""

from __future__ import annotations

from proofmark.machine.bmc.back_end import BackEnd, BackEndContext
from proofmark.machine.bmc.bmc_model import FirmwareState, Host, format_settings
from proofmark.machine.outcome import NodeError, Outcome
from proofmark.site.firmware import Settings


class ManualBackEnd(BackEnd):
    """Reads no firmware and refuses each change."""

    sets = False
    drains = True
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
