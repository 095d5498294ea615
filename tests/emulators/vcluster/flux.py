"""Flux on a virtual cluster: a broker on every node, with one key over TCP."""

from __future__ import annotations

import json
import shlex
import subprocess
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

from tests.emulators.vcluster.cluster import Cluster


class Flux:
    """A Flux instance of root on `cluster` within this context; the first node has its rank 0.

    Args:
        cluster: a cluster that has been entered.
        prefix: the folder in which flux-core is installed.
        cores: the cores that Flux counts on each node, whatever the host has.
    """

    def __init__(self, cluster: Cluster, prefix: Path, *, cores: int) -> None:
        self.cluster, self.program, self._cores = cluster, prefix / "bin/flux", cores
        # The path of a socket must be short, and all nodes must see it.
        self._home = TemporaryDirectory(prefix="proofmark-flux-", dir="/srv")
        self.home = Path(self._home.name)
        self.uri = f"local://{self.home}/socket"

    def __enter__(self) -> Self:
        """Start the brokers; return when all nodes are free.

        Raises:
            TimeoutError: a node is not free after a minute.
        """
        hosts = self.cluster.names
        subprocess.run(
            [str(self.program), "keygen", "--name=virtual", str(self.home / "key")], check=True
        )
        encode = [str(self.program), "R", "encode", f"--ranks=0-{len(hosts) - 1}"]
        encode += [f"--cores=0-{self._cores - 1}", f"--hosts={','.join(hosts)}"]
        (self.home / "R").write_bytes(
            subprocess.run(encode, check=True, capture_output=True).stdout
        )
        listed = ", ".join(f"{{ host = {json.dumps(host)} }}" for host in hosts)
        (self.home / "flux.toml").write_text(
            f'[resource]\npath = "{self.home}/R"\nnoverify = true\n'
            f'[bootstrap]\ncurve_cert = "{self.home}/key"\ndefault_port = 8050\n'
            'default_bind = "tcp://eth0:%p"\ndefault_connect = "tcp://%h:%p"\n'
            f"hosts = [{listed}]\n"
        )
        script = self.cluster.bin / "flux"
        script.write_text(
            # A job has an instance of its own, and its address.
            f"#!/bin/sh\nFLUX_URI=${{FLUX_URI-{self.uri}}}\nexport FLUX_URI\n"
            f'exec {shlex.quote(str(self.program))} "$@"\n'
        )
        script.chmod(0o755)
        first = f"local-uri={self.uri}"
        self.cluster.service(
            "flux",
            f"{{ home={self.home}/$NODE; mkdir -p $home/state $home/run; export HOME=$home;"
            f" [ $NODE != {hosts[0]} ] || set -- -S{first};"
            f" exec {shlex.quote(str(self.program))} broker --config-path={self.home}"
            ' -Sbroker.rc2_none=1 -Sstatedir=$home/state "$@"; }',
        )
        self._wait_until_free()
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the files; the brokers end with the cluster."""
        self._home.cleanup()

    def call(self, *command: str) -> str:
        """Run a command of Flux and return its standard output.

        Raises:
            CalledProcessError: the command fails.
        """
        return self.cluster.call(*command)

    def _wait_until_free(self) -> None:
        end = time.monotonic() + 60
        while self._free() != len(self.cluster.names):
            if time.monotonic() > end:
                raise TimeoutError(f"Flux's free nodes after 60 s: {self._free()}")
            time.sleep(0.3)

    def _free(self) -> int:
        try:
            words = ("--states=free", "--no-header", "--format={nnodes}")
            return int(self.call("flux", "resource", "list", *words) or 0)
        except subprocess.CalledProcessError:
            return 0
