"""Outputs without a sample, constructed in the formats of the programs.

No real run printed them. Real outputs are in benchmarks/samples.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.fixtures.outputs import readings_of

from proofmark.cases.reader.engine import Reading


def values(readings: list[Reading]) -> list[tuple[str, float | None, bool]]:
    return [(reading.metric, reading.value, reading.valid) for reading in readings]


def imb(*parts: str, version: str = "#    Intel(R) MPI Benchmarks 2021.11, MPI-1 part") -> str:
    end = "\n\n# All processes entering MPI_Finalize\n\n"
    return "\n".join([version, *parts]) + end


BCAST = """
#----------------------------------------------------------------
# Benchmarking Bcast
# #processes = 2
# ( 6 additional processes waiting in MPI_Barrier)
#----------------------------------------------------------------
       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]
            8         1000         0.11         0.13         0.12
"""


def test_imb_header_of_version_3_and_waiting_ranks() -> None:
    version = "#    Intel (R) MPI Benchmark Suite V3.2.4, MPI-1 part"
    readings = readings_of("imb-collectives", imb(BCAST, version=version))
    assert values(readings) == [
        ("t_min", 0.11, True),
        ("t_max", 0.13, True),
        ("t_avg", 0.12, True),
    ]
    assert readings[0].parameters == {"ranks": 2, "waiting": 6, "bytes": 8}


def test_imb_waiting_ranks_end_with_their_benchmark() -> None:
    alone = BCAST.replace("# ( 6 additional processes waiting in MPI_Barrier)\n", "")
    readings = readings_of("imb-collectives", imb(BCAST, alone.replace("= 2", "= 8")))
    assert [dict(reading.parameters) for reading in readings[::3]] == [
        {"ranks": 2, "waiting": 6, "bytes": 8},
        {"ranks": 8, "bytes": 8},
    ]


@pytest.mark.parametrize(
    "row",
    [
        ' 4194304 out-of-mem.; needed X=   2.013 GB; use flag "-mem X" or MAX_MEM_USAGE>=X (IMB…)',
        " 4194304 int-overflow; The production rank*size caused int overflow; Stopping benchmark",
    ],
)
def test_imb_skips_a_size_for_other_reasons_than_time(row: str) -> None:
    readings = readings_of("imb-collectives", imb(BCAST + row))
    assert values(readings)[3:] == [(m, None, False) for m in ("t_min", "t_max", "t_avg")]
    assert {reading.parameters["bytes"] for reading in readings[3:]} == {4194304}
    assert all(row.split()[1].strip(".;") in reading.reason for reading in readings[3:])


def test_imb_mt_has_threads() -> None:
    text = imb("""
# Benchmarking PingPongMT
# #processes = 2 (threads: 4)
#-----------------------------------------------------------------------------
     #bytes #repetitions      t_avg[usec]     Mbytes/sec
        64          100             1.25         102.40
""")
    readings = readings_of("imb-pingpong", text)
    assert values(readings) == [("t_avg", 1.25, True), ("bandwidth", 102.4, True)]
    assert readings[0].parameters == {"ranks": 2, "threads": 4, "bytes": 64}


def test_imb_checked_results_with_defects_are_invalid() -> None:
    text = imb("""
# Benchmarking PingPong
# #processes = 2
       #bytes #repetitions      t[usec]   Mbytes/sec      defects
            8         1000         0.50        16.00         0.00
           16         1000         0.50        32.00         3.00
""")
    readings = readings_of("imb-pingpong", text)
    assert [reading.valid for reading in readings] == [True, True, False, False]
    assert "'3.00'" in readings[2].reason


def test_imb_unknown_column_is_reported_and_the_others_are_read() -> None:
    text = imb("""
# Benchmarking PingPong
# #processes = 2
       #bytes #repetitions      t[usec]   jitter[%]
            8         1000         0.50        16.00
