"""The command ``trend``: the page, the folders that are left out, and wrong input."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.fixtures.pages import assert_sound, plain
from tests.fixtures.past_runs import Value, run_id, write_evidence, write_past_run
from tests.fixtures.report_run import software
from tests.unit.report.test_korean import Texts, english

from proofmark.cli.main import main

HOSTILE = "<script>alert(1)</script>"
FALL = 9


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return 15 runs; `copy` falls at the tenth. One run is unfinished, one is a copy."""
    folder = tmp_path_factory.mktemp("runs")
    for number in range(15):
        wave = 1 + 0.004 * (number % 3 - 1)
        fallen = 0.9 if number >= FALL else 1.0
        about = {"parameters": {"layout": HOSTILE}}
        figures = [
            Value("copy", tuple(100 * wave * fallen * each for each in (0.99, 1.0, 1.01))),
            Value("scale", (100 * wave,), about=about),
            Value("add", (100 / wave,)),
        ]
        facts = {"n1": {"microcode": "0xb" if number >= FALL else HOSTILE}}
        write_past_run(folder, number, figures, facts)
    (write_past_run(folder, 20, [Value("copy", (1.0,))]) / "verdict.json").unlink()
    (folder / run_id(20) / "plan.json").write_text("{}")
    copy = write_past_run(folder / "more", 0, [Value("copy", (1.0,))])
    copy.rename(folder / "a-copy")
    return folder


@pytest.mark.core("the package works")
def test_the_page_shows_the_change_its_date_and_its_event(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "trend.html"
    assert main(["trend", f"{runs}", "-o", f"{page}"]) == 0
    printed = capsys.readouterr()
    assert printed.out == f"{page}\n"
    assert f"left out: {run_id(20)}: unfinished: it has no verdict.json" in printed.err
    assert_sound(page.read_text())
    text = plain(page.read_text())
    assert "Changes of figures: 1. Nodes that drift: 0. Runs: 15." in text
    words = re.sub("<[^>]*>", "", text)
    assert f"after {run_id(FALL - 1)}, at the latest at {run_id(FALL)}" in words
    assert "microcode: &lt;script&gt;alert(1)&lt;/script&gt; → 0xb" in words
    assert "<script" not in text
    assert "a copy of the run in" in text
    assert text.count("<svg") == 4  # one plot, and a small one for each figure
    assert text.count("<polygon") == 1  # the only figure with intervals


def test_the_page_is_in_the_folder_of_the_runs_by_default(runs: Path) -> None:
    assert main(["trend", f"{runs}"]) == 0
    assert (runs / "trend.html").is_file()


def test_one_run_has_a_page(runs: Path, tmp_path: Path) -> None:
    page = tmp_path / "trend.html"
    assert main(["trend", f"{runs / run_id(0)}", "-o", f"{page}"]) == 0
    assert "No figure changed by more than its noise" in page.read_text()


@pytest.mark.parametrize("place", ["missing", "empty"])
def test_a_folder_without_runs_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], place: str
) -> None:
    (tmp_path / "empty").mkdir()
    assert main(["trend", f"{tmp_path / place}"]) == 3
    assert "RUNS" in capsys.readouterr().err
    assert not (tmp_path / "empty" / "trend.html").exists()


def write_of_programs(runs: Path, number: int, release: str) -> Path:
    """Write a run of two metrics at 20 sizes each; `release` is that of all its programs."""
    about = {"environment_hash": release[0] * 64}
    figures = [
        Value(metric, (100 + grown * number * size,), about={**about, "parameters": {"size": size}})
        for metric, grown in (("copy", 1), ("add", -2))
        for size in range(1, 21)
    ]
    folder = write_past_run(runs, number, figures)
    text = software(release).model_dump_json()
    write_evidence(folder, {"software.json": text}, {})
    return folder


@pytest.mark.parametrize("language", ["en", "ko"])
def test_two_runs_of_other_programs_have_a_row_for_each_metric(
    tmp_path: Path, language: str
) -> None:
    folders = [f"{write_of_programs(tmp_path, *each)}" for each in ((0, "1.0"), (1, "2.0"))]
    page = tmp_path / "trend.html"
    assert main(["trend", *folders, "--language", language, "-o", f"{page}"]) == 0
    text = page.read_text(encoding="utf-8")
    assert_sound(text, language)
    tables = [cells_of(each) for each in re.findall(r"(?s)<table.*?</table>", plain(text))]
    rows = [row for table in tables for row in table]
    assert ["stream copy", "20", "+1.0\u00a0%", "+10.5\u00a0%", "+20.0\u00a0%"] in rows
    assert ["stream add", "20", "−40.0\u00a0%", "−21.0\u00a0%", "−2.0\u00a0%"] in rows
    assert ["stream copy size\u00a020", "100 MB/s", "120 MB/s", "+20.0\u00a0%"] in rows
    assert len([row for row in rows if row[0].startswith("stream copy size")]) == 20
    (released,) = [row for row in rows if row[2:4] == ["1.0", "2.0"]]
    assert released[4] == "fio, hpcc, intel-mpi-benchmarks"
    assert "<svg" not in text  # each series has a single run
    if language == "ko":
        assert english(text, {("test", "compute"), ("stream", "copy"), ("stream", "add")}) == []


def cells_of(table: str) -> list[list[str]]:
    """Return the text of each cell of a table, by row."""
    rows = re.findall(r"(?s)<tr.*?</tr>", table)
    cells = (re.findall(r"(?s)<t[dh].*?</t[dh]>", row) for row in rows)
    return [[re.sub("(<[^>]*>)+", " ", each).strip(" ") for each in row] for row in cells]


def test_the_page_of_trends_has_no_english_text(tmp_path: Path) -> None:
    for number in range(15):
        fallen = 0.9 if number >= 9 else 1.0
        values = tuple(fallen * each for each in (99 + number % 3, 100.0, 101.0))
        facts = {"n1": {"microcode": "0xb" if number >= 9 else "0xa"}}
        write_past_run(tmp_path, number, [Value("copy", values), Value("add", (100.0,))], facts)
    (write_past_run(tmp_path, 20, [Value("copy", (1.0,))]) / "verdict.json").unlink()
    (tmp_path / run_id(20) / "plan.json").write_text("{}")
    page = tmp_path / "trend.html"
    assert main(["trend", f"{tmp_path}", "--language", "ko", "-o", f"{page}"]) == 0
    text = page.read_text(encoding="utf-8")
    assert Texts(text).language == "ko"
    assert english(text, {("test", "compute"), ("stream", "copy"), ("stream", "add")}) == []
    assert "마이크로코드: 0xa → 0xb" in text
    assert "완료되지 않음: verdict.json 없음" in text
    assert "<span lang" not in text
