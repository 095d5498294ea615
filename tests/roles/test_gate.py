"""A gate on a real Slurm: holds, decisions, releases, and their faults."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from threading import Event

import pytest
from tests.emulators.vcluster import Cluster, Slurm
from tests.fixtures.kit import until

from proofmark.common.rights import this_user
from proofmark.machine.outcome import NodeError, Outcome
from proofmark.machine.scheduler import kept_for_others
from proofmark.machine.schedulers.slurm import Slurm as Scheduler
from proofmark.packages.service.gate_checks import GateCheck, read_checks, vendor_file
from proofmark.packages.service.gates import NodeGate, begin_gate, open_gate

pytestmark = [pytest.mark.slow, pytest.mark.root]

FAN = "a fan was replaced"


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    folder = tmp_path_factory.mktemp("gate")
    with Cluster(folder / "cluster", 3, shared=[folder]) as cluster, Slurm(cluster) as started:
        yield started


@pytest.fixture(autouse=True)
def clean(slurm: Slurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Give each test its own state, and nodes in service."""
    monkeypatch.setenv("PATH", f"{slurm.cluster.bin}:/usr/bin:/bin")
    monkeypatch.setenv("PROOFMARK_STATE", f"{tmp_path / 'state'}")
    yield
    for name in Scheduler().reservations():
        Scheduler().delete_reservation(name)
    out = [node for node, status in statuses(slurm).items() if status[0]]
    if out:
        Scheduler().resume(out)
    slurm.wait_until_idle()


def statuses(slurm: Slurm) -> dict[str, tuple[bool, str]]:
    """Return whether each node is out of service, and why."""
    found = Scheduler().node_status(slurm.cluster.names)
    return {
        node: (status.out, status.reason if status.out else "") for node, status in found.items()
    }


def gate_of(slurm: Slurm, tmp_path: Path, *nodes: str) -> NodeGate:
    state = begin_gate("here", "knl", tmp_path / "runs", this_user().name, "test", nodes)
    return NodeGate(state, Scheduler(), lambda line: None, Event(), poll_s=0.2)


def check_of(gate: NodeGate, node: str, action: str, **facts: object) -> GateCheck:
    reason = gate.state.claims.reason("slow") if action == "keep" else ""
    words = {"at": "2026-11-23T10:00:00+00:00", "gate": gate.state.id, "run": "runs/x"}
    given = {**words, "node": node, "action": action, "reason": "slow", "drain": reason, **facts}
    return GateCheck.model_validate(given)


def drain(slurm: Slurm, node: str) -> None:
    slurm.call("scontrol", "update", f"NodeName={node}", "State=DRAIN", f"Reason={FAN}")


def submit(slurm: Slurm, node: str, seconds: int, *options: str) -> str:
    folder = slurm.cluster.folder.parent  # the nodes see it
    script = folder / f"job-{seconds}.sh"
    script.write_text(f"#!/bin/sh\nexec sleep {seconds}\n")
    output = f"--output={folder}/job.out"
    place = (f"--nodelist={node}", output, f"--chdir={folder}")
    return slurm.call("sbatch", "--parsable", *place, *options, str(script)).strip()


def job_state(slurm: Slurm, job: str) -> str:
    return slurm.call(
        "squeue", "--noheader", "--states=all", f"--jobs={job}", "--format=%T"
    ).strip()


def test_a_good_node_is_resumed_and_a_bad_one_is_kept_with_the_reason(
    slurm: Slurm, tmp_path: Path
) -> None:
    drain(slurm, "knl0001")
    drain(slurm, "knl0002")
    gate = gate_of(slurm, tmp_path, "knl0001", "knl0002")
    nodes = ["knl0001", "knl0002"]
    assert gate.hold(nodes, {}, take_over=True, wait_s=30) == {}
    assert not statuses(slurm)["knl0001"][0], "it can run the jobs of the gate"
    other = submit(slurm, "knl0001", 0)
    own = submit(slurm, "knl0001", 0, f"--reservation={gate.state.reservation}")
    until(lambda: job_state(slurm, own) == "COMPLETED", 600)
    assert job_state(slurm, other) == "PENDING"
    fault = {"fault": True, "serial_number": "S1", "evidence": "=slow"}
    checks = [check_of(gate, "knl0001", "resume"), check_of(gate, "knl0002", "keep", **fault)]
    assert gate.conclude(checks) == {}
    assert statuses(slurm)["knl0001"] == (False, "")
    assert statuses(slurm)["knl0002"] == (True, checks[1].drain)
    assert Scheduler().reservations() == {}
    until(lambda: job_state(slurm, other) == "COMPLETED", 600)
    assert gate.conclude(checks) == {}, "a repetition changes nothing"
    site = gate.state.site
    assert [check.node for check in read_checks(site)] == nodes
    rows = vendor_file(site).read_text().splitlines()
    assert len(rows) == 2
    assert ",knl0002,S1,,'=slow," in rows[1]
    again = gate_of(slurm, tmp_path, "knl0002")
    drained = {"knl0002": checks[1].drain}
    assert again.hold(["knl0002"], drained, take_over=False, wait_s=30) == {}, "its own drain"
    again.release()


