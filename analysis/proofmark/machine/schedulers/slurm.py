"""Slurm (20.11 and later; tested with 22.05): its nodes, their states, its partitions and switches.

Source of the states of a node: the tables ``node_states`` and ``node_state_flags``, and the
functions ``node_state_string`` and ``node_state_string_compact``, of
``src/common/slurm_protocol_defs.c`` in the releases 20.11 to 26.05.
"""

from __future__ import annotations

import re
import secrets
import shlex
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from time import monotonic, sleep

from proofmark.common.errors import bad_input
from proofmark.common.nodesets import folded, unfold
from proofmark.common.rights import starting_user
from proofmark.common.text import one_line, whole_number
from proofmark.machine.outcome import NodeError, Outcome
from proofmark.machine.scheduler import (
    NO_SUCH_JOB,
    Ask,
    JobStatuses,
    NodeStates,
    NodeStatuses,
    QueueLimits,
    Queues,
    Request,
    ReservingScheduler,
    SchedulerError,
)
from proofmark.machine.scheduler_commands import (
    Use,
    ask_scheduler,
    cluster_of,
    job_id,
    of_cluster,
    queue_options,
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

FLAGS = words_of("slurm").nodes

OTHER_NAMES, SUFFIXES = words_of("slurm").names, words_of("slurm").marks

_STATES = words_of("slurm").jobs

_LIMITS = ("PartitionName", "MaxTime", "MaxNodes", "MinNodes", "MaxMemPerNode", "MaxCPUsPerNode")
_PER_JOB = "GrpTRES,MaxWall,MaxTRESPerJob,MaxTRESPerNode,MaxTRESMinsPerJob"
_LIMITS_OF_JOBS = f"format=Account,User,{_PER_JOB}"
_QOS_LIMITS = f"format=Name,{_PER_JOB},MinTRESPerJob,MaxTRESPU,MaxTRESPA"
"""What an administrator states for the jobs of a partition, an association and a QOS."""

_NODES, _CPUS, _MEMORY = "partition.nodes_per_job", "queue.cpus_per_node", "queue.memory_per_node"
_KEYS = {"node": _NODES, "cpu": _CPUS, "mem": _MEMORY}

_NO_REASON = "none"
"""The reason that sinfo prints if there is none."""

MIB = 2**20

_KEY_AND_VALUE = re.compile(r"(?:^|\s)([A-Z][A-Za-z]*)=(\S*)")


_POLICY = re.compile(r"\b(?:Assoc|QOS)\w+")

_UNNAMED = "job submit limit"
"""A part of the message of sbatch for all limits of accounting, before the one that is reached."""

_ID = r"\s*([0-9]+)(?:;\S*)?\s*"

_FIELDS = "--format=%i|%T|%r"

_NO_JOB = "Invalid job id"
"""A part of the message of squeue if slurmctld has no such job, or has forgotten it."""

ANSWER_S = 20.0
"""The longest wait for the first answer of nodes that were resumed."""

_NAME_WIDTH = 256
"""sinfo cuts a longer name. Slurm's own limit of a host name is 64 characters."""

OPERATORS = ("Operator", "Administrator")
"""The admin levels that may change the state of a node."""


def node_states(text: str) -> dict[str, Use]:
    """Return the flags of a node and their meanings.

    Args:
        text: ``idle+drain`` (StateComplete), ``DRAINED*`` (``%T``) or ``drain*`` (``%t``).
    """
    words: list[str] = []
    for word in text.strip().upper().split("+"):
        name = word.rstrip("".join(SUFFIXES))
        words += OTHER_NAMES.get(name, name).split()
        words += [SUFFIXES[mark] for mark in word[len(name) :]]
    if text.strip().endswith("+"):
        words.append(SUFFIXES["+"])
    return states_of(words, FLAGS)


def read_reasons(text: str, mark: str) -> dict[str, str]:
    """Return the reason of each node; each entry of `text` is ``MARK NODE REASON``.

    A reason may have line breaks. A node of several partitions has several equal entries.
    """
    entries = (entry.partition(" ") for entry in f"\n{text}".split(f"\n{mark} ")[1:])
    reasons = {node: reason.rstrip("\n") for node, _, reason in entries}
    return {node: "" if reason == _NO_REASON else reason for node, reason in reasons.items()}


def fields_of(line: str) -> dict[str, str]:
    """Return the fields of a node; the first of a name, because a reason may contain any text."""
    fields: dict[str, str] = {}
    for key, value in _KEY_AND_VALUE.findall(line):
        if value not in ("", "(null)"):
            fields.setdefault(key, value)
    return fields


def _amount(resources: str, name: str, absent: float) -> float:
    """Return the amount of a resource in ``cpu=8,mem=4G,node=2``, memory in MiB, or `absent`."""
    match = re.search(rf"(?:^|,){name}=(\d{{1,15}}(?:\.\d{{1,3}})?)([KMGTP]?)(?:,|$)", resources)
    if match is None:
        return absent
    power = 10 * " KMGTP".index(match[2] or " ")
    return float(match[1]) * 2.0 ** (power - 20 if name == "mem" and power else power)


@dataclass(frozen=True)
class _ListedJob:
    """A job as squeue lists it with `_FIELDS`; `said` is the reason in Slurm's words."""

    id: str
    state: str
    said: str


class Slurm(ReservingScheduler):
    """Slurm (20.11 and later; tested with 22.05)."""

    poll_s = 15.0
    isolates_jobs = True
    starts_when_stopped = False  # "Job/step already completing or completed"
    stop_command = "scancel"

    def __init__(self) -> None:
        self._exceeding: dict[tuple[str, str], bool] = {}  # of a job and its reason

    def header(self, request: Request) -> list[str]:
        """Return the directives, ``#SBATCH OPTION``.

        Before Slurm 22.05 srun requests the CPUs of a task of the job for each rank.

        Raises:
            BadInput: the options of the queue name several clusters.
        """
        cluster = cluster_of(request.queue)
        if "," in cluster or cluster == "all":
            found = f"--clusters={cluster}"
            raise bad_input("partition", "queue.options", found, "one cluster, that of the nodes")
        lines = [f"#SBATCH {option}" for option in _options(request)]
        return lines if request.queue.exclusive else [*lines, "unset SLURM_CPUS_PER_TASK"]

    def host_list(self, request: Request) -> str:
        """Return the nodes, one a line, for ``--nodefile``."""
        return "".join(f"{node}\n" for node in request.nodes)

    def fan_out(self, request: Request) -> list[str]:
        """Return ``on_all`` by srun: once on every node that the job still has.

        After a node failure Slurm miscounts the free CPUs of the job; ``--overlap`` avoids that.
        """
        return [
            "on_all() {",
            'count=$(squeue --noheader --all --jobs="$SLURM_JOB_ID" --format=%D) &&',
            '[ -n "$count" ] || count=$SLURM_JOB_NUM_NODES',
            'exec srun --nodes="$count" --ntasks="$count" --ntasks-per-node=1 --no-kill \\',
            "--wait=0 --kill-on-bad-exit=0 --overlap --mpi=none --cpu-bind=none --input=none \\",
            'sh "$@"',
            "}",
        ]

    def submit(self, script: Path, request: Request) -> str:
        """Submit `script`."""
        return job_id("sbatch", _sbatch("--parsable", script), _ID, submitted=True)

    def trial(self, script: Path, request: Request) -> bool:
        """Ask by ``sbatch --test-only``. It does not compare the time limit of a partition."""
        _sbatch("--test-only", script)
        return True

    def queue_limits(self, ask: Ask) -> Queues:
        """Return the limits of all partitions."""
        printed = ask("scontrol", "--all", "--oneliner", "show", "partition")
        listed = [fields_of(line) for line in printed.splitlines()]
        return {
            fields["PartitionName"]: QueueLimits(
                default=fields.get("Default") == "YES",
                max_walltime_s=seconds_of(fields.get("MaxTime", "")),
                # UNLIMITED is no number, and 0 no limit.
                max_nodes=whole_number(fields.get("MaxNodes", "")) or None,
                closed=fields["State"] if fields.get("State", "UP") != "UP" else "",
                source="scontrol show partition",
            )
            for fields in listed
            if "PartitionName" in fields
        }

    def find(self, name: str) -> str:
        """Return the id of the job `name`; empty if there is none."""
        command = self._squeue("--format=%i", f"--name={name}")
        return job_id("squeue", ask_scheduler(*command), _ID)

    def states(self, ids: Sequence[str]) -> JobStatuses:
        """Return the state of each job, by one squeue, which lists ended jobs until MinJobAge."""
        # Without --jobs: squeue fails if one of the ids is unknown.
        found = _listed(*self._squeue(_FIELDS, "--states=all"))
        return {job: self._status(found[job]) for job in ids if job in found}

    def ended(self, job: str) -> JobStatus | None:
        """Return the state by a squeue for this job alone, else by sacct."""
        forgotten = False
        try:
            if found := _listed(*self._of_job(job, _FIELDS)).get(job):
                return status_of_job(found.state, found.said)
        except SchedulerError as error:
            forgotten = says(error.answer, _NO_JOB)
            if not forgotten:
                raise
        options = ("--noheader", "--parsable2", "--allocations", f"--jobs={job}", "--format=State")
        try:
            words = ask_scheduler(*self._in_clusters("sacct", *options)).split()
        except SchedulerError:
            words = []  # the site has no accounting
        if words:
            return status_of_job(words[0], "")
        return NO_SUCH_JOB if forgotten else None

    def cancel(self, ids: Sequence[str]) -> None:
        """Cancel the jobs; a job that has ended is no error."""
        ask_scheduler(*self._in_clusters("scancel", "--quiet", *ids))

    def had_nodes(self, job: str) -> bool:
        """Return whether squeue still lists nodes of the ended job."""
        return bool(ask_scheduler(*self._of_job(job, "--format=%N")).strip())

    def limits(self, job: str) -> str:
        """Return the limits of the partition, the QOS and the association of a job in the queue."""
        found = []
        for _, stated in self._limits_of(job):
            found += [f"{key}={value}" for key, value in stated.items() if value]
        return ", ".join(found)

    def _limits_of(self, job: str) -> list[tuple[str, dict[str, str]]]:
        asked = ask_scheduler(*self._of_job(job, "--format=%P|%q|%a"))
        partition, qos, account = (*asked.strip().split("|"), "", "", "")[:3]
        show = self._in_clusters("scontrol", "--oneliner", "show", "partition", partition)
        fields = fields_of(ask_scheduler(*show))
        found = [("partition", {key: fields[key] for key in _LIMITS if key in fields})]
        user = starting_user().name
        names = f"name={qos},{fields.get('QoS', '')}"
        of_account = ("association", f"account={account}", _LIMITS_OF_JOBS)
        for query in (("qos", names, _QOS_LIMITS), of_account):
            with suppress(SchedulerError):  # the site has no accounting
                printed = ask_scheduler("sacctmgr", "--parsable2", "show", *query).splitlines()
                head, *rows = (line.split("|") for line in printed)
                stated = (dict(zip(head, row, strict=True)) for row in rows)
                found += [(query[0], each) for each in stated if each.get("User", "") in ("", user)]
        return found

    def _status(self, job: _ListedJob) -> JobStatus:
        """Return the status of a job. A job of whole nodes does not request CPUs or memory."""
        status = self._shown(job)
        if self.queue.exclusive and status.key in (_CPUS, _MEMORY):
            of_node = job.said in words_of("slurm").of_node
            return replace(status, key="queue.exclusive" if of_node else _NODES)
        return status

    def _shown(self, job: _ListedJob) -> JobStatus:
        """Return the status of a job, with the key to change if it alone exceeds its group's limit.

        Else it waits for the other jobs of the group. Slurm is asked once for each reason.
        """
        status = status_of_job(job.state, job.said)
        limit = words_of("slurm").of_groups.get(job.said)
        if status.state is not State.WAITING or limit is None:
            return status
        asked = (job.id, job.said)
        if asked not in self._exceeding:
            try:
                self._exceeding[asked] = self._exceeds(job.id, *limit)
            except (SchedulerError, ValueError):
                return status  # no answer that can be read
        never = self._exceeding[asked]
        return replace(status, state=State.UNAVAILABLE, key=_KEYS[limit[2]]) if never else status

    def _exceeds(self, job: str, owner: str, column: str, name: str) -> bool:
        """Return whether a job needs more than a limit for all jobs of its group."""
        show = self._in_clusters("scontrol", "--oneliner", "show", "job", job)
        fields = fields_of(ask_scheduler(*show))
        needed = _amount(fields.get("ReqTRES", fields.get("TRES", "")), name, 0.0)
        if (name, fields.get("OverSubscribe")) == ("cpu", "NO"):
            # Whole nodes: Slurm states one CPU of each before it starts the job.
            nodes = unfold([fields.get("ReqNodeList", "")])
            printed = ask_scheduler(*self._by_node(nodes, "--format=%N %c")).splitlines()
            of_nodes = dict(line.split(maxsplit=1) for line in printed)
            needed = sum(map(int, of_nodes.values()))
        return any(
            by == owner and needed > _amount(stated.get(column, ""), name, inf)
            for by, stated in self._limits_of(job)
        )

    def nodes(self, names: Sequence[str]) -> NodeStates:
        """Return the state of each node, by one sinfo, and the reasons by another."""
        asked = set(names)
        printed = ask_scheduler(*self._by_node(names, "--format=%N|%T"))
        rows = (line.split("|") for line in printed.splitlines() if "|" in line)
        shown = {row[0]: row[1].strip() for row in rows if row[0] in asked}
        reasons = self._reasons(names)
        return {
            node: state_of(node_states(state), state, one_line(reasons.get(node, "")))
            for node, state in shown.items()
        }

    def node_status(self, nodes: Sequence[str]) -> NodeStatuses:
        """Return the status of each node: its state and its reason.

        A reason is any text. It is read by a call of its own, so that no part of it is a state.
        """
        flags = self._flags(nodes)
        reasons = self._reasons(nodes)
        return {
            node: status_of(flags[node], reasons[node])
            if node in flags and node in reasons
            else self.unlisted("sinfo")
            for node in nodes
        }

    def drain(self, nodes: Sequence[str], reason: str) -> None:
        """Drain the nodes with `reason`."""
        self._scontrol("update", f"NodeName={folded(nodes)}", "State=DRAIN", f"Reason={reason}")

    def resume(self, nodes: Sequence[str]) -> None:
        """Resume the nodes, and wait until their daemons answer, at most `ANSWER_S`.

        Slurm takes a node for silent until the first answer after its resume.
        """
        self._scontrol("update", f"NodeName={folded(nodes)}", "State=RESUME")
        end = monotonic() + ANSWER_S
        with suppress(NodeError):  # they are resumed
            while any("NOT_RESPONDING" in flags for flags in self._flags(nodes).values()):
                if monotonic() > end:
                    break
                sleep(0.5)

    def reservations(self) -> dict[str, list[str]]:
        """Return the nodes of each active reservation.

        Raises:
            NodeError: UNEXPECTED: slurmctld refuses, or the names of nodes cannot be read.
        """
        text = self._scontrol("--oneliner", "show", "reservation")
        found: dict[str, list[str]] = {}
        for line in text.splitlines():
            words = (word.partition("=") for word in reversed(line.split()))
            fields = {key: value for key, _, value in words}  # the first of equal keys counts
            if "ReservationName" not in fields or fields.get("State") != "ACTIVE":
                continue
            nodes = fields.get("Nodes", "")
            try:
                members = unfold([nodes]) if nodes not in ("", "(null)") else []
            except ValueError as error:
                raise NodeError(Outcome.UNEXPECTED, f"scontrol show reservation: {error}") from None
            found[fields["ReservationName"]] = members
        return found

    def reserve(self, name: str, nodes: Sequence[str], user: str) -> None:
        """Reserve `nodes` for `user` for a year (scontrol(1), RESERVATIONS).

        IGNORE_JOBS accepts nodes with jobs, which continue. OVERLAP accepts nodes of a reservation
        that begins later.
        """
        names = f"Nodes={folded(nodes)}"
        if name in self.reservations():
            self._scontrol("update", f"ReservationName={name}", names)
            return
        window = ("StartTime=now", "Duration=infinite")
        flags = "Flags=IGNORE_JOBS,OVERLAP"
        create = ("create", "reservation", f"ReservationName={name}")
        self._scontrol(*create, names, f"Users={user}", *window, flags)

    def delete_reservation(self, name: str) -> None:
        """Delete the reservation `name`."""
        self._scontrol("delete", f"ReservationName={name}")

    def missing_permission(self, node: str) -> str:
        """Return why this user may not drain `node`; empty if the user may. It changes nothing.

        root, SlurmUser and users with one of the admin levels `OPERATORS` may change a node
        (scontrol(1), update; sacctmgr(1), AdminLevel). Slurm keeps admin levels in slurmdbd.
        """
        printed = self._scontrol("show", "config")
        settings = dict(re.findall(r"^\s*(\S+)\s*=\s*(.*?)\s*$", printed, re.MULTILINE))
        user, slurm_user = starting_user(), settings.get("SlurmUser", "")
        if user.number == 0 or slurm_user.endswith(f"({user.number})"):
            return ""
        accepted = f"accepted: root, SlurmUser {slurm_user}, or an admin level of {OPERATORS}"
        if not settings.get("AccountingStorageType", "").endswith("slurmdbd"):
            return f"{user.name} has no admin level, because Slurm has no slurmdbd; {accepted}"
        level = _admin_level(user.name)
        if level in OPERATORS:
            return ""
        return f"{user.name} has the admin level {level!r}; {accepted}"

    def _in_clusters(self, program: str, *arguments: str) -> list[str]:
        """Return a command for the cluster of the queue, which need not be that of this host."""
        return [*of_cluster(self.queue, program), *arguments]

    def _squeue(self, form: str, *options: str) -> list[str]:
        """Return a squeue for the jobs of this user, also those in partitions that are hidden."""
        own = ("--noheader", "--all", f"--user={starting_user().number}")
        return self._in_clusters("squeue", *own, *options, form)

    def _of_job(self, job: str, form: str) -> list[str]:
        options = ("--noheader", "--all", "--states=all", f"--jobs={job}", form)
        return self._in_clusters("squeue", *options)

    def _by_node(self, nodes: Sequence[str], form: str) -> list[str]:
        """Return a sinfo for nodes, also those in partitions that are hidden from this user."""
        which = ("--noheader", "--all", "--Node", f"--nodes={folded(nodes)}")
        return self._in_clusters("sinfo", *which, form)

    def _flags(self, nodes: Sequence[str]) -> dict[str, dict[str, Use]]:
        """Return the states of each node that sinfo lists, without a text that somebody typed."""
        # The longest list of state flags has about 200 characters.
        form = f"--Format=NodeList:{_NAME_WIDTH},StateComplete:512"
        rows = (line.split() for line in _ask(*self._by_node(nodes, form)).splitlines())
        return {row[0]: node_states("+".join(row[1:])) for row in rows if row}

    def _reasons(self, nodes: Sequence[str]) -> dict[str, str]:
        mark = secrets.token_hex(8)  # no reason has this word at the start of a line
        form = f"--format={mark} %N %E"
        return read_reasons(_ask(*self._by_node(nodes, form)), mark)

    def _scontrol(self, *arguments: str) -> str:
        return _ask(*self._in_clusters("scontrol", *arguments))


def status_of_job(name: str, said: str) -> JobStatus:
    """Return the status of a job in the state `name`, for which Slurm has the reason `said`."""
    shown = " ".join(filter(None, (name, "" if said == "None" else said)))
    if name == "PENDING":
        code = said.partition(",")[0].replace("_", " ").strip("() ")
        return waiting_status("slurm", code, shown)
    return JobStatus(_STATES.get(name, State.UNKNOWN), shown)


def _is_limit(code: int, message: str) -> bool:
    """Return whether sbatch refuses because of the number of submitted jobs.

    It prints the name of the limit (``AssocMaxSubmitJobLimit``, ``QOSMaxSubmitJobPerUserLimit``).
    Those of the size of a job are final.
    """
    if named := _POLICY.findall(message):
        return any("Submit" in name for name in named)
    return _UNNAMED in message


def _options(request: Request) -> list[str]:
    queue = request.queue
    values = {
        "job-name": request.name,
        "nodefile": shlex.quote(f"{request.host_file}"),
        "nodes": str(len(request.nodes)),
        "time": request.clock,
        "output": shlex.quote(f"{request.log}"),
        "open-mode": "append",
    }
    options = [f"--{name}={value}" for name, value in values.items()]
    options += ["--no-requeue"]  # a job that is run again is a new attempt, which the kit starts
    options += _resources(request)
    options += ["--no-kill"] if request.independent and len(request.nodes) > 1 else []
    return [*options, *queue_options(queue)]


def _resources(request: Request) -> list[str]:
    """Return the CPUs and the memory of each node; ``--mem=0`` is all its memory."""
    queue = request.queue
    if queue.exclusive:
        return ["--exclusive", "--mem=0"]
    memory = f"{queue.memory_per_node // 2**20}M" if queue.memory_per_node else "0"
    return ["--ntasks-per-node=1", f"--cpus-per-task={request.cpus}", f"--mem={memory}"]


def _listed(*command: str) -> dict[str, _ListedJob]:
    """Return the jobs that a squeue with `_FIELDS` lists, by their ids.

    In a federation it also lists the copies of a job on other clusters, which are REVOKED.
    """
    output = ask_scheduler(*command)
    rows = [line.split("|", 2) for line in output.splitlines() if line.count("|") >= 2]
    if output.strip() and not rows:
        raise unreadable("squeue", "a list of jobs", output)
    rows.sort(key=lambda row: row[1] != "REVOKED")
    return {row[0]: _ListedJob(*row) for row in rows}


def _admin_level(user: str) -> str:
    """Return the admin level of `user`; empty if the user is not in the accounting database.

    Raises:
        NodeError: UNKNOWN: slurmdbd does not answer, or there is no sacctmgr on this host.
    """
    options = ("--noheader", "--parsable2")
    query = ("show", "user", f"name={user}", "format=AdminLevel")
    try:
        return ask_scheduler("sacctmgr", *options, *query).strip()
    except NodeError as error:
        shown = f"`sacctmgr {' '.join(query)}` shows the admin level on a host of Slurm"
        raise NodeError(Outcome.UNKNOWN, f"{error.text}; {shown}") from None


def _sbatch(option: str, script: Path) -> str:
    return ask_scheduler("sbatch", option, str(script), final="slurm", limit=_is_limit)


def _ask(*command: str) -> str:
    return ask_scheduler(*command, final="slurm")
