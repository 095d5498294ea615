"""STREAM: a table of four kernels."""

from __future__ import annotations

from proofmark.cases.reader.rules import Agreement, ColumnRule, TableRule, TextSpec, line
from proofmark.cases.reader.spec import Program, ReadSpec


class Stream(Program):
    """STREAM 5, in C and in Fortran, with and without MPI."""

    def rules(self) -> ReadSpec:
        """Return how its output is read."""
        return ReadSpec(
            finds="STREAM result row",
            benchmark="STREAM",
            parameters={"ranks": "int", "threads": "int", "array": "int"},
            aside={"element": "int", "min_time": "printed"},
            # STREAM computes the rate from the shortest time (stream.c): Copy and
            # Scale move two arrays, Add and Triad three.
            agree=(
                Agreement(
                    metric="copy",
                    equals="2 * element * array / (min_time * 1e6)",
                    rounding=0.06,
                    within=0.002,
                ),
                Agreement(
                    metric="scale",
                    equals="2 * element * array / (min_time * 1e6)",
                    rounding=0.06,
                    within=0.002,
                ),
                Agreement(
                    metric="add",
                    equals="3 * element * array / (min_time * 1e6)",
                    rounding=0.06,
                    within=0.002,
                ),
                Agreement(
                    metric="triad",
                    equals="3 * element * array / (min_time * 1e6)",
                    rounding=0.06,
                    within=0.002,
                ),
            ),
            text=TextSpec(
                settings=(
                    line(r".*\bOffset += +(?P<offset>\d+)\b.*"),
                    line(
                        "(?:Each kernel will be executed| You are running each test)"
                        r" +(?P<executions>\d+) +times\.?"
                    ),
                    line(
                        r"This system uses (?P<element_bytes>(?!8 )\d+) bytes per"
                        r" array element\.?"
                    ),
                ),
                # The version in Fortran prints a blank before each of its lines but the
                # rows.
                starts=line(" ?STREAM [Vv]ersion.*"),
                # Some versions print no title.
                untitled=True,
                foreign={"HPC Challenge": line("This is the DARPA/DOE HPC Challenge Benchmark.*")},
                closes=line(" ?Solution Validates(?:: .*|!)?"),
                once="rows",
                facts=(
                    # With MPI the aggregate is the array; a line with blanks has the part of
                    # a rank.
                    line(r" ?(?:Total Aggregate )?Array size = +(?P<array>\d+)\b.*"),
                    # STREAM 5.9 prints four digits of the times, and another word.
                    line(r"This system uses (?P<element>\d+) bytes per array element\.?"),
                    line(r" Assuming (?P<element>\d+) bytes per DOUBLE PRECISION word"),
                    line(r"Data is distributed across (?P<ranks>\d+) MPI ranks"),
                    # If OpenMP started fewer threads than requested, the two lines contradict
                    # each other and the run is INVALID. STREAM 5.9 has only the first;
                    # without OpenMP there is neither.
                    line(
                        r"\ ?Number of Threads (?:requested|counted)(?: for each MPI"
                        " rank| for rank 0)? = * (?P<threads>.*)"
                    ),
                ),
                tables=(
                    TableRule(
                        header=line(r"Function\s.*"),
                        columns={
                            "Function": ColumnRule(
                                names={
                                    "Copy:": "copy",
                                    "Scale:": "scale",
                                    "Add:": "add",
                                    "Triad:": "triad",
                                }
                            ),
                            "Best Rate MB/s": ColumnRule(unit="MB/s"),
                            "Rate (MB/s)": ColumnRule(unit="MB/s"),
                            "Rate (GB/s)": ColumnRule(unit="GB/s"),
                            "Best Rate GB/s": ColumnRule(unit="GB/s"),
                            "Avg time": ColumnRule(),
                            "RMS time": ColumnRule(),
                            "Min time": ColumnRule(parameter="min_time"),
                            "Max time": ColumnRule(),
                        },
                        ends=line(" ?-+"),
                        stray=line(r"(?:Copy|Scale|Add|Triad):\s.*"),
                    ),
                ),
                require={"Solution Validates": line(" ?Solution Validates(?:: .*|!)?")},
                reject=(line(" ?Failed Validation.*"), line("Results Comparison.*FAILED.*")),
                expects="all",
                needs=("array",),
            ),
        )
