"""What messages of programs, launchers and kernels say about why a job failed.

Each line is read by itself: who says it, and what. A communication library that reports
``Input/output error`` names the fabric, and a program that reports it names the file system. A line
that says neither is no evidence.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum


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
    r"PTLTE_NOT_FOUND|denied|exhaust",
)
_SHARED_MEMORY = _any(
    r"/dev/shm|\bshm_open|\bshmget|\bshmat|\bmm_posix|\bmm_sysv|\bmm_xpmem|\buct_mm|\bvader\b",
    r"\bbtl[_:]sm\b|\bbtl[_:]vader|\bknem\b|\bxpmem\b|shared memory (segment|file)",
)
"""Messages about memory that processes of one node share: the fabric has no part in it."""
_GONE = _any(
    r"(?i:\b(reset|closed|hung up) by (the )?(remote )?peer|broken pipe|peer (is )?dead)",
    r"(?i:connection closed by|lost communication with)",
)
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
