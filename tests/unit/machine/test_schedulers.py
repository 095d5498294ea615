"""The scheduler modules, with emulated commands that refuse what the real commands refuse."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.emulators.lsf import embedded_words, read_options
from tests.fixtures.kit import make_kit, until
from tests.folders import PACKAGE, ROOT
from tests.processes import running

from proofmark.common.errors import BadInput
from proofmark.jobs.execute import execute
from proofmark.judge.judging import judge_run
from proofmark.machine.outcome import NodeError
from proofmark.machine.scheduler import (
    NO_SUCH_JOB,
    NoCommand,
    Request,
    Scheduler,
    SchedulerError,
    SchedulerUnavailable,
    SubmitLimitReached,
    scheduler,
)
from proofmark.machine.scheduler_commands import last_lines, words_of
from proofmark.machine.schedulers import sge
from proofmark.machine.schedulers.pbs import Pbs
from proofmark.machine.schedulers.slurm import Slurm, status_of_job
from proofmark.runs.job_folder import State
from proofmark.site.execution import Queue

COMMANDS = {
    "batch": ("qsub", "qstat", "qselect", "qdel", "pbsnodes", "flux"),
    "loadleveler": ("llsubmit", "llq", "llcancel", "llstatus"),
    "lsf": ("bsub", "bjobs", "bkill", "bhosts"),
}
"""The commands of each program in tests/emulators."""
JOB = "p1a2b3c-00-0001"
LOOP = "for each in $(seq 600); do sleep 0.1; done"
pbs, loadleveler = scheduler("pbs"), scheduler("loadleveler")
lsf, flux = scheduler("lsf"), scheduler("flux")


@pytest.fixture
def batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put the emulated commands first in PATH; return the folder of their files."""
    for emulator, commands in COMMANDS.items():
        for name in commands:
            (tmp_path / name).symlink_to(ROOT / f"tests/emulators/{emulator}.py")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("PROOFMARK_FAKE_BATCH", str(tmp_path))
    return tmp_path


def request(*nodes: str, **queue: Any) -> Request:
    settings = Queue(name="normal", account="etc", **queue)
    return Request(JOB, nodes or ("n1",), 3661, Path("/runs/1/messages"), settings)


def script(folder: Path, module: Scheduler, requested: Request) -> Path:
    path = folder / "job.sh"
    path.write_text("\n".join(["#!/bin/sh", *module.header(requested), "true"]) + "\n")
    return path


def set_queue(folder: Path, **jobs: Any) -> None:
    (folder / "history").touch()  # of PBS: without it ended jobs have no state
    (folder / "queues.json").write_text('{"normal": {"started": "True"}}')
    (folder / "jobs.json").write_text(json.dumps(jobs))


def pbs_job(state: str, **fields: Any) -> dict[str, Any]:
    return {"Job_Name": JOB, "job_state": state, **fields}


NETWORK = "network.MPI = sn_all,not_shared,us"
IDS = {
    "pbs": "1234.pbs01",
    "loadleveler": "srv24ib.840220",
    "lsf": "771",
    "flux": "fM7Zq9AKHno",
}


@pytest.mark.parametrize("name", IDS)
@pytest.mark.parametrize(
    ("nodes", "exclusive"),
    [(("n1",), True), (("n1", "n2", "n10"), False), (("r1n1-ib", "r2n1-ib", "login"), True)],
)
def test_headers_are_accepted(
    batch: Path, name: str, nodes: tuple[str, ...], exclusive: bool
) -> None:
    requested = request(*nodes, exclusive=exclusive)
    module = scheduler(name)
    assert module.submit(script(batch, module, requested), requested) == IDS[name]


@pytest.mark.parametrize(
    ("name", "queue"),
    [
        ("pbs", {"memory_per_node": 90 << 30, "cpus_per_node": 68}),
        ("loadleveler", {"memory_per_node": 90 << 30, "exclusive": False}),
        ("loadleveler", {"options": [NETWORK]}),
        ("loadleveler", {"options": [NETWORK, "rset = rset_mcm_affinity"]}),
        ("loadleveler", {"options": ["rset = rset_consumable_cpus"]}),
        ("lsf", {"reservation": "etc_1"}),
    ],
)
@pytest.mark.parametrize("nodes", [("n1",), ("n1", "n2", "n3")])
def test_requested_resources_are_accepted(
    batch: Path, name: str, queue: dict[str, Any], nodes: tuple[str, ...]
) -> None:
    module = scheduler(name)
    tasks = [list(range(2 * node, 2 * node + 2)) for node, _ in enumerate(nodes)]
    requested = replace(request(*nodes, **queue), cpus=4, tasks=tasks, threads=2)
    assert module.submit(script(batch, module, requested), requested) == IDS[name]


@pytest.mark.parametrize(
    ("name", "queue", "lines"),
    [
        ("pbs", {}, ["#PBS -l place=scatter:exclhost"]),
        ("pbs", {"exclusive": False}, ["#PBS -l place=scatter"]),
        ("slurm", {}, ["#SBATCH --exclusive", "#SBATCH --mem=0"]),
        ("slurm", {"memory_per_node": 1 << 30}, ["#SBATCH --exclusive", "#SBATCH --mem=0"]),
        (
            "slurm",
            {"exclusive": False},
            [
                *("#SBATCH --ntasks-per-node=1", "#SBATCH --cpus-per-task=4", "#SBATCH --mem=0"),
                "unset SLURM_CPUS_PER_TASK",
            ],
        ),
        ("slurm", {"exclusive": False, "memory_per_node": 1 << 30}, ["#SBATCH --mem=1024M"]),
        (
            "loadleveler",
            {"options": [NETWORK, "rset = rset_mcm_affinity"]},
            [
                "# @ task_geometry = {(0,2) (1,3)}",
                "# @ network.MPI = sn_all,not_shared,us",
                "# @ rset = rset_mcm_affinity",
                "# @ mcm_affinity_options = mcm_distribute,mcm_mem_pref,mcm_sni_none",
                "# @ task_affinity = cpu(2)",
            ],
        ),
        (
            "loadleveler",
            {"exclusive": False, "memory_per_node": 1 << 30},
            ["# @ resources = ConsumableCpus(2) ConsumableMemory(512 mb)"],
        ),
        ("lsf", {}, ["#BSUB -hostfile /runs/1/hosts", "#BSUB -x"]),
        ("flux", {}, ["# flux: --nodes=2", "# flux: --exclusive"]),
        ("flux", {"exclusive": False}, ["# flux: --nslots=2", "# flux: --cores-per-slot=4"]),
    ],
)
def test_the_header_requests_what_the_steps_use(
    name: str, queue: dict[str, Any], lines: list[str]
) -> None:
    requested = replace(request("n1", "n2", **queue), cpus=4, tasks=[[0, 2], [1, 3]], threads=2)
    header = scheduler(name).header(requested)
    assert [line for line in header if line in lines] == lines


