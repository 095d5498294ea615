"""PBS Pro and OpenPBS (12 and later, whose commands print JSON), and the states of its nodes.

Source: ``src/cmds`` and ``src/lib/Libattr/attr_node_func.c`` of PBS Pro 18 to OpenPBS 23.06.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from socket import getfqdn, gethostname
from typing import Any

from proofmark.common.files import parse_printed_json
from proofmark.common.grouping import batched, flat
from proofmark.common.host_names import same_host
from proofmark.common.nodesets import folded
from proofmark.common.rights import starting_user
from proofmark.common.text import one_line
from proofmark.machine.outcome import NodeError, Outcome
from proofmark.machine.scheduler import (
    NO_SUCH_JOB,
    Ask,
    DrainingScheduler,
    JobStatuses,
    NodeStates,
    NodeStatuses,
    QueueLimits,
    Queues,
    Request,
    SchedulerError,
)
from proofmark.machine.scheduler_commands import (
    EVERY,
    Use,
    as_argument,
    ask_scheduler,
    directives,
    job_id,
    named_blocks,
    says,
    seconds_of,
    state_of,
    states_of,
    status_of,
    unreadable,
    waiting_status,
    words_of,
)
from proofmark.runs.job_folder import JobStatus, State

Entries = dict[str, dict[str, Any]]
"""The attributes of each node, job or server."""

NODE_STATES = words_of("pbs").nodes

_STALE = {"Stale", "stale"}

FIRST_NODE_DIED = -20

_NOT_ACTIVE = {
    *("RESV_NONE", "RESV_UNCONFIRMED", "RESV_CONFIRMED", "RESV_WAIT"),
    *("RESV_FINISHED", "RESV_DELETED"),
}
"""States of reservations that keep no node now (pbs_rstat(1))."""


_ID = r"\s*([0-9]+(?:\[[0-9]*\])?\.[A-Za-z0-9_.-]+)\s*"

_UNKNOWN_JOB, _FINISHED_JOB = 15001 % 256, 15139 % 256

_BAD_STATE = 15016 % 256
"""Exit codes: those of PBS commands are the last byte of an error of ``pbs_error.h``."""

_LIMITS = (15046 % 256, 15142 % 256, 15143 % 256)
"""Exit codes of qsub: PBSE_MAXQUED, PBSE_ENTLIMCT, PBSE_ENTLIMRESC: too many jobs are queued."""

_STATES, _EXITS = words_of("pbs").jobs, words_of("pbs").exits

_TERMINATED = 91
"""The substate of a job that was deleted. 93 is that of any exit status but 0 (``job.h``)."""

_CONFIGURATION = '"${PBS_CONF_FILE:-/etc/pbs.conf}" 2>/dev/null'

_INSTALLED = rf"""$(sed -n 's/^PBS_EXEC="*\([^" ]*\).*/\1/p' {_CONFIGURATION})/bin"""
"""The folder of the commands of PBS on a node, in a script: pbs.conf names the installation."""

MAX_NAMES = 500
"""Node names on one command line."""

_COUNT = re.compile("[0-9]{1,9}")

_VARIOUS = "<various>"
"""The value of an attribute of a host that its virtual nodes do not share (pbsnodes(8))."""


def entries(text: str, key: str) -> Entries:
    """Return the entries below `key` in JSON of PBS; empty if there are none.

    Raises:
        ValueError: it is no JSON of PBS.
    """
    whole = parse_printed_json(text)
    found = whole.get(key, {}) if isinstance(whole, dict) else None
    if not isinstance(found, dict):
        raise ValueError(f"no entries of {key}")
    return {name: fields for name, fields in found.items() if isinstance(fields, dict)}


def node_states(fields: Mapping[str, Any]) -> dict[str, Use]:
    """Return the states of a node with these attributes, and their meanings."""
    return states_of(node_words(fields), NODE_STATES)


def node_words(fields: Mapping[str, Any]) -> list[str]:
    """Return the words of the state of a node with these attributes."""
    return [word for word in re.split(r"[,\s]+", str(fields.get("state", ""))) if word]


def joined(vnodes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the attributes of a host from those of its virtual nodes.

    The host has all their states, jobs and comments: it is free if all of them are. A vnode that
    the daemon of the host no longer reports counts only if it reports no other: PBS keeps a vnode
    that an admin has removed from the definitions of the host.
    """
    reported = [each for each in vnodes if not _STALE & {*node_words(each)}] or vnodes
    states = dict.fromkeys(flat(map(node_words, reported)))
    comments = dict.fromkeys(str(each["comment"]) for each in vnodes if each.get("comment"))
    used = {state for state in states if state != "free"}
    one: dict[str, Any] = {
        "state": ",".join(state for state in states if state in used or not used),
        "jobs": [each["jobs"] for each in vnodes if each.get("jobs")],
    }
    if comments:
        one["comment"] = "; ".join(comments)
    return one


