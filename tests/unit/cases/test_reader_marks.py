"""Line ends, time stamps and indentation change no figure; what is no figure is refused by code."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fixtures.kit import examples
from tests.fixtures.outputs import SAMPLES, WILD, output_sample, read_of_others, readings_of, valid
from tests.fixtures.shipped import shipped_benchmarks

from proofmark.packages.foreign.output_heads import Banners
from proofmark.packages.foreign.output_text import output_text

Form = Callable[[str], str]
STAMPS = {
    "ts": "Nov 28 00:15:{:02d} ",
    "ts-elapsed": "00:00:{:02d} ",
    "ts-seconds": "17641400{:02d}.123456 ",
    "iso": "2026-11-28T00:15:{:02d}.1234567Z ",
    "iso-zone": "2026-11-28 00:15:{:02d},123 +0900 ",
    "brackets": "[2026-11-28 00:15:{:02d}] ",
    "jenkins": "00:15:{:02d}  ",
    "container": "2026-11-28T00:15:{:02d}.123456789Z stdout F ",
    "ansible": "2026-11-28 00:15:{0:02d},123 p=41{0:02d} u=root n=ansible | ",
    "syslog": "Nov 28 00:15:{0:02d} n01 bench[41{0:02d}]: ",
    "open-mpi": "Sat Nov 28 00:15:{:02d} 2026<stdout>:",
    "kernel": "[   12.0000{:02d}] ",
}


@cache
def outputs() -> dict[str, tuple[str, str]]:
    """Return name → case and text of each real output whose case its banner states."""
    found = {}
    files = [*SAMPLES.iterdir(), *WILD.iterdir()]
    banners = Banners(shipped_benchmarks())
    for path in sorted(each for each in files if is_output(each)):
        text = output_text(path.read_bytes())
        if parts := banners.parts(text):
            found[path.name] = parts[0].case, text
    return found


@cache
def plainly_read(name: str) -> object:
    """Return what the output `name` says; each form of it is compared with this."""
    return readings_of(*outputs()[name])


def is_output(path: Path) -> bool:
    return path.suffix in {".txt", ".out", ".json"} and not path.name.endswith(".expected.json")


def stamped(text: str, stamp: str) -> str:
    return "".join(f"{stamp.format(n % 60)}{line}" for n, line in enumerate(text.splitlines(True)))


def indented(text: str, blanks: int = 4) -> str:
    lines = text.splitlines(keepends=True)
    return "".join(" " * blanks + line if line.strip() else line for line in lines)


def in_log(text: str) -> str:
    """Return `text` as Ansible prints it below a task."""
    body = indented(text).rstrip("\n")
    return f"PLAY [nodes]\nok: [n01] =>\n  stdout: |-\n{body}\nPLAY RECAP\nn01 : ok=2 changed=0\n"


FORMS: dict[str, Form] = {
    **{name: partial(stamped, stamp=stamp) for name, stamp in STAMPS.items()},
    "indented": indented,
    "in-log": in_log,
    "both": lambda text: stamped(indented(text), STAMPS["iso"]),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_marks_before_lines_change_no_figure(form: Form) -> None:
    banners = Banners(shipped_benchmarks())
    assert len(outputs()) > 60
    for name, (case, text) in outputs().items():
        marked = form(text)
        assert read_of_others(case, marked) == plainly_read(name), name
        assert [each.case for each in banners.parts(banners.plain(marked))] == [case], name


def with_host(host: str, text: str) -> list[str]:
    """Return the lines of an output as pdsh and clush print them."""
    return [f"{host}: {line}" for line in text.splitlines()]


@examples(5)
@given(st.data())
def test_lines_of_hosts_in_any_order_are_the_outputs_of_each(data: st.DataObject) -> None:
    """The lines of all hosts are mixed, and those of a host keep their order."""
    banners = Banners(shipped_benchmarks())
    names = data.draw(st.lists(st.sampled_from(sorted(outputs())), min_size=2, max_size=4))
    texts = {f"n{number:02}.site": outputs()[name] for number, name in enumerate(names, start=1)}
    waiting = {host: with_host(host, text) for host, (_, text) in texts.items()}
    random = data.draw(st.randoms(use_true_random=False))
    order = [host for host, lines in waiting.items() for _ in lines]
    random.shuffle(order)
    log = ["pdsh@head: n99: ssh exited with exit code 1"]
    log += [waiting[host].pop(0) for host in order]
    mixed = "\n".join([*log, "words without a host", ""])
    lines = banners.lines_of_hosts(mixed)
    assert {*lines} == {*texts}
    every = mixed.splitlines()
    for host, numbers in lines.items():
        case, text = texts[host]
        own = "".join(f"{every[number]}\n" for number in numbers)
        assert read_of_others(case, own) == readings_of(case, text)


def test_words_with_a_colon_are_no_hosts() -> None:
    banners = Banners(shipped_benchmarks())
    assert outputs()
    for case, text in outputs().values():
        assert banners.lines_of_hosts(text) == {}
        assert banners.lines_of_hosts("0: " + text.replace("\n", "\n1: ")) == {}
        assert readings_of(case, text)


def test_a_last_line_without_its_end_changes_no_figure() -> None:
    checked = 0
    for name, (case, text) in outputs().items():
        if whole := valid(readings_of(case, text)):
            checked += 1
            assert valid(readings_of(case, text.rstrip("\n"))) == whole, name
    assert checked > 50


@pytest.mark.fault("output-truncated")
@examples(10)
@given(st.data())
def test_a_cut_figure_is_never_another_figure(data: st.DataObject) -> None:
    case, text = outputs()[data.draw(st.sampled_from(sorted(outputs())))]
    cut = text[: data.draw(st.integers(0, len(text)))]
    whole = {(each.metric, each.value) for each in readings_of(case, text)}
    assert {(metric, value) for metric, value in valid(readings_of(case, cut))} <= whole


def test_lines_with_another_mark_stay() -> None:
    text = output_sample("osu-7.4_latency_m8_n2.txt")
    broken = stamped(text, STAMPS["ts"]).replace("Nov 28 00:15:04 ", "Dec ")
    assert valid(readings_of("osu-latency", text))
    assert len(valid(read_of_others("osu-latency", broken))) <= len(
        valid(readings_of("osu-latency", text))
    )


STREAM_IN_FORTRAN = """\
----------------------------------------------
 Double precision appears to have 16 digits of accuracy
 Assuming 8 bytes per DOUBLE PRECISION word
