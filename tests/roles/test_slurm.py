"""Runs through a real Slurm on a virtual cluster, and their faults."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from typing import Any

import pytest
from tests.emulators.vcluster import Cluster, Slurm
from tests.fixtures.kit import Kit, ends, execution, make_kit, steps_of, until
from tests.forks import tool
from tests.processes import running

from proofmark.common.errors import BadInput
from proofmark.jobs.execute import execute, pick, rerun
from proofmark.jobs.job_request import Arrivals
from proofmark.judge.judging import judge_run
from proofmark.machine.scheduler import NodeStatus
from proofmark.machine.schedulers.slurm import Slurm as Scheduler
from proofmark.packages.service.rolling_plan import rolling_plan
from proofmark.runs.evidence import seal
from proofmark.runs.job_folder import JobFolder
from proofmark.runs.run import Run, open_run
from proofmark.runs.run_files import RunFiles, write_scripts_of
from proofmark.site.contract_document import Contract
from proofmark.site.execution import Queue

pytestmark = pytest.mark.root

WAITS = (
    'echo "size $1"; : >"$GO.$1"; while [ "$1" = 2 ] && [ ! -e "$GO" ]; do sleep 0.05; done; '
    'echo "rate 100"; echo END'
)
"""The step of size 2 waits until the file $GO exists."""


class Site:
    """A kit whose jobs go through the Slurm of a virtual cluster."""

    def __init__(self, kit: Kit, slurm: Slurm) -> None:
        self.kit, self.slurm, self.cluster = kit, slurm, slurm.cluster
        self.go = kit.folder / "go"
        self.lines: list[str] = []

    def run(
        self,
        *,
        nodes: int = 1,
        scope: str = "job",
        contract: Contract | None = None,
        sizes: Sequence[int] = (1, 2, 3),
        **queue: Any,
    ) -> Run:
        """Write a run of `sizes`, as steps of `nodes` nodes or of each node."""
        sweep = {"size": [*sizes], "nodes": 1 if scope == "each-node" else nodes}
        self.kit.case(
            suites={"quick": {"scope": scope, "sweep": sweep}}, environment={"GO": str(self.go)}
        )
        site = self.kit.site(hosts=self.cluster.names[:nodes])
        changes = {"scheduler": "slurm", "queue": Queue(**{"stall_timeout_s": 5, **queue})}
        partition = site.partition.model_copy(update=changes)
        update = {"partition": partition, "contract": contract or site.contract}
        return self.kit.run(site=site.model_copy(update=update))

    def execute(self, run: Run) -> None:
        execute(run, "slurm", self.lines.append)

    @contextmanager
    def begun(self, run: Run) -> Iterator[subprocess.Popen[str]]:
        """Start `proofmark stage execute` and wait until the second step runs."""
        process = subprocess.Popen(
            [tool("proofmark"), "stage", "execute", str(run.folder)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        with running(process):
            until(lambda: self.go.with_name("go.2").exists())
            yield process

    def jobs(self) -> list[str]:
        """Return the ids of all jobs that Slurm lists, also of ended jobs."""
        return self.slurm.call("squeue", "--noheader", "--states=all", "--format=%i").split()


@contextmanager
def slurm_site(
    folder: Path, patch: pytest.MonkeyPatch, nodes: int, program: str = WAITS, **settings: Any
) -> Iterator[Site]:
    """Yield the site of a kit in `folder`; `settings` are arguments of `Slurm`."""
    kit = make_kit(folder)
    kit.program(program)
    with (
        Cluster(folder / "cluster", nodes, shared=[folder]) as cluster,
        Slurm(cluster, **settings) as slurm,
    ):
        patch.setenv("PATH", f"{cluster.bin}:{os.environ['PATH']}")
        yield Site(kit, slurm)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    with slurm_site(tmp_path, monkeypatch, 4) as made:
        yield made


def states(run: Run) -> list[str]:
    """Return the states in the history of the run's only job, without repetition."""
    (group,) = run.plan.groups
    (job,) = group.jobs
    history = [line["state"] for line in JobFolder(run, job).history()]
    return [state for at, state in enumerate(history) if history[at - 1 : at] != [state]]


def stopped(run: Run) -> str:
    (line,) = judge_run(run).coverage.stopped
    return line


