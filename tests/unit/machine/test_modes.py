"""Nodes into a mode and back, over emulated BMCs: every outcome that a node can have."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.emulators.bmc.crews import SHAPES, Slurm, World, searched_first
from tests.emulators.bmc.server import PASSWORD, Emulator, Timing

from proofmark.common.errors import BadInput
from proofmark.machine.modes.rollout import Result, summary
from proofmark.machine.schedulers import slurm
from proofmark.runs.journal import Journal, journals, proven

BEFORE = ("Quadrant", "Flat")
Make = Callable[..., World]


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    """Make emulated machines with faults by node."""
    monkeypatch.setenv("PATH", searched_first(tmp_path / "bin"))
    monkeypatch.setattr(slurm, "folded", ",".join)
    monkeypatch.setattr("proofmark.machine.bmc.client.FIRST_PAUSE_S", 0.01)
    opened: list[Emulator] = []

    def make(nodes: int = 2, faults: dict[str, str] | None = None, **timing: float) -> World:
        names = [f"n{number}" for number in range(1, nodes + 1)]
        emulator = Emulator(names, tmp_path, faults=faults, timing=Timing(**timing))
        emulator.__enter__()
        opened.append(emulator)
        (tmp_path / "run").mkdir()
        return World(emulator, Slurm(tmp_path / "bin"), tmp_path / "run")

    yield make
    for emulator in opened:
        emulator.__exit__(None, None, None)


def outcomes(results: dict[str, Result]) -> dict[str, str]:
    return {node: str(each.outcome) for node, each in results.items()}


def untouched(there: World) -> bool:
    machines = there.emulator.machines.values()
    return not any(machine.patches or machine.resets for machine in machines)


def states(there: World, node: str) -> list[str]:
    return [f"{line['state']} {line['event']}" for line in Journal(there.run, node).lines()]


class TestTheWay:
    def test_nodes_go_into_a_mode_and_back(self, world: Make) -> None:
        there = world(3)
        crew = there.crew()
        done = crew.enter(there.nodes, there.goal("snc4-flat"))
        assert outcomes(done) == dict.fromkeys(there.nodes, "OK")
        assert {there.settings(node) for node in there.nodes} == {("SNC-4", "Flat")}
        assert there.slurm.drained == {}
        assert proven(there.run, there.nodes, "snc4-flat") == {}
        back = crew.restore()
        assert outcomes(back) == dict.fromkeys(there.nodes, "OK")
        assert {there.settings(node) for node in there.nodes} == {BEFORE}
        assert there.slurm.drained == {}
        assert crew.restore() == {}

    def test_the_journal_has_each_intent_before_its_result(self, world: Make) -> None:
        there = world(1)
        there.crew().enter(there.nodes, there.goal("snc2-flat"))
        seen = [state for state in states(there, "n1") if state != "down result"]
        assert seen == [
            "drain intent",
            "drain result",
            "original result",
            "stage intent",
            "stage result",
            "reset intent",
            "reset result",
            "up result",
            "verified result",
            "open intent",
            "open result",
        ]

    def test_the_second_time_changes_nothing(self, world: Make) -> None:
        there = world(2)
        crew = there.crew()
        crew.enter(there.nodes, there.goal("snc2-flat"))
        written = [each.path.read_text() for each in journals(there.run)]
        again = crew.enter(there.nodes, there.goal("snc2-flat"))
        assert not any(each.changed for each in again.values())
        assert [each.path.read_text() for each in journals(there.run)] == written
        assert {each.resets for each in there.emulator.machines.values()} == {1}

    def test_a_mode_after_a_mode_returns_to_the_first(self, world: Make) -> None:
        there = world(1)
        crew = there.crew()
        for mode in ("a2a-flat", "quadrant-hybrid50", "snc4-cache"):
            assert outcomes(crew.enter(there.nodes, there.goal(mode))) == {"n1": "OK"}
            assert proven(there.run, there.nodes, mode) == {}
            assert proven(there.run, there.nodes, "snc2-flat") == {"n1": f"in mode {mode}"}
        crew.restore()
        assert there.settings("n1") == BEFORE
        assert there.emulator.machines["n1"].current["MemoryModeHybridPercent"] == "25"

    def test_only_looking_touches_nothing_and_tells_what_would_be(self, world: Make) -> None:
        there = world(2)
        crew = there.crew(batch_size=1, boot_s=1200)
        good, bad = crew.check(there.nodes, lambda _: there.goal("snc4-flat"))
        lines, seconds = crew.forecast(good)
        assert bad == {}
        assert lines == ["n[1-2]: ClusterMode: Quadrant → SNC-4, drain, reset, resume"]
        assert seconds == 2400
        assert untouched(there)
        assert not (there.run / "journal").exists()

    @pytest.mark.parametrize("mode", SHAPES)
    def test_every_mode_is_proven_by_what_the_node_shows(self, world: Make, mode: str) -> None:
        there = world(1)
        assert outcomes(there.crew().enter(there.nodes, there.goal(mode))) == {"n1": "OK"}

    def test_sessions_do_as_well_as_passwords(self, world: Make) -> None:
        there = world(1)
        done = there.crew(auth="session").enter(there.nodes, there.goal("snc2-cache"))
        assert outcomes(done) == {"n1": "OK"}

    @pytest.mark.parametrize("fault", ["race", "wants-apply-time", "busy-twice"])
    def test_what_a_bmc_may_ask_for_is_done(self, world: Make, fault: str) -> None:
        there = world(1, {"n1": fault})
        done = there.crew().enter(there.nodes, there.goal("snc2-cache"))
        assert outcomes(done) == {"n1": "OK"}
        assert there.emulator.machines["n1"].patches == 1


class TestBeforeAnythingIsTouched:
    @pytest.mark.parametrize(
        ("fault", "outcome", "words"),
        [
            pytest.param(
                "unreachable",
                "UNREACHABLE",
                "refused",
                marks=pytest.mark.fault("bmc-unreachable"),
            ),
            pytest.param(
                "wrong-password",
                "DENIED",
                "no valid session",
                marks=pytest.mark.fault("bmc-wrong-password"),
            ),
            pytest.param(
                "expired",
                "BAD_CERTIFICATE",
                "expired",
                marks=pytest.mark.fault("bmc-expired-certificate"),
            ),
            pytest.param("hang", "NO_ANSWER", "0.3 s", marks=pytest.mark.fault("bmc-hang")),
            pytest.param("busy", "BUSY", "503", marks=pytest.mark.fault("bmc-503-storm")),
            pytest.param(
                "foreign",
                "FOREIGN_PENDING",
                "Turbo=Disabled",
                marks=pytest.mark.fault("mode-foreign-pending"),
            ),
            pytest.param("no-registry", "REFUSED", "no attribute registry"),
        ],
    )
    def test_one_bad_bmc_stops_all(self, world: Make, fault: str, outcome: str, words: str) -> None:
        there = world(3, {"n2": fault})
        done = there.crew(timeout_s=0.3 if fault == "hang" else 60).enter(
            there.nodes, there.goal("snc4-flat")
        )
        assert outcomes(done) == {"n1": "STOPPED", "n2": outcome, "n3": "STOPPED"}
        assert words in done["n2"].text
        assert untouched(there) and there.slurm.drained == {}

    def test_within_the_budget_the_others_go(self, world: Make) -> None:
        """The control of the faults above: without their BMC nothing stands in the way."""
        there = world(3, {"n2": "wrong-password"})
        done = there.crew(max_failures=1).enter(there.nodes, there.goal("snc4-flat"))
        assert outcomes(done) == {"n1": "OK", "n2": "DENIED", "n3": "OK"}
        assert there.emulator.machines["n2"].resets == 0
        assert proven(there.run, there.nodes, "snc4-flat") == {"n2": "not proven"}

    @pytest.mark.parametrize(
        ("attributes", "words"),
        [
            pytest.param(
                {"cluster": "ClusterMod"},
                "ClusterMod: no such attribute, did you mean 'ClusterMode'?",
                marks=pytest.mark.fault("mode-attribute-misspelt"),
            ),
            pytest.param(
                {"cluster": "BiosVersion"},
                "BiosVersion: read-only",
                marks=pytest.mark.fault("mode-attribute-read-only"),
            ),
            pytest.param(
                {"cluster": {"SNC-4": {"ClusterMode": "SNC4"}}},
                "ClusterMode: no value 'SNC4', did you mean 'SNC-4'?",
                marks=pytest.mark.fault("mode-value-not-offered"),
            ),
            pytest.param({"cluster": {"SNC-4": {"BootTimeout": 61}}}, "61 is not between 0 and 60"),
        ],
    )
    def test_what_the_firmware_does_not_offer_is_refused(
        self, world: Make, attributes: dict[str, Any], words: str
    ) -> None:
        """A stock module takes the misspelt one for done; here no host is touched."""
        there = world(2)
        changes = {"attributes": {"memory": "MemoryMode", **attributes}}
        with pytest.raises(BadInput) as refused:
            there.crew().enter(there.nodes, there.goal("snc4-flat", **changes))
        assert words in str(refused.value)
        assert "on n[1-2]" in str(refused.value)
        assert untouched(there) and there.slurm.drained == {}

    @pytest.mark.fault("mode-drained-by-admin")
    @pytest.mark.parametrize("reason", ["bad DIMM in slot 3", ""])
    def test_a_node_that_an_admin_drained_stays_drained(self, world: Make, reason: str) -> None:
        there = world(2)
        there.slurm.drain("n2", reason)
        crew = there.crew(max_failures=1)
        done = crew.enter(there.nodes, there.goal("snc4-flat"))
        assert outcomes(done) == {"n1": "OK", "n2": "HELD"}
        assert (reason or "no reason") in done["n2"].text
        crew.restore()
        assert there.slurm.drained == {"n2": reason}
        assert there.emulator.machines["n2"].resets == 0

    def test_a_node_that_an_admin_drains_later_is_not_touched(self, world: Make) -> None:
        there = world(1)
        crew = there.crew()
        crew.enter(there.nodes, there.goal("snc4-flat"))
        there.slurm.drain("n1", "who did this")
        assert outcomes(crew.restore()) == {"n1": "HELD"}
        assert there.slurm.drained == {"n1": "who did this"}


class TestAfterTheReset:
    @pytest.mark.parametrize(
        ("fault", "outcome", "words"),
        [
            pytest.param(
                "silent",
                "NOT_APPLIED",
                "ClusterMode=Quadrant",
                marks=pytest.mark.fault("mode-not-applied"),
            ),
            pytest.param("deaf", "NOT_APPLIED", "accepted and not pending"),
            pytest.param(
                "no-return", "NO_RETURN", "not back", marks=pytest.mark.fault("mode-no-return")
            ),
            pytest.param(
                "other-mode",
                "OTHER_MODE",
                "ClusterMode=All2All",
                marks=pytest.mark.fault("mode-other-mode"),
            ),
            pytest.param("stuck", "NOT_RESET", "still up"),
        ],
    )
    def test_a_bad_node_stays_drained_with_its_reason(
        self, world: Make, fault: str, outcome: str, words: str
    ) -> None:
        there = world(2, {"n2": fault})
        crew = there.crew(boot_timeout_s=3) if fault == "no-return" else there.crew()
        done = crew.enter(there.nodes, there.goal("snc4-flat"))
        assert outcomes(done) == {"n1": "OK", "n2": outcome}
        assert words in done["n2"].text
        assert there.slurm.drained == {"n2": f"proofmark:test {outcome}"}
        assert proven(there.run, there.nodes, "snc4-flat").keys() == {"n2"}
        last = Journal(there.run, "n2").lines()[-1]
        assert (last["state"], last["outcome"]) == ("fail", outcome)

    def test_a_failed_batch_stops_the_next(self, world: Make) -> None:
        there = world(3, {"n1": "silent"})
        done = there.crew(batch_size=1).enter(there.nodes, there.goal("snc4-flat"))
        assert outcomes(done) == {"n1": "NOT_APPLIED", "n2": "STOPPED", "n3": "STOPPED"}
        assert there.emulator.machines["n2"].resets == 0

    def test_a_budget_lets_the_next_batch_go(self, world: Make) -> None:
        there = world(3, {"n1": "silent"})
        done = there.crew(batch_size=1, max_failures=1).enter(there.nodes, there.goal("snc4-flat"))
        assert outcomes(done) == {"n1": "NOT_APPLIED", "n2": "OK", "n3": "OK"}

    def test_a_node_that_comes_late_is_taken_up_again(self, world: Make) -> None:
        there = world(1, boot=2.0)
        crew = there.crew(boot_timeout_s=0.3)
        assert outcomes(crew.enter(there.nodes, there.goal("snc4-flat"))) == {"n1": "NO_RETURN"}
        patient = there.crew(boot_timeout_s=20)
        assert outcomes(patient.enter(there.nodes, there.goal("snc4-flat"))) == {"n1": "OK"}
        assert there.emulator.machines["n1"].resets == 1
        assert there.slurm.drained == {}

    def test_a_stop_ends_what_has_begun_and_can_be_gone_on_with(self, world: Make) -> None:
        there = world(1, boot=1.0)
        stop = threading.Event()
        threading.Timer(0.5, stop.set).start()
        stopped = there.crew(stop=stop, boot_timeout_s=20)
        assert outcomes(stopped.enter(there.nodes, there.goal("snc4-flat"))) == {"n1": "STOPPED"}
        again = there.crew(boot_timeout_s=20).enter(there.nodes, there.goal("snc4-flat"))
        assert outcomes(again) == {"n1": "OK"}
        assert there.emulator.machines["n1"].resets == 1


class TestSecrets:
    @pytest.mark.parametrize("fault", ["leak", "wrong-password", "silent", ""])
    @pytest.mark.parametrize("auth", ["basic", "session"])
    def test_no_password_in_any_word_or_file(self, world: Make, fault: str, auth: str) -> None:
        there = world(1, {"n1": fault})
        crew = there.crew(auth=auth)
        done = crew.enter(there.nodes, there.goal("snc4-flat"))
        line = "b3BlcmF0b3I6"  # the user, as the header Authorization has it
        files = [path.read_text() for path in there.run.rglob("*") if path.is_file()]
        words = [*there.said, *summary(done), repr(done), repr(crew), *files, *there.slurm.calls]
        if fault == "leak" and auth == "basic":
            assert "***" in done["n1"].text
        assert [word for word in words if PASSWORD in word or line in word] == []


@contextmanager
def killed_at(number: int, *, after: bool) -> Iterator[list[str]]:
    """Let SIGKILL end this process before, or after, it writes the journal's line `number`."""
    write = Journal._append
    count = [0]

    def counted(self: Journal, state: str, kind: str, facts: Any) -> None:
        count[0] += 1
        if count[0] == number and not after:
            os.kill(os.getpid(), signal.SIGKILL)
        write(self, state, kind, facts)
        if count[0] == number:
            os.kill(os.getpid(), signal.SIGKILL)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Journal, "_append", counted)
        yield []


