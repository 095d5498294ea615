"""`proofmark adopt --print` with several files, and with the arguments of the program."""

from __future__ import annotations

import csv
import io
import json

import pytest
from tests.fixtures.outputs import SAMPLES, WILD

from proofmark.cli.main import main

TWO = WILD / "hpl-1.0a_two-variants.txt"
AMD = WILD / "hpl-amd-zen_a.txt"
OSU = WILD / "osu_alltoall_job-script-lines.txt"


def called(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = main([str(each) for each in arguments])
    return code, *capsys.readouterr()


@pytest.mark.fault("several-files-read")
def test_several_files_are_named_in_each_format(capsys: pytest.CaptureFixture[str]) -> None:
    expected = [str(TWO)] * 6 + [str(AMD)] * 3
    code, printed, _ = called(capsys, "adopt", "--print", "hpl", TWO, AMD, "--format", "json")
    assert (code, [row["file"] for row in json.loads(printed)]) == (0, expected)
    _, printed, _ = called(capsys, "adopt", "--print", "hpl", TWO, AMD, "--format", "csv")
    assert [row["file"] for row in csv.DictReader(io.StringIO(printed))] == expected
    header, *lines = called(capsys, "adopt", "--print", "hpl", TWO, AMD)[1].splitlines()
    assert header.split()[:2] == ["file", "benchmark"]
    assert len(lines) == len(expected)
    assert all(map(str.startswith, lines, expected))


def test_one_file_has_no_column_for_it(capsys: pytest.CaptureFixture[str]) -> None:
    _, printed, _ = called(capsys, "adopt", "--print", "hpl", AMD, "--format", "json")
    assert all("file" not in row for row in json.loads(printed))
    assert called(capsys, "adopt", "--print", "hpl", AMD)[1].split()[0] == "benchmark"


def test_an_unknown_command_line_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, said = called(capsys, "adopt", "--print", "osu-collectives", OSU)
    assert (code, said.count("\n")) == (0, 1)
    assert said.startswith(f"{OSU}: the command line is not known")
    code, _, said = called(capsys, "adopt", "--print", "osu-collectives", OSU, "--arguments", "")
    assert (code, said) == (0, "")
    code, _, said = called(
        capsys, "adopt", "--print", "osu-latency", SAMPLES / "osu-7.4_latency_n2.txt"
    )
    assert (code, said) == (0, "")


@pytest.mark.fault("rows-missing")
def test_stated_arguments_show_missing_rows(capsys: pytest.CaptureFixture[str]) -> None:
    stated = "--arguments=-m 1:2097152"
    code, printed, _ = called(capsys, "adopt", "--print", "osu-collectives", OSU, stated)
    assert code == 2
    assert "the last row has 1048576 of 2097152 bytes" in printed
