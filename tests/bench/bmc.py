"""The cost of staging and resetting many BMCs, by the kit or by Ansible's own module.

A separate process emulates the BMCs. Only the cost of the client counts.

  python -m tests.bench.bmc --bmcs 1000 [--latency 0.5] [--at-once 256]
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.fixtures.shells import remote_shell
from tests.processes import running

from proofmark.machine.bmc.back_end import BackEndContext, back_end
from proofmark.machine.bmc.credentials import Credentials
from proofmark.machine.bmc.model import FirmwareState, Host
from proofmark.machine.fanout import fan_out, split
from proofmark.site.firmware import Firmware

WANTED = {"ClusterMode": "SNC-4", "MemoryMode": "Cache"}
PLAYBOOK = """
- hosts: all
  gather_facts: false
  tasks:
    - community.general.redfish_config:
        category: Systems
        command: SetBiosAttributes
        bios_attributes: {ClusterMode: SNC-4, MemoryMode: Cache}
        baseuri: "{{ bmc }}"
        username: "{{ user }}"
        password: "{{ password }}"
        validate_certs: true
        ca_path: "{{ ca }}"
        timeout: 60
      delegate_to: localhost
    - community.general.redfish_command:
        category: Systems
        command: PowerGracefulRestart
        baseuri: "{{ bmc }}"
        username: "{{ user }}"
        password: "{{ password }}"
        validate_certs: true
        ca_path: "{{ ca }}"
        timeout: 60
      delegate_to: localhost
"""


@dataclass(frozen=True)
class Cost:
    """The cost of one method for all BMCs; `memory_mb` is the peak of one process."""

    way: str
    bmcs: int
    failed: int
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
    """Read and check all BMCs, then stage and reset all."""
    facts = {"back_end": "redfish", "port": room["port"], "ca": room["ca"], "timeout_s": 60}
    firmware = Firmware.model_validate(facts)
    credentials = Credentials(room["user"], room["password"])
    end = back_end(BackEndContext(firmware, credentials, remote_shell(["false"], 1)))
    hosts = [Host(node, address) for node, address in room["addresses"].items()]
    start, before = time.monotonic(), _cpu_s(resource.RUSAGE_SELF)
    readings, bad = split(fan_out(hosts, lambda host: end.read(host, WANTED), at_once))

    def change(host: Host) -> FirmwareState:
        end.stage(host, readings[host], WANTED)
        end.reset(host, readings[host], WANTED)
        return readings[host]

    _, worse = split(fan_out(readings, change, at_once))
    return Cost(
        "proofmark",
        len(hosts),
        len(bad) + len(worse),
        time.monotonic() - start,
        1000 * (_cpu_s(resource.RUSAGE_SELF) - before) / len(hosts),
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    )


def by_ansible(room: Mapping[str, Any], collections: str, bmcs: int, forks: int) -> Cost:
    """Do the same with one task for each host, which checks no pending values and no registry."""
    with tempfile.TemporaryDirectory(prefix="proofmark-bench-") as name:
        folder = Path(name)
        chosen = list(room["addresses"].items())[:bmcs]
        variables = " ".join(f"{key}='{room[key]}'" for key in ("user", "ca"))
        lines = [f"{node} bmc={address}:{room['port']} {variables}" for node, address in chosen]
        (folder / "hosts").write_text("\n".join(lines) + "\n")
        (folder / "play.yml").write_text(PLAYBOOK)
        secret = folder / "secret.json"
        secret.write_text(json.dumps({"password": room["password"]}))
        command = ["ansible-playbook", "-i", "hosts", "-f", str(forks), "-e", f"@{secret}"]
        environment = {
            **os.environ,
            "ANSIBLE_COLLECTIONS_PATH": collections,
            "ANSIBLE_NOCOLOR": "1",
        }
        start, before = time.monotonic(), _cpu_s(resource.RUSAGE_CHILDREN)
        done = subprocess.run(
            [*command, "play.yml"],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        spent = _cpu_s(resource.RUSAGE_CHILDREN) - before
        ended = [line for line in done.stdout.splitlines() if "ok=" in line]
        failed = len(chosen) - sum("failed=0 " in line for line in ended)
        if failed == len(chosen):
            raise SystemExit(done.stdout[-2000:] + done.stderr[-2000:])
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    wall = time.monotonic() - start
    return Cost("redfish_config", bmcs, failed, wall, 1000 * spent / bmcs, memory)


def _cpu_s(whose: int) -> float:
    used = resource.getrusage(whose)
    return used.ru_utime + used.ru_stime


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure one method and print it as a line of JSON."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--bmcs", type=int, default=1000)
    options.add_argument("--latency", type=float, default=0.0, help="seconds of each response")
    options.add_argument("--at-once", type=int, default=256)
    options.add_argument("--collections", help="measure Ansible, with community.general from here")
    options.add_argument("--forks", type=int, default=50)
    chosen = options.parse_args(arguments)
    with emulated(chosen.bmcs, chosen.latency) as room:
        if chosen.collections:
            cost = by_ansible(room, chosen.collections, chosen.bmcs, chosen.forks)
        else:
            cost = by_the_kit(room, chosen.at_once)
    print(json.dumps({**asdict(cost), "latency_s": chosen.latency, "at_once": chosen.at_once}))


if __name__ == "__main__":
    main()
