"""Why a job of a stability run failed: node, fabric, file system, scheduler, program or unknown.

The first rule that applies decides. A cause is named only if something shows it. An exit code alone
shows none: such a job is unknown, and counts as an interrupt of the machine.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import chain
from signal import SIGFPE, SIGILL, SIGSEGV
from typing import Literal

from proofmark.common.files import paths_in, text_or_empty
from proofmark.judge.executions import CRASHES
from proofmark.packages.stability.job_runs import BLIND_S, JobRun
from proofmark.packages.stability.terms import JobCause
from proofmark.records.read import read_run
from proofmark.records.run_facts import RunParts
from proofmark.runs.attempts import Attempt, attempts, files_reports
from proofmark.runs.job_folder import Look, State, looks_at
from proofmark.runs.nodes import Node, nodes_of
from proofmark.runs.run import Run, benchmarks_of, site_of
from proofmark.runs.run_files import StepFiles
from proofmark.software.software import software_of


class Said(Enum):
    """What a line shows."""

    NODE = "node"
    """The hardware or the kernel of a node failed."""
    FABRIC = "fabric"
    FILE_SYSTEM = "file-system"
    SCHEDULER = "scheduler"
    PROGRAM = "program"
    """The program itself is wrong, or took more than its job may have."""
    PEER = "peer"
    """Another process is gone. Why is not said: a program that crashed, a node, the fabric."""


@dataclass(frozen=True)
class _Rule:
    """A line that has `words`, and `by` if that is given, shows `said`."""

    said: Said | None
    words: re.Pattern[str]
    by: re.Pattern[str] | None = None

    def holds(self, line: str) -> bool:
        return bool(self.words.search(line)) and (self.by is None or bool(self.by.search(line)))


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns))


_COMMUNICATION = _any(
    # libfabric and its providers, MPICH and Cray MPICH, UCX, verbs, PSM, Open MPI, GNI, NCCL
    r"\bOFI\b|\bofi_|libfabric|\bfi_[a-z]|MPIDI?_OFI|MPIDI_|\bnetmod",
    r"\bUCX\b|\buc[pst]_|\bUCS_|ib_mlx5|ib_log|\bpml_ucx|rc_mlx5|dc_mlx5|ud_mlx5|rc_verbs|dc_verbs",
    r"\bibv_|\bmlx[45]|\bmthca|\bRDMA\b|\brdma|\bverbs\b|InfiniBand|\bIB\b|\bRoCE\b|\bQP\b|/IB\b",
    r"\bhfi1?[_ ]|\bhfi1|PSM[23]|psm[23]|\bpsmx?_|\bips_proto|[Oo]mni-?[Pp]ath|\bopa[_-]",
    r"\bcxi|\bCXI|\bPTLTE?_|[Ss]lingshot|\bGNI|\bgnix?_|\bkfi",
    r"\bbtl[_:]|\bmtl[_:]|\bopenib\b|\bEFA\b|\befa\b|\bhcoll|\bSHARP\b|\bsharp_|\bNCCL\b|\bRCCL\b",
    r"OpenFabrics|\btofu",
)
"""Who says it: a library or a driver of communication."""
_FAILS = _any(
    r"(?i:error|fail|timed? ?-?out|exceeded|could ?n[o']t|cannot|unable|unreachable|refused)",
    r"(?i:\bdown\b|\blost\b|no space|not active|no hfi units|inactive|undeliverable|aborted)",
    r"denied|exhaust",
)
_SHARED_MEMORY = _any(
    r"/dev/shm|\bshm_open|\bshmget|\bshmat|\bmm_posix|\bmm_sysv|\bmm_xpmem|\buct_mm|\bvader\b",
    r"\bbtl[_:]sm\b|\bbtl[_:]vader|\bknem\b|\bxpmem\b|shared memory (segment|file)",
)
"""Messages about memory that processes of one node share: the fabric has no part in it."""
_GONE = _any(
    r"(?i:\b(reset|closed|hung up) by (the )?(remote )?peer|broken pipe|peer (is )?dead)",
    r"(?i:connection closed by|lost communication with)",
    r"\bPTLTE_NOT_FOUND\b",  # Slingshot: the process at the other end has no portal any more
)
_CRASHED = _any(
    r"(?i:segmentation fault|\bSIGSEGV\b|segfault at|oom[_-]kill|out of memory|OUT_OF_MEMORY)",
    r"(?i:illegal instruction|\bSIGILL\b|floating[- ]point exception|\bSIGFPE\b)",
)
"""A process of the program ended for what it did; the others then lose it."""
_USAGE = _any(
    r"(?i:message truncated|truncated; \d+ bytes|\btruncated\b.*buffer)",
    r"MPI_ERR_(TRUNCATE|COMM|RANK|TAG|TYPE|ARG|COUNT|BUFFER|OP|ROOT|GROUP|REQUEST)\b",
    r"(?i:invalid (communicator|rank|tag|datatype|count|buffer pointer|root|argument to MPI))",
)
_STORAGE = _any(
    r"\bLustre(Error)?\b|\blctl\b|\b(ptlrpc|osc|mdc|llite|ldlm|lov)_|/lustre",
    r"\bGPFS\b|\bmmfs|\bmmfsd|Spectrum Scale|\bbeegfs|\bBeeGFS|\bnfs4?:|\bNFS\b|\bceph:|\bpanfs\b",
    r"\bweka|\bDVS\b|\bEXT4-fs\b|\bXFS\b|\bBTRFS\b|\bFUSE\b|\bfuse:|\bADIOI?O?_|\bMPI_File_|\bROMIO\b",
    r"\bHDF5\b|\bH5F|\bblk_update_request\b|\bI/O error, dev\b|\bBuffer I/O error\b",
)
"""Who says it: a file system, its client in the kernel, or a library of files."""
_OF_STORAGE = _any(
    r"(?i:error|evict|expel|unmount|not responding|timed? ?-?out|fail|shut(ting)? ?down|corrupt)",
    r"(?i:lost|stale|no space|quota)",
)

_RULES = (
    # Hardware: mce, EDAC and the memory failure of Linux; AER; soft lock-ups
    _Rule(
        Said.NODE,
        _any(
            r"(?i:uncorrected (hardware |memory |software-containable )?(memory )?error)",
            r"(?i:uncorrectable (hardware |memory |ECC |parity )*error|Uncorr(ected|ectable) ECC)",
            r"(?i:hardware memory (corruption|error))",
            r"Memory failure: 0x|recovery action for .* page",
            r"(?i:machine check exception|mce: .*(fatal|panic|uncorrected)|MCE.*Bank.*fatal)",
            r"EDAC .*\bUE\b|severity[:=] ?(Uncorrect(ed|able)|[Ff]atal)|\bUNCORR\b",
            r"(?i:kernel panic|soft lockup|hard LOCKUP|self-detected stall|Fatal hardware error)",
        ),
    ),
    # Accelerators. Xid 13, 31, 43 and 45 can be the program, and are no evidence:
    # docs.nvidia.com/deploy/xid-errors
    _Rule(
        Said.NODE,
        _any(
            r"Xid .*?: (48|61|62|63|64|74|79|92|94|95|110|119|120|121|136|137|140|143|154)\b",
            r"(?i:fallen off the bus|GPU is lost|double[- ]bit ECC|\bDBE\b|ECCNotCorrectable)",
            r"(?i:amdgpu.*(RAS|ECC).*uncorrect|amdgpu.*uncorrect|GPU has been lost)",
        ),
    ),
    # Slurm, and others: a node is gone
    _Rule(
        Said.NODE,
        _any(
            r"(?i:node[ _]fail(ure|ed)?\b|\bnode (\S+ )?(is )?(dead|died|down)\b)",
            r"(?i:\bnodes? \S+ (is |are )?not responding)",
        ),
    ),
    _Rule(None, _SHARED_MEMORY),
    _Rule(Said.PROGRAM, _USAGE),
    # LNet on InfiniBand or Slingshot: its timeouts are those of the network
    _Rule(
        Said.FABRIC, _any(r"(?i:timed? ?-?out|network error|conn.*(fail|rac|lost))"), _any("LNet")
    ),
    _Rule(Said.FILE_SYSTEM, _OF_STORAGE, _STORAGE),
    _Rule(Said.PEER, _GONE),
    _Rule(Said.FABRIC, _FAILS, _COMMUNICATION),
    # ibv_wc_status_str(3), UCX and PSM2 without the name of the library
    _Rule(
        Said.FABRIC,
        _any(
            r"(?i:transport retry count(er)? exceeded|RNR retry)",
            r"(?i:remote (access|operation) error)",
            r"(?i:local (QP|protection|length) (operation|error)|work request flushed)",
            r"(?i:endpoint timeout|\bep_connect\b|UNDELIVERABLE|completion with error|flush error)",
            r"(?i:NIC Link is Down|: link (is )?down|link down)",
            r"(?i:\bport \d+.*\b(inactive|down)\b)",
            r"(?i:transmit queue .*timed out|NETDEV WATCHDOG)",
            # strerror(3) of ENETDOWN, ENETUNREACH, EHOSTUNREACH and ETIMEDOUT
            "Network is down|Network is unreachable|No route to host|Connection timed out",
        ),
    ),
    # strerror(3) of EIO, ENOTCONN, ESHUTDOWN (a client that Lustre evicted), ESTALE, EROFS, ENOSPC,
    # EDQUOT and EREMOTEIO
    _Rule(
        Said.FILE_SYSTEM,
        _any(
            "Input/output error|Transport endpoint is not connected|Stale (NFS )?file handle",
            "Cannot send after transport endpoint shutdown|Read-only file system",
            "No space left on device|Disk quota exceeded|Remote I/O error",
            r"MPI_ERR_(IO|NO_SPACE|QUOTA)\b",
        ),
    ),
    _Rule(
        Said.SCHEDULER,
        _any(
            r"DUE TO PREEMPTION|DUE TO (NODE )?RECONFIG|TERM_(OWNER|ADMIN|PREEMPT|FORCE_OWNER)",
            r"(?i:\bmunge\b|unable to contact slurm|credential (expired|revoked|replayed))",
            r"(?i:slurm_receive_msg|job credential|unable to create step)",
            r"(?i:socket timed out on send/recv)",
        ),
    ),
    # The kernel and Slurm, if a job took more memory than it may have. A node whose memory is full
    # without such a limit is no evidence: others may have filled it.
    _Rule(
        Said.PROGRAM,
        _any(
            r"(?i:memory cgroup out of memory|oom[_-]kill event|CONSTRAINT_MEMCG|OUT_OF_MEMORY)",
            r"PBS: job killed: v?mem",
            r"task[s]? .*: Out Of Memory|(?i:exceeded (job|step) memory limit|TERM_MEMLIMIT)",
        ),
    ),
    _Rule(
        Said.PROGRAM,
        _any(
            r"(?i:segmentation fault|\bSIGSEGV\b|segfault at|general protection fault|\bSIGILL\b)",
            r"(?i:illegal instruction|floating[- ]point exception|\bSIGFPE\b|invalid opcode)",
            r"(?i:assertion .*fail|double free|corrupted size|malloc\(\): |stack smashing)",
            r"(?i:forrtl: severe|Fortran runtime error|Traceback \(most recent call last\))",
            r"(?i:error while loading shared libraries|undefined symbol|symbol lookup error)",
            r"(?i:command not found|unrecognized option|invalid option|usage: |illegal value)",
        ),
    ),
)
"""The rules, in their order: the first that holds for a line decides about this line."""


def said(lines: Iterable[str]) -> set[Said]:
    """Return what `lines` show, each by itself; a line that is no evidence shows nothing."""
    return {shown for line in lines if (shown := _of_line(line))}


def _of_line(line: str) -> Said | None:
    return next((rule.said for rule in _RULES if rule.holds(line)), None)


OF_COUNTERS: Mapping[str, Said] = {
    **dict.fromkeys(
        (
            *("meaning-memory-uncorrected", "meaning-memory-uncorrected-nowhere"),
            *("meaning-machine-checks", "meaning-deferred"),
            *("meaning-pcie-fatal", "meaning-pcie-uncorrected"),
        ),
        Said.NODE,
    ),
    "meaning-link-down": Said.FABRIC,
    "meaning-evicted": Said.FILE_SYSTEM,
}
"""What a counter shows that rose on a node of a job, by the code of its meaning."""
OF_SCHEDULER = frozenset(
    {State.REFUSED, State.CANCELLED, State.PREEMPTED, State.REQUEUED, State.VANISHED, State.HELD}
    | {State.SUSPENDED, State.UNKNOWN, State.UNREACHABLE, State.NOT_ACCEPTED, State.UNAVAILABLE}
    | {State.WAITING, State.SIGNALLED}
)
"""The scheduler or another user ended a job with this state, or the job never ran."""
INVALID: Literal["invalid"] = "invalid"
"""The end of a job whose result is no measurement, because of the conditions of the run."""
JobEnd = JobCause | Literal["invalid"]
"""Why a job did not finish."""
OF_PROGRAMS = frozenset(128 + signal for signal in (SIGILL, SIGFPE, SIGSEGV))
"""The exit codes of a program that the processor stopped for what it did. SIGABRT is also the end
of a library that lost the fabric, SIGBUS that of a bad memory or a full /dev/shm, and who sent
SIGKILL is not known: these show no cause."""
NEXT_FILE = "\n\f\n"
"""A line between the messages of two files: their order is not that of time."""
_LONGEST_NAME = 15
"""The length to which Linux cuts the name of a program."""


@dataclass(frozen=True)
class NodeShown:
    """What one node of a job shows of the time of the job.

    Attributes:
        kernel: the messages of its kernel about errors.
        counters: the codes of the meanings of the counters that rose.
    """

    kernel: Sequence[str] = ()
    counters: Collection[str] = ()

    def evidence(self, program: str) -> set[Said]:
        """What it shows. A kernel also reports the crashes of other programs than `program`."""
        name = program[:_LONGEST_NAME]
        of_program = said(line for line in self.kernel if name and name in line)
        counted = {OF_COUNTERS[each] for each in self.counters if each in OF_COUNTERS}
        return (said(self.kernel) - {Said.PROGRAM}) | of_program | counted


@dataclass(frozen=True)
class Shown:
    """What the program of a job shows.

    Attributes:
        said: the messages of the program and of the script of its job, with `NEXT_FILE` between.
        nodes: what each of its nodes shows.
        files: whether a node could not use the folder of the step after its end.
        code: the exit code; None if it did not end.
        timed_out: whether the kit stopped it, because it took too long.
        reasons: the codes of the reasons why the execution is INVALID.
    """

    said: str = ""
    nodes: Mapping[str, NodeShown] = field(default_factory=dict)
    program: str = ""
    files: bool = False
    code: int | None = None
    timed_out: bool = False
    reasons: Collection[str] = ()

    @property
    def lost_itself(self) -> bool:
        """Whether only messages after a crash of the program speak of the fabric: its symptom."""
        if any(Said.FABRIC in each.evidence(self.program) for each in self.nodes.values()):
            return False
        for text in self.said.split(NEXT_FILE):
            lines = text.splitlines()
            fabric = [at for at, line in enumerate(lines) if _of_line(line) is Said.FABRIC]
            if fabric and not any(map(_CRASHED.search, lines[: fabric[0]])):
                return False
        return True

    @property
    def evidence(self) -> set[Said]:
        """What messages and counters show."""
        of_nodes = [each.evidence(self.program) for each in self.nodes.values()]
        return said(self.said.splitlines()).union(*of_nodes)

    @property
    def faulty(self) -> set[str]:
        """The nodes whose own kernel or counters show that they failed."""
        nodes = self.nodes.items()
        return {name for name, each in nodes if Said.NODE in each.evidence(self.program)}


def cause_of(run: JobRun, shown: Shown, *, node_down: bool = False) -> JobEnd | None:
    """Return why a job did not finish; None if it finished, has not ended, or was withdrawn.

    A job that the kit cancelled, and that a node or a file system stopped before, has failed.

    Args:
        shown: what its program shows.
        node_down: whether a node of it went down.
    """
    if run.open:
        return None
    crashed = bool(shown.code) or shown.timed_out or not CRASHES.isdisjoint(shown.reasons)
    if run.state is State.ENDED and shown.code is not None and not crashed:
        return INVALID if shown.reasons else None
    if run.state is State.NODE_FAILED or node_down:
        return "node"
    shows = shown.evidence
    if Said.NODE in shows:
        return "node"
    # The end of a job that the kit withdrew disconnects its processes.
    if Said.FABRIC in shows and not run.withdrawn and not shown.lost_itself:
        return "fabric"
    if shown.files or Said.FILE_SYSTEM in shows:
        return "file-system"
    if run.withdrawn:
        return None
    if run.state in OF_SCHEDULER or Said.SCHEDULER in shows:
        return "scheduler"
    if Said.PROGRAM in shows or shown.code in OF_PROGRAMS:
        return "program"
    return "fabric" if Said.PEER in shows else "unknown"


Reasons = Mapping[tuple[str, int], set[str]]
"""The codes why executions are INVALID, by the step and the number of the execution."""


def causes_of(run: Run, jobs: Sequence[JobRun]) -> list[JobEnd | None]:
    """Return why each of `jobs` did not finish.

    None for those that finished, that have not ended, and that the kit withdrew.
    """
    return endings_of(run, jobs)[0]


def endings_of(run: Run, jobs: Sequence[JobRun]) -> tuple[list[JobEnd | None], dict[str, set[str]]]:
    """Return the result of `causes_of`, and the nodes whose hardware failed, by the id of the job.

    The scheduler may not have noticed it: the kernel or a counter of the node shows it.
    """
    if not jobs:
        return [], {}
    faulty: dict[str, set[str]] = {}
    looks, nodes = looks_at(run.files), nodes_of(run)
    reasons = _reasons(run, nodes, {each.job.steps[0].id for each in jobs})
    following: dict[str, float] = {}
    found: list[JobEnd | None] = []
    for each in reversed(jobs):
        until = following.get(each.job.id, float("inf"))
        following[each.job.id] = each.submitted
        shown = _shown(run, each, until, reasons, nodes)
        if shown.faulty:
            faulty.setdefault(each.job.id, set()).update(shown.faulty)
        found.append(cause_of(each, shown, node_down=bool(nodes_lost(each, looks))))
    return found[::-1], faulty


def _reasons(run: Run, nodes: Mapping[str, Node], steps: Collection[str]) -> Reasons:
    parts = RunParts(run, benchmarks_of(run), site_of(run), software_of(run), nodes)
    records = read_run(parts, steps)
    codes: dict[tuple[str, int], set[str]] = {}
    for execution, reason in zip(records.execution.tolist(), records.reason.tolist(), strict=True):
        if reason >= 0:
            made = records.executions[execution]
            key = made.step, made.attempt
            codes.setdefault(key, set()).add(records.reasons[reason].main_code)
    return codes


def _shown(
    run: Run, each: JobRun, until: float, reasons: Reasons, nodes: Mapping[str, Node]
) -> Shown:
    """Return what the newest execution of a submission shows; it began before `until`."""
    step = each.job.steps[0].id
    folder = run.files.step(step).folder
    own = [one for one in attempts(folder) if each.submitted - 1 <= one.start_s < until]
    places = [own[-1].files] if own else [*map(StepFiles, paths_in(folder, "unfinished-*"))]
    outputs = chain.from_iterable((place.stdout, place.stderr) for place in places)
    said = map(text_or_empty, [*outputs, run.files.job(each.job.id).messages])
    if not own:
        return Shown(NEXT_FILE.join(said))
    reports = files_reports(run.files, step, own[-1]).values()
    return Shown(
        NEXT_FILE.join(said),
        nodes={
            host: _node_shown(nodes[host], step, own[-1])
            for host in each.job.nodes
            if host in nodes
        },
        program=each.job.steps[0].program,
        files=any(report.problem for report in reports),
        code=own[-1].rc,
        timed_out=own[-1].timed_out,
        reasons=reasons.get((step, own[-1].number), ()),
    )


def _node_shown(node: Node, step: str, execution: Attempt) -> NodeShown:
    kernel, counters = list[str](), set[str]()
    for job in node.jobs:
        if job.covers(step, execution):
            kernel += job.provenance.kernel
            rose = (change for change in job.provenance.changes if change.difference)
            counters |= {change.meaning.code for change in rose}
    return NodeShown(kernel, counters)


def nodes_lost(each: JobRun, looks: Sequence[Look]) -> set[str]:
    """Return the nodes of a job that went down while it ran, or until the first look after it.

    The kit cancels jobs when it stops itself, so that it may not look again for days: after such a
    job only a look that follows soon counts.
    """
    if not each.started <= each.ended:
        return set()
    before = [look for look in looks if look.time <= each.started]
    during = [look for look in looks if each.started < look.time < each.ended]
    late = each.ended + BLIND_S if each.withdrawn else float("inf")
    after = [look for look in looks if each.ended <= look.time <= late]
    later = set(chain.from_iterable(look.down for look in (*during, *after[:1])))
    return (later - (before[-1].down.keys() if before else set())) & {*each.job.nodes}
