"""Runs the command ``proofmark`` on the controller; `plugins/modules/cli.py` documents it."""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import io
import json
import os
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from ansible import constants
from ansible.errors import AnsibleActionFail, AnsibleActionSkip
from ansible.plugins.action import ActionBase
from ansible.utils.path import cleanup_tmp_file

ERROR_MARK = "proofmark: "
"""Starts a line of stderr that is an error; all other lines are progress."""
GRACE_S = 150
"""A stopped command first ends its job and then waits for that end; each takes at most 60 s."""
POLL_S = 0.2
FAILED_NODES = "proofmark_failed_nodes"
"""The fact with the nodes that commands left out, each with its reason."""
KIT = Path(__file__).resolve().parents[2]
"""The checkout or collection with this file; the command uses its cases and environments."""
ONE_BY_ONE = ("linear", "debug")
"""The strategies that run a task with ``run_once`` only once."""
INTERNAL_ERROR = 70
"""Exit code of a command that an error of the kit ended. No task accepts it."""

# Ansible leaves it to the system to write its lines, so that a pipe or a file (tee, CI, nohup) gets
# the progress of a long command at its end. Ansible imports this file before it starts a worker.
if isinstance(sys.stdout, io.TextIOWrapper):
    sys.stdout.reconfigure(line_buffering=True)

CONTINUES = "stopped by Ctrl-C; the same command continues, for a gate with -e run_id=GATE"


def _before_ansible(number: int, action: Callable[[], Any]) -> None:
    """Call `action` at a signal, before the handler that Ansible has set by now."""
    of_ansible = signal.getsignal(number)
    if not callable(of_ansible):
        return

    def handle(received: int, frame: Any, after: Callable[[int, Any], Any] = of_ansible) -> None:
        action()
        after(received, frame)

    signal.signal(number, handle)


if threading.current_thread() is threading.main_thread():
    # Below the last line of Ansible.
    say = functools.partial(print, ERROR_MARK + CONTINUES, file=sys.stderr)
    _before_ansible(signal.SIGINT, functools.partial(atexit.register, say))
    # Ansible's handler of SIGTERM ends the process at once, and its temporary folder would stay.
    remove = functools.partial(cleanup_tmp_file, constants.DEFAULT_LOCAL_TMP)
    _before_ansible(signal.SIGTERM, remove)


