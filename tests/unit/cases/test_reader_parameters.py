"""Two measurements that differ in one setting have different parameters."""

from __future__ import annotations

import pytest
from tests.fixtures.outputs import output_sample, readings_of

OSU = "# OSU MPI{device} Latency Test v7.4\n{lines}# Size  Avg Latency(us)\n8  1.5\n"
PUT = "# OSU MPI_Put Bandwidth Test v7.4\n{lines}# Size  Bandwidth (MB/s)\n8  1.5\n"
BUFFERS = "# Send Buffer on {} and Receive Buffer on {}\n"
HPL = "hpl-2.3_N2048-6144_NB128-192_P1Q2.txt"
IOR = "ior-4.0.0_posix_b4m_t2m_n2_fpp_verbose.txt"
IOR_JSON = "ior-4.0.0_mpiio_b4m_t1m_n2_shared.json"
FIO = "fio-3.33_4m_2m_n2_shared.json"

CHANGES = [
    ("hpl", HPL, "WR11C2R4 ", "WR11C2L4 ", "variant"),
    ("ior", IOR, "type                : independent", "type                : collective", "type"),
    ("ior", IOR, "in a file  : sequential", "in a file  : random", "ordering"),
    ("ior", IOR, "inter file : no tasks", "inter file : constant task", "ordering_inter_file"),
    ("ior", IOR, "segments            : 1", "segments            : 2", "segments"),
    ("ior", IOR, "\nverbose ", "\nstonewallingTime    : 30\nverbose ", "stonewall"),
    ("ior", IOR, " -o /scratch", " -D 30 -o /scratch", "stonewall"),
    ("ior", IOR, " -o /", " -O stoneWallingStatusFile=/scratch/s -o /", "stonewall"),
    ("ior", IOR_JSON, '"type": "collective"', '"type": "independent"', "type"),
    ("ior", IOR_JSON, 'in a file": "sequential"', 'in a file": "random"', "ordering"),
    ("ior", IOR_JSON, "no tasks offsets", "random task offset", "ordering_inter_file"),
    ("ior", IOR_JSON, "no tasks offsets", "constant task offset", "ordering_inter_file"),
    ("ior", IOR_JSON, '"segments": 1', '"segments": 2', "segments"),
    ("ior", IOR_JSON, 'ForStonewall": 0', 'ForStonewall": 30', "stonewall"),
    ("fio-cache", FIO, '"rw" : "write"', '"rw" : "randwrite"', "pattern"),
    ("fio-cache", FIO, '"bs" : "2m"', '"bs" : "4k"', "transfer_bytes"),
    ("fio-cache", FIO, '"bs" : "2m"', '"bs" : "4k,64k"', "transfer_sizes"),
    ("fio-cache", FIO, '"bs" : "2m"', '"bssplit" : "4k/50:64k/50"', "transfer_sizes"),
    ("fio-cache", FIO, '"bs" : "2m"', '"time_based" : "1", "runtime" : "9"', "file_bytes"),
    ("fio-cache", FIO, '"bs" : "2m"', '"runtime" : "9"', "runtime"),
    (
        "fio-cache",
        FIO,
        '"bs" : "2m"',
        '"bs" : "2m", "io_size" : "8m", "ramp_time" : "1"',
        "block_bytes",
    ),
]

ALONG = {
    "segments            : 2": {"blocksize           : 4 MiB": "blocksize           : 2 MiB"},
    '"segments": 2': {'"blockSize": 4194304': '"blockSize": 2097152'},
    '"bs" : "4k"': {'"total_ios" : 4': '"total_ios" : 2048', '"iops" : 571.4': '"iops" : 292571.4'},
}
"""Further edits of a change: the other numbers that follow from the setting."""


@pytest.mark.fault("equal-parameters")
@pytest.mark.parametrize(("case", "name", "old", "new", "parameter"), CHANGES)
def test_one_changed_setting_changes_the_parameters(
    case: str, name: str, old: str, new: str, parameter: str
) -> None:
    text = output_sample(name)
    assert old in text
    changed = text.replace(old, new, 1)
    for first, second in ALONG.get(new, {}).items():
        assert first in text
        changed = changed.replace(first, second)
    before, after = readings_of(case, text)[0], readings_of(case, changed)[0]
    assert before.valid
    assert after.valid, after.reason
    assert after.value == before.value
    assert after.parameters.get(parameter) != before.parameters.get(parameter)


