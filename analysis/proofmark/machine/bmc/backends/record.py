"""For firmware that nothing can set from afar (old Opteron, Nehalem, POWER): it records.

The operating system still has to prove the mode; where it is another, a person sets the machine.
"""

from __future__ import annotations

from proofmark.machine.bmc.backends import BackEnd, Given
from proofmark.machine.bmc.model import Host, Reading
from proofmark.machine.outcome import Failed, Outcome
from proofmark.site.firmware import Settings


class Record:
    """Sets nothing, ever."""

    sets = False
    drains = True
    knows_now = False

    def read(self, host: Host, wanted: Settings) -> Reading:
        """Know nothing of the firmware."""
        return Reading(current={})

    def stage(self, host: Host, reading: Reading, wanted: Settings) -> None:
        """Refuse."""
        settings = ", ".join(f"{name}={value}" for name, value in wanted.items())
        raise Failed(Outcome.CANNOT_SET, f"set it at the machine: {settings}")

    def reset(self, host: Host, reading: Reading, wanted: Settings) -> None:
        """Refuse."""
        raise Failed(Outcome.CANNOT_SET, "restart it at the machine")

    def verify(self, host: Host, wanted: Settings) -> Settings | None:
        """Leave it to the operating system."""
        return None


def open_back_end(given: Given) -> BackEnd:
    """Return the back end; it needs nothing."""
    return Record()