""")
    readings = readings_of("imb-pingpong", text)
    assert values(readings) == [("t_avg", None, False), ("t_avg", 0.5, True)]
    assert "jitter[%]" in readings[0].reason


def test_imb_benchmark_that_refuses_its_ranks_has_only_its_parameters() -> None:
    refused = "# !! Benchmark Stencil3D is invalid for 7 processes !!"
    readings = readings_of("imb-pingpong", imb(BCAST, refused))
    assert [reading.valid for reading in readings] == [True, True, True, False]
    assert (readings[3].benchmark, readings[3].parameters) == ("Stencil3D", {"ranks": 7})
    assert refused in readings[3].reason


def test_each_run_in_one_output_needs_an_end_marker() -> None:
    cut = imb(BCAST).split("# All processes")[0]
    readings = readings_of("imb-collectives", cut + imb(BCAST))
    assert [reading.valid for reading in readings] == [False] * 3 + [True] * 3


def test_a_benchmark_without_rows_is_invalid() -> None:
    empty = BCAST[: BCAST.index("            8 ")].replace("Bcast", "Reduce")
    readings = readings_of("imb-collectives", imb(BCAST, empty))
    assert (readings[-1].benchmark, readings[-1].valid) == ("Reduce", False)
    assert "no row under" in readings[-1].reason


def test_a_row_without_header_is_invalid() -> None:
    headless = "\n".join(line for line in BCAST.splitlines() if "#bytes" not in line)
    readings = readings_of("imb-collectives", imb(headless))
    assert values(readings) == [("t_avg", None, False)]
    assert "outside of any table" in readings[0].reason


@pytest.mark.parametrize(
    ("title", "header", "benchmark", "metric"),
    [
        (
            "# OSU MPI Bandwidth Test v3.8",
            "# Size        Bandwidth (MB/s)",
            "Bandwidth",
            "bandwidth",
        ),
        (
            "# OSU MPI Bi-Directional Bandwidth Test v3.1.1",
            "# Size     Bi-Bandwidth (MB/s)",
            "Bi-Directional Bandwidth",
            "bandwidth",
        ),
        ("# OSU MPI Latency Test (Version 3.0)", "# Size\t\tLatency (us)", "Latency", "latency"),
        ("# OSU MPI-CUDA Latency Test v5.6.2", "# Size   Latency (us)", "CUDA Latency", "latency"),
        (
            "# OSU MPI_Get Bandwidth Test v6.1",
            "# Size   Bandwidth (MB/s)",
            "Get Bandwidth",
            "bandwidth",
        ),
        (
            "# OSU MPI All-to-All Personalized Exchange Latency Test v3.6",
            "# Size         Avg Latency(us)",
            "All-to-All Personalized Exchange Latency",
            "latency",
        ),
    ],
)
def test_osu_titles_of_other_versions(title: str, header: str, benchmark: str, metric: str) -> None:
    [reading] = readings_of("osu-latency", f"{title}\n{header}\n1024        17.25\n")
    assert (reading.benchmark, reading.metric) == (benchmark, metric)
    assert (reading.value, reading.parameters, reading.valid) == (17.25, {"bytes": 1024}, True)


def test_osu_value_with_failed_validation_is_invalid() -> None:
    text = "# OSU MPI Latency Test v7.4\n# Size  Avg Latency(us)   Validation\n1   0.93   Fail\n"
    [reading] = readings_of("osu-latency", text)
    assert (reading.value, reading.valid) == (0.93, False)
    assert "'Fail'" in reading.reason


def test_osu_row_without_title_has_no_benchmark() -> None:
    [reading] = readings_of("osu-latency", "# Size       Latency (us)\n8       0.30\n")
    assert (reading.value, reading.valid, reading.reason) == (
        0.3,
        False,
        "no line has its benchmark; no banner: another program, or the beginning is missing",
    )


IOR_3_0 = """IOR-3.0.1: MPI Coordinated Test of Parallel I/O

Began: Thu Nov 21 10:00:00 2019
Command line used: ior -a MPIIO -b 16m -t 1m -o /scratch/x
Machine: Linux node001

Test 0 started: Thu Nov 21 10:00:00 2019
Summary:
\tapi                = MPIIO (version=3, subversion=0)
\ttest filename      = /scratch/x
\taccess             = single-shared-file, independent
\tordering in a file = sequential offsets
\tordering inter file= no tasks offsets
\tclients            = 32 (16 per node)
\trepetitions        = 1
\txfersize           = 262144 bytes
\tblocksize          = 1.50 GiB
\taggregate filesize = 48 GiB

access    bw(MiB/s)  block(KiB) xfer(KiB)  open(s)    wr/rd(s)   close(s)   total(s)   iter
------    ---------  ---------- ---------  --------   --------   --------   --------   ----
write     1234.56    1572864    256.00     0.001110   39.81      0.000301   39.81      0
read      2345.6     1572864    256.00     0.001110   20.95      0.000301   20.95      0
remove    -          -          -          -          -          -          0.000410   0

Max Write: 1234.56 MiB/sec (1294.53 MB/sec)
Max Read:  2345.60 MiB/sec (2459.54 MB/sec)

Summary of all tests:
Operation   Max(MiB)   Min(MiB)  Mean(MiB)     StdDev    Mean(s) Test# #Tasks tPN reps fPP reord
write        1234.56    1234.56    1234.56       0.00   39.81    0 32 16 1 0 1