def finish(process: subprocess.Popen[str]) -> tuple[int, str]:
    _, stderr = process.communicate(timeout=600)
    return process.returncode, stderr


@pytest.mark.parametrize(
    ("exclusive", "shown"),
    [
        (True, ["NumNodes=2", "NumCPUs=544", "MinMemoryNode=0", "OverSubscribe=NO"]),
        (False, ["NumNodes=2", "NumCPUs=16", "MinMemoryNode=1G", "OverSubscribe=OK"]),
    ],
)
def test_slurm_allocates_the_resources_that_the_header_requests(
    site: Site, exclusive: bool, shown: list[str]
) -> None:
    partition = site.slurm.call("sinfo", "--noheader", "--format=%R").split()[0]
    site.slurm.call("scontrol", "update", f"PartitionName={partition}", "OverSubscribe=NO")
    memory = 1 << 30
    run = site.run(
        nodes=2, scope="each-node", exclusive=exclusive, cpus_per_node=8, memory_per_node=memory
    )
    with site.begun(run) as process:
        (job,) = site.jobs()
        words = site.slurm.call("scontrol", "show", "job", job).split()
        site.go.touch()
        assert finish(process)[0] == 0
    assert [word for word in shown if word not in words] == []
    assert "NodeList=knl[0001-0002]" in words
    assert judge_run(run).coverage.stopped == ()


@pytest.mark.core("one real scheduler")
def test_a_run_goes_through_the_queue(site: Site) -> None:
    """Control: no fault is injected."""
    run = site.run()
    site.go.touch()
    site.execute(run)
    assert ends(run) == ["0", "0", "0"]
    assert states(run)[-2:] in (["RUNNING", "ENDED"], ["WAITING", "ENDED"])
    assert judge_run(run).coverage.stopped == ()
    hosts = {
        json.loads((execution(step) / "when.json").read_text())["host"] for step in steps_of(run)
    }
    assert hosts == {"knl0001"}
    assert not list((run.folder / "queue").rglob("ticket.json"))


def test_every_node_of_a_job_measures_and_is_probed(site: Site) -> None:
    run = site.run(nodes=4, scope="each-node")
    site.go.touch()
    site.execute(run)
    coverage = judge_run(run).coverage
    assert (coverage.expected, coverage.measured, coverage.duplicate) == (12, 12, 0)
    assert len(site.jobs()) == 1
    (attempt,) = (run.folder / "workdir/jobs").glob("*/attempt-*")
    probes = {path.name for path in attempt.glob("knl*")}
    assert probes == {f"{name}.{when}" for name in site.cluster.names for when in BOTH}
    rerun(run, pick(run, ["2/knl0003"]), site.lines.append)
    assert site.lines[-1] == "0002-fake-2/knl0003: exit code 0, in execution-2"
    values = {each.record.node: len(each.values) for each in [*judge_run(run).results][4:8]}
    assert values == {"knl0001": 1, "knl0002": 1, "knl0003": 2, "knl0004": 1}
    assert len(site.jobs()) == 2
    again = {path.name for path in attempt.with_name("attempt-2").glob("knl*")}
    assert again == {f"knl0003.{when}" for when in BOTH}


BOTH = ("before", "after")


def test_jobs_of_other_nodes_run_at_the_same_time_and_idle_nodes_come_first(site: Site) -> None:
    site.slurm.call("scontrol", "update", "NodeName=knl0001", "State=DRAIN", "Reason=spare")
    run = chunked(site, max_jobs=2, stall_timeout_s=2)
    site.go.touch()
    site.execute(run)
    first, *_ = [line for line in site.lines if "jobs:" in line]
    assert "1 to submit" not in first  # two jobs, both submitted
    assert {path.parent.name for path in run.folder.rglob("history.jsonl")} == {
        "00-0001",
        "00-0002",
    }
    assert judge_run(run).coverage.stopped == ("job 00-0001: without knl0001: down drained spare",)


def chunked(site: Site, **queue: Any) -> Run:
    """Write a run with per-node steps in jobs of two nodes."""
    sweep = {"size": [1, 2, 3], "nodes": 1}
    site.kit.case(
        suites={"quick": {"scope": "each-node", "sweep": sweep}}, environment={"GO": str(site.go)}
    )
    made = site.kit.site(hosts=site.cluster.names)
    changes = {"scheduler": "slurm", "queue": Queue(**queue), "nodes_per_job": 2}
    partition = made.partition.model_copy(update=changes)
    return site.kit.run(site=made.model_copy(update={"partition": partition}))


