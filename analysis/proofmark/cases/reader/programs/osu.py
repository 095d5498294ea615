"""OSU Micro-Benchmarks: the sizes that prove the end of an output (their options)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise

from proofmark.cases.reader.builder import ReadingBuilder
from proofmark.cases.reader.command_line import StartedCommand, size_of, value_of
from proofmark.cases.reader.rules import (
    Agreement,
    ColumnRule,
    ContextRule,
    RowRule,
    TableRule,
    TextSpec,
    line,
    words,
)
from proofmark.cases.reader.spec import Program, ReadSpec
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


class Osu(Program):
    """All programs with a table of sizes. None of them prints a line at its end."""

    sized = "bytes"

    def rules(self) -> ReadSpec:
        """Return how its output is read."""
        return ReadSpec(
            finds="OSU result row",
            # No OSU program prints an end marker. The requested sizes prove that no
            # row is missing. Without them a cut after a whole row cannot be seen.
            program="osu",
            # Memory of the buffers: H(ost), D(evice), M(anaged). A window of 64
            # messages and MPI_CHAR are the defaults: only other values are
            # parameters.
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
            no_setting=words("-m -M -V -f cmd copy size"),
            # osu_mbw_mr computes the rate of messages from the bandwidth.
            agree=(
                # The mean of the ranks is between the fastest and the slowest.
                Agreement(metric="latency_min", at_most="latency", rounding=0.011, within=0.001),
                Agreement(metric="latency", at_most="latency_max", rounding=0.011, within=0.001),
                Agreement(metric="comm_min", at_most="comm", rounding=0.011, within=0.001),
                Agreement(metric="comm", at_most="comm_max", rounding=0.011, within=0.001),
                Agreement(metric="startup_min", at_most="startup", rounding=1, within=0.001),
                Agreement(metric="startup", at_most="startup_max", rounding=1, within=0.001),
                Agreement(
                    metric="latency_p50", at_most="latency_p90", rounding=0.011, within=0.001
                ),
                Agreement(
                    metric="latency_p90", at_most="latency_p95", rounding=0.011, within=0.001
                ),
                Agreement(
                    metric="latency_p95", at_most="latency_p99", rounding=0.011, within=0.001
                ),
                Agreement(
                    metric="bandwidth", equals="rate * bytes / 1e6", rounding=0.006, within=0.002
                ),
            ),
            text=TextSpec(
                # osu_hello prints a banner and no figure.
                starts=line("# OSU (?!.*Hello World).*"),
                once="rows",
                # A line of a shell that prints its commands.
                command=line(r"(?:# cmd:|\++) (?:.*[ /])?(?P<command>osu_\w+(?: .*)?)"),
                context=(
                    ContextRule(
                        match=line(r"# OSU (?:MPI[-_ ]?)?(?P<benchmark>.+?) Test\b.*"),
                        resets=("pairs",),
                    ),
                    ContextRule(match=line(r"# \[ pairs: (?P<pairs>\d+) \].*")),
                    ContextRule(
                        match=line(
                            r"# \[ pairs: \d+ \] \[ window size: (?!64"
                            r" )(?P<window_size>\d+) \].*"
                        )
                    ),
                    ContextRule(
                        match=line(
                            r"# (?:Send Buffer|Rank 0 Memory) on \w+"
                            r" \((?P<send_buffer>\w+)\) and (?:Receive Buffer|Rank 1"
                            r" Memory) on \w+ \((?P<receive_buffer>\w+)\).*"
                        )
                    ),
                    ContextRule(match=line(r"# Window creation: (?P<window>\w+)")),
                    ContextRule(match=line(r"# Synchronization: (?P<synchronization>\w+)")),
                    ContextRule(match=line(r"# Datatype: (?!MPI_CHAR\.)(?P<datatype>\w+)\.?")),
                    # After the title if the kit started several copies at the same time.
                    ContextRule(match=line(r"# copy (?P<pair>\d+) of \d+")),
                ),
                settings=(
                    # A line with a value after a colon, or a sentence such as: Send Buffer on
                    # DEVICE (D).
                    line(
                        "# (?!OSU |Datatype|Window creation"
                        r"|Synchronization)(?P<key>[A-Z][^:\[\]]*?): (?P<value>.*)"
                    ),
                    line(
                        r"# (?P<key>(?:Send|Receive) Buffer|Rank \d Memory) on"
                        r" (?P<value>\w+ \(\w\))"
                    ),
                    line(r"# (?P<key>Using \w+) (?P<value>[^:]+)"),
                ),
                tables=(
                    # Some builds of 5.7 print the header without #.
                    TableRule(
                        header=line(
                            r"# (?P<titles>(?:Size\s|(?:Avg )?Latency|Overall\(us\)"
                            r"|Bandwidth|\s*MB/s).*)| *(?:Size|Avg Latency\(us\)"
                            r"|Overall\(us\))  .*(?:\((?:us|MB/s|%)\)|MB/s)"
                        ),
                        columns={
                            "Size": ColumnRule(parameter="bytes"),
                            "Latency (us)": ColumnRule(metric="latency", unit="us"),
                            "Latency(us)": ColumnRule(metric="latency", unit="us"),
                            "Avg Latency(us)": ColumnRule(metric="latency", unit="us"),
                            "Min Latency(us)": ColumnRule(metric="latency_min", unit="us"),
                            "Max Latency(us)": ColumnRule(metric="latency_max", unit="us"),
                            "P50 Tail Lat(us)": ColumnRule(metric="latency_p50", unit="us"),
                            "P90 Tail Lat(us)": ColumnRule(metric="latency_p90", unit="us"),
                            "P95 Tail Lat(us)": ColumnRule(metric="latency_p95", unit="us"),
                            "P99 Tail Lat(us)": ColumnRule(metric="latency_p99", unit="us"),
                            "Bandwidth (MB/s)": ColumnRule(metric="bandwidth", unit="MB/s"),
                            "Bi-Bandwidth (MB/s)": ColumnRule(metric="bandwidth", unit="MB/s"),
                            "MB/s": ColumnRule(metric="bandwidth", unit="MB/s"),
                            "P50 Tail BW(MB/s)": ColumnRule(metric="bandwidth_p50", unit="MB/s"),
                            "P90 Tail BW(MB/s)": ColumnRule(metric="bandwidth_p90", unit="MB/s"),
                            "P95 Tail BW(MB/s)": ColumnRule(metric="bandwidth_p95", unit="MB/s"),
                            "P99 Tail BW(MB/s)": ColumnRule(metric="bandwidth_p99", unit="MB/s"),
                            "Messages/s": ColumnRule(metric="rate", unit="Messages/s"),
                            "Overall(us)": ColumnRule(metric="overall", unit="us"),
                            "Compute(us)": ColumnRule(metric="compute", unit="us"),
                            "Coll. Init(us)": ColumnRule(metric="comm_init", unit="us"),
                            "MPI_Test(us)": ColumnRule(metric="comm_test", unit="us"),
                            "MPI_Wait(us)": ColumnRule(metric="comm_wait", unit="us"),
                            "Pure Comm.(us)": ColumnRule(metric="comm", unit="us"),
                            "Min Comm.(us)": ColumnRule(metric="comm_min", unit="us"),
                            "Max Comm.(us)": ColumnRule(metric="comm_max", unit="us"),
                            "Overlap(%)": ColumnRule(metric="overlap", unit="%"),
                            "Iterations": ColumnRule(),
                            "Transmit Size": ColumnRule(),
                            "Validation": ColumnRule(accept="Pass"),
                        },
                        # Percentiles that an option chooses (-z 75,99).
                        unread=line(r"P[\d.]+ Tail (?:Lat|BW)\((?:us|MB/s)\)"),
                        skip=line("#.*"),
                        stray=line(r"\d+\s+[\d.]+.*"),
                    ),
                ),
                rows=(
                    RowRule(
                        begins=line("nprocs: .*"),
                        match=line(
                            r"nprocs: (?P<ranks>\d+), min: (?P<startup_min>\S+) ms, max:"
                            r" (?P<startup_max>\S+) ms, avg: (?P<startup>\S+) ms"
                        ),
                        metrics={"startup": "ms", "startup_min": "ms", "startup_max": "ms"},
                    ),
                ),
                needs=("benchmark",),
            ),
        )

    def missing_sizes(self, request: StartedCommand, builders: Sequence[ReadingBuilder]) -> Message:
        """Return which size has no row: sizes double up to that of `-m`, or to the default."""
        sizes = sorted(_sizes(builders))
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


def _sizes(builders: Iterable[ReadingBuilder]) -> set[int]:
    found = (builder.parameters.get("bytes") for builder in builders)
    return {size for size in found if isinstance(size, int)}


def _default(builders: Sequence[ReadingBuilder]) -> int:
    name = next((builder.benchmark for builder in builders if builder.benchmark), "")
    return next(size for pattern, size in _LARGEST if re.fullmatch(pattern, name, re.ASCII))