def test_a_serial_job_of_loadleveler_names_no_network() -> None:
    stated = replace(request("n1", options=[NETWORK, "comment = x"]), tasks=[[0]])
    header = scheduler("loadleveler").header(stated)
    assert "# @ comment = x" in header and not [line for line in header if "network" in line]


def test_a_site_may_state_how_loadleveler_binds_tasks() -> None:
    own = ["rset = RSET_MCM_AFFINITY", "mcm_affinity_options = mcm_accumulate"]
    header = scheduler("loadleveler").header(replace(request("n1", "n2", options=own), threads=2))
    assert [f"# @ {line}" for line in [*own, "task_affinity = cpu(2)"]] == header[-4:-1]
    assert not [line for line in header if "mcm_distribute" in line]


def test_a_job_of_grid_engine_requests_the_slots_of_its_nodes() -> None:
    for cpus, slots in ((None, 2), (40, 80)):
        header = scheduler("sge").header(request("n1", "n2", cpus_per_node=cpus))
        assert f"#$ -pe proofmark {slots}" in header


@pytest.mark.parametrize(
    ("name", "queue", "expected"),
    [
        (
            "pbs",
            {},
            "select=1:host=n1:ncpus=4:mpiprocs=1:ompthreads=1+1:host=n2:ncpus=4:mpiprocs=1:ompthreads=1",
        ),
        (
            "pbs",
            {"memory_per_node": 1 << 30},
            "select=1:host=n1:ncpus=4:mem=1048576kb:mpiprocs=1:ompthreads=1"
            "+1:host=n2:ncpus=4:mem=1048576kb:mpiprocs=1:ompthreads=1",
        ),
        ("slurm", {}, "n1\nn2\n"),
        ("sge", {}, "normal@n1,normal@n2"),
        ("lsf", {}, "n1 4\nn2 4\n"),
        ("flux", {}, ""),
        ("loadleveler", {}, ""),
    ],
)
def test_the_list_of_hosts(name: str, queue: dict[str, Any], expected: str) -> None:
    requested = replace(request("n1", "n2", **queue), cpus=4)
    assert scheduler(name).host_list(requested) == expected


MANY = tuple(f"knl{number:04d}" for number in range(1, 8306))


@pytest.mark.parametrize(("nodes", "names"), [(8305, 0), (8304, 2000), (1, 1)])
def test_a_pbs_job_on_all_nodes_of_the_queue_requests_their_number(nodes: int, names: int) -> None:
    requested = replace(request(*MANY[: min(nodes, names or nodes)], all_nodes=8305), cpus=68)
    text = scheduler("pbs").host_list(requested)
    assert text.count("host=") == names
    number = 1 if names else nodes
    assert text.startswith(f"select={number}:")
    assert text.endswith(":ncpus=68:mpiprocs=1:ompthreads=1")


@pytest.mark.parametrize("name", ["flux", "lsf", "pbs", "sge", "slurm"])
def test_no_line_of_a_header_names_all_nodes(name: str) -> None:
    """Qsub of PBS Pro 14 to 19 reads 4,095 characters of a line and ignores the others."""
    requested = request(*MANY[:2500], parallel_environment="mpi")
    lines = scheduler(name).header(requested)
    assert max(map(len, lines)) < 200


@pytest.mark.parametrize(
    ("name", "queue", "nodes", "message"),
    [
        pytest.param(
            *("pbs", {}, MANY, r"nodes_per_job: found a job of 8305 nodes.* at most about 2\d\d\d"),
            marks=pytest.mark.fault("node-list-too-long"),
        ),
        ("sge", {}, tuple(f"node{name}" for name in MANY), "accepted: at most about 6898 nodes"),
        ("lsf", {"memory_per_node": 1}, MANY[:1], "queue.memory_per_node: found a value, and LSF"),
        ("flux", {"memory_per_node": 1}, MANY[:1], "queue.memory_per_node: found 1, and a Flux"),
        ("flux", {"reservation": "r"}, MANY[:1], "queue.reservation: found 'r', and a Flux job"),
    ],
)
def test_what_a_scheduler_cannot_request_is_refused(
    name: str, queue: dict[str, Any], nodes: tuple[str, ...], message: str
) -> None:
    module, requested = scheduler(name), request(*nodes, **queue)
    with pytest.raises(BadInput, match=message):
        module.header(requested), module.host_list(requested)


def test_long_statements_of_loadleveler_are_continued(batch: Path) -> None:
    tasks = [list(range(64 * node, 64 * node + 64)) for node in range(16)]
    requested = replace(request(*(f"p595-{n:02d}" for n in range(1, 17))), tasks=tasks)
    lines = loadleveler.header(requested)
    assert max(map(len, lines)) <= 502
    assert sum(line.endswith(" \\") for line in lines) > 5
    assert loadleveler.submit(script(batch, loadleveler, requested), requested)


def test_an_unknown_option_is_refused(batch: Path) -> None:
    """The control of the emulated commands: they refuse unknown options."""
    requested = request(options=["-Z 1"])
    with pytest.raises(SchedulerError, match="usage: qsub: -Z 1"):
        pbs.submit(script(batch, pbs, requested), requested)
    requested = request(options=["colour = red"])
    with pytest.raises(SchedulerError, match="llsubmit: colour = red"):
        loadleveler.submit(script(batch, loadleveler, requested), requested)
    requested = request(options=["-Z 1"])
    with pytest.raises(SchedulerError, match="illegal option -- Z"):
        lsf.submit(script(batch, lsf, requested), requested)
    requested = request(options=["-n 4"])
    with pytest.raises(SchedulerError, match="cannot be used with -n"):
        lsf.submit(script(batch, lsf, requested), requested)
    requested = request(options=["--colour=red"])
    with pytest.raises(SchedulerError, match="unrecognized arguments: --colour=red"):
        flux.submit(script(batch, flux, requested), requested)


PBS_STATES = [
    (pbs_job("Q"), State.WAITING),
    (pbs_job("Q", comment="Can Never Run: Insufficient amount of resource"), State.UNAVAILABLE),
    (pbs_job("R", comment="Job run at Fri Nov 20 at 10:00"), State.RUNNING),
    (pbs_job("H", Hold_Types="s"), State.HELD),
    (pbs_job("W"), State.WAITING),
    (pbs_job("S"), State.SUSPENDED),
    (pbs_job("F", Exit_status=0, substate=92), State.ENDED_UNKNOWN),
    (pbs_job("F", Exit_status=74, substate=92), State.ENDED_UNKNOWN),
    (pbs_job("F", Exit_status=-29, substate=93), State.TIME_LIMIT),
    (pbs_job("F", Exit_status=271, substate=93), State.ENDED_UNKNOWN),
    (pbs_job("F", Exit_status=1, substate=93), State.ENDED_UNKNOWN),
    (pbs_job("F", Exit_status=-20, substate=93), State.NODE_FAILED),
    (pbs_job("F", Exit_status=-13), State.REFUSED),
    (pbs_job("F", Exit_status=-16), State.REFUSED),
    (pbs_job("F", Exit_status=-30), State.NODE_FAILED),
    (pbs_job("F", Exit_status=-99), State.KILLED),
    (pbs_job("M", substate=94), State.UNREACHABLE),
    (
        pbs_job("Q", comment="Not Running: Node is in an ineligible state: job-busy"),
        State.WAITING,
    ),
    (pbs_job("F", Exit_status=271, substate=91), State.CANCELLED),
    (pbs_job("F", Exit_status=-4), State.NODE_FAILED),
    (pbs_job("Z"), State.UNKNOWN),
]


