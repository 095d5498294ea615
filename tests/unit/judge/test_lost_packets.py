"""A node whose link loses packets is named by the TCP segments that were sent again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fixtures.kit import make_kit
from tests.fixtures.probes import probe_text
from tests.unit.judge.test_verdict import record, reference
from tests.unit.site.test_facts_counters import reading

from proofmark.judge.diagnosis.bad_nodes import (
    LEAST_NODES,
    MIN_LOST_SHARE,
    BadNodes,
    Suspects,
    bad_nodes,
    losses,
    rma,
    segments_of,
)
from proofmark.judge.ending import ending, failed_nodes
from proofmark.judge.evidence import Evidence
from proofmark.judge.judging import judge
from proofmark.judge.verdict import Verdict
from proofmark.packages.exports.junit import suite_of
from proofmark.plan.plan import Plan
from proofmark.records.columns import Records
from proofmark.report.summary import headline
from proofmark.runs.nodes import JobOnNode, Node
from proofmark.site.node.counters import Counters
from proofmark.site.node.provenance import NodeProvenance, node_provenance

SENT = 50_000
RING = {
    "n1": 0.0130,
    "n2": 0.0274,
    "n3": 0.0133,
    "n4": 0.0008,
    "n5": 0.0003,
    "n6": 0.0,
    "n7": 0.0003,
}
"""The shares of nodes in a ring, of which the link of n2 lost 3 %: a rehearsal reported them."""


def of(shares: Mapping[str, float], sent: int = SENT) -> dict[str, tuple[int, int]]:
    return {host: (round(share * sent), sent) for host, share in shares.items()}


@pytest.mark.fault("few-lost-packets")
def test_the_node_with_the_largest_share_is_named_and_not_its_peers() -> None:
    named = losses(of(RING | {"n8": 0.0002}))
    assert list(named) == ["n2"]
    assert named["n2"].share == pytest.approx(0.0274)
    assert "2.74% of them; 0.06% is the median of 8 nodes" in named["n2"].message


def test_two_lossy_nodes_are_named() -> None:
    assert list(losses(of(RING | {"n6": 0.03, "n8": 0, "n9": 0}))) == ["n2", "n6"]


@pytest.mark.parametrize(
    "shares",
    [
        {f"n{n}": 0.0004 * n for n in range(1, 9)},  # congestion
        dict.fromkeys(RING, 0.02),  # all alike: the network, not a node
        dict.fromkeys(list(RING)[: LEAST_NODES - 1], 0.0) | {"n2": 0.03},
        dict.fromkeys(RING, 0.0) | {"n2": MIN_LOST_SHARE - 2 / SENT},
    ],
    ids=["few", "all-alike", "few-nodes", "below-the-least"],
)
def test_a_usual_loss_names_no_node(shares: dict[str, float]) -> None:
    """The control."""
    assert losses(of(shares)) == {}


def test_few_segments_are_no_share() -> None:
    assert losses(of(RING, 999)) == {}
    assert list(losses(of(RING, 1000))) == ["n2"]


@pytest.mark.parametrize(
    ("usual", "share", "named"),
    [(0.0, 0.005, True), (0.0, 0.00498, False), (0.004, 0.016, True), (0.004, 0.0158, False)],
)
def test_the_least_share_and_the_least_ratio(usual: float, share: float, *, named: bool) -> None:
    found = losses(of(dict.fromkeys(RING, usual) | {"n2": share}))
    assert list(found) == (["n2"] if named else [])


@given(st.lists(st.floats(0, 0.2), min_size=LEAST_NODES, max_size=40))
def test_the_named_nodes_are_few_and_lose_the_most(shares: list[float]) -> None:
    segments = of({f"n{at}": share for at, share in enumerate(shares)})
    named = losses(segments)
    assert len(named) <= len(shares) / 2
    others = [again / sent for host, (again, sent) in segments.items() if host not in named]
    assert all(loss.share >= max(others) for loss in named.values())


def counters(again: int, sent: int) -> Counters:
    return reading(values={"tcp/RetransSegs": f"{again}", "tcp/OutSegs": f"{sent}"})


def node(host: str, *jobs: tuple[Counters, Counters | None]) -> Node:
    facts = node_provenance(probe_text("live-kvm-zen3"), None, host).facts
    return Node(
        host=host,
        jobs=tuple(
            JobOnNode(
                job=f"0{at}",
                attempt=1,
                steps=(),
                provenance=NodeProvenance(
                    facts=facts, before=before, after=after, changes=(), disturbances=()
                ),
            )
            for at, (before, after) in enumerate(jobs)
        ),
    )


def test_the_segments_of_all_jobs_of_a_node_are_added() -> None:
    pairs = [
        (counters(5, 100), counters(7, 300)),
        (counters(7, 300), counters(8, 400)),
        (counters(8, 400), counters(0, 50)),  # the node was restarted
        (counters(0, 50), None),
        (reading(), counters(9, 9)),
    ]
    assert segments_of(node("n1", *pairs)) == (3, 300)


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> tuple[Verdict, Plan]:
    """Return a verdict and its plan. All nodes of the ring have PASS."""
    kit = make_kit(tmp_path_factory.mktemp("kit"))
    kit.case(sweep={"size": [1]})
    plan = kit.plan()
    case = kit.benchmarks().cases["fake"].model_copy(update={"references": [reference()]})
    benchmarks = kit.benchmarks().model_copy(update={"cases": {"fake": case}})
    (step,) = plan.steps()
    records = Records.of([record(node=host, step=step.id) for host in RING])
    return judge(Evidence("r", plan, records, benchmarks)), plan


def found(shares: Mapping[str, float]) -> BadNodes:
    nodes = {
        host: node(host, (counters(0, 0), counters(again, sent)))
        for host, (again, sent) in of(shares).items()
    }
    return bad_nodes((), nodes, {}, Suspects(list(shares)))


@pytest.mark.fault("few-lost-packets")
def test_a_lossy_link_is_never_accepted(judged: tuple[Verdict, Plan]) -> None:
    """The control is the verdict without the fault."""
    verdict, plan = judged
    control = replace(verdict, bad=found(dict.fromkeys(RING, 0.0003)))
    assert (control.exit_code(), control.faults, failed_nodes(control, plan)) == (0, (), {})
    lossy = replace(verdict, bad=found(RING))
    assert lossy.exit_code() == 1
    (fault,) = lossy.faults
    (written,) = lossy.head()["fleet"]["nodes"]
    usual = pytest.approx(0.0008)
    assert written["loss"] == {"share": pytest.approx(0.0274), "usual": usual, "nodes": 7}
    assert fault.message.startswith(
        "n2: its port or cable loses packets: TCP segments were sent again"
    )
    assert failed_nodes(lossy, plan).keys() == {"n2"}
    first, worst, _ = ending(lossy, "report.html", "runs/r")
    assert first.startswith("FAIL: ") and worst.startswith(f"worst: {fault.message[:60]}")
    assert "1 node with a fault that no figure has" in headline(lossy)
    assert "node with a fault" not in headline(control)
    assert [row[0] for row in rma(lossy.bad.nodes, {})] == ["n2"]
    assert 'failures="1"' in junit(lossy) and 'failures="0"' in junit(control)
    assert '<testcase classname="node" name="n2"><failure ' in junit(lossy)


def junit(verdict: Verdict) -> str:
    return ElementTree.tostring(suite_of(verdict), encoding="unicode")
