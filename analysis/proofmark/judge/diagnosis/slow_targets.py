"""The slow storage targets of a run: which figures fail, and by how much."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from proofmark.cases.vocabulary import FILE_SYSTEM, STORAGE_TARGET
from proofmark.common.message import Message
from proofmark.judge.references.judgement import PEERS
from proofmark.judge.results import Result

SOURCE = "targets-spread"
"""The code of the source of a comparison of storage targets."""


@dataclass(frozen=True)
class SlowTarget:
    """A storage target that is slower than the others.

    Attributes:
        target: its index in the file system.
        file_system: the name of the file system in the inventory.
        results: the figures that fail by the comparison of the targets, the worst first.
        targets: the number of targets that were compared.
    """

    target: int
    file_system: str
    results: tuple[Result, ...]
    targets: int

    @property
    def ratio(self) -> float:
        """Return the worst figure ÷ the median of the targets."""
        return _ratio(self.results[0])

    @property
    def message(self) -> Message:
        """The target in words."""
        return Message(
            "target-slow",
            target=self.target,
            file_system=self.file_system,
            ratio=f"{self.ratio:.2g}",
            targets=self.targets,
        )

    def as_json(self) -> dict[str, Any]:
        """Return the form of ``verdict.json``."""
        return {
            "target": self.target,
            "file_system": self.file_system,
            "ratio": self.ratio,
            "targets": self.targets,
            "figures": [
                {
                    "figure": f"{result.record.case} {result.record.metric}",
                    "step": result.record.step,
                    "value": result.record.value,
                    "unit": result.record.unit,
                    "ratio": _ratio(result),
                }
                for result in self.results
            ],
        }


def of_target(result: Result) -> bool:
    """Return whether a result is the figure of one storage target: no node is slow by it."""
    return STORAGE_TARGET in result.record.parameters


def slow_targets(failed: Iterable[Result]) -> tuple[SlowTarget, ...]:
    """Return the slow storage targets, the slowest first.

    Args:
        failed: the results that fail.
    """
    groups: dict[tuple[str, int], list[Result]] = {}
    for result in filter(of_target, failed):
        if _targets(result):
            parameters = result.record.parameters
            name = str(parameters.get(FILE_SYSTEM, "scratch"))
            groups.setdefault((name, int(parameters[STORAGE_TARGET])), []).append(result)
    slow = []
    for (name, target), results in groups.items():
        results.sort(key=lambda each: -abs(_ratio(each) - 1))
        slow.append(SlowTarget(target, name, tuple(results), _targets(results[0])))
    return tuple(sorted(slow, key=lambda each: (-abs(each.ratio - 1), each.target)))


def _ratio(result: Result) -> float:
    return next(
        each.ratio for each in result.references if each.kind == PEERS and each.ratio is not None
    )


def _targets(result: Result) -> int:
    """Return the number of targets of the comparison that the result fails; 0 if it fails none."""
    for each in result.references:
        source = each.source
        if each.outcome == "FAIL" and isinstance(source, Message) and source.code == SOURCE:
            return int(str(source.fields["nodes"]))
    return 0
