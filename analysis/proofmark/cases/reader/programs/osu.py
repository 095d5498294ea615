"""OSU Micro-Benchmarks: the sizes that prove the end of an output (their options)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from proofmark.cases.reader.agreement import Agreement, row_missing
from proofmark.cases.reader.builder import ReadingBuilder
from proofmark.cases.reader.reader import Reader, Rows, TextRun, line, matches_of, words
from proofmark.cases.reader.settings import StartedCommand, named, size_of, value_of
from proofmark.cases.reader.table import Table
from proofmark.common.message import NOTHING, Message

_ELEMENT = 8
"""Bytes of the largest element. Collectives that compute begin with one element, not one byte."""
_MEMORY = 1 << 29
"""Bytes that limit the largest size times the ranks, without the option `-M`."""
_LARGEST = (
    (".*(?:Fetch_and_op|Compare_and_swap) .*", 8),
    (
        ".*Bandwidth.*|(?:(?:CUDA|ROCM|OPENACC|SYCL) )?"
        "(?:(?:Multi|Multi-threaded|Multi-process|Persistent|Put|Get) )?Latency",
        1 << 22,
    ),
    (".*", 1 << 20),
)
"""A pattern of the name of the benchmark, and its largest size without `-m`, in bytes. The first
pattern that matches counts."""

# A line of a shell that prints its commands.
_COMMAND = line(r"(?:# cmd:|\++) (?:.*[ /])?(?P<command>osu_\w+(?: .*)?)")
# The multi-threaded programs print it before their banner.
_THREADS = line(r"# (?P<key>Number of (?:Sender|Receiver) threads): (?P<value>\d+.*)")
_NAME = line(r"# OSU (?:MPI[-_ ]?)?(?P<benchmark>.+?) Test\b.*")
_CONTEXT = matches_of(
    line(r"# \[ pairs: (?P<pairs>\d+) \].*"),
    line(r"# \[ pairs: \d+ \] \[ window size: (?!64 )(?P<window_size>\d+) \].*"),
    line(
        r"# (?:Send Buffer|Rank 0 Memory) on \w+ \((?P<send_buffer>\w+)\) and"
        r" (?:Receive Buffer|Rank 1 Memory) on \w+ \((?P<receive_buffer>\w+)\).*"
    ),
    line(r"# Window creation: (?P<window>\w+)"),
    line(r"# Synchronization: (?P<synchronization>\w+)"),
    line(r"# Datatype: (?!MPI_CHAR\.)(?P<datatype>\w+)\.?"),
    # After the title if the kit started several copies at the same time.
    line(r"# copy (?P<pair>\d+) of \d+"),
)
# Some builds of 5.7 print the header without #.
_HEADER = line(
    r"# (?P<titles>(?:Size\s|(?:Avg )?Latency|Overall\(us\)|Bandwidth|\s*MB/s).*)"
    r"| *(?:Size|Avg Latency\(us\)|Overall\(us\))  .*(?:\((?:us|MB/s|%)\)|MB/s)"
)
_TABLE = Table(
    metrics={
        "Latency (us)": "latency",
        "Latency(us)": "latency",
        "Avg Latency(us)": "latency",
        "Min Latency(us)": "latency_min",
        "Max Latency(us)": "latency_max",
        "P50 Tail Lat(us)": "latency_p50",
        "P90 Tail Lat(us)": "latency_p90",
        "P95 Tail Lat(us)": "latency_p95",
        "P99 Tail Lat(us)": "latency_p99",
        "Bandwidth (MB/s)": "bandwidth",
        "Bi-Bandwidth (MB/s)": "bandwidth",
        "MB/s": "bandwidth",
        "P50 Tail BW(MB/s)": "bandwidth_p50",
        "P90 Tail BW(MB/s)": "bandwidth_p90",
        "P95 Tail BW(MB/s)": "bandwidth_p95",
        "P99 Tail BW(MB/s)": "bandwidth_p99",
        "Messages/s": "rate",
        "Overall(us)": "overall",
        "Compute(us)": "compute",
        "Coll. Init(us)": "comm_init",
        "MPI_Test(us)": "comm_test",
        "MPI_Wait(us)": "comm_wait",
        "Pure Comm.(us)": "comm",
        "Min Comm.(us)": "comm_min",
        "Max Comm.(us)": "comm_max",
        "Overlap(%)": "overlap",
    },
    parameters={"Size": "bytes"},
    words={"Validation": "Pass"},
    unread=("Iterations", "Transmit Size"),
    # Percentiles that an option chooses (-z 75,99).
    others=line(r"P[\d.]+ Tail (?:Lat|BW)\((?:us|MB/s)\)"),
    skip=line("#.*"),
    stray=line(r"\d+\s+[\d.]+.*"),
)
_STARTUP_BEGINS = line("nprocs: .*")
_STARTUP = line(
    r"nprocs: (?P<ranks>\d+), min: (?P<startup_min>\S+) ms, max: (?P<startup_max>\S+) ms,"
    r" avg: (?P<startup>\S+) ms"
)


def read(run: TextRun) -> None:
    """Read all programs with a table of sizes. None of them prints a line at its end.

    The requested sizes prove that no row is missing. Without them a cut after a whole row cannot
    be seen.
    """
    rows = Rows(run, _STARTUP, ("startup", "startup_min", "startup_max"))
    for text in run.lines():
        if text[:1].isdigit():
            run.other(text, _TABLE)
        elif match := _NAME.fullmatch(text):
            run.context(match, ("pairs",))
        elif matches := _CONTEXT(text):
            run.contexts(matches)
        elif match := _HEADER.fullmatch(text):
            run.header(_TABLE, match)
        elif _STARTUP_BEGINS.fullmatch(text):
            rows.row(text)
        elif match := _COMMAND.fullmatch(text):
            run.command(match)
        elif match := _THREADS.fullmatch(text):
            run.ahead(named(match["key"], match["value"], ()))
        else:
            run.other(text, _TABLE)
    if run.request is None:
        run.unproven = any("bytes" in each.parameters for each in run.builders)
        if problem := row_missing(run.builders):
            run.problems.append(problem)
    elif problem := missing_sizes(run.request, run.builders):
        run.problems.append(problem)


def missing_sizes(request: StartedCommand, builders: Sequence[ReadingBuilder]) -> Message:
    """Return which size has no row: sizes double up to that of `-m`, or to the default."""
    found = {builder.parameters.get("bytes") for builder in builders}
    sizes = sorted(size for size in found if isinstance(size, int))
    if not sizes:
        return NOTHING
    requested = value_of(request, "-m")
    least, _, most = (requested or "").rpartition(":")
    largest = size_of(most) if most else _default(builders)
    smallest = size_of(least) if least else 0
    if largest is None or smallest is None:
        return Message("reader-no-option-size", option="-m", word=f"{requested}")
    memory = size_of(value_of(request, "-M")) or _MEMORY
    largest = max(min(largest, memory // (request.ranks or 1)), smallest)
    if sizes[0] > max(smallest, _ELEMENT):
        return Message("reader-first-row", bytes=sizes[0], least=smallest)
    intact = all(builder.value is not None for builder in builders)
    for size, following in pairwise(sizes):
        # A row that cannot be read has its own INVALID reading.
        if intact and following != (2 * size or 1):
            return Message("reader-no-row-between", least=size, most=following)
    if (2 * sizes[-1] or 1) <= largest:
        if not requested:
            return Message("reader-last-row-default", bytes=sizes[-1], most=largest)
        asked = {"option": "-m", "word": requested}
        return Message("reader-last-row", bytes=sizes[-1], most=largest, **asked)
    return NOTHING


def _default(builders: Sequence[ReadingBuilder]) -> int:
    name = next((builder.benchmark for builder in builders if builder.benchmark), "")
    return next(size for pattern, size in _LARGEST if re.fullmatch(pattern, name, re.ASCII))


def _at_most(metric: str, most: str, rounding: float = 0.011) -> Agreement:
    return Agreement(metric, at_most=most, rounding=rounding, within=0.001)


OSU = Reader(
    finds="OSU result row",
    units={
        **dict.fromkeys(
            words(
                "latency latency_min latency_max latency_p50 latency_p90 latency_p95 latency_p99"
            ),
            "us",
        ),
        **dict.fromkeys(
            words("bandwidth bandwidth_p50 bandwidth_p90 bandwidth_p95 bandwidth_p99"), "MB/s"
        ),
        "rate": "Messages/s",
        **dict.fromkeys(
            words("overall compute comm_init comm_test comm_wait comm comm_min comm_max"), "us"
        ),
        "overlap": "%",
        **dict.fromkeys(words("startup startup_min startup_max"), "ms"),
    },
    # Memory of the buffers: H(ost), D(evice), M(anaged). A window of 64 messages and MPI_CHAR are
    # the defaults: only other values are parameters.
    parameters={
        "ranks": "int",
        "bytes": "int",
        "pairs": "int",
        "pair": "int",
        "send_buffer": "word",
        "receive_buffer": "word",
        "window": "word",
        "synchronization": "word",
        "window_size": "int",
        "datatype": "word",
    },
    read=read,
    prints_benchmark=True,
    no_setting=("-m", "-M", "-V", "-f", "cmd", "copy", "size"),
    short=("comm_init", "comm_test", "comm_wait"),
    agree=(
        # The mean of the ranks is between the fastest and the slowest.
        _at_most("latency_min", "latency"),
        _at_most("latency", "latency_max"),
        _at_most("comm_min", "comm"),
        _at_most("comm", "comm_max"),
        _at_most("startup_min", "startup", 1),
        _at_most("startup", "startup_max", 1),
        _at_most("latency_p50", "latency_p90"),
        _at_most("latency_p90", "latency_p95"),
        _at_most("latency_p95", "latency_p99"),
        # osu_mbw_mr computes the rate of messages from the bandwidth.
        Agreement("bandwidth", ("rate * bytes / 1e6",), rounding=0.006),
    ),
    # osu_hello prints a banner and no figure.
    starts=line("# OSU (?!.*Hello World).*"),
    once="rows",
    settings=(
        # A line with a value after a colon, or a sentence such as: Send Buffer on DEVICE (D).
        line(
            "# (?!OSU |Datatype|Window creation|Synchronization)"
            r"(?P<key>[A-Z][^:\[\]]*?): (?P<value>.*)"
        ),
        line(r"# (?P<key>(?:Send|Receive) Buffer|Rank \d Memory) on (?P<value>\w+ \(\w\))"),
        line(r"# (?P<key>[A-Z][A-Za-z_]*(?: [A-Za-z_]+)*)(?P<value>)"),
    ),
    needs=("benchmark",),
)
