"""What to do about each fault: of a node, of a stage, of a file system, and of figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from tests.fixtures.messages import said
from tests.unit.judge.test_ending import figure, verdict

from proofmark.common.message import Message
from proofmark.common.nodesets import folded
from proofmark.judge.diagnosis.bad_nodes import BadNode, BadNodes, Cause, Loss, SlowFigure, rma
from proofmark.judge.diagnosis.storage_faults import FileSystemFault, StorageFaults
from proofmark.judge.executions import RunConditions
from proofmark.judge.next_steps import NextStep, next_steps, node_advice
from proofmark.judge.references.judgement import OVER_TIME, Judgement
from proofmark.judge.results import Again, Result
from proofmark.runs.stage_faults import StageFault
from proofmark.site.node.counters import CounterChange

FAILED = figure("FAIL", 80.0, step="0001-fake/n1")
OTHER = figure("FAIL", 70.0, case="other", step="0002-other/n1")
SLOW = (SlowFigure(FAILED, -0.2), SlowFigure(OTHER, -0.3))
LATER = Judgement(OVER_TIME, "s", "FAIL", said("2 % per hour"), 100.0, 0.8, 0.9, None)
SLOWER = SlowFigure(replace(FAILED, references=(*FAILED.references, LATER)), -0.2)
CAUSE = Cause("rack", "r7", 3, 4, 3, 40, 0.00123, ("n1", "n2", "n3"))
LOSS = Loss(0.021, 0.0001, 12)


def change(name: str, place: str | None, *, invalid: bool = True) -> CounterChange:
    return CounterChange(
        name=name,
        before="0",
        after="9",
        difference=9,
        place=place,
        invalid=invalid,
        meaning=said(f"errors of {name}"),
    )


def fault(code: str) -> Message:
    """Return a fault with all fields that its text can need."""
    names = ("nodes", "key", "value", "case", "steps", "text", "found", "rail", "numa", "accepted")
    return Message(code, **dict.fromkeys(names, "x"))


def node(**changes: Any) -> BadNode:
    usual: dict[str, Any] = {"slow": SLOW, "retest": False, "causes": (), "counters": ()}
    return BadNode(host="n1", **{**usual, **changes})


SLOW_TEXT = "Figures of fake, other are outside the limits"
REPAIR = "Send rma.csv to the vendor. Measure again after the repair"
SLOT = change("edac.mc0", "DIMM_A1")
PLACELESS = change("mce", None)
LOST = {"known": (fault("hardware-usual"),)}
TWICE = {"known": (fault("same-machine"),)}
COPIED = {"known": (fault("same-file"),)}
RAIL = Message("rail-missing", rail="mlx5_1:1")
OF_RAIL = {"known": (RAIL,)}
WRONG = {"digits": (FAILED,)}
TIMES = {"slow": (SLOWER,)}
OF_RACK = {"causes": (CAUSE,)}
ADVICE: list[tuple[dict[str, Any], str, str]] = [
    ({"retest": True}, SLOW_TEXT, "Measure again before you act: fewer than 2 undisturbed"),
    (
        LOST,
        "Less hardware than most nodes: x",
        "Replace the parts that are missing. Measure again after that",
    ),
    ({"loss": LOSS}, "Its port or its cable loses packets", "Replace the cable, then the port."),
    ({"counters": (SLOT,)}, "Error counters rose in DIMM_A1", "Replace the part in DIMM_A1. "),
    (TWICE, "", "Find out which machine each of these names is. Measure again after that"),
    (COPIED, "", "Ask who measured for the own output of each node"),
    ({"counters": (PLACELESS,)}, "Error counters rose: errors of mce", REPAIR),
    (OF_RAIL, "Rail mlx5_1:1 is missing", REPAIR),
    (WRONG, "It computes other digits than its peers", "Take the node out of service. Test its"),
    (TIMES, "Figures of fake are outside the limits", "It became slower during the run: check"),
    (OF_RACK, SLOW_TEXT, "The bad nodes share rack r7. Check this first. Measure again after"),
    ({}, SLOW_TEXT, REPAIR),
]
"""The faults of a node, the first of which decides what to do; problem and action begin so."""


@pytest.mark.parametrize("place", range(len(ADVICE)))
def test_the_first_fault_of_a_node_decides_what_to_do(place: int) -> None:
    """Each fault is advised alone, and beside each fault of which it is the first."""
    changes, problem, action = ADVICE[place]
    for other, _, _ in [({}, "", ""), *ADVICE[place + 1 :]]:
        both = {**other, **changes}
        for several in changes.keys() & other.keys() & {"known", "counters"}:
            both[several] = (*other[several], *changes[several])
        if place == 0:
            both = changes  # such a node has no other fault
        found = node_advice(node(**both))
        assert found[1].startswith(action), both
        assert found[0].startswith(problem) or len(both) > len(changes), both


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"loss": LOSS, **OF_RAIL, "counters": (SLOT,)}, "its port or cable loses packets"),
        ({**OF_RAIL, "counters": (SLOT,)}, "rail mlx5_1:1 is missing"),
        ({"counters": (SLOT, PLACELESS), **WRONG}, "edac.mc0"),
        ({**WRONG, **TIMES}, "wrong computation"),
        ({**TIMES, **OF_RACK}, "2 % per hour"),
        (OF_RACK, "rack r7: 3 of its 4 nodes are bad, 3 of all 40 (p = 0.001)"),
        ({}, "the node itself"),
    ],
)
def test_the_likeliest_cause_is_that_of_the_first_fault(changes: dict[str, Any], text: str) -> None:
    bad = node(**changes)
    assert text in f"{bad.likely}"
    assert bad.as_json()["likely"] == f"{bad.likely}"


def test_a_node_is_written_with_all_its_faults() -> None:
    bad = node(causes=(CAUSE,), counters=(SLOT,), digits=(FAILED,), loss=LOSS, **OF_RAIL)
    written = bad.as_json()
    assert (written["node"], written["worst"], written["retest"]) == ("n1", -0.2, False)
    assert [each["figure"] for each in written["figures"]] == ["fake rate", "other rate"]
    assert written["loss"] == {"share": 0.021, "usual": 0.0001, "nodes": 12}
    assert [each["text"] for each in written["known"]] == ["rail mlx5_1:1 is missing"]
    assert written["counters"] == [f"{SLOT}"]
    assert CAUSE.as_json() == {
        **{"trait": "rack", "value": "r7", "bad": 3, "nodes": 4, "all_bad": 3, "all_nodes": 40},
        **{"p": 0.00123, "members": "n[1-3]"},
    }


def test_the_list_for_the_vendor_has_three_figures_of_each_node() -> None:
    several = tuple(
        SlowFigure(replace(FAILED, retest=place == 0), -0.2 - place / 100) for place in range(5)
    )
    bad = node(slow=several, counters=(SLOT, PLACELESS), digits=(OTHER,), **OF_RAIL)
    slot, whole = rma([bad], {})
    assert slot == ("n1", "not reported", "DIMM_A1", f"{SLOT}")
    of_figures = (
        f"fake rate 80 MB/s, -{percent} % (0 × measured; workdir/steps/0001-fake/n1)"
        for percent in ("21.0", "22.0", "23.0")
    )
    digits = "other rate: 70.0 is not enough (workdir/steps/0002-other/n1)"
    evidence = (digits, *of_figures, f"{PLACELESS}", f"{RAIL}", "1 more figures")
    assert whole == ("n1", "not reported", "", "; ".join(evidence))


def only(*results: Result, **changes: Any) -> list[NextStep]:
    return [*next_steps(replace(verdict(*results), **changes))]


@pytest.mark.parametrize(
    ("result", "action"),
    [
        (FAILED, "Compare the settings in the part Provenance with the required ones"),
        (replace(FAILED, retest=True), "Measure again before you act: fewer than 2 undisturbed"),
    ],
)
def test_a_failure_that_no_node_explains(result: Result, action: str) -> None:
    (step, *_) = only(result)
    assert (step.word, step.problem) == ("FAIL", "fake rate is outside the limits")
    assert step.action.startswith(action)


@pytest.mark.parametrize(
    ("kind", "parameters", "kernel"),
    [
        ("floor", {"blas_kernel": "generic"}, True),
        ("floor", {}, False),
        ("contract", {"blas_kernel": "generic"}, False),
    ],
)
def test_a_missed_floor_asks_for_the_kernel_of_the_blas(
    kind: str, parameters: Mapping[str, str], kernel: bool
) -> None:
    failed = figure("FAIL", 50.0, parameters=parameters)
    (limit,) = failed.references
    met = replace(limit, outcome="PASS", kind="contract")
    (step, *_) = only(replace(failed, references=(met, replace(limit, kind=kind))))
    assert ("kernel of the BLAS" in step.action) is kernel


@pytest.mark.parametrize(
    ("stage", "code", "again", "action"),
    [
        ("scratch", "FULL", Again.CONTINUE, "Solve the cause on these nodes. Then run the same"),
        ("restore", "NO_ANSWER", Again.RESTORE, "Solve the cause on these nodes. Then restore"),
        ("unmount", "BUSY", Again.RESTORE, "Solve the cause on these nodes. Then restore"),
        ("collect", "CHANGED", Again.FRESH, "Find out what changed the file. Its sealed"),
        ("collect", "GONE", Again.CONTINUE, "Solve the cause on these nodes. Then run the same"),
    ],
)
def test_a_stage_that_failed(stage: str, code: str, again: Again, action: str) -> None:
    failed = StageFault(stage=stage, nodes="n[1-2]", code=code, text="no answer")
    (step, *_) = only(figure("PASS"), conditions=RunConditions(stage_faults=(failed,)))
    assert (step.word, step.nodes, step.again) == ("UNJUDGED", "n[1-2]", again)
    assert step.problem == f"{stage}: {code}: no answer" and step.action.startswith(action)


@pytest.mark.parametrize("missing", [(), ("0009-fake",)])
def test_nodes_that_no_probe_saw_measure_one_step_each_again(missing: Sequence[str]) -> None:
    """One step of each node suffices; with missing steps the run continues instead."""
    failed = StageFault(stage="run", nodes="n[1-2]", code="NOT_PROBED", text="no report")
    steps = ["0001-fake/n1", "0002-fake/n1", "0003-fake/n2", "0004-fake/n3"]
    results = [figure("PASS", node=each[-2:], steps=(each,)) for each in steps]
    of_run = verdict(*results, missing=missing)
    (step, *_) = next_steps(replace(of_run, conditions=RunConditions(stage_faults=(failed,))))
    assert step.again is (Again.CONTINUE if missing else Again.RERUN)
    assert step.steps == (() if missing else ("0001-fake/n1", "0003-fake/n2"))


FULL = Message("files-full", problem="No space left on device")
ALIKE = Message("slow-alike", figure="fio rate")


@pytest.mark.parametrize(
    ("problem", "nodes", "others", "cause", "where"),
    [
        (FULL, ("n1", "n2"), (), "no free space or quota", "on all nodes (n[1-2])"),
        (FULL, ("n1",), ("n2",), "no free space or quota", "on n1"),
        (ALIKE, ("n1",), ("n2",), "the client of this node, or its network", "on n1"),
        (ALIKE, ("n1", "n3"), ("n2",), "the client of these nodes, or its network", "on n[1,3]"),
        (ALIKE, ("n1",), (), "the client of this node, or its servers, or the network", "on n1"),
        (ALIKE, ("n1", "n2"), (), "its servers, or the network to them", "on all nodes (n[1-2])"),
    ],
)
def test_a_file_system_is_named_with_its_likely_cause(
    problem: Message, nodes: tuple[str, ...], others: tuple[str, ...], cause: str, where: str
) -> None:
    fault = FileSystemFault("/scratch", problem, nodes, others)
    (step, *_) = only(figure("PASS"), storage=StorageFaults(file_systems=(fault,)))
    assert (step.word, step.again, step.nodes) == ("FAIL", Again.CONTINUE, folded(nodes))
    assert step.problem == f"/scratch: {problem}" and step.action.startswith(f"Check {cause}")
    written = fault.as_json()
    assert written["line"].startswith(f"file system of /scratch: {problem} {where}: {cause}")
    assert (written["folder"], written["nodes"], written["others"]) == (
        *("/scratch", [*nodes], [*others]),
    )
    assert (written["problem"], written["likely"]) == (f"{problem}", f"{fault.likely}")


def test_slow_links_of_good_nodes_are_measured_again() -> None:
    """They explain their figures, and no others."""
    pairs = ("n[1-2]", "n[2-3]")
    slow = [
        figure("FAIL", 50.0, node=pair, step=f"0001-fake/{place}", steps=(f"0001-fake/{place}",))
        for place, pair in enumerate(pairs)
    ]
    other = figure("FAIL", 50.0, node="n9", step="0001-fake/9", steps=("0001-fake/9",))
    links = tuple((pair, SlowFigure(each, -0.5)) for pair, each in zip(pairs, slow, strict=True))
    bad = BadNodes(links=links, measured=4)
    first, second = only(*slow, other, bad=bad)
    assert first == NextStep(
        "FAIL",
        "Links between nodes that are not bad are slow",
        "n[1-3]",
        "Check the cables and the routes between these nodes. Then measure again",
        again=Again.RERUN,
        steps=("0001-fake/0", "0001-fake/1"),
        figures=2,
    )
    assert (second.problem, second.nodes) == ("fake rate is outside the limits", "n9")
    assert [each.keys() for each in bad.as_json()["links"]] == [{"pair", "figure", "off"}] * 2


def test_a_run_of_others_lacks_outputs() -> None:
    """The kit cannot measure the missing steps of a run that it did not execute."""
    of_run = verdict(figure("PASS"), measured=3)
    asked = replace(of_run, conditions=RunConditions(executed=False))
    problem = "1 of 4 steps were not measured"
    for run, again, action in (
        (of_run, Again.CONTINUE, "Run the same command again. It measures the missing steps"),
        (asked, Again.NOTHING, "Ask for the missing outputs, then judge the complete folder"),
    ):
        step = next(each for each in next_steps(run) if each.word == "INVALID")
        assert (step.problem, step.again, step.action) == (problem, again, action)
