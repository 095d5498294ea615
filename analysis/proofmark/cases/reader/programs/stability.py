"""The counts of a stability run (docs/packages/stability.md)."""

from __future__ import annotations

from proofmark.cases.reader.rules import Keys, Quantity, RowRule, TextSpec, line
from proofmark.cases.reader.spec import Program, ReadSpec


class StabilityCounts(Program):
    """The counts of a stability run, which the kit itself prints."""

    def rules(self) -> ReadSpec:
        """Return how its output is read."""
        return ReadSpec(
            finds="line of the counts",
            benchmark="stability",
            parameters={"cause": "word"},
            text=TextSpec(
                starts=line("stability counts"),
                once="ends",
                rows=(
                    RowRule(
                        begins=line("failed: .*"),
                        match=line(r"failed: (?P<cause>\S+) (?P<jobs_failed>\d+)"),
                        metrics={"jobs_failed": "jobs"},
                    ),
                ),
                keys=(
                    Keys(
                        match=line(r"(?P<key>\w+): (?P<value>\S+)(?: \S+)?"),
                        metrics={
                            "jobs_started": Quantity(metric="jobs_started", unit="jobs"),
                            "jobs_finished": Quantity(metric="jobs_finished", unit="%"),
                            "interrupts": Quantity(metric="interrupts", unit="jobs"),
                            "mtbi": Quantity(metric="mtbi", unit="h"),
                            "mtbi_low": Quantity(metric="mtbi_low", unit="h"),
                            "availability": Quantity(metric="availability", unit="%"),
                            "nodes_lost": Quantity(metric="nodes_lost", unit="nodes"),
                            "load": Quantity(metric="load", unit="%"),
                            "hours": Quantity(metric="hours", unit="h"),
                        },
                    ),
                ),
                require={"end of stability": line("end of stability")},
            ),
        )
