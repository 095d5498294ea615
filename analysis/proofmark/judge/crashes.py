"""Executions that crashed, gave no valid output, or whose output was changed, beside a sound one.

A repetition measures the figure. It does not show that the node is sound: the fault may come again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from proofmark.common.message import Message
from proofmark.common.output_messages import OUTPUT_MESSAGES
from proofmark.judge.aggregate import counting
from proofmark.records.columns import Records
from proofmark.runs.decisions import SetAside

CRASHES = frozenset(
    {"killed", "exit-code", "exit-code-said", "output", *OUTPUT_MESSAGES} - {"reader-no-space"}
    | {"file-changed", "digest-missing", "digests-missing", "digests-damaged"}
)
"""The codes of the reasons of such executions. Others are about the conditions of the run."""


@dataclass(frozen=True)
class Crash:
    """The crashed executions of one step on the same nodes, of which another one was sound.

    Attributes:
        node: the node or nodes, as records name them.
        step: the folder of the step, below ``steps/``.
        crashed: the number of these executions.
        executions: the number of all executions of the step.
        reason: of the first crashed one.
        set_aside: why the site sets them aside; empty if it does not. They are a fault then.
    """

    node: str
    step: str
    crashed: int
    executions: int
    reason: Message
    set_aside: str = ""

    @property
    def message(self) -> Message:
        """The fault, without the node."""
        return Message(
            "crashed-before",
            crashed=self.crashed,
            executions=self.executions,
            step=self.step,
            text=self.reason,
        )

    @property
    def excused(self) -> Message:
        """The crash with its node, and why the site sets it aside."""
        return Message("crash-excused", node=self.node, text=self.message, why=self.set_aside)

    def as_json(self) -> dict[str, Any]:
        """Return the form of ``verdict.json``."""
        return {
            "node": self.node,
            "step": self.step,
            "crashed": self.crashed,
            "executions": self.executions,
            "set_aside": self.set_aside,
            **self.reason.as_json("reason"),
        }


def crashes(records: Records, set_aside: Mapping[str, SetAside]) -> Iterator[Crash]:
    """Yield the crashes of the executions that do not count because another one is sound.

    Args:
        records: of a run.
        set_aside: what the site sets aside, by the folder of a step.
    """
    bad = [place for place, why in enumerate(records.reasons) if why.main_code in CRASHES]
    if not bad:
        return
    left_out = ~counting(records)[records.execution]
    crashed: dict[tuple[str, bool], dict[int, int]] = {}
    for record in np.flatnonzero(np.isin(records.reason, bad) & left_out).tolist():
        execution = records.executions[records.execution[record]]
        known = set_aside.get(execution.step)
        excused = known is not None and execution.attempt <= known.attempts
        crashed.setdefault((execution.step, excused), {}).setdefault(execution.attempt, record)
    attempts: dict[str, set[int]] = {}
    for execution in records.executions:
        attempts.setdefault(execution.step, set()).add(execution.attempt)
    for (step, excused), found in crashed.items():
        first = min(found.values())
        yield Crash(
            records.nodes[records.node[first]],
            step,
            len(found),
            len(attempts[step]),
            records.reasons[records.reason[first]],
            set_aside[step].reason if excused else "",
        )