Finished: Thu Nov 21 10:02:00 2019
"""


def test_ior_of_version_3_0() -> None:
    readings = readings_of("ior", IOR_3_0)
    assert values(readings) == [("write", 1234.56, True), ("read", 2345.6, True)]
    assert readings[0].node == "node001"
    assert readings[1].parameters == {
        "api": "MPIIO",
        "type": "independent",
        "layout": "single-shared-file",
        "ordering": "sequential",
        "ordering_inter_file": "no",
        "block_bytes": 1536 << 20,
        "transfer_bytes": 262144,
        "tasks": 32,
        "iteration": 0,
    }


def test_ior_rounded_size_is_not_a_number_of_bytes() -> None:
    readings = readings_of("ior", IOR_3_0.replace("262144 bytes", "45.91 KiB"))
    assert not any(reading.valid for reading in readings)
    assert all(
        "'45.91 KiB' is not a whole number of bytes" in reading.reason for reading in readings
    )


@pytest.mark.parametrize(
    "line",
    [
        "ior ERROR: write(11, 0x1, 262144) failed, errno 28, No space left on device",
        'ERROR: open64("/scratch/x", 66) failed: Permission denied, (aiori-POSIX.c:650)',
        "WARNING: incorrect data on read (3 errors found).",
    ],
)
def test_ior_that_prints_an_error_is_invalid(line: str) -> None:
    readings = readings_of("ior", IOR_3_0.replace("\nMax Write", f"\n{line}\nMax Write"))
    assert len(readings) >= 2
    assert not any(reading.valid for reading in readings)


def ior_json(**row: Any) -> str:
    test = {
        "Parameters": {"api": "POSIX", "blockSize": 47008, "transferSize": 47008},
        "Options": {"access": "file-per-process", "tasks": "4"},
        "Results": [{"access": "write", "bwMiB": 1.5, **row}, {"access": "remove"}],
    }
    return json.dumps({"Version": "4.0.0", "tests": [test], "Finished": "today"}, indent=1)


def test_ior_json_after_a_warning() -> None:
    [reading] = readings_of("ior", "ior WARNING: fsync() not supported\n" + ior_json())
    assert (reading.metric, reading.value, reading.valid) == ("write", 1.5, True)
    assert reading.parameters["tasks"] == 4
    assert reading.parameters["block_bytes"] == 47008


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (float("nan"), "'NaN' is not a number"),
        ("inf", "'inf' is not a number"),
        (-1.0, "negative value '-1.0'"),
        (None, "neither a number nor a word"),
        ([1], "neither a number nor a word"),
        (True, "neither a number nor a word"),
    ],
)
def test_ior_json_without_a_usable_number(value: Any, reason: str) -> None:
    [reading] = readings_of("ior", ior_json(bwMiB=value))
    assert (reading.value, reading.valid) == (None, False)
    assert reason in reading.reason


def test_ior_json_without_its_end_is_invalid() -> None:
    [reading] = readings_of("ior", ior_json().replace("Finished", "Aborted"))
    assert (reading.value, reading.valid, reading.reason) == (1.5, False, 'no "Finished": cut off')


HPL = """HPLinpack 1.0a  --  High-Performance Linpack benchmark  --   January 20, 2004
============================================================================
T/V                N    NB     P     Q               Time             Gflops
----------------------------------------------------------------------------
WR03L2L4       82880   160     8     8            4139.72          9.168e+01
----------------------------------------------------------------------------
||Ax-b||_oo / ( eps * ||A||_1  * N        ) =        0.0026116 ...... PASSED
||Ax-b||_oo / ( eps * ||A||_1  * ||x||_1  ) =        0.0020471 ...... PASSED
||Ax-b||_oo / ( eps * ||A||_oo * ||x||_oo ) =        0.0003637 ...... PASSED
============================================================================

Finished      1 tests with the following results:
              1 tests completed and passed residual checks,
              0 tests completed and failed residual checks,
              0 tests skipped because of illegal input values.
----------------------------------------------------------------------------

