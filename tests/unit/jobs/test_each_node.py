"""Steps that each node measures alone: planned once, one script, results by node."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from shlex import quote
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fixtures.finished import judged, write_execution
from tests.fixtures.kit import SOUND, SYMBOLS, Kit, execution, kit_with, topology

from proofmark.common.errors import BadInput
from proofmark.common.files import read_json
from proofmark.jobs.execute import execute, pick
from proofmark.judge.judging import judge_run
from proofmark.machine.scheduler import Request, SchedulerError
from proofmark.machine.schedulers.none import NoScheduler
from proofmark.plan.expansion import make_plan
from proofmark.plan.plan import Plan, Step
from proofmark.plan.step import StepInstance
from proofmark.runs.journal import Journal
from proofmark.runs.run import Run, open_run
from proofmark.runs.state import begin
from proofmark.site.firmware import Firmware
from proofmark.site.machines import Machine

HERE = os.uname().nodename.partition(".")[0]
PAIR = Step(
    id="",
    case="",
    repeat=1,
    nodes=[],
    ranks=2,
    threads=1,
    placement="",
    parameters={},
    derived={},
    package="",
    program="",
    launch="mpi",
    arguments=[],
    environment={},
    inputs={},
    output="",
    variants={},
    cpus=[],
    seconds=1,
    timeout=1,
    bytes=0,
    scope="each-pair",
)
HOSTS = ("node1", "node2", "node10", HERE)


kit = kit_with(suites={"quick": {"scope": "each-node", "sweep": {"size": 1}}})


def planned(kit: Kit, scope: str = "each-node", hosts: tuple[str, ...] = HOSTS) -> Plan:
    nodes = {"each-pair": 2}.get(scope, 1)
    kit.case(suites={"quick": {"scope": scope, "sweep": {"size": 1, "nodes": nodes}}})
    return kit.plan(site=kit.site(hosts=hosts))


def run_of(kit: Kit, hosts: tuple[str, ...] = HOSTS) -> Run:
    return kit.run(site=kit.site(hosts=hosts))


def measured(
    run: Run, step: Step, folder: str, host: str, rate: int = 100, number: int = 1
) -> None:
    """Write an execution of a node into a folder of a step."""
    path = run.folder / "workdir/steps" / step.id / folder
    output = {"stdout": f"size 1\nrate {rate}\nEND\n"}
    write_execution(path, host, output, number=number)


def test_one_step_has_all_nodes(kit: Kit) -> None:
    made = planned(kit)
    (step,) = made.steps()
    assert step.instances() == {StepInstance(step.id, host): [host] for host in HOSTS}
    assert made.totals.jobs == 1
    many = planned(kit, hosts=tuple(f"n{number:04d}" for number in range(8305)))
    assert len(json.dumps(many.model_dump(mode="json"))) < 3000


def test_a_single_node_has_a_step_of_scope_job(kit: Kit) -> None:
    (step,) = planned(kit, hosts=("localhost",)).steps()
    assert (step.scope, step.nodes) == ("job", ["localhost"])


@given(count=st.integers(3, 40))
def test_pairings_are_disjoint_and_every_node_has_two(count: int) -> None:
    nodes = [f"n{number:02d}" for number in range(count)]
    met: dict[str, list[str]] = {node: [] for node in nodes}
    for pairing in (1, 2, 3) if count % 2 else (1, 2):
        step = PAIR.model_copy(update={"nodes": nodes, "pairing": pairing})
        pairs = step.instances().values()
        assert step.measurements == len(pairs)
        busy = [node for pair in pairs for node in pair]
        assert len(busy) == len(set(busy))
        for one, other in pairs:
            met[one].append(other)
            met[other].append(one)
    assert all(len(set(others)) == 2 for others in met.values())


def test_a_limit_of_nodes_per_job_makes_several_jobs(kit: Kit) -> None:
    planned(kit)
    made = kit.plan(site=kit.site(hosts=HOSTS, nodes_per_job=3))
    assert [len(job.nodes) for group in made.groups for job in group.jobs] == [3, 1]
    measured = [each.name for step in made.steps() for each in step.instances()]
    assert sorted(measured) == sorted(HOSTS)


@pytest.mark.parametrize(("most", "sizes"), [(3, [1, 2]), (None, [1, 2, 4])])
def test_a_job_of_several_nodes_respects_the_limit_of_nodes(
    kit: Kit, most: int | None, sizes: list[int]
) -> None:
    kit.case(suites={"quick": {"sweep": {"size": 1, "nodes": "{doubling(1, nodes)}"}}})
    kit.program()
    site = kit.site(hosts=HOSTS, nodes_per_job=most)
    machine = Machine({**SYMBOLS, "nodes": 4}, topology())
    made = make_plan(kit.benchmarks(), "quick", site, machine)
    assert [len(step.nodes) for step in made.steps()] == sizes
    reason = "fake: more than 3 nodes together: nodes_per_job"
    assert made.left_out == ([reason] if most else [])


@pytest.mark.parametrize("scope", ["job", "each-pair"])
def test_two_nodes_are_refused_if_a_job_may_have_one(kit: Kit, scope: str) -> None:
    kit.case(suites={"quick": {"scope": scope, "sweep": {"size": 1, "nodes": 2}}})
    with pytest.raises(BadInput, match=r"fake.yml: sweep.nodes: found 2 nodes .*nodes_per_job"):
        kit.plan(site=kit.site(hosts=HOSTS, nodes_per_job=1))


def test_plan_json_folds_nodes_and_reads_back(kit: Kit, tmp_path: Path) -> None:
    made = planned(kit, hosts=("n1", "n2", "n3"))
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(made.model_dump(mode="json")))
    assert '"n[1-3]"' in path.read_text()
    assert read_json(path, Plan) == made


@pytest.fixture
def staged(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a run whose scheduler accepts jobs of several nodes; "none" does not."""
    monkeypatch.setattr(
        "proofmark.machine.schedulers.none.NoScheduler.header", lambda self, request: []
    )
    return run_of(kit)


