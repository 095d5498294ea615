"""Whose output a text is: banners, titles of tables, other formats, messages of other commands."""

from __future__ import annotations

import pytest
from tests.fixtures.outputs import output_sample, readings_of

HPL = output_sample("hpl-1.0a_two-variants.txt")
IOR = output_sample("ior_io500_mistral_ior-easy-read.txt")
OSU = "# OSU MPI Latency Test v7.4\n# Size  Avg Latency(us)\n1  0.5\n2  0.6\n"
SRUN = "srun: error: w0001: task 0: Exited with exit code 2\n"
MDTEST = """\
-- started at 03/02/2026 10:00:00 --
mdtest-4.0.0 was launched with 2 total task(s) on 1 node(s)
Command line used: mdtest '-n' '1000' '-F' '-C'
SUMMARY rate{colon} (of 1 iterations)
   File creation               24392.579      24392.579      24392.579          0.000
SUMMARY time (in ms/op): (of 1 iterations)
   File creation                   0.082          0.082          0.082          0.000
-- finished at 03/02/2026 10:01:00 --
"""
NPB = """\
 NAS Parallel Benchmarks 3.4 -- {name} Benchmark
 Class           =                        B
 Time in seconds =                    85.06
 Total processes =                        4
 Mop/s total     =                   643.20
 Verification    =               SUCCESSFUL
"""


@pytest.mark.parametrize(("case", "text"), [("hpl", HPL), ("osu-latency", OSU)])
def test_a_message_of_an_earlier_command_is_not_of_the_run(case: str, text: str) -> None:
    readings = readings_of(case, SRUN + text)
    assert readings == readings_of(case, text)
    assert all(reading.valid for reading in readings)


@pytest.mark.parametrize(("case", "text"), [("hpl", HPL), ("osu-latency", OSU)])
def test_a_message_makes_only_its_own_run_invalid(case: str, text: str) -> None:
    once = len(readings_of(case, text))
    readings = readings_of(case, text + SRUN + text)
    assert [reading.valid for reading in readings] == [False] * once + [True] * once


def test_a_run_that_died_before_a_good_one_is_invalid_alone() -> None:
    died = "# OSU MPI Bandwidth Test v7.4\nslurmstepd: error: *** STEP CANCELLED ***\n"
    first, *others = readings_of("osu-latency", died + OSU)
    assert not first.valid
    assert [reading.valid for reading in others] == [True, True]


def test_osu_hello_has_no_figure() -> None:
    hello = "# OSU MPI Hello World Test v5.8\nThis is a test with 16 processes\n"
    readings = readings_of("osu-latency", OSU + hello + OSU)
    assert [reading.valid for reading in readings] == [True] * 4


@pytest.mark.parametrize("colon", ["", " (in ops/sec):", ":"])
def test_the_title_decides_what_a_row_of_mdtest_is(colon: str) -> None:
    [reading] = readings_of("mdtest", MDTEST.format(colon=colon))
    assert (reading.metric, reading.value, reading.valid) == ("file_create", 24392.579, True)


def test_a_row_of_mdtest_without_a_title_is_not_read() -> None:
    text = MDTEST.replace("SUMMARY rate{colon} (of 1 iterations)\n", "")
    assert {reading.value for reading in readings_of("mdtest", text)} == {None}


def test_mdtest_before_3_3_has_no_kind_of_table() -> None:
    text = MDTEST.format(colon="").replace("SUMMARY rate ", "SUMMARY: ").replace("'", '"')
    [reading] = readings_of("mdtest", text)
    assert (reading.value, reading.parameters["items"], reading.valid) == (24392.579, 1000, True)


@pytest.mark.parametrize("name", ["CG", "LU", "SP", "FT", "BT-MZ"])
def test_another_program_of_npb_is_not_bt(name: str) -> None:
    assert all(reading.valid for reading in readings_of("npb-btio", NPB.format(name="BT")))
    [reading] = readings_of("npb-btio", NPB.format(name=name))
    assert (reading.value, reading.valid) == (None, False)
    assert "another program of NPB" in reading.reason


def test_another_program_of_npb_before_or_after_bt_is_only_its_own() -> None:
    bt, cg = NPB.format(name="BT"), NPB.format(name="CG")
    for text in (cg + bt, bt + cg, cg + bt + cg):
        figures = [reading for reading in readings_of("npb-btio", text) if reading.valid]
        assert figures == readings_of("npb-btio", bt)


@pytest.mark.parametrize(
    ("case", "text"), [("hpl", HPL), ("ior", IOR), ("npb-btio", NPB.format(name="BT"))]
)
def test_an_output_without_its_banner_is_invalid(case: str, text: str) -> None:
    assert all(reading.valid for reading in readings_of(case, text))
    marks = ("HPLinpack", "IOR-", " NAS")
    rest = [line for line in text.splitlines(keepends=True) if not line.startswith(marks)]
    readings = readings_of(case, "".join(rest))
    assert not any(reading.valid for reading in readings)
    assert all("no banner" in reading.reason for reading in readings)


def test_the_csv_of_ior_is_refused_by_its_name() -> None:
    [reading] = readings_of(
        "ior", "access,bw(MiB/s),IOPS,Latency,iter\nwrite,4096.1,512.2,0.0077,0\n"
    )
    assert reading.reason == "an output of summaryFormat=CSV: it is not read"


def test_a_residual_that_is_no_number_confirms_nothing() -> None:
    line = next(line for line in HPL.splitlines() if line.startswith("||Ax-b||"))
    broken = line.partition("=")[0] + "= nan ...... PASSED"
    readings = readings_of("hpl", HPL.replace(line, broken, 1))
    assert {reading.valid for reading in readings} == {False, True}
    assert [r.metric for r in readings if not r.valid and r.value is not None] == ["rmax", "time"]


@pytest.mark.parametrize(("time", "rate"), [("482.03", "1.0000e+06"), ("47.60", "8.7443e+03")])
def test_a_row_of_hpl_whose_numbers_contradict_is_invalid(time: str, rate: str) -> None:
    row = "WRC11C2R4o 002       184900   384     1     1          {}         {}"
    check = "||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=   3.86e-03 ...... PASSED"
    text = (
        "HPLinpack 2.3\n{row}\n" + f"{check}\nFinished      1 tests with the following results:\n"
    )
    text += "End of Tests.\n"
    sound = readings_of("hpl", text.format(row=row.format("482.03", "8.7443e+03")))
    assert all(reading.valid for reading in sound)
    readings = readings_of("hpl", text.format(row=row.format(time, rate)))
    assert [r.valid for r in readings if r.metric in ("rmax", "time")] == [False, False]
    assert all("the other numbers of the row give" in r.reason for r in readings if not r.valid)


def test_a_row_of_osu_whose_numbers_contradict_is_invalid() -> None:
    text = "# OSU MPI Multiple Bandwidth / Message Rate Test v7.4\n"
    text += "# [ pairs: 1 ] [ window size: 64 ]\n"
    text += "# Size                  MB/s        Messages/s\n8  {}  1000000.00\n"
    assert all(reading.valid for reading in readings_of("osu-mbw-mr", text.format("8.00")))
    readings = readings_of("osu-mbw-mr", text.format("80.00"))
    assert [reading.valid for reading in readings] == [False, False]
