"""The causes of failed jobs by the messages of programs, libraries, schedulers and kernels."""

from __future__ import annotations

import csv
import re

import pytest
from tests.folders import DATA
from tests.packages.stability.test_stability import job

from proofmark.packages.stability.job_causes import (
    NEXT_FILE,
    OF_COUNTERS,
    JobEnd,
    NodeShown,
    Said,
    Shown,
    cause_of,
)
from proofmark.runs.job_folder import State
from proofmark.site.node.counters import meaning_of

LINES = [
    line
    for line in (DATA / "job-messages.tsv").read_text(encoding="utf-8").splitlines()
    if not line.startswith("#")
]
TABLE = [*csv.DictReader(LINES, delimiter="\t", quoting=csv.QUOTE_NONE)]
NAMES = [f"{number}-{row['cause']}" for number, row in enumerate(TABLE, 1)]
NOISE = (
    "T/V                N    NB     P     Q               Time                 Gflops",
    "WR11C2R4      29184   192     2     2              12.34             1.3432e+03",
    "==== backtrace (tid:2330856) ====",
    " 3  /usr/lib64/libucs.so.0(ucs_log_dispatch+0xdc) [0x7fada5838f8c]",
    "srun: Terminating StepId=208676.0",
    "",
)
"""Lines of jobs that fail and of others: they are no evidence."""


def shown(row: dict[str, str], *, before: str = "", after: str = "") -> Shown:
    """Return what a job shows whose program or kernel printed the message of `row`."""
    text, code = row["text"], int(row["code"])
    if row["origin"] == "kernel":
        nodes = {"n1": NodeShown(), "n2": NodeShown([f"[ 7000.000001] {text}"])}
        return Shown(f"{before}\n{after}", nodes=nodes, code=code, program="fake")
    return Shown(f"{before}\n{text}\n{after}", code=code, program="fake")


def test_the_table_has_every_cause() -> None:
    assert len(TABLE) >= 60
    assert {row["cause"] for row in TABLE} == {
        *("node", "fabric", "file-system", "scheduler", "program", "unknown")
    }
    assert len({row["text"] for row in TABLE}) == len(TABLE)


@pytest.mark.fault("stability-messages")
@pytest.mark.parametrize("row", TABLE, ids=NAMES)
def test_the_cause_of_a_message(row: dict[str, str]) -> None:
    assert cause_of(job(1, 0, 1), shown(row)) == row["cause"]


@pytest.mark.fault("stability-messages")
@pytest.mark.parametrize("row", TABLE, ids=NAMES)
def test_the_message_between_others_with_other_names_and_numbers(row: dict[str, str]) -> None:
    """The rules know who says what, and no host, rank, address or number of a line of code."""
    other = {**row, "text": re.sub(r"\bn(\d+)\b", r"rack\1-node0\1", row["text"])}
    if "Xid" not in row["text"]:  # its number is what it says
        other["text"] = re.sub(r"(?<=[:(\[])\d{2,}(?=[:)\]])", "90210", other["text"])
    around = {"before": "\n".join(NOISE), "after": "\n".join(reversed(NOISE))}
    assert cause_of(job(1, 0, 1), shown(other, **around)) == row["cause"]


@pytest.mark.parametrize("line", [line for line in NOISE if line])
def test_control_lines_without_evidence(line: str) -> None:
    assert cause_of(job(1, 0, 1), Shown(line, code=1)) == "unknown"


def of(cause: str) -> dict[str, str]:
    return next(row for row in TABLE if (row["cause"], row["origin"]) == (cause, "output"))


@pytest.mark.parametrize(
    ("causes", "decides"),
    [
        (("fabric", "file-system"), "fabric"),
        (("file-system", "fabric"), "fabric"),
        (("program", "file-system"), "file-system"),
        (("program", "fabric"), "program"),
        (("fabric", "node"), "node"),
        (("unknown", "program"), "program"),
    ],
)
def test_several_messages(causes: tuple[str, str], decides: JobEnd) -> None:
    text = "\n".join(of(cause)["text"] for cause in causes)
    assert cause_of(job(1, 0, 1), Shown(text, code=1)) == decides


