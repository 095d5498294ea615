"""The virtual cluster of a rehearsal: nodes that follow their firmware, BMCs, Slurm, scratch."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from tests.emulators.bmc.server import Emulator, Timing
from tests.emulators.vcluster import Cluster, Slurm
from tests.emulators.vcluster.cluster import SAFE_PATH
from tests.rehearsal.faults import Fault
from tests.rehearsal.shapes import SHAPES

HERE = Path(__file__).parent
RATE = "200mbit"
"""The speed of every link: far below that of the machine, so that the links limit the rate."""
FILE_SYSTEM = "pfs"
LSTOPO = """#!/bin/sh
# On a virtual node it prints the topology of the firmware.
if [ -s /run/machine/topology.xml ]; then export HWLOC_XMLFILE=/run/machine/topology.xml; fi
exec {program} "$@"
"""


class Room:
    """A context manager. Its files are in `folder`, its processes below one process; it ends both.

    Attributes:
        victim: the node that has the fault.
    """

    def __init__(
        self,
        folder: Path,
        shape: str = "knl",
        nodes: int = 8,
        fault: Fault | None = None,
        shared: Iterable[Path] = (),
    ) -> None:
        self.folder, self.shape = folder, SHAPES[shape]
        self.fault = fault
        self.cluster = Cluster(
            folder,
            nodes,
            prefix=self.shape.prefix,
            shared=shared,
            session={"PATH": f"{folder}/bin:{SAFE_PATH}"},
        )
        self.names = self.cluster.names
        self.victim = self.names[1]
        self.emulator = Emulator(
            self.names,
            folder / "bmc",
            shape=shape,
            faults={self.victim: fault.bmc} if fault else {},
            timing=Timing(off=0.3, boot=0.5),
            hook=self._switch,
        )
        self.slurm = Slurm(self.cluster, partition=shape, hardware=self.shape.slurm)
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
            self._make_file_system(FILE_SYSTEM)
            if self.fault and self.fault.mount:
                self._make_file_system("other")
            self._stack.enter_context(self.emulator)
            self._stack.enter_context(self.cluster)
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
        for name in self.names:
            slow = self.fault.rate if self.fault and name == self.victim else ""
            (self.folder / "rates" / name).write_text(f"{slow or RATE}\n")

    def _keep_connections(self) -> None:
        """Write an ssh command whose connections end with the first process of the cluster."""
        (self.folder / "kept").mkdir()
        enter = f"nsenter --target={self.cluster.head} --net --uts --mount --pid"
        configuration = shlex.quote(f"{self.folder}/ssh_config")
        self._command("ssh-kept", f'#!/bin/sh\nexec {enter} -- ssh -F {configuration} "$@"\n')

    def _make_file_system(self, database: str) -> None:
        """Format a JuiceFS, and write its command; each node has its own cache and log."""
        program = Path(sys.executable).with_name("juicefs")
        store = f"{self.folder / database}/"
        meta = f"sqlite3://{self.folder}/{database}.db"
        done = subprocess.run(
            [program, "format", meta, FILE_SYSTEM, "--storage", "file", "--bucket", store],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise subprocess.CalledProcessError(done.returncode, done.args, stderr=done.stderr)
        broken = (
            f'if [ "$(uname -n)" = {self.victim} ]; then {self.fault.mount}; fi\n'
            if self.fault and self.fault.mount
            else ""
        )
        real = shlex.quote(str(program))
        options = "--cache-dir=memory --cache-size=32 --log=/run/juicefs.log --backup-meta=0"
        self._command(
            "juicefs",
            f'#!/bin/sh\n[ "$1" = mount ] || exec {real} "$@"\nshift\n{broken}'
            f'JFS_MOUNT_TIMEOUT=100 exec {real} mount {options} "$@"\n',  # on a busy machine
        )

    def _command(self, name: str, text: str) -> None:
        """Write a command into the first folder of ``PATH`` of the nodes and the controller."""
        script = self.cluster.bin / name
        script.parent.mkdir(exist_ok=True)
        script.write_text(text)
        script.chmod(0o755)
