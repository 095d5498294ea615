"""NAS Parallel Benchmarks: BT, and the processes that computed (setup_mpi.f90 of NPB 3.4)."""

from __future__ import annotations

from proofmark.cases.reader.agreement import Agreement
from proofmark.cases.reader.reader import Reader, TextRun, line

_KEY = line(r"\s*(?P<key>(?:I/O|Time in|Mop/s) [^:=]+)[:=](?P<value>.*)")
_METRICS = {
    "I/O timing in seconds": "io_time",
    "I/O data rate  (MB/sec)": "io_rate",
    "Time in seconds": "time",
    "Mop/s total": "mops",
}
# BT counts its operations by a formula of the grid (bt.f).
_OPERATIONS = "iterations * (3478.8 * edge ** 3 - 17655.7 * edge ** 2 + 28023.7 * edge)"


def read(run: TextRun) -> None:
    """Read NPB 3."""
    for text in run.lines():
        if (match := _KEY.fullmatch(text)) and (metric := _METRICS.get(match["key"].strip())):
            run.key(match, metric)
    if active := run.facts.get("active"):
        run.correct("ranks", active)  # BT leaves some out if it is given no square


NPB = Reader(
    finds="BT timing",
    benchmark="BT",
    units={"io_time": "s", "io_rate": "MB/sec", "time": "s", "mops": "Mop/s"},
    parameters={"class": "word", "ranks": "int", "subtype": "lower"},
    read=read,
    aside={
        **{"edge": "int", "iterations": "int", "active": "int", "started": "int"},
        **{"io_percent": "printed", "written": "printed", "mops_process": "printed"},
    },
    short=("io_time", "time"),
    agree=(
        Agreement(
            "mops", (f"{_OPERATIONS} / (time * 1e6)",), rounding=0.006, rounded={"time": 0.005}
        ),
        # Some versions divide by the processes that were started, others by the active ones.
        Agreement(
            "mops", ("mops_process * started", "mops_process * active"), rounding=0.006, within=1e-6
        ),
        Agreement("io_rate", ("written / io_time",), rounding=0.006, rounded={"io_time": 0.005}),
        Agreement("io_time", ("io_percent * time / 100",), rounding=0.006),
    ),
    starts=line(r"\s*NAS Parallel Benchmarks .* BT Benchmark.*"),
    foreign={
        "another program of NPB": line(r"\s*NAS Parallel Benchmarks .* (?!BT )\S+ Benchmark.*")
    },
    once="ends",
    # BT prints most settings, and those of its compilation, behind the figures.
    summary=True,
    settings=(
        line(r"\s*BTIO -- .*(?P<key>write interval):\s*(?P<value>\d+)"),
        line(r"\s*(?P<key>collbuf_nodes)\s+(?P<value>\d+)"),
        line(r"\s*(?P<key>[A-Za-z_]+)\s*=\s+(?P<value>\S.*)"),
    ),
    no_setting=("class", "size", "verification"),
    facts=(
        line(r"\s*Class\s+=\s+(?P<class>\S+)"),
        line(r"\s*Size\s+=\s+(?P<edge>\d+)x.*"),
        line(r"\s*Iterations\s+=\s+(?P<iterations>\d+)"),
        line(r"\s*I/O timing percentage\s*:\s+(?P<io_percent>\S+)"),
        line(r"\s*Total data written \(MB\)\s*:\s+(?P<written>\S+)"),
        line(r"\s*Total processes\s*=\s+(?P<ranks>\S+)"),
        line(r"\s*Total (?:number of )?processes\s*[:=]\s+(?P<started>\d+)"),
        line(r"\s*Mop/s/process\s*=\s+(?P<mops_process>\S+)"),
        # FULL MPI-IO, SIMPLE MPI-IO, FORTRAN IO or EPIO. Without I/O there is no
        # such line.
        line(r"\s*BTIO -- (?P<subtype>FULL|SIMPLE|FORTRAN|EPIO)\b.* write" " interval:.*"),
        # NPB 3.4 uses fewer processes than were started, if their number is not a
        # square.
        line(r"\s*Active proc(?:s|esses)\s*=\s+(?P<active>\d+)"),
    ),
    require={"Verification = SUCCESSFUL": line(r"\s*Verification\s+=\s+SUCCESSFUL")},
    reject=(line(r".*\bERROR\b.*"), line(r"\s*Verification failed")),
    expects=("time", "mops"),
    needs=("class", "ranks"),
)
