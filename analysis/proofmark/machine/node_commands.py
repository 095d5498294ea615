"""Runs one command for each node, many at once, by ClusterShell's Task.

ClusterShell's own workers run one text for all nodes and expand ``%h`` in it. Here each node has a
list of words that no shell reads, and the output is kept byte for byte.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from ClusterShell.Defaults import Defaults
from ClusterShell.Engine.Engine import E_READ, E_WRITE
from ClusterShell.Event import EventHandler
from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet
from ClusterShell.Task import task_self
from ClusterShell.Worker.Exec import ExecClient, ExecWorker

from proofmark.common.child_environment import without_secrets
from proofmark.common.errors import Stopped
from proofmark.common.processes import call_line, trace
from proofmark.common.signals import StopSignals


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
