"""The slowdown of pairs beside a load, from the records of a run."""

from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.fixtures.finished import judged, write_execution, write_software
from tests.fixtures.kit import FAKE, make_kit

from proofmark.packages.fabric.rounds import pair_findings
from proofmark.packages.fabric.slowdown import Slowdown
from proofmark.plan.step import Step
from proofmark.report.render import view
from proofmark.report.run_data import gather
from proofmark.runs.run import Run
from proofmark.runs.start import RunInputs, start_or_continue

HOSTS = tuple(f"n{number}" for number in range(12))
PAIRS, REPEATS = 3, 2


def congested(folder: Path, factors: dict[int, float], *, better: str = "higher") -> Run:
    """Return a run of three pairs; the rate of a pair beside the load is divided by its factor."""
    kit = make_kit(folder)
    kit.case("noisy", launch="mpi", sweep={"size": 7, "ranks": "{nodes}"}, suites={})
    load = {"case": "noisy", "place": "other-nodes", "baseline": True}
    use = {"sweep": {"size": 1, "nodes": 6, "ranks": 6}, "repeats": REPEATS, "load": load}
    metric = {"unit": "MB/s", "better": better, "bound": "universal", "what": "how fast"}
    read = copy.deepcopy(FAKE["read"])
    read["parameters"]["pair"] = "int"
    read["keys"] = {r"(?P<key>rate) (?P<value>\S+)(?: of copy (?P<pair>\d+))?": {"rate": "rate"}}
    uses: dict[str, Any] = {"suites": {"quick": use}, "metrics": {"rate": metric}, "read": read}
    kit.case(launch="mpi", copies=PAIRS, **uses)
    site = kit.site(hosts=HOSTS)
    run, _ = start_or_continue(
        folder / "runs",
        RunInputs(kit.plan(site=site, cores=1), kit.benchmarks(), site, ""),
        run_id="c",
    )
    write_software(run, kit.software())
    random = np.random.default_rng(1)
    for step in run.plan.steps():
        _write(run, step, factors if step.load else {}, random, better)
    return run


def _write(
    run: Run, step: Step, factors: dict[int, float], random: np.random.Generator, better: str
) -> None:
    rates = {}
    for pair in range(1, PAIRS + 1):
        rate, factor = 100 * random.normal(1, 0.001), factors.get(pair, 1.0)
        rates[pair] = rate / factor if better == "higher" else rate * factor
    output = "".join(f"rate {rate} of copy {pair}\n" for pair, rate in rates.items())
    own, load = (_binding(each) for each in (step, step.load.step if step.load else None))
    files = {"stdout": f"size 1\n{output}END\n"}
    if step.load:
        report = '{"folder": "unfinished-1", "running": true, "ranks": %d, "binding": [%s]}'
        entries = ",".join(
            f'{{"rank": {e["rank"]}, "host": "{e["host"]}", "cpus": "{e["cpus"]}"}}' for e in load
        )
        files["load.json"] = report % (len(load), entries)
    write_execution(run.folder / "workdir/steps" / step.id, step.nodes[0], files, binding=own)


def _binding(step: Step | None) -> list[dict[str, object]]:
    return [
        {"rank": number, "host": step.nodes[rank.node], "cpus": ",".join(map(str, rank.cpus))}
        for number, rank in enumerate(step.cpus if step else ())
        if step
    ]


@pytest.mark.parametrize("better", ["higher", "lower"])
def test_the_distribution_over_pairs_and_repeats(tmp_path: Path, better: str) -> None:
    run = congested(tmp_path, {1: 1.5, 2: 2.0, 3: 8.0}, better=better)
    (slowdown,) = pair_findings(judged(run)).slowdowns
    assert (slowdown.pairs, len(slowdown.ratios)) == (PAIRS, PAIRS * REPEATS)
    assert slowdown.percentile(50) == pytest.approx(2.0, rel=0.01)
    assert slowdown.ratios[-1] == pytest.approx(8.0, rel=0.01)
    assert slowdown.worst == ("n4", "n10")
    assert slowdown.as_json()["max"] == slowdown.ratios[-1]


def test_without_congestion_it_is_near_one(tmp_path: Path) -> None:
    (slowdown,) = pair_findings(judged(congested(tmp_path, {}))).slowdowns
    assert slowdown.ratios[0] == pytest.approx(1, abs=0.01)
    assert slowdown.ratios[-1] == pytest.approx(1, abs=0.01)


def test_the_report_has_the_distribution(tmp_path: Path) -> None:
    run = congested(tmp_path, {1: 1.5, 2: 2.0, 3: 8.0})
    page = view(gather(run, judged(run)))
    (section,) = [each for each in page.sections if each.id == "slowdown"]
    text = re.sub(r"\s+", " ", str(section.blocks[0].tables))
    assert "6 of 3 pairs" in text
    assert "n4, n10" in text


def test_percentiles_are_between_neighbours() -> None:
    slowdown = Slowdown(None, "lower", (1.0, 2.0, 3.0, 4.0, 5.0), 5, ())  # type: ignore[arg-type]
    assert [slowdown.percentile(part) for part in (0, 50, 90, 100)] == [1, 3, 4.6, 5]