def test_states_of_pbs(batch: Path) -> None:
    jobs = {f"{number}.pbs01": fields for number, (fields, _) in enumerate(PBS_STATES)}
    set_queue(batch, **jobs)
    statuses = pbs.states([*jobs, "99.pbs01"])  # an unknown job is no error
    assert {job: status.state for job, status in statuses.items()} == {
        f"{number}.pbs01": state for number, (_, state) in enumerate(PBS_STATES)
    }


LOADLEVELER_STATES = [
    ("D I MP NQ P", State.WAITING),
    ("CK CP EP R RP ST VP XP", State.RUNNING),
    ("H HS S", State.HELD),
    ("NR", State.UNAVAILABLE),
    ("E", State.SUSPENDED),
    ("C", State.ENDED_UNKNOWN),
    ("CA RM", State.CANCELLED),
    ("V", State.NODE_FAILED),
    ("TX", State.KILLED),
    ("X", State.REFUSED),
    ("ZZ", State.UNKNOWN),
]


def test_states_of_loadleveler(batch: Path) -> None:
    states: dict[str, State] = {}
    for codes, state in LOADLEVELER_STATES:
        states |= dict.fromkeys(codes.split(), state)
    set_queue(batch, **{f"srv24ib.{code}": {"state": code, "name": code} for code in states})
    statuses = loadleveler.states([*(f"srv24ib.{code}" for code in states), "srv24ib.1"])
    found = {job: status.state for job, status in statuses.items()}
    assert found == {f"srv24ib.{code}": state for code, state in states.items()}
    assert [loadleveler.find(name) for name in ("R", "other")] == ["srv24ib.R", ""]


def test_llq_shortens_the_host_name_of_an_id(batch: Path) -> None:
    """The name of the host has its domain in llsubmit, and none in llq."""
    (batch / "domain").write_text(".example.org")
    requested = request()
    job = loadleveler.submit(script(batch, loadleveler, requested), requested)
    assert job == "srv24ib.example.org.840220"
    set_queue(batch, **{"srv24ib.840220": {"state": "R", "name": JOB}})
    assert loadleveler.states([job])[job].state is State.RUNNING
    found = loadleveler.ended(job)
    assert found is not None and found.state is State.RUNNING
    set_queue(batch, **{"srv24ib.840221": {"state": "R", "name": JOB}})
    assert loadleveler.states([job]) == {}
    assert loadleveler.ended(job) == NO_SUCH_JOB


def lsf_job(state: str, **fields: Any) -> dict[str, Any]:
    return {"STAT": state, "JOB_NAME": JOB, **fields}


LSF_STATES = [
    (lsf_job("PEND", PEND_REASON="Not specified in job submission: 3 hosts"), State.WAITING),
    (lsf_job("PSUSP"), State.HELD),
    (lsf_job("RUN"), State.RUNNING),
    (lsf_job("USUSP"), State.SUSPENDED),
    (lsf_job("SSUSP"), State.SUSPENDED),
    (lsf_job("DONE"), State.ENDED_UNKNOWN),
    (lsf_job("EXIT"), State.ENDED_UNKNOWN),
    (lsf_job("EXIT", EXIT_REASON="TERM_RUNLIMIT: job killed"), State.TIME_LIMIT),
    (lsf_job("EXIT", EXIT_REASON="TERM_OWNER: job killed by owner"), State.CANCELLED),
    (lsf_job("EXIT", EXIT_REASON="TERM_MEMLIMIT: job killed"), State.KILLED),
    (lsf_job("EXIT", EXIT_REASON="TERM_WINDOW: job killed"), State.PREEMPTED),
    (lsf_job("EXIT", EXIT_REASON="TERM_PRE_EXEC_FAIL: job killed"), State.NODE_FAILED),
    (lsf_job("EXIT", EXIT_REASON="TERM_EXTERNAL_SIGNAL: job killed"), State.ENDED_UNKNOWN),
    (lsf_job("ZOMBI"), State.NODE_FAILED),
    (lsf_job("UNKWN"), State.UNREACHABLE),
    (lsf_job("BORED"), State.UNKNOWN),
]


def test_states_of_lsf(batch: Path) -> None:
    jobs = {
        f"{number}": {**fields, "JOB_NAME": f"j{number}"}
        for number, (fields, _) in enumerate(LSF_STATES, 700)
    }
    set_queue(batch, **jobs)
    statuses = lsf.states([*jobs, "99"])  # an unknown job is no error
    found = {job: status.state for job, status in statuses.items()}
    assert found == dict(zip(jobs, (state for _, state in LSF_STATES), strict=True))
    for job, fields in jobs.items():
        if fields["STAT"] in ("PSUSP", "RUN", "DONE", "BORED"):
            ended = fields["STAT"] in ("DONE", "BORED")
            assert lsf.find(fields["JOB_NAME"]) == ("" if ended else job)


@pytest.mark.parametrize("folder", ["/runs/a b", "/runs/it's", "/runs/it's a", '/runs/"x" y', "/a"])
def test_bsub_reads_each_path_whole(folder: str) -> None:
    """Bsub has its own quotes: the emulator splits its lines as OpenLava does."""
    requested = replace(request(), log=Path(folder) / "messages")
    options, rest, wrong = read_options(embedded_words("\n".join(lsf.header(requested))))
    assert (options["-o"], rest, wrong) == (f"{folder}/messages", [], "")
    assert options["-hostfile"] == str(requested.host_file)


@pytest.mark.parametrize("folder", ['/runs/it\'s "x"', "/runs/a  b", "/runs/a\tb"])
def test_a_path_that_bsub_cannot_read_is_refused(folder: str) -> None:
    with pytest.raises(BadInput, match="which no line of #BSUB can have"):
        lsf.header(replace(request(), log=Path(folder) / "messages"))


def test_the_time_limit_of_lsf_is_that_of_the_node() -> None:
    """Without a host the limit is divided by the CPU factor of the node (bsub -W)."""
    assert "#BSUB -W 62/n7" in lsf.header(request("n7", "n8"))


