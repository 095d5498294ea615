"""Grid Engine 6 and later (Sun, Univa, Son of Grid Engine), its XML and its queue instances."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from proofmark.common.grouping import gathered
from proofmark.common.rights import starting_user
from proofmark.machine.scheduler import (
    BUSY,
    NO_SUCH_JOB,
    Ask,
    JobStatuses,
    NodeState,
    NodeStates,
    NodeUse,
    QueueLimits,
    Queues,
    Request,
    Scheduler,
    SchedulerError,
)
from proofmark.machine.scheduler_commands import (
    as_argument,
    ask_scheduler,
    directives,
    job_id,
    last_lines,
    named_blocks,
    one_by_one,
    says,
    seconds_of,
    state_of,
    states_of,
    unreadable,
    waiting_status,
    words_of,
)
from proofmark.runs.job_folder import JobStatus, State

QUEUE_STATES = words_of("sge").nodes

DEFAULT_QUEUE = "all.q"

_ELEMENT = re.compile(r"(\s*<(\w+)(?:\s[^<>]*)?>)(.*)(</\2>\s*)")

_FORBIDDEN = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that no XML text may contain (XML 1.0, Char)."""

_LOOSE = re.compile(r"&(?!(?:#\d+|#x[0-9a-fA-F]+|amp|lt|gt|quot|apos);)")


_NO_JOB = "do not exist"
"""A part of the message of ``qstat -j`` if qmaster has no such job."""

_NEVER = "verification: no suitable queues"
"""The answer of ``qalter -w v`` if not even an empty cluster can run the job."""

_ANSWERS = re.compile(r"[\s\S]*?\bverification: .*")
"""What qalter prints about one job."""

_TRY_LATER = 25
"""The exit code of qsub at the limits max_u_jobs and max_jobs: qsub(1), EXIT STATUS."""

_STATES = words_of("sge").jobs

_FAILURES = words_of("sge").ends


def read_xml(text: str) -> ElementTree.Element:
    """Return the root of XML of Grid Engine, which need not escape the names that people gave.

    Such a text is read again without control characters. Grid Engine prints one element a line.

    Raises:
        ValueError: it is no XML even then.
    """
    try:
        return ElementTree.fromstring(text)
    except ElementTree.ParseError:
        pass
    lines = map(_repaired, _FORBIDDEN.sub("?", text).split("\n"))
    try:
        return ElementTree.fromstring("\n".join(lines))
    except ElementTree.ParseError as error:
        raise ValueError(f"{error}") from None


def _repaired(line: str) -> str:
    match = _ELEMENT.fullmatch(line)
    if match is None:
        return _LOOSE.sub("&amp;", line)
    begin, _, inside, end = match.groups()
    try:
        ElementTree.fromstring(line)
    except ElementTree.ParseError:
        return f"{begin}{escape(inside)}{end}"
    return line


