"""The command ``adopt``, and the commands that judge its run."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest
from tests.fixtures.kit import write_contract
from tests.folders import BENCHMARKS, DATA, ROOT

from proofmark.cli.main import main
from proofmark.packages.foreign.adopt import COMMANDS
from proofmark.packages.history.past_run import LeftOut, PastRun, read_past_run
from proofmark.runs.run import open_run, site_of
from proofmark.runs.run_files import RunFiles

SAMPLES = BENCHMARKS / "samples"


@pytest.fixture
def vendor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with outputs of two nodes, and of a site in the wild."""
    monkeypatch.setenv("PROOFMARK_KIT", str(ROOT))
    folder = tmp_path / "vendor"
    for node in ("n1", "n2"):
        (folder / node).mkdir(parents=True)
        shutil.copy(SAMPLES / "stream-5.10_N2000000_t2.txt", folder / node / "stream.log")
        shutil.copy(DATA / "wild" / "hpl-amd-zen_a.txt", folder / node / "xhpl.out")
    for name, old, new in (
        ("stream.log", "46107.1", "46107.2"),
        ("xhpl.out", "8.7561e+03", "8.7562e+03"),
    ):
        path = folder / "n2" / name
        path.write_text(path.read_text().replace(old, new))
    (folder / "notes\n\x1b[31m.txt").write_text("x")
    return folder


WORDS = ("--case", "hpl=*/xhpl*.out", "--case", "stream=*.log", "--node", "(n[0-9]+)/")


