"""A run that lacks nodes of its partition is labelled, and so are its figures at full scale."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import polars as pl
import pytest
from tests.fixtures.finished import write_execution, write_software
from tests.fixtures.kit import SYMBOLS, Kit, make_kit, topology

from proofmark.cli.main import main
from proofmark.judge.coverage import Degraded, degraded, label
from proofmark.judge.ending import ending
from proofmark.judge.judging import judge_run
from proofmark.plan.expansion import make_plan
from proofmark.plan.plan import Plan
from proofmark.runs.run import Run
from proofmark.runs.start import RunInputs, start_or_continue
from proofmark.site.execution import Queue
from proofmark.site.inventory import Site
from proofmark.site.machines import Machine

HOSTS = tuple(f"n{number}" for number in range(1, 6))
USES = [
    {"scope": "each-node", "sweep": {"size": 1}},
    {"sweep": {"nodes": "{doubling_to(2, nodes)}", "size": 2}, "when": "{nodes >= 2}"},
]
LABEL = label(4, 5)


@pytest.fixture
def kit(tmp_path: Path) -> Kit:
    kit = make_kit(tmp_path)
    kit.suites(system={"title": "Whole"}, quick={"title": "Some"})
    few = {"sweep": {"nodes": "{min(2, nodes)}", "size": 1}}
    kit.case(suites={"system": USES, "quick": few})
    return kit


def site_of_hosts(kit: Kit, hosts: Sequence[str], per_job: int | None = None) -> Site:
    site = kit.site(hosts=hosts, nodes_per_job=per_job)
    return site.model_copy(update={"partition_hosts": list(HOSTS)})


def planned(kit: Kit, site: Site, suite: str = "system") -> Plan:
    symbols = {**SYMBOLS, "nodes": len(site.hosts)}
    return make_plan(kit.benchmarks(), suite, site, Machine(symbols, topology(2)))


@pytest.mark.parametrize(
    ("suite", "nodes", "per_job", "fewer"),
    [
        ("system", 5, None, {}),
        ("system", 4, None, {"fake": 5}),
        ("system", 1, None, {"fake": 5}),
        ("system", 5, 2, {"fake": 5}),  # together; each node is measured alone, in three jobs
        ("quick", 5, None, {}),
        ("quick", 1, None, {}),
    ],
)
def test_a_plan_states_the_cases_with_fewer_nodes_than_the_partition(
    kit: Kit, suite: str, nodes: int, per_job: int | None, fewer: dict[str, int]
) -> None:
    plan = planned(kit, site_of_hosts(kit, HOSTS[:nodes], per_job), suite)
    assert plan.fewer_nodes == fewer
    assert ("fewer_nodes" in plan.model_dump(mode="json")) == bool(fewer)


@pytest.mark.parametrize(
    ("all_nodes", "sizes", "fewer"),
    [(None, {2}, {"fake": 5}), (5, {2, 5}, {}), (4, {2}, {"fake": 5})],
)
def test_a_job_on_all_nodes_of_the_queue_may_exceed_the_limit_of_a_job(
    kit: Kit, all_nodes: int | None, sizes: set[int], fewer: dict[str, int]
) -> None:
    """2, 4, 5 nodes with at most three in a job: the job of four nodes is left out."""
    site = site_of_hosts(kit, HOSTS, per_job=3)
    queue = Queue(all_nodes=all_nodes)
    partition = site.partition.model_copy(update={"queue": queue})
    plan = planned(kit, site.model_copy(update={"partition": partition}))
    together = {len(step.nodes) for step in plan.steps() if step.scope == "job"}
    assert together == sizes | ({3} if all_nodes != 5 else set())
    assert plan.fewer_nodes == fewer
    left_out = "fake: 4 nodes together: nodes_per_job (mode current, 1 point)"
    assert (left_out in plan.left_out) == (all_nodes == 5)


def measured(kit: Kit, hosts: Sequence[str], *, down: str = "") -> Run:
    """Return a run of the suite `system` on `hosts`; the node `down` measured nothing."""
    site = site_of_hosts(kit, hosts)
    folder, plan = kit.folder / "runs", planned(kit, site)
    run, _ = start_or_continue(folder, RunInputs(plan, kit.benchmarks(), site, ""), run_id="whole")
    write_software(run, kit.software())
    for step in plan.steps():
        for instance, members in step.instances().items():
            if down not in members:
                size = step.parameters["size"]
                output = {"stdout": f"size {size}\nrate {100}\nEND\n"}
                write_execution(run.files.step(str(instance)).folder, members[0], output)
    return run


def labelled(run: Run, name: str, folder: Path) -> set[int]:
    """Return the numbers of nodes of the figures that the file `name` labels as degraded."""
    if name == "verdict.json":
        verdict = json.loads(run.files.verdict.read_text(encoding="utf-8"))
        results = [each for each in verdict["results"] if each["degraded"]]
        assert {each["degraded"] for each in results} <= {LABEL}
        return {each["parameters"]["nodes"] for each in results}
    assert main(["export", str(run.folder), "--format", name, "-o", str(folder)]) == 0
    if name == "parquet":
        table = pl.read_parquet(folder / "records.parquet").filter(pl.col("degraded") == LABEL)
        return {json.loads(each)["nodes"] for each in table["parameters"]}
    assert name == "junit"
    cases = ElementTree.parse(folder / "junit.xml").getroot().iter("testcase")
    names = [
        str(case.get("name"))
        for case in cases
        if [each.get("value") for each in case.iter("property")] == [LABEL]
    ]
    words = [word for each in names for word in each.split()]
    return {int(word.partition("=")[2]) for word in words if word.startswith("nodes=")}


FORMATS = ("verdict.json", "parquet", "junit")


@pytest.mark.fault("run-without-failed-nodes")
def test_a_run_without_a_failed_node_is_labelled(kit: Kit, tmp_path: Path) -> None:
    run = measured(kit, HOSTS[:4])
    assert main(["report", str(run.folder)]) in (0, 2, 4)
    for name in FORMATS:
        assert labelled(run, name, tmp_path / name) == {4}, name
    verdict = json.loads(run.files.verdict.read_text(encoding="utf-8"))
    stated = {"label": LABEL, "nodes": 4, "of": 5, "missing": "n5", "limit": ""}
    assert verdict["degraded"] == stated
    suite = ElementTree.parse(tmp_path / "junit" / "junit.xml").getroot()
    assert [each.get("value") for each in suite.findall("properties/property")] == [LABEL]
    report = run.files.report.read_text(encoding="utf-8")
    assert "<dt>Degraded</dt><dd>4 of 5 nodes; without n5</dd>" in report


def test_a_run_on_all_nodes_is_not_labelled(kit: Kit, tmp_path: Path) -> None:
    run = measured(kit, HOSTS)
    assert main(["report", str(run.folder)]) in (0, 2, 4)
    for name in FORMATS:
        assert labelled(run, name, tmp_path / name) == set(), name
    assert json.loads(run.files.verdict.read_text(encoding="utf-8"))["degraded"] is None
    assert ">Degraded<" not in run.files.report.read_text(encoding="utf-8")


@pytest.mark.fault("run-without-failed-nodes")
@pytest.mark.parametrize("down", ["n3", ""], ids=["a node is down", "no node is down"])
def test_the_next_command_measures_at_full_scale_without_a_node_that_is_down(
    kit: Kit, down: str
) -> None:
    verdict = judge_run(measured(kit, HOSTS, down=down or "none"))
    first, _, last = ending(verdict, "report.html", "runs/whole")
    assert (", degraded: 4 of 5 nodes:" in first) == bool(down)
    assert ("with -l 'local:!n3' -e fresh=true" in last) == bool(down)


@pytest.mark.parametrize("lacking", [True, False])
def test_a_strict_acceptance_needs_all_nodes(kit: Kit, lacking: bool) -> None:
    verdict = judge_run(measured(kit, HOSTS[:4] if lacking else HOSTS))
    counts = {"PASS": 1, "FAIL": 0, "INVALID": 0, "UNJUDGED": 0}
    passed = replace(verdict, counts=counts, required=())
    assert passed.exit_code() == 0
    assert passed.exit_code(strict=True) == (4 if lacking else 0)


def steps_of(plan: Plan) -> dict[int, str]:
    """Return the ids of the steps that measure together, by their number of nodes."""
    return {len(step.nodes): step.id for step in plan.steps() if step.scope == "job"}


def test_a_run_lacks_nothing_if_all_nodes_or_no_node_measured(kit: Kit) -> None:
    plan = planned(kit, site_of_hosts(kit, HOSTS))
    every = set(steps_of(plan).values())
    assert degraded(plan, HOSTS, HOSTS, ()) is None
    assert degraded(plan, HOSTS, ["n[1-5]"], every) is None
    assert degraded(plan, HOSTS, (), every) is None


@pytest.mark.parametrize(
    ("unmeasured", "limit"),
    [((2,), ""), ((4,), "local:!n3"), ((5,), "local:!n3"), ((2, 5), "local:!n3")],
)
def test_the_limit_leaves_out_a_node_that_a_missing_step_needs(
    kit: Kit, unmeasured: tuple[int, ...], limit: str
) -> None:
    """A job of two nodes does not need n3, and a step that each node measures alone does not."""
    plan = planned(kit, site_of_hosts(kit, HOSTS))
    steps = steps_of(plan)
    alone = {step.id for step in plan.steps() if step.scope != "job"}
    missing = {steps[nodes] for nodes in unmeasured} | alone
    found = degraded(plan, HOSTS, ["n[1-2]", "n[4-5]"], missing)
    assert found == Degraded(nodes=4, of=5, missing=("n3",), limit=limit)
    other = degraded(plan, HOSTS, ["n[1-2]", "n[4-5]"], alone)
    assert other and other.limit == ""


def test_the_largest_steps_of_each_case_are_labelled(kit: Kit) -> None:
    plan = planned(kit, site_of_hosts(kit, HOSTS[:4]))
    found = degraded(plan, HOSTS, HOSTS[:4], set(steps_of(plan).values()))
    assert found == Degraded(4, 5, ("n5",), {steps_of(plan)[4]: LABEL})
    fewer = degraded(plan, HOSTS, HOSTS[:3], ())
    assert fewer and (fewer.nodes, fewer.missing) == (3, ("n4", "n5"))


def test_a_job_that_cannot_have_all_nodes_is_labelled(kit: Kit) -> None:
    plan = planned(kit, site_of_hosts(kit, HOSTS, per_job=2))
    found = degraded(plan, HOSTS, HOSTS, ())
    assert found == Degraded(2, 5, (), {steps_of(plan)[2]: label(2, 5)})


def test_each_repeat_of_the_largest_step_is_labelled(kit: Kit) -> None:
    site = site_of_hosts(kit, HOSTS[:2])
    machine = Machine({**SYMBOLS, "nodes": 2}, topology(2))
    plan = make_plan(kit.benchmarks(), "system", site, machine, 2)
    found = degraded(plan, HOSTS, HOSTS[:2], ())
    together = [step.id for step in plan.steps() if step.scope == "job"]
    assert len(together) == 2
    assert found and found.steps == dict.fromkeys(together, "degraded: 2 of 5 nodes")


@pytest.mark.parametrize(("lost", "named"), [(10, True), (11, False)])
def test_a_limit_names_at_most_ten_nodes(kit: Kit, lost: int, *, named: bool) -> None:
    hosts = [f"n{number}" for number in range(1, 14)]
    site = kit.site(hosts=hosts).model_copy(update={"partition_hosts": hosts})
    plan = planned(kit, site)
    found = degraded(plan, hosts, hosts[lost:], set(steps_of(plan).values()))
    assert found and len(found.missing) == lost
    assert found.limit == (
        ":".join(["local", *(f"!{host}" for host in hosts[:lost])]) if named else ""
    )
