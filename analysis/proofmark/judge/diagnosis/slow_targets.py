"""The slow storage targets of a run: which figures fail, and by how much."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from proofmark.cases.vocabulary import FILE_SYSTEM, STORAGE_TARGET
from proofmark.common.message import Message
from proofmark.judge.fleet.like_figures import LIKE_TARGETS
from proofmark.judge.references.judgement import PEERS
from proofmark.judge.results import Result, Results


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


def slow_targets(results: Results) -> tuple[SlowTarget, ...]:
    """Return the slow storage targets, the slowest first.

    Their figures fail by the comparison of the targets (`Fleet`), which knows their number.

    Args:
        results: the results of a run.
    """
    fleet = results.fleet
    groups: dict[tuple[str, int], list[tuple[Result, int]]] = {}
    for place in fleet.failed.tolist():
        compared = fleet.figures[int(fleet.of[place])]
        if compared.members != LIKE_TARGETS:
            continue
        result = results[place]
        parameters = result.record.parameters
        name = str(parameters.get(FILE_SYSTEM, "scratch"))
        key = (name, int(parameters[STORAGE_TARGET]))
        groups.setdefault(key, []).append((result, compared.fleet_limit.nodes))
    slow = []
    for (name, target), found in groups.items():
        found.sort(key=lambda each: -abs(_ratio(each[0]) - 1))
        figures = tuple(result for result, _ in found)
        slow.append(SlowTarget(target, name, figures, targets=found[0][1]))
    return tuple(sorted(slow, key=lambda each: (-abs(each.ratio - 1), each.target)))


def _ratio(result: Result) -> float:
    return next(
        each.ratio for each in result.references if each.kind == PEERS and each.ratio is not None
    )
