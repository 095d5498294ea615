"""Runs a POSIX shell script on a node over the site's own way to it."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Sequence
from importlib.resources import files

from proofmark.common.command import run_command
from proofmark.machine.outcome import NodeError, Outcome

SSH_FAILED = 255
PROBE = (files("proofmark.machine.modes") / "mode-probe.sh").read_text(encoding="utf-8")


class RemoteShell:
    """A command that runs ``sh -s`` on a node; the script goes in, its output comes back."""

    def __init__(self, command: Sequence[str], timeout_s: float) -> None:
        self._command, self._timeout_s = command, timeout_s

    def __call__(self, node: str, script: str, arguments: tuple[str, ...] = ()) -> str:
        """Run `script` on `node`.

        Raises:
            NodeError: nobody there, no answer in time, or another exit code than 0.
        """
        command = [word.replace("{node}", node) for word in self._command]
        # In the script and not on the command line, whose quotes ssh would lose.
        given = f"set -- {shlex.join(arguments)}\n{script}" if arguments else script
        try:
            done = run_command(command, text=given, timeout_s=self._timeout_s)
        except FileNotFoundError:
            raise NodeError(Outcome.UNREACHABLE, f"{command[0]}: no such program") from None
        except subprocess.TimeoutExpired:
            problem = f"{node}: {command[0]} did not answer within {self._timeout_s:g} s"
            raise NodeError(Outcome.NO_ANSWER, problem) from None
        if done.returncode:
            told = " / ".join(done.stderr.strip().splitlines()[-2:]) or f"code {done.returncode}"
            gone = done.returncode == SSH_FAILED
            raise NodeError(Outcome.UNREACHABLE if gone else Outcome.UNEXPECTED, f"{node}: {told}")
        return done.stdout
