"""NAS Parallel Benchmarks: the processes that computed (setup_mpi.f90 of NPB 3.4)."""

from __future__ import annotations

from collections.abc import Mapping

from proofmark.cases.reader.program import Program
from proofmark.cases.reader.values import Parameter


class Npb(Program):
    """NPB 3."""

    def facts(self, printed: Mapping[str, Parameter]) -> Mapping[str, Parameter]:
        """Return the number of active processes: BT leaves some out if it is given no square."""
        return {"ranks": printed["active"]} if "active" in printed else {}
