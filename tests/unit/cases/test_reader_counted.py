"""What is counted or printed twice is compared, and what moved nothing has no figure."""

from __future__ import annotations

import json
import re

import pytest
from tests.fixtures.outputs import output_sample, readings_of

IOR = "ior-4.0.0_posix_wr_b16m_t1m_n2_fpp.txt"
MDTEST = "mdtest-4.0.0_100items_own_n4.txt"
OSU = "osu-7.4_bw_n2.txt"
IMB = "imb-2021.7_PingPong_n2.txt"
HPCC = "hpcc-1.5.0_N4000_n2.txt"
BT = "npb-3.4.3_bt.W_full_n4.txt"
MOST = "Max Write: 9999.99 MiB/sec (1.00 MB/sec)\n"
FIO = "fio-3.33_4m_2m_n2_fpp.json"
HPL = "hpl-2.3_N2048-6144_NB128-192_P1Q2.txt"


@pytest.mark.parametrize(
    ("case", "name", "pattern", "new", "metric", "code"),
    [
        ("ior", IOR, r"\nwrite .* 1 +(?=\n)", "", "write", "reader-other-count"),
        (
            "mdtest",
            MDTEST,
            r"(File creation +)(\S+)( +\S+ +)\S+",
            r"\1\2\g<3>9\2",
            "file_create",
            "",
        ),
        (
            "mdtest",
            MDTEST,
            r"(File creation +\S+ +)(\S+)( +)\S+",
            r"\1\2\g<3>1.5",
            "file_create",
            "",
        ),
        ("ior", IOR, r"Summary of.*\n.*\n.*\n.*\n", MOST, "write", ""),
        ("ior", IOR, r"(all tests:\n.*\nwrite +\S+ +\S+ +)\S+", r"\g<1>1.50", "write", ""),
        ("npb-btio", BT, r"(written .*: +)\S+", r"\g<1>9999.00", "io_rate", ""),
        ("npb-btio", BT, r"(percentage .*: +)\S+", r"\g<1>95.00", "io_time", ""),
        ("hpcc", HPCC, r"(HPL_Tflops=)\S+", r"\g<1>0.001", "hpl_rmax", ""),
        ("osu-bw", OSU, r"\n1024 .*", "", "bandwidth", "reader-no-row-between"),
        ("imb-pingpong", IMB, r"\n +1024 .*", "", "bandwidth", "reader-no-row-between"),
        ("osu-bw", OSU, r"(\n8 +)[\d.]+", r"\g<1>0.00", "bandwidth", "reader-zero-rate"),
        ("hpl", HPL, r"0\.22( +)2\.6177e\+01", r"0.00\g<1>0.0000e+00", "time", "reader-zero-time"),
        ("npb-btio", BT, r"(I/O data rate .*: +)\S+", r"\g<1>0.00", "io_rate", ""),
    ],
)
def test_a_contradiction_is_invalid(
    case: str, name: str, pattern: str, new: str, metric: str, code: str
) -> None:
    text = output_sample(name)
    damaged, changed = re.subn(pattern, new, text, count=1)
    assert changed and all(each.valid for each in readings_of(case, text))
    wrong = [
        each for each in readings_of(case, damaged) if not each.valid and each.metric == metric
    ]
    assert wrong
    assert {each.reason.main_code for each in wrong} == {code or "reader-contradiction"}


def test_a_latency_of_zero_is_no_latency() -> None:
    text = "# OSU MPI Latency Test v7.4\n# Size       Avg Latency(us)\n8              0.00\n"
    assert not any(each.valid for each in readings_of("osu-latency", text))


@pytest.mark.parametrize("way", ["write", "read"])
def test_a_direction_that_moved_nothing_has_no_figure(way: str) -> None:
    text = output_sample(FIO)
    document = json.loads(text[text.index("{") :])
    for job in document["jobs"]:
        job["job options"]["rw"] = "randrw"
        job[way] |= {"io_bytes": 0, "bw": 0, "bw_bytes": 0, "io_kbytes": 0, "runtime": 0}
    found = {each.metric for each in readings_of("fio-cache", json.dumps(document)) if each.valid}
    assert way not in found
