"""All the nodes of a run at once: scripts of POSIX sh in, what they print out.

One process speaks to every node: a task of Ansible a node costs ten times as much.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files

from proofmark.common.errors import BadInput, InputError
from proofmark.common.messages import say
from proofmark.common.nodesets import folded
from proofmark.machine.fanout import fan_out, split
from proofmark.machine.outcome import NodeError, Outcome
from proofmark.machine.programs import SCRIPT, lacking, plan_programs
from proofmark.machine.remote_shell import RemoteShell
from proofmark.runs.run import Run, site_of
from proofmark.site.inventory import Site

TIMEOUT_S = 120.0
"""A node that hangs, or its file system, must not hang the run."""
AT_ONCE = 64
"""Nodes that are spoken to at one time, where the site does not say."""
SCRIPTS = files("proofmark.machine") / "shell"
Script = tuple[str, Iterable[str]]
"""A file of ``machine/shell/`` and its words."""


def run_on_nodes(
    site: Site, names: Sequence[str], *scripts: Script
) -> tuple[dict[str, str], dict[str, NodeError]]:
    """Run `scripts` in order on each of `names`; return the outputs, and the nodes that failed.

    Each script runs in a subshell with stdin from /dev/null, so that no command in it can consume
    the rest of the script.
    """
    text = "".join(
        f"(\nset -- {shlex.join(words)}\n{(SCRIPTS / name).read_text(encoding='utf-8')}\n"
        ") </dev/null || exit\n"
        for name, words in scripts
    )
    reach = RemoteShell(site.remote_shell, TIMEOUT_S)
    firmware = site.partition.firmware
    at_once = firmware.max_parallel if firmware else AT_ONCE
    return split(fan_out(names, lambda node: reach(node, text), at_once))


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