----------------------------------------------
 ----------------------------------------------
 STREAM Version $Revision: 5.6 $
 ----------------------------------------------
 Array size =   20000000
 Offset     =          0
 ----------------------------------------------------
Function     Rate (MB/s)  Avg time   Min time  Max time
Copy:          7405.9    0.205480    0.043209    0.269440
Scale:         3853.7    0.176869    0.083036    0.288043
Add:           7068.1    0.266337    0.067911    0.442465
Triad:         2631.0    0.313763    0.182437    0.438217
 ----------------------------------------------------
 Solution Validates!
 ----------------------------------------------------
"""


def test_stream_in_fortran_is_read_and_alternates_with_c() -> None:
    figures = [("copy", 7405.9), ("scale", 3853.7), ("add", 7068.1), ("triad", 2631.0)]
    readings = readings_of("stream", STREAM_IN_FORTRAN)
    assert valid(readings) == figures
    assert {reading.parameters["array"] for reading in readings} == {20000000}
    in_c = output_sample("stream-5.10_N2000000_t2.txt")
    both = readings_of("stream", 2 * (STREAM_IN_FORTRAN + in_c))
    assert all(reading.valid for reading in both)
    assert both == 2 * [*readings, *readings_of("stream", in_c)]


@pytest.mark.fault("numbers-disagree")
def test_stream_in_fortran_with_another_array_contradicts_itself() -> None:
    text = STREAM_IN_FORTRAN.replace("20000000", "40000000")
    readings = readings_of("stream", text)
    assert readings
    assert all("but the other numbers of the row" in each.reason for each in readings)


ITEMS = "16 tasks, 512 files/directories"
MDTEST = f"""\
mdtest-1.9.3 was launched with 16 total task(s) on 2 node(s)
Command line used: /opt/mdtest "-v" "-I" "32" "-z" "0" "-b" "0" "-i" "10"

{ITEMS}

SUMMARY rate: (of 10 iterations)
   Operation                      Max            Min           Mean        Std Dev
   ---------                      ---            ---           ----        -------
   Directory creation:        610.237        610.214        610.230          0.006
   Directory stat    :      20718.498      20703.132      20707.456          4.146
   Directory removal :        473.151        473.133        473.146          0.006
   File creation     :        575.229        575.212        575.224          0.005
   File stat         :      26400.753      26340.968      26387.476         22.954
   File read         :      12073.609      12061.388      12070.806          4.568
   File removal      :        547.694        547.680        547.682          0.004

