"""Runs POSIX sh scripts on all nodes of a run, many at once, and knows the programs that they need.

One process does it: a task of Ansible for each node costs ten times as much CPU time. The programs
and their Debian packages are in ``requirements/programs.yml``. The file describes the scripts of
this package, so it is read from the same checkout or collection.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

from proofmark.common.errors import BadInput, InputError, NodeFailure, bad_input, note_failed_nodes
from proofmark.common.kit import code_folder
from proofmark.common.nodesets import folded
from proofmark.common.processes import stop_signals
from proofmark.common.progress_lines import say
from proofmark.common.strict_model import StrictModel
from proofmark.common.yaml_models import load
from proofmark.machine.node_commands import (
    NodeProcess,
    NodeResult,
    node_command,
    node_output,
    run_commands,
)
from proofmark.machine.outcome import NodeError, Outcome
from proofmark.machine.scheduler import present
from proofmark.runs.progress import due_nodes
from proofmark.runs.run import Run
from proofmark.site.inventory import Site

SCRIPT = "missing-programs.sh"
"""The file of ``machine/shell/`` that prints those of its arguments that cannot be executed."""
BOUND_MEMORY = "memory is bound"
"""The condition of a program that only steps with bound memory call."""


Place = Literal["controller", "node", "step", "rehearsal", "tests"]


class CalledProgram(StrictModel):
    """One program; the keys are explained in ``programs.yml``."""

    debian: str = ""
    essential: str = ""
    python: bool = False
    site: str = ""
    needed: tuple[Place, ...] = Field(min_length=1)
    only: str = ""

    @model_validator(mode="after")
    def _one_origin(self) -> Self:
        if sum(map(bool, (self.debian, self.essential, self.python, self.site))) != 1:
            raise ValueError("one of debian, essential, python and site")
        return self

    @property
    def package(self) -> str:
        """The Debian package; empty if no Debian package has the program."""
        return self.debian or self.essential


class Programs(StrictModel):
    """The content of ``programs.yml``."""

    programs: dict[str, CalledProgram]


def called(file: Path | None = None) -> dict[str, CalledProgram]:
    """Return every program that the kit calls, by its name. None is the file of this code.

    Raises:
        BadInput: the file is wrong.
    """
    return load(file or code_folder() / "requirements" / "programs.yml", Programs).programs


def step_programs(*, bound_memory: bool) -> dict[str, CalledProgram]:
    """Return the programs that a node needs for steps, by name.

    Raises:
        BadInput: ``programs.yml`` is wrong.
    """
    conditions = {"", BOUND_MEMORY} if bound_memory else {""}
    return {
        name: program
        for name, program in called().items()
        if "step" in program.needed and program.package and program.only in conditions
    }


def known_packages(names: Iterable[str]) -> list[str]:
    """Return `names`, which are Debian packages that steps need; root installs them.

    Raises:
        BadInput: ``programs.yml`` does not have one of them, or is wrong.
    """
    known = {program.debian for program in called().values() if "step" in program.needed}
    asked = sorted(set(names))
    if unknown := [name for name in asked if name not in known - {""}]:
        found = ", ".join(map(repr, unknown))
        raise bad_input("RUN", "step_packages", found, ", ".join(sorted(known - {""})))
    return asked


def lacking(printed: str, programs: Mapping[str, CalledProgram]) -> str:
    """Return the programs that a node cannot execute as one text; empty if it can execute all.

    Args:
        printed: the output of `SCRIPT` on the node.
    """
    missing: dict[str, list[str]] = {}
    for line in printed.splitlines():
        reason, _, name = line.removeprefix("! ").partition(": ")
        if line.startswith("! ") and name:
            package = f" (Debian: {programs[name].package})" if name in programs else ""
            missing.setdefault(reason, []).append(f"{name}{package}")
    return "; ".join(f"{reason}: {', '.join(names)}" for reason, names in missing.items())


TIMEOUT_S = 120.0
"""The time limit of each node: a node or a file system that hangs must not hang the run."""
AT_ONCE = 64
"""The number of nodes at one time, if the site declares none."""
SCRIPTS = files("proofmark.machine") / "shell"
Script = tuple[str, Iterable[str]]
"""A file of ``machine/shell/`` and its arguments."""


INCLUDED = re.compile(r'^ *\. "\$\{0%/\*\}/([a-z-]+\.sh)"$', re.MULTILINE)
"""The line by which a script reads another one of its folder."""


def script_text(name: str) -> str:
    """Return a script of ``machine/shell/`` with the scripts that it reads, for a shell's stdin."""
    text = (SCRIPTS / name).read_text(encoding="utf-8")
    return INCLUDED.sub(lambda line: script_text(line[1]).removeprefix("#!/bin/sh\n"), text)


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
        f"(\nset -- {shlex.join(words)}\n{script_text(name)}\n) </dev/null || exit\n"
        for name, words in scripts
    )
    processes, failed = run_text(site, names, text)
    return {node: process.stdout for node, process in processes.items()}, failed