def killed(number: int, after: bool, work: Callable[[], object]) -> bool:
    """Run `work` in a process of its own that is killed at a line; tell whether it was."""
    child = os.fork()
    if not child:
        with killed_at(number, after=after):
            work()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


LINES = 13
"""Of a way into a mode: eleven, as above, the node if it is seen down, and one too many."""


@pytest.mark.slow
@pytest.mark.fault("controller-killed")
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("number", range(1, LINES + 1))
@pytest.mark.parametrize("then", ["go on", "restore"])
def test_killed_between_any_two_states(world: Make, number: int, after: bool, then: str) -> None:
    """Then the same command goes on, or the way back needs nothing but the journal."""
    there = world(1)
    there.slurm.drain("other", "not ours")
    goal = there.goal("snc4-flat")
    was = killed(number, after, lambda: there.crew().enter(there.nodes, goal))
    assert was or number >= LINES - 1, "the journal has fewer lines"
    assert not was or number < LINES, "the journal has more lines"
    if then == "go on":
        assert outcomes(there.crew().enter(there.nodes, goal)) == {"n1": "OK"}
        assert there.settings("n1") == ("SNC-4", "Flat")
        assert proven(there.run, there.nodes, "snc4-flat") == {}
        # Never twice, but where it was killed before it was told that the first was heard.
        assert there.emulator.machines["n1"].resets == 1
    assert set(outcomes(there.crew().restore()).values()) <= {"OK"}
    machine = there.emulator.machines["n1"]
    assert (there.settings("n1"), machine.pending) == (BEFORE, {})
    assert there.slurm.drained == {"other": "not ours"}
    assert there.crew().restore() == {}