def active_reservations(text: str) -> dict[str, list[str]]:
    """Return the nodes of each active reservation in the output of ``pbs_rstat -F``.

    A reservation has the name of its queue. A host has its own name beside those of its vnodes.
    """
    found: dict[str, list[str]] = {}
    for name, lines in named_blocks(text, "Resv ID: ").items():
        pairs = re.findall(r"^\s*(\S+) = (.*\S)", lines, re.MULTILINE)
        fields = dict(reversed(pairs))  # the first of equal keys counts
        if fields.get("reserve_state", "") not in _NOT_ACTIVE:
            nodes = dict.fromkeys(_nodes_of(fields.get("resv_nodes", "")))
            found[fields.get("queue") or name.partition(".")[0]] = list(nodes)
    return found


def _nodes_of(text: str) -> Iterator[str]:
    """Yield the vnodes and hosts of ``(n1:ncpus=4+n2[0]:ncpus=2)+(n3:ncpus=4)``."""
    for chunk in text.split("+"):
        vnode = chunk.strip("() ").partition(":")[0]
        if vnode:
            yield vnode
            yield vnode.partition("[")[0]


def _limits(fields: Mapping[str, Any], server: Mapping[str, Any], *, default: bool) -> QueueLimits:
    """Return the limits of a queue; those of the server count for what the queue does not limit."""
    most: dict[str, Any] = {}
    for each in (server.get("resources_max"), fields.get("resources_max")):
        most |= each if isinstance(each, dict) else {}
    counts = {name: int(f"{value}") for name, value in most.items() if _COUNT.fullmatch(f"{value}")}
    no = [word for word in ("enabled", "started") if str(fields.get(word, True)) == "False"]
    return QueueLimits(
        default=default,
        max_walltime_s=_seconds(most) or None,
        max_nodes=counts.get("nodect"),
        max_cpus=counts.get("ncpus"),
        closed=", ".join(f"{word}=False" for word in no),
        source="qstat -Q -f",
    )


