"""Runs POSIX sh scripts on all nodes of a run, many at once.

One process does it: a task of Ansible for each node costs ten times as much CPU time.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory

from proofmark.common.errors import BadInput, InputError
from proofmark.common.messages import say
from proofmark.common.nodesets import folded
from proofmark.common.signals import stop_signals
from proofmark.machine.node_commands import run_commands
from proofmark.machine.outcome import NodeError, Outcome
from proofmark.machine.programs import SCRIPT, lacking, plan_programs
from proofmark.machine.remote_shell import node_command, node_output
from proofmark.machine.ssh_config import ssh_commands
from proofmark.runs.run import Run, site_of
from proofmark.site.inventory import Site

TIMEOUT_S = 120.0
"""The time limit of each node: a node or a file system that hangs must not hang the run."""
AT_ONCE = 64
"""The number of nodes at one time, if the site declares none."""
SCRIPTS = files("proofmark.machine") / "shell"
Script = tuple[str, Iterable[str]]
"""A file of ``machine/shell/`` and its arguments."""


def run_on_nodes(
    site: Site, names: Sequence[str], *scripts: Script
) -> tuple[dict[str, str], dict[str, NodeError]]:
    """Run `scripts` in order on each of `names`; return the outputs, and the nodes that failed.

    Each script runs in a subshell with stdin from /dev/null, so that no command in it can consume
    the rest of the script.

    Raises:
        Stopped: SIGINT or SIGTERM came; all processes have been killed.
    """
    text = "".join(
        f"(\nset -- {shlex.join(words)}\n{(SCRIPTS / name).read_text(encoding='utf-8')}\n"
        ") </dev/null || exit\n"
        for name, words in scripts
    )
    firmware = site.partition.firmware
    with stop_signals() as signals, TemporaryDirectory(prefix="proofmark-") as folder:
        commands, failed = _commands(site, names, Path(folder))
        results = run_commands(
            commands,
            text,
            timeout_s=TIMEOUT_S,
            at_once=firmware.max_parallel if firmware else AT_ONCE,
            signals=signals,
        )
    outputs: dict[str, str] = {}
    for node in filter(commands.__contains__, names):
        try:
            outputs[node] = node_output(node, commands[node][0], results[node])
        except NodeError as error:
            failed[node] = error
    return outputs, failed


def _commands(
    site: Site, names: Sequence[str], folder: Path
) -> tuple[dict[str, list[str]], dict[str, NodeError]]:
    """Return the command of each node that runs ``sh -s`` there, and the nodes without one."""
    if site.ssh:
        return ssh_commands(site.ssh, names, folder)
    commands: dict[str, list[str]] = {}
    refused: dict[str, NodeError] = {}
    for node in names:
        try:
            commands[node] = node_command(site.remote_shell, node)
        except NodeError as error:
            refused[node] = error
    return commands, refused


def check_failure_budget(
    site: Site, what: str, asked: int, lost: Mapping[str, NodeError], accepted: str
) -> None:
    """Name the nodes that are lost; more than the partition's budget, or all, are the end.

    Raises:
        BadInput: too many of the `asked` nodes are lost.
    """
    firmware = site.partition.firmware
    budget = firmware.max_failures if firmware else 0
    reasons: dict[str, list[str]] = {}
    for node, failed in lost.items():
        why = failed.text.replace(f"{node}: ", "")
        reasons.setdefault(f"{failed.outcome}: {why}", []).append(node)
    if lost and (len(lost) > budget or len(lost) == asked):
        enough = f"{accepted}; at most {budget} without"
        raise BadInput(
            *(
                InputError(what, f"on {folded(those)}", why, enough)
                for why, those in reasons.items()
            )
        )
    for why, those in reasons.items():
        say(f"proofmark: {folded(those)}: left out, {why}")


def check_programs(run: Run, paths: Sequence[str]) -> None:
    """Check on every node of `run` for programs: those at `paths`, and those that its steps call.

    Raises:
        BadInput: a node lacks one.
    """
    site, names, needed = site_of(run), run.plan.nodes(), plan_programs(run.plan)
    printed, lost = run_on_nodes(site, names, (SCRIPT, [*paths, *needed]))
    lost |= {
        node: NodeError(Outcome.UNEXPECTED, f"{node}: {missing}")
        for node, text in printed.items()
        if (missing := lacking(text, needed))
    }
    check_failure_budget(site, "programs", len(names), lost, "programs that can be executed")
