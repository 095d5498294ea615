"""Emulate BMCs until SIGTERM or Ctrl-C.

  python -m tests.emulators.bmc --nodes rknl[1-4] --folder FOLDER --port 8443 --fault rknl2=hang
  python -m tests.emulators.bmc --nodes n[1-2] --folder FOLDER --vendor idrac-intel

Prints one line of JSON when all BMCs listen: addresses, port, and the file of the authority.
"""

from __future__ import annotations

import argparse
import json
import resource
import signal
from pathlib import Path
from typing import Any

from ClusterShell.NodeSet import NodeSet
from tests.emulators.bmc.machine import FAULTS
from tests.emulators.bmc.server import PASSWORD, USER, Emulator, Timing
from tests.emulators.bmc.vendor_server import FAULTS as OF_VENDORS
from tests.emulators.bmc.vendor_server import VendorEmulator
from tests.emulators.bmc.vendors import VENDORS


def main() -> None:
    options = argparse.ArgumentParser(prog="python -m tests.emulators.bmc", description=__doc__)
    options.add_argument("--nodes", required=True, help="a node set")
    options.add_argument(
        "--folder", required=True, type=Path, help="folder of nodes and certificates"
    )
    options.add_argument("--shape", choices=("knl", "skl"), default="knl")
    options.add_argument(
        "--vendor", choices=VENDORS, help="the BMCs of a vendor, without --shape and its faults"
    )
    options.add_argument("--port", type=int, default=8443)
    options.add_argument("--network", type=int, default=9, help="addresses are 127.NETWORK.x.y")
    options.add_argument("--latency", type=float, default=0.0, help="seconds before each response")
    options.add_argument(
        "--off", type=float, default=0.5, help="seconds that a reset keeps a node off"
    )
    options.add_argument("--boot", type=float, default=1.5, help="seconds of a boot")
    options.add_argument(
        "--hook", default="", help="command that is run as HOOK off NODE and HOOK on NODE"
    )
    options.add_argument(
        "--fault",
        action="append",
        default=[],
        metavar="NODE=FAULT",
        help="; ".join(f"{name}: {text}" for name, text in (FAULTS | OF_VENDORS).items()),
    )
    chosen = options.parse_args()
    settings: dict[str, Any] = {
        "port": chosen.port,
        "network": chosen.network,
        "faults": dict(item.partition("=")[::2] for item in chosen.fault),
        "timing": Timing(chosen.latency, chosen.off, chosen.boot),
        "hook": chosen.hook,
    }
    nodes = list(NodeSet(chosen.nodes))
    if chosen.vendor:
        emulator: Emulator = VendorEmulator(chosen.vendor, nodes, chosen.folder, **settings)
    else:
        emulator = Emulator(nodes, chosen.folder, shape=chosen.shape, **settings)
    # Each BMC has a listening socket and a connection; the usual limit is 1,024 files.
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    end_signals = {signal.SIGINT, signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, end_signals)
    with emulator:
        facts = {
            "port": emulator.port,
            "ca": str(emulator.ca),
            "user": USER,
            "password": PASSWORD,
            "remote_shell": emulator.remote_shell,
            "addresses": {name: emulator.address(name) for name in emulator.machines},
        }
        print(json.dumps(facts), flush=True)
        signal.sigwait(end_signals)


if __name__ == "__main__":
    main()
