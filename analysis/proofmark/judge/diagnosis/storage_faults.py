"""The faults of storage: slow targets, and file systems that nodes cannot use or that are slow."""

from __future__ import annotations

from dataclasses import dataclass

from proofmark.judge.diagnosis.file_system_faults import (
    FileSystemFault,
    file_system_faults,
    of_servers,
)
from proofmark.judge.diagnosis.slow_targets import SlowTarget, of_target, slow_targets
from proofmark.judge.evidence import Evidence
from proofmark.judge.results import Result, Results


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
