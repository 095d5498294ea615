"""OpenPBS on a virtual cluster: server, scheduler and comm on the head, pbs_mom on every node.

`build-openpbs.sh` builds it from the source of upstream. Its default settings stay: the server
keeps no history of jobs, and root may submit none.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

from tests.emulators.vcluster.cluster import HEAD, Cluster

FOLDERS = {
    **dict.fromkeys(("server_priv", "server_priv/jobs", "server_priv/users"), 0o750),
    **dict.fromkeys(("server_priv/hooks", "server_priv/hooks/tmp", "sched_priv"), 0o750),
    **dict.fromkeys(("server_logs", "sched_logs", "comm_logs", "server_priv/accounting"), 0o755),
    **dict.fromkeys(("spool", "undelivered"), 0o1777),
}
"""The folders of a server below PBS_HOME (pbs_postinstall)."""
LOCKS = {
    "pbs_comm": "server_priv/comm.lock",
    "pbs_sched": "sched_priv/sched.lock",
    "pbs_server": "server_priv/server.lock",
}
"""The daemons of the head in the order of their start, with the files of their process ids."""
SERVER = ("pbs_sched", "pbs_server")
"""The daemons without the one through which those of the nodes speak with each other."""
COMMANDS = (
    *("qsub", "qstat", "qselect", "qdel", "qhold", "qrls", "qmgr", "qstart", "qstop", "qenable"),
    *("pbsnodes", "pbs_rstat", "pbsdsh"),
)
QUEUE = "workq"


class OpenPbs:
    """OpenPBS on `cluster` within this context, with the queue `QUEUE` of all nodes.

    Args:
        cluster: a cluster that has been entered.
        prefix: the folder in which OpenPBS is installed.
        settings: further lines of qmgr.
    """

    def __init__(self, cluster: Cluster, prefix: Path, *, settings: tuple[str, ...] = ()) -> None:
        self.cluster, self.prefix, self._settings = cluster, prefix, settings
        # Daemons refuse a home below a folder with the sticky bit, such as /tmp (chk_file_sec).
        self._home = TemporaryDirectory(prefix="proofmark-pbs-", dir="/srv")
        self.home = Path(self._home.name)
        self.configuration = self.home / "pbs.conf"
        self._environment = {"PBS_CONF_FILE": str(self.configuration)}

    def __enter__(self) -> Self:
        """Start the daemons; return when all nodes are free.

        Raises:
            TimeoutError: a daemon does not answer, or a node is not free, after two minutes.
        """
        try:
            self._start()
            self.wait_until_free()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the daemons of the head; those of the nodes end with the cluster."""
        self.stop_server()
        self._home.cleanup()

    def _start(self) -> None:
        self.home.chmod(0o755)
        self.configuration.write_text(self._text())
        for name in COMMANDS:
            self.cluster.command(f"{self.prefix}/bin/{name}", **self._environment)
        for name, mode in FOLDERS.items():
            (self.home / name).mkdir()
            (self.home / name).chmod(mode)
        # The socket of PostgreSQL, which does not depend on the folder of its data.
        sockets = "/run/postgresql"
        self._run("sh", "-c", f"mkdir -p {sockets} && mount -t tmpfs -o mode=1777 none {sockets}")
        # pbs_habitat makes the data service and the queue.
        (self.home / "pbs_environment").write_text("PATH=/bin:/usr/bin\n")
        for name in ("sched_config", "dedicated", "holidays", "resource_group"):
            target = "dedicated_time" if name == "dedicated" else name
            shutil.copy(self.prefix / f"etc/pbs_{name}", self.home / "sched_priv" / target)
        self._run(str(self.prefix / "libexec/pbs_habitat"))
        self.start_server()
        self._qmgr(
            "set server scheduling = true",
            *(f"create node {name}" for name in self.cluster.names),
            *self._settings,
        )
        self.cluster.service("pbs_mom", self._mom())

    def start_server(self, daemons: Iterable[str] = LOCKS) -> None:
        """Start daemons of the head and the data service, with the saved state."""
        for name in daemons:
            self._run(str(self.prefix / "sbin" / name))
        self._wait("server", lambda: bool(self._try("qstat", "-B")))

    def stop_server(self, daemons: Iterable[str] = LOCKS) -> None:
        """Stop daemons of the head and the data service at once; jobs go on."""
        for name in daemons:
            lock = self.home / LOCKS[name]
            if lock.exists() and (number := lock.read_text().strip()).isdecimal():
                self._run("kill", "-9", number, check=False)
        self._run(str(self.prefix / "sbin/pbs_dataservice"), "stop", check=False)

    def call(self, *command: str) -> str:
        """Run a command of PBS and return its standard output.

        Raises:
            CalledProcessError: the command fails.
        """
        return self.cluster.call(*command)

    def wait_until_free(self) -> None:
        """Wait until all nodes are free.

        Raises:
            TimeoutError: a node is not free after two minutes.
        """

        def free() -> bool:
            states = [
                line.split(" = ")[1]
                for line in self._try("pbsnodes", "-a").splitlines()
                if line.strip().startswith("state = ")
            ]
            return states == ["free"] * len(self.cluster.names)

        self._wait("free nodes", free)

    def _text(self) -> str:
        values = {
            "PBS_EXEC": self.prefix,
            "PBS_HOME": self.home,
            "PBS_SERVER": HEAD,
            "PBS_START_SERVER": 1,
            "PBS_START_SCHED": 1,
            "PBS_START_COMM": 1,
            "PBS_START_MOM": 0,
            "PBS_CORE_LIMIT": "unlimited",
            "PBS_SCP": shutil.which("scp") or "/usr/bin/scp",
        }
        return "".join(f"{key}={value}\n" for key, value in values.items())

    def _mom(self) -> str:
        """Return the command of a node: its home is beside that of the server, and stays."""
        home, exe = shlex.quote(str(self.home)), shlex.quote(str(self.prefix))
        steps = (
            f"mkdir -p {home}/$NODE && cd {home}/$NODE && home=$PWD",
            "mkdir -p mom_priv/jobs mom_priv/hooks/tmp mom_priv/config.d",
            "mkdir -p mom_logs aux spool undelivered checkpoint && chmod 1777 spool undelivered",
            "chmod 755 aux && chmod 700 checkpoint && chmod 751 mom_priv/jobs mom_priv/hooks",
            'sed "s|^PBS_HOME=.*|PBS_HOME=$home|" ../pbs.conf >pbs.conf',
            "cp ../pbs_environment pbs_environment && rm -f mom_priv/mom.lock",
            f"printf '$clienthost {HEAD}\\n$usecp *:/ /\\n' >mom_priv/config",
            f'PBS_CONF_FILE="$home/pbs.conf" exec {exe}/sbin/pbs_mom -N',
        )
        return "{ " + " && ".join(steps) + "; }"

    def _run(self, *command: str, check: bool = True) -> None:
        """Run a command on the head."""
        enter = [
            *("nsenter", f"--target={self.cluster.head}", "--net", "--uts", "--pid", "--mount"),
            "--",
        ]
        with (self.cluster.folder / "log/pbs").open("ab") as log:
            subprocess.run(
                [*enter, *command],
                check=check,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", **self._environment},
                timeout=120,
            )

    def _qmgr(self, *lines: str) -> None:
        for line in lines:
            self.call("qmgr", "-c", line)

    def _try(self, *command: str) -> str:
        try:
            return self.call(*command)
        except subprocess.CalledProcessError:
            return ""

    def _wait(self, what: str, done: Callable[[], bool], seconds: float = 120) -> None:
        end = time.monotonic() + seconds
        while not done():
            if time.monotonic() > end:
                raise TimeoutError(f"OpenPBS: no {what} after {seconds} s")
            time.sleep(0.3)