def run_text(
    site: Site, names: Sequence[str], text: str, *, timeout_s: float | None = None
) -> tuple[dict[str, NodeProcess], dict[str, NodeError]]:
    """Run the POSIX sh script `text` on each of `names`; return its processes and failures by node.

    A process with another exit code than 0 is a failure. The time limit of each process is
    `timeout_s`, or `TIMEOUT_S` if it is None.

    Raises:
        Stopped: SIGINT or SIGTERM came; all processes have been killed.
    """
    firmware = site.partition.firmware
    commands: dict[str, list[str]] = {}
    failed: dict[str, NodeError] = {}
    groups: dict[str, list[str]] = {}
    for node in names:
        try:
            commands[node], secret = node_command(site, node)
        except NodeError as error:
            failed[node] = error
        else:
            groups.setdefault(secret, []).append(node)
    results: dict[str, NodeResult] = {}
    with stop_signals() as signals:
        for secret, nodes in groups.items():  # all hosts of a site usually have one password
            results |= run_commands(
                {node: commands[node] for node in nodes},
                secret + text,
                timeout_s=TIMEOUT_S if timeout_s is None else timeout_s,
                at_once=firmware.max_parallel if firmware else AT_ONCE,
                signals=signals,
            )
    processes: dict[str, NodeProcess] = {}
    for node in filter(commands.__contains__, names):
        result = results[node]
        try:
            node_output(node, commands[node][0], result)
        except NodeError as error:
            failed[node] = error
        else:
            assert isinstance(result, NodeProcess)
            processes[node] = result
    return processes, failed


def check_failure_budget(
    site: Site, what: str, asked: int, failed: Mapping[str, NodeError], accepted: str
) -> None:
    """Print the nodes that failed, and refuse more than the failure budget of the partition.

    Args:
        site: its ``firmware.max_failures`` is the budget; 0 without firmware.
        what: the place that an error message names.
        asked: the number of nodes.
        accepted: the result that was expected of each node.

    Raises:
        BadInput: more nodes than the budget failed, or all `asked` nodes.
    """
    firmware = site.partition.firmware
    budget = firmware.max_failures if firmware else 0
    if len(failed) > budget or len(failed) == asked:
        refuse_failures(what, failed, f"{accepted}; at most {budget} nodes without")
    for failure, nodes in _nodes_by_failure(failed).items():
        say(f"proofmark: {folded(nodes)}: left out, {failure}")
        note_failed_nodes(dict.fromkeys(nodes, failure))


def refuse_failures(what: str, failed: Mapping[str, NodeError], accepted: str) -> None:
    """Refuse the nodes that failed, if there are any; the arguments are as for the budget.

    Raises:
        BadInput: a node failed.
    """
    mistakes = [
        InputError(what, "", failure.text, accepted, failure.code, folded(nodes))
        for failure, nodes in _nodes_by_failure(failed).items()
    ]
    if mistakes:
        raise BadInput(*mistakes)


def _nodes_by_failure(failed: Mapping[str, NodeError]) -> dict[NodeFailure, list[str]]:
    """Return the nodes with the same failure; its text does not name the node."""
    nodes: dict[NodeFailure, list[str]] = {}
    for node, error in failed.items():
        failure = NodeFailure(error.text.replace(f"{node}: ", ""), error.outcome)
        nodes.setdefault(failure, []).append(node)
    return nodes


def check_programs(run: Run, site: Site, paths: Sequence[str]) -> None:
    """Check that every node of `run` can execute the programs at `paths` and those of its steps.

    Args:
        site: how its nodes are reached.
        paths: absolute paths of programs.

    Raises:
        BadInput: a node lacks one.
    """
    names = present(run, site, due_nodes(run))
    needed = step_programs(bound_memory=run.plan.binds_memory())
    if not names:
        return
    outputs, failed = run_on_nodes(site, names, (SCRIPT, [*paths, *needed]))
    failed |= {
        node: NodeError(Outcome.UNEXPECTED, f"{node}: {missing}")
        for node, text in outputs.items()
        if (missing := lacking(text, needed))
    }
    check_failure_budget(site, "programs", len(names), failed, "programs that can be executed")