@pytest.mark.parametrize(("case", "name"), sorted({(case, name) for case, name, *_ in CHANGES}))
def test_like_measurements_have_equal_parameters(case: str, name: str) -> None:
    first, second = readings_of(case, output_sample(name)), readings_of(case, output_sample(name))
    assert [r.parameters for r in first] == [r.parameters for r in second]


@pytest.mark.fault("equal-parameters")
@pytest.mark.parametrize(
    ("template", "lines", "expected"),
    [
        (OSU, "", {}),
        (OSU, BUFFERS.format("HOST (H)", "HOST (H)"), {"send_buffer": "H", "receive_buffer": "H"}),
        (
            OSU,
            BUFFERS.format("DEVICE (D)", "HOST (H)"),
            {"send_buffer": "D", "receive_buffer": "H"},
        ),
        (
            PUT,
            "# Rank 0 Memory on HOST (H) and Rank 1 Memory on DEVICE (D)\n",
            {"send_buffer": "H", "receive_buffer": "D"},
        ),
        (PUT, "# Window creation: MPI_Win_create\n", {"window": "MPI_Win_create"}),
        (PUT, "# Synchronization: MPI_Win_flush\n", {"synchronization": "MPI_Win_flush"}),
        (OSU, "# Datatype: MPI_FLOAT.\n", {"datatype": "MPI_FLOAT"}),
        (OSU, "# Datatype: MPI_CHAR.\n", {}),
        (OSU, "# [ pairs: 2 ] [ window size: 16 ]\n", {"pairs": 2, "window_size": 16}),
        (OSU, "# [ pairs: 2 ] [ window size: 64 ]\n", {"pairs": 2}),
    ],
)
def test_osu_settings_in_its_comments(
    template: str, lines: str, expected: dict[str, object]
) -> None:
    [reading] = readings_of("osu-latency", template.format(device="", lines=lines))
    assert reading.valid
    assert reading.parameters == {**expected, "bytes": 8}


def test_osu_buffers_of_one_run_are_not_those_of_the_next() -> None:
    device = OSU.format(device="-CUDA", lines=BUFFERS.format("DEVICE (D)", "DEVICE (D)"))
    readings = readings_of("osu-latency", device + OSU.format(device="", lines=""))
    assert [r.parameters.get("send_buffer") for r in readings] == ["D", None]


def test_a_time_based_job_has_no_amount() -> None:
    [reading] = readings_of("fio-cache", output_sample("fio_time-based_rand_read.json"))
    assert "block_bytes" not in reading.parameters
    assert reading.parameters["file_bytes"] == 15270994831


@pytest.mark.parametrize("flag", ["", "1"])
def test_a_fio_flag_counts_with_and_without_a_value(flag: str) -> None:
    text = output_sample("fio_time-based_rand_read.json").replace('"time_based" : "1"', "X")
    text = text.replace('"time_based": "1"', "X").replace("X", f'"time_based": "{flag}"')
    [reading] = readings_of("fio-cache", text)
    assert "file_bytes" in reading.parameters


def test_a_fio_flag_that_is_off_does_not_count() -> None:
    text = output_sample(FIO).replace('"bs" : "2m"', '"bs" : "2m", "time_based" : "0"')
    assert readings_of("fio-cache", text)[0].parameters["block_bytes"] == 4 << 20


def test_a_fio_job_without_size_is_read() -> None:
    text = output_sample(FIO).replace('"size" : "4194304"', '"filesize" : "4m"')
    readings = readings_of("fio-cache", text)
    assert [r.valid for r in readings] == [True, True]
    assert "block_bytes" not in readings[0].parameters


def test_ior_api_has_no_version() -> None:
    readings = readings_of("ior", output_sample("ior-3.0_akrr.txt"))
    assert {r.parameters["api"] for r in readings} == {"POSIX", "MPIIO", "HDF5", "NCMPI"}


def test_stream_in_gb_is_converted_once() -> None:
    text = output_sample("stream_rate-in-GBs.txt").replace("22.5158", "0.0001")
    assert readings_of("stream", text)[0].value == 0.1
    for broken in ("nan", "-1", "1e309"):
        bad = output_sample("stream_rate-in-GBs.txt").replace("22.5158", broken)
        assert (readings_of("stream", bad)[0].value, readings_of("stream", bad)[0].valid) == (
            None,
            False,
        )