def test_a_full_queue_of_lsf_does_not_keep_bsub_waiting(batch: Path) -> None:
    """By default bsub tries again each minute, for ever; the kit would stop it after a minute."""
    (batch / "threshold").write_text("1")
    requested = request()
    with pytest.raises(SubmitLimitReached, match="Pending job threshold reached"):
        lsf.submit(script(batch, lsf, requested), requested)


def test_a_kill_that_lsf_refuses_is_an_error(batch: Path) -> None:
    """The exit code 255 of bkill is that of an ended job, and that of a missing permission."""
    set_queue(batch, **{"771": lsf_job("RUN"), "772": lsf_job("EXIT"), "773": lsf_job("DONE")})
    lsf.cancel(["772", "773", "774"])
    lsf.cancel(["771"])
    (batch / "denied").touch()
    with pytest.raises(SchedulerError, match="User permission denied"):
        lsf.cancel(["772", "771"])


@pytest.mark.parametrize("consistent", [True, False])
def test_an_ended_job_of_lsf_is_forgotten_after_an_hour(batch: Path, consistent: bool) -> None:
    if consistent:  # LSB_BJOBS_CONSISTENT_EXIT_CODE
        (batch / "consistent_exit_code").touch()
    set_queue(batch, **{"1": lsf_job("DONE", ended_s=3500), "2": lsf_job("DONE", ended_s=3700)})
    assert set(lsf.states(["1", "2", "3"])) == {"1"}
    assert (lsf.ended("1"), lsf.ended("2")) == (None, NO_SUCH_JOB)


def flux_job(status: str, **fields: Any) -> dict[str, Any]:
    return {"status_abbrev": status, "name": JOB, **fields}


FLUX_STATES = [
    (flux_job("D"), State.WAITING),
    (flux_job("S"), State.WAITING),
    (flux_job("S", urgency=0), State.HELD),
    (flux_job("R"), State.RUNNING),
    (flux_job("C"), State.RUNNING),
    (flux_job("CD"), State.ENDED_UNKNOWN),
    (flux_job("F", **{"exception.type": "exec"}), State.ENDED_UNKNOWN),
    (flux_job("CA", **{"exception.type": "cancel"}), State.CANCELLED),
    (flux_job("TO", **{"exception.type": "timeout"}), State.TIME_LIMIT),
    (flux_job("Z"), State.UNKNOWN),
]


def test_states_of_flux(batch: Path) -> None:
    jobs = {
        f"f{number}": {**fields, "name": f"j{number}"}
        for number, (fields, _) in enumerate(FLUX_STATES)
    }
    set_queue(batch, **jobs)
    statuses = flux.states([*jobs, "f99"])
    found = {job: status.state for job, status in statuses.items()}
    assert found == dict(zip(jobs, (state for _, state in FLUX_STATES), strict=True))
    for job, fields in jobs.items():
        if fields["status_abbrev"] in ("D", "R", "CD", "TO"):
            ended = fields["status_abbrev"] in ("CD", "TO")
            assert flux.find(fields["name"]) == ("" if ended else job)
    flux.cancel(["f0", "f9", "f99"])


NEVER = "Can Never Run: Insufficient amount of resource: host"


@pytest.mark.parametrize(
    ("name", "fields", "message", "cancelled"),
    [
        pytest.param(
            "pbs",
            pbs_job("H", Hold_Types="o"),
            "held: H, given up after 0 s",
            True,
            marks=pytest.mark.fault("job-held"),
        ),
        pytest.param(
            "pbs",
            pbs_job("Q", comment=NEVER),
            f"its nodes are not available: Q {NEVER}; its limits are not known; it never starts; "
            "change `queue.options`",
            True,
            marks=pytest.mark.fault("nodes-unavailable"),
        ),
        ("pbs", pbs_job("Q"), "waiting: Q, given up after 0 s", True),
        ("pbs", pbs_job("U"), "suspended: U, given up after 0 s", True),
        ("pbs", pbs_job("M"), "the scheduler does not answer: M, given up after 0 s", False),
        pytest.param(
            "pbs",
            pbs_job("Z"),
            "in an unknown state: Z, given up after 0 s",
            True,
            marks=pytest.mark.fault("job-state-unknown"),
        ),
        ("pbs", pbs_job("F", Exit_status=-3), "lost a node: F exit status -3; not", False),
        ("pbs", pbs_job("F", substate=93), "ended, and its results are still missing: F", True),
        (
            "pbs",
            pbs_job("F", Exit_status=-20, exec_host="n7/0*2"),
            "lost a node: F exit status -20; its first node does not answer: n7",
            False,
        ),
        (
            "pbs",
            None,
            "vanished: the scheduler no longer lists it (deleted while it waited?)",
            False,
        ),
        pytest.param(
            "loadleveler",
            {"state": "S"},
            "held: S, given up after 0 s",
            True,
            marks=pytest.mark.fault("job-held"),
        ),
        ("loadleveler", {"state": "X"}, "refused: X", False),
        pytest.param(
            "lsf",
            {"STAT": "PSUSP", "JOB_NAME": "another"},
            "held: PSUSP, given up after 0 s",
            True,
            marks=pytest.mark.fault("job-held"),
        ),
        ("lsf", {"STAT": "EXIT", "EXIT_REASON": "TERM_RUNLIMIT: x"}, "stopped at its time", False),
        pytest.param(
            "flux",
            {"status_abbrev": "S", "urgency": 0},
            "held: S, given up after 0 s",
            True,
            marks=pytest.mark.fault("job-held"),
        ),
        ("flux", None, "vanished: the scheduler no longer lists it", False),
    ],
)
def test_a_job_that_cannot_continue_stops_with_its_state(
    batch: Path,
    tmp_path: Path,
    name: str,
    fields: dict[str, Any] | None,
    message: str,
    cancelled: bool,
) -> None:
    job, other = IDS[name], {"name": "another", "JOB_NAME": "another"}
    set_queue(batch, **({job: {**other, **fields}} if fields else {}))
    (batch / "nodes.json").write_text('{"nodes": {"n1": {"state": "free"}}}')
    kit = make_kit(tmp_path / "kit")
    queue = Queue(stall_timeout_s=0.1, queue_timeout_s=0.1)
    run = kit.run(site=kit.site(hosts=["n1"], scheduler=name, queue=queue))
    execute(run, name, lambda line: None)
    (line,) = judge_run(run).coverage.stopped
    assert line.startswith(f"job 00-0001: {message}")
    assert line.endswith("; 2 of 2 steps left")
    calls = (batch / "calls").read_text().split()
    stops = {"pbs": "qdel", "loadleveler": "llcancel", "lsf": "bkill", "flux": "cancel"}
    assert (stops[name] in calls) == cancelled


