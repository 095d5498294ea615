"""Slurm on a virtual cluster: slurmctld on the head, slurmd on every node, no munge."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from typing import Self

from tests.emulators.vcluster.cluster import HEAD, Cluster, child
from tests.emulators.vcluster.fabric import HEAD_ADDRESS

COMMANDS = ("sbatch", "squeue", "scancel", "scontrol", "sinfo", "srun", "salloc")
KNL = {
    "CPUs": 272,
    "Boards": 1,
    "SocketsPerBoard": 1,
    "CoresPerSocket": 68,
    "ThreadsPerCore": 4,
    "RealMemory": 98304,
}
"""The hardware that the nodes report, independent of the host (`config_overrides`)."""


class Slurm:
    """Slurm on `cluster` within this context, with one partition of all nodes.

    Args:
        cluster: a cluster that has been entered.
        partition: the name of the partition.
        hardware: the parameters of ``NodeName=`` that describe a node.
        settings: further parameters of slurm.conf; they override the defaults.
        lines: further lines of slurm.conf, after the partition.
        programs: further programs of Slurm that become commands of the cluster.
    """

    def __init__(
        self,
        cluster: Cluster,
        *,
        partition: str = "knl",
        hardware: Mapping[str, object] = KNL,
        settings: Mapping[str, object] | None = None,
        lines: Sequence[str] = (),
        programs: Sequence[str] = (),
    ) -> None:
        self.cluster = cluster
        self.folder = cluster.folder / "slurm"
        self.configuration = self.folder / "slurm.conf"
        self._controller: subprocess.Popen[bytes] | None = None
        self._partition, self._hardware = partition, hardware
        self._settings, self._lines = settings or {}, lines
        self._programs = programs

    def __enter__(self) -> Self:
        """Start the daemons; return when all nodes are idle.

        Raises:
            TimeoutError: the nodes are not idle after a minute.
        """
        (self.folder / "state").mkdir(parents=True, exist_ok=True)
        self.configuration.write_text(self._text())
        for name in COMMANDS:
            self.cluster.command(name, SLURM_CONF=str(self.configuration))
        for program in self._programs:
            self.cluster.command(program, SLURM_CONF=str(self.configuration))
        self.start_controller()
        configuration = f"SLURM_CONF={shlex.quote(str(self.configuration))}"
        self.cluster.service("slurm", f'{configuration} /usr/sbin/slurmd -D -N "$NODE"')
        self.wait_until_idle()
        return self

    def __exit__(self, *_: object) -> None:
        """Kill slurmctld; the other daemons end with the cluster."""
        self.stop_controller()

    def start_controller(self) -> None:
        """Start slurmctld with the saved state."""
        self._controller = self.cluster.daemon(
            "/usr/sbin/slurmctld", "-D", "-f", str(self.configuration)
        )

    def stop_controller(self, number: signal.Signals = signal.SIGKILL) -> None:
        """Kill slurmctld."""
        if self._controller and self._controller.poll() is None:
            self.signal_controller(number)
            self._controller.wait()

    def signal_controller(self, number: signal.Signals) -> None:
        """Send a signal to slurmctld; after SIGSTOP it does not answer."""
        assert self._controller
        os.kill(child(self._controller.pid), number)
        if number == signal.SIGCONT:  # nsenter stops itself when its child is stopped
            self._controller.send_signal(number)

    def call(self, *command: str) -> str:
        """Run a command of Slurm and return its standard output.

        Raises:
            CalledProcessError: the command fails.
        """
        return self.cluster.call(*command)

    def states(self) -> dict[str, str]:
        """Return the state of each node by sinfo; empty if slurmctld does not answer."""
        try:
            lines = self.call("sinfo", "--noheader", "--Node", "--format=%N %t").splitlines()
        except subprocess.CalledProcessError:
            return {}
        return dict(line.split() for line in lines)

    def wait_until_idle(self, seconds: float = 60) -> None:
        """Wait until all nodes are idle.

        Raises:
            TimeoutError: the nodes are not idle after `seconds`.
        """
        end = time.monotonic() + seconds
        while (states := self.states()) != dict.fromkeys(self.cluster.names, "idle"):
            if time.monotonic() > end:
                raise TimeoutError(f"Slurm's nodes after {seconds} s: {states}")
            time.sleep(0.1)

    def _text(self) -> str:
        """Return slurm.conf; its values were found by experiment with Slurm 22.05."""
        values = {
            "ClusterName": "virtual",
            "SlurmctldHost": f"{HEAD}({HEAD_ADDRESS})",
            "SlurmUser": "root",
            "SlurmdUser": "root",
            "AuthType": "auth/none",
            "CredType": "cred/none",
            "MpiDefault": "none",
            "ProctrackType": "proctrack/linuxproc",
            "TaskPlugin": "task/none",
            "SelectType": "select/cons_tres",
            "SelectTypeParameters": "CR_Core",
            "StateSaveLocation": self.folder / "state",
            "SlurmdSpoolDir": "/run/slurm",  # the path of a socket must be short
            "SlurmctldPidFile": self.folder / "slurmctld.pid",
            "SlurmdPidFile": "/run/slurmd.pid",
            "SlurmctldLogFile": self.cluster.folder / "log/slurmctld.log",
            "SlurmdLogFile": self.cluster.folder / "log/slurmd.%n.log",
            "SlurmdParameters": "config_overrides",
            "ReturnToService": 2,
            "SlurmctldTimeout": 30,
            # A node without power is DOWN after this. On a loaded machine slurmd of a node in
            # service needs more than 5 s for its answer.
            "SlurmdTimeout": 20,
            "KillWait": 5,
            "SchedulerParameters": "sched_interval=2,bf_interval=2,sched_min_interval=50000",
            "MessageTimeout": 10,
            "JobAcctGatherType": "jobacct_gather/none",
            "AccountingStorageType": "accounting_storage/none",
            "JobCompType": "jobcomp/filetxt",
            "JobCompLoc": self.folder / "jobcomp",
            **self._settings,
        }
        lines = [f'{key}="{value}"' for key, value in values.items()]  # a path may contain spaces
        hardware = " ".join(f"{key}={value}" for key, value in self._hardware.items())
        for name in self.cluster.names:
            address = self.cluster.address(name)
            lines.append(f"NodeName={name} NodeAddr={address} {hardware} State=UNKNOWN")
        lines.append(
            f"PartitionName={self._partition} Nodes=ALL Default=YES MaxTime=INFINITE State=UP "
            "OverSubscribe=EXCLUSIVE"
        )
        lines.extend(self._lines)
        return "\n".join(lines) + "\n"
