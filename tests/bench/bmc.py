"""The cost of staging and resetting many BMCs.

A separate process emulates the BMCs. Only the cost of the client counts. The bench fails if a BMC
fails.

  python -m tests.bench.bmc --bmcs 1000 [--latency 0.5] [--at-once 256]
"""

from __future__ import annotations

import argparse
import json
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from tests.fixtures.shells import remote_shell
from tests.processes import running

from proofmark.machine.bmc.back_end import (
    BackEndContext,
    Credentials,
    FirmwareState,
    Host,
    back_end,
)
from proofmark.machine.outcome import fan_out, split
from proofmark.site.firmware import Firmware

WANTED = {"ClusterMode": "SNC-4", "MemoryMode": "Cache"}


@dataclass(frozen=True)
class Cost:
    """The cost of all BMCs; `memory_mb` is the peak of this process."""

    bmcs: int
    wall_s: float
    cpu_ms_each: float
    memory_mb: float


@contextmanager
def emulated(bmcs: int, latency: float) -> Iterator[dict[str, Any]]:
    """Emulate `bmcs` BMCs in a process; yield their addresses, user, password and CA."""
    with tempfile.TemporaryDirectory(prefix="proofmark-bmcs-") as folder:
        nodes = f"--nodes=n[1-{bmcs}]"
        options = [f"--folder={folder}", f"--latency={latency}", "--port=8443", "--network=11"]
        command = [sys.executable, "-m", "tests.emulators.bmc", nodes, *options]
        with running(subprocess.Popen(command, stdout=subprocess.PIPE, text=True)) as emulator:
            assert emulator.stdout is not None
            yield json.loads(emulator.stdout.readline())
            emulator.send_signal(signal.SIGTERM)
            emulator.wait(600)


def by_the_kit(room: Mapping[str, Any], at_once: int) -> Cost:
    """Read and check all BMCs, then stage and reset all.

    Raises:
        SystemExit: a BMC failed.
    """
    facts = {"back_end": "redfish", "port": room["port"], "ca": room["ca"], "timeout_s": 60}
    firmware = Firmware.model_validate(facts)
    credentials = Credentials(room["user"], room["password"])
    end = back_end(BackEndContext(firmware, credentials, remote_shell(["false"], 1)))
    hosts = [Host(node, address) for node, address in room["addresses"].items()]
    start, before = time.monotonic(), _cpu_s()
    readings, bad = split(fan_out(hosts, lambda host: end.read(host, WANTED), at_once))

    def change(host: Host) -> FirmwareState:
        end.stage(host, readings[host], WANTED)
        end.reset(host, readings[host], WANTED)
        return readings[host]

    _, worse = split(fan_out(readings, change, at_once))
    if failed := bad | worse:
        raise SystemExit(f"found {len(failed)} BMCs that failed: {next(iter(failed.items()))}")
    return Cost(
        len(hosts),
        time.monotonic() - start,
        1000 * (_cpu_s() - before) / len(hosts),
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    )


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print a line of JSON."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--bmcs", type=int, default=1000)
    options.add_argument("--latency", type=float, default=0.0, help="seconds of each response")
    options.add_argument("--at-once", type=int, default=256)
    chosen = options.parse_args(arguments)
    with emulated(chosen.bmcs, chosen.latency) as room:
        cost = by_the_kit(room, chosen.at_once)
    print(json.dumps({**asdict(cost), "latency_s": chosen.latency, "at_once": chosen.at_once}))


if __name__ == "__main__":
    main()