@pytest.mark.fault("job-vanished")
@pytest.mark.parametrize("history", [True, False])
def test_pbs_follows_jobs_without_a_history(batch: Path, history: bool) -> None:
    """``qstat -x`` of a server without a history lists no job, and its exit code is 0."""
    set_queue(batch, **{"1234.pbs01": pbs_job("R"), "1235.pbs01": pbs_job("F", Exit_status=0)})
    if not history:
        (batch / "history").unlink()
    found = pbs.states(["1234.pbs01", "1235.pbs01", "1236.pbs01"])
    assert found["1234.pbs01"].state is State.RUNNING
    assert ("1235.pbs01" in found) == history
    ended = pbs.ended("1235.pbs01")
    assert ended is not None and ended.state is State.ENDED_UNKNOWN
    assert pbs.ended("1236.pbs01") == NO_SUCH_JOB
    (batch / "calls").unlink()
    pbs.states(["1234.pbs01"])
    assert "-x" not in (batch / "calls").read_text()


@pytest.mark.parametrize(
    ("ids", "left"),
    [
        (["1.pbs01"], ""),
        (["9.pbs01"], ""),
        (["2.pbs01"], ""),
        (["1.pbs01", "2.pbs01", "9.pbs01"], ""),
        (["3.pbs01"], "3.pbs01"),
        (["3.pbs01", "9.pbs01"], "3.pbs01"),
        (["3.pbs01", "2.pbs01", "1.pbs01"], "3.pbs01"),
    ],
)
def test_qdel_of_a_job_that_ends_is_no_error_and_hides_none(
    batch: Path, ids: list[str], left: str
) -> None:
    """1 runs, 2 ends, 3 belongs to another user, and PBS does not know 9."""
    others = pbs_job("R", Job_Owner="other@login")
    set_queue(batch, **{"1.pbs01": pbs_job("R"), "2.pbs01": pbs_job("E"), "3.pbs01": others})
    expected = pytest.raises(SchedulerError, match=f"Unauthorized Request {left}")
    with expected if left else nullcontext():
        pbs.cancel(ids)


def test_a_stopped_queue_of_pbs_is_named_at_once(batch: Path) -> None:
    set_queue(batch, **{"1234.pbs01": pbs_job("Q", queue="normal")})
    assert pbs.states(["1234.pbs01"])["1234.pbs01"].state is State.WAITING
    (batch / "queues.json").write_text('{"normal": {"started": "False"}}')
    status = pbs.states(["1234.pbs01"])["1234.pbs01"]
    assert (status.state, status.reason) == (State.UNAVAILABLE, "Q the queue normal is stopped")


REFUSED = {
    "slurm": "sbatch: error: {}\nsbatch: error: Batch job submission failed: Job violates "
    "accounting/QOS policy (job submit limit, user's size and/or time limits)",
    "pbs": "qsub: would exceed queue's per-user limit",
    "sge": "Unable to run job: job rejected: {}.",
    "lsf": "{} Job not submitted.",
}


@pytest.mark.parametrize(
    ("name", "code", "words", "later"),
    [
        ("slurm", 1, "AssocMaxSubmitJobLimit", True),
        ("slurm", 1, "AssocGrpSubmitJobsLimit", True),
        ("slurm", 1, "QOSMaxSubmitJobPerUserLimit", True),
        ("slurm", 1, "QOSMaxWallDurationPerJobLimit", False),
        ("slurm", 1, "QOSMaxNodePerUserLimit", False),
        ("pbs", 198, "", True),
        ("pbs", 38, "", True),
        ("pbs", 170, "", False),
        ("sge", 25, "Only 5 jobs are allowed per user (current job count: 5)", True),
        ("sge", 25, "Only 900 jobs are allowed per cluster", True),
        ("sge", 1, 'project "x" does not exist', False),
        ("lsf", 255, "User <u1>: Pending job threshold reached.", True),
        ("lsf", 255, "Bad queue name.", False),
    ],
)
def test_a_submit_limit_is_no_final_refusal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, code: int, words: str, later: bool
) -> None:
    program = {"slurm": "sbatch", "lsf": "bsub"}.get(name, "qsub")
    (tmp_path / "message").write_text(REFUSED[name].format(words))
    (tmp_path / program).write_text(f'#!/bin/sh\ncat "{tmp_path}/message" >&2\nexit {code}\n')
    (tmp_path / program).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    module, requested = scheduler(name), request()
    with pytest.raises(SchedulerError) as raised:
        module.submit(script(tmp_path, module, requested), requested)
    assert isinstance(raised.value, SubmitLimitReached) == later


TRIED_AGAIN = {
    "slurm": (
        "sbatch: error: If munged is up, restart with --num-threads=10\n"
        'sbatch: error: Munge encode failed: Failed to access "/run/munge/munge.socket.2"\n'
        "sbatch: error: slurm_send_node_msg: REQUEST_SUBMIT_BATCH_JOB has authentication error\n"
        "sbatch: error: Batch job submission failed: Protocol authentication error",
        "sbatch: error: Batch job submission failed: Required partition not available (inactive "
        "or drain)",
        "sbatch: error: Batch job submission failed: System submissions disabled",
        "sbatch: error: xInvalid qos specifications",
    ),
    "pbs": (
        "qsub: Queue is not enabled",
        "qsub: Invalid credential",
        "qsub: hook error",
        "No Permission.\nqsub: cannot connect to server pbs01 (errno=15007) Unauthorized Request",
    ),
    "sge": (
        "Unable to run job: unable to send message to qmaster using port 6444 on host m: got send",
        "Unable to run job: job 7 rejected because authentication failed.",
    ),
    "lsf": (
        "batch system daemon not responding ... still trying",
        "Failed in LSF library call: Slave LIM configuration is not ready yet. Job not submitted.",
        "normal: Queue has been closed. Job not submitted.",
    ),
    "flux": ("flux-batch: ERROR: job submission to batch is disabled: maintenance",),
    "loadleveler": ("llsubmit: 2512-301 An error occurred while receiving data",),
}
SUBMIT = {"slurm": "sbatch", "lsf": "bsub", "flux": "flux", "loadleveler": "llsubmit"}


def answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, words: str) -> Exception:
    """Submit to a command that fails with `words`; return the exception."""
    program = tmp_path / SUBMIT.get(name, "qsub")
    (tmp_path / "message").write_text(words)
    program.write_text(f'#!/bin/sh\ncat "{tmp_path}/message" >&2\nexit 1\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    module, requested = scheduler(name), request()
    with pytest.raises(SchedulerError) as raised:
        module.submit(script(tmp_path, module, requested), requested)
    return raised.value


@pytest.mark.parametrize(
    ("name", "words"), [(name, words) for name in TRIED_AGAIN for words in TRIED_AGAIN[name]]
)
def test_a_refusal_that_is_not_listed_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, words: str
) -> None:
    error = answer(tmp_path, monkeypatch, name, words)
    assert isinstance(error, SchedulerUnavailable)
    assert error.code == 1
    shown = str(error).partition(": ")[2].split(" / ")
    assert shown == words.split("\n")[-len(shown) :], "whole lines, the last ones"


