"""Emulate BMCs until SIGTERM or Ctrl-C.

  python -m tests.emulators.bmc --nodes rknl[1-4] --folder FOLDER --port 8443 --fault rknl2=hang

Prints one line of JSON when all BMCs listen: addresses, port, and the file of the authority.
"""

from __future__ import annotations

import argparse
import json
import resource
import signal
from pathlib import Path

from ClusterShell.NodeSet import NodeSet
from tests.emulators.bmc.machine import FAULTS
from tests.emulators.bmc.server import PASSWORD, USER, Emulator, Timing


def main() -> None:
    options = argparse.ArgumentParser(prog="python -m tests.emulators.bmc", description=__doc__)
    options.add_argument("--nodes", required=True, help="a node set")
    options.add_argument(
        "--folder", required=True, type=Path, help="folder of nodes and certificates"
    )
    options.add_argument("--shape", choices=("knl", "skl"), default="knl")
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
        help="; ".join(f"{name}: {text}" for name, text in FAULTS.items()),
    )
    chosen = options.parse_args()
    emulator = Emulator(
        list(NodeSet(chosen.nodes)),
        chosen.folder,
        shape=chosen.shape,
        port=chosen.port,
        network=chosen.network,
        faults=dict(item.partition("=")[::2] for item in chosen.fault),
        timing=Timing(chosen.latency, chosen.off, chosen.boot),
        hook=chosen.hook,
    )
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
