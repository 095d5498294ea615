"""Runs a POSIX shell script on one node of a site."""

from __future__ import annotations

import shlex
import subprocess
from importlib.resources import files

from proofmark.common.processes import run_command
from proofmark.machine.controller_tools import no_exit_code
from proofmark.machine.node_commands import Result
from proofmark.machine.node_shell import NodeCommand, node_command
from proofmark.machine.outcome import NodeError, Outcome
from proofmark.site.inventory import Site

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