def test_a_refusal_does_not_speak_the_language_of_the_caller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LC_ALL", raising=False)
    for name in ("LANG", "LC_MESSAGES"):
        monkeypatch.setenv(name, "de_DE.UTF-8")
    monkeypatch.setenv("LANGUAGE", "de")
    said = (
        "case $LC_ALL$LANGUAGE in C*C) echo unrecognized option;; *) echo unbekannte Option;; esac"
    )
    (tmp_path / "sbatch").write_text(f"#!/bin/sh\n({said}) >&2\nexit 1\n")
    (tmp_path / "sbatch").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(SchedulerError, match="unrecognized option") as raised:
        scheduler("slurm").submit(tmp_path / "job.sh", request())
    assert not isinstance(raised.value, SchedulerUnavailable)


SCHEDULERS = sorted(path.stem for path in (PACKAGE / "machine/schedulers/data").glob("*.yml"))


@pytest.mark.parametrize("name", SCHEDULERS)
def test_a_listed_refusal_is_final(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    for message in words_of(name).final.messages:
        error = answer(tmp_path, monkeypatch, name, f"x: {message.replace('*', 'a b')} (y).\nend")
        limit = message == "Job violates accounting/QOS policy"
        assert (type(error) is SchedulerError) != (limit and "submit limit" in str(error)), message


def test_the_table_of_final_messages_is_that_of_the_page() -> None:
    page = (ROOT / "docs/design/jobs.md").read_text()
    for name in SCHEDULERS:
        listed = "; ".join(words_of(name).final.messages).replace("*", "\\*")
        assert f"| `{name}` | {listed} |\n" in page


@pytest.mark.parametrize(
    ("said", "state", "key"),
    [
        ("QOSMaxNodePerJobLimit", State.UNAVAILABLE, "partition.nodes_per_job"),
        ("AssocMaxNodePerJobLimit", State.UNAVAILABLE, "partition.nodes_per_job"),
        ("QOSMaxWallDurationPerJobLimit", State.UNAVAILABLE, "queue.max_walltime_s"),
        ("PartitionTimeLimit", State.UNAVAILABLE, "queue.max_walltime_s"),
        ("QOSMaxCpuMinutesPerJobLimit", State.UNAVAILABLE, "queue.max_walltime_s"),
        ("QOSMaxCpuPerJobLimit", State.UNAVAILABLE, "queue.cpus_per_node"),
        ("AssocMaxMemPerNode", State.UNAVAILABLE, "queue.memory_per_node"),
        ("QOSMaxGRESPerJob", State.UNAVAILABLE, "queue.options"),
        ("QOSMinGRES", State.UNAVAILABLE, "queue.options"),
        ("InvalidAccount", State.UNAVAILABLE, "queue.account"),
        ("PartitionDown", State.UNAVAILABLE, ""),
        ("JobHeldAdmin", State.HELD, ""),
        ("QOSMaxJobsPerUserLimit", State.WAITING, ""),
        ("QOSMaxNodePerUserLimit", State.WAITING, ""),
        ("QOSGrpNodeLimit", State.WAITING, ""),
        ("AssocGrpCPUMinutesLimit", State.WAITING, ""),
        ("MaxNodePerAccount", State.WAITING, ""),
        ("AssocMaxJobsLimit", State.WAITING, ""),
        ("Licenses", State.WAITING, ""),
        ("QOSMaxCpuPerNodeOfSite", State.WAITING, ""),
        ("SiteMaxCpuPerNode", State.WAITING, ""),
        ("ReqNodeNotAvail, UnavailableNodes:n1", State.WAITING, ""),
    ],
)
def test_a_reason_of_slurm_that_no_waiting_ends_names_a_key(
    said: str, state: State, key: str
) -> None:
    status = status_of_job("PENDING", said)
    assert (status.state, status.key) == (state, key)


@pytest.mark.parametrize(
    ("said", "shared", "whole"),
    [
        ("QOSMaxCpuPerJobLimit", "queue.cpus_per_node", "partition.nodes_per_job"),
        ("QOSMinCpuNotSatisfied", "queue.cpus_per_node", "partition.nodes_per_job"),
        ("AssocMaxMemPerJob", "queue.memory_per_node", "partition.nodes_per_job"),
        ("AssocMaxCpuPerNode", "queue.cpus_per_node", "queue.exclusive"),
        ("QOSMaxCpuPerNode", "queue.cpus_per_node", "queue.exclusive"),
        ("AssocMaxMemPerNode", "queue.memory_per_node", "queue.exclusive"),
        ("QOSMaxMemoryPerNode", "queue.memory_per_node", "queue.exclusive"),
        ("MaxMemPerLimit", "queue.memory_per_node", "queue.exclusive"),
        ("QOSMaxGRESPerJob", "queue.options", "queue.options"),
    ],
)
def test_the_key_of_a_job_of_whole_nodes_changes_what_it_requests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, shared: str, whole: str
) -> None:
    (tmp_path / "squeue").write_text(f"#!/bin/sh\necho '7|PENDING|{said}'\n")
    (tmp_path / "squeue").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    for exclusive, key in ((False, shared), (True, whole)):
        asked = scheduler("slurm", Queue(exclusive=exclusive))
        assert asked.states(["7"])["7"].key == key


def test_long_answers_are_cut_between_words() -> None:
    assert last_lines("first\n" + "word " * 100 + "\n\nlast") == "last"
    assert last_lines("word " * 200).endswith("word word …")
    assert last_lines("") == ""


def test_a_host_of_several_vnodes_is_read_whole(batch: Path) -> None:
    """Without ``-v`` pbsnodes prints ``<various>``, with it and a name the natural vnode only."""
    hosts = {"n1": {"state": "<various>"}, "n2": {"state": "free"}, "n3": {"state": "<various>"}}
    (batch / "nodes.json").write_text(json.dumps({"nodes": hosts}))
    vnodes = {
        "n1": {"state": "free", "resources_available": {"host": "n1"}},
        "n1[0]": {
            "state": "job-busy",
            "jobs": ["7.pbs01/0"],
            "resources_available": {"host": "n1"},
        },
        "n3": {"state": "free", "resources_available": {"host": "n3"}},
        "n3[0]": {"state": "offline", "comment": "x", "resources_available": {"host": "n3"}},
    }
    (batch / "vnodes.json").write_text(json.dumps({"nodes": vnodes}))
    assert pbs.nodes(["n1", "n2", "n3"]) == {"n1": "busy", "n2": "idle", "n3": "down offline x"}
    assert isinstance(pbs, Pbs)
    found = pbs.node_status(["n1", "n2", "n3"])
    assert [(each.out, each.idle) for each in found.values()] == [
        *((False, False), (False, True), (True, True)),
    ]