class GridEngine(Scheduler):
    """Grid Engine 6 and later: Sun, Univa, and Son of Grid Engine (Debian)."""

    poll_s = 15.0
    isolates_jobs = True
    stop_command = "qdel"
    confines_to_cpus = False

    def header(self, request: Request) -> list[str]:
        """Return the directives, ``#$ OPTION``, without the nodes."""
        queue, count = request.queue, len(request.nodes)
        slots = f"{queue.parallel_environment or 'proofmark'} {count * (queue.cpus_per_node or 1)}"
        options = {
            "-N": request.name,
            "-S": "/bin/sh",
            "-pe": slots if count > 1 or queue.parallel_environment else "",
            "-l": f"h_rt={request.seconds}",
            "-j": "y",
            "-o": shlex.quote(f"{request.log}"),
            "-notify": " ",  # SIGUSR2 before SIGKILL: the job can probe its nodes
            "-r": "n",  # a job that is run again is a new attempt, which the kit starts
            "-A": queue.account,
            "-ar": queue.reservation,
        }
        exclusive = ["-l exclusive=true"] if queue.exclusive else []
        by_hand = f'# qsub -q "$(cat {shlex.quote(str(request.host_file))})" job.sh'
        return [*directives("#$", options, [*exclusive, *queue.options]), by_hand]

    def host_list(self, request: Request) -> str:
        """Return the queue instances of the nodes, which `submit` passes as an argument."""
        name = request.queue.name or DEFAULT_QUEUE
        return as_argument(",".join(f"{name}@{node}" for node in request.nodes), request)

    def fan_out(self, request: Request) -> list[str]:
        """Return ``on_all`` by qrsh inside the job, one qrsh per node."""
        return one_by_one(request.nodes, 'qrsh -inherit -nostdin "$node"')

    def submit(self, script: Path, request: Request) -> str:
        """Submit `script`."""
        output = self._qsub(script, request, "-terse")
        return job_id("qsub", output, r"\s*([0-9]+)\s*", submitted=True)

    def trial(self, script: Path, request: Request) -> bool:
        """Ask by ``qsub -w v``: whether an empty cluster can run the job."""
        self._qsub(script, request, "-w", "v")
        return True

    def _qsub(self, script: Path, request: Request, *options: str) -> str:
        return ask_scheduler(
            *("qsub", *options, "-q", self.host_list(request), str(script)),
            final="sge",
            limit=lambda code, message: code == _TRY_LATER,
        )

    def queue_limits(self, ask: Ask) -> Queues:
        """Return the longest run time of each queue, if all of its hosts have the same one."""
        limits: Queues = {}
        names = ask("qconf", "-sql").split()
        printed = ask("qconf", "-sq", ",".join(names)) if names else ""
        for name, block in named_blocks(printed, "qname +").items():
            time = re.search(r"^h_rt +(\S+)", block, re.MULTILINE)
            limits[name] = QueueLimits(
                default=name == DEFAULT_QUEUE,
                max_walltime_s=seconds_of(time[1]) if time else None,
                source="qconf -sq",
            )
        return limits

    def find(self, name: str) -> str:
        """Return the id of the job `name`; empty if there is none."""
        return next((job for job, _, job_name in _queue() if job_name == name), "")

    def states(self, ids: Sequence[str]) -> JobStatuses:
        """Return the state of each job, by one qstat, which lists no ended job.

        Of those that wait one ``qalter -w v`` says whether an empty cluster could run them.
        """
        found = {job: _state(letters) for job, letters, _ in _queue() if job in ids}
        waiting = [job for job, status in found.items() if status.state is State.WAITING]
        for job, never in _never(waiting).items():
            found[job] = waiting_status("sge", never, f"{found[job].reason} {never}")
        return found

    def ended(self, job: str) -> JobStatus | None:
        """Return the state by ``qstat -j``, else by qacct, whose records are some seconds late.

        ``qstat -j`` lists a job by its number. A job that runs has a line of its usage there.
        """
        try:
            known = ask_scheduler("qstat", "-j", job)
            runs = any(line.startswith("usage") for line in known.splitlines())
            return JobStatus(State.RUNNING if runs else State.WAITING, "only qstat -j lists it")
        except SchedulerError as error:
            if not says(error.answer, _NO_JOB):
                raise
        try:
            output = ask_scheduler("qacct", "-j", job)
        except SchedulerError:
            output = ""
        fields = dict(re.findall(r"^(\S+) +(.*\S)", output, re.MULTILINE))
        failed = fields.get("failed", "")
        if not failed:
            return NO_SUCH_JOB
        number, *_ = failed.split()
        deleted_by = fields.get("deleted_by", "NONE")
        if failed != "0" and deleted_by not in ("NONE", "unknown"):
            return JobStatus(State.CANCELLED, f"by {deleted_by}")
        return JobStatus(_FAILURES.get(number, State.NODE_FAILED), "" if number == "0" else failed)

    def cancel(self, ids: Sequence[str]) -> None:
        """Delete the jobs; a job that has ended is no error."""
        ask_scheduler("qdel", ",".join(ids), success=(0, 1))

    def nodes(self, names: Sequence[str]) -> NodeStates:
        """Return the state of each node, by one qstat for all queue instances and no jobs.

        A node is down if all its queue instances are, and busy if a slot of one is used.
        """
        found = gathered(  # not from the table of qstat -f: it cuts long names
            (each.findtext("name", "").partition("@")[2], _instance(each))
            for each in _qstat("-f", "-u", "nobody").iter("Queue-List")
        )
        order = (NodeUse.DOWN, NodeUse.RESERVED, NodeUse.IDLE, NodeUse.BUSY)
        return {
            name: max(found[name], key=lambda state: order.index(state.use))
            for name in names
            if name in found
        }


def _qstat(*options: str) -> ElementTree.Element:
    """Return the XML of a qstat for all states: a file .sge_qstat can have other options."""
    output = ask_scheduler("qstat", "-xml", "-s", "prs", *options)
    try:
        return read_xml(output)
    except ValueError:
        raise unreadable("qstat", "XML", output) from None


def _queue() -> list[tuple[str, str, str]]:
    """Return number, state letters and name of every job of this user."""
    jobs = _qstat("-u", starting_user().name).iter("job_list")
    return [
        (
            job.findtext("JB_job_number", ""),
            job.findtext("state", ""),
            job.findtext("JB_name", ""),
        )
        for job in jobs
        if job.findtext("JB_job_number", "").isdecimal()
    ]


def _never(jobs: Sequence[str]) -> dict[str, str]:
    """Return why no queue can ever run those of `jobs` for which that is so.

    qalter answers about each job in turn: lines with its number, then one line with the result. An
    answer with another number of results says nothing.
    """
    if not jobs:
        return {}
    try:
        ask_scheduler("qalter", "-w", "v", ",".join(jobs))
    except SchedulerError as error:
        answers = _ANSWERS.findall(error.answer)
        if len(answers) == len(jobs):
            told = zip(jobs, answers, strict=True)
            return {job: last_lines(text) for job, text in told if says(text, _NEVER)}
    return {}


def _state(letters: str) -> JobStatus:
    state = next((state for letter, state in _STATES.items() if letter in letters), State.UNKNOWN)
    return JobStatus(state, letters, end=State.CANCELLED if "d" in letters else None)


def _instance(instance: ElementTree.Element) -> NodeState:
    """Return the state of a queue instance of a node."""
    letters = instance.findtext("state", "").strip()
    state = state_of(states_of(letters, QUEUE_STATES) if letters else {}, letters, "")
    used = instance.findtext("slots_used", "0").strip() != "0"
    return BUSY if state.use is NodeUse.IDLE and used else state
