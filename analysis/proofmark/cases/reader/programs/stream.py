"""STREAM: a table of four kernels."""

from __future__ import annotations

from proofmark.cases.reader.agreement import Agreement
from proofmark.cases.reader.reader import Reader, TextRun, line
from proofmark.cases.reader.table import Table

_HEADER = line(r"Function\s.*")
_END = line(" ?-+")
_VALIDATED = line(" ?Solution Validates(?:: .*|!)?")
_TABLE = Table(
    names={"Function": {"Copy:": "copy", "Scale:": "scale", "Add:": "add", "Triad:": "triad"}},
    named={"Best Rate MB/s": 0, "Rate (MB/s)": 0, "Rate (GB/s)": 3, "Best Rate GB/s": 3},
    parameters={
        **{"Min time": "min_time", "Max time": "max_time"},
        **{"Avg time": "mean_time", "RMS time": "mean_time"},
    },
    stray=line(r"(?:Copy|Scale|Add|Triad):\s.*"),
)


def read(run: TextRun) -> None:
    """Read STREAM 5, in C and in Fortran, with and without MPI."""
    for text in run.lines():
        if match := _HEADER.fullmatch(text):
            run.header(_TABLE, match)
        elif _END.fullmatch(text):
            run.end_table()
        else:
            run.other(text, _TABLE)


STREAM = Reader(
    finds="STREAM result row",
    benchmark="STREAM",
    units={"copy": "MB/s", "scale": "MB/s", "add": "MB/s", "triad": "MB/s"},
    parameters={"ranks": "int", "threads": "int", "array": "int"},
    read=read,
    aside={
        "element": "int",
        **dict.fromkeys(("min_time", "mean_time", "max_time"), "printed"),
    },
    # STREAM computes the rate from the shortest time (stream.c).
    agree=(
        *(
            Agreement(metric, (f"{arrays} * element * array / (min_time * 1e6)",), rounding=0.06)
            for metric, arrays in (("copy", 2), ("scale", 2), ("add", 3), ("triad", 3))
        ),
        Agreement("mean_time", at_least="min_time", within=0),
        Agreement("mean_time", at_most="max_time", within=0),
    ),
    settings=(
        line(r" ?STREAM [Vv]ersion \$Revision: (?P<version>[\d.]+) \$.*"),
        line(r".*\bOffset += +(?P<offset>\d+)\b.*"),
        line(
            "(?:Each kernel will be executed| You are running each test)"
            r" +(?P<executions>\d+) +times\.?"
        ),
        line(r"This system uses (?P<element_bytes>(?!8 )\d+) bytes per array element\.?"),
    ),
    # The version in Fortran prints a blank before each of its lines but the rows.
    starts=line(" ?STREAM [Vv]ersion.*"),
    # Some versions print no title.
    untitled=True,
    headers=(_HEADER,),
    foreign={"HPC Challenge": line("This is the DARPA/DOE HPC Challenge Benchmark.*")},
    closes=_VALIDATED,
    opens=(_HEADER,),
    once="rows",
    facts=(
        # With MPI the aggregate is the array; a line with blanks has the part of a rank.
        line(r" ?(?:Total Aggregate )?Array size = +(?P<array>\d+)\b.*"),
        # STREAM 5.9 prints four digits of the times, and another word.
        line(r"This system uses (?P<element>\d+) bytes per array element\.?"),
        line(r" Assuming (?P<element>\d+) bytes per DOUBLE PRECISION word"),
        line(r"Data is distributed across (?P<ranks>\d+) MPI ranks"),
        # If OpenMP started fewer threads than requested, the two lines contradict each other and
        # the run is INVALID. STREAM 5.9 has only the first; without OpenMP there is neither.
        line(
            r"\ ?Number of Threads (?:requested|counted)(?: for each MPI rank| for rank 0)?"
            r" = * (?P<threads>.*)"
        ),
    ),
    require={"Solution Validates": _VALIDATED},
    reject=(line(" ?Failed Validation.*"), line("Results Comparison.*FAILED.*")),
    expects=("copy", "scale", "add", "triad"),
    needs=("array",),
)
