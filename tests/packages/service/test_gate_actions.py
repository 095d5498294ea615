"""What a gate does with nodes: hold, wait, resume, drain, give back. The scheduler is a fake."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event
from typing import Any, cast

import pytest

from proofmark.machine.outcome import NodeError, Outcome
from proofmark.machine.scheduler import (
    IDLE,
    NodeState,
    NodeStatus,
    NodeUse,
    ReservingScheduler,
    SchedulerUnavailable,
)
from proofmark.packages.service.gate_checks import GateCheck, read_checks
from proofmark.packages.service.gates import (
    ANSWER_S,
    NO_REASON,
    NOT_RESUMED,
    GateState,
    NodeGate,
    begin_gate,
)

IN_SERVICE = NodeStatus(out=False, idle=True)
NODES = ("n1", "n2", "n3")


@dataclass
class FakeScheduler:
    """A scheduler in memory.

    Attributes:
        status: the status of each node.
        members: the nodes of each reservation.
        calls: each change, in order.
        refused: the nodes for which a change fails, by the name of the change.
        silent: the nodes whose daemon does not answer.
        mute_polls: how many next listings of the nodes get no answer.
    """

    status: dict[str, NodeStatus]
    members: dict[str, list[str]] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    refused: dict[str, set[str]] = field(default_factory=dict)
    silent: set[str] = field(default_factory=set)
    mute_polls: int = 0

    def _called(self, what: str, nodes: Sequence[str], more: str = "") -> None:
        if self.refused.get(what, set()).intersection(nodes):
            raise NodeError(Outcome.UNEXPECTED, f"{what} refused")
        self.calls.append(f"{what} {','.join(nodes)}{more}")

    def node_status(self, nodes: Sequence[str]) -> dict[str, NodeStatus]:
        if self.refused.get("status", set()).intersection(nodes):
            raise NodeError(Outcome.UNEXPECTED, "status refused")
        return {node: self.status[node] for node in nodes}

    def nodes(self, nodes: Sequence[str]) -> dict[str, NodeState]:
        if self.mute_polls:
            self.mute_polls -= 1
            raise SchedulerUnavailable("sinfo: Unable to contact slurm controller")
        silent = NodeState(NodeUse.DOWN, "silent")
        return {node: silent if node in self.silent else IDLE for node in nodes}

    def reservations(self) -> dict[str, list[str]]:
        return {name: [*nodes] for name, nodes in self.members.items()}

    def reserve(self, name: str, nodes: Sequence[str], user: str) -> None:
        self._called("reserve", nodes, f" for {user}")
        self.members[name] = [*nodes]

    def delete_reservation(self, name: str) -> None:
        self.calls.append("delete")
        del self.members[name]

    def resume(self, nodes: Sequence[str]) -> None:
        self._called("resume", nodes)
        for node in nodes:
            self.status[node] = replace(self.status[node], out=False, reason="", states=())

    def drain(self, nodes: Sequence[str], reason: str) -> None:
        self._called("drain", nodes, f": {reason}")
        for node in nodes:
            self.status[node] = replace(
                self.status[node], out=True, reason=reason, states=("drain",)
            )


def drained(reason: str) -> NodeStatus:
    return NodeStatus(out=True, idle=True, reason=reason, states=("drain",))


@pytest.fixture
def state(tmp_path: Path) -> GateState:
    return begin_gate("here", "knl", tmp_path / "runs", "bench", "n[1-3]", NODES)


Made = Callable[..., tuple[NodeGate, FakeScheduler, list[str]]]


@pytest.fixture
def made(state: GateState) -> Made:
    """Makes a gate, its scheduler and the lines that it prints; nodes are in service."""

    def gate(**status: NodeStatus) -> tuple[NodeGate, FakeScheduler, list[str]]:
        scheduler = FakeScheduler({**dict.fromkeys(NODES, IN_SERVICE), **status})
        lines: list[str] = []
        fake = cast(ReservingScheduler, scheduler)
        return NodeGate(state, fake, lines.append, Event(), poll_s=0.001), scheduler, lines

    return gate


def check_of(node: str, action: str, **more: object) -> GateCheck:
    given = {"at": "2026-01-01T00:00:00Z", "node": node, "gate": "g", "run": "/r", "reason": "why"}
    return GateCheck.model_validate({**given, "action": action, **more})


def texts(failed: Mapping[str, NodeError]) -> dict[str, str]:
    return {node: error.text for node, error in failed.items()}


def held(gate: NodeGate, *, nodes: Sequence[str] = NODES, **how: object) -> dict[str, NodeError]:
    usual = {"drained": {}, "take_over": False, "wait_s": 0.0}
    return gate.hold(nodes, **{**usual, **how})  # type: ignore[arg-type]


class TestCheck:
    def test_nodes_in_service_are_free(self, made: Made) -> None:
        gate, scheduler, _ = made()
        free, refused = gate.check(NODES, {}, take_over=False)
        assert (list(free), refused, scheduler.calls) == ([*NODES], {}, [])

    def test_a_node_that_others_drained_is_refused_unless_it_is_taken_over(
        self, made: Made
    ) -> None:
        gate, _, _ = made(n2=drained("a fan is broken"), n3=drained("gate 1: slow"))
        free, refused = gate.check(NODES, {"n3": "gate 1: slow"}, take_over=False)
        assert list(free) == ["n1", "n3"]
        assert refused["n2"].outcome is Outcome.HELD
        assert refused["n2"].text == (
            "drained by others: a fan is broken; take_over=true accepts the node"
        )
        assert gate.check(NODES, {}, take_over=True)[1] == {}

    def test_a_drain_without_a_reason_says_so(self, made: Made) -> None:
        gate, _, _ = made(n1=replace(drained(""), states=("drain",)))
        _, refused = gate.check(["n1"], {}, take_over=False)
        assert NO_REASON in refused["n1"].text
        assert gate.check(["n1"], {}, take_over=True)[1] == {}

    def test_a_reservation_of_others_is_refused_and_the_own_one_is_not(self, made: Made) -> None:
        gate, scheduler, _ = made()
        scheduler.members = {"service": ["n2"], gate.state.reservation: ["n1"]}
        _, refused = gate.check(NODES, {}, take_over=True)
        assert texts(refused) == {"n2": "in the reservation service of another person"}

    @pytest.mark.parametrize(
        "status",
        [
            NodeStatus(out=True, idle=True, states=("down",)),
            NodeStatus(out=True, idle=True, states=("drain",), reason="x", reserved=True),
            NodeStatus(out=True, idle=True, states=("drained_by_name",)),
        ],
    )
    def test_a_state_that_the_gate_cannot_give_back_is_refused(
        self, made: Made, status: NodeStatus
    ) -> None:
        gate, _, _ = made(n1=status)
        _, refused = gate.check(["n1"], {"n1": "x"}, take_over=True)
        assert texts(refused) == {"n1": status.why}

    def test_a_node_that_the_scheduler_does_not_list_is_refused(self, made: Made) -> None:
        gate, _, _ = made(n1=NodeStatus(True, False, "sinfo does not list it", listed=False))
        assert texts(gate.check(["n1"], {}, take_over=True)[1]) == {"n1": "sinfo does not list it"}

    def test_a_node_that_another_gate_holds_is_refused(
        self, made: Made, state: GateState, tmp_path: Path
    ) -> None:
        other = begin_gate("here", "knl", tmp_path / "runs", "bench", "n1", ["n1"])
        assert not other.claims.claim("n1")
        gate, _, _ = made()
        free, refused = gate.check(NODES, {}, take_over=True)
        assert list(free) == ["n2", "n3"]
        assert f"held by run {other.id}" in refused["n1"].text

    def test_an_unknown_status_refuses_the_node(self, made: Made) -> None:
        gate, scheduler, _ = made()
        scheduler.refused = {"status": {"n2"}}
        free, refused = gate.check(NODES, {}, take_over=False)
        assert list(free) == ["n1", "n3"]
        assert refused["n2"].text.endswith("status refused")


class TestHold:
    def test_nodes_are_reserved_before_drained_ones_are_resumed(self, made: Made) -> None:
        gate, scheduler, _ = made(n2=drained("gate 1: slow"))
        assert held(gate, drained={"n2": "gate 1: slow"}) == {}
        assert scheduler.calls == ["reserve n1,n2,n3 for bench", "resume n2"]
        assert scheduler.members == {gate.state.reservation: [*NODES]}
        known = gate.state.held()
        assert {node: (each.out, each.reason) for node, each in known.items()} == {
            "n1": (False, ""),
            "n2": (True, "gate 1: slow"),
            "n3": (False, ""),
        }
        assert all(gate.state.claims.holds(node) for node in NODES)

    def test_a_refused_node_is_not_touched(self, made: Made) -> None:
        gate, scheduler, _ = made(n2=drained("a fan is broken"))
        failed = held(gate)
        assert list(failed) == ["n2"]
        assert scheduler.calls == ["reserve n1,n3 for bench"]
        assert scheduler.status["n2"].reason == "a fan is broken"
        assert sorted(gate.state.held()) == ["n1", "n3"]

    def test_a_second_hold_keeps_the_nodes_and_adds_new_ones(self, made: Made) -> None:
        gate, scheduler, _ = made()
        assert held(gate, nodes=["n1"]) == {}
        assert held(gate) == {}
        assert scheduler.calls == ["reserve n1 for bench", "reserve n1,n2,n3 for bench"]
        assert held(gate) == {}
        assert len(scheduler.calls) == 2, "nothing changes"

    def test_a_node_whose_jobs_do_not_end_is_given_back(self, made: Made) -> None:
        gate, scheduler, lines = made(n2=replace(IN_SERVICE, idle=False))
        failed = held(gate, wait_s=0.01)
        assert texts(failed) == {"n2": "jobs still run after 0 s"}
        assert failed["n2"].outcome is Outcome.NOT_DRAINED
        assert lines == ["n2: waits for the end of the jobs, 0 s"]
        assert scheduler.members == {gate.state.reservation: ["n1", "n3"]}
        assert gate.state.node("n2").state == "left"
        assert sorted(gate.state.held()) == ["n1", "n3"]

    def test_a_stopped_wait_says_so(self, made: Made) -> None:
        gate, _, _ = made(n2=replace(IN_SERVICE, idle=False))
        gate.stop.set()
        assert held(gate, wait_s=100.0)["n2"].outcome is Outcome.STOPPED

    def test_a_node_whose_daemon_does_not_answer_is_given_back(
        self, made: Made, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert ANSWER_S == 120
        monkeypatch.setattr("proofmark.packages.service.gates.ANSWER_S", 0.01)
        gate, scheduler, _ = made()
        scheduler.silent = {"n3"}
        failed = held(gate)
        assert {node: each.outcome for node, each in failed.items()} == {"n3": Outcome.NO_ANSWER}
        assert failed["n3"].text == "down silent"

    def test_a_node_that_cannot_be_resumed_is_drained_again_as_before(self, made: Made) -> None:
        gate, scheduler, _ = made(n2=drained("gate 1: slow"))
        scheduler.refused = {"resume": {"n2"}}
        failed = held(gate, drained={"n2": "gate 1: slow"})
        assert list(failed) == ["n2"]
        assert scheduler.status["n2"] == drained("gate 1: slow")
        assert scheduler.calls[-1] == "reserve n1,n3 for bench"
        assert not any(call.startswith("drain") for call in scheduler.calls)

    @pytest.mark.parametrize("end", ["release", "conclude"])
    def test_a_node_that_is_drained_again_with_the_words_of_before_is_of_others(
        self, made: Made, end: str
    ) -> None:
        """Both ends of a gate decide it alike: a health check drains a node with the same words."""
        gate, scheduler, _ = made(n2=drained("NHC: a fan"))
        assert held(gate, take_over=True) == {}
        scheduler.status["n2"] = drained("NHC: a fan")
        scheduler.calls.clear()
        if end == "release":
            assert gate.release() == {}
        else:
            failed = gate.conclude([check_of("n2", "resume")])
            assert texts(failed) == {"n2": "not resumed, drained by others: NHC: a fan"}
        assert scheduler.status["n2"] == drained("NHC: a fan")
        assert not any(call.startswith(("drain", "resume")) for call in scheduler.calls)

    def test_a_node_that_cannot_be_reserved_is_not_held(self, made: Made) -> None:
        gate, scheduler, _ = made()
        scheduler.refused = {"reserve": {"n2"}}
        failed = held(gate)
        assert list(failed) == ["n2"]
        assert sorted(gate.state.held()) == ["n1", "n3"]
        assert gate.state.claims.holder("n2") is None


class TestConclude:
    def test_a_good_node_leaves_the_reservation_and_a_bad_one_is_drained(self, made: Made) -> None:
        gate, scheduler, _ = made()
        held(gate)
        checks = [check_of("n1", "resume"), check_of("n2", "keep", drain="gate: slow")]
        assert gate.conclude(checks) == {}
        assert scheduler.status["n1"] == IN_SERVICE
        assert scheduler.status["n2"] == drained("gate: slow")
        assert scheduler.members == {gate.state.reservation: ["n3"]}
        assert [gate.state.node(node).state for node in NODES] == ["resumed", "kept", "held"]
        assert gate.state.node("n2").text == "why"
        assert [each.node for each in read_checks(gate.state.site)] == ["n1", "n2"]
        assert gate.state.claims.holder("n1") is None
        assert scheduler.calls[-2:] == ["drain n2: gate: slow", "reserve n3 for bench"]

    def test_the_last_nodes_end_the_reservation(self, made: Made) -> None:
        gate, scheduler, _ = made()
        held(gate)
        assert gate.conclude([check_of(node, "resume") for node in NODES]) == {}
        assert scheduler.members == {}
        assert scheduler.calls[-1] == "delete"

    def test_nodes_that_the_gate_does_not_hold_are_left_alone(self, made: Made) -> None:
        gate, scheduler, _ = made()
        held(gate, nodes=["n1"])
        before = [*scheduler.calls]
        assert gate.conclude([check_of("n2", "keep", drain="x")]) == {}
        assert scheduler.calls == before
        assert read_checks(gate.state.site) == []

    def test_a_good_node_that_others_drained_meanwhile_is_not_resumed(self, made: Made) -> None:
        gate, scheduler, _ = made()
        held(gate)
        scheduler.status["n1"] = drained("a fan is broken")
        failed = gate.conclude([check_of("n1", "resume")])
        assert texts(failed) == {"n1": f"{NOT_RESUMED} a fan is broken"}
        assert failed["n1"].outcome is Outcome.HELD
        assert scheduler.status["n1"] == drained("a fan is broken")
        assert gate.state.node("n1").state == "left"
        assert "n1" not in scheduler.members[gate.state.reservation]

    def test_a_bad_node_that_others_drained_keeps_their_reason(self, made: Made) -> None:
        gate, scheduler, _ = made()
        held(gate)
        scheduler.status["n1"] = drained("a fan is broken")
        assert gate.conclude([check_of("n1", "keep", drain="gate: slow")]) == {}
        assert scheduler.status["n1"] == drained("a fan is broken")
        assert gate.state.node("n1").state == "kept"

    def test_a_node_that_the_gate_drained_before_it_stopped_is_resumed(self, made: Made) -> None:
        gate, scheduler, _ = made()
        held(gate)
        gate.state.journal("n1").intent("kept", reasons=["gate: slow"])
        scheduler.status["n1"] = drained("gate: slow")
        assert gate.conclude([check_of("n1", "resume")]) == {}
        assert scheduler.status["n1"] == IN_SERVICE
        assert gate.state.node("n1").state == "resumed"

    def test_a_bad_node_that_cannot_be_drained_stays_reserved(self, made: Made) -> None:
        gate, scheduler, _ = made()
        held(gate)
        scheduler.refused = {"drain": {"n1"}}
        failed = gate.conclude([check_of("n1", "keep", drain="gate: slow")])
        assert list(failed) == ["n1"]
        assert "n1" in scheduler.members[gate.state.reservation]
        assert gate.state.node("n1").state == "held"

    def test_a_reason_is_in_the_journal_before_the_node_is_drained(self, made: Made) -> None:
        gate, scheduler, _ = made()
        held(gate)
        scheduler.refused = {"drain": {"n1"}}
        gate.conclude([check_of("n1", "keep", drain="gate: slow")])
        assert gate.state.node("n1").reasons == ("gate: slow",)


class TestRelease:
    def test_each_node_is_as_before(self, made: Made) -> None:
        gate, scheduler, _ = made(n2=drained("gate 1: slow"))
        held(gate, drained={"n2": "gate 1: slow"})
        assert gate.release() == {}
        assert scheduler.status == {
            "n1": IN_SERVICE,
            "n2": drained("gate 1: slow"),
            "n3": IN_SERVICE,
        }
        assert scheduler.members == {}
        assert [gate.state.node(node).state for node in NODES] == ["released"] * 3
        assert gate.state.held() == {}
        assert gate.release() == {}

    def test_a_node_without_a_reason_gets_the_usual_one(self, made: Made) -> None:
        gate, scheduler, _ = made(n2=drained(""))
        held(gate, take_over=True)
        assert gate.release() == {}
        assert scheduler.status["n2"] == drained(NO_REASON)

    def test_a_node_that_the_gate_drained_itself_is_resumed(self, made: Made) -> None:
        gate, scheduler, _ = made()
        held(gate)
        gate.state.journal("n1").intent("kept", reasons=["gate: slow"])
        scheduler.status["n1"] = drained("gate: slow")
        assert gate.release() == {}
        assert scheduler.status["n1"] == IN_SERVICE

    def test_a_node_that_others_drained_keeps_their_reason(self, made: Made) -> None:
        gate, scheduler, _ = made(n2=drained("gate 1: slow"))
        held(gate, drained={"n2": "gate 1: slow"})
        scheduler.status |= {"n1": drained("a fan"), "n2": drained("a disk")}
        assert gate.release() == {}
        assert scheduler.status["n1"] == drained("a fan")
        assert scheduler.status["n2"] == drained("a disk")

    def test_a_node_that_cannot_be_drained_stays_held(self, made: Made) -> None:
        gate, scheduler, _ = made(n2=drained("gate 1: slow"))
        held(gate, drained={"n2": "gate 1: slow"})
        scheduler.refused = {"drain": {"n2"}}
        assert list(gate.release()) == ["n2"]
        assert list(gate.state.held()) == ["n2"]
        assert scheduler.members == {gate.state.reservation: ["n2"]}


class TestEdges:
    def test_the_scheduler_is_asked_every_five_seconds(self, state: GateState) -> None:
        scheduler = cast(ReservingScheduler, FakeScheduler({}))
        assert NodeGate(state, scheduler, lambda line: None, Event()).poll_s == 5

    def test_a_node_with_a_reason_was_taken_out_by_a_person(self, made: Made) -> None:
        gate, _, _ = made(n1=NodeStatus(out=True, idle=True, reason="a fan", states=("maint",)))
        assert gate.check(["n1"], {}, take_over=True)[1] == {}
        assert "drained by others: a fan" in gate.check(["n1"], {}, take_over=False)[1]["n1"].text

    def test_a_node_in_service_is_free_in_any_state(self, made: Made) -> None:
        gate, _, _ = made(n1=NodeStatus(out=False, idle=False, states=("allocated",)))
        assert gate.check(["n1"], {}, take_over=False)[1] == {}

    def test_a_node_that_another_gate_takes_meanwhile_is_not_held(
        self, made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        other = begin_gate("here", "knl", tmp_path / "runs", "bench", "n1", ["n1"])
        check = NodeGate.check

        def check_and_claim(gate: NodeGate, *given: Any, **how: Any) -> Any:
            checked = check(gate, *given, **how)
            assert not other.claims.claim("n1")
            return checked

        monkeypatch.setattr(NodeGate, "check", check_and_claim)
        gate, scheduler, _ = made()
        failed = held(gate)
        assert list(failed) == ["n1"]
        assert failed["n1"].outcome is Outcome.HELD
        assert scheduler.calls == ["reserve n2,n3 for bench"]
        assert gate.state.node("n1").state == ""

    def test_a_poll_without_an_answer_is_repeated(self, made: Made) -> None:
        """Each refused poll asks again for each node."""
        gate, scheduler, _ = made()
        scheduler.mute_polls = 4 * (1 + len(NODES))
        assert held(gate) == {}
        assert scheduler.mute_polls == 0

    def test_without_any_answer_no_node_is_judged(self, made: Made) -> None:
        gate, scheduler, _ = made()
        scheduler.refused = {"status": set(NODES)}
        with pytest.raises(NodeError, match="UNEXPECTED: status refused"):
            gate.check(NODES, {}, take_over=False)
        scheduler.refused = {"status": {"n1"}}
        free, refused = gate.check(NODES, {}, take_over=False)
        assert (list(free), texts(refused)) == (["n2", "n3"], {"n1": "status refused"})

    def test_a_second_hold_keeps_what_a_node_was_before(self, made: Made) -> None:
        gate, scheduler, _ = made(n2=drained("gate 1: slow"))
        for _ in range(2):
            assert held(gate, drained={"n2": "gate 1: slow"}) == {}
        assert gate.release() == {}
        assert scheduler.status["n2"] == drained("gate 1: slow")

    def test_a_drained_node_that_cannot_be_reserved_is_not_resumed(self, made: Made) -> None:
        gate, scheduler, _ = made(n2=drained("gate 1: slow"))
        scheduler.refused = {"reserve": {"n2"}}
        assert list(held(gate, drained={"n2": "gate 1: slow"})) == ["n2"]
        assert scheduler.status["n2"] == drained("gate 1: slow")
        assert not [each for each in scheduler.calls if each.startswith("resume")]