@pytest.mark.fault("gate-interrupted")
def test_an_interrupted_gate_is_released_from_its_journals(slurm: Slurm, tmp_path: Path) -> None:
    drain(slurm, "knl0001")
    before = statuses(slurm)
    gate = gate_of(slurm, tmp_path, "knl0001", "knl0003")
    assert gate.hold(["knl0001", "knl0003"], {}, take_over=True, wait_s=30) == {}
    state = open_gate("here", gate.state.id)  # another process
    assert set(state.held()) == {"knl0001", "knl0003"}
    second = gate_of(slurm, tmp_path, "knl0003")
    (held,) = second.hold(["knl0003"], {}, take_over=True, wait_s=5).values()
    assert f"held by run {gate.state.id}" in held.text
    released = NodeGate(state, Scheduler(), lambda line: None, Event(), poll_s=0.2)
    assert released.release() == {}
    assert statuses(slurm) == before
    assert Scheduler().reservations() == {}
    assert state.held() == {}
    assert not list(state.claims.nodes())


@pytest.mark.fault("gate-drained-by-admin")
def test_a_node_that_others_drained_is_neither_held_nor_resumed(
    slurm: Slurm, tmp_path: Path
) -> None:
    drain(slurm, "knl0001")
    gate = gate_of(slurm, tmp_path, "knl0001", "knl0002")
    failed = gate.hold(["knl0001", "knl0002"], {}, take_over=False, wait_s=30)
    assert list(failed) == ["knl0001"]
    assert f"drained by others: {FAN}; take_over=true" in failed["knl0001"].text
    drain(slurm, "knl0002")  # while it is measured
    failed = gate.conclude([check_of(gate, "knl0002", "resume")])
    assert f"not resumed, drained by others: {FAN}" in failed["knl0002"].text
    assert statuses(slurm)["knl0002"] == (True, FAN)
    assert Scheduler().reservations() == {}


@pytest.mark.fault("gate-never-idle")
def test_a_node_whose_jobs_do_not_end_is_left_and_the_others_are_held(
    slurm: Slurm, tmp_path: Path
) -> None:
    job = submit(slurm, "knl0002", 600)
    until(lambda: job_state(slurm, job) == "RUNNING", 600)
    gate = gate_of(slurm, tmp_path, "knl0001", "knl0002")
    failed = gate.hold(["knl0001", "knl0002"], {}, take_over=False, wait_s=1)
    assert {node: f"{error}" for node, error in failed.items()} == {
        "knl0002": "NOT_DRAINED: jobs still run after 1 s"
    }
    assert Scheduler().reservations() == {gate.state.reservation: ["knl0001"]}
    assert job_state(slurm, job) == "RUNNING"
    gate.release()
    slurm.call("scancel", job)
    until(lambda: not slurm.call("squeue", "--noheader", "--states=running,completing"), 600)


def test_the_run_of_a_gate_works_on_its_nodes_and_no_other_run_does(
    slurm: Slurm, tmp_path: Path
) -> None:
    """The gate, the mounts and the changes of modes ask one function who has reserved a node."""
    gate = gate_of(slurm, tmp_path, "knl0001")
    assert gate.hold(["knl0001"], {}, take_over=False, wait_s=30) == {}
    names = ["knl0001", "knl0002"]
    assert kept_for_others(Scheduler(), names, gate.state.reservation) == {}
    (kept,) = kept_for_others(Scheduler(), names, "").items()
    assert (kept[0], kept[1].outcome) == ("knl0001", Outcome.HELD)
    gate.release()


def test_a_node_in_the_reservation_of_another_person_is_not_held(
    slurm: Slurm, tmp_path: Path
) -> None:
    Scheduler().reserve("maintenance", ["knl0001"], this_user().name)
    gate = gate_of(slurm, tmp_path, "knl0001")
    (refused,) = gate.hold(["knl0001"], {}, take_over=True, wait_s=5).values()
    assert "in the reservation maintenance of another person" in refused.text
    assert Scheduler().reservations() == {"maintenance": ["knl0001"]}


# The last test: the controller that it starts ends with the cluster, after the tests of this file.
def test_a_controller_that_does_not_answer_holds_no_node(slurm: Slurm, tmp_path: Path) -> None:
    gate = gate_of(slurm, tmp_path, "knl0001")
    slurm.stop_controller(signal.SIGTERM)  # it saves the ends of the jobs of the other tests
    try:
        with pytest.raises(NodeError, match=r"sinfo: .*contact slurm controller") as raised:
            gate.hold(["knl0001"], {}, take_over=True, wait_s=5)
        assert raised.value.outcome == Outcome.NO_ANSWER
    finally:
        slurm.start_controller()
    assert gate.state.nodes() == {}
    until(lambda: statuses(slurm)["knl0001"] == (False, ""), 600, pause_s=0.5)
