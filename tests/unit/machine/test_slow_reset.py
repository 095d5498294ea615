"""A node that goes down some time after the reset was requested, or never."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.emulators.bmc.rollouts import firmware_with

from proofmark.machine.bmc.back_end import BackEnd, BackEndContext, FirmwareState, Host
from proofmark.machine.modes.transition import ModeTransition, TargetMode
from proofmark.machine.outcome import NodeError, Outcome
from proofmark.runs.journal import Journal
from proofmark.site.firmware import Settings

HOST = Host("n1", "bmc")


@dataclass
class Node:
    """A node whose next boot is seen after some polls: the shell of a `ModeTransition`."""

    polls: int
    resets: int = 0
    boot: str = "old"
    applied: dict[str, str] = field(default_factory=lambda: {"x": "1"})

    def __call__(self, node: str, script: str, arguments: tuple[str, ...] = ()) -> str:
        if self.resets:
            self.polls -= 1
            if self.polls < 0:
                self.boot, self.applied["x"] = "new", "2"
        return (
            f"proofmark-probe 1 mode\n=== boot\n| id: {self.boot}\n| clock: 1\n=== numa\n"
            "| node0 cpus: 0-271\n| node0 memory_kb: 100663296\n=== smbios\n=== end\n"
        )


class NodeBackEnd(BackEnd):
    """Sets `x` of a `Node` by its reset."""

    sets = True
    reads_current_values = True

    def __init__(self, context: BackEndContext) -> None:
        assert isinstance(context.shell, Node)
        self.node = context.shell

    def read(self, host: Host, wanted: Settings) -> FirmwareState:
        return FirmwareState(current=dict(self.node.applied))

    def stage(self, host: Host, state: FirmwareState, wanted: Settings) -> None:
        assert wanted == {"x": "2"}

    def reset(self, host: Host, state: FirmwareState, wanted: Settings) -> None:
        self.node.resets += 1

    def verify(self, host: Host, wanted: Settings) -> Settings | None:
        return dict(self.node.applied)


def entered(folder: Path, node: Node, **limits: float) -> Journal:
    """Change `node` to the mode in which x is 2; return its journal."""
    firmware = firmware_with({"back_end": "redfish", "poll_s": 0.001, **limits})
    from_context = NodeBackEnd(BackEndContext(firmware, None, node))  # type: ignore[arg-type]
    transition = ModeTransition(firmware, from_context, node, {"x": "2"}, threading.Event())
    journal = Journal(folder, "n1")
    target = TargetMode("two", {"x": "2"}, lambda _: None)
    transition.run(HOST, target, journal, from_context.read(HOST, {"x": "2"}))
    return journal


@pytest.mark.parametrize("polls", [0, 1, 5])
def test_a_node_that_goes_down_late_is_waited_for(tmp_path: Path, polls: int) -> None:
    node = Node(polls)
    journal = entered(tmp_path, node, reset_timeout_s=600, boot_timeout_s=600)
    assert (journal.history().mode, journal.history().in_flight) == ("two", "")
    assert node.resets == 1


def test_a_node_that_never_goes_down_was_not_reset(tmp_path: Path) -> None:
    with pytest.raises(NodeError, match=r"still up after .* with boot id old") as error:
        entered(tmp_path, Node(10**9), reset_timeout_s=0.05, boot_timeout_s=600)
    assert error.value.outcome is Outcome.NOT_RESET
    assert Journal(tmp_path, "n1").history().in_flight == "old"


def test_a_node_that_needs_no_change_is_not_reset(tmp_path: Path) -> None:
    node = Node(0, applied={"x": "2"})
    assert entered(tmp_path, node).history().mode == "two"
    assert node.resets == 0
