"""A rolling acceptance from its start to its signature: nodes that wait, join and fail."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import Any

import pytest
from tests.fixtures.kit import SYMBOLS, Kit, make_kit, topology

from proofmark.common.errors import BadInput
from proofmark.jobs.execute import execute
from proofmark.jobs.job_request import Arrivals
from proofmark.judge.ending import failed_nodes
from proofmark.judge.judging import judge_run
from proofmark.machine.scheduler import IDLE, NodeState, NodeUse, Request, present
from proofmark.machine.schedulers.none import NoScheduler
from proofmark.packages.service.rolling_nodes import RollingState
from proofmark.packages.service.rolling_plan import rolling_plan
from proofmark.plan.expansion import make_plan
from proofmark.plan.plan import Plan
from proofmark.report.products import write_products
from proofmark.runs.evidence import seal
from proofmark.runs.progress import due_nodes
from proofmark.runs.run import Run, open_run, site_of
from proofmark.site.fabric import Fabric
from proofmark.site.inventory import Site
from proofmark.site.machines import Machine

pytestmark = pytest.mark.root  # each job has the host name of its node

ALL = [f"n{number}" for number in range(1, 7)]
LIMIT = {
    "metric": "rate",
    "kind": "contract",
    "value": 90,
    "unit": "MB/s",
    "at_least": 0.8,
    "source": "test",
}
SLOW_HERE = """
case "$PWD" in */0003-*) rate=10;; *) rate=100;; esac
echo "size $1"; echo "rate $rate"; echo END
"""
"""The third step is that of n3."""


class Fleet:
    """A partition of six nodes in two racks, whose scheduler states which are down."""

    def __init__(self, kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
        self.kit, self.down, self.lines = kit, dict[str, str](), list[str]()
        monkeypatch.setattr(NoScheduler, "nodes", lambda _, names: self._nodes(names))
        submit = NoScheduler.submit

        def on_node(scheduler: NoScheduler, script: Path, request: Request) -> str:
            named = script.with_name("on-node.sh")
            inside = f"hostname {request.nodes[0]}; exec sh {script}"
            named.write_text(f"exec unshare --uts sh -c {quote(inside)}\n")
            return submit(scheduler, named, request)

        monkeypatch.setattr(NoScheduler, "submit", on_node)

    def _nodes(self, names: Sequence[str]) -> Mapping[str, NodeState]:
        down = {name: NodeState(NodeUse.DOWN, why) for name, why in self.down.items()}
        return {name: down.get(name, IDLE) for name in names}

    def site(self, hosts: Sequence[str]) -> Site:
        site = self.kit.site(hosts=hosts, fabric=Fabric(rack=3))
        return site.model_copy(update={"partition_hosts": ALL, "aliases": {}})

    def normal(self, hosts: Sequence[str]) -> Plan:
        machine = Machine({**SYMBOLS, "cores": 2, "nodes": len(hosts)}, topology(2))
        return make_plan(self.kit.benchmarks(), "quick", self.site(hosts), machine)

    def call(self, hosts: Sequence[str], *, rolling: bool = True, **how: Any) -> Run:
        """Plan `hosts`, and run what is possible, as a call of the playbook does."""
        site, normal = self.site(hosts), self.normal(ALL)
        plan = rolling_plan(normal, site, "node") if rolling else normal
        run = self.kit.run(site=site, plan=plan, **how)
        execute(run, "none", self.lines.append, arrivals=Arrivals(only=hosts if rolling else ()))
        return run


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fleet:
    kit = make_kit(tmp_path)
    kit.program(SLOW_HERE)
    uses = [{"sweep": {"size": 1, "nodes": [1]}}, {"sweep": {"size": 2, "nodes": 2}}]
    kit.case(suites={"quick": uses}, references=[LIMIT])
    return Fleet(kit, monkeypatch)


def standings(run: Run) -> dict[str, str]:
    return {each.node: each.standing for each in state_of(open_run(run.folder)).nodes}


def state_of(run: Run) -> RollingState:
    state = judge_run(run).of_kind
    assert isinstance(state, RollingState)
    return state


@pytest.mark.fault("nodes-unavailable")
def test_nodes_wait_return_join_and_fail(fleet: Fleet) -> None:
    fleet.down = {"n2": "drained a fan"}
    run = fleet.call(ALL[:4])
    first, inputs = list(run.plan.steps()), (run.folder / "plan.json").read_bytes()
    accepted = dict.fromkeys(ALL, "accepted")
    first_four = {node: accepted[node] for node in ALL[:4]}
    assert standings(run) == first_four | {"n2": "waiting", "n3": "failed"}
    assert "job 00-0002: waits for n2: down drained a fan" in fleet.lines
    verdict = judge_run(run)
    assert (verdict.exit_code(), verdict.headline().word) == (2, "INVALID"), "it waits"
    assert [*failed_nodes(verdict, run.plan)] == ["n3"], "a node that waits is no failure"
    assert due_nodes(run) == ["n2"]
    assert present(run, fleet.site(ALL), ["n1", "n2"]) == ["n1"]
    seal(run.folder)

    # A second call without a change runs nothing, and changes no file of the plan.
    assert fleet.call(ALL[:4]).id == run.id
    assert not list(run.folder.glob("growth/*"))

    # n2 returns, and n5 joins by -l in a call that does not select n2.
    fleet.down = {"n6": ""}
    grown = fleet.call(["n5", "n6"])
    assert grown.id == run.id
    assert [*grown.plan.steps()][: len(first)] == first
    assert (run.folder / "plan.json").read_bytes() == inputs
    assert site_of(grown).hosts == (*ALL[:4], "n5", "n6")
    assert standings(run)["n2"] == "waiting"
    fleet.call(ALL[:4])
    assert standings(run) == accepted | {"n3": "failed", "n6": "waiting"}
    assert {node.node: node.rack for node in state_of(grown).nodes}["n4"] == "rack-002"
    sealed = seal(run.folder)
    assert (sealed.newest.number, sealed.changes) == (2, {}), "the second archive has the growth"

    # The growth is an input: what was sealed counts.
    (growth,) = run.folder.glob("growth/*.json")
    growth.write_text(growth.read_text().replace('"n6"', '"n7"'))
    again = seal(run.folder)
    assert again.changes == {"growth/0001.json": "changed"}
    assert site_of(again.run()).hosts == (*ALL[:4], "n5", "n6")


@pytest.mark.fault("growth-forged")
def test_a_growth_has_no_limit_and_no_contract(fleet: Fleet) -> None:
    """The control is the growth that the kit writes, in `test_nodes_wait_return_join_and_fail`."""
    fleet.call(ALL[:2])
    run = fleet.call(ALL[:4])
    (growth,) = run.folder.glob("growth/*.json")
    content = json.loads(growth.read_text())
    assert content.keys() == {"groups", "hosts", "partition_hosts", "aliases", "ssh"}
    site = json.loads((run.folder / "inputs/site.json").read_text())
    growth.write_text(json.dumps({**content, "site": site}))
    with pytest.raises(BadInput, match="site"):
        open_run(run.folder)


def test_peers_judge_from_the_time_of_the_fourth_node(fleet: Fleet) -> None:
    run = fleet.call(ALL[:3])
    (peers,) = state_of(run).peers
    assert (peers.nodes, peers.needed, peers.time) == (3, 0, "")
    start = time.time()
    run = fleet.call(ALL)
    (peers,) = state_of(run).peers
    assert (peers.figure, peers.nodes, peers.needed) == ("fake rate nodes=1 size=1", 6, 4)
    assert start - 1 <= peers.since <= time.time()
    page = write_products(seal(run.folder).run()).page.read_text()
    for words in ("Rolling acceptance", "rack-002", "Comparison with like nodes", peers.time):
        assert words in page


def test_a_normal_acceptance_adds_the_steps_of_several_nodes(fleet: Fleet) -> None:
    run = fleet.call(ALL)
    before = len(list(run.plan.steps()))
    with pytest.raises(BadInput, match="'none', with a job of 2 nodes"):
        fleet.call(ALL, rolling=False, run_id=run.id)
    whole = open_run(run.folder)
    added = list(whole.plan.steps())[before:]
    assert [step.nodes for step in added] == [["n1", "n2"]]
    assert (whole.folder / "growth/0001.json").exists()


def test_a_growth_that_was_cut_is_written_again(fleet: Fleet) -> None:
    """The controller dies before it renames the new file."""
    run = fleet.call(["n1"])
    (run.folder / "growth").mkdir()
    (run.folder / "growth/0001.json.new").write_text("{")
    assert open_run(run.folder).plan.nodes() == ["n1"]
    assert fleet.call(["n2"]).plan.nodes() == ["n1", "n2"]


def test_a_signed_run_grows_only_by_its_id(fleet: Fleet) -> None:
    run = fleet.call(["n1"])
    (run.folder / "signed/0001").mkdir(parents=True)
    assert fleet.call(["n2"], run_id=run.id).plan.nodes() == ["n1", "n2"]
    time.sleep(1)  # the id of a run has its second
    assert fleet.call(["n2"]).id != run.id
