"""Runs the command ``proofmark`` on the controller; `plugins/modules/cli.py` documents it."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import pwd
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from ansible.errors import AnsibleActionFail, AnsibleActionSkip
from ansible.plugins.action import ActionBase

ERROR_MARK = "proofmark: "
"""Starts the lines in which the command says what went wrong; all others tell of progress."""
GRACE_S = 150
"""A stopped command first stops its job in order and waits for its end: each takes at most 60 s."""
POLL_S = 0.2


class ActionModule(ActionBase):  # type: ignore[misc]  # Ansible ships no types
    """The action behind tasks of `proofmark.kit.cli`."""

    TRANSFERS_FILES = False
    _requires_connection = False
    _supports_check_mode = True

    def run(
        self, tmp: str | None = None, task_vars: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Run the command, say its progress as it comes, and judge its exit code."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        _, options = self.validate_argument_spec(
            argument_spec={
                "argv": {"type": "list", "elements": "str", "required": True},
                "options": {"type": "dict", "default": {}},
                "json": {"type": "bool", "default": False},
                "writes": {"type": "list", "elements": "str", "default": []},
                "ok_codes": {"type": "list", "elements": "int", "default": [0]},
                "user": {"type": "str", "default": ""},
                "stdin": {"type": "str", "default": ""},
            }
        )
        argv, writes = options["argv"] + _spelt(options["options"]), options["writes"]
        told = " ".join(["proofmark", *argv])
        traced = ["-v"] if self._display.verbosity else []
        if writes and self._task.check_mode:
            self._say(f"would run: {told}")
            raise AnsibleActionSkip(told)
        before = _contents(writes)
        with tempfile.TemporaryFile() as stdout:
            child = _Child([*traced, *argv], options["user"], stdout, options["stdin"])
            code, errors = child.follow(self._say)
            stdout.seek(0)
            text = stdout.read().decode(errors="replace")
        # Ansible takes any rc but 0 for a failure, unless it is told.
        failed = code not in options["ok_codes"]
        result |= {
            "changed": _contents(writes) != before,
            "cmd": told,
            "rc": code,
            "failed": failed,
        }
        if failed:
            return result | {"msg": "\n".join(errors) or f"{told}: exit code {code}"}
        for line in errors:
            self._display.warning(line)
        said = {"json": _parse(text, told)} if options["json"] else {"stdout": text}
        return result | said

    def _say(self, line: str) -> None:
        self._display.display(f"    {line}")


def _spelt(options: Mapping[str, Any]) -> list[str]:
    """Return `options` as the command line spells them: nothing for what is empty or false."""
    spelt: list[str] = []
    for name, value in options.items():
        if value is True:
            spelt.append(f"--{name}")
        elif value:
            each = value if isinstance(value, list) else [value]
            spelt += [f"--{name}={item}" for item in each]
    return spelt


def _parse(text: str, told: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise AnsibleActionFail(f"{told}: found no JSON on stdout ({error})") from None


def _contents(patterns: Sequence[str]) -> dict[str, str]:
    """Return the SHA-256 of every file that the absolute `patterns` match."""
    found = {path for pattern in patterns for path in Path("/").glob(pattern.lstrip("/"))}
    return {f"{p}": hashlib.sha256(p.read_bytes()).hexdigest() for p in found if p.is_file()}


class _Child:
    """The command as a child that never outlives this process, however that one ends.

    Ansible's workers pass a signal on and die at once. That would leave the command to stop its
    job alone, while the user believes that all is over: this worker waits for it.
    """

    def __init__(self, argv: Sequence[str], user: str, stdout: IO[bytes], text: str = "") -> None:
        command = Path(sys.executable).parent / "proofmark"
        if not command.exists():
            raise AnsibleActionFail(f"{command}: no such command; `make .venv` installs it")
        identity, environment = _identity(user)
        self._signal = 0
        self._deadline = float("inf")
        self._process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "TERM", *identity, str(command), *argv],
            stdin=subprocess.PIPE if text else subprocess.DEVNULL,
            stdout=stdout,
            stderr=subprocess.PIPE,
            env={**os.environ, **environment},
            start_new_session=True,
        )
        if self._process.stdin:
            # A few words; and a command that has ended already needs none.
            with contextlib.suppress(BrokenPipeError), self._process.stdin as pipe:
                pipe.write(text.encode())

    def follow(self, say: Callable[[str], None]) -> tuple[int, list[str]]:
        """Pass on what the command says until it ends; return its exit code and its errors."""
        parent = os.getppid()
        watched = (signal.SIGINT, signal.SIGTERM)
        previous = {number: signal.signal(number, self._stop) for number in watched}
        errors: list[str] = []
        with self._process, self._stopped_by_errors():
            for line in self._lines():
                if line.startswith(ERROR_MARK):
                    errors.append(line.removeprefix(ERROR_MARK))
                elif line:
                    say(line)
                if os.getppid() != parent:  # killed so hard that it could not tell us
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
        """End the command when following it fails; the caller waits for it."""
        try:
            yield
        except BaseException:
            self._process.terminate()
            raise

    def _stop(self, number: int, _frame: Any = None) -> None:
        if not self._signal:
            self._signal = number
            self._deadline = time.monotonic() + GRACE_S
            self._process.terminate()

    def _lines(self) -> Iterator[str]:
        """Yield the lines of stderr, and an empty one whenever there is none for a while."""
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


def _identity(user: str) -> tuple[list[str], dict[str, str]]:
    """Return what makes the command run as `user`; nothing where we are that user already."""
    if not user or user == pwd.getpwuid(os.geteuid()).pw_name:
        return [], {}
    if os.geteuid() != 0:
        raise AnsibleActionFail(f"only root can run as {user}: start as root, or as {user}")
    try:
        entry = pwd.getpwnam(user)
    except KeyError:
        raise AnsibleActionFail(f"{user}: no such user on the controller") from None
    switch = [f"--reuid={entry.pw_uid}", f"--regid={entry.pw_gid}", "--init-groups"]
    # Some service accounts have no home of their own, and Ansible's library wants to write there.
    home = Path(entry.pw_dir)
    own = home.is_dir() and home.stat().st_uid == entry.pw_uid
    return switch, {
        "HOME": f"{home}" if own else tempfile.gettempdir(),
        "USER": user,
        "LOGNAME": user,
    }