@pytest.mark.fault("node-dies")
def test_a_node_that_dies_during_a_job_is_named_and_the_same_command_continues(site: Site) -> None:
    run = site.run(nodes=2)
    with site.begun(run) as process:
        site.cluster.kill("knl0002")
        assert finish(process)[0] == 0
    assert ends(run) == ["0", None, None]
    assert stopped(run).startswith("job 00-0001: lost a node: knl0002: down down")
    assert stopped(run).endswith("; 2 of 3 steps left")
    assert judge_run(run).exit_code() == 2
    site.cluster.boot("knl0002")
    site.slurm.wait_until_idle()
    site.go.touch()
    site.execute(run)
    assert ends(run) == ["0", "0", "0"]
    assert judge_run(run).coverage.stopped == ()


@pytest.mark.fault("node-dies")
def test_a_node_that_dies_does_not_stop_the_other_nodes(site: Site) -> None:
    run = site.run(nodes=4, scope="each-node")
    with site.begun(run) as process:
        step = steps_of(run)[1]
        until(lambda: len(list(step.glob("*/*/started"))) == 4)
        site.cluster.kill("knl0003")
        site.go.touch()
        assert finish(process)[0] == 0
    coverage = judge_run(run).coverage
    assert [each.nodes for each in coverage.missing] == [("knl0003",)] * 2
    assert coverage.measured == 10


@pytest.mark.fault("scheduler-restarts")
def test_a_restart_of_slurmctld_loses_no_job(site: Site) -> None:
    run = site.run()
    with site.begun(run) as process:
        site.slurm.stop_controller()
        site.go.touch()
        until(lambda: ends(run) == ["0", "0", "0"])
        site.slurm.start_controller()
        assert finish(process)[0] == 0
    assert len(site.jobs()) == 1
    assert judge_run(run).coverage.stopped == ()


@pytest.mark.fault("scheduler-silent")
def test_a_scheduler_that_does_not_answer_is_named_and_the_job_found_later(site: Site) -> None:
    run = site.run(stall_timeout_s=1)
    with site.begun(run) as process:
        site.slurm.stop_controller()
        code, stderr = finish(process)
    assert code == 0
    assert "the scheduler does not answer: squeue: " in stderr
    assert "given up after 1 s" in stopped(run)
    site.slurm.start_controller()
    until(lambda: bool(site.slurm.states()))
    site.go.touch()
    site.execute(run)
    assert ends(run) == ["0", "0", "0"]
    assert len(site.jobs()) == 1


@pytest.mark.fault("job-held")
def test_a_held_job_is_given_up_and_cancelled(site: Site) -> None:
    run = site.run(stall_timeout_s=1, options=["--hold"])
    site.execute(run)
    assert "held: PENDING JobHeldUser, given up after 1 s" in stopped(run)
    assert site.slurm.call("squeue", "--noheader", "--format=%i") == ""


STATES = {"number": "F1", "text": "in service", "check": "states", "value": "in service"}


@pytest.mark.fault("node-drained-during-run")
@pytest.mark.parametrize("drained", [True, False], ids=["drained", "control"])
def test_the_evidence_has_the_states_of_the_nodes(site: Site, drained: bool) -> None:
    """A node is drained while its job runs: the job ends, and the sealed evidence has it."""
    parties = {"buyer": "B"}
    contract = Contract.model_validate({"title": "C", "parties": parties, "items": [STATES]})
    run = site.run(nodes=2, scope="each-node", contract=contract)
    with site.begun(run) as process:
        if drained:
            drain = ("scontrol", "update", "NodeName=knl0002", "State=DRAIN", "Reason=a fan")
            site.slurm.call(*drain)
        site.go.touch()
        assert finish(process)[0] == 0
    seal(run.folder)
    (found,) = judge_run(open_run(run.folder)).checks
    assert found.outcome == ("FAIL" if drained else "PASS")
    assert [*found.faults] == (["knl0002"] if drained else [])
    assert any("a fan" in str(why) for why in found.missed.values()) == drained
    assert any(path.name == RunFiles.node_states.path for path in run.folder.iterdir())