@pytest.mark.core("the package works")
def test_a_folder_of_others_gets_a_verdict_and_a_report(
    vendor: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    runs = tmp_path / "runs"
    more = ("--runs", str(runs), "--run-id", "r1")
    assert main(["adopt", str(vendor), *WORDS, *more]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        f"run: {runs / 'r1'}",
        "adopted: 4 files of 2 nodes: hpl 2, stream 2",
        "files that match no case: 1: notes [31m.txt",
        f"next: proofmark report {runs / 'r1'}",
    ]
    folder = str(runs / "adopted-imported")
    assert main(["verdict", folder]) == 4
    assert "; 4 of 4 steps measured\n" in capsys.readouterr().out
    assert main(["report", folder]) == 0
    verdict = json.loads((runs / "r1" / "verdict.json").read_text())
    assert verdict["imported"] is True
    listed = len(verdict["results"])
    assert verdict["unlisted"] == sum(verdict["counts"].values()) - listed > listed
    page = (runs / "r1" / "report.html").read_text()
    assert "imported: others produced the outputs" in page
    for text in (
        "Provenance that this run lacks",
        "Limits for a mode do not judge.",
        "Files that match no case: 1",
    ):
        assert text in page
    assert "run.sh" not in page
    assert main(["status", folder]) == 0
    assert "4 outputs that others produced" in capsys.readouterr().out
    for name in ("csv", "junit", "parquet"):
        assert main(["export", folder, "--format", name, "-o", str(tmp_path / "out")]) == 0


@pytest.mark.parametrize("below", ["", "run1/"])
def test_the_example_of_the_page_and_of_the_help_fits_folders_of_nodes(
    vendor: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, below: str
) -> None:
    """The nodes are folders of FOLDER itself, or of a folder in it."""
    monkeypatch.chdir(vendor.parent)
    for node in ("n1", "n2"):
        place = vendor / below / f"n00{node[1:]}"
        place.parent.mkdir(exist_ok=True)
        (vendor / node).rename(place)
    page = (ROOT / "docs/packages/adopt.md").read_text()
    (of_page,) = re.findall(r"^proofmark (adopt vendor .*)", page, re.MULTILINE)
    for name, text in (("r1", of_page), ("r2", COMMANDS["adopt"].example)):
        assert main([*shlex.split(text), "--runs", "runs", "--run-id", name]) == 0
        assert " of 2 nodes: hpl 2" in capsys.readouterr().out
        plan = open_run(vendor.parent / "runs" / name).plan
        assert plan.nodes() == ["n001", "n002"]


def test_a_pattern_that_begins_at_the_folder_fits(
    vendor: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (vendor / "xhpl.out").write_bytes((vendor / "n1/xhpl.out").read_bytes())
    words = ("--case", "hpl=*/xhpl*.out", "--node", "^(n[0-9]+)/", "--nodes", "n9")
    runs = vendor.parent / "runs"
    assert main(["adopt", str(vendor), *words, "--runs", str(runs), "--run-id", "r1"]) == 0
    assert "adopted: 3 files of 3 nodes: hpl 3" in capsys.readouterr().out


def test_a_declared_site_gives_hosts_and_limits(
    vendor: Path,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    site = tmp_path / "inventory" / "example-xeon"
    shutil.copytree(ROOT / "inventory" / "example-xeon", site)
    limit = {"case": "stream", "metric": "triad", "value": 20000, "unit": "MB/s", "at_least": 1}
    write_contract(site, [limit])
    for number in (1, 2):
        (vendor / f"n{number}").rename(vendor / f"xeon00{number}")
    monkeypatch.chdir(tmp_path)  # the run keeps the whole path of a site that is named from here
    typed = ("-i", "inventory/example-xeon", "-l", "xeon")
    words = ("--case", "stream=*.log", "--node", "(xeon[0-9]+)/", *typed)
    more = ("--runs", str(tmp_path / "runs"), "--run-id", "r1")
    assert main(["adopt", str(vendor), *words, *more]) == 0
    assert site_of(open_run(tmp_path / "runs" / "r1")).inventory == site
    capsys.readouterr()
    assert main(["report", "--json", str(tmp_path / "runs" / "r1")]) == 0
    verdict = json.loads(capsys.readouterr().out)
    assert verdict["counts"]["PASS"] == 2
    assert verdict["degraded"]["label"] == "degraded: 2 of 64 nodes"
    assert "imported outputs" in verdict["lines"][0]


@pytest.mark.fault("imported-run-executed")
@pytest.mark.parametrize("words", [["rerun", "RUN", "0001-hpl"], ["stage", "execute", "RUN"]])
def test_no_step_of_an_imported_run_is_run(
    vendor: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path, words: list[str]
) -> None:
    main(["adopt", str(vendor), *WORDS, "--runs", str(tmp_path / "runs"), "--run-id", "r1"])
    run = str(tmp_path / "runs" / "r1")
    assert main([run if word == "RUN" else word for word in words]) == 3
    assert "r1: outputs that others produced" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--case", "hpl"], "--case: found 'hpl'; accepted: CASE=PATTERN"),
        (["--case", "hpll=*"], "unknown case 'hpll', did you mean 'hpl'?"),
        (["--case", "hpl=*/x*", "--nodes", "n[1-"], "--nodes: found"),
        (["--case", "hpl=*/x*", "--node", "(x+)hpl", "-i", "inventory/local"], "-l: found nothing"),
        (
            ["--case", "hpl=*/x*", "--node", "(n[0-9])", "-i", "inventory/nurion", "-l", "knl"],
            "nodes that 'knl' of nurion does not select: n[1-2]",
        ),
    ],
)
def test_wrong_words_are_refused(
    vendor: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(ROOT)
    assert main(["adopt", str(vendor), *words, "--runs", str(vendor.parent / "runs")]) == 3
    assert message in capsys.readouterr().err
    assert not (vendor.parent / "runs").exists()


def test_the_summary_shows_each_limit_with_its_own_outcome(
    vendor: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A limit for a placement selects no planned step: a file has no placement."""
    shutil.copy(SAMPLES / "stream-5.10_N2000000_serial.txt", vendor / "n2" / "stream.log")
    site = tmp_path / "inventory" / "vendor"
    shutil.copytree(ROOT / "inventory" / "example-xeon", site)
    base = {"case": "stream", "value": 20000, "unit": "MB/s", "at_least": 1}
    items = [
        {**base, "text": "first", "metric": "triad", "where": {"placement": "close"}},
        {**base, "text": "second", "metric": "copy"},
        {**base, "text": "third", "metric": "triad", "where": {"threads": 2}},
    ]
    write_contract(site, items)
    for number in (1, 2):
        (vendor / f"n{number}").rename(vendor / f"xeon00{number}")
    words = ("--case", "stream=*.log", "--node", "(xeon[0-9]+)/", "-i", str(site), "-l", "xeon")
    run = tmp_path / "runs" / "r1"
    assert main(["adopt", str(vendor), *words, "--runs", str(run.parent), "--run-id", "r1"]) == 0
    assert main(["report", str(run)]) == 0
    text = (run / "report.html").read_text()
    rows = text[text.index('id="contract"') :].partition("</table>")[0]
    found = [re.findall(r'class="word (\w+)"', row) for row in rows.split("<tr")[2:]]
    assert found == [["UNJUDGED"], ["PASS"], ["UNJUDGED"]]


def test_a_history_has_the_figures_that_the_verdict_does_not_list(
    vendor: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A figure of others without a finding is in records.parquet, with its repeats."""
    shutil.copy(vendor / "n1" / "stream.log", vendor / "n1" / "stream2.log")
    folder = tmp_path / "runs" / "20261101T000000Z-vendor"
    more = ("--runs", str(folder.parent), "--run-id", folder.name)
    assert main(["adopt", str(vendor), *WORDS, *more]) == 0
    assert main(["stage", "collect", str(folder)]) == 0
    assert main(["report", str(folder)]) == 0
    files = RunFiles(folder)
    short, found = files.verdict.read_text(), read_past_run(folder)
    assert isinstance(found, PastRun) and found.count.max() == 2
    capsys.readouterr()
    assert main(["verdict", "--json", str(folder)]) == 4
    whole = capsys.readouterr().out
    left = len(json.loads(whole)["results"]) - len(json.loads(short)["results"])
    assert left == json.loads(short)["unlisted"] > 0
    files.verdict.write_text(whole)
    listed = read_past_run(folder)
    assert isinstance(listed, PastRun)
    assert _columns(found) == _columns(listed)
    files.verdict.write_text(short)
    files.records.unlink()
    missing = read_past_run(folder)
    assert isinstance(missing, LeftOut) and missing.reason.code == "past-records"


def _columns(run: PastRun) -> list[tuple[object, ...]]:
    """Return the results of a run without their numbers, sorted."""
    rows = zip(
        (run.figures[each] for each in run.figure),
        (run.nodes[each] for each in run.node),
        run.count.tolist(),
        run.value.tolist(),
        map(str, zip(run.low.tolist(), run.high.tolist(), strict=True)),
        strict=True,
    )
    return sorted(rows)
