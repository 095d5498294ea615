"""Edited outputs of others on declared hardware, by the two commands: none of them is sound."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from tests.fixtures.node_outputs import SAMPLES
from tests.folders import ROOT

from proofmark.cli.main import main
from proofmark.judge.judging import read_and_judge
from proofmark.runs.run import open_run

NODES = [f"epyc{number:03d}" for number in range(1, 9)]
"""Of the site example-epyc: two EPYC 9654 with 24 channels of DDR5-4800."""
RPEAK = 2 * 96 * 16 * 2.4
"""Gflop/s."""
MEMORY = 24 * 8 * 4800
"""MB/s."""
N, ARRAY = 250_000, 2_000_000_000


def hpl(rate: float) -> str:
    """Return an output of HPL with this rate, Gflop/s, and the time that belongs to it."""
    text = (SAMPLES / "hpl-2.3_N2048-6144_NB128-192_P1Q2.txt").read_text()
    head, _, tail = text.partition("=" * 80 + "\nT/V")
    for key, value in {"N": N, "NB": 384, "P": 2, "Q": 12}.items():
        head = re.sub(rf"^({key} +:) +\d.*$", f"\\1 {value}", head, flags=re.MULTILINE)
    row, _, rest = tail.partition("Finished      4")
    seconds = (2 / 3 * N**3 + 3 / 2 * N**2) / 1e9 / rate
    row = re.sub(
        r"^(WR\w+) .*$", f"\\1 {N} 384 2 12 {seconds:.2f} {rate:.4e}", row, count=1, flags=re.M
    )
    row = row.partition("=" * 80 + "\nT/V")[0]
    rest = rest.replace("      4 tests completed", "      1 tests completed", 1)
    return f"{head}{'=' * 80}\nT/V{row}Finished      1{rest}"


def stream(rate: float) -> str:
    """Return an output of STREAM with this rate of each kernel, MB/s, and the times of it."""

    def row(match: re.Match[str]) -> str:
        arrays = 2 if match[1] in ("Copy", "Scale") else 3
        seconds = f"{8 * arrays * ARRAY / (rate * 1e6):.6f}"
        return f"{match[1]}: {rate:.1f} {seconds} {seconds} {seconds}"

    text = (SAMPLES / "stream-5.10_N64000000_t2.txt").read_text()
    text = text.replace("Array size = 64000000", f"Array size = {ARRAY}")
    return re.sub(r"^(Copy|Scale|Add|Triad): .*", row, text, flags=re.MULTILINE)


def judged(folder: Path, of_hpl: float, of_stream: float) -> Counter[tuple[str, str]]:
    """Return the number of invalid values of each case and metric; the factors are of the peaks."""
    for number, node in enumerate(NODES):
        (folder / "outputs" / node).mkdir(parents=True)
        factor = 1 + 1e-3 * number
        for name, text in (
            ("hpl", hpl(of_hpl * RPEAK * factor)),
            ("stream", stream(of_stream * MEMORY * factor)),
        ):
            (folder / "outputs" / node / f"{name}.out").write_text(text)
    site = ["-i", f"{ROOT / 'inventory/example-epyc'}", "-l", "epyc"]
    runs = ["--runs", f"{folder / 'runs'}", "--run-id", "one"]
    assert main(["adopt", f"{folder / 'outputs'}", "--accept", *site, *runs]) == 0
    records = read_and_judge(open_run(folder / "runs/one"))[0]
    return Counter((each.case, each.metric) for each in records if not each.valid)


@pytest.mark.core("no edited rate may pass")
@pytest.mark.fault("edited-beyond-hardware")
def test_rates_above_the_peaks_of_the_declared_node_are_invalid(tmp_path: Path) -> None:
    found = judged(tmp_path, of_hpl=0.88 * 1.3, of_stream=0.95 * 1.3)
    assert found["hpl", "rmax"] == len(NODES)
    for metric in ("copy", "scale", "add", "triad"):
        assert found["stream", metric] == len(NODES)


@pytest.mark.core("the control")
def test_rates_of_a_sound_node_are_valid(tmp_path: Path) -> None:
    """The control: the best known HPL is 1.009 of the nominal peak."""
    assert not judged(tmp_path, of_hpl=1.01 / 1.007, of_stream=0.93)
