"""Slows the steps on a virtual node down, as a processor does that is too hot: python throttle.py.

The processes of a step run for `ON_S` of each `PERIOD_S`; the rest of the time they are stopped.
Each period adds one to the counter that Linux has for a processor that throttles itself. It ends
with the node.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from itertools import count
from pathlib import Path

PERIOD_S, ON_S = 0.5, 0.02
COUNTER = Path("/run/machine/cpu0/thermal_throttle/core_throttle_count")
"""The file that the node shows below /sys/devices/system/cpu: dress.sh mounts it there."""


def of_steps() -> list[int]:
    """Return the processes of steps on this node."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has just ended
            if b"PROOFMARK_STEP=" in (path / "environ").read_bytes():
                found.append(int(path.name))
    return found


def send(number: signal.Signals, processes: list[int]) -> None:
    """Send a signal to `processes`."""
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, number)


def main() -> None:
    """Throttle until this process is killed."""
    for events in count(1):
        processes = of_steps()
        send(signal.SIGSTOP, processes)
        time.sleep(PERIOD_S - ON_S)
        send(signal.SIGCONT, processes)
        if processes:
            COUNTER.write_text(f"{events}\n")
        time.sleep(ON_S)


if __name__ == "__main__":
    main()