class Pbs(DrainingScheduler):
    """PBS Pro and OpenPBS (12 and later, whose commands print JSON)."""

    poll_s = 15.0
    isolates_jobs = True
    stop_command = "qdel"

    def header(self, request: Request) -> list[str]:
        """Return the directives, ``#PBS OPTION``, without the nodes.

        qsub of PBS Pro 14 to 19 reads 4,095 characters of a directive (MAX_LINE_LEN in its source).
        `submit` therefore passes ``-l select`` as an argument. ``exclhost`` also reserves the host
        if it has several vnodes.
        """
        queue = request.queue
        options = {
            "-N": request.name,
            "-l place=": "scatter:exclhost" if queue.exclusive else "scatter",
            "-l walltime=": request.clock,
            "-j": "oe",
            "-o": shlex.quote(f"{request.log}"),
            "-r": "n",  # a job that is run again is a new attempt, which the kit starts
            "-q": queue.reservation or queue.name,  # a reservation is a queue of that name
            "-A": queue.account,
        }
        by_hand = f'# qsub -l "$(cat {shlex.quote(str(request.host_file))})" job.sh'
        return [*directives("#PBS", options, queue.options), by_hand]

    def host_list(self, request: Request) -> str:
        """Return the selection: one chunk for each host, with its CPUs and memory.

        A job on all nodes of the queue requests their number: the names of some thousand nodes do
        not fit into an argument.

        With ``mpiprocs=1`` a chunk has one line in the file of nodes, so that pbsdsh starts one
        task on each host. Without ``ompthreads`` PBS sets OMP_NUM_THREADS to ``ncpus``.
        """
        memory = request.queue.memory_per_node
        limit = f":mem={memory // 1024}kb" if memory else ""
        resources = f":ncpus={request.cpus}{limit}:mpiprocs=1:ompthreads=1"
        if len(request.nodes) == request.queue.all_nodes:
            return f"select={len(request.nodes)}{resources}"
        chunks = "+".join(f"1:host={node}{resources}" for node in request.nodes)
        return as_argument(f"select={chunks}", request)

    def fan_out(self, request: Request) -> list[str]:
        """Return ``on_all`` by pbsdsh: once for every chunk of the job, one per host.

        The PATH of a job need not have it: the profile of a node may lack the file that PBS
        installs. It is then beside the daemon of the node, or where qsub was found.
        """
        return [
            "on_all() {",
            f"PATH=$PATH:{_INSTALLED}:${{PBS_O_PATH-}}",
            'exec pbsdsh -- sh "$@"',
            "}",
        ]

    def submit(self, script: Path, request: Request) -> str:
        """Submit `script`."""
        selection = ("-l", self.host_list(request))
        output = ask_scheduler(
            *("qsub", *selection, str(script)),
            final="pbs",
            limit=lambda code, message: code in _LIMITS,
        )
        return job_id("qsub", output, _ID, submitted=True)

    def queue_limits(self, ask: Ask) -> Queues:
        """Return the limits of each queue. A queue that routes jobs is one of them."""
        queues = _entries("qstat", ask("qstat", "-Q", "-f", "-F", "json"), "Queue")
        servers = _entries("qstat", ask("qstat", "-B", "-f", "-F", "json"), "Server")
        server = next(iter(servers.values()), {})
        return {
            name: _limits(fields, server, default=name == server.get("default_queue"))
            for name, fields in queues.items()
        }

    def find(self, name: str) -> str:
        """Return the id of the job `name`; empty if there is none."""
        return job_id("qselect", ask_scheduler("qselect", "-N", name), _ID)

    def states(self, ids: Sequence[str]) -> JobStatuses:
        """Return the state of each job, by one qstat; of those that it lacks, by the history.

        Only a server with ``job_history_enable`` has a history; it is off by default. Without it
        ``qstat -x`` lists no job, also none that waits or runs, and its exit code is 0.
        """
        found = _qstat(*ids)
        if missing := [job for job in ids if job not in found]:
            found |= _qstat("-x", *missing)
        found = {job: fields for job, fields in found.items() if job in ids}
        queues = {str(job.get("queue", "")) for job in found.values() if _waits(job)} - {""}
        stopped = _stopped(sorted(queues)) if queues else {}
        return {job: _state(fields, stopped) for job, fields in found.items()}

    def ended(self, job: str) -> JobStatus | None:
        """Return that PBS has no such job if qstat says so of this id."""
        try:
            found = _qstat(job, success=(0,))
        except SchedulerError as error:
            if error.code == _FINISHED_JOB:
                return JobStatus(State.ENDED_UNKNOWN, "only the history has it")
            if error.code == _UNKNOWN_JOB:
                return NO_SUCH_JOB
            raise
        return _state(found[job], {}) if job in found else None

    def cancel(self, ids: Sequence[str]) -> None:
        """Delete the jobs; a job that has ended, or that ends now, is no error.

        The exit code of qdel is that of the last job that it could not delete: after a failure
        each job is deleted alone.
        """
        try:
            ask_scheduler("qdel", *ids)
        except SchedulerError:
            failed = [error for job in ids if (error := _not_deleted(job))]
            if failed:
                raise failed[0] from None

    def nodes(self, names: Sequence[str]) -> NodeStates:
        """Return the state of each node, by one pbsnodes; see `_whole`."""
        listed = _pbsnodes("-a", "-F", "json")
        nodes = _whole(listed, names, lambda: _pbsnodes("-a", "-v", "-F", "json"))
        found = {name: nodes[name] for name in names if "state" in nodes.get(name, {})}
        return {
            name: state_of(_states(fields), str(fields["state"]), one_line(_comment(fields)))
            for name, fields in found.items()
        }

    def node_status(self, nodes: Sequence[str]) -> NodeStatuses:
        """Return the status of each node: its states, its jobs and its comment."""
        found: Entries = {}
        for names in batched(nodes, MAX_NAMES):
            found |= _pbsnodes("-F", "json", *names)
        found = _whole(found, nodes, lambda: _pbsnodes("-a", "-v", "-F", "json"))
        return {
            node: status_of(_states(found[node]), _comment(found[node]))
            if "state" in found.get(node, {})
            else self.unlisted("pbsnodes")
            for node in nodes
        }

    def reservations(self) -> dict[str, list[str]]:
        """Return the nodes of each active reservation, by one pbs_rstat."""
        return active_reservations(ask_scheduler("pbs_rstat", "-F", final=EVERY))

    def drain(self, nodes: Sequence[str], reason: str) -> None:
        """Set the nodes offline, with `reason` as their comment; all of them, or none.

        pbsnodes fails at an unknown name, and changes the other nodes.
        """
        unknown = [node for node, status in self.node_status(nodes).items() if not status.listed]
        if unknown:
            found = f"pbsnodes does not list {folded(unknown)}; no node was changed"
            raise NodeError(Outcome.UNEXPECTED, found)
        for names in batched(nodes, MAX_NAMES):
            ask_scheduler("pbsnodes", "-o", "-C", reason, *names, final=EVERY)

    def resume(self, nodes: Sequence[str]) -> None:
        """Clear the offline state and the comment of the nodes."""
        for names in batched(nodes, MAX_NAMES):
            ask_scheduler("pbsnodes", "-r", "-C", "", *names, final=EVERY)

    def missing_permission(self, node: str) -> str:
        """Return why this user may not drain `node`; empty if the user may. It changes nothing.

        The server's attributes `managers` and `operators` list the users that may change a node,
        as USER@HOST, where HOST may begin with ``*``. root on the server's host always may
        (PBS Professional Administrator's Guide, "User Roles and Required Privilege").
        """
        user, here, server = starting_user().name, getfqdn(), _server()
        host = str(server.get("server_host", ""))
        if user == "root" and same_host(host, here):
            return ""
        lists = (str(server.get(name, "")) for name in ("managers", "operators"))
        listed = [*filter(None, map(str.strip, ",".join(lists).split(",")))]
        hosts = [at for name, _, at in (entry.partition("@") for entry in listed) if name == user]
        for at in hosts:
            if any(fnmatchcase(name, at or "*") for name in (here, gethostname())):
                return ""
        found = f"the managers and operators of {host} are {', '.join(listed) or 'not set'}"
        if hosts:
            shown = f"`getent hosts {here}` on {host} shows the name of this host there"
            raise NodeError(Outcome.UNKNOWN, f"{found}; this host is {here}; {shown}")
        return f"{found}; accepted: a list with {user}@{here}, or root on {host}"


