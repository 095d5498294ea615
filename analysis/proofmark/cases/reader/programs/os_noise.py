"""os_noise: what the operating system takes from a core."""

from __future__ import annotations

from proofmark.cases.reader.rules import Keys, Quantity, TextSpec, line
from proofmark.cases.reader.spec import Program, ReadSpec


class OsNoise(Program):
    """The kit's own os_noise."""

    def rules(self) -> ReadSpec:
        """Return how its output is read."""
        return ReadSpec(
            finds="OS noise",
            benchmark="OS noise",
            parameters={"threads": "int"},
            text=TextSpec(
                starts=line("os_noise version .*"),
                once="ends",
                facts=(line(r"cores: (?P<threads>\d+)"),),
                keys=(
                    Keys(
                        match=line(r"(?P<key>available worst): (?P<value>\S+) %"),
                        metrics={"available worst": Quantity(metric="available_worst", unit="%")},
                    ),
                    Keys(
                        match=line(r"(?P<key>available median): (?P<value>\S+) %"),
                        metrics={"available median": Quantity(metric="available_median", unit="%")},
                    ),
                    Keys(
                        match=line(r"(?P<key>longest): (?P<value>\S+) us"),
                        metrics={"longest": Quantity(metric="longest", unit="us")},
                    ),
                    Keys(
                        match=line(r"(?P<key>rate): (?P<value>\S+) 1/s"),
                        metrics={"rate": Quantity(metric="rate", unit="1/s")},
                    ),
                ),
                require={"end of os_noise": line("end of os_noise")},
                needs=("threads",),
                expects=("available_worst", "available_median", "longest", "rate"),
            ),
        )
