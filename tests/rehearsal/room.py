"""The virtual cluster of a rehearsal: nodes that follow their firmware, BMCs, Slurm, scratch.

The store of the file system is a folder, or a folder of a server, which the nodes reach by SFTP
over its link.
"""

from __future__ import annotations

import os
import shlex
import shutil
import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Self

from tests.emulators.bmc.server import Emulator, Timing
from tests.emulators.vcluster import Cluster, Slurm
from tests.emulators.vcluster.cluster import SAFE_PATH
from tests.emulators.vcluster.juicefs import NAME, PROGRAM, JuiceFs
from tests.rehearsal.faults import Fault
from tests.rehearsal.shapes import RATE, SHAPES

HERE = Path(__file__).parent
SERVER = "rserver"
SLOW = "50mbit"
"""The speed of a slow link: a quarter of that of the others."""
LSTOPO = """#!/bin/sh
# On a virtual node it prints the topology of the firmware.
if [ -s /run/machine/topology.xml ]; then export HWLOC_XMLFILE=/run/machine/topology.xml; fi
exec {program} "$@"
"""


class Room:
    """A context manager. Its files are in `folder`, its processes below one process; it ends both.

    Attributes:
        victim: the node that has the fault.
        server: the machine that serves scratch; empty if scratch has no server.
        file_system: the file system of scratch.
    """

    def __init__(
        self,
        folder: Path,
        shape: str = "knl",
        nodes: int = 8,
        fault: Fault | None = None,
        shared: Iterable[Path] = (),
        *,
        served: bool = False,
    ) -> None:
        self.folder, self.shape = folder, SHAPES[shape]
        self.fault = fault
        served = served or self.shape.served or bool(fault and fault.served)
        self.server = SERVER if served else ""
        switches = self.shape.switches
        if fault and fault.slow_uplink:
            switches = replace(switches, slow={fault.slow_uplink: SLOW})
        self.cluster = Cluster(
            folder,
            nodes,
            prefix=self.shape.prefix,
            shared=shared,
            session={"PATH": f"{folder}/bin:{SAFE_PATH}"},
            servers=[SERVER] if served else [],
            switches=switches,
        )
        self.names = self.cluster.names
        self.victim = self.names[1]
        self.emulator = Emulator(
            self.names,
            folder / "bmc",
            shape=self.shape.firmware,
            faults={self.victim: fault.bmc} if fault else {},
            timing=Timing(off=0.3, boot=0.5),
            hook=self._switch,
        )
        self.slurm = Slurm(self.cluster, partition=shape, hardware=self.shape.slurm)
        self.file_system: JuiceFs | None = None
        self._stack = ExitStack()
        # One after the other, so that a node that is switched off and on again is on at the end.
        self._power = ThreadPoolExecutor(1)
        self._closing = threading.Event()

    def __enter__(self) -> Self:
        """Start everything.

        Raises:
            CalledProcessError or TimeoutError: a part does not start; ``log/`` has the reason.
        """
        try:
            self._write_files()
            self._stack.enter_context(self.emulator)
            self._stack.enter_context(self.cluster)
            if self.server:
                self.cluster.limit(self.server, self._rate(self.server))
            if self.fault and self.fault.loss:
                self.cluster.lose(self.victim, self.fault.loss)
            self.file_system = self._make_file_system(NAME)
            if self.fault and self.fault.mount:
                self._make_file_system("other")
            self._keep_connections()
            self._stack.enter_context(self.slurm)
            if self.fault:
                self.fault.before(self)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """End everything."""
        self._closing.set()
        self._power.shutdown(cancel_futures=True)
        self._stack.close()

    def environment(self) -> dict[str, str]:
        """Return the variables that the inventory and its commands read."""
        cpus = sorted(os.sched_getaffinity(0))
        return {
            **self.cluster.environment(),
            "PROOFMARK_REHEARSAL": str(self.folder),
            "PROOFMARK_STATE": str(self.folder / "state"),  # its nodes end with the room
            "PROOFMARK_REHEARSAL_PORT": str(self.emulator.port),
            "PROOFMARK_REHEARSAL_CPUS": ",".join(map(str, cpus)),
        }

    def _switch(self, what: str, node: str) -> None:
        """Switch a node off or on. Its BMC calls this."""
        act = self.cluster.kill if what == "off" else self.cluster.boot
        if not self._closing.is_set():
            self._power.submit(act, node)

    def _write_files(self) -> None:
        machine, boot = self.folder / "machine", self.folder / "boot.d"
        machine.mkdir()
        (machine / "cpuinfo").write_text(self.shape.cpuinfo())
        boot.mkdir()
        (boot / "00-dress.sh").write_text((HERE / "dress.sh").read_text())
        program = shutil.which("lstopo-no-graphics") or shutil.which("lstopo")
        self._command("lstopo-no-graphics", LSTOPO.format(program=program))
        (self.folder / "rates").mkdir()
        for name in (*self.names, *self.cluster.servers):
            (self.folder / "rates" / name).write_text(f"{self._rate(name)}\n")
        if self.fault and self.fault.throttled:
            (self.folder / "throttled").mkdir()
            (self.folder / "throttled" / self.victim).touch()

    def _rate(self, name: str) -> str:
        """Return the speed of the link of a node or server."""
        slow = self.fault.slow_links if self.fault else ""
        has_fault = {"node": self.victim, "server": self.server}.get(slow) == name
        return SLOW if has_fault else RATE

    def _keep_connections(self) -> None:
        """Write an ssh command whose connections end with the first process of the cluster."""
        (self.folder / "kept").mkdir()
        enter = f"nsenter --target={self.cluster.head} --net --uts --mount --pid"
        configuration = shlex.quote(f"{self.folder}/ssh_config")
        self._command("ssh-kept", f'#!/bin/sh\nexec {enter} -- ssh -F {configuration} "$@"\n')

    def _make_file_system(self, database: str) -> JuiceFs:
        """Make a JuiceFS, and write its command; each node has its own cache and log."""
        capacity = self.fault.capacity_gib if self.fault else 0
        made = JuiceFs(self.cluster, database, self.server, capacity)
        made.format()
        broken = (
            f'if [ "$(uname -n)" = {self.victim} ]; then {self.fault.mount}; fi\n'
            if self.fault and self.fault.mount
            else ""
        )
        self._command(
            "juicefs",
            f'#!/bin/sh\n[ "$1" = mount ] || exec {shlex.quote(str(PROGRAM))} "$@"\nshift\n{broken}'
            f'exec {made.mount_command()} "$@"\n',
        )
        return made

    def _command(self, name: str, text: str) -> None:
        """Write a command into the first folder of ``PATH`` of the nodes and the controller."""
        script = self.cluster.bin / name
        script.parent.mkdir(exist_ok=True)
        script.write_text(text)
        script.chmod(0o755)
