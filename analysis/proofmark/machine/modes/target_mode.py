"""The mode that a node shall be in, and the proof of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from proofmark.machine.modes.verification import Observation
from proofmark.machine.outcome import NodeError, Outcome
from proofmark.runs.journal import RESTORED, NodeHistory
from proofmark.site.firmware import Settings

SHOWN = ("numa", "smbios")
"""The parts of an observation that the mode determines."""


@dataclass(frozen=True)
class TargetMode:
    """The mode that a node shall be in.

    Attributes:
        mode: its name; ``RESTORED`` for the state before the first change.
        attributes: the firmware attributes of the mode.
        verify: raises `NodeError` if the observation does not prove the mode.
        settings: the abstract settings of the mode; the firmware of a node has their attributes.
        unseen: whether another mode differs only in attributes that the node does not show, and
            that its BMC reports.
        look_alikes: the modes that nothing distinguishes from this one after a boot.
    """

    mode: str
    attributes: Settings
    verify: Callable[[Observation], None]
    settings: Mapping[str, str] = field(default_factory=dict)
    unseen: bool = False
    look_alikes: tuple[str, ...] = ()

    @property
    def by_firmware(self) -> bool:
        """Whether only the values of the firmware prove the whole mode."""
        return self.unseen or bool(self.settings)

    def shown_by(self, observation: Observation) -> bool:
        """Return whether `observation` proves the mode."""
        try:
            self.verify(observation)
        except NodeError:
            return False
        return True


def original_state(history: NodeHistory) -> TargetMode:
    """Return the target of restore: the attributes and the observation before the first change."""
    original, shown = dict(history.original or {}), dict(history.original_seen)

    def verify(observation: Observation) -> None:
        if history.original is None:
            return  # stopped before the first request: the node is unchanged
        now = observation.as_json()
        if any(now[key] != shown.get(key) for key in SHOWN):
            text = ", ".join(f"{key} {now[key]}, before {shown.get(key)}" for key in SHOWN)
            raise NodeError(Outcome.OTHER_MODE, text)

    return TargetMode(RESTORED, original, verify)