def test_a_vnode_that_its_host_no_longer_reports_is_no_part_of_it(batch: Path) -> None:
    """Real: an admin removes the definition of a vnode; the server still lists it as Stale."""
    hosts = {
        "n1": (["free", "Stale"], "idle"),
        "n2": (["job-busy", "Stale,down"], "busy"),
        "n3": (["offline", "Stale"], "down offline"),
        "n4": (["Stale", "Stale"], "down Stale"),
        "n5": (["Stale,down", "down"], "down down"),
    }
    nodes = {host: {"state": "<various>"} for host in hosts}
    (batch / "nodes.json").write_text(json.dumps({"nodes": nodes}))
    vnodes = {}
    for host, (states, _) in hosts.items():
        for at, state in enumerate(states):
            vnodes[f"{host}[{at}]"] = {"state": state, "resources_available": {"host": host}}
    (batch / "vnodes.json").write_text(json.dumps({"nodes": vnodes}))
    assert pbs.nodes([*hosts]) == {host: expected for host, (_, expected) in hosts.items()}
    assert isinstance(pbs, Pbs)
    found = pbs.node_status([*hosts])
    assert [host for host in hosts if found[host].out] == ["n3", "n4", "n5"]


def test_a_drain_of_pbs_changes_all_nodes_or_none(batch: Path) -> None:
    (batch / "nodes.json").write_text('{"nodes": {"n1": {"state": "free"}}}')
    assert isinstance(pbs, Pbs)
    with pytest.raises(NodeError, match="does not list n2; no node was changed"):
        pbs.drain(["n1", "n2"], "x")
    assert "-o" not in (batch / "calls").read_text()
    pbs.drain(["n1"], "x")
    assert "pbsnodes -o -C x n1" in (batch / "calls").read_text()


@pytest.mark.parametrize(
    ("options", "cluster"),
    [
        (["--clusters=c2"], "c2"),
        (["--qos=high --cluster c2"], "c2"),
        (["-M c2"], "c2"),
        (["--cluster-constraint=c2"], ""),
        ([], ""),
    ],
)
def test_each_command_of_slurm_asks_the_cluster_of_the_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], cluster: str
) -> None:
    for name in ("squeue", "scancel", "sinfo", "scontrol", "sacct"):
        (tmp_path / name).write_text(f'#!/bin/sh\necho "{name} $*" >>"{tmp_path}/calls"\n')
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    module = scheduler("slurm", Queue(options=options))
    assert isinstance(module, Slurm)
    assert (module.find("x"), module.states(["1"]), module.ended("1")) == ("", {}, None)
    module.cancel(["1"])
    assert (module.nodes(["n1"]), module.reservations()) == ({}, {})
    module.drain(["n1"], "x")
    calls = (tmp_path / "calls").read_text().splitlines()
    assert {call.split()[0] for call in calls} == {
        "squeue",
        "scancel",
        "sinfo",
        "scontrol",
        "sacct",
    }
    wanted = f"--clusters={cluster}" if cluster else ""
    for call in calls:
        assert (call.split()[1] == wanted) == bool(cluster), call


def test_a_job_for_several_clusters_is_refused() -> None:
    with pytest.raises(BadInput, match=r"queue\.options: found --clusters=a,b"):
        scheduler("slurm").header(request(options=["--clusters=a,b"]))


def test_an_empty_queue_is_no_error(batch: Path) -> None:
    assert loadleveler.states(["srv24ib.1"]) == {}
    assert (pbs.states(["1.pbs01"]), pbs.find(JOB), loadleveler.find(JOB)) == ({}, "", "")
    pbs.cancel(["1.pbs01"])
    loadleveler.cancel(["srv24ib.1"])
    assert (lsf.states(["1"]), lsf.find(JOB)) == ({}, "")
    assert (flux.states(["f1"]), flux.find(JOB)) == ({}, "")
    lsf.cancel(["1"])


def test_an_unavailable_server_and_a_refusal_raise_different_errors(batch: Path) -> None:
    (batch / "refuse").write_text("qstat: cannot connect to server pbs01 (errno=15010)")
    with pytest.raises(SchedulerUnavailable, match="cannot connect to server"):
        pbs.states(["1.pbs01"])
    (batch / "refuse").write_text("qsub: Unknown queue")
    with pytest.raises(SchedulerError, match="Unknown queue"):
        pbs.submit(script(batch, pbs, request()), request())
    (batch / "refuse").write_text("llq: 2512-301 An error occurred: Unable to connect to 9614")
    with pytest.raises(SchedulerUnavailable):
        loadleveler.states(["srv24ib.1"])
    (batch / "refuse").write_text("LSF is down. Please wait ...")
    with pytest.raises(SchedulerUnavailable):
        lsf.states(["1"])
    (batch / "refuse").write_text("flux-jobs: ERROR: Unable to connect to Flux: broker socket")
    with pytest.raises(SchedulerUnavailable):
        flux.states(["f1"])
    (batch / "refuse").write_text("flux-batch: ERROR: invalid queue 'x' specified")
    with pytest.raises(SchedulerError, match="invalid queue"):
        flux.submit(script(batch, flux, request()), request())


def test_states_of_nodes(batch: Path) -> None:
    nodes = {
        "n1": {"state": "free"},
        "n2": {"state": "job-exclusive"},
        "n3": {"state": "offline,down", "comment": "DIMM"},
        "n5": {"state": "free", "jobs": ["7.pbs01"]},  # real: some of its processors are free
        "n6": {"state": "offline", "jobs": ["7.pbs01"]},
        "n7": {"state": "job-exclusive,resv-exclusive"},
    }
    (batch / "nodes.json").write_text(json.dumps({"nodes": nodes}))
    expected = {"n1": "idle", "n2": "busy", "n3": "down offline,down DIMM", "n5": "busy"}
    expected |= {"n6": "down offline", "n7": "reserved job-exclusive,resv-exclusive"}
    names = [f"n{number}" for number in range(1, 8)]
    assert pbs.nodes(names) == expected
    assert isinstance(pbs, Pbs)
    idle = {name for name, status in pbs.node_status(names).items() if status.idle}
    assert idle == {"n1", "n3"}
    assert loadleveler.nodes([f"p595-0{number}" for number in range(1, 8)]) == {
        **{"p595-01": "idle", "p595-02": "busy", "p595-03": "down Down", "p595-04": "busy"},
        **{"p595-05": "down Drained", "p595-06": "down Draining"},
    }
    assert lsf.nodes(["n1", "n2", "n3", "n4", "n5", "n6"]) == {
        **{"n1": "idle", "n2": "busy", "n3": "busy"},
        **{"n4": "down closed_Adm", "n5": "down unavail"},
    }
    assert flux.nodes(["n1", "n2", "n3", "n4-ib", "n5"]) == {
        **{"n1": "idle", "n2": "busy", "n3": "busy", "n4-ib": "down"},
    }


