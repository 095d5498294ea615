"""What all schedulers share: what a job asks for, what may become of it, and how one is asked."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from proofmark.common.errors import bad_input
from proofmark.site.execution import Queue

_ANSWER_S = 60
"""Longer than the time after which the clients of Slurm and PBS give up by themselves."""


class NoAnswer(Exception):
    """The scheduler does not answer: neither yes nor no."""


class Refused(Exception):
    """The scheduler answered, and would not do it."""


@dataclass(frozen=True)
class Request:
    """What a job asks its scheduler for.

    Attributes:
        name: unique to this job of this run, at most 15 characters, the first one a letter.
        nodes: exactly these.
        seconds: after which the scheduler may stop it.
        log: absolute; gets what the job says, at its end.
        independent: every node measures by itself, so that a lost one stops no other.
    """

    name: str
    nodes: Sequence[str]
    seconds: int
    log: Path
    queue: Queue
    independent: bool = False

    @property
    def clock(self) -> str:
        """The time limit as ``HH:MM:SS``."""
        minutes, seconds = divmod(self.seconds, 60)
        return f"{minutes // 60:02d}:{minutes % 60:02d}:{seconds:02d}"


def ask(
    *command: str, silent: Collection[str] = (), good: Collection[int] = (0,), text: str = ""
) -> str:
    """Run a command of a scheduler and return what it prints; `text` is its input.

    Args:
        command: the program and its arguments.
        silent: parts of a message that says that nobody answers.
        good: the exit codes of an answer.
        text: what it reads.

    Raises:
        BadInput: there is no such program.
        NoAnswer: it says so, or says nothing within a minute.
        Refused: it fails for another reason; its message.
    """
    try:
        done = subprocess.run(
            command,
            input=text,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_ANSWER_S,
            env=clean(os.environ),
            check=False,
            start_new_session=True,  # a Ctrl-C is ours; the answer comes nevertheless
        )
    except FileNotFoundError:
        found = f"no program {command[0]!r} in PATH"
        raise bad_input("partition", "scheduler", found, "its commands where this runs") from None
    except subprocess.TimeoutExpired:
        raise NoAnswer(f"{command[0]} did not answer within {_ANSWER_S} s") from None
    if done.returncode in good:
        return done.stdout
    said = " / ".join((done.stderr or done.stdout).split("\n")).strip(" /")[-300:]
    if any(part in said for part in silent):
        raise NoAnswer(f"{command[0]}: {said}")
    raise Refused(f"{command[0]}: {said or f'exit code {done.returncode}'}")


def clean(environment: Mapping[str, str]) -> dict[str, str]:
    """Return `environment` without what would change a job behind the back of its script."""
    foreign = ("SBATCH_", "SLURM_JOB", "SLURM_STEP", "SQUEUE_", "SINFO_", "PBS_", "VIRTUAL_ENV")
    return {name: value for name, value in environment.items() if not name.startswith(foreign)}


def one_by_one(nodes: Sequence[str], command: str) -> list[str]:
    """Return ``on_all`` for a scheduler that starts something on one node at a time.

    `command` reaches ``"$node"``; the script and its arguments are appended as one text, which the
    shell there splits again. This node, ``$HOST``, needs none.
    """
    quote = r"s/'/'\\\\''/g; 1s/^/'/; \$s/\$/'/"
    return [
        "on_all() {",
        "text=sh",
        f'for word; do text="$text $(printf "%s\\n" "$word" | sed "{quote}")"; done',
        "pids=",
        "trap 'kill $pids 2>/dev/null' TERM",
        f"for node in {' '.join(nodes)}; do",
        'if [ "${node%%.*}" = "${HOST%%.*}" ]; then sh "$@" </dev/null &',
        f'else {command} "$text" </dev/null & fi',
        'pids="$pids $!"',
        "done",
        "failed=0",
        'for pid in $pids; do wait "$pid" || failed=$?; done',
        'return "$failed"',
        "}",
    ]


def ssh_to(nodes: Sequence[str]) -> list[str]:
    """Return ``on_all`` by ssh, for where nothing else reaches the nodes of a job."""
    return one_by_one(nodes, 'ssh -o BatchMode=yes -o ConnectTimeout=30 "$node"')
