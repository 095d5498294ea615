"""Messages about a run that failed or did not end by itself."""

from __future__ import annotations

from proofmark.common.message import Message

_NO_SPACE = ("No space left on device", "Disk quota exceeded")
_ABORTED = (
    # strerror(3) of ENOSPC, EDQUOT, EIO, ENOTCONN, ESHUTDOWN (a client that Lustre evicted), ESTALE
    # and EROFS. They come first, because they are the cause of the others.
    *_NO_SPACE,
    "Input/output error",
    "Transport endpoint is not connected",
    "Cannot send after transport endpoint shutdown",
    "Stale file handle",
    "Read-only file system",
    "MPI_ABORT was invoked",
    "MPI_Abort(",
    "noticed that process rank",
    "exited with non-zero status",
    "exited on signal",
    "killed by signal",
    "BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES",
    "*** Process received signal ***",
    "*** An error occurred in MPI_",
    "Fatal error in PMPI_",
    "Fatal error in MPI_",
    "slurmstepd: error: ***",
    "srun: error:",
    "DUE TO TIME LIMIT",
    "STEP CANCELLED",
    " CANCELLED AT ",
    "PBS: job killed",
    "TERM_RUNLIMIT",
    "TERM_MEMLIMIT",
    "oom-kill event",
    "oom_kill",
    "Out of memory",
    "Out Of Memory",
    "OUT_OF_MEMORY",
    "out of memory:",
    "Segmentation fault",
    "segmentation fault",
    "Bus error",
    "(core dumped)",
    "forrtl: severe",
    "gzip: unexpected end of file",
)
"""Words of file systems, launchers, resource managers and kernels.

No benchmark that succeeds prints them.
"""


def messages_in(text: str) -> list[Message]:
    """Return a problem for each such message in `text`, the output of one run of a program.

    What stands before the banner of the first run is no part of it: an earlier command of the job
    script printed it.
    """
    found = (words for words in _ABORTED if words in text)
    return [
        Message("reader-no-space" if words in _NO_SPACE else "reader-contains", words=repr(words))
        for words in found
    ]