End of Tests.
"""


def test_hpl_1_has_three_residuals() -> None:
    readings = readings_of("hpl", HPL)
    assert values(readings) == [
        ("rmax", 91.68, True),
        ("time", 4139.72, True),
        ("residual", 0.0026116, True),
    ]
    assert readings[0].parameters == {"variant": "WR03L2L4", "n": 82880, "nb": 160, "p": 8, "q": 8}


@pytest.mark.parametrize("which", [1, 2, 3])
def test_hpl_1_with_one_residual_failed_is_invalid(which: int) -> None:
    head, *tails = HPL.split("...... PASSED")
    words = ["...... FAILED" if index == which else "...... PASSED" for index in (1, 2, 3)]
    text = head + "".join(word + tail for word, tail in zip(words, tails, strict=True))
    readings = readings_of("hpl", text)
    assert [(metric, valid) for metric, _, valid in values(readings)] == [
        ("rmax", False),
        ("time", False),
        *([] if which == 1 else [("residual", False)]),
    ]
    assert "FAILED" in readings[0].reason


def test_hpl_without_residual_check_is_invalid() -> None:
    unchecked = "\n".join(line for line in HPL.splitlines() if "Ax-b" not in line) + "\n"
    readings = readings_of("hpl", unchecked)
    assert {reading.reason for reading in readings} == {"the line that confirms it is missing"}


def test_hpl_with_fewer_rows_than_its_count_is_invalid() -> None:
    readings = readings_of("hpl", HPL.replace("Finished      1 tests", "Finished      2 tests"))
    assert not any(reading.valid for reading in readings)
    assert "1 row, but the program reports 2" in readings[0].reason


def test_hpl_without_its_count_is_invalid() -> None:
    readings = readings_of("hpl", HPL.replace("Finished      1 tests", "Finished"))
    assert {reading.reason for reading in readings} == {"no line has the number of rows"}


def test_hpl_row_with_a_warning_inside_is_quoted() -> None:
    broken = HPL.replace("160     8     8            4139.72", "160     8  [n7:1] warning: x")
    readings = readings_of("hpl", broken)
    assert values(readings) == [("rmax", None, False), ("time", None, False)]
    assert "[n7:1] warning: x" in readings[0].reason


def test_hpl_is_read_with_interleaved_warnings() -> None:
    warning = "[n7:1] 3 more processes have sent help message help-mpi-btl.txt / no-nics\n"
    assert readings_of("hpl", HPL.replace("\n", "\n" + warning)) == readings_of("hpl", HPL)


STREAM = """-------------------------------------------------------------
STREAM version $Revision: 5.9 $
-------------------------------------------------------------
This system uses 8 bytes per DOUBLE PRECISION word.
-------------------------------------------------------------
Array size = 2000000, Offset = 0
Number of Threads requested = 4
-------------------------------------------------------------
Function      Rate (MB/s)   Avg time     Min time     Max time
Copy:       11111.1111       0.0032       0.0031       0.0036
Scale:      22222.2222       0.0034       0.0033       0.0039
Add:        33333.3333       0.0043       0.0042       0.0045
Triad:      44444.4444       0.0043       0.0042       0.0044
-------------------------------------------------------------
Solution Validates
-------------------------------------------------------------
"""


def test_stream_5_9() -> None:
    readings = readings_of("stream", STREAM)
    assert [reading.value for reading in readings] == [
        11111.1111,
        22222.2222,
        33333.3333,
        44444.4444,
    ]
    assert all(reading.valid for reading in readings)
    assert readings[3].parameters == {"threads": 4, "array": 2000000}


def test_stream_that_fails_its_validation_is_invalid() -> None:
    failed = "Failed Validation on array a[], AvgRelAbsErr > epsilon (1.000000e-13)"
    readings = readings_of("stream", STREAM.replace("Solution Validates", failed))
    assert [reading.value for reading in readings] == [
        11111.1111,
        22222.2222,
        33333.3333,
        44444.4444,
    ]
    assert not any(reading.valid for reading in readings)
    assert failed[:30] in readings[0].reason


def test_stream_without_a_kernel_has_an_invalid_reading_for_it() -> None:
    lines = [line for line in STREAM.splitlines(keepends=True) if not line.startswith("Add:")]
    readings = readings_of("stream", "".join(lines))
    assert [(r.metric, r.valid) for r in readings] == [
        ("copy", True),
        ("scale", True),
        ("triad", True),
        ("add", False),
    ]


def test_stream_with_fewer_threads_than_requested_is_invalid() -> None:
    counted = "Number of Threads requested = 4\nNumber of Threads counted = 3\n"
    readings = readings_of("stream", STREAM.replace("Number of Threads requested = 4\n", counted))
    assert {reading.reason for reading in readings} == {"two values of threads: 4 and 3"}


def bt(mops: str) -> str:
    return f"""

 NAS Parallel Benchmarks 3.3 -- BT Benchmark

 No input file inputbt.data. Using compiled defaults
 Size:  102x 102x 102
 Iterations:  200    dt:   0.0003000
 Number of active processes:    16

 Verification Successful


 BT Benchmark Completed.
 Class           =                        B
 Time in seconds =                    61.50
 Total processes =                       16
 Compiled procs  =                       16
 Mop/s total     =          {mops:>15}
 Verification    =               SUCCESSFUL
 Version         =                    3.3.1
