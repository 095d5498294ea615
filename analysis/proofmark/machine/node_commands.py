"""Runs one command for each node, many at once, by ClusterShell's Task; scripts of one node.

ClusterShell's own workers run one text for all nodes and expand ``%h`` in it. Here each node has a
list of words that no shell reads, and the output is kept byte for byte. The command that runs a
POSIX shell script on a node is made by one function for every node and purpose.
"""

from __future__ import annotations

import logging
import os
import re
import shlex
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.resources import files
from typing import Any, NamedTuple

from ClusterShell.Defaults import Defaults
from ClusterShell.Engine.Engine import E_READ, E_WRITE
from ClusterShell.Event import EventHandler
from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet
from ClusterShell.Task import task_self
from ClusterShell.Worker.Exec import ExecClient, ExecWorker

from proofmark.common import nodesets
from proofmark.common.errors import Stopped
from proofmark.common.processes import StopSignals, call_line, run_command, trace, without_secrets
from proofmark.machine.outcome import NodeError, Outcome
from proofmark.machine.scheduler_commands import no_exit_code
from proofmark.site.access import HostAccess
from proofmark.site.inventory import Site


class NodeProcess(subprocess.CompletedProcess[str]):
    """The command of a node that has ended.

    Attributes:
        began, ended: the clock of the controller at its start and end, in seconds since 1970 UTC.
    """

    def __init__(
        self, words: Sequence[str], code: int, stdout: str, stderr: str, began: float
    ) -> None:
        super().__init__(words, code, stdout, stderr)
        self.began, self.ended = began, time.time()


Result = subprocess.CompletedProcess[str] | OSError | subprocess.TimeoutExpired
"""What a command printed and its exit code, or why there is no exit code."""
NodeResult = NodeProcess | OSError | subprocess.TimeoutExpired
"""The same of the command of a node, with its times."""
EXIT_POLL_S = (0.001, 0.05)
"""First and longest interval between two polls of a process that has closed its outputs."""

# ClusterShell warns of a command that ends before it has read its input; the exit code tells why.
logging.getLogger("ClusterShell").addHandler(logging.NullHandler())


def run_commands(
    commands: Mapping[str, Sequence[str]],
    text: str,
    *,
    timeout_s: float,
    at_once: int,
    signals: StopSignals,
) -> dict[str, NodeResult]:
    """Run the commands of all nodes; return the result of each, in the order of `commands`.

    Args:
        commands: the program and its arguments, by node.
        text: the standard input of each command.
        timeout_s: a command that runs longer is killed. The time of each begins with its start.
        at_once: the number of commands that run at one time.
        signals: the first signal kills all the commands.

    Raises:
        Stopped: a signal came.
    """
    # Neither the defaults of the user's ClusterShell nor its topology apply.
    task = task_self(defaults=Defaults([]))
    try:
        task.set_info("fanout", at_once)
        port = task.port(_Stop(), autoclose=True)
        worker = _Worker(commands, text, timeout_s)
        worker.write(text.encode(errors="surrogateescape"))
        worker.set_write_eof()
        task.schedule(worker)
        with signals.sent_to(port.msg_send):
            task.run()
    finally:
        task.abort(kill=True)
    return {node: worker.results[node] for node in commands}


class _Stop(EventHandler):
    """Ends the task: an exception in it kills all of its processes."""

    def ev_msg(self, port: object, msg: str) -> None:
        raise Stopped(msg)


