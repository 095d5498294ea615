"""Outputs of IOR and mdtest on a file system that fails, and runs with a time limit."""

from __future__ import annotations

import pytest
from tests.fixtures.outputs import output_sample, readings_of

STONEWALLED = [
    "ior-4.0.0_posix_b4g_t1m_n2_stonewall.txt",
    "ior-3.3.0_posix_b47008_n4_stonewall.txt",
]
MDTEST = "mdtest-4.0.0_100items_own_n4.txt"
SOUND = [*STONEWALLED, "ior-4.0.0_verify_n2.txt", MDTEST, "mdtest-3.3.0_100items_one_n2.txt"]
FULL = [
    *("ior-3.3.0_enospc_n2.txt", "ior-4.0.0_enospc_n2.txt"),
    *("mdtest-3.3.0_enospc_n2.txt", "mdtest-4.0.0_enospc_n2.txt"),
]
ERRORS = [
    *("No space left on device", "Disk quota exceeded", "Input/output error"),
    *("Transport endpoint is not connected", "Stale file handle", "Read-only file system"),
    "Cannot send after transport endpoint shutdown",
]


def case_of(sample: str) -> str:
    return sample.partition("-")[0]


@pytest.mark.parametrize("sample", SOUND)
def test_a_sound_output_is_valid(sample: str) -> None:
    assert all(reading.valid for reading in readings_of(case_of(sample), output_sample(sample)))


@pytest.mark.fault("file-system-error-in-output")
@pytest.mark.parametrize("sample", FULL)
def test_a_full_file_system_is_named(sample: str) -> None:
    """These outputs are real: the file system had 8 MiB, or few inodes."""
    readings = readings_of(case_of(sample), output_sample(sample))
    assert not any(reading.valid for reading in readings)
    assert all("No space left on device" in reading.reason for reading in readings)


@pytest.mark.fault("file-system-error-in-output")
@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("sample", [STONEWALLED[0], MDTEST])
def test_the_words_of_an_error_are_in_the_reason(sample: str, error: str) -> None:
    text = output_sample(sample)
    line = f'ERROR: open64("/scratch/x", 66, 0664) failed. Error: {error}, (aiori-POSIX.c:569)\n'
    readings = readings_of(case_of(sample), text.replace("Path  ", f"{line}Path  ", 1))
    assert not any(reading.valid for reading in readings)
    assert all(f"contains {error!r}" in reading.reason for reading in readings)


def test_data_that_the_disk_lost_is_no_write_rate() -> None:
    """A real output: the disk returned EIO, and IOR 4 ended with exit code 0."""
    readings = readings_of("ior", output_sample("ior-4.0.0_eio_n2.txt"))
    assert {reading.metric: reading.valid for reading in readings} == {"write": False, "read": True}


@pytest.mark.fault("data-not-as-written")
@pytest.mark.parametrize("word", ["Incorrect", "incorrect"])
@pytest.mark.parametrize("operation", ["read", "write"])
def test_other_data_than_written_is_invalid(word: str, operation: str) -> None:
    """IOR 4 prints the capital letter, IOR 3 the small one."""
    text = output_sample("ior-4.0.0_corrupt_n2.txt")
    start = text.index("-----", text.index("Finished  "))  # what mpirun prints
    line = f"WARNING: {word} data on {operation} (1 errors found)."
    changed = text[:start].replace("WARNING: Incorrect data on read (1 errors found).", line)
    readings = readings_of("ior", changed)
    assert [reading.metric for reading in readings] == ["read"]
    assert f"data on {operation}" in readings[0].reason


@pytest.mark.parametrize("sample", STONEWALLED)
def test_a_stonewalled_run_has_its_time_limit(sample: str) -> None:
    """The size of a block is not what a process wrote: the time limit is a parameter."""
    readings = readings_of("ior", output_sample(sample))
    assert [reading.metric for reading in readings] == ["write", "read"] * 3
    assert {reading.parameters["stonewall"] for reading in readings} == {"1"}


@pytest.mark.fault("metadata-phase-missing")
@pytest.mark.parametrize("row", ["File stat", "Directory removal"])
def test_a_missing_phase_is_invalid(row: str) -> None:
    lines = output_sample(MDTEST).splitlines(keepends=True)
    readings = readings_of(
        "mdtest", "".join(line for line in lines if not line.startswith(f"   {row}"))
    )
    (missing,) = [reading for reading in readings if not reading.valid]
    metric = {"File stat": "file_stat", "Directory removal": "directory_remove"}[row]
    assert (missing.metric, missing.reason) == (metric, f"no value of {metric} found")
    assert len(readings) == 7


def test_a_phase_that_was_not_selected_is_no_reading() -> None:
    """Mdtest prints a rate of 0 for it."""
    readings = readings_of("mdtest", output_sample("mdtest-4.0.0_create_files_n2.txt"))
    assert [(reading.metric, reading.valid) for reading in readings] == [("file_create", True)]


def test_a_directory_that_could_not_be_made_is_invalid() -> None:
    """Mdtest 4 only warns, and goes on."""
    line = "WARNING: unable to create directory /scratch/mdtest/test-dir.0-0/dir.mdtest.1.101\n"
    text = output_sample(MDTEST).replace("4 tasks,", f"{line}4 tasks,")
    assert not any(reading.valid for reading in readings_of("mdtest", text))


@pytest.mark.fault("phase-of-barriers")
@pytest.mark.parametrize(
    ("seconds", "valid"), [("0.422", False), ("0.999", False), ("1.000", True)]
)
def test_a_phase_that_only_measures_barriers_is_invalid(seconds: str, valid: bool) -> None:
    """With -P mdtest 4.0 prints the least seconds of each phase, too."""
    head, _, rates = output_sample("mdtest-3.3.0_stonewall_files_n2.txt").partition("SUMMARY rate")
    table, end, rest = rates.partition("-- finished")
    times = "\n".join(
        f"   {row:<26}: 30.100 {least} 30.050 0.020"
        for row, least in [
            ("File creation", "30.000"),
            ("File stat", seconds),
            ("File read", "1.500"),
            ("File removal", "2.468"),
        ]
    )
    text = f"{head}SUMMARY rate{table}SUMMARY time: (of 1 iterations)\n{times}\n{end}{rest}"
    readings = {each.metric: each for each in readings_of("mdtest", text)}
    assert len(readings) == 4
    assert {name: each.valid for name, each in readings.items()} == {
        **dict.fromkeys(readings, True),
        "file_stat": valid,
    }
    assert readings["file_stat"].value == 76856.411
    if not valid:
        reason = f"file_stat was measured for {float(seconds):g} s, less than 1 s"
        assert readings["file_stat"].reason == reason