@pytest.mark.fault("nodes-unavailable")
def test_a_job_whose_node_is_drained_is_given_up(site: Site) -> None:
    site.slurm.call("scontrol", "update", "NodeName=knl0001", "State=DRAIN", "Reason=spare")
    run = site.run(stall_timeout_s=4)
    site.execute(run)
    assert "its nodes are not available: PENDING " in stopped(run)
    assert "given up after 4 s" in stopped(run)
    site.slurm.call("scontrol", "update", "NodeName=knl0001", "State=RESUME")
    site.slurm.wait_until_idle()
    site.go.touch()
    site.execute(run)
    assert ends(run) == ["0", "0", "0"]


@pytest.mark.fault("nodes-unavailable")
def test_a_rolling_run_measures_a_drained_node_when_it_returns(site: Site) -> None:
    site.slurm.call("scontrol", "update", "NodeName=knl0001", "State=DRAIN", "Reason=a fan")
    site.kit.case(suites={"quick": {"sweep": {"size": 1, "nodes": 1}}})
    made = site.kit.site(hosts=site.cluster.names[:2])
    changes = {"scheduler": "slurm", "queue": Queue(max_jobs=2)}
    at = made.model_copy(update={"partition": made.partition.model_copy(update=changes)})
    run = site.kit.run(site=at, plan=rolling_plan(site.kit.plan(site=at), at, "node"))
    site.execute(run)
    assert site.lines[-1] == "job 00-0001: waits for knl0001: down drained a fan"
    assert len(site.jobs()) == 1
    resume = ("scontrol", "update", "NodeName=knl0001", "State=RESUME")
    back = Timer(2, lambda: site.slurm.call(*resume))
    back.start()
    execute(run, "slurm", site.lines.append, arrivals=Arrivals(wait_s=600))
    back.join()
    hosts = [
        json.loads((execution(step) / "when.json").read_text())["host"] for step in steps_of(run)
    ]
    assert hosts == ["knl0001", "knl0002"]


@pytest.mark.fault("job-cancelled")
def test_a_job_that_an_admin_cancels_is_named(site: Site) -> None:
    run = site.run()
    with site.begun(run) as process:
        site.slurm.call("scancel", *site.jobs())
        assert finish(process)[0] == 0
    assert "cancelled by another user" in stopped(run)
    assert ends(run) == ["0", None, None]
    site.go.touch()
    site.execute(run)
    assert ends(run) == ["0", "0", "0"]


@pytest.mark.fault("job-refused")
def test_a_job_that_is_refused_is_named_with_the_reason(site: Site) -> None:
    run = site.run(name="nowhere")
    site.execute(run)
    assert "refused: sbatch: " in stopped(run)
    assert "nvalid partition" in stopped(run)


@pytest.mark.fault("job-time-limit")
def test_a_job_at_its_time_limit_continues_if_it_made_progress(site: Site) -> None:
    run = site.run()
    with site.begun(run) as process:
        # A limit of Slurm is whole minutes. The end of a job can be set to the second.
        (first,) = site.jobs()
        site.slurm.call("scontrol", "update", f"JobId={first}", "EndTime=now+1")
        until(lambda: len(site.jobs()) == 2, 600, pause_s=1)  # Slurm looks every half minute
        site.go.touch()
        code, stderr = finish(process)
    assert code == 0
    assert "stopped at its time limit: TIMEOUT TimeLimit; submitted again" in stderr
    assert ends(run) == ["0", "0", "0"]
    assert states(run).count("TIME_LIMIT") == 1
    assert judge_run(run).coverage.stopped == ()


@pytest.mark.fault("submitter-killed")
@pytest.mark.parametrize("known", [True, False], ids=["after its id was recorded", "before"])
def test_a_controller_that_was_killed_finds_its_job_again(site: Site, known: bool) -> None:
    run = site.run()
    with site.begun(run) as process:
        process.kill()
        finish(process)
    (ticket,) = (run.folder / "queue").rglob("ticket.json")
    if not known:
        ticket.write_text(json.dumps({**json.loads(ticket.read_text()), "id": ""}))
    with site.begun(run) as process:
        site.go.touch()
        assert finish(process)[0] == 0
    assert ends(run) == ["0", "0", "0"]
    assert len(site.jobs()) == 1
    assert len(list((run.folder / "workdir/jobs").rglob("attempt-*"))) == 1


