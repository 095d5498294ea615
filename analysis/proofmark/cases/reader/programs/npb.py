"""NAS Parallel Benchmarks: the processes that computed (setup_mpi.f90 of NPB 3.4)."""

from __future__ import annotations

from collections.abc import Mapping

from proofmark.cases.reader.rules import Agreement, Keys, Quantity, TextSpec, line
from proofmark.cases.reader.spec import Program, ReadSpec
from proofmark.cases.reader.values import Parameter


class Npb(Program):
    """NPB 3."""

    def rules(self) -> ReadSpec:
        """Return how its output is read."""
        return ReadSpec(
            finds="BT timing",
            benchmark="BT",
            program="npb",
            parameters={"class": "word", "ranks": "int", "subtype": "lower"},
            aside={"edge": "int", "iterations": "int", "active": "int"},
            # BT counts its operations by a formula of the grid (bt.f).
            agree=(
                Agreement(
                    metric="mops",
                    equals="iterations * (3478.8 * edge ** 3 - 17655.7 * edge ** 2 +"
                    " 28023.7 * edge) / (time * 1e6)",
                    rounded={"time": 0.005},
                    rounding=0.006,
                    within=0.002,
                ),
            ),
            text=TextSpec(
                starts=line(r"\s*NAS Parallel Benchmarks .* BT Benchmark.*"),
                foreign={
                    "another program of NPB": line(
                        r"\s*NAS Parallel Benchmarks .* (?!BT )\S+ Benchmark.*"
                    )
                },
                once="ends",
                facts=(
                    line(r"\s*Class\s+=\s+(?P<class>\S+)"),
                    line(r"\s*Size\s+=\s+(?P<edge>\d+)x.*"),
                    line(r"\s*Iterations\s+=\s+(?P<iterations>\d+)"),
                    line(r"\s*Total processes\s*=\s+(?P<ranks>\S+)"),
                    # FULL MPI-IO, SIMPLE MPI-IO, FORTRAN IO or EPIO. Without I/O there is no
                    # such line.
                    line(
                        r"\s*BTIO -- (?P<subtype>FULL|SIMPLE|FORTRAN|EPIO)\b.* write" " interval:.*"
                    ),
                    # NPB 3.4 uses fewer processes than were started, if their number is not a
                    # square.
                    line(r"\s*Active proc(?:s|esses)\s*=\s+(?P<active>\d+)"),
                ),
                keys=(
                    Keys(
                        match=line(r"\s*(?P<key>(?:I/O|Time in|Mop/s) [^:=]+)[:=](?P<value>.*)"),
                        metrics={
                            "I/O timing in seconds": Quantity(metric="io_time", unit="s"),
                            "I/O data rate  (MB/sec)": Quantity(metric="io_rate", unit="MB/sec"),
                            "Time in seconds": Quantity(metric="time", unit="s"),
                            "Mop/s total": Quantity(metric="mops", unit="Mop/s"),
                        },
                    ),
                ),
                require={"Verification = SUCCESSFUL": line(r"\s*Verification\s+=\s+SUCCESSFUL")},
                reject=(line(r".*\bERROR\b.*"), line(r"\s*Verification failed")),
                expects=("time", "mops"),
                needs=("class", "ranks"),
            ),
        )

    def facts(self, printed: Mapping[str, Parameter]) -> Mapping[str, Parameter]:
        """Return the number of active processes: BT leaves some out if it is given no square."""
        return {"ranks": printed["active"]} if "active" in printed else {}
