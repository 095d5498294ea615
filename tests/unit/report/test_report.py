"""The report of a run: sections, texts, safety and accessibility."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.fixtures.finished import written_verdict
from tests.fixtures.kit import results_of
from tests.fixtures.pages import Page, assert_sound
from tests.fixtures.report_run import (
    SIZES,
    Outputs,
    made_run,
    page_of,
    reported,
    software,
    troubled_run,
)

from proofmark.cli.main import main
from proofmark.judge.verdict import WORDS, Coverage, Verdict
from proofmark.report.run_data import drivers_that_wrote, gather
from proofmark.report.sections import issues, node_provenance
from proofmark.report.summary import headline, summary
from proofmark.runs.nodes import nodes_of
from proofmark.runs.run import Run, benchmarks_of
from proofmark.software.installed import Provided
from proofmark.software.software import Software, package_of

SECTIONS = [
    "key-figures",
    "attention",
    "judged",
    "plots",
    "observations",
    "provenance",
    "commands",
    "all",
]
HOSTILE = "<img src=x onerror=alert(1)>\"'&{{ 7*7 }}"
HOSTILE_WORDS = "</code></pre><script>alert('reason')</script>\x1b[2J\u202e" + "W" * 500


def section(text: str, name: str) -> str:
    """Return the text of one section."""
    start = text.index(f'<section id="{name}"')
    return Page(text[start : text.index("</section>", start) + len("</section>")]).words


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Verdict, str]:
    run = made_run(tmp_path_factory.mktemp("good"))
    return run, *reported(run, drawn=True)


@pytest.fixture(scope="module")
def troubled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Verdict, str]:
    run = troubled_run(tmp_path_factory.mktemp("troubled"))
    return run, *reported(run)


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Verdict, str]:
    """A run with hostile texts, a failed program, and a BLAS that chose another kernel."""

    def change(outputs: Outputs) -> None:
        outputs["0014-hpcc-right"]["stderr"] = "Core: Prescott\n"
        outputs["0016-imb-pingpong"]["stderr"] = HOSTILE_WORDS

    folder, codes = tmp_path_factory.mktemp("odd"), {"0016-imb-pingpong": 1}
    run = made_run(folder, change=change, codes=codes, model=HOSTILE)
    script = run.files.scripts.step("0015-imb-collectives").script
    script.write_text(script.read_text().replace("exec ", f"echo '{HOSTILE_WORDS}'; exec ", 1))
    return run, *reported(run)


def test_the_sections_and_the_head_of_the_report(good: tuple[Run, Verdict, str]) -> None:
    _, verdict, text = good
    page = assert_sound(text)
    assert len(page.of("nav")) == 1
    assert [each["id"] for each in page.of("section")] == SECTIONS
    head = page.words.partition("Issues")[0]
    assert "NO FAULT FOUND 3 of 3 floors; no contract, no expected value; 0 PASS, " in head
    figures = section(text, "key-figures")
    assert "HPL hpcc, close blas_kernel right" in figures
    assert "≥ 24.30 GFlop/s floor" in figures
    assert "Not measured: Triad, Message rate, Write, Read, Files created." in figures
    usual = figures.partition("What these figures usually are")[2].partition("Not covered")[0]
    assert "GFlop/s a socket of AMD EPYC 7763 64-Core Processor (64 cores): line through" in usual
    assert "this virtual machine has 2 of them" in usual
    assert "none is known an item of contract.yml: case imb-pingpong, metric t_avg" in usual
    assert not any(word in usual for word in WORDS), "no verdict"
    for word in WORDS:
        assert f"{verdict.counts[word]} {word}" in head
    assert "16 of 16 steps measured, no figure measured twice" in head
    assert "AMD EPYC 7763 @ 2.45GHz, 1 socket, 2 cores, 23.54 GiB, virtual (kvm)" in head
    assert "2026-11-21 08:30 UTC to 08:37 UTC (7 min 20 s)" in head
    assert "measured on the machine itself" in head


def test_the_report_is_smaller_than_1_5_mb(good: tuple[Run, Verdict, str]) -> None:
    assert len(good[2].encode()) < 1_500_000


def test_the_driver_that_wrote_by_mpi_io_is_that_of_the_output(tmp_path: Path) -> None:
    """The first step prints its driver, the other has an MPI with two of them."""
    printing, silent = "0016-imb-pingpong", "0015-imb-collectives"
    line = "key = romio_filesystem_type     value = NFS: driver of a test\n"

    def change(outputs: Outputs) -> None:
        outputs[printing]["stderr"] = line

    run = made_run(tmp_path, change=change)
    data = gather(run, written_verdict(run))
    assert data.drivers == {} and node_provenance.driver_sections(data) == ()
    writes = {"environment": {"ROMIO_PRINT_HINTS": "1"}}
    states = [
        replace(each, step=each.step.model_copy(update=writes))
        for each in data.states
        if each.step.id in (printing, silent)
    ]
    found = drivers_that_wrote(run, states, data.software)
    assert found == {"imb-pingpong": ("romio:nfs",), "imb-collectives": ()}
    assert data.software
    package = data.software.packages["intel-mpi-benchmarks"]
    ((name, program),) = package.programs.items()
    waiting = [replace(each, step=each.step.model_copy(update={"id": "9999-x"})) for each in states]
    assert drivers_that_wrote(run, waiting, data.software) == {}, "they did not run"
    assert drivers_that_wrote(run, states, None) == {}
    for programs in ({}, {name: program.model_copy(update={"mpi": None})}):
        without = package.model_copy(update={"programs": programs})
        known = data.software.model_copy(update={"packages": {"intel-mpi-benchmarks": without}})
        assert drivers_that_wrote(run, states, known) == {}
    (made,) = node_provenance.driver_sections(replace(data, drivers=found))
    text = str(made)
    assert "imb-pingpong: romio:nfs" in text
    assert "imb-collectives: unknown" in text


def test_a_kernel_is_read_from_the_output_of_a_program_with_a_blas(tmp_path: Path) -> None:
    """Steps chose a kernel. Their program is not recorded, has no BLAS, or has no variants."""
    run = made_run(tmp_path)
    verdict = written_verdict(run)
    data = gather(run, verdict)
    assert data.software and all(data.kernels.values()) and data.kernels
    (program,) = data.software.packages["hpcc"].programs.values()
    source = Provided(version="1.0", spec="hpcc", prefix="", programs={})
    without = program.model_copy(update={"blas": None})
    (facts,) = (node.newest for node in nodes_of(run).values())
    (other,) = data.software.packages["intel-mpi-benchmarks"].programs.values()
    linked = other.model_copy(update={"blas": program.blas})
    variantless = source.model_copy(update={"spec": "intel-mpi-benchmarks"})
    for packages in (
        {},
        {"hpcc": package_of({program.name: without}, facts, "system", source)},
        {"intel-mpi-benchmarks": package_of({other.name: linked}, facts, "system", variantless)},
    ):
        known = Software(packages=packages)
        run.files.software.write_text(known.model_dump_json(), encoding="utf-8")
        assert gather(run, verdict).kernels == {}


def test_a_slower_kernel_of_the_blas_is_observed(good: tuple[Run, Verdict, str]) -> None:
    assert "OpenBLAS 0.3.21 chose PRESCOTT" in section(good[2], "observations")


def test_a_kernel_that_the_blas_did_not_use_is_reported(odd: tuple[Run, Verdict, str]) -> None:
    words = section(odd[2], "observations")
    assert "right: ZEN was wanted, the output reports Prescott." in words


def test_a_judged_figure_has_reference_ratio_limit_and_source(
    good: tuple[Run, Verdict, str],
) -> None:
    words = section(good[2], "judged")
    metric = benchmarks_of(good[0]).case("hpcc").metrics["dgemm_star"]
    assert f"hpcc dgemm_star {metric.what} close, " in words
    row = r"localhost 41\.29 Gflops single run 54\.00 Gflops 0\.765 at least 0\.45 floor: "
    assert re.search(row, words)


def test_failures_are_listed_first(troubled: tuple[Run, Verdict, str]) -> None:
    run, verdict, text = troubled
    page = assert_sound(text)
    assert verdict.headline().word == "INVALID"
    assert (
        f" {verdict.counts['FAIL']} FAIL, 15 INVALID, {verdict.counts['UNJUDGED']} UNJUDGED; "
        "14 of 16 steps measured" in page.words
    )
    words = section(text, "attention")
    failed = "FAIL imb-pingpong PingPong bandwidth payload moved per second"
    assert words.index(failed) < words.index("INVALID imb-collectives: 15 figures")
    assert "0.639 × the contract figure (9000 Mbytes/sec) is not at least 1" in words
    assert "the program gave up: time-out" in words
    for name in ("0011-fio-cache-file-per-process-33554432", "0012-fio-cache"):
        assert re.search(rf"{name}\S* localhost never started", words)
    links = {each["href"] for each in page.of("a")}
    assert "workdir/steps/0016-imb-pingpong/execution-1/stdout" in links
    assert all((run.folder / link).exists() for link in links if not link.startswith("#")), (
        "every link leads to a file"
    )
    assert "tender, annex 3" in section(text, "judged")


def test_only_changed_error_counters_are_shown(
    good: tuple[Run, Verdict, str], troubled: tuple[Run, Verdict, str]
) -> None:
    changed = "processes were killed because memory ran out localhost vmstat/oom_kill – 0 2"
    assert f"information {changed}" in section(troubled[2], "observations")
    assert "Error counters that changed" not in good[2]


def test_machine_check_exceptions_are_marked_as_invalid(tmp_path: Path) -> None:
    def after(probe: str) -> str:
        return probe.replace("| vmstat/oom_kill: 0", "| interrupts/MCE: 3\n| vmstat/oom_kill: 0")

    def before(text: str) -> str:
        return text.replace("interrupts/MCE: 3", "interrupts/MCE: 0")

    run = made_run(tmp_path, after=after)
    probe = run.folder / "workdir/jobs" / "00-0001" / "attempt-1" / "vm.before"
    probe.write_text(before(after(probe.read_text())))
    _, text = reported(run)
    words = section(text, "attention")
    assert "INVALID machine check exceptions localhost interrupts/MCE – 0 3" in words
    assert "figures that were measured on this node at that time are not valid" in words


def test_a_run_without_issues_reports_that(good: tuple[Run, Verdict, str]) -> None:
    run, verdict, _ = good
    provided = software()
    package = provided.packages["hpcc"].model_copy(update={"findings": ()})
    others = [each for each in verdict.results if each.record.case != "hpcc"]
    run_data = replace(
        gather(run, replace(verdict, results=results_of([each.record for each in others]))),
        software=provided.model_copy(update={"packages": {"hpcc": package}}),
    )
    assert issues.section(run_data).blocks[0].paragraphs == ("None.",)


def test_the_report_has_every_command_and_how_to_repeat_it(good: tuple[Run, Verdict, str]) -> None:
    run, _, text = good
    words = section(text, "commands")
    assert f"proofmark rerun runs/{run.id} 0001-" in words
    for step in run.plan.steps():
        assert re.search(rf"{step.id} [^,]* exit code 0, 20 s", words)
    script = (run.folder / "workdir/steps" / "0014-hpcc-right" / "run.sh").read_text()
    launch = script.partition("launch() {\n")[2].partition("\n}\n")[0]
    assert "OPENBLAS_CORETYPE=ZEN" in launch
    assert " ".join(launch.split()) in words


def test_plots_are_written_with_their_data(good: tuple[Run, Verdict, str]) -> None:
    run, verdict, text = good
    folder = run.folder / "figures"
    names = {
        "file-size-write",
        "file-size-read",
        "point-to-point-time",
        "point-to-point-bandwidth",
        "collectives-time",
    }
    kept = {path.name for path in folder.iterdir()}
    assert kept == {f"{name}.{kind}" for name in names for kind in ("svg", "png", "csv")}
    with (folder / "file-size-write.csv").open() as file:
        rows = list(csv.DictReader(file))
    written = {
        (json.dumps(dict(each.record.parameters), sort_keys=True), str(each.record.value))
        for each in verdict.results
        if each.record.metric == "write"
    }
    assert {(row["parameters"], row["median"]) for row in rows} == written
    assert len(rows) == 2 * len(SIZES)
    assert Page(text).of("svg")
    assert "Not measured in this run" not in section(text, "plots")


@pytest.mark.fault("plot-of-invalid-figures")
@pytest.mark.parametrize("injected", [False, True], ids=["control", "fault"])
def test_plots_whose_figures_are_all_invalid_have_their_own_list(
    good: tuple[Run, Verdict, str], odd: tuple[Run, Verdict, str], injected: bool
) -> None:
    words = section((odd if injected else good)[2], "plots")
    assert "Not measured in this run" not in words
    invalid = words.partition("Measured, but INVALID")[2]
    assert bool(invalid) is injected
    if injected:
        assert "Point-to-point messages: time and bandwidth over message size: " in invalid
        assert "INVALID figures, exit code 1" in invalid


def test_plots_of_no_suite_are_not_listed_and_old_plots_are_removed(tmp_path: Path) -> None:
    def change(outputs: Outputs) -> None:
        for name in [name for name in outputs if "fio" not in name]:
            del outputs[name]

    run = made_run(tmp_path, change=change)
    (run.folder / "figures").mkdir()
    (run.folder / "figures" / "of-old.svg").write_text("")
    (run.folder / "figures" / "notes.txt").write_text("mine")
    _, text = reported(run)
    words = section(text, "plots")
    assert "Not measured in this run" not in words
    assert "Time of collective operations over message size" not in words
    kept = {path.name for path in (run.folder / "figures").iterdir()}
    assert "of-old.svg" not in kept
    assert "notes.txt" in kept


def test_the_provenance_has_the_node_and_the_programs(good: tuple[Run, Verdict, str]) -> None:
    words = section(good[2], "provenance")
    for fact in (
        "microcode 0x1000065",
        "Transparent huge pages madvise",
        "Governor not reported (no such file: /sys/devices/system/cpu/cpu0/cpufreq/",
        "6.18.44-fc-v595",
        "openblas 0.3.21, default kernel Prescott",
        "intel 2021.18.1",
        "blas_kernel right OPENBLAS_CORETYPE=ZEN",
        "libopenblas0-pthread:amd64 0.3.21+ds-4",
        "Facts that this node did not report, and why",
    ):
        assert fact in words
    for program in software().packages["hpcc"].programs.values():
        assert program.sha256
        assert program.sha256 in words


def test_hostile_text_is_escaped(odd: tuple[Run, Verdict, str]) -> None:
    text = odd[2]
    page = assert_sound(text)
    assert "<img src=x onerror=alert(1)>\"'&{{ 7*7 }}" in page.words, "the name is shown unchanged"
    assert "<script>alert('reason')</script>\\x1b[2J\\u202eWWW" in page.words
    assert not set("\x1b\u202e") & set(text)


@pytest.mark.parametrize("make", [made_run, pytest.param(troubled_run, marks=pytest.mark.soak)])
def test_the_same_run_gives_the_same_bytes(
    make: Callable[[Path], Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With any hash seed. The hash seed of this process is random."""
    run = make(tmp_path)
    written_verdict(run)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1795257600")

    def files() -> dict[str, bytes]:
        pages = [run.files.report]
        paths = [*pages, *sorted((run.folder / "figures").iterdir())]
        found = {path.name: path.read_bytes() for path in paths}
        for path in pages:
            path.write_text("of the first report")
        return found

    assert main(["report", str(run.folder)]) == 0
    first = files()
    assert b"2026-11-21 10:40 UTC" in first[run.files.report.name]
    command = "import sys; from proofmark.cli.main import main; sys.exit(main())"
    subprocess.run(
        [sys.executable, "-c", command, "report", str(run.folder)],
        env={**os.environ, "PYTHONHASHSEED": "2"},
        check=True,
        capture_output=True,
    )
    assert files() == first


