"""HPL and HPC Challenge: rows that their residuals confirm, and the summary of HPCC."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from proofmark.cases.reader.agreement import Agreement
from proofmark.cases.reader.builder import ReadingBuilder
from proofmark.cases.reader.reader import Reader, Rows, TextRun, line, matches_of, words
from proofmark.cases.reader.values import Printed
from proofmark.common.message import Message

_OPERATIONS = "(2 / 3 * n ** 3 + 3 / 2 * n ** 2)"
_FAILED = line(r"\|\|Ax-b\|\|_oo.*\.\.\. FAILED")
# PTRANS prints its number of tests, too, with a comma after the word.
_TESTS = line(r"Finished\s+(?P<count>\d+) tests with the following results:")

_HPL_BEGINS = line(r"W[RC][A-Z]?\d.*")
# Each version prints the time without an exponent: columns that are swapped are no row. Some
# vendors' builds print the rate per accelerator in parentheses after it.
_HPL_ROW = line(
    r"(?P<variant>\S+) +(?:(?P<swap>\d{3}) +)?(?P<n>\S+) +(?P<nb>\S+) +(?P<p>\S+) +(?P<q>\S+)"
    r" +(?P<time>[\d.]+) +(?P<rmax>[^\s(]\S*)(?: +\(.*\))?"
)
# HPL 1 prints three such lines after a row, HPL 2 one. A failed one makes the row INVALID.
_HPL_PASSED = line(r"\|\|Ax-b\|\|_oo.*= +(?P<residual>\S+) \.\.\.+ PASSED")

# More than eight values continue on the next line.
_HPL_LISTED = line(r"(?:(?P<key>NB?|[PQ]) +:| {8})(?P<values>(?: +\d+)+)")
_HPL_LINES = matches_of(_HPL_LISTED, _HPL_BEGINS, _HPL_PASSED, _FAILED, _TESTS)


def _check_listed(row: Sequence[ReadingBuilder], listed: Mapping[str, Sequence[str]]) -> None:
    """Add a problem to a row whose size, blocks or grid are none of those in the header."""
    for names in (("n",), ("nb",), ("p", "q")):
        header = [*zip(*(listed.get(name, ()) for name in names), strict=False)]
        for each in row if header else ():
            found = tuple(f"{each.parameters.get(name, '')}" for name in names)
            if each.value is not None and found not in header:
                stated = ", ".join(map(" × ".join, header))
                name, second = " × ".join(names), " × ".join(found)
                two = Message("reader-two-values", name=name, first=stated, second=second)
                each.problems.append(two)


def read_hpl(run: TextRun) -> None:
    """Read HPL 1 and 2."""
    rows = Rows(run, _HPL_ROW, ("rmax", "time"), confirmed=True)
    listed: dict[str, list[str]] = {}
    values: list[str] = []
    for text in run.lines():
        if not _HPL_LINES(text):
            continue
        if match := _HPL_LISTED.fullmatch(text):
            values = listed.setdefault(match["key"].lower(), []) if match["key"] else values
            values += match["values"].split()
        elif _HPL_BEGINS.fullmatch(text):
            start = len(run.builders)
            rows.row(text)
            _check_listed(run.builders[start:], listed)
        elif match := _HPL_PASSED.fullmatch(text):
            rows.confirm(match, ("residual",))
        elif _FAILED.fullmatch(text):
            rows.refuse(text)
        elif match := _TESTS.fullmatch(text):
            rows.count(match)
    rows.finish(counted=True)


HPL = Reader(
    finds="HPL result row",
    benchmark="HPL",
    units={"rmax": "Gflops", "time": "s", "residual": ""},
    # The variant (column T/V) encodes the algorithm: two rows may differ in nothing else. AMD's
    # build prints the swapping algorithm (SWP) after it.
    parameters={
        "variant": "word",
        "swap": "word",
        "n": "int",
        "nb": "int",
        "p": "int",
        "q": "int",
    },
    read=read_hpl,
    # Columns of a row have the others.
    no_setting=words("n nb p q pfact nbmin ndiv rfact bcast depth time gflops"),
    short=("time",),
    # HPL computes the rate from the time (HPL_pdtest.c), and prints hundredths of a second and four
    # digits of the rate.
    agree=(Agreement("time", (f"{_OPERATIONS} / (rmax * 1e9)",), rounding=0.006, within=6e-4),),
    starts=line(r"HPLinpack \d.*"),
    once="ends",
    settings=(line(r"(?P<key>[A-Z]+\d?) +: (?P<value>\S.*)"),),
    require={"End of Tests.": line(r"End of Tests\.")},
    reject=(
        line("HPL ERROR.*"),
        line(r"\s*[1-9]\d* tests skipped because of illegal input values\."),
    ),
)

_HPCC_BEGINS = line(r"W[RC]\d.*")
_HPCC_TITLE = line("T/V +N +NB +P +Q +Time +Gflops")
_HPCC_ROW = line(
    r"\S+ +(?P<n>\S+) +(?P<nb>\S+) +(?P<p>\S+) +(?P<q>\S+) +(?P<seconds>\S+) +(?P<hpl_rmax>\S+)"
)
_HPCC_PASSED = line(r"\|\|Ax-b\|\|_oo.*\.\.\. PASSED")
_SECTION = line(r"Begin of (?P<name>\w+) section\.")
# A test prints its result before the summary does: Average Gflop/s 6.2, Single STREAM Add GB/s 32.6
_AGAIN = line(
    r"(?:(?:Average|Single)(?: DGEMM| STREAM| FFT)? )?(?:(?P<kernel>\w+) )?(?P<unit>G\w+)/s:?"
    r" +(?P<value>\S+)"
)
_KEY = line(r"(?P<key>\w+)=(?P<value>.*)")
# A test that did not run (ping-pong on one rank) prints -1 or 0, or memory that was never set:
# 6.95e-310.
_NOT_RUN = line(r"-1(?:\.0*)?|0(?:\.0*)?|-?\d(?:\.\d*)?e-3[012]\d")
_HPCC_METRICS = {
    "StarDGEMM_Gflops": "dgemm_star",
    "SingleDGEMM_Gflops": "dgemm_single",
    "PTRANS_GBs": "ptrans",
    "MPIRandomAccess_LCG_GUPs": "randomaccess_lcg_mpi",
    "MPIRandomAccess_GUPs": "randomaccess_mpi",
    "StarRandomAccess_LCG_GUPs": "randomaccess_lcg_star",
    "SingleRandomAccess_LCG_GUPs": "randomaccess_lcg_single",
    "StarRandomAccess_GUPs": "randomaccess_star",
    "SingleRandomAccess_GUPs": "randomaccess_single",
    "StarSTREAM_Copy": "stream_star_copy",
    "StarSTREAM_Scale": "stream_star_scale",
    "StarSTREAM_Add": "stream_star_add",
    "StarSTREAM_Triad": "stream_star_triad",
    "SingleSTREAM_Copy": "stream_single_copy",
    "SingleSTREAM_Scale": "stream_single_scale",
    "SingleSTREAM_Add": "stream_single_add",
    "SingleSTREAM_Triad": "stream_single_triad",
    "StarFFT_Gflops": "fft_star",
    "SingleFFT_Gflops": "fft_single",
    "MPIFFT_Gflops": "fft_mpi",
    "MaxPingPongLatency_usec": "pingpong_latency_max",
    "RandomlyOrderedRingLatency_usec": "ring_latency_random",
    "MinPingPongBandwidth_GBytes": "pingpong_bandwidth_min",
    "NaturallyOrderedRingBandwidth_GBytes": "ring_bandwidth_natural",
    "RandomlyOrderedRingBandwidth_GBytes": "ring_bandwidth_random",
    "MinPingPongLatency_usec": "pingpong_latency_min",
    "AvgPingPongLatency_usec": "pingpong_latency_avg",
    "MaxPingPongBandwidth_GBytes": "pingpong_bandwidth_max",
    "AvgPingPongBandwidth_GBytes": "pingpong_bandwidth_avg",
    "NaturallyOrderedRingLatency_usec": "ring_latency_natural",
}
# The latency and bandwidth test prints its results before the summary, in ms and MB/s.
_RANGE = line(
    r"(?P<what>Latency|Bandwidth) +min / avg / max: +(?P<min>\S+) +/ +(?P<avg>\S+) +/ +(?P<max>\S+)"
    r" +\S+"
)
_RING = line(
    r"On (?P<order>natural|random)ly +ordered ring: latency= *(?P<latency>\S+) msec,"
    r" bandwidth= *(?P<bandwidth>\S+) MB/s"
)
_POWERS = {"latency": "e3", "bandwidth": "e-3"}
"""From the units of that test to those of the summary."""
_UNITS = {"Gflops": "Gflop/s", "GBs": "GB/s", "GUPs": "GUP/s", "usec": "usec"}
"""The end of a key → the unit of its value. The others are bandwidths in GB/s."""


def _network_again(text: str) -> dict[str, str]:
    """Return what a line of the latency and bandwidth test repeats of the summary, by metric."""
    if match := _RANGE.fullmatch(text):
        what = match["what"].lower()
        parts = ("min", "avg", "max")
        return {f"pingpong_{what}_{each}": f"{match[each]}{_POWERS[what]}" for each in parts}
    if match := _RING.fullmatch(text):
        order = match["order"]
        return {f"ring_{what}_{order}": f"{match[what]}{by}" for what, by in _POWERS.items()}
    return {}


def read_hpcc(run: TextRun) -> None:
    """Read HPC Challenge 1.4 and 1.5."""
    # The row of HPL, not HPL_Tflops: only the row has a line with the residual.
    rows = Rows(run, _HPCC_ROW, ("hpl_rmax",), confirmed=True)
    titled, section = False, ""
    for text in run.lines():
        titled = titled or bool(_HPCC_TITLE.fullmatch(text))
        if match := _SECTION.fullmatch(text):
            section = match["name"]
        elif match := _AGAIN.fullmatch(text):
            key = f"{section}_{match['kernel'] or match['unit'] + 's'}"
            run.facts[f"{_HPCC_METRICS.get(key)}_again"] = Printed(match["value"])
        elif section == "LatencyBandwidth":
            for metric, word in _network_again(text).items():
                run.facts[f"{metric}_again"] = Printed(word)
        elif _HPCC_BEGINS.fullmatch(text):
            if titled:
                rows.row(text)
        elif match := _HPCC_PASSED.fullmatch(text):
            rows.confirm(match)
        elif _FAILED.fullmatch(text):
            rows.refuse(text)
        elif match := _TESTS.fullmatch(text):
            rows.count(match)
        elif (
            section == "Summary"
            and (match := _KEY.fullmatch(text))
            and match["key"] in _HPCC_METRICS
        ):
            metric = _HPCC_METRICS[match["key"]]
            if _NOT_RUN.fullmatch(match["value"].strip()):
                run.unset.add(metric)
            else:
                run.key(match, metric)
    rows.finish(counted=True)


HPCC = Reader(
    finds="HPC Challenge result",
    benchmark="HPCC",
    units={
        "hpl_rmax": "Gflops",
        **{
            metric: _UNITS.get(key.rpartition("_")[2], "GB/s")
            for key, metric in _HPCC_METRICS.items()
        },
    },
    parameters={"n": "int", "nb": "int", "p": "int", "q": "int", "ranks": "int"},
    read=read_hpcc,
    aside={
        **dict.fromkeys(("updates", "updates_lcg", "best_n"), "int"),
        **dict.fromkeys(("seconds", "access_s", "access_lcg_s", "best_tflops"), "printed"),
        **dict.fromkeys(("best_s", "ptrans_residual", "threshold"), "printed"),
    },
    # Of the summary: whole numbers and words are settings, the others are measured.
    summary=True,
    settings=(
        line(
            r"(?P<key>(?!sizeof_|Version|.*(?:Err|Updates|TimeBound|residual))\w*[A-Za-z]\w*)"
            r"=(?P<value>\d+|[A-Z])"
        ),
    ),
    no_setting=("success", "commworldprocs", "hpl_n", "hpl_nb", *map(str.lower, _HPCC_METRICS)),
    agree=(
        Agreement("hpl_rmax", (f"{_OPERATIONS} / (seconds * 1e9)",)),
        Agreement("hpl_rmax", at_most="best_tflops * 1e3"),
        Agreement("best_tflops", (f"{_OPERATIONS} / (best_s * 1e12)".replace("n", "best_n"),)),
        Agreement("ptrans_residual", at_most="threshold", within=0),
        Agreement("ranks", at_least="p * q", within=0),
        *(Agreement(metric, (f"{metric}_again",)) for metric in _HPCC_METRICS.values()),
        *(
            Agreement(f"pingpong_{what}_{less}", at_most=f"pingpong_{what}_{more}", within=1e-5)
            for what in ("latency", "bandwidth")
            for less, more in (("min", "avg"), ("avg", "max"))
        ),
        Agreement("randomaccess_mpi", ("updates / (access_s * 1e9)",), within=0.001),
        Agreement("randomaccess_lcg_mpi", ("updates_lcg / (access_lcg_s * 1e9)",), within=0.001),
    ),
    starts=line("This is the DARPA/DOE HPC Challenge Benchmark version.*"),
    once="ends",
    facts=(
        line("Hostname: '(?P<node>[^']+)'"),
        line("CommWorldProcs=(?P<ranks>.*)"),
        line(r"Running on (?P<ranks>\d+) processors.*"),
        line(r"Execution time \(wall clock\) .* on (?P<ranks>\d+) processes"),
        line("HPL_N=(?P<n>(?P<best_n>.*))"),
        line("HPL_Tflops=(?P<best_tflops>.*)"),
        line(r"HPL_time=(?P<best_s>\d.*)"),
        line(r"PTRANS_residual=(?P<ptrans_residual>\d.*)"),
        line(
            r"- Computational tests pass if scaled residuals are less than +(?P<threshold>[\d.]+)"
        ),
        line("HPL_NB=(?P<nb>.*)"),
        line("MPIRandomAccess_ExeUpdates=(?P<updates>.*)"),
        line("MPIRandomAccess_time=(?P<access_s>.*)"),
        line("MPIRandomAccess_LCG_ExeUpdates=(?P<updates_lcg>.*)"),
        line("MPIRandomAccess_LCG_time=(?P<access_lcg_s>.*)"),
    ),
    require={
        "Success=1": line("Success=1"),
        "End of HPC Challenge tests.": line(r"End of HPC Challenge tests\."),
    },
    reject=(
        line("HPL ERROR.*"),
        line(r"\s*[1-9]\d* tests completed and failed residual checks.*"),
    ),
    expects=("hpl_rmax", *_HPCC_METRICS.values()),
    needs=("n", "nb", "ranks"),
)
