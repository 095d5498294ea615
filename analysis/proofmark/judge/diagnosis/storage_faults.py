"""The faults of storage: slow targets, and file systems that nodes cannot use or that are slow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from proofmark.cases.vocabulary import FILE_SYSTEM, STORAGE_TARGET
from proofmark.common.message import Message
from proofmark.judge.diagnosis.file_system_faults import (
    FileSystemFault,
    file_system_faults,
    of_servers,
)
from proofmark.judge.evidence import Evidence
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


@dataclass(frozen=True)
class StorageFaults:
    """The faults of storage.

    Attributes:
        targets: the slow storage targets.
        file_systems: the faults of file systems.
    """

    targets: tuple[SlowTarget, ...] = ()
    file_systems: tuple[FileSystemFault, ...] = ()

    def is_of_storage(self, result: Result) -> bool:
        """Return whether a result that fails is no fault of the node that measured it."""
        return of_target(result) or of_servers(self.file_systems, result)


def storage_faults(evidence: Evidence, results: Results) -> StorageFaults:
    """Return the faults of the storage of a run."""
    return StorageFaults(slow_targets(results), file_system_faults(evidence, results))


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