def _qstat(
    *words: str, success: Collection[int] = (0, _UNKNOWN_JOB, _FINISHED_JOB)
) -> dict[str, dict[str, Any]]:
    """Return the attributes of the jobs that a qstat lists; it prints nothing if it has none."""
    command = ("qstat", "-f", "-F", "json", *words)
    output = ask_scheduler(*command, success=success)
    return _entries("qstat", output, "Jobs") if output.strip() else {}


def _not_deleted(job: str) -> SchedulerError | None:
    """Delete a job; return why it cannot be deleted; None if it is, has ended, or ends now."""
    try:
        ended = (0, _UNKNOWN_JOB, _FINISHED_JOB)
        ask_scheduler("qdel", job, success=ended)
    except SchedulerError as error:
        ends = error.code == _BAD_STATE and _qstat(job).get(job, {}).get("job_state", "E") == "E"
        return None if ends else error
    return None


def _waits(fields: Mapping[str, Any]) -> bool:
    return fields.get("job_state") == "Q"


def _stopped(queues: Sequence[str]) -> dict[str, str]:
    """Return why no job of a queue starts, by queue; PBS gives the jobs that reason later."""
    command = ("qstat", "-Q", "-f", "-F", "json", *queues)
    try:
        known = _entries("qstat", ask_scheduler(*command), "Queue")
    except SchedulerError:
        return {}  # the queue of a reservation that has ended, or of another server
    return {
        queue: f"the queue {queue} is stopped"
        for queue, fields in known.items()
        if str(fields.get("started", "")).lower() == "false"
    }


