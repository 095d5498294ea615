"""A cluster in namespaces: each node has its network, host name, /tmp and sshd.

All processes are below one process, the head, in a PID namespace. If the head ends, or this process
is killed, all of them end. No namespace has a name, so that no namespace can remain.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from tests.emulators.vcluster.fabric import HEAD_ADDRESS, SHAPE, Switches, loss
from tests.folders import ROOT

HERE = Path(__file__).parent
HEAD = "head"
KEX = "curve25519-sha256"
"""The key exchange of the servers of tests: the default takes 0.07 s of CPU for each connection."""
SAFE_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Cluster:
    """Virtual nodes ``<prefix>0001`` … behind `switches`; a context manager, for root only.

    Attributes:
        folder: the files of the cluster. Every node sees this folder, this checkout, the running
            Python and all paths of `shared`. The rest of the file system is that of the host,
            except /tmp, /dev/shm and /run.
        key: the private key with which root logs in to every node and server.
        bin: commands that run in the network of the cluster, for the first entry of ``PATH``.
        session: environment variables of a login to a node.
        servers: the names of machines that are booted like the nodes and are not among `names`.
        switches: the bridges between them.
    """

    def __init__(
        self,
        folder: Path,
        nodes: int = 4,
        *,
        prefix: str = "knl",
        shared: Iterable[Path] = (),
        session: Mapping[str, str] | None = None,
        servers: Sequence[str] = (),
        switches: Switches | None = None,
    ) -> None:
        self.folder = folder.resolve()
        self.bin = self.folder / "bin"
        self.key = self.folder / "key"
        self.names = node_names(prefix, nodes)
        self.servers = list(servers)
        self.switches = switches or Switches()
        self.session = session or {}
        python = (Path(sys.prefix), Path(sys.base_prefix))
        self._shared = names_of(self.folder, ROOT, *python, *shared)
        self._head: subprocess.Popen[bytes] | None = None
        self._nodes: dict[str, subprocess.Popen[str]] = {}
        self._shapes: dict[str, list[str]] = {}
        self._daemons: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        """Start all nodes.

        Raises:
            CalledProcessError: a node does not boot; ``log/`` contains the reason.
        """
        try:
            self._write_files()
            self._head = _start_head(self.folder / "hosts")
            count = len(self.names)
            self._batch("ip", ["link set lo up", *self.switches.links(count)])
            self._batch("tc", self.switches.shapes(count))
            addresses = [self.hardware_address(name) for name in [*self.names, *self.servers]]
            self._batch("bridge", self.switches.routes(addresses[:count], addresses[count:]))
            for name in ("ssh", "scp", "sftp"):
                self.command(name, "-F", str(self.folder / "ssh_config"))
            self.boot(*self.names, *self.servers)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """End every process of the cluster."""
        if self._head:
            self._head.kill()
            self._head.wait()
        for node in self._nodes.values():
            _wait_for_end(node)
        self._nodes.clear()
        for daemon in self._daemons:  # ended with the head; its nsenter may be stopped
            daemon.kill()
            daemon.wait()
        self._daemons.clear()

    @property
    def head(self) -> int:
        """The process id of the head, which has the network of the cluster."""
        assert self._head, "not started"
        return child(self._head.pid)

    def address(self, name: str) -> str:
        """Return the address of a node or server."""
        number = self._number(name) + 1
        return f"10.77.{number // 256}.{number % 256}"

    def hardware_address(self, name: str) -> str:
        """Return the hardware address of a node or server: the same at each boot."""
        number = self._number(name)
        return f"02:77:00:00:{number // 256:02x}:{number % 256:02x}"

    def _number(self, name: str) -> int:
        return [*self.names, *self.servers].index(name) + 1

    def inside(self, *command: str) -> list[str]:
        """Return `command` with a prefix that runs it in the network of the cluster."""
        return ["nsenter", f"--target={self.head}", "--net", "--", *command]

    def on(self, name: str, *command: str) -> str:
        """Run `command` on the node `name` and return its standard output.

        Raises:
            CalledProcessError: the command fails.
        """
        done = subprocess.run(
            [*self._enter(name), *command],
            check=True,
            capture_output=True,
            text=True,
            env=clean_environment(),
        )
        return done.stdout

    def _enter(self, name: str) -> list[str]:
        namespaces = ("--mount", "--uts", "--ipc", "--net", "--pid")
        return ["nsenter", f"--target={self.pid(name)}", *namespaces, "--"]

    def pid(self, name: str) -> int:
        """Return the process id, on the host, of the first process of a node."""
        return child(child(self._nodes[name].pid))

    def boot(self, *names: str) -> None:
        """Start nodes that do not run; they run the scripts of ``boot.d``."""
        for name in names:
            self._nodes[name] = _start(
                self.folder / "log" / f"boot.{name}",
                *("nsenter", f"--target={self.head}", "--pid", "--mount", "--net", "--"),
                *("unshare", "--net", "--uts", "--ipc", "--mount", "--pid"),
                *("--fork", "--mount-proc", "--"),
                *("sh", str(HERE / "node.sh"), str(self.folder), name, *self._shared),
            )
        for name in names:
            self._await(name, "up")
        links = []
        for name in names:
            # The same hardware address at each boot: the other nodes cache it.
            interface = f"eth0 address {self.hardware_address(name)}"
            server = name in self.servers
            switch = self.switches
            bridge = switch.of_server() if server else switch.of_node(self._number(name) - 1)
            link = f"ve{self._number(name)}"
            links += [f"link add {link} type veth peer name {interface} netns {self.pid(name)}"]
            links += [f"link set {link} master {bridge} up"]
        self._batch("ip", links)
        self._batch("tc", [line for name in names for line in self._shapes.get(name, ())])
        for name in names:
            stdin = self._nodes[name].stdin
            assert stdin
            stdin.write("go\n")
            stdin.close()
        for name in names:
            self._await(name, "ready")

    def _await(self, name: str, word: str) -> None:
        stdout = self._nodes[name].stdout
        assert stdout
        if stdout.readline() != f"{word}\n":
            raise subprocess.CalledProcessError(1, ["node.sh", name])

    def kill(self, *names: str) -> None:
        """Switch nodes off: each of their processes is killed, and their network ends."""
        for name in names:
            os.kill(self.pid(name), signal.SIGKILL)
            _wait_for_end(self._nodes.pop(name))
            link = f"ve{self._number(name)}"
            delete = self.inside("ip", "link", "del", link)
            subprocess.run(delete, check=False, stderr=subprocess.DEVNULL)

    def limit(self, name: str, rate: str) -> None:
        """Limit the speed of what the switch sends to a node or server; `rate` is a word of tc."""
        self._shape(name, f"qdisc replace dev {{port}} {SHAPE.format(rate=rate)}")

    def lose(self, name: str, share: float) -> None:
        """Let the link of a node or server lose this share of the packets in each direction."""
        self._shape(name, *loss(share))

    def _shape(self, name: str, *lines: str) -> None:
        of_port = [line.format(port=f"ve{self._number(name)}") for line in lines]
        self._shapes.setdefault(name, []).extend(of_port)
        self._batch("tc", of_port)

    def daemon(self, *command: str) -> subprocess.Popen[bytes]:
        """Start `command` on the head; it ends with the cluster."""
        name = Path(command[0]).name
        enter = ["nsenter", f"--target={self.head}", "--net", "--uts", "--pid", "--mount", "--"]
        with (self.folder / "log" / name).open("ab") as log:
            process = subprocess.Popen(
                [*enter, *command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=clean_environment(),
                start_new_session=True,
            )
        self._daemons.append(process)
        return process

    def service(self, name: str, command: str) -> None:
        """Start the shell command `command` on every node, now and at each boot; on no server.

        ``$NODE`` is the name of the node. The output goes to ``log/<name>.<node>``.
        """
        script = self.folder / "boot.d" / f"{name}.sh"
        log = self.folder / "log" / name
        script.write_text(f'{command} >>"{log}.$NODE" 2>&1 </dev/null &\n')
        with ExitStack() as starts:  # its end waits for each start
            for node in self._nodes.keys() - set(self.servers):
                start = [*self._enter(node), "env", f"NODE={node}", "sh", str(script)]
                starts.enter_context(subprocess.Popen(start, env=clean_environment()))

    def start(self, name: str, *command: str) -> None:
        """Start `command` on the node `name`; it ends with the node. ``log/`` has its output."""
        log = self.folder / "log" / f"{Path(command[-1]).name}.{name}"
        with log.open("ab") as output:
            process = subprocess.Popen(
                [*self._enter(name), *command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=clean_environment(),
                start_new_session=True,
            )
        self._daemons.append(process)

    def command(self, name: str, *arguments: str, **environment: str) -> None:
        """Write a command into `bin` that runs a program of the host on the head.

        `name` is the name of the program, or its path.
        """
        program = shutil.which(name, path=SAFE_PATH)
        assert program, f"{name} is not installed"
        words = [*(f"{key}={value}" for key, value in environment.items()), program, *arguments]
        script = self.bin / Path(name).name
        enter = f'nsenter --target={self.head} --net --uts --mount --wd="$PWD" --'
        # A job on a node, or on the head by salloc, inherits this PATH: it needs no nsenter.
        run = f'exec {shlex.join(["env", *words])} "$@"\n'
        script.write_text(
            f'#!/bin/sh\nif [ -e /run/virtual-node ] || [ "$(uname -n)" = {HEAD} ]; then\n'
            f"\t{run}fi\n{run.replace('exec', f'exec {enter}', 1)}"
        )
        script.chmod(0o755)

    def call(self, *command: str) -> str:
        """Run one of the commands in `bin` and return its standard output.

        Raises:
            CalledProcessError: the command fails.
        """
        done = subprocess.run(
            [str(self.bin / command[0]), *command[1:]],
            check=True,
            capture_output=True,
            text=True,
            timeout=600,
        )
        return done.stdout

    def environment(self) -> dict[str, str]:
        """Return the environment of this process with `bin` as the first entry of ``PATH``."""
        return {**os.environ, "PATH": f"{self.bin}:{os.environ['PATH']}"}

    def _batch(self, program: str, lines: Iterable[str]) -> None:
        """Run `lines` by ``ip``, ``tc`` or ``bridge`` in the network of the cluster."""
        if batch := "".join(f"{line}\n" for line in lines):
            command = self.inside(program, "-batch", "-")
            subprocess.run(command, input=batch, text=True, check=True)

    def _write_files(self) -> None:
        for name in ("bin", "log", "boot.d", "own"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        key, hosts = self.key, ["127.0.0.1 localhost", f"{HEAD_ADDRESS} {HEAD}"]
        machines = [*self.names, *self.servers]
        hosts += [f"{self.address(machine)} {machine}" for machine in machines]
        (self.folder / "hosts").write_text("\n".join(hosts) + "\n")
        if not key.exists():
            make = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)]
            subprocess.run(make, check=True)
        public = key.with_suffix(".pub").read_text()
        (self.folder / "known_hosts").write_text(f"* {public}")
        sshd = {
            "HostKey": key,
            "PidFile": "none",
            "AuthorizedKeysFile": key.with_suffix(".pub"),
            "StrictModes": "no",
            "PermitRootLogin": "yes",
            "PasswordAuthentication": "no",
            "UsePAM": "no",
            "UseDNS": "no",
            "KexAlgorithms": KEX,
            "Subsystem": "sftp internal-sftp",
        }
        if self.session:
            sshd["SetEnv"] = " ".join(f'"{name}={value}"' for name, value in self.session.items())
        ssh = {
            "IdentityFile": key,
            "IdentitiesOnly": "yes",
            "UserKnownHostsFile": self.folder / "known_hosts",
            "GlobalKnownHostsFile": "/dev/null",
            "BatchMode": "yes",
        }
        (self.folder / "sshd_config").write_text(_settings(sshd))
        # The host cannot resolve the names of the nodes; this file contains their addresses.
        nodes = [f"Host {machine}\n  HostName {self.address(machine)}\n" for machine in machines]
        (self.folder / "ssh_config").write_text("".join(nodes) + "Host *\n" + _settings(ssh))


def clean_environment() -> dict[str, str]:
    """Return the environment of a daemon, without variables of the test."""
    return {"PATH": SAFE_PATH, "LC_ALL": "C.UTF-8"}


def node_names(prefix: str, count: int) -> list[str]:
    """Return the names of `count` virtual nodes."""
    return [f"{prefix}{number:04d}" for number in range(1, count + 1)]


def names_of(*paths: Path) -> list[str]:
    """Return `paths` as given and with symbolic links resolved; a folder before its content."""
    return sorted({f"{name}" for path in paths for name in (path.absolute(), path.resolve())})


def _settings(values: Mapping[str, object]) -> str:
    """Return lines of sshd_config or ssh_config; a path is quoted."""
    quoted = {
        key: f'"{value}"' if isinstance(value, Path) else value for key, value in values.items()
    }
    return "".join(f"{key} {value}\n" for key, value in quoted.items())


def _start_head(hosts: Path) -> subprocess.Popen[bytes]:
    """Start the head: it keeps the namespaces open and ends with this process."""
    unshare = ["unshare", "--net", "--uts", "--pid", "--mount", "--fork", "--mount-proc"]
    setup = f"hostname {HEAD}; mount --bind {shlex.quote(str(hosts))} /etc/hosts; echo up"
    script = f"{setup}; while :; do sleep 3600 & wait; done"
    process = subprocess.Popen(
        ["setpriv", "--pdeathsig=KILL", *unshare, "--kill-child=KILL", "sh", "-c", script],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        start_new_session=True,
        env=clean_environment(),
    )
    assert process.stdout
    with process.stdout:
        up = process.stdout.readline() == b"up\n"
    if not up:
        process.kill()
        raise subprocess.CalledProcessError(process.wait(), unshare)
    return process


def _start(log: Path, *command: str) -> subprocess.Popen[str]:
    with log.open("ab") as messages:
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=messages,
            text=True,
            start_new_session=True,
            env=clean_environment(),
        )


def _wait_for_end(node: subprocess.Popen[str]) -> None:
    for pipe in (node.stdin, node.stdout):
        if pipe and not pipe.closed:
            pipe.close()
    node.wait()


def child(process: int) -> int:
    """Return the process id of the first child of `process`."""
    (first, *_) = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return int(first)