@pytest.mark.parametrize("output", ["{", "[]", '{"RECORDS": [1]}', '{"JOBS": 0}', "[" * 100_000])
def test_damaged_json_of_bjobs_is_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: str
) -> None:
    (tmp_path / "output").write_text(output)
    (tmp_path / "bjobs").write_text(f"#!/bin/sh\ncat {tmp_path}/output\n")
    (tmp_path / "bjobs").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(SchedulerUnavailable, match="not JSON of jobs"):
        lsf.states(["1"])


def test_a_missing_command_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(NoCommand, match="qstat: no such program"):
        pbs.states(["1"])


def test_one_by_one_runs_on_every_node_and_fails_if_one_node_fails(tmp_path: Path) -> None:
    (tmp_path / "ssh").write_text(
        "#!/bin/sh\nfor last; do shift; case $last in n*) node=$last; break;; esac; done\n"
        f'[ "$node" != n2 ] || exit 3\neval "set -- $*"\n'  # as the shell on the node does
        f'for word; do node="$node|$word"; done\necho "$node" >>"{tmp_path}/seen"\n'
    )
    (tmp_path / "ssh").chmod(0o755)
    lines = loadleveler.fan_out(request("n1", "n2", "n3"))
    (tmp_path / "try").write_text("\n".join([*lines, "on_all '/x y/run.sh' \"it's\" '$HOME'"]))
    path = f"{tmp_path}:{os.environ['PATH']}"
    done = subprocess.run(["sh", str(tmp_path / "try")], env={"PATH": path}, check=False)
    assert done.returncode == 3
    seen = sorted((tmp_path / "seen").read_text().splitlines())
    assert seen == ["n1|sh|/x y/run.sh|it's|$HOME", "n3|sh|/x y/run.sh|it's|$HOME"]


@pytest.mark.parametrize("word", ["TERM", "USR2", "XCPU"])
def test_each_stop_signal_ends_the_processes_of_one_by_one(tmp_path: Path, word: str) -> None:
    """LSF and Grid Engine send their own signals to all processes of a job, also to this shell."""
    trap = f"trap 'echo >{tmp_path}/stopped; exit 1' TERM"
    (tmp_path / "ssh").write_text(f"#!/bin/sh\n{trap}\necho >{tmp_path}/started\n{LOOP}\n")
    (tmp_path / "ssh").chmod(0o755)
    lines = ["SIGNALS='TERM USR2 XCPU'", *loadleveler.fan_out(request("n1")), "on_all x"]
    (tmp_path / "try").write_text("\n".join(lines))
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    with running(subprocess.Popen(["dash", str(tmp_path / "try")], env=environment)) as process:
        until((tmp_path / "started").exists)
        process.send_signal(signal.Signals[f"SIG{word}"])
        process.wait(60)
        until((tmp_path / "stopped").exists)


@pytest.mark.parametrize("where", ["PATH", "pbs.conf", "quoted pbs.conf", "PBS_O_PATH"])
def test_pbsdsh_is_found_on_a_node_whose_path_lacks_it(tmp_path: Path, where: str) -> None:
    """A pbsdsh in the PATH of the job is first; the others follow it."""
    folders = {"PATH": tmp_path / "path", "PBS_O_PATH": tmp_path / "submitted"}
    found = folders.get(where, tmp_path / "opt/pbs/bin")
    found.mkdir(parents=True)
    (found / "pbsdsh").write_text('#!/bin/sh\nprintf "[%s]" "$@"\n')
    (found / "pbsdsh").chmod(0o755)
    quote = '"' if "quoted" in where else ""
    installed = tmp_path / ("opt/pbs" if "conf" in where else "none")
    (tmp_path / "pbs.conf").write_text(f"PBS_SERVER=x\nPBS_EXEC={quote}{installed}{quote}\n")
    environment = {
        "PATH": f"{folders['PATH']}:{os.environ['PATH']}",
        "PBS_CONF_FILE": f"{tmp_path / 'pbs.conf'}",
        "PBS_O_PATH": f"/nonexistent:{folders['PBS_O_PATH']}",
    }
    script = "\n".join([*pbs.fan_out(request("n1", "n2")), "on_all '/x y/run.sh' '$HOME'"])
    done = subprocess.run(
        ["sh", "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == "[--][sh][/x y/run.sh][$HOME]"


@pytest.mark.parametrize(
    ("name", "reason", "state"),
    [
        ("RUNNING", "None", State.RUNNING),
        ("CONFIGURING", "None", State.WAITING),
        ("SUSPENDED", "None", State.SUSPENDED),
        ("COMPLETED", "None", State.ENDED_UNKNOWN),
        ("FAILED", "NonZeroExitCode", State.ENDED_UNKNOWN),
        ("CANCELLED", "None", State.CANCELLED),
        ("TIMEOUT", "TimeLimit", State.TIME_LIMIT),
        ("NODE_FAIL", "None", State.NODE_FAILED),
        ("OUT_OF_MEMORY", "None", State.KILLED),
        ("PREEMPTED", "None", State.PREEMPTED),
        ("PENDING", "JobHeldAdmin", State.HELD),
        ("PENDING", "launch failed requeued held", State.HELD),
        ("PENDING", "launch_failed_requeued_held", State.HELD),
        ("PENDING", "PartitionDown", State.UNAVAILABLE),
        ("PENDING", "ReqNodeNotAvail, UnavailableNodes:knl0007", State.WAITING),
        ("PENDING", "ReqNodeNotAvail, May be reserved for other job", State.WAITING),
        ("PENDING", "ReqNodeNotAvail, Reserved for maintenance", State.WAITING),
        (
            "PENDING",
            "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority "
            "partitions",
            State.WAITING,
        ),
        ("PENDING", "Nodes_required_for_job_are_DOWN,_DRAINED_or_reserved", State.WAITING),
        ("PENDING", "Priority", State.WAITING),
        ("PENDING", "Resources", State.WAITING),
        ("BORED", "None", State.UNKNOWN),
    ],
)
def test_states_of_slurm(name: str, reason: str, state: State) -> None:
    assert status_of_job(name, reason).state is state


@pytest.mark.parametrize(
    ("letters", "state"),
    [
        ("qw", State.WAITING),
        ("hqw", State.HELD),
        ("Eqw", State.HELD),
        ("r", State.RUNNING),
        ("t", State.RUNNING),
        ("dr", State.RUNNING),
        ("Rr", State.RUNNING),
        ("Rq", State.WAITING),
        ("s", State.SUSPENDED),
        ("S", State.SUSPENDED),
        ("T", State.SUSPENDED),
        ("z", State.UNKNOWN),
    ],
)
def test_states_of_grid_engine(letters: str, state: State) -> None:
    assert sge._state(letters).state is state
