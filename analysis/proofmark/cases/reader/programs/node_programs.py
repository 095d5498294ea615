"""Programs of one node, and the counts of a stability run (docs/packages/stability.md)."""

from __future__ import annotations

from proofmark.cases.reader.agreement import Agreement
from proofmark.cases.reader.reader import Reader, Rows, TextRun, line

_TRIAD = line(r"MByte/s:\s+(?P<value>\S+)")


def read_likwid(run: TextRun) -> None:
    """Read likwid-bench: one rate."""
    for text in run.lines():
        if match := _TRIAD.fullmatch(text):
            run.key(match, "triad")


LIKWID = Reader(
    finds="rate of likwid-bench",
    benchmark="likwid-bench",
    units={"triad": "MByte/s"},
    parameters={"kernel": "word", "threads": "int", "bytes": "int"},
    read=read_likwid,
    aside={"volume": "int", "time": "printed"},
    agree=(Agreement("triad", ("volume / (time * 1e6)",), rounding=0.006, within=0.001),),
    starts=line("LIKWID MICRO BENCHMARK"),
    once="ends",
    settings=(line(r"Using (?P<work_groups>\d+) work groups?"),),
    facts=(
        line(r"Test: (?P<kernel>stream\w*)"),
        line(r"Using (?P<threads>\d+) threads"),
        line(r"Size \(Byte\):\s+(?P<bytes>\d+)"),
        line(r"Data volume \(Byte\):\s+(?P<volume>\d+)"),
        line(r"Time:\s+(?P<time>\S+) sec"),
    ),
    require={"UOPs": line(r"UOPs:\s+\d+")},
    needs=("kernel", "threads", "bytes"),
    expects=("triad",),
)

_NOISE = {
    "available_worst": line(r"available worst: (?P<value>\S+) %"),
    "available_median": line(r"available median: (?P<value>\S+) %"),
    "longest": line(r"longest: (?P<value>\S+) us"),
    "rate": line(r"rate: (?P<value>\S+) 1/s"),
}


def read_os_noise(run: TextRun) -> None:
    """Read the kit's own os_noise: what the operating system takes from a core."""
    for text in run.lines():
        for metric, pattern in _NOISE.items():
            if match := pattern.fullmatch(text):
                run.key(match, metric)


OS_NOISE = Reader(
    finds="OS noise",
    benchmark="OS noise",
    units={"available_worst": "%", "available_median": "%", "longest": "us", "rate": "1/s"},
    parameters={"threads": "int"},
    read=read_os_noise,
    starts=line("os_noise version .*"),
    once="ends",
    facts=(line(r"cores: (?P<threads>\d+)"),),
    require={"end of os_noise": line("end of os_noise")},
    needs=("threads",),
    expects=tuple(_NOISE),
)

_COMPLETED = line("Stats: Completed: .*")
_COMPLETED_ROW = line(
    r"Stats: Completed: \S+M in \S+s (?P<rate>[0-9.]+)MB/s, with (?P<incidents>\d+) hardware"
    r" incidents, \d+ errors"
)


def read_stressapptest(run: TextRun) -> None:
    """Read stressapptest: one row, and the status at the end."""
    rows = Rows(run, _COMPLETED_ROW, ("rate", "incidents"))
    for text in run.lines():
        if _COMPLETED.fullmatch(text):
            rows.row(text)


STRESSAPPTEST = Reader(
    finds="line of stressapptest with the completed data",
    benchmark="stressapptest",
    units={"rate": "MB/s", "incidents": "events"},
    parameters={"megabytes": "int", "seconds": "int"},
    read=read_stressapptest,
    starts=line("Log: Commandline - .*"),
    closes=line("Status: .*"),
    opens=(_COMPLETED,),
    once="ends",
    facts=(line(r"Stats: Starting SAT, (?P<megabytes>\d+)M, (?P<seconds>\d+) seconds"),),
    require={"Status: PASS": line("Status: PASS.*")},
    reject=(
        line("Hardware Error: .*"),
        line("Report Error: .*"),
        line("Status: FAIL.*"),
    ),
    expects=("rate", "incidents"),
    needs=("megabytes", "seconds"),
)

_FAILED = line("failed: .*")
_FAILED_ROW = line(r"failed: (?P<cause>\S+) (?P<jobs_failed>\d+)")
_COUNT = line(r"(?P<key>\w+): (?P<value>\S+)(?: \S+)?")
_COUNTS = {
    "jobs_started": "jobs",
    "jobs_finished": "%",
    "interrupts": "jobs",
    "mtbi": "h",
    "mtbi_low": "h",
    "availability": "%",
    "nodes_lost": "nodes",
    "load": "%",
    "hours": "h",
}


def read_stability(run: TextRun) -> None:
    """Read the counts of a stability run, which the kit itself prints."""
    rows = Rows(run, _FAILED_ROW, ("jobs_failed",))
    for text in run.lines():
        if _FAILED.fullmatch(text):
            rows.row(text)
        elif (match := _COUNT.fullmatch(text)) and match["key"] in _COUNTS:
            run.key(match, match["key"])


STABILITY = Reader(
    finds="line of the counts",
    benchmark="stability",
    units={"jobs_failed": "jobs", **_COUNTS},
    parameters={"cause": "word"},
    read=read_stability,
    starts=line("stability counts"),
    once="ends",
    require={"end of stability": line("end of stability")},
)