class ActionModule(ActionBase):  # type: ignore[misc]  # Ansible ships no types
    """The action plug-in of `proofmark.kit.cli`."""

    TRANSFERS_FILES = False
    _requires_connection = False
    _supports_check_mode = True

    def run(
        self, tmp: str | None = None, task_vars: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Run the command, display its progress while it runs, and return its result."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        _, options = self.validate_argument_spec(
            argument_spec={
                "argv": {"type": "list", "elements": "str", "required": True},
                "options": {"type": "dict", "default": {}},
                "json": {"type": "bool", "default": False},
                "shown": {"type": "bool", "default": False},
                "writes": {"type": "list", "elements": "str", "default": []},
                "ok_codes": {"type": "list", "elements": "int", "default": [0]},
                "stdin": {"type": "str", "default": ""},
                "groups": {"type": "bool", "default": False},
                "beside": {"type": "list", "elements": "str", "default": []},
                "beside_options": {"type": "dict", "default": {}},
                "beside_stdin": {"type": "str", "default": ""},
            }
        )
        self._refuse_each_host()
        argv, writes = options["argv"] + _option_words(options["options"]), options["writes"]
        command_line = " ".join(["proofmark", *argv])
        flags = ["-v"] if self._display.verbosity else []
        if writes and self._task.check_mode:
            self._show(f"would run: {command_line}")
            raise AnsibleActionSkip(command_line)
        before = _contents(writes)
        with contextlib.ExitStack() as ends:
            stdout, failures = (ends.enter_context(tempfile.TemporaryFile()) for _ in range(2))
            words = [*flags, f"--failed-nodes-fd={failures.fileno()}", *argv]
            handed: list[IO[bytes]] = [failures]
            if options["groups"]:
                groups = ends.enter_context(_in_memory(self._groups(task_vars or {})))
                words.append(f"--groups-fd={groups.fileno()}")
                handed.append(groups)
            if options["beside"]:
                beside = options["beside"] + _option_words(options["beside_options"])
                groups = ends.enter_context(_in_memory(self._groups(task_vars or {})))
                second = (beside, options["beside_stdin"], groups)
                ends.enter_context(_running_beside(*second, self._show, self._display.warning))
            child = _Child(words, stdout, options["stdin"], handed)
            code, errors = child.wait(self._show)
            text, nodes = _text(stdout), _text(failures)
        for line in text.splitlines() if options["shown"] else ():
            self._show(line)
        # Without the key `failed`, Ansible treats any rc except 0 as a failure.
        failed = code not in options["ok_codes"]
        result |= {
            "changed": _contents(writes) != before,
            "cmd": command_line,
            "rc": code,
            "failed": failed,
            "failed_nodes": _of_inventory(nodes, task_vars or {}),
        }
        if code == INTERNAL_ERROR:
            problem = "; ".join(errors) or "no message"
            found = (
                f"{command_line}: an error of the kit, not of the input or the machine: {problem}"
            )
            return result | {"failed": True, "msg": found}
        if failed:
            return result | {"msg": "\n".join(errors) or f"{command_line}: exit code {code}"}
        for line in errors:
            self._display.warning(line)
        if result["failed_nodes"]:  # the command left them out; a later stage marks them
            earlier = (task_vars or {}).get("ansible_facts", {}).get(FAILED_NODES, {})
            result["ansible_facts"] = {FAILED_NODES: {**earlier, **result["failed_nodes"]}}
        if options["json"]:
            parsed = _parse(text, command_line)
            if isinstance(parsed, dict) and "changed" in parsed:
                result["changed"] = bool(parsed["changed"])
            return result | {"json": parsed}
        return result | {"stdout": text}

    def _refuse_each_host(self) -> None:
        """Refuse a strategy that ignores ``run_once`` of the task, and calls it for each host."""
        strategy = self._task.get_play().strategy
        if self._task.run_once and strategy.removeprefix("ansible.builtin.") not in ONE_BY_ONE:
            found = f"strategy: found {strategy} (DEFAULT_STRATEGY of ansible.cfg, or of the play)"
            accepted = f"{', '.join(ONE_BY_ONE)}, because one command acts on all hosts"
            raise AnsibleActionFail(f"{found}; accepted: {accepted}")

    def _groups(self, task_vars: Mapping[str, Any]) -> bytes:
        """Return the partitions of the inventory as this play resolves them, as JSON."""
        from proofmark.api import RESOLVED, BadInput, keywords_of, resolved_groups

        hostvars = task_vars["hostvars"]
        keywords = keywords_of(self._task, self._play_context)
        try:
            groups = resolved_groups(
                hostvars._inventory, hostvars._variable_manager, self._loader, keywords
            )
        except BadInput as error:
            raise AnsibleActionFail(str(error)) from None
        return RESOLVED.dump_json(groups)

    def _show(self, line: str) -> None:
        self._display.display(f"    {line}")


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")


def _of_inventory(nodes: str, task_vars: Mapping[str, Any]) -> dict[str, str]:
    """Return the reason of each failed node that is a host of the inventory.

    Args:
        nodes: what the command wrote to ``--failed-nodes-fd``; empty if it was killed.
        task_vars: the variables of the task.
    """
    hosts = set(task_vars.get("groups", {}).get("all", ()))
    reasons: dict[str, str] = json.loads(nodes or "{}")
    return {node: reason for node, reason in reasons.items() if node in hosts}


def _option_words(options: Mapping[str, Any]) -> list[str]:
    """Return `options` as words of a command line; an empty or false option gives no word."""
    words: list[str] = []
    for name, value in options.items():
        if value is True:
            words.append(f"--{name}")
        elif value:
            values = value if isinstance(value, list) else [value]
            words += [f"--{name}={item}" for item in values]
    return words