def test_each_node_writes_into_its_folder(staged: Run) -> None:
    (step,) = staged.plan.steps()
    script = staged.folder / "workdir/steps" / step.id / "run.sh"
    subprocess.run(["sh", str(script)], check=True, stdin=subprocess.DEVNULL)
    folder = script.parent / HERE
    assert (execution(folder) / "rc").read_text() == "0\n"
    assert "rate 100" in (execution(folder) / "stdout").read_text()
    assert [path.name for path in script.parent.iterdir() if path.is_dir()] == [HERE]
    coverage = judge_run(staged).coverage
    assert (coverage.expected, coverage.measured) == (4, 1)


def test_a_job_passes_its_attempt_to_a_node_without_its_environment(staged: Run) -> None:
    """A remote shell passes no variables: the attempt is an argument."""
    (step,) = staged.plan.steps()
    script = staged.folder / "workdir/steps" / step.id / "run.sh"
    command = ["sh", str(script), "--attempt=job-1/attempt-3", "--unfinished"]
    for _ in range(2):
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    subprocess.run([*command[:2]], check=True, stdin=subprocess.DEVNULL)
    folders = [execution(script.parent / HERE, number) for number in (1, 2)]
    attempts = [json.loads((path / "when.json").read_text())["attempt"] for path in folders]
    assert attempts == ["job-1/attempt-3", ""], "the second call with --unfinished ran nothing"


@pytest.mark.parametrize(("absent", "measures"), [("node1", False), ("node10", True)])
def test_a_pair_is_not_measured_without_its_other_node(
    kit: Kit, monkeypatch: pytest.MonkeyPatch, absent: str, measures: bool
) -> None:
    monkeypatch.setattr(
        "proofmark.machine.schedulers.none.NoScheduler.header", lambda self, request: []
    )
    planned(kit, "each-pair")
    step = next(step for step in run_of(kit).plan.steps() if step.pairing == 2)
    assert StepInstance(step.id, f"{HERE}+node1") in step.instances()
    folder = kit.folder / "runs/latest-here/workdir/steps" / step.id
    command = ["sh", str(folder / "run.sh"), "--unfinished", f"--without=n,{absent}"]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    assert execution(folder / f"{HERE}+node1").exists() == measures