def _state(fields: Mapping[str, Any], stopped: Mapping[str, str]) -> JobStatus:
    """Return the state of a job; `stopped` are the queues that start no job, with the reason."""
    letter, comment = str(fields.get("job_state", "")), str(fields.get("comment", ""))
    state = _STATES.get(letter, State.UNKNOWN)
    code = fields.get("Exit_status")
    if state is State.ENDED_UNKNOWN and isinstance(code, int) and code < 0:
        name, meaning = _EXITS.get(code, ("KILLED", ""))
        state = State[name]
        if code == FIRST_NODE_DIED:
            meaning = f"{meaning}: {str(fields.get('exec_host', '')).partition('/')[0]}"
        comment = "; ".join(filter(None, (f"exit status {code}", meaning, comment)))
    elif state is State.ENDED_UNKNOWN and fields.get("substate") == _TERMINATED:
        state = State.CANCELLED
    elif state is State.ENDED_UNKNOWN and code:
        comment = f"exit status {code}; {comment}"
    elif _waits(fields) and (why := stopped.get(str(fields.get("queue", "")), "")):
        state, comment = State.UNAVAILABLE, why
    elif _waits(fields):
        return waiting_status("pbs", comment, f"{letter} {comment}".strip())
    ending = None
    if state is State.RUNNING:
        name, _ = _EXITS.get(code if isinstance(code, int) else 0, ("", ""))
        ending = State[name] if name else _end_of(comment)
    limit_s = _seconds(fields.get("Resource_List"))
    shown = " ".join(filter(None, (letter, comment)))
    return JobStatus(state, shown, end=ending, limit_s=limit_s)


def _end_of(comment: str) -> State | None:
    """Return how a job ends by what the server appended to its comment; None if nothing."""
    if says(comment, "and terminated"):
        return State.CANCELLED
    return State.TIME_LIMIT if says(comment, "and exceeded resource walltime") else None


def _seconds(resources: Any) -> int:
    """Return the time limit in the resources of a job, ``HH:MM:SS``; 0 if there is none."""
    text = str(resources.get("walltime", "")) if isinstance(resources, dict) else ""
    return seconds_of(text) or 0


def _states(fields: Mapping[str, Any]) -> dict[str, Use]:
    """Return the states of a host, which PBS calls free while a processor of it is."""
    return node_states(fields) | ({"has jobs": Use.OCCUPIED} if fields.get("jobs") else {})


def _comment(fields: Mapping[str, Any]) -> str:
    return str(fields.get("comment", ""))


def _whole(found: Entries, names: Sequence[str], ask: Callable[[], Entries]) -> Entries:
    """Return `found` with the states, jobs and comments of all virtual nodes of each host.

    Args:
        found: the hosts, as pbsnodes lists them without ``-v``.
        ask: returns all virtual nodes; it is called if some of `names` differ.
    """
    differ = {
        name
        for name in names
        if _VARIOUS in (fields := found.get(name, {})).values() or _VARIOUS in _comment(fields)
    }
    if not differ:
        return found
    parts: dict[str, list[Mapping[str, Any]]] = {}
    for name, fields in ask().items():
        resources = fields.get("resources_available")
        host = resources.get("host") if isinstance(resources, dict) else ""
        parts.setdefault(str(host or name), []).append(fields)
    return found | {name: joined(parts[name]) for name in differ & parts.keys()}


def _entries(program: str, text: str, key: str) -> Entries:
    """Return the entries in the JSON that `program` printed.

    Raises:
        SchedulerUnavailable: it is not such JSON; the command may be repeated.
    """
    try:
        return entries(text, key)
    except ValueError:
        raise unreadable(program, "JSON of PBS", text) from None


def _server() -> dict[str, Any]:
    """Return the attributes of the server."""
    text = ask_scheduler("qstat", "-B", "-f", "-F", "json", final=EVERY)
    servers = _entries("qstat", text, "Server")
    if len(servers) != 1:
        raise unreadable("qstat -B", "JSON of one server", text)
    return next(iter(servers.values()))


def _pbsnodes(*arguments: str) -> Entries:
    return _entries("pbsnodes", ask_scheduler("pbsnodes", *arguments, final=EVERY), "nodes")