@pytest.mark.slow
@pytest.mark.fault("controller-killed")
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("number", range(1, LINES))
def test_killed_on_the_way_back(world: Make, number: int, after: bool) -> None:
    there = world(1)
    there.crew().enter(there.nodes, there.goal("snc4-flat"))
    was = killed(number, after, lambda: there.crew().restore())
    assert was or number >= LINES - 2, "the journal has fewer lines"
    there.crew().restore()
    machine = there.emulator.machines["n1"]
    assert (there.settings("n1"), machine.pending) == (BEFORE, {})
    assert there.slurm.drained == {}
    assert there.crew().restore() == {}


def test_a_line_that_a_kill_cut_short_is_no_line(tmp_path: Path) -> None:
    log = Journal(tmp_path, "n1")
    log.intent("drain", address="a", tag="t")
    with log.path.open("a") as file:
        file.write('{"state": "orig')
    assert len(log.lines()) == 1
    log.result("drain", address="a", tag="t")
    assert [line["event"] for line in log.lines()] == ["intent", "result"]


def test_a_damaged_line_is_named(tmp_path: Path) -> None:
    log = Journal(tmp_path, "n1")
    log.intent("drain", address="a", tag="t")
    log.path.write_text("nonsense\n" + log.path.read_text())
    with pytest.raises(BadInput, match=r"n1\.jsonl:1"):
        log.history()


def test_lines_are_json_with_time_and_node(tmp_path: Path) -> None:
    log = Journal(tmp_path, "n1")
    log.result("up", boot_id="x")
    (line,) = map(json.loads, log.path.read_text().splitlines())
    assert line["node"] == "n1" and line["at"].startswith(time.strftime("%Y"))
