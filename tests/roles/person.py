"""An ordinary user of a virtual cluster, whom only the cluster knows."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

from tests.emulators.vcluster import Cluster

NAME, UID, GID = "carol", 47110, 100
"""GID is that of the group `users` of Debian."""


class Person:
    """A user with a home in `folder`, whose shell is sh; she has no rights of root anywhere.

    Made before `cluster` is entered. Each machine of the cluster has her in its own /etc/passwd.
    """

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.cluster, self.home = cluster, folder / "home"
        self._users = folder / "passwd"
        self.home.mkdir()
        others = Path("/etc/passwd").read_text()
        self._users.write_text(f"{others}{NAME}:*:{UID}:{GID}:{NAME}:{self.home}:/bin/sh\n")
        self.own(self.home)
        boot = cluster.folder / "boot.d"
        boot.mkdir(parents=True)
        (boot / "00-users.sh").write_text(f"{shlex.join(self._mount())}\n")

    def _mount(self) -> list[str]:
        return ["mount", "--bind", str(self._users), "/etc/passwd"]

    def join(self) -> None:
        """Let the head know her, and let her log in to the nodes; the cluster has been entered."""
        head = ["nsenter", f"--target={self.cluster.head}", "--mount", "--"]
        subprocess.run([*head, *self._mount()], check=True)
        os.chown(self.cluster.key, UID, GID)  # ssh of root takes it too

    def own(self, folder: Path) -> None:
        """Give her `folder` and all in it."""
        for path in [folder, *folder.rglob("*")]:
            os.chown(path, UID, GID, follow_symlinks=False)

    def command(self, folder: Path) -> tuple[str, ...]:
        """Return the words that run a command on the head as this user, in `folder`."""
        identity = (f"--reuid={UID}", f"--regid={GID}", "--clear-groups")
        return (
            *("nsenter", f"--target={self.cluster.head}"),
            *("--net", "--uts", "--mount", f"--wd={folder}", "--"),
            *("setpriv", *identity, "--"),
            *("env", f"HOME={self.home}", f"XDG_STATE_HOME={self.home}/state"),
            *(f"USER={NAME}", f"LOGNAME={NAME}"),
        )

    def call(self, *command: str) -> str:
        """Run one of the commands of the cluster as this user; return its standard output.

        Raises:
            CalledProcessError: the command fails.
        """
        done = subprocess.run(
            [*self.command(self.home), *command],
            check=True,
            capture_output=True,
            text=True,
            env=self.cluster.environment(),
            timeout=600,
        )
        return done.stdout