def test_the_time_of_the_report_changes_only_its_date(
    odd: tuple[Run, Verdict, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = []
    for seconds in (1795257600, 1795257660):
        monkeypatch.setenv("SOURCE_DATE_EPOCH", f"{seconds}")
        pages.append(page_of(*odd[:2]))
    first, second = pages
    assert second == first.replace("2026-11-21 10:40 UTC", "2026-11-21 10:41 UTC") != first


def test_an_unfinished_run_has_a_report(tmp_path: Path) -> None:
    run = made_run(tmp_path, change=lambda outputs: outputs.clear())
    for path in run.folder.glob("workdir/jobs/*/attempt-*/*.before"):
        path.unlink()
    verdict, text = reported(run)
    page = assert_sound(text)
    assert verdict.headline().word == "INVALID"
    assert "; 0 of 16 steps measured" in page.words
    assert "unknown: no provenance was collected" in page.words
    assert "1 of 1 node without provenance in nodes/." in page.words


def test_damaged_provenance_is_listed(tmp_path: Path) -> None:
    run = made_run(tmp_path)
    run.files.nodes.mkdir()
    (run.files.nodes / "localhost.json").write_text("{")
    verdict, text = reported(run)
    assert verdict.counts["INVALID"] == len(verdict.results)
    assert "nodes/localhost.json is damaged: unreadable" in assert_sound(text).words


def test_like_nodes_are_grouped(good: tuple[Run, Verdict, str]) -> None:
    run, verdict, _ = good
    (node,) = nodes_of(run).values()
    (job,) = node.jobs
    slow = job.provenance.facts.model_copy(update={"microcode": "0x1000001"})
    other = job.model_copy(update={"provenance": job.provenance.model_copy(update={"facts": slow})})
    nodes = [node.model_copy(update={"host": f"n{number:02d}"}) for number in range(1, 10)]
    nodes.append(node.model_copy(update={"host": "n10", "jobs": (other,)}))
    run_data = replace(gather(run, verdict), nodes=nodes)
    provenance = node_provenance.section(run_data)
    titles = [title for block in provenance.blocks for title in block.titles]
    assert titles[:2] == ["n[01-09] (9 nodes alike)", "n10"]
    head = summary(run_data).about[0][1]
    assert head.startswith("10 × AMD EPYC 7763")


def verdict_of(**counts: int) -> Verdict:
    all_counts = {word: counts.get(word, 0) for word in WORDS}
    return Verdict("run", all_counts, Coverage(4, 4, 0, ()), results_of([]))


@pytest.mark.parametrize(
    ("counts", "word", "sentence"),
    [
        ({"PASS": 1}, "UNJUDGED", "1 PASS, 0 FAIL, 0 INVALID, 0 UNJUDGED"),
        ({"PASS": 3, "FAIL": 1}, "FAIL", "3 PASS, 1 FAIL, 0 INVALID, 0 UNJUDGED"),
        ({"PASS": 1, "INVALID": 1}, "INVALID", "1 PASS, 0 FAIL, 1 INVALID, 0 UNJUDGED"),
        ({"UNJUDGED": 2}, "UNJUDGED", "0 PASS, 0 FAIL, 0 INVALID, 2 UNJUDGED"),
    ],
)
def test_the_headline_gives_the_reason_for_the_verdict(
    counts: dict[str, int], word: str, sentence: str
) -> None:
    verdict = verdict_of(**counts)
    assert verdict.headline().word == word
    assert headline(verdict) == f"nothing was judged; {sentence}; 4 of 4 steps measured"


def test_figures_measured_twice_are_in_the_headline() -> None:
    twice = replace(verdict_of(PASS=2), coverage=Coverage(4, 4, 2, ()))
    assert twice.headline().word == "INVALID"


def test_the_command_line_does_not_load_matplotlib() -> None:
    command = "import sys, proofmark.cli.main; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", command], check=False).returncode == 0
