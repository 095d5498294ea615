"""Calls of the commands of schedulers, what they print, and the states of nodes and jobs in it."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from enum import Enum
from fnmatch import fnmatchcase
from functools import cache
from typing import Annotated

from pydantic import BeforeValidator

from proofmark.common.errors import bad_input
from proofmark.common.processes import run_command
from proofmark.common.rights import starting_user
from proofmark.common.shared_models import StrictModel
from proofmark.common.text import counted, one_line
from proofmark.common.yaml_models import shipped_data
from proofmark.machine.scheduler import (
    BUSY,
    IDLE,
    NoCommand,
    NodeState,
    NodeStatus,
    NodeUse,
    Request,
    SchedulerError,
    SchedulerUnavailable,
    SubmitLimitReached,
)
from proofmark.runs.job_folder import JobStatus, State
from proofmark.site.execution import Queue

_TIMEOUT_S = 60
"""Longer than the timeouts of the clients of Slurm and PBS."""


_UNTRANSLATED = {"LC_ALL": "C.UTF-8", "LANGUAGE": "C"}
"""The messages of commands are compared: they are those of no language of the caller."""
EVERY = "*"
"""In place of the name of a scheduler: each of its messages is final."""


def ask_scheduler(
    *command: str,
    text: str = "",
    final: str = "",
    success: Collection[int] = (0,),
    limit: Callable[[int, str], bool] = lambda code, message: False,
) -> str:
    """Run a command of a scheduler and return its standard output.

    Args:
        final: the name of the scheduler whose messages can be final, or `EVERY`.
        limit: whether an exit code with a message means that too many jobs are submitted now.

    Raises:
        NoCommand: there is no such program.
        SubmitLimitReached: as `limit` says.
        SchedulerError: the command failed with one of these messages.
        SchedulerUnavailable: it failed with another message, ran for a minute, or could not be
            started.
    """
    if shutil.which(command[0]) is None:
        raise NoCommand(f"{command[0]}: no such program")
    try:
        user = starting_user()
        done = run_command(
            [*user.words, *command],
            text=text,
            timeout_s=_TIMEOUT_S,
            environment={**user.environment("scheduler"), **_UNTRANSLATED},
            own_group=True,  # Ctrl-C must not interrupt the command
        )
    except subprocess.TimeoutExpired:
        raise SchedulerUnavailable(f"{command[0]} did not answer within {_TIMEOUT_S} s") from None
    except OSError as error:
        raise SchedulerUnavailable(f"{command[0]}: {error.strerror}") from None
    if done.returncode in success:
        return done.stdout
    code, answer = done.returncode, done.stderr or done.stdout
    shown = f"{command[0]}: {last_lines(answer) or f'exit code {code}'}"
    if limit(code, answer):
        raise SubmitLimitReached(shown, code=code, answer=answer)
    messages = words_of(final).final.messages if final not in ("", EVERY) else ()
    refused = final == EVERY or any(says(answer, message) for message in messages)
    raise (SchedulerError if refused else SchedulerUnavailable)(shown, code=code, answer=answer)


class Use(Enum):
    """What a state of a node means for the kit."""

    IN_SERVICE = "in service"
    PROMISED = "in service, and a job or a reservation of others waits for it"
    OCCUPIED = "in service, and jobs run on it"
    BOOTS = "without power, or about to restart; the scheduler starts it for a job"
    RESERVED = "out of service for all jobs but those of a reservation"
    OUT = "out of service"
    UNKNOWN = "a word that the kit does not know: out of service, perhaps with jobs"


def _by_name(kind: type[Enum]) -> BeforeValidator:
    return BeforeValidator(kind.__getitem__)


class Refusals(StrictModel):
    """The messages by which the commands of a scheduler refuse for good: now and later.

    After any other message the kit asks again until ``queue.stall_timeout_s``.

    Attributes:
        messages: the words of each message, as `says` takes them.
    """

    source: str
    messages: tuple[str, ...]


class SchedulerWords(StrictModel):
    """The words of a scheduler: ``schedulers/data/<name>.yml``, beside the module of its class.

    Attributes:
        names: other names of the states of nodes.
        marks: the characters after the state of a node, each with the state that it adds.
        nodes: the states of nodes, each with its `Use`.
        jobs: the states of jobs, each with its `State`.
        ends: the reasons of the ends of jobs, each with its `State`.
        exits: the negative exit statuses, each with a `State` and its meaning.
        waiting: the reasons for which a job that waits does not start without help. The first
            pattern that the whole reason has decides. ``HELD`` and ``UNAVAILABLE`` are waited for
            until ``queue.stall_timeout_s``. A key is the key of the site that must change: the
            reason speaks of this job alone, and no waiting ends it. All other reasons are ordinary
            waiting: a limit that other jobs use up, a busy node. No reason speaks of nodes: a job
            that names its nodes has it also while these are busy.
        of_node: the reasons that speak of the CPUs or the memory on one node.
        of_groups: the reasons that speak of a limit for the jobs of a group together, each with
            what states the limit, its column there, and the resource.
        final: the messages by which its commands refuse for good.
    """

    names: dict[str, str] = {}
    marks: dict[str, str] = {}
    nodes: dict[str, Annotated[Use, _by_name(Use)]] = {}
    jobs: dict[str, Annotated[State, _by_name(State)]]
    ends: dict[str, Annotated[State, _by_name(State)]] = {}
    exits: dict[int, tuple[str, str]] = {}
    waiting: dict[str, str] = {}
    of_node: frozenset[str] = frozenset()
    of_groups: dict[str, tuple[str, str, str]] = {}
    final: Refusals


@cache
def words_of(scheduler: str) -> SchedulerWords:
    """Return the words of a scheduler."""
    return shipped_data("proofmark.machine.schedulers", f"{scheduler}.yml", SchedulerWords)


def waiting_status(scheduler: str, reason: str, shown: str) -> JobStatus:
    """Return the status of a job that waits; `shown` is the reason as the status has it."""
    for pattern, cure in words_of(scheduler).waiting.items():
        if fnmatchcase(reason, pattern):
            known = cure in State.__members__
            state = State[cure] if known else State.UNAVAILABLE
            return JobStatus(state, shown, "" if known else cure)
    return JobStatus(State.WAITING, shown)


def says(answer: str, words: str) -> bool:
    """Return whether an answer has all of `words`, in one line.

    A ``*`` in the words is any text: a name or a number. Capital letters are not compared.
    """
    pattern = ".{0,200}?".join(map(re.escape, words.split("*")))
    return bool(re.search(rf"(?<!\w){pattern}(?!\w)", answer, re.IGNORECASE))


LONGEST_MESSAGE = 400
"""The limit of what a failed command printed, in a message of the kit, in characters."""


def last_lines(answer: str) -> str:
    """Return the last lines of an answer in one line; of a longer line the first words."""
    lines = [line for each in answer.split("\n") if (line := one_line(each))]
    shown = ""
    for line in reversed(lines):
        joined = f"{line} / {shown}" if shown else line
        if len(joined) > LONGEST_MESSAGE:
            return shown or f"{line[:LONGEST_MESSAGE].rpartition(' ')[0]} …"
        shown = joined
    return shown


def job_id(program: str, output: str, pattern: str, *, submitted: bool = False) -> str:
    """Return the id of a job that `program` printed as the last line with one; empty if no output.

    Args:
        pattern: a regular expression of an id, which is the first group of it in a line.
        submitted: whether there must be an id, because the job was submitted.

    Raises:
        SchedulerUnavailable: no line has an id; whether there is a job is not known.
    """
    found = [match for line in output.splitlines() if (match := re.fullmatch(pattern, line))]
    if not found and (submitted or output.strip()):
        raise unreadable(program, "an id of a job", output)
    return found[-1][1] if found else ""


def named_blocks(text: str, begin: str) -> dict[str, str]:
    """Return the parts of `text` by name; the first line of each has the pattern `begin` and it."""
    parts = re.split(rf"^{begin}(\S+)", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def seconds_of(text: str) -> int | None:
    """Return the seconds of ``days-hours:minutes:seconds``; None if it is no time limit, or 0."""
    match = re.fullmatch(r"(?:(\d{1,6})-)?(\d{1,6}):(\d\d):(\d\d)", text)
    if match is None:
        return None
    days, hours, minutes, seconds = (int(each or 0) for each in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds or None


def directives(mark: str, options: Mapping[str, str], further: Iterable[str]) -> list[str]:
    """Return the lines ``MARK OPTION`` of a job script.

    Args:
        options: the values by flag; a flag without a value is left out, and one that ends with an
            equals sign is joined to its value.
    """
    lines = [
        f"{flag}{value}" if flag.endswith("=") else f"{flag} {value}".strip()
        for flag, value in options.items()
        if value
    ]
    return [f"{mark} {line}" for line in [*lines, *further]]


def unreadable(program: str, form: str, output: str) -> SchedulerUnavailable:
    """Return the exception for an output that is not of this form; the command may be repeated."""
    return SchedulerUnavailable(f"{program}: the output is not {form}: {one_line(output[-200:])!r}")


MAX_ARGUMENT = 131_071
"""The longest argument of a command in bytes: execve(2), MAX_ARG_STRLEN, without the final NUL."""


def as_argument(text: str, request: Request) -> str:
    """Return `text`, which names the nodes of `request` in one argument of a command.

    Raises:
        BadInput: it is longer than an argument of a command can be.
    """
    if len(text) <= MAX_ARGUMENT:
        return text
    fewer = len(request.nodes) * MAX_ARGUMENT // len(text)
    found = f"a job of {counted(len(request.nodes), 'node')}, whose list has {len(text):,} bytes"
    accepted = f"at most about {fewer} nodes: the list is an argument of {MAX_ARGUMENT:,} bytes"
    raise bad_input("partition", "nodes_per_job", found, accepted)


def one_by_one(nodes: Sequence[str], command: str) -> list[str]:
    """Return ``on_all`` for a scheduler whose command starts a process on one node.

    `command` is for the node ``"$node"``. The script and its arguments are appended as one quoted
    text, which the shell on the node splits again. The local node, ``$HOST``, needs no `command`.
    A scheduler sends its signal to this shell, too, whichever it is: ``$SIGNALS`` of job.sh.
    """
    quote = r"s/'/'\\\\''/g; 1s/^/'/; \$s/\$/'/"
    return [
        "on_all() {",
        "text=sh",
        f'for word; do text="$text $(printf "%s\\n" "$word" | sed "{quote}")"; done',
        "pids=",
        "trap 'kill $pids 2>/dev/null' ${SIGNALS:-TERM}",
        f"for node in {shlex.join(nodes)}; do",
        # As same_host of hosts.sh: an address, or a name in another domain, is another node.
        'if [ "$node" = "$HOST" ] || [ "${node%%.*}" = "$HOST" ] || [ "$node" = "${HOST%%.*}" ]',
        'then sh "$@" </dev/null &',
        f'else {command} "$text" </dev/null & fi',
        'pids="$pids $!"',
        "done",
        "failed=0",
        'for pid in $pids; do wait "$pid" || failed=$?; done',
        'return "$failed"',
        "}",
    ]


def ssh_to(nodes: Sequence[str]) -> list[str]:
    """Return ``on_all`` by ssh, for a scheduler without a command for the nodes of a job."""
    return one_by_one(nodes, 'ssh -T -o BatchMode=yes -o ConnectTimeout=30 "$node"')


_CLOSED = (Use.BOOTS, Use.RESERVED, Use.OUT, Use.UNKNOWN)
_DOWN = (Use.OUT, Use.UNKNOWN)
_BUSY = (Use.PROMISED, Use.OCCUPIED, Use.BOOTS)


States = Mapping[str, Use]
"""The states of one node, in the words of its scheduler."""


def states_of(words: Iterable[str], table: Mapping[str, Use]) -> dict[str, Use]:
    """Return the meaning of each of `words`, also of those that `table` does not have."""
    found = {
        word if word in table else f"{word!r}, unknown to the kit": table.get(word, Use.UNKNOWN)
        for word in words
    }
    return found or {"no state": Use.UNKNOWN}


def status_of(states: States, reason: str) -> NodeStatus:
    """Return the status of a node with these states.

    Args:
        reason: why it is out, in the words of the person or program that drained it. A node in
            service has none: Slurm 24.11 keeps the last one.
    """
    closed = [word for word, use in states.items() if use in _CLOSED]
    return NodeStatus(
        out=bool(closed),
        idle=not {Use.OCCUPIED, Use.UNKNOWN} & set(states.values()),
        reason=reason if closed else "",
        states=tuple(word.lower() for word in closed),
        reserved=bool(closed) and all(states[word] is Use.RESERVED for word in closed),
    )


def state_of(states: States, shown: str, reason: str) -> NodeState:
    """Return the state of a node with these states.

    A node that has to boot is busy: a job waits for it.

    Args:
        shown: its states, as its scheduler prints them.
    """
    if any(use in _DOWN for use in states.values()):
        return NodeState(NodeUse.DOWN, shown, reason)
    if Use.RESERVED in states.values():
        return NodeState(NodeUse.RESERVED, shown, reason)
    return BUSY if any(use in _BUSY for use in states.values()) else IDLE


_CLUSTERS = re.compile(r"(?:^|\s)(?:--clusters?(?:=|\s+)|-M\s*)[\"']?([^\s\"']+)")


def cluster_of(queue: Queue) -> str:
    """Return the cluster that the options of `queue` name; empty if they name none."""
    found = _CLUSTERS.findall("\n".join(queue.options))
    return found[-1] if found else ""


def of_cluster(queue: Queue, program: str) -> list[str]:
    """Return `program` with the option of its cluster: squeue or sinfo asks that of its host."""
    cluster = cluster_of(queue)
    return [program, f"--clusters={cluster}"] if cluster else [program]


def queue_options(queue: Queue) -> list[str]:
    """Return the options of sbatch, one a line, that say where each job of the kit runs."""
    values = {"partition": queue.name, "account": queue.account, "reservation": queue.reservation}
    return [*(f"--{name}={value}" for name, value in values.items() if value), *queue.options]