"""


def test_bt_3_3_without_io() -> None:
    readings = readings_of("npb-btio", bt("11417.93"))
    assert values(readings) == [("time", 61.5, True), ("mops", 11417.93, True)]
    assert readings[0].parameters == {"class": "B", "ranks": 16}


@pytest.mark.parametrize("word", ["NaN", "***************", ""])
def test_bt_value_that_is_not_a_number_is_quoted(word: str) -> None:
    readings = readings_of("npb-btio", bt(word))
    assert values(readings) == [("time", 61.5, True), ("mops", None, False)]
    assert repr(word) in readings[1].reason


def fio(options: dict[str, str], **job: Any) -> str:
    entry = {
        "jobname": "write",
        "error": 0,
        "job options": {"rw": "write", **options},
        "write": {"bw": 1000, "io_bytes": 4096},
        "read": {"bw": 0, "io_bytes": 0},
        **job,
    }
    return json.dumps({"fio version": "fio-3.33", "jobs": [entry]}, indent=1)


@pytest.mark.parametrize(
    ("options", "layout"),
    [
        ({"size": "4m", "filename": "x"}, "single-shared-file"),
        ({"size": "4096k", "directory": "/scratch"}, "file-per-process"),
        ({"size": "4M", "filename": "x", "description": "file-per-process"}, "file-per-process"),
        ({"size": "4194304", "description": "my first try"}, "file-per-process"),
    ],
)
def test_fio_layout_and_size_in_the_forms_of_job_files(
    options: dict[str, str], layout: str
) -> None:
    [reading] = readings_of("fio-cache", fio(options))
    assert reading.valid
    expected = {"pattern": "write", "block_bytes": 4 << 20, "transfer_bytes": 4096, "tasks": 1}
    defaults = {"direct": "0", "iodepth": 1, "engine": "psync"}
    assert reading.parameters == {**expected, **defaults, "layout": layout}


@pytest.mark.parametrize(
    ("options", "direct"),
    [
        ({}, "0"),
        ({"direct": "0"}, "0"),
        ({"direct": "1"}, "1"),
        ({"direct": ""}, "1"),
        ({"buffered": "0"}, "1"),
        ({"buffered": "1"}, "0"),
    ],
)
def test_fio_with_and_without_the_page_cache_are_two_figures(
    options: dict[str, str], direct: str
) -> None:
    [reading] = readings_of("fio-cache", fio({"size": "4m", "iodepth": "32", **options}))
    assert (reading.parameters["direct"], reading.parameters["iodepth"]) == (direct, 32)


def test_fio_reports_before_the_end_are_no_repeats() -> None:
    before, last = fio({"size": "4m"}, eta=5), fio({"size": "4m"}, eta=0)
    assert readings_of("fio-cache", f"{before}\n{before}\n{last}") == readings_of("fio-cache", last)
    [reading] = readings_of("fio-cache", before)
    assert not reading.valid
    assert "had not ended" in reading.reason
    readings = readings_of("fio-cache", f"{last}\n{last}")
    assert [reading.valid for reading in readings] == [True, True]


def test_a_message_after_the_document_of_fio_counts() -> None:
    document = fio({"size": "4m"})
    [reading] = readings_of("fio-cache", f"{document}\nSegmentation fault\n")
    assert not reading.valid
    [reading] = readings_of("fio-cache", f"srun: error: an earlier command\n{document}\n")
    assert reading.valid


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (fio({"size": "4m"}, error=28), "ended with an error"),
        (fio({"size": "4m"}, write={"bw": 0, "io_bytes": 0}), "moved no byte"),
        (fio({"size": "4m", "numjobs": "4"}), "no group_reporting"),
        (fio({"size": "4Mx"}), "block_bytes: '4Mx' is not a size"),
        (fio({"size": "4m", "kb_base": "1000"}), "the suffixes of sizes mean something else"),
        ("fio: terminating on signal 15\n" + fio({"size": "4m"}), "terminating on signal 15"),
    ],
)
def test_fio_job_that_is_invalid(text: str, reason: str) -> None:
    [reading] = readings_of("fio-cache", text)
    assert (reading.value is not None, reading.valid) == (True, False)
    assert reason in reading.reason


def test_fio_job_of_another_kind_gives_no_reading() -> None:
    [reading] = readings_of("fio-cache", fio({"size": "4m"}, **{"job options": {"rw": "trim"}}))
    assert (reading.value, reading.valid) == (None, False)
    assert reading.reason == "no fio job that writes or reads found"