def test_a_node_measures_only_the_pairs_that_it_sends_to(
    kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node without a pair in a wave, or with the other end of one, does nothing in it."""
    monkeypatch.setattr(
        "proofmark.machine.schedulers.none.NoScheduler.header", lambda self, request: []
    )
    suite = {"scope": "each-pair", "pairs": "rounds", "sweep": {"size": 1, "nodes": 2}}
    kit.case(suites={"quick": [suite, {**suite, "pairs": "alone"}]})
    run = run_of(kit, hosts=HOSTS)
    expected = []
    for step in run.plan.steps():
        script = run.folder / "workdir/steps" / step.id / "run.sh"
        command = ["sh", str(script), "--attempt=job-1/attempt-1", "--unfinished"]
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
        pairs = [pair.name for pair, (sender, _) in step.instances().items() if sender == HERE]
        made = [path.name for path in script.parent.iterdir() if path.is_dir()]
        assert made == pairs
        expected += [f"{step.id}/{pair}" for pair in pairs]
        for pair in pairs:
            when = json.loads((execution(script.parent / pair) / "when.json").read_text())
            assert when["ended"] > when["seconds"] > 0
    # Three rounds of two pairs, and six waves of one pair each.
    coverage = judge_run(run).coverage
    assert (coverage.expected, coverage.measured) == (12, len(expected))
    (again,) = pick(run, expected[:1])
    assert str(again.instance) == expected[0]
    assert again.nodes == again.step.instances()[again.instance]
    assert again.nodes[0] == HERE


FIRMWARE = Firmware(back_end="manual")
VERIFIED = ("verified", {"mode": "current", "seen": {}})
UNPROVEN: dict[str, tuple[list[tuple[str, dict[str, Any]]], str]] = {
    "failed": (
        [VERIFIED, ("fail", {"outcome": "NOT_APPLIED", "text": "MemoryMode=Cache"})],
        "NOT_APPLIED: MemoryMode=Cache",
    ),
    "another-mode": ([("verified", {"mode": "snc4-flat", "seen": {}})], "in mode snc4-flat"),
    "no-journal": ([], "not verified"),
}
"""The journal of a node whose mode is not proven, and the reason."""


def run_with_firmware(kit: Kit, monkeypatch: pytest.MonkeyPatch, lines: Any) -> Run:
    """Return a run of a site that sets modes; the journal of node2 has `lines`."""
    monkeypatch.setattr(
        "proofmark.machine.schedulers.none.NoScheduler.header", lambda self, request: []
    )
    run = kit.run(site=kit.site(hosts=HOSTS, firmware=FIRMWARE))
    for host in HOSTS:
        for state, facts in lines if host == "node2" else [VERIFIED]:
            Journal(begin(open_run(run.folder)).folder, host).result(state, **facts)
    return run


@pytest.fixture
def submitted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the scripts of the jobs that were submitted; none of them runs."""
    scripts: list[str] = []

    def submit(self: object, script: Path, request: Request) -> str:
        scripts.append(script.read_text())
        raise SchedulerError("refused by the test")

    monkeypatch.setattr(NoScheduler, "submit", submit)
    return scripts


@pytest.mark.fault("mode-unproven")
@pytest.mark.parametrize("journal", UNPROVEN)
@pytest.mark.parametrize("scope", ["each-node", "each-pair", "job"])
def test_the_others_measure_without_a_node_of_unverified_mode(
    kit: Kit, monkeypatch: pytest.MonkeyPatch, submitted: list[str], scope: str, journal: str
) -> None:
    nodes = {"each-node": 1, "each-pair": 2, "job": 4}[scope]
    kit.case(suites={"quick": {"scope": scope, "sweep": {"size": 1, "nodes": nodes}}})
    lines, reason = UNPROVEN[journal]
    run, messages = run_with_firmware(kit, monkeypatch, lines), list[str]()
    execute(run, "none", messages.append)
    (stopped, *others) = judge_run(run).coverage.stopped
    if scope == "job":
        assert submitted == []
        assert f"NOT RUN: node2: {reason}" in messages[0]
        assert f"its nodes are not available: node2: {reason}" in stopped
        return
    (script,) = submitted
    assert "\nNODES=3\n" in script
    assert f"\nWITHOUT={'node2' if scope == 'each-pair' else quote('')}\n" in script
    assert others == [f"job 00-0001: without node2: {reason} (mode current)"]


@pytest.mark.parametrize("scope", ["each-node", "each-pair", "job"])
def test_all_nodes_measure_if_the_mode_of_all_is_proven(
    kit: Kit, monkeypatch: pytest.MonkeyPatch, submitted: list[str], scope: str
) -> None:
    """The control: a failure before the proof does not count."""
    nodes = {"each-node": 1, "each-pair": 2, "job": 4}[scope]
    kit.case(suites={"quick": {"scope": scope, "sweep": {"size": 1, "nodes": nodes}}})
    lines = [*reversed(UNPROVEN["failed"][0])]
    execute(run_with_firmware(kit, monkeypatch, lines), "none", lambda line: None)
    (script,) = submitted
    assert "\nNODES=4\n" in script


@pytest.mark.fault("node-without-result")
def test_a_node_without_a_result_is_named(staged: Run) -> None:
    (step,) = staged.plan.steps()
    for host in HOSTS[:-1]:
        measured(staged, step, host, host)
    answer = judge_run(staged)
    assert [each.message for each in answer.coverage.missing] == [f"{step.id}: {HERE}"]
    assert answer.exit_code() == 2
    measured(staged, step, HERE, HERE)
    assert judge_run(staged).coverage.missing == ()
    assert judge_run(staged).coverage.measured == 4


@pytest.mark.fault("folder-of-another-node")
def test_a_value_belongs_to_the_host_that_wrote_it(staged: Run) -> None:
    (step,) = staged.plan.steps()
    wrong = {"node2": "node10", "node10": "node2"}  # the order of names sorted as text
    for number, host in enumerate(HOSTS):
        measured(staged, step, host, wrong.get(host, host), rate=number + 1)
    by_node = {result.record.node: result for result in judged(staged).results}
    assert by_node["node10"].reason == "ran on node10, planned on node2"
    assert {node for node, each in by_node.items() if each.verdict == "INVALID"} == {*wrong}
    for number, host in enumerate(HOSTS):
        measured(staged, step, host, host, rate=number + 1)
    values = {each.record.node: each.record.value for each in judged(staged).results}
    assert values == {host: number + 1 for number, host in enumerate(HOSTS)}


def test_a_repeat_on_one_node_counts_only_for_that_node(staged: Run) -> None:
    (step,) = staged.plan.steps()
    for host in HOSTS:
        measured(staged, step, host, host)
    measured(staged, step, "node1", "node1", rate=300, number=2)
    values = {result.record.node: result.values for result in judged(staged).results}
    assert values["node1"] == (100, 300)
    assert values["node2"] == (100,)


def test_a_pair_has_the_names_of_both_nodes(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "proofmark.machine.schedulers.none.NoScheduler.header", lambda self, request: []
    )
    planned(kit, "each-pair")
    run = run_of(kit, hosts=("n1", "n2", "n3", "n4"))
    for step in run.plan.steps():
        for pair, (one, _) in step.instances().items():
            measured(run, step, pair.name, one)
    answer = judge_run(run)
    nodes = sorted(result.record.node for result in answer.results)
    assert nodes == ["n[1,4]", "n[1-2]", "n[2-3]", "n[3-4]"]
    assert answer.coverage.measured == answer.coverage.expected == 4


def modes(kit: Kit, **changes: Any) -> Run:
    site = kit.site()
    partition = site.partition.model_validate(
        {**site.partition.model_dump(), "modes": ["flat", "cache"], "current_mode": "flat"}
    )
    kit.case(suites={"quick": {"sweep": {"size": 1}, "modes": ["flat", "cache"], **changes}})
    kit.program(SOUND)
    return kit.run(site=site.model_copy(update={"partition": partition}))


@pytest.mark.fault("mode-not-current")
def test_steps_of_another_mode_are_not_run_and_listed(kit: Kit) -> None:
    run = modes(kit)
    assert [group.mode for group in run.plan.groups] == ["flat", "cache"]
    execute(run, "none", lambda line: None)
    now, other = run.plan.steps()
    assert execution(run.folder / "workdir/steps" / now.id).exists()
    assert not execution(run.folder / "workdir/steps" / other.id).exists()
    answer = judge_run(run)
    (not_run,) = answer.coverage.not_run
    assert not_run.message == f"{other.id}: NOT RUN: needs mode cache"
    assert (not_run.step, not_run.mode) == (other.id, "cache")
    assert (answer.coverage.expected, answer.coverage.measured) == (1, 1)
    assert {result.record.mode for result in answer.results} == {"flat"}
    assert answer.exit_code(strict=True) == 4


def test_without_other_modes_nothing_is_listed(kit: Kit) -> None:
    run = modes(kit, modes=[])
    assert judge_run(run).coverage.not_run == ()


@pytest.mark.parametrize(("scope", "nodes"), [("job", 4), ("each-node", 1), ("each-pair", 2)])
def test_the_nodes_of_a_measurement_follow_from_its_scope(kit: Kit, scope: str, nodes: int) -> None:
    step = next(kit.plan().steps()).model_copy(update={"scope": scope, "nodes": [*"abcd"]})
    assert step.nodes_each == nodes
    assert {len(each) for each in step.instances().values()} == {nodes}
    assert step.measurements == 4 // nodes
