"""stressapptest: one row, and the status at the end."""

from __future__ import annotations

from proofmark.cases.reader.rules import RowRule, TextSpec, line
from proofmark.cases.reader.spec import Program, ReadSpec


class Stressapptest(Program):
    """stressapptest."""

    def rules(self) -> ReadSpec:
        """Return how its output is read."""
        return ReadSpec(
            finds="line of stressapptest with the completed data",
            benchmark="stressapptest",
            parameters={"megabytes": "int", "seconds": "int"},
            text=TextSpec(
                starts=line("Log: Commandline - .*"),
                closes=line("Status: .*"),
                once="ends",
                facts=(
                    line(r"Stats: Starting SAT, (?P<megabytes>\d+)M, (?P<seconds>\d+)" " seconds"),
                ),
                rows=(
                    RowRule(
                        begins=line("Stats: Completed: .*"),
                        match=line(
                            r"Stats: Completed: \S+M in \S+s (?P<rate>[0-9.]+)MB/s, with"
                            r" (?P<incidents>\d+) hardware incidents, \d+ errors"
                        ),
                        metrics={"rate": "MB/s", "incidents": "events"},
                    ),
                ),
                require={"Status: PASS": line("Status: PASS.*")},
                reject=(
                    line("Hardware Error: .*"),
                    line("Report Error: .*"),
                    line("Status: FAIL.*"),
                ),
                expects="all",
                needs=("megabytes", "seconds"),
            ),
        )
