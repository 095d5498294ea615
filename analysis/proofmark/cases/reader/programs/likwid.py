"""likwid-bench: one rate."""

from __future__ import annotations

from proofmark.cases.reader.rules import Agreement, Keys, Quantity, TextSpec, line
from proofmark.cases.reader.spec import Program, ReadSpec


class Likwid(Program):
    """likwid-bench."""

    def rules(self) -> ReadSpec:
        """Return how its output is read."""
        return ReadSpec(
            finds="rate of likwid-bench",
            benchmark="likwid-bench",
            parameters={"kernel": "word", "threads": "int", "bytes": "int"},
            aside={"volume": "int", "time": "printed"},
            agree=(
                Agreement(
                    metric="triad", equals="volume / (time * 1e6)", rounding=0.006, within=0.001
                ),
            ),
            text=TextSpec(
                starts=line("LIKWID MICRO BENCHMARK"),
                once="ends",
                facts=(
                    line(r"Test: (?P<kernel>stream\w*)"),
                    line(r"Using (?P<threads>\d+) threads"),
                    line(r"Size \(Byte\):\s+(?P<bytes>\d+)"),
                    line(r"Data volume \(Byte\):\s+(?P<volume>\d+)"),
                    line(r"Time:\s+(?P<time>\S+) sec"),
                ),
                keys=(
                    Keys(
                        match=line(r"(?P<key>MByte/s):\s+(?P<value>\S+)"),
                        metrics={"MByte/s": Quantity(metric="triad", unit="MByte/s")},
                    ),
                ),
                require={"UOPs": line(r"UOPs:\s+\d+")},
                needs=("kernel", "threads", "bytes"),
                expects=("triad",),
            ),
        )