class _Client(ExecClient, EventHandler):
    """The process of one node."""

    def __init__(self, node: str, *rest: Any) -> None:
        super().__init__(node, *rest)
        self._output: dict[str, list[bytes]] = {"stdout": [], "stderr": []}
        self._error: OSError | None = None

    @property
    def _words(self) -> Sequence[str]:
        words: Sequence[str] = self.worker.commands[self.key]
        return words

    def _build_cmd(self) -> tuple[Sequence[str], None]:
        """Return the words of the command: a list is started without a shell."""
        return self._words, None

    def _exec_nonblock(self, commandlist: Sequence[str], **_: object) -> _Process | _NotStarted:
        """Start the process as `run_command` does: ClusterShell's own start ignores SIGPIPE."""
        self._began, self._began_at = time.monotonic(), time.time()
        (stdin, feed), (stdout, out), (stderr, err) = [os.pipe() for _ in range(3)]
        process: _Process | _NotStarted
        try:
            process = _Process(
                commandlist,
                stdin=stdin,
                stdout=out,
                stderr=err,
                env=self.worker.environment,
                process_group=0,
            )
        except OSError as error:
            process, self._error = _NotStarted(), error
        finally:
            for end in (stdin, out, err):
                os.close(end)
        for end in (feed, stdout, stderr):
            os.set_blocking(end, False)
        self.streams.set_stream("stdin", feed, E_WRITE, retain=False)
        self.streams.set_stream("stdout", stdout, E_READ)
        self.streams.set_stream("stderr", stderr, E_READ)
        return process

    def _handle_read(self, name: str) -> None:
        """Keep the bytes: the lines of ClusterShell lose carriage returns and the last newline."""
        self._output[name].append(self._read(name))

    def _close_stream(self, name: str, abort: bool = False) -> None:
        """Close a stream, but the last output only when the process has ended.

        ClusterShell would wait for the process, and no time limit of another node would apply.
        """
        outputs = [each for each in ("stdout", "stderr") if each in self.streams]
        if outputs == [name] and not abort and self.popen.poll() is None:
            self._poll_exit(EXIT_POLL_S[0])
        else:
            super()._close_stream(name, abort)

    def _poll_exit(self, after_s: float) -> None:
        self._interval = min(after_s, EXIT_POLL_S[1])
        self.worker.task.timer(self._interval, handler=self)

    def ev_timer(self, timer: object) -> None:
        """Remove the client if its process has ended, or ask again later."""
        if not self.registered:
            return
        if self.popen.poll() is None:
            self._poll_exit(2 * self._interval)
        else:
            self._engine.remove(self)

    def _close(self, abort: bool, timeout: bool) -> None:
        """Store the result when the process has ended or was killed."""
        if abort:
            self.popen.kill()
        super()._close(abort, timeout)
        stdout, stderr = (b"".join(each).decode(errors="replace") for each in self._output.values())
        result: NodeResult
        if self._error:
            result, outcome = self._error, type(self._error).__name__
        elif timeout:
            result = subprocess.TimeoutExpired(self._words, self.worker.timeout_s)
            outcome = "TimeoutExpired"
        else:
            code = self.popen.returncode
            result = NodeProcess(self._words, code, stdout, stderr, self._began_at)
            outcome = "killed" if abort else f"exit code {code}"
        self.worker.results[self.key] = result
        line = call_line(self._words, self.worker.text, self.key)
        trace(line, outcome, time.monotonic() - self._began)


class _Process(subprocess.Popen[bytes]):
    """The leader of a process group."""

    def kill(self) -> None:
        """Kill the process and its children; it may have ended before them."""
        if self.returncode is None:
            with suppress(OSError):
                os.killpg(self.pid, signal.SIGKILL)


class _NotStarted:
    """Stands for a process that could not be started."""

    returncode = 127

    def poll(self) -> int:
        return self.returncode

    wait = poll
    kill = poll


class _Worker(ExecWorker):
    """One client for each node; no name of a node is parsed as a node set."""

    SHELL_CLASS = _Client

    def __init__(self, commands: Mapping[str, Sequence[str]], text: str, timeout_s: float) -> None:
        self.commands, self.text, self.timeout_s = commands, text, timeout_s
        self.environment = without_secrets()
        self.results: dict[str, NodeResult] = {}
        none = NodeSet(resolver=RESOLVER_NOGROUP)
        super().__init__(none, None, timeout=timeout_s, command="", stderr=True)

    def _create_clients(self, **options: Any) -> None:
        for node in self.commands:
            self._add_client(node, **options)


TIMEOUT_S = 30
"""The time limit of a connection of ssh in seconds, if Ansible has none."""
SUDO_WITH_PASSWORD = """\
IFS= read -r password
"$1" -n -u "$2" true 2>/dev/null && exec "$1" -n -u "$2" sh -s
printf '%s\\n' "$password" | "$1" -S -p '' -v || exit
{ printf '%s\\n' "$password"; exec cat; } | "$1" -k -S -p '' -u "$2" sh -s
"""
"""Reads the password from the first line of stdin, and runs the rest by sudo.

A password that sudo does not ask for would be the first command of the script. So it is used only
after sudo has refused to run without it, and a wrong one is used once.
"""
_VALUE = re.compile(r"\w[\w.:%@+\\-]*")


class NodeCommand(NamedTuple):
    """A command that runs ``sh -s`` on a node.

    Attributes:
        words: the program and its arguments.
        secret: text that its standard input must have before the script. It is never traced.
    """

    words: list[str]
    secret: str = ""


def node_command(site: Site, node: str) -> NodeCommand:
    """Return the command that runs ``sh -s`` on `node`, as Ansible would reach it.

    Raises:
        NodeError: the name of the node or one of its settings is not one word for ssh.
    """
    if site.ssh is None:
        check_name(node)
        return NodeCommand([word.replace("{node}", node) for word in site.remote_shell])
    return host_command(node, site.ssh.of(node), site.ssh.shell)


