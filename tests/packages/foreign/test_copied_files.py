"""One file that was adopted as the outputs of several nodes is a fault by name, at any number."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.fixtures.outputs import output_sample
from tests.folders import BENCHMARKS

from proofmark.cases.loading import load_benchmarks
from proofmark.judge.judging import judge_run
from proofmark.judge.verdict import Verdict
from proofmark.packages.foreign.adoption import adopt_folder
from proofmark.packages.foreign.adoption_request import AdoptionRequest

TIMES = "HPL_pdgesv() start time {}\nHPL_pdgesv() end time   {}\n"
START, END = "Sat Nov 21 08:22:59 2026", "Sat Nov 21 08:23:09 2026"


def hpl(times: str) -> str:
    text = output_sample("hpl-2.3_N2048-6144_NB128-192_P1Q2.txt")
    return text.replace("\nFinished", f"\n{times}\nFinished", 1)


def verdict_of(folder: Path, texts: list[str]) -> Verdict:
    outputs = folder / "outputs"
    outputs.mkdir()
    for number, text in enumerate(texts):
        (outputs / f"node{number:03d}.out").write_text(text, encoding="utf-8")
    request = AdoptionRequest(outputs, {})
    run, _ = adopt_folder(folder / "runs", request, load_benchmarks(BENCHMARKS))
    return judge_run(run)


@pytest.mark.fault("copied-output")
@pytest.mark.parametrize("nodes", [2, 3, 6, 20])
def test_one_file_of_several_nodes_is_named(tmp_path: Path, nodes: int) -> None:
    verdict = verdict_of(tmp_path, nodes * [hpl(TIMES.format(START, END))])
    named = {fault.node for fault in verdict.faults if "same-file" in fault.reason.codes}
    assert len(named) == nodes
    assert verdict.exit_code() == 1


@pytest.mark.fault("copied-output")
@pytest.mark.parametrize("others", [4, 18, 60])
def test_two_edited_copies_among_sound_files_are_named(tmp_path: Path, others: int) -> None:
    """The copy has the name of another host and other words. Its numbers are the same."""
    moments = [f"Sat Nov 21 08:{23 + at // 30:02d}:{at % 30 + 10:02d} 2026" for at in range(others)]
    texts = [hpl(TIMES.format(START, end)) for end in moments]
    copied = hpl(TIMES.format(START, END))
    edited = copied.replace("HPLinpack 2.3", "HPLinpack 2.3 ").replace("Wall", "wall")
    verdict = verdict_of(tmp_path, [*texts, f"# host node{others}\n{copied}", f"# on x\n{edited}"])
    named = {fault.node for fault in verdict.faults if "same-file" in fault.reason.codes}
    assert named == {f"node{others:03d}", f"node{others + 1:03d}"}


def test_files_of_other_times_are_not_named(tmp_path: Path) -> None:
    """The control."""
    texts = [hpl(TIMES.format(START, END.replace("09", f"{at:02d}"))) for at in range(20, 26)]
    verdict = verdict_of(tmp_path, texts)
    assert not {fault.node for fault in verdict.faults if "same-file" in fault.reason.codes}


def test_equal_files_without_times_prove_nothing(tmp_path: Path) -> None:
    text = "# OSU MPI Barrier Latency Test v7.4\n# Avg Latency(us)\n            12.77\n"
    assert not verdict_of(tmp_path, 6 * [text]).faults