def test_a_signal_cancels_the_job_and_the_same_command_continues(site: Site) -> None:
    run = site.run()
    with site.begun(run) as process:
        process.send_signal(signal.SIGINT)
        code, stderr = finish(process)
    again = f"this continues: proofmark stage execute {shlex.quote(f'{run.folder}')}\n"
    assert (code, stderr.endswith(again)) == (130, True), stderr
    assert states(run)[-1] == "STOPPED"
    assert "its own command was stopped and cancelled it: stopped by SIGINT" in stopped(run)
    assert ends(run) == ["0", None, None]
    site.go.touch()
    site.execute(run)
    assert ends(run) == ["0", "0", "0"]


def test_a_script_that_fails_reports_the_reason(site: Site) -> None:
    run = site.run()
    write_scripts_of(run.folder, {"probe.sh": "echo 'the probe is broken' >&2; exit 1\n"})
    with pytest.raises(BadInput, match="exit code 74; the probe is broken; "):
        site.execute(run)


@pytest.mark.slow
def test_sixty_four_nodes_measure_in_one_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kit = make_kit(tmp_path)
    kit.program()
    with Cluster(tmp_path / "cluster", 64, shared=[tmp_path]) as cluster, Slurm(cluster) as slurm:
        monkeypatch.setenv("PATH", f"{cluster.bin}:{os.environ['PATH']}")
        site = Site(kit, slurm)
        run = site.run(nodes=64, scope="each-node", sizes=[1])
        site.execute(run)
        assert len(site.jobs()) == 1
    assert judge_run(run).coverage.measured == judge_run(run).coverage.expected == 64
    by_node = {result.record.node for result in judge_run(run).results}
    assert by_node == set(cluster.names)


PSU = "leaking PSU, do not power on; was State=IDLE"


REASONS = (
    PSU,
    "was proofmark:acc1 on head to flat",
    "State=IDLE Reason=proofmark:acc1 on head to flat",
    "first line\n{other}|idle|none\nproofmark:acc1 on head to flat",
    "  two  blanks ",
)


@pytest.mark.fault("slurm-reason-as-fields")
def test_the_reason_of_a_node_is_read_whole(site: Site) -> None:
    """No part of the reason is read as a state of this node, or as another node."""
    node, other = site.cluster.names[:2]
    for reason in REASONS:
        given = reason.format(other=other)
        site.slurm.call("scontrol", "update", f"NodeName={node}", "State=DRAIN", f"Reason={given}")
        statuses = Scheduler().node_status([node, other, "absent"])
        assert statuses[node] == NodeStatus(out=True, idle=True, reason=given)
        assert statuses[other] == NodeStatus(out=False, idle=True)
        assert statuses["absent"].out and "does not list" in statuses["absent"].reason


def test_the_permission_to_drain_is_read_and_the_comment_of_the_node_stays(site: Site) -> None:
    node, comment = site.cluster.names[0], "bad DIMM in slot 3, see ticket 17"
    site.slurm.call("scontrol", "update", f"NodeName={node}", f"Comment={comment}")
    assert Scheduler().missing_permission(node) == ""
    assert f"Comment={comment}\n" in site.slurm.call("scontrol", "show", "node", node)


def test_the_reason_of_the_kit_is_read_as_it_was_given(site: Site) -> None:
    """The control of the test above, with a job that still runs on one of the nodes."""
    first, second = site.cluster.names[:2]
    site.slurm.call("sbatch", f"--nodelist={first}", "--output=/dev/null", "--wrap=sleep 60")
    until(lambda: not Scheduler().node_status([first])[first].idle)
    reason = "proofmark:acc1 on head.example.org to snc4-flat"
    Scheduler().drain([first, second], reason)
    statuses = Scheduler().node_status([first, second])
    assert statuses[first] == NodeStatus(out=True, idle=False, reason=reason)
    assert statuses[second] == NodeStatus(out=True, idle=True, reason=reason)
    Scheduler().resume([second])
    assert Scheduler().node_status([second])[second] == NodeStatus(out=False, idle=True)
