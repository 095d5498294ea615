"""Runs commands and scripts on nodes, many at once, and knows the programs that they need.

Each node has a list of words that no shell reads, and the output is kept byte for byte. The command
that runs a POSIX shell script on a node is made by one function for every node and purpose. One
process runs them: a task of Ansible for each node costs ten times as much CPU time.

The programs that scripts call, and their Debian packages, are in ``requirements/programs.yml``. The
file describes the scripts of this package, so it is read from the same checkout or collection.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Literal, NamedTuple, Self

from pydantic import Field, model_validator

from proofmark.common import nodesets
from proofmark.common.errors import (
    InputError,
    NodeFailure,
    Stopped,
    bad_input,
    note_failed_nodes,
    refuse,
)
from proofmark.common.kit import code_folder
from proofmark.common.nodesets import folded, nodes_by
from proofmark.common.processes import (
    ProcessGroup,
    call_line,
    environment_of,
    run_command,
    run_process,
    stop_signals,
    traced,
)
from proofmark.common.progress_lines import say
from proofmark.common.shared_models import StrictModel
from proofmark.common.yaml_models import load
from proofmark.machine.outcome import NodeError, NodeErrors, Outcome, fan_out
from proofmark.machine.scheduler import present
from proofmark.runs.progress import due_nodes
from proofmark.runs.run import Run
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


Failure = OSError | subprocess.TimeoutExpired | NodeError
Result = subprocess.CompletedProcess[str] | Failure
"""What a command printed and its exit code, or why there is no exit code."""
NodeResult = NodeProcess | Failure
"""The same of the command of a node, with its times."""


def run_commands(
    commands: Mapping[str, Sequence[str]],
    text: str,
    *,
    timeout_s: float,
    at_once: int,
    group: ProcessGroup,
) -> dict[str, NodeResult]:
    """Run the commands of all nodes; return the result of each, in the order of `commands`.

    Args:
        timeout_s: a command that runs longer is killed. The time of each begins with its start.
        group: the commands belong to it until their end.

    Raises:
        Stopped: a signal came.
    """
    environment = environment_of("ssh")

    def run(node: str) -> NodeResult:
        words, began = commands[node], time.time()
        try:
            with traced(call_line(words, text, node)) as outcome:
                done = run_process(words, text, timeout_s, environment, group)
                outcome.append(f"exit code {done.returncode}")
        except (OSError, subprocess.TimeoutExpired) as error:
            return error
        return NodeProcess(words, done.returncode, done.stdout, done.stderr, began)

    results = fan_out(commands, run, at_once, group.killed)
    if group.received:
        raise Stopped(group.received)
    return results


CONNECT_S = 30
"""The time limit of a connection of ssh in seconds, if Ansible has none."""
SUDO_WITH_PASSWORD = (
    'IFS= read -r password; "$1" -n -u "$2" true 2>/dev/null && exec "$1" -n -u "$2" sh -s; '
    'printf "%s\\n" "$password" | "$1" -S -p "" -v || exit; '
    '{ printf "%s\\n" "$password"; exec cat; } | "$1" -k -S -p "" -u "$2" sh -s'
)
"""Reads the password from the first line of stdin, and runs the rest by sudo.

It is one line: a log-in shell as tcsh accepts no end of a line in quotes.

A password that sudo does not ask for would be the first command of the script. So it is used only
after sudo has refused to run without it, and a wrong one is used once.
"""
_VALUE = re.compile(r"\w[\w.:%@+\\-]*")


class NodeCommand(NamedTuple):
    """A command that runs ``sh -s`` on a node.

    Attributes:
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
        "ConnectTimeout": host.timeout_s or CONNECT_S,
        "ConnectionAttempts": host.attempts if host.attempts > 1 else "",
    }
    words = [host.program, "-o", "BatchMode=yes", *host.first_options]
    for key, given in settings.items():
        if given:
            words += ["-o", f"{key}={given}"]
    # A terminal would echo the script. As the last option -T undoes RequestTTY, and also -tt.
    return [*words, *host.options, "-T", host.host_name or node]


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
        given, environment = command.secret + script, environment_of("ssh")
        result = run_command(
            command.words, text=given, timeout_s=timeout_s, environment=environment
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        result = error
    return node_output(node, command.words[0], result)


def node_output(node: str, program: str, result: Result) -> str:
    """Return what the command of `node` printed.

    Raises:
        NodeError: it did not start, gave no answer in time, or its exit code is not 0.
    """
    if isinstance(result, NodeError):
        raise result
    if isinstance(result, subprocess.TimeoutExpired):
        text = f"{node}: {program} did not answer within {result.timeout:g} s"
        raise NodeError(Outcome.NO_ANSWER, text)
    if isinstance(result, OSError):
        missing = isinstance(result, FileNotFoundError)
        reason = "no such program" if missing else result.strerror
        raise NodeError(Outcome.UNREACHABLE, f"{program}: {reason}")
    if result.returncode:
        lines = result.stderr.strip().splitlines()[-2:]
        unreachable = result.returncode == SSH_FAILED
        raise NodeError(
            Outcome.UNREACHABLE if unreachable else Outcome.UNEXPECTED,
            f"{node}: {' / '.join(lines) or f'code {result.returncode}'}",
        )
    return result.stdout


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
    steps = (program.debian for program in called().values() if "step" in program.needed)
    known = sorted({*steps} - {""})
    asked = sorted(set(names))
    if unknown := [name for name in asked if name not in known]:
        found = ", ".join(map(repr, unknown))
        raise bad_input("RUN", "step_packages", found, ", ".join(known))
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
AT_ONCE = 128
"""Nodes at one time: each is a process of ssh, with three of the 1,024 open files of a default."""
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
) -> tuple[dict[str, str], NodeErrors]:
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
) -> tuple[dict[str, NodeProcess], NodeErrors]:
    """Run the POSIX sh script `text` on each of `names`; return its processes and failures by node.

    A process with another exit code than 0 is a failure. The time limit of each process is
    `timeout_s`, or `TIMEOUT_S` if it is None.

    Raises:
        Stopped: SIGINT or SIGTERM came; all processes have been killed.
    """
    commands: dict[str, NodeCommand] = {}
    failed: NodeErrors = {}
    for node in names:
        try:
            commands[node] = node_command(site, node)
        except NodeError as error:
            failed[node] = error
    secrets = nodes_by({node: command.secret for node, command in commands.items()})
    results: dict[str, NodeResult] = {}
    with stop_signals() as group:
        for secret, nodes in secrets.items():  # all hosts of a site usually have one password
            results |= run_commands(
                {node: commands[node].words for node in nodes},
                secret + text,
                timeout_s=TIMEOUT_S if timeout_s is None else timeout_s,
                at_once=AT_ONCE,
                group=group,
            )
    processes: dict[str, NodeProcess] = {}
    for node in filter(commands.__contains__, names):
        result = results[node]
        try:
            node_output(node, commands[node].words[0], result)
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
    refuse(
        InputError(what, "", failure.text, accepted, failure.code, folded(nodes))
        for failure, nodes in _nodes_by_failure(failed).items()
    )


def _nodes_by_failure(failed: Mapping[str, NodeError]) -> dict[NodeFailure, list[str]]:
    """Return the nodes with the same failure; its text does not name the node."""
    return nodes_by(
        {
            node: NodeFailure(error.text.replace(f"{node}: ", ""), error.outcome)
            for node, error in failed.items()
        }
    )


def check_programs(run: Run, site: Site, paths: Sequence[str]) -> None:
    """Check that every node of `run` can execute the programs at `paths` and those of its steps.

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