-- finished at 03/02/2024 15:35:56 --
"""


def test_the_items_of_mdtest_are_those_of_all_processes_divided() -> None:
    readings = readings_of("mdtest", MDTEST)
    assert all(reading.valid for reading in readings)
    assert {reading.parameters["items"] for reading in readings} == {32}
    without = readings_of("mdtest", MDTEST.replace(ITEMS, ""))
    assert {reading.reason.code for reading in without} == {"reader-no-parameter"}
    odd = readings_of("mdtest", MDTEST.replace("512", "513"))
    assert not any(reading.valid for reading in odd)


@pytest.mark.fault("zero-rate")
@pytest.mark.parametrize(
    ("case", "text"),
    [
        ("mdtest", MDTEST.replace("575.224", "  0.000")),
        (
            "hpl",
            output_sample("hpl-2.3_N2048-6144_NB128-192_P1Q2.txt").replace(
                "3.4390e+01", "0.0000e+00"
            ),
        ),
        ("osu-latency", "# OSU MPI Bandwidth Test v7.4\n# Size Bandwidth (MB/s)\n8   0.00\n"),
    ],
)
def test_a_rate_of_zero_is_invalid(case: str, text: str) -> None:
    zeros = [reading for reading in readings_of(case, text) if reading.value == 0]
    assert [reading.valid for reading in zeros] == [False]
    assert "is 0: nothing was measured" in zeros[0].reason


@pytest.mark.fault("zero-time")
@pytest.mark.parametrize(
    ("case", "output", "row", "metric"),
    [
        ("imb-collectives", "imb-2021.18.1_nbc_n2.txt", r"(\n +8 +20 +)\d+\.\d\d", "t_ovrl"),
        ("osu-collectives", "osu-5.3_ialltoall_n4.txt", r"(\n8 +)\d+\.\d\d", "overall"),
        ("osu-latency", "osu-7.4_latency_n2.txt", r"(\n8 +)\d+\.\d\d", "latency"),
    ],
)
def test_a_time_of_zero_is_below_the_resolution_also_beside_others(
    case: str, output: str, row: str, metric: str
) -> None:
    """The control is the output before the change: 0.00 of a part of a time is a number."""
    text = output_sample(output)
    assert all(reading.valid for reading in readings_of(case, text))
    changed = re.sub(row, r"\g<1>0.00", text, count=1)
    refused = [each for each in readings_of(case, changed) if not each.valid]
    assert {each.metric for each in refused if each.value == 0} == {metric}
    assert all(f"{metric} is 0: it is below the resolution" in each.reason for each in refused)


def test_a_small_bandwidth_beside_its_time_is_a_rounded_number() -> None:
    readings = readings_of("imb-pingpong", output_sample("imb-2021.18.1_rma_n2.txt"))
    assert [reading.valid for reading in readings if reading.value == 0]
    assert all(reading.valid for reading in readings)


@pytest.mark.parametrize("case", ["stream", "hpl", "ior", "osu-latency"])
@pytest.mark.parametrize(
    "line", ["BabelStream", "Final Score:    1.2000e+05 GFLOPS ", "HPCG-Benchmark"]
)
def test_an_output_of_another_program_has_this_reason(case: str, line: str) -> None:
    readings = read_of_others(case, f"{line}\nVersion: 5.0\n8 1.0\n")
    assert [reading.reason.code for reading in readings] == ["reader-foreign"]


def test_a_line_of_another_program_changes_no_sound_output() -> None:
    text = output_sample("hpl-2.3_N2048-6144_NB128-192_P1Q2.txt")
    assert read_of_others("hpl", f"{text}Final Score:    3.4390e+01 GFLOPS \n") == readings_of(
        "hpl", text
    )


def test_a_line_of_hdf5_in_a_table_of_ior_is_no_row() -> None:
    text = output_sample("ior-4.0.0_posix_wr_b16m_t1m_n2_shared.txt")
    place = text.index("\nwrite ")
    line = "\nHDF5 write 1 datasets"
    assert readings_of("ior", text[:place] + line + text[place:]) == readings_of("ior", text)
