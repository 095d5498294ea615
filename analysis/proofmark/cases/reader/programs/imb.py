"""Intel MPI Benchmarks: tables below the name of a benchmark."""

from __future__ import annotations

from proofmark.cases.reader.agreement import Agreement, row_missing
from proofmark.cases.reader.builder import ReadingBuilder
from proofmark.cases.reader.reader import Reader, TextRun, line, matches_of, words
from proofmark.cases.reader.table import Table
from proofmark.common.grouping import gathered

# Below: Calling sequence was
_COMMAND = line(r"# (?P<command>(?:\S*/)?IMB-\w+(?: .*)?)")
_NAME = line(r"# Benchmarking (?P<benchmark>\S+).*")
_MODE = line(r"#\s+MODE: (?P<mode>\S+)")
_CONTEXT = matches_of(
    line(r"# #processes = (?P<ranks>\d+)(?:; rank order \(rowwise\):)?"),
    line(r"# #processes = (?P<ranks>\d+) \(threads: (?P<threads>\d+)\)"),
    line(r"# \( (?P<groups>\d+) groups of (?P<ranks>\d+) processes each running .*"),
    line(r"# \( ?(?P<waiting>\d+) additional process(?:es)? waiting in MPI_Barrier ?\)"),
)
_NO_RESULT = (
    line("# NO SUCCESSFUL EXECUTIONS"),
    line(r"# !! Benchmark (?P<benchmark>\S+) is invalid for (?P<ranks>\d+) processes !!"),
)
_END = line("# All processes entering MPI_Finalize")
_HEADER = line(r"\s*(?:Group\s+)?(?:#bytes\s+)?#repetitions\s.*")
_TABLE = Table(
    metrics={
        "t[usec]": "t_avg",
        "t_min[usec]": "t_min",
        "t_max[usec]": "t_max",
        "t_avg[usec]": "t_avg",
        "t_ovrl[usec]": "t_ovrl",
        "t_pure[usec]": "t_pure",
        "t_CPU[usec]": "t_cpu",
        "overlap[%]": "overlap",
        "Mbytes/sec": "bandwidth",
        "Msg/sec": "rate",
    },
    parameters={"Group": "group", "#bytes": "bytes", "#repetitions": "repetitions"},
    words={"defects": "0.00"},
    skip=line("#.*"),
    gives_up=line(
        r"\s*(?:(?P<group>\d+) +)?(?P<bytes>\d+)"
        r" +(?P<reason>time-out|out-of-mem|int-overflow)\.?;.*"
    ),
    stray=line(r"\s*\d+\s+[\d.]+.*"),
)


def read(run: TextRun) -> None:
    """Read Intel MPI Benchmarks 3 to 2021."""
    titled = False  # each table has a title of its own; the benchmark of another is not known
    for text in run.lines():
        if text.strip()[:1].isdigit():
            run.other(text, _TABLE)
        elif match := _HEADER.fullmatch(text):
            run.end_table()
            if not titled:
                run.benchmark = None
            titled = False
            run.header(_TABLE, match)
        elif match := _NAME.fullmatch(text):
            run.context(match, ("ranks", "threads", "waiting", "groups", "mode"))
            titled = True
        elif match := _MODE.fullmatch(text):
            run.context(match)
            titled = True
        elif matches := _CONTEXT(text):
            run.contexts(matches)
        elif match := _NO_RESULT[0].fullmatch(text) or _NO_RESULT[1].fullmatch(text):
            run.fail(match)
        elif _END.fullmatch(text):
            run.end_table()
        elif match := _COMMAND.fullmatch(text):
            run.command(match)
        else:
            run.other(text, _TABLE)
    if run.request and "-msglen" in run.request.arguments:  # the sizes are in a file
        return

    def table(row: ReadingBuilder) -> tuple[object, ...]:
        return row.benchmark, *(row.parameters[name] for name in row.parameters if name != "bytes")

    for rows in gathered((table(each), each) for each in run.builders).values():
        problem = row_missing(rows)
        for each in rows if problem else ():
            each.problems.append(problem)


def _bandwidth(benchmark: str, *equals: str) -> Agreement:
    # IMB computes it from the longest time. Until 2018 a megabyte was 2 ** 20 bytes.
    return Agreement(
        "bandwidth",
        (*equals, *(f"{each} * 1e6 / 2 ** 20" for each in equals)),
        rounding=0.006,
        rounded={"t_max": 0.005, "t_avg": 0.005, "rate": 0.5},
        benchmark=line(f"(?:Multi-)?{benchmark}"),
    )


IMB = Reader(
    finds="IMB result row",
    units={
        **dict.fromkeys(words("t_avg t_min t_max t_ovrl t_pure t_cpu"), "usec"),
        **{"overlap": "%", "bandwidth": "Mbytes/sec", "rate": "Msg/sec"},
    },
    parameters={
        "ranks": "int",
        "threads": "int",
        "waiting": "int",
        "groups": "int",
        "group": "int",
        "mode": "lower",
        "bytes": "int",
    },
    read=read,
    prints_benchmark=True,
    aside={"repetitions": "int"},
    no_setting=("-npmin", "-include", "-exclude", "-time", "-mem"),
    agree=(
        Agreement("repetitions", at_least="1", within=0),
        # The mean of the ranks is between the fastest and the slowest.
        Agreement("t_min", at_most="t_avg", rounding=0.011, within=0.001),
        Agreement("t_avg", at_most="t_max", rounding=0.011, within=0.001),
        # IMB-P2P prints the rate of messages, too.
        _bandwidth(
            "PingP[io]ng(?:Specificsource)?", "bytes / t_max", "bytes / t_avg", "rate * bytes / 1e6"
        ),
        _bandwidth("Sendrecv", "2 * bytes / t_max"),
        _bandwidth("Exchange", "4 * bytes / t_max"),
        _bandwidth("(?:Uni|Bi)band", "rate * bytes / 1e6"),
    ),
    starts=line(r"#\s+Intel ?\(R\) MPI Benchmark.*"),
    once="ends",
    settings=(
        line(r"#\s+Intel ?\(R\) MPI Benchmark\S* .*? part (?P<variant>\S.*)"),
        line(
            r"# (?!Date|Mach|Sys|Rel|Ver|Minimum|Maximum)(?P<key>[A-Z][\w"
            r" ]*?)\s*:\s+(?P<value>\S.*)"
        ),
    ),
    require={"All processes entering MPI_Finalize": _END},
    reject=(line("EXCEPTION: .*"),),
    needs=("benchmark", "ranks"),
)
