"""A program's own complaint makes the figure that it concerns INVALID."""

from __future__ import annotations

import pytest
from tests.fixtures.outputs import output_sample, readings_of

IOR = "ior-4.0.0_posix_b4m_t2m_n2_fpp_verbose.txt"
FSYNC = "ior WARNING: fsync() failed, errno 9, Bad file descriptor"
INCONSISTENT = "WARNING: inconsistent file size by different tasks."
EXPECTED = "WARNING: Expected aggregate file size       = 440401920000000."


def with_line(line: str, before: str) -> str:
    text = output_sample(IOR)
    assert text.count(f"\n{before}") >= 1
    return text.replace(f"\n{before}", f"\n{line}\n{before}", 1)


def validity(text: str) -> dict[str, bool]:
    readings = readings_of("ior", text)
    assert all(reading.value is not None for reading in readings)
    return {reading.metric: reading.valid for reading in readings}


def test_an_output_without_a_complaint_is_valid() -> None:
    assert validity(output_sample(IOR)) == {"write": True, "read": True}


@pytest.mark.fault("program-complains")
@pytest.mark.parametrize(
    "before", ["Began", "access  ", "write  ", "read  ", "Max Write", "Finished"]
)
@pytest.mark.parametrize("line", [FSYNC, "WARNING: fsync(11) failed, (aiori-POSIX.c:650)"])
def test_a_failed_fsync_concerns_the_writing_wherever_it_is_printed(before: str, line: str) -> None:
    text = with_line(line, before)
    assert validity(text) == {"write": False, "read": True}
    [reading] = [r for r in readings_of("ior", text) if not r.valid]
    assert "fsync(" in reading.reason


@pytest.mark.fault("program-complains")
@pytest.mark.parametrize("line", [INCONSISTENT, EXPECTED])
@pytest.mark.parametrize(("before", "concerned"), [("write  ", "write"), ("read  ", "read")])
def test_a_complaint_of_rank_0_concerns_the_next_row(
    line: str, before: str, concerned: str
) -> None:
    readings = readings_of("ior", with_line(line, before))
    assert [r.metric for r in readings if not r.valid] == [concerned]
    assert len(readings) == 2


@pytest.mark.fault("program-complains")
def test_a_complaint_after_the_last_row_concerns_it() -> None:
    assert validity(with_line(INCONSISTENT, "Max Write")) == {"write": True, "read": False}


def test_a_complaint_without_its_figure_concerns_all() -> None:
    text = output_sample("ior_io500_mistral_ior-easy-read.txt")
    [reading] = readings_of("ior", text.replace("\nread  ", f"\n{FSYNC}\nread  "))
    assert not reading.valid
    cut = text.split("\nread  ")[0]
    readings = readings_of("ior", f"{cut}\n{INCONSISTENT}\n")
    assert all("inconsistent" in r.reason for r in readings)


@pytest.mark.parametrize("name", ["frontera_ior-easy-read", "oakforest-pacs_ior-hard-write"])
def test_a_stonewalled_run_moves_another_amount(name: str) -> None:
    text = output_sample(f"ior_io500_{name}.txt")
    assert "WARNING: Expected aggregate file size" in text
    assert [reading.valid for reading in readings_of("ior", text)] == [True]
    plain = text.replace("stoneWallingStatusFile", "x").replace(" -D 300", "")
    plain = plain.replace("stonewallingTime ", "x ")
    [reading] = readings_of("ior", plain)
    assert not reading.valid
    assert "Expected aggregate file size" in reading.reason


def test_a_file_that_is_overwritten_is_normal() -> None:
    line = 'WARNING: The file "/scratch/x" exists already and will be overwritten'
    assert validity(with_line(line, "write  ")) == {"write": True, "read": True}


@pytest.mark.fault("program-complains")
@pytest.mark.parametrize("place", ["before", "after"])
@pytest.mark.parametrize("line", [FSYNC, INCONSISTENT])
def test_a_complaint_outside_a_document_concerns_all(place: str, line: str) -> None:
    text = output_sample("ior-4.0.0_mpiio_b4m_t1m_n2_shared.json").rstrip()
    assert all(r.valid for r in readings_of("ior", text))
    text = f"{line}\n{text}\n" if place == "before" else f"{text}\n{line}\n"
    assert not any(r.valid for r in readings_of("ior", text))


def test_a_complaint_after_two_documents_concerns_the_last() -> None:
    text = output_sample("ior-4.0.0_mpiio_b4m_t1m_n2_shared.json").rstrip()
    readings = readings_of("ior", f"{text}\n{text}\n{FSYNC}\n")
    half = len(readings) // 2
    assert [r.valid for r in readings] == [True] * half + [False] * half
