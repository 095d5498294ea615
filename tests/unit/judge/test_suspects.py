"""Which nodes and links the executions and figures of a run accuse."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fixtures.messages import disturbed
from tests.unit.judge.test_ending import figure

from proofmark.common.message import NOTHING, Message
from proofmark.common.nodesets import hosts_of
from proofmark.judge.diagnosis.bad_nodes import (
    SlowFigure,
    attribute_links,
    confirmed,
    hypergeometric_tail,
)
from proofmark.judge.executions import (
    Added,
    Crash,
    DisturbedNode,
    added_executions,
    crashes,
    disturbed_nodes,
)
from proofmark.records.columns import Execution, Measurand, Records
from proofmark.runs.run import SetAside

STRESS = disturbed("stress")
KILLED = Message("killed", signal="SIGKILL")


def records(executions: Iterable[tuple[str, int, str, Message]]) -> Records:
    """Return one record of each execution: its step, attempt, node and reason."""
    given = [*executions]
    nodes = [*dict.fromkeys(node for _, _, node, _ in given)]
    reasons = [*dict.fromkeys(why for *_, why in given if why)]
    return Records(
        run="r",
        executions=[
            Execution(step, attempt, 1, disturbers=(("stress", 0.5),) if why == STRESS else ())
            for step, attempt, _, why in given
        ],
        measurands=[
            Measurand(*("any", "any", "measured", "fake", "", "rate", "MB/s", "", "", "", "{}"))
        ],
        nodes=nodes,
        reasons=reasons,
        execution=np.arange(len(given)),
        measurand=np.zeros(len(given), dtype=np.int64),
        node=np.array([nodes.index(node) for _, _, node, _ in given], dtype=np.int64),
        value=np.full(len(given), 1.0),
        reason=np.array([reasons.index(why) if why else -1 for *_, why in given], dtype=np.int64),
    )


def of_nodes(counts: Mapping[str, tuple[int, int]]) -> Records:
    """Return the records of nodes by the number of their disturbed and other executions."""
    return records(
        (f"{place:04}-fake/{node}", 1, node, STRESS if place < bad else NOTHING)
        for node, (bad, good) in counts.items()
        for place in range(bad + good)
    )


SOUND = {"n2": (0, 4), "n3": (0, 4), "n4": (1, 3)}


@pytest.mark.parametrize(
    ("counts", "peers", "fault"),
    [
        ({"n1": (3, 2), **SOUND}, 0.0, True),
        ({"n1": (4, 0), "n2": (0, 4), "n3": (0, 4)}, None, False),  # too few others
        ({"n1": (4, 0), "n2": (2, 2), "n3": (2, 2), "n4": (2, 2)}, 0.5, True),
        ({"n1": (4, 0), "n2": (2, 1), "n3": (2, 1), "n4": (2, 1)}, 2 / 3, False),
        ({"n1": (4, 0), "n2": (0, 4), "n3": (0, 4), "n[3-4]": (0, 4)}, None, False),
    ],
)
def test_a_node_that_is_disturbed_in_most_executions_is_named(
    counts: dict[str, tuple[int, int]], peers: float | None, fault: bool
) -> None:
    """It is a fault if at most half of the executions of the other nodes are disturbed."""
    bad, good = counts["n1"]
    (found,) = disturbed_nodes(of_nodes(counts))
    assert found == DisturbedNode("n1", bad, bad + good, (("stress", 0.5),), peers)
    assert found.is_fault is fault
    assert found.as_json() == {
        **{"node": "n1", "disturbed": bad, "executions": bad + good, "peers": peers},
        **{"by": {"stress": 0.5}, **found.message.as_json("reason")},
    }


@pytest.mark.parametrize(
    "counts",
    [
        {"n1": (3, 3), **SOUND},  # half of them
        {"n1": (2, 0), **SOUND},  # two are too few
        {"n[1-2]": (4, 0), **SOUND},  # several nodes
        SOUND,
    ],
)
def test_a_node_with_few_disturbed_executions_is_not_named(
    counts: dict[str, tuple[int, int]],
) -> None:
    assert disturbed_nodes(of_nodes(counts)) == ()


@pytest.mark.parametrize("aside", [0, 1, 2])
def test_a_crash_beside_a_sound_execution_is_named(aside: int) -> None:
    """The site can set the first attempts of a step aside. What counts is no such crash."""
    step = "0001-fake/n1"
    found = records(
        [
            *((step, attempt, "n1", KILLED) for attempt in (1, 2)),
            (step, 3, "n1", NOTHING),
            ("0002-fake/n1", 1, "n1", STRESS),
            ("0002-fake/n1", 2, "n1", NOTHING),
            ("0003-fake/n1", 1, "n1", KILLED),
        ]
    )
    excused = {step: SetAside(attempts=aside, reason="a fan")} if aside else {}
    expected = [
        Crash("n1", step, count, 3, KILLED, why)
        for count, why in ((aside, "a fan"), (2 - aside, ""))
        if count
    ]
    assert [*crashes(found, excused)] == expected
    assert expected[0].as_json() == {
        **{"node": "n1", "step": step, "crashed": aside or 2, "executions": 3},
        **{"set_aside": "a fan" if aside else "", **KILLED.as_json("reason")},
    }


@pytest.mark.parametrize(
    ("sound", "added"),
    [("s", None), ("fs", None), ("ss", (1, 1)), ("fsfs", (2, 2)), ("ff", None), ("sf", (1, 1))],
)
def test_executions_after_the_first_sound_one_were_added(
    sound: str, added: tuple[int, int] | None
) -> None:
    """The letters say which attempts were sound, and which failed."""
    attempts = enumerate(sound, 1)
    of_step = [("s", n, "n1", NOTHING if good == "s" else KILLED) for n, good in attempts]
    found = [*added_executions(records([*of_step, ("other", 1, "n1", NOTHING)]))]
    assert found == ([Added("s", *added)] if added else [])


@given(st.integers(1, 30), st.data())
def test_the_tail_is_that_of_the_hypergeometric_distribution(
    population: int, data: st.DataObject
) -> None:
    from scipy.stats import hypergeom

    marked, drawn = (data.draw(st.integers(0, population)) for _ in range(2))
    least = data.draw(st.integers(0, min(marked, drawn)))
    expected = hypergeom.sf(least - 1, population, marked, drawn)
    assert hypergeometric_tail(least, population, marked, drawn) == pytest.approx(expected)


def slow(pair: str, *shown_by: str, retest: bool = True, off: float = -0.2) -> SlowFigure:
    failed = figure("FAIL", 80.0, node=pair, retest=retest, shown_by=shown_by)
    return SlowFigure(failed, off)


@pytest.mark.parametrize(
    ("figures", "expected"),
    [
        ([slow("n1")], False),
        ([slow("n1", retest=False)], True),
        ([slow("n1"), slow("n1", retest=False)], True),
        ([slow("n1", "a", "b")], False),  # what it shows itself is in `retest`
        ([slow("n[1-2]", "a"), slow("n[1,3]", "b")], True),
        ([slow("n[1-2]", "a"), slow("n[1,3]", "a")], False),
        ([slow("n[1-2]", "a"), slow("n1", "b")], False),
    ],
)
def test_two_executions_confirm_a_slow_node(figures: list[SlowFigure], expected: bool) -> None:
    assert confirmed(figures) is expected


RING = ("n[1-2]", "n[2-3]", "n[3-4]", "n[1,4]")


@pytest.mark.parametrize(
    ("pairs", "alone", "accused", "links"),
    [
        (["n[1-2]"], [], [], ["n[1-2]"]),
        (["n[1-2]", "n[2-3]"], [], ["n2"], []),
        (["n[1-2]", "n[3-4]"], [], [], ["n[1-2]", "n[3-4]"]),
        ([*RING], [], ["n1", "n2", "n3", "n4"], []),
        (["n[1-2]"], ["n2"], ["n2"], []),
        ([], ["n2"], ["n2"], []),
        (["n[5-6]"], [], [], ["n[5-6]"]),  # the only link of both
    ],
)
def test_a_node_is_accused_if_all_of_its_links_are_slow(
    pairs: Sequence[str], alone: Sequence[str], accused: Sequence[str], links: Sequence[str]
) -> None:
    """The worst figure of a link is shown; the figures of a link count for the accused node."""
    by_node = {host: [slow(host)] for host in alone}
    by_pair = {pair: [slow(pair, off=-0.2), slow(pair, off=-0.3)] for pair in pairs}
    left = attribute_links([*RING, "n[5-6]", "n7"], by_node, by_pair)
    assert sorted(by_node) == [*accused]
    assert [pair for pair, _ in left] == [*links]
    assert all(worst.deviation == -0.3 for _, worst in left)
    for host in set(accused) - {*alone}:
        assert len(by_node[host]) == 2 * sum(host in hosts_of(pair) for pair in pairs)