def host_command(node: str, host: HostAccess, shell: str = "sh -s") -> NodeCommand:
    """Return the command that runs ``sh -s`` on `node`, which is reached as `host` states.

    Args:
        host: how the node is reached.
        shell: the command on the node if `host` has no user to become.

    Raises:
        NodeError: the name of the node or one of its settings is not one word for ssh.
    """
    check_name(node)
    words, secret = _shell(host, shell)
    if host.local:
        return NodeCommand(words, secret)
    return NodeCommand([*_ssh(node, host), shlex.join(words)], secret)


def check_name(node: str) -> None:
    """Check that the name of a node is one word for ssh and for a shell.

    Raises:
        NodeError: it is not.
    """
    if not nodesets.is_name(node):
        raise _refused(node, f"this is no host name; accepted: {nodesets.ACCEPTED}")


def _shell(host: HostAccess, usual: str) -> tuple[list[str], str]:
    """Return the words that run ``sh -s`` on `host`, and the secret that stdin begins with."""
    if not host.become_user:
        return shlex.split(usual), ""
    password = host.password.get_secret_value()
    if password:
        words = ["sh", "-c", SUDO_WITH_PASSWORD, "sh", host.sudo, host.become_user]
        return words, f"{password}\n"
    user = [] if host.become_user == "root" else ["-u", host.become_user]
    return [host.sudo, "-n", *user, "sh", "-s"], ""


def _ssh(node: str, host: HostAccess) -> list[str]:
    for value in filter(None, (host.host_name, host.user, host.port)):
        if not _VALUE.fullmatch(value):
            accepted = "letters, digits and _.:%@+\\-, the first a letter or digit"
            raise _refused(node, f"{value!r} in its variables of ssh; accepted: {accepted}")
    settings = {
        "Port": host.port,
        "IdentityFile": host.identity_file and f'"{host.identity_file}"',
        "User": host.user,
        "ConnectTimeout": host.timeout_s or TIMEOUT_S,
        "ConnectionAttempts": host.attempts if host.attempts > 1 else "",
    }
    words = [host.program, "-o", "BatchMode=yes", *host.first_options]
    for key, given in settings.items():
        if given:
            words += ["-o", f"{key}={given}"]
    return [*words, *host.options, host.host_name or node]


def _refused(node: str, problem: str) -> NodeError:
    return NodeError(Outcome.UNREACHABLE, f"{node}: {problem}")


SSH_FAILED = 255
HOLDER = (files("proofmark.machine.modes") / "holder.sh").read_text(encoding="utf-8")
PROBE = (files("proofmark.machine.modes") / "mode-probe.sh").read_text(encoding="utf-8")


class RemoteShell:
    """Runs scripts on the nodes of a site, one at a time."""

    def __init__(self, site: Site, timeout_s: float) -> None:
        self._site, self._timeout_s = site, timeout_s

    def __call__(self, node: str, script: str, arguments: tuple[str, ...] = ()) -> str:
        """Run `script` on `node` and return what it prints.

        Raises:
            NodeError: the node is not reached or gives no answer in time, or the exit code is
                not 0.
        """
        # In the script and not on the command line, whose quotes ssh would lose.
        given = f"set -- {shlex.join(arguments)}\n{script}" if arguments else script
        return run_script(node, node_command(self._site, node), given, self._timeout_s)


def run_script(node: str, command: NodeCommand, script: str, timeout_s: float) -> str:
    """Run `script` by the `command` of `node` and return what it prints.

    Raises:
        NodeError: as of `RemoteShell`.
    """
    result: Result
    try:
        result = run_command(command.words, text=command.secret + script, timeout_s=timeout_s)
    except (OSError, subprocess.TimeoutExpired) as error:
        result = error
    return node_output(node, command.words[0], result)


def node_output(node: str, program: str, result: Result) -> str:
    """Return what the command of `node` printed.

    Raises:
        NodeError: it did not start, gave no answer in time, or its exit code is not 0.
    """
    if not isinstance(result, subprocess.CompletedProcess):
        raise no_exit_code(program, result, node)
    if result.returncode:
        lines = result.stderr.strip().splitlines()[-2:]
        unreachable = result.returncode == SSH_FAILED
        raise NodeError(
            Outcome.UNREACHABLE if unreachable else Outcome.UNEXPECTED,
            f"{node}: {' / '.join(lines) or f'code {result.returncode}'}",
        )
    return result.stdout
