"""Why a job of a stability run failed: node, fabric, file system, scheduler, program or unknown.

The first rule that applies decides. A cause is named only if something shows it. An exit code alone
shows none: such a job is unknown, and counts as an interrupt of the machine.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from signal import SIGFPE, SIGILL, SIGSEGV
from typing import Literal

from proofmark.judge.executions import CRASHES
from proofmark.packages.stability.job_messages import Said, said
from proofmark.runs.job_folder import State
from proofmark.runs.stability_log import JobRun
from proofmark.site.contract_document import JobCause

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
    | {State.SUSPENDED, State.UNKNOWN, State.UNREACHABLE, State.UNAVAILABLE, State.WAITING}
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
        said: the messages of the program and of the script of its job.
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
    if Said.FABRIC in shows and not run.withdrawn:
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