def _parse(text: str, command_line: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise AnsibleActionFail(f"{command_line}: found no JSON on stdout ({error})") from None


def _contents(patterns: Sequence[str]) -> dict[str, str]:
    """Return the SHA-256 of every file that the absolute `patterns` match."""
    found: dict[str, str] = {}
    for pattern in patterns:
        paths = Path("/").glob(pattern.lstrip("/"))
        found |= {f"{path}": digest for path in paths if (digest := _digest(path))}
    return found


def _digest(path: Path) -> str:
    """Return the SHA-256 of a regular file; empty for a link or another kind of file."""
    try:
        number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return ""
    with os.fdopen(number, "rb") as file:
        regular = stat.S_ISREG(os.fstat(number).st_mode)
        return hashlib.file_digest(file, "sha256").hexdigest() if regular else ""


class _Child:
    """The command as a child process that ends when this process ends.

    A worker of Ansible passes a signal on and exits at once. The command would still be ending its
    job then. This worker therefore waits until the command has ended.
    """

    def __init__(
        self,
        argv: Sequence[str],
        stdout: IO[bytes],
        text: str = "",
        handed: Sequence[IO[bytes]] = (),
    ) -> None:
        command = Path(sys.executable).parent / "proofmark"
        if not command.exists():
            raise AnsibleActionFail(
                f"{command}: no such command; `pip install {KIT}`, in a checkout `make .venv`, "
                "installs it"
            )
        self._signal = 0
        self._deadline = float("inf")
        with contextlib.ExitStack() as ends:
            stdin = ends.enter_context(_in_memory(text.encode())) if text else subprocess.DEVNULL
            self._process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "TERM", str(command), *argv],
                stdin=stdin,
                stdout=stdout,
                stderr=subprocess.PIPE,
                env={**os.environ, "PROOFMARK_KIT": f"{KIT}"},
                start_new_session=True,
                pass_fds=[file.fileno() for file in handed],
            )
            self._ends = ends.pop_all()

    def wait(self, show: Callable[[str], None]) -> tuple[int, list[str]]:
        """Pass each line of progress to `show`; return the exit code and the errors."""
        parent = os.getppid()
        watched = (signal.SIGINT, signal.SIGTERM)
        previous = {number: signal.signal(number, self._stop) for number in watched}
        errors: list[str] = []
        with self._ends, self._process, self._stopped_by_errors():
            for line in self._lines():
                if line.startswith(ERROR_MARK):
                    errors.append(line.removeprefix(ERROR_MARK))
                elif line:
                    show(line)
                if os.getppid() != parent:  # the parent got SIGKILL and sent no signal
                    self._stop(signal.SIGTERM)
                if time.monotonic() > self._deadline:
                    self._process.kill()
        for number, handler in previous.items():
            signal.signal(number, handler)
        if self._signal:
            os.kill(os.getpid(), self._signal)  # now Ansible's own handler may end the worker
        return self._process.returncode, errors

    @contextlib.contextmanager
    def _stopped_by_errors(self) -> Iterator[None]:
        """Terminate the command if an exception is raised within; the caller waits for its end."""
        try:
            yield
        except BaseException:
            self._process.terminate()
            raise

    def end(self, show: Callable[[str], None]) -> tuple[int, list[str]]:
        """Terminate the command and wait as `wait` does."""
        self._stop(0)
        return self.wait(show)

    def _stop(self, number: int, _frame: Any = None) -> None:
        if not self._signal:
            self._signal = number
            self._deadline = time.monotonic() + GRACE_S
            self._process.terminate()

    def _lines(self) -> Iterator[str]:
        """Yield the lines of stderr, and an empty line every POLL_S seconds."""
        pipe = self._process.stderr
        assert pipe is not None
        os.set_blocking(pipe.fileno(), False)
        rest = b""
        ended = False
        while not ended:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(POLL_S)
                ended = True
            *whole, rest = (rest + (pipe.read() or b"")).split(b"\n")
            yield from (line.decode(errors="replace") for line in whole)
            yield ""
        yield rest.decode(errors="replace")


@contextlib.contextmanager
def _running_beside(
    argv: Sequence[str],
    text: str,
    groups: IO[bytes],
    show: Callable[[str], None],
    warn: Callable[[str], None],
) -> Iterator[None]:
    """Run a second command during the block.

    At its end its lines of progress are passed to `show`, and its errors to `warn`.

    Args:
        argv: its arguments.
        text: its standard input.
        groups: the partitions of the inventory.
        show: gets each line of progress.
        warn: gets each error.
    """
    with tempfile.TemporaryFile() as stdout:
        words = [*argv, f"--groups-fd={groups.fileno()}"]
        child = _Child(words, stdout, text, [groups])
        try:
            yield
        finally:
            code, errors = child.end(show)
            for line in errors:
                warn(line)
            if not errors and code not in (0, -signal.SIGTERM):
                warn(f"proofmark {' '.join(argv)}: exit code {code}")


def _in_memory(content: bytes) -> IO[bytes]:
    """Return a file that is in memory only, because `content` may have secrets.

    A pipe would block if the command prints much before it reads.
    """
    file = os.fdopen(os.memfd_create("input"), "w+b")
    file.write(content)
    file.seek(0)
    return file
