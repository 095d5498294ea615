"""The accounting of a virtual Slurm: MariaDB and slurmdbd of Debian on the head."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

from tests.emulators.vcluster.cluster import HEAD, Cluster, clean_environment
from tests.emulators.vcluster.fabric import HEAD_ADDRESS

PROGRAMS = ("/usr/sbin/slurmdbd", "/usr/sbin/mariadbd", "/usr/bin/mariadb-install-db")
PORT = 3306
SETTINGS = {
    "AccountingStorageType": "accounting_storage/slurmdbd",
    "AccountingStorageHost": HEAD,
    "AccountingStorageEnforce": "associations,limits,qos",
}
"""The parameters of slurm.conf with which slurmctld uses the accounting."""


def missing_programs() -> list[str]:
    """Return the programs that this machine lacks: Debian's slurmdbd and mariadb-server-core."""
    return [program for program in PROGRAMS if not Path(program).exists()]


def start_accounting(cluster: Cluster, folder: Path) -> None:
    """Start the accounting; it ends with the cluster.

    Args:
        cluster: a cluster that has been entered.
        folder: the folder of slurm.conf, which gets slurmdbd.conf; see `Slurm`.

    Raises:
        TimeoutError: it does not answer after a minute.
    """
    folder.mkdir(parents=True, exist_ok=True)
    data, socket = folder / "db", Path("/run") / f"proofmark-{cluster.head}.sock"
    own = ["--no-defaults", f"--datadir={data}", "--user=root"]
    install = [PROGRAMS[2], *own, "--auth-root-authentication-method=normal", "--skip-test-db"]
    subprocess.run(install, check=True, capture_output=True, env=clean_environment())
    listens = ["--bind-address=127.0.0.1", f"--port={PORT}", f"--socket={socket}"]
    cluster.daemon(PROGRAMS[1], *own, *listens)
    values = {
        "AuthType": "auth/none",
        "DbdHost": HEAD,
        "SlurmUser": "root",
        "StorageType": "accounting_storage/mysql",
        "StorageHost": "127.0.0.1",
        "StoragePort": PORT,
        "StorageUser": "root",
        "StorageLoc": "slurm",
        "PidFile": folder / "slurmdbd.pid",
        "LogFile": cluster.folder / "log/slurmdbd.log",
    }
    configuration = folder / "slurmdbd.conf"
    configuration.write_text("".join(f"{key}={value}\n" for key, value in values.items()))
    configuration.chmod(0o600)
    _await_port(cluster, "127.0.0.1", PORT)
    cluster.daemon("/usr/bin/env", f"SLURM_CONF={folder / 'slurm.conf'}", PROGRAMS[0], "-D")
    _await_port(cluster, HEAD_ADDRESS, 6819)


def _await_port(cluster: Cluster, host: str, port: int) -> None:
    end = time.monotonic() + 60
    look = cluster.inside("bash", "-c", f": </dev/tcp/{host}/{port}")
    while subprocess.run(look, check=False, capture_output=True).returncode:
        if time.monotonic() > end:
            raise TimeoutError(f"no answer at {host}:{port}")
        time.sleep(0.1)