RETRY = "ib_mlx5_log.c:139  Transport retry count exceeded on mlx5_0:1/IB (synd 0x15)"
SEGFAULT = "srun: error: n3: task 7: Segmentation fault (core dumped)"
PORTAL = (
    "MPIDI_OFI_handle_cq_error(1075): OFI poll failed (ofi_events.c:1077:MPIDI_OFI_handle_cq_error:"
    "Input/output error - PTLTE_NOT_FOUND)"
)


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (f"{SEGFAULT}\n{PORTAL}", "program"),
        (
            f"{PORTAL}{NEXT_FILE}slurmstepd: error: Detected 1 oom_kill event in StepId=1.0",
            "program",
        ),
        (PORTAL, "fabric"),
        (f"{SEGFAULT}\n{RETRY}", "program"),
        (f"{RETRY}\n{SEGFAULT}", "fabric"),
        (f"{SEGFAULT}{NEXT_FILE}{RETRY}", "fabric"),  # which came first is not known
        (f"bash: module: command not found\n{RETRY}", "fabric"),
    ],
)
def test_a_cause_counts_before_its_symptom(text: str, cause: JobEnd) -> None:
    assert cause_of(job(1, 0, 1), Shown(text, code=1)) == cause


def test_a_link_that_went_down_is_no_symptom() -> None:
    nodes = {"n1": NodeShown(counters=["meaning-link-down"])}
    assert cause_of(job(1, 0, 1), Shown(f"{SEGFAULT}\n{RETRY}", nodes, code=1)) == "fabric"


def test_a_peer_that_is_gone_is_the_fabric_only_if_nothing_says_why() -> None:
    gone = "mca_btl_tcp_frag_recv: readv failed: Connection reset by peer (104)"
    assert cause_of(job(1, 0, 1), Shown(gone, code=1)) == "fabric"
    crashed = f"{gone}\nsrun: error: n1: task 3: Segmentation fault"
    assert cause_of(job(1, 0, 1), Shown(crashed, code=1)) == "program"
    assert cause_of(job(1, 0, 1, state=State.PREEMPTED), Shown(gone)) == "scheduler"


@pytest.mark.parametrize("code", [1, 127, 132, 134, 135, 136, 137, 139, 255])
def test_the_cause_of_an_exit_code(code: int) -> None:
    """SIGILL, SIGFPE and SIGSEGV are what the program did; other signals and codes show nothing."""
    cause = "program" if code in (132, 136, 139) else "unknown"
    assert cause_of(job(1, 0, 1), Shown(code=code)) == cause


@pytest.mark.parametrize(
    ("counter", "cause"),
    [
        ("edac/mc0/ue_count", "node"),
        ("interrupts/MCE", "node"),
        ("infiniband/mlx5_0/ports/1/counters/link_downed", "fabric"),
        ("lustre/newest_eviction", "file-system"),
        ("edac/mc0/ce_count", "unknown"),
        ("net/eth0/statistics/rx_errors", "unknown"),
    ],
)
def test_the_cause_of_a_counter_that_rose(counter: str, cause: JobEnd) -> None:
    nodes = {"n1": NodeShown(), "n2": NodeShown(counters={meaning_of(counter).code})}
    failed = Shown(code=135, nodes=nodes)
    assert cause_of(job(1, 0, 1), failed) == cause
    assert failed.faulty == ({"n2"} if cause == "node" else set())
    assert cause_of(job(1, 0, 1), Shown(code=0, nodes=nodes)) is None


def test_each_counter_of_the_table_exists() -> None:
    known = {"edac/mc0/ue_count", "edac/mc0/ue_noinfo_count", "interrupts/MCE", "interrupts/DFR"}
    known |= {f"pcie/ib0/aer_dev_{kind}" for kind in ("fatal", "nonfatal")}
    known |= {"infiniband/mlx5_0/ports/1/counters/link_downed", "lustre/newest_eviction"}
    assert {meaning_of(name).code for name in known} == set(OF_COUNTERS)
    assert set(OF_COUNTERS.values()) == {Said.NODE, Said.FABRIC, Said.FILE_SYSTEM}
