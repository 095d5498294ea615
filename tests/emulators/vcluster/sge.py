"""Grid Engine on a virtual cluster: sge_qmaster on the head, sge_execd on every node."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

from tests.emulators.vcluster.cluster import HEAD, Cluster, child

COMMANDS = ("qsub", "qalter", "qstat", "qdel", "qconf", "qacct", "qhost", "qrsh", "qhold", "qmod")
DEBIAN = Path("/var/lib/gridengine")
HELPERS = Path("/usr/lib/gridengine")
DEFAULTS = Path("/usr/share/gridengine")
QUEUE, ENVIRONMENT = "all.q", "proofmark"


class GridEngine:
    """Grid Engine on `cluster` within this context, with one queue of all nodes."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._short_folder: TemporaryDirectory[str] | None = None
        self.root = cluster.folder / "sge"
        if " " in f"{self.root}":  # the files of Grid Engine cannot quote a space
            self._short_folder = TemporaryDirectory(prefix="proofmark-sge-", dir="/var/tmp")
            self.root = Path(self._short_folder.name)
        self._environment = {
            "SGE_ROOT": str(self.root),
            "SGE_CELL": "default",
            "SGE_QMASTER_PORT": "6444",
            "SGE_EXECD_PORT": "6445",
        }
        self._editor = self.root / "editor"
        self._master: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        """Start the daemons; return when the queue has an instance on every node.

        Raises:
            TimeoutError: a daemon or an instance does not run after a minute.
        """
        self._initialise()
        for name in COMMANDS:
            self.cluster.command(name, **self._environment, EDITOR=str(self._editor))
        self.start_master()
        self._wait("qmaster", lambda: bool(self._try("qconf", "-sm")))
        for name in self.cluster.names:
            self.call("qconf", "-ah", name)
        self.call("qconf", "-as", HEAD)
        settings = " ".join(
            f"{key}={shlex.quote(value)}" for key, value in self._environment.items()
        )
        self.cluster.service("sge", f"{settings} SGE_ND=1 /usr/sbin/sge_execd")
        self._wait(
            "execd",
            lambda: all(name in self._try("qconf", "-sel") for name in self.cluster.names),
        )
        self._configure()
        self.wait_until_idle()
        return self

    def __exit__(self, *_: object) -> None:
        """Kill sge_qmaster; the other daemons end with the cluster."""
        self.stop_master()
        if self._short_folder:
            self._short_folder.cleanup()

    def start_master(self) -> None:
        """Start sge_qmaster with the saved state."""
        settings = [f"{key}={value}" for key, value in self._environment.items()]
        self._master = self.cluster.daemon("env", *settings, "SGE_ND=1", "/usr/sbin/sge_qmaster")

    def stop_master(self) -> None:
        """Kill sge_qmaster."""
        if self._master and self._master.poll() is None:
            os.kill(child(self._master.pid), signal.SIGKILL)
            self._master.wait()

    def call(self, *command: str) -> str:
        """Run a command of Grid Engine and return its standard output.

        Raises:
            CalledProcessError: the command fails.
        """
        return self.cluster.call(*command)

    def wait_until_idle(self) -> None:
        """Wait until the queue has a working instance on every node."""

        def all_alive() -> bool:
            lines = [line.split() for line in self._try("qstat", "-f").splitlines()]
            alive = [words[0] for words in lines if words and "@" in words[0] and len(words) == 5]
            return len(alive) == len(self.cluster.names)

        self._wait("queue", all_alive)

    def _try(self, *command: str) -> str:
        try:
            return self.call(*command)
        except subprocess.CalledProcessError:
            return ""

    def _wait(self, what: str, done: object, seconds: float = 60) -> None:
        assert callable(done)
        end = time.monotonic() + seconds
        while not done():
            if time.monotonic() > end:
                raise TimeoutError(f"Grid Engine: no {what} after {seconds} s")
            time.sleep(0.2)

    def _initialise(self) -> None:
        """Create a cell in the folder of the cluster, as the scripts of Debian do."""
        common, spool = self.root / "default/common", self.root / "spool"
        for folder in (common, spool / "qmaster/job_scripts", spool / "db"):
            folder.mkdir(parents=True, exist_ok=True)
        for name in ("bin", "lib", "util", "utilbin"):
            (self.root / name).symlink_to(DEBIAN / name)
        bootstrap = (DEFAULTS / "default-bootstrap").read_text()
        bootstrap = bootstrap.replace("/var/spool/gridengine/qmaster", f"{spool}/qmaster")
        bootstrap = bootstrap.replace("/var/spool/gridengine/spooldb", f"{spool}/db")
        (common / "bootstrap").write_text(bootstrap.replace("sgeadmin", "root"))
        (common / "act_qmaster").write_text(f"{HEAD}\n")
        configuration = (DEFAULTS / "default-configuration").read_text()
        configuration = configuration.replace("/var/spool/gridengine", "/run/sge")
        configuration = re.sub(
            r"(min_[ug]id\s+)\d+", r"\g<1>0", configuration
        )  # root may submit jobs
        (spool / "configuration").write_text(configuration)
        commands = [
            [str(HELPERS / "spoolinit"), "berkeleydb", "libspoolb", str(spool / "db"), "init"],
            [str(HELPERS / "spooldefaults"), "configuration", str(spool / "configuration")],
            [str(HELPERS / "spooldefaults"), "complexes", str(DEFAULTS / "util/resources/centry")],
            [str(HELPERS / "spooldefaults"), "usersets", str(DEFAULTS / "util/resources/usersets")],
            [str(HELPERS / "spooldefaults"), "managers", "root"],
        ]
        for command in commands:
            subprocess.run(
                self.cluster.inside(*command), check=True, env={**os.environ, **self._environment}
            )
        shutil.rmtree(spool / "none", ignore_errors=True)

    def _configure(self) -> None:
        """Add the host group, the queue and the parallel environment."""
        group = self.root / "group"
        group.write_text(f"group_name @allhosts\nhostlist {' '.join(self.cluster.names)}\n")
        self.call("qconf", "-Ahgrp", str(group))
        # qconf opens a text in $EDITOR; the editor here is a script that sets the values.
        pe = {"slots": "99999", "allocation_rule": "1", "control_slaves": "TRUE"}
        queue = {"pe_list": ENVIRONMENT, "slots": "1", "shell": "/bin/sh", "hostlist": "@allhosts"}
        queue["load_thresholds"] = "NONE"  # the load is that of the host
        schedule = {"schedule_interval": "0:0:1", "flush_submit_sec": "1", "flush_finish_sec": "1"}
        texts = ((["-msconf"], schedule), (["-ap", ENVIRONMENT], pe), (["-aq", QUEUE], queue))
        for arguments, values in texts:
            changes = " ".join(f"-e 's|^{key} .*|{key} {new}|'" for key, new in values.items())
            self._editor.write_text(f'#!/bin/sh\nsleep 1.1\nsed -i {changes} "$1"\n')
            self._editor.chmod(0o755)
            self.call("qconf", *arguments)
