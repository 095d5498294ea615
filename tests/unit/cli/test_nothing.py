"""Commands that have nothing to say print one sentence; refused commands leave no folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.folders import BENCHMARKS, ROOT

from proofmark.cli.main import main
from proofmark.cli.output import print_table
from proofmark.common.files import new_folder

LOCAL = f"{ROOT / 'inventory/local'}"


@pytest.fixture
def runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """Return a folder with two runs of other programs: ``stream`` and ``hpl``."""
    for case in ("stream", "hpl"):
        sample = next(path for path in (BENCHMARKS / "samples").glob(f"{case}*.txt"))
        (tmp_path / f"vendor-{case}").mkdir()
        (tmp_path / f"vendor-{case}" / "out.log").write_bytes(sample.read_bytes())
        words = [f"{tmp_path / f'vendor-{case}'}", "--case", f"{case}=*", "--nodes", "n1"]
        folder = ["--runs", f"{tmp_path / 'runs'}", "--run-id", case]
        assert main(["adopt", *words, *folder]) == 0
    capsys.readouterr()
    return tmp_path / "runs"


def said(words: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, list[str]]:
    code = main(words)
    printed = capsys.readouterr()
    return code, (printed.out + printed.err).splitlines()


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["gate", "status", "-i", LOCAL], 0, "no gate of local holds a node or keeps one out of"),
        (["gate", "release", "-i", LOCAL], 0, "no gate of local holds a node: nothing is released"),
        (["trend", "EMPTY"], 3, "found no finished run (no run)"),
        (["trend", "RUNS/stream", "RUNS/hpl"], 0, "have no figure in common: 4 only in"),
        (
            ["export", "RUNS/stream", "--format", "hpl", "-o", "NEW/a"],
            3,
            "no results for this format",
        ),
        (
            ["export", "RUNS/stream", "--format", "nhc", "-o", "NEW"],
            3,
            "no results for this format",
        ),
    ],
    ids=lambda value: "-".join(value[:2]).replace("/", "-") if isinstance(value, list) else "",
)
def test_a_command_with_nothing_to_say_says_it(
    runs: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    code: int,
    sentence: str,
) -> None:
    (tmp_path / "empty").mkdir()
    places = {"RUNS": f"{runs}", "NEW": f"{tmp_path / 'new'}", "EMPTY": f"{tmp_path / 'empty'}"}
    for name, path in places.items():
        words = [word.replace(name, path) for word in words]
    found, lines = said(words, capsys)
    line, *more = without_notes(lines, [word for word in words if word.startswith(f"{runs}/")])
    assert (found, more) == (code, [])
    assert sentence in line
    assert not (tmp_path / "new").exists()


def without_notes(lines: list[str], folders: list[str]) -> list[str]:
    """Return the lines without the one of each run that nothing of it is sealed yet."""
    notes = {
        f"{Path(each).name}: nothing is sealed yet; its folder is read as it is now: "
        "proofmark stage collect RUN"
        for each in folders
    }
    assert sorted(line for line in lines if line in notes) == sorted(notes)
    return [line for line in lines if line not in notes]


def test_a_run_that_is_sealed_again_states_that_nothing_changed(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing but the JSON is printed: no node has a report of its state."""
    states: list[dict[str, object]] = []
    for _ in range(2):
        code, lines = said(["stage", "collect", f"{runs / 'hpl'}"], capsys)
        assert code == 0
        states.append(json.loads("\n".join(lines)))
    assert states == [{**states[0], "changed": True}, {**states[0], "changed": False}]
    assert (states[0]["folder"], states[0]["number"]) == (f"{runs / 'hpl'}", 1)
    compared = said(["trend", f"{runs / 'hpl'}", f"{runs / 'hpl'}"], capsys)[1]
    assert not any("nothing is sealed" in line for line in compared)


def test_an_export_with_results_leaves_its_folder(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["export", f"{runs / 'stream'}", "--format", "csv", "-o", f"{tmp_path / 'new/a'}"]
    code, lines = said(words, capsys)
    assert code == 0
    assert without_notes(lines, words[1:2]) == [f"{tmp_path / 'new/a/records.csv'}"]


def test_a_refused_adoption_leaves_no_folder_of_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "vendor").mkdir()
    words = ["adopt", f"{tmp_path / 'vendor'}", "--case", "hpl=*", "--runs", f"{tmp_path / 'r/s'}"]
    code, lines = said(words, capsys)
    assert code == 3 and len(lines) == 1
    assert not (tmp_path / "r").exists()


def test_a_table_without_rows_is_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("a", "b"), [], "no thing was found")
    assert capsys.readouterr().out == "no thing was found\n"


class TestNewFolder:
    def test_a_folder_with_content_stays(self, tmp_path: Path) -> None:
        with new_folder(tmp_path / "a/b"):
            (tmp_path / "a/b/file").touch()
        assert (tmp_path / "a/b/file").exists()

    def test_an_empty_one_is_removed_with_those_above(self, tmp_path: Path) -> None:
        with new_folder(tmp_path / "a/b"):
            pass
        assert not (tmp_path / "a").exists()

    def test_a_failure_removes_what_was_made_and_nothing_else(self, tmp_path: Path) -> None:
        (tmp_path / "own").mkdir()
        (tmp_path / "own/file").touch()
        with pytest.raises(ValueError, match="stop"), new_folder(tmp_path / "own/a/b"):
            (tmp_path / "own/a/b/part").touch()
            raise ValueError("stop")
        assert sorted(path.name for path in (tmp_path / "own").iterdir()) == ["file"]

    def test_a_folder_that_existed_keeps_its_content_after_a_failure(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        with pytest.raises(ValueError, match="stop"), new_folder(tmp_path):
            raise ValueError("stop")
        assert (tmp_path / "file").exists()
