"""A distributed file system (JuiceFS) on a virtual cluster, with or without a file server."""

from __future__ import annotations

import os
import shlex
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from tests.emulators.vcluster.cluster import Cluster

PROGRAM = Path(sys.executable).with_name("juicefs")
NAME = "pfs"
OPTIONS = "--cache-dir=memory --cache-size=32 --log=/run/juicefs.log --backup-meta=0"
# A server that does not answer is an error after a minute, not after many minutes. A slow server
# answers even if 16 nodes transfer a block at the same time.
OPTIONS += " --put-timeout=20s --get-timeout=20s --io-retries=2 --max-uploads=2"
BLOCK = "1024"
"""KiB of one transfer."""
STOP_CLIENT = """
for comm in /proc/[0-9]*/comm; do
	read -r name <"$comm" && [ "$name" = juicefs ] || continue
	process=${comm#/proc/}
	kill -STOP "${process%/comm}"
done
"""
FILL = """
import os, sys
free = os.statvfs(sys.argv[1])
with open(f"{sys.argv[1]}/full", "wb") as file:
    file.truncate(free.f_bavail * free.f_frsize)
"""


def make_sticky(database: Path) -> None:
    """Give the root folder of a new JuiceFS the mode 1777, in its metadata `database`.

    JuiceFS makes it with 777. In that of a site nobody can replace what others made.
    """
    with closing(sqlite3.connect(database)) as meta, meta:
        meta.execute("UPDATE jfs_node SET mode = ? WHERE inode = 1", (0o1777,))


@dataclass(frozen=True)
class JuiceFs:
    """A JuiceFS, which the nodes of `cluster` can mount.

    Attributes:
        cluster: a cluster that has been entered.
        database: the name of the file with its metadata, and of the folder of its data.
        server: the machine that serves the data by SFTP, of ``cluster.servers``; empty: the nodes
            use the folder itself.
        capacity_gib: its size, GiB; 0: without limit.
    """

    cluster: Cluster
    database: str = NAME
    server: str = ""
    capacity_gib: int = 0

    @property
    def meta(self) -> str:
        """The URL of the metadata database. It is the source argument of the mount command."""
        return f"sqlite3://{self.cluster.folder}/{self.database}.db"

    @property
    def environment(self) -> dict[str, str]:
        """The variables of its processes."""
        return {"SSH_PRIVATE_KEY_PATH": str(self.cluster.key)} if self.server else {}

    def format(self) -> None:
        """Make it.

        Raises:
            CalledProcessError: it cannot be made; the error has the reason.
        """
        store = self.cluster.folder / self.database
        store.mkdir()
        where = ["--storage", "file", "--bucket", f"{store}/"]
        if self.server:
            bucket = f"{self.cluster.address(self.server)}:{store}/"
            where = ["--storage", "sftp", "--bucket", bucket, "--access-key", "root"]
        size = ["--capacity", str(self.capacity_gib), "--trash-days", "0", "--block-size", BLOCK]
        command = [str(PROGRAM), "format", self.meta, NAME, *where, *size]
        done = subprocess.run(
            self.cluster.inside(*command),
            capture_output=True,
            env={**os.environ, **self.environment},
            text=True,
            check=False,
        )
        if done.returncode:
            raise subprocess.CalledProcessError(done.returncode, done.args, stderr=done.stderr)
        make_sticky(self.cluster.folder / f"{self.database}.db")

    def mount_command(self) -> str:
        """Return the beginning of the sh command that mounts it: source and point follow."""
        given = shlex.join(["env", *(f"{key}={text}" for key, text in self.environment.items())])
        # A busy machine needs this time for a mount.
        return f"{given} JFS_MOUNT_TIMEOUT=100 {shlex.quote(str(PROGRAM))} mount {OPTIONS}"

    def mount(self, point: str, *nodes: str) -> None:
        """Mount it on `nodes` in the background."""
        for node in nodes:
            script = f"mkdir -p {point}; {self.mount_command()} -d {self.meta} {point} 2>&1"
            self.cluster.on(node, "sh", "-c", script)

    def stop_client(self, node: str) -> None:
        """Stop the client of `node`: accesses there wait for ever."""
        self.cluster.on(node, "sh", "-c", STOP_CLIENT)

    def fill(self, point: str, node: str) -> None:
        """Leave no free block, by a sparse file: JuiceFS counts its length, as a quota does."""
        self.cluster.on(node, sys.executable, "-c", FILL, point)
