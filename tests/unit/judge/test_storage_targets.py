"""Storage targets are compared with each other: a slow one is named, and no node for it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.emulators.stripes import write_tool
from tests.fixtures.finished import reports_of, written_verdict
from tests.fixtures.kit import make_kit, steps_of
from tests.fixtures.report_run import page_of

from proofmark.cases.suite import Benchmarks
from proofmark.common.files import write_atomic
from proofmark.common.message import NOTHING
from proofmark.judge.aggregate import aggregate
from proofmark.judge.diagnosis.storage_faults import slow_targets
from proofmark.judge.fleet.fleet import Fleet, measure_fleet
from proofmark.judge.fleet.populations import LIKE_TARGETS, Kinds
from proofmark.judge.results import WORDS, Results
from proofmark.records.columns import Record, Records
from proofmark.site.file_systems import Scratch

TARGETS = 6
PROGRAM = """
: >"$SCRATCH/data"
target=$(lfs getstripe -i "$SCRATCH/data")
echo "size 1"; echo "rate $(cat {folder}/speed.$target)"; echo END
"""
"""A program whose rate is that of the target on which the emulated `lfs` put its file."""


def record(target: int, value: float, node: str = "n[1-4]", **parameters: Any) -> Record:
    return Record(
        *("run", f"step-{target}", 1, "system", "partition", node, "measured", "fake", "FAKE"),
        *("rate", value, "MB/s", 1, "current", "close"),
        {"storage_target": target, "stripe_count": 1, **parameters},
        *("hash", True, NOTHING),
    )


def compared(tmp_path: Path, records: Sequence[Record]) -> tuple[Fleet, Results]:
    """Return the comparison of `records`, and their results."""
    benchmarks: Benchmarks = make_kit(tmp_path).benchmarks()
    figures = aggregate(Records.of(records))
    fleet = measure_fleet(figures, benchmarks, Kinds({}), 0.01)
    verdict = np.full(len(figures), WORDS.index("UNJUDGED"))
    verdict[fleet.failed] = WORDS.index("FAIL")
    return fleet, Results(figures, verdict, {}, fleet)


def rates(count: int) -> list[float]:
    return [round(100 + 0.5 * ((7 * number) % 5 - 2), 3) for number in range(count)]


def test_targets_are_one_group_for_each_setting(tmp_path: Path) -> None:
    """Another number of stripes, or other nodes, is another comparison."""
    measured = [
        record(target, value, node, stripe_count=stripes)
        for node in ("n[1-4]", "n[5-8]")
        for stripes in (1, 2)
        for target, value in enumerate(rates(8))
    ]
    fleet, results = compared(tmp_path, measured)
    groups = [each for each in fleet.figures if each.members == LIKE_TARGETS]
    assert [each.fleet_limit.nodes for each in groups] == [8] * 4
    assert not slow_targets(results)
    parameters = groups[0].as_json()["parameters"]
    assert parameters == {"stripe_count": 1}


def test_the_slow_target_of_24_is_named_with_its_ratio(tmp_path: Path) -> None:
    measured = [record(target, value) for target, value in enumerate(rates(24))]
    measured[7] = record(7, 40.0)
    fleet, results = compared(tmp_path, measured)
    (figure,) = fleet.figures
    assert figure.flagged == ("7",)
    (slow,) = slow_targets(results)
    assert slow.message == "storage target 7 of scratch: 0.4 × the median of 24"
    (result,) = slow.results
    assert "0.4 × the median of 24 storage targets" in result.reason


def test_three_targets_are_too_few(tmp_path: Path) -> None:
    fleet, _ = compared(tmp_path, [record(target, 100 - 50 * (target == 2)) for target in range(3)])
    (figure,) = fleet.figures
    expected = "3 storage targets, 50 % apart: too few for a comparison (4 needed)"
    assert (figure.flagged, figure.fleet_limit.powerless) == ((), expected)


@pytest.mark.fault("slow-storage-target")
@pytest.mark.parametrize("slow", [None, 2], ids=["control", "fault"])
def test_a_slow_target_is_named_by_the_steps_of_a_run(tmp_path: Path, slow: int | None) -> None:
    """Each step writes on one target of the emulated `lfs`; one target has 0.4 of the speed."""
    kit = make_kit(tmp_path)
    for target, rate in enumerate(rates(TARGETS)):
        value = 40 if target == slow else rate
        (tmp_path / f"speed.{target}").write_text(f"{value}\n", encoding="utf-8")
    kit.program(PROGRAM.format(folder=tmp_path))
    sweep = {"size": 1, "stripe_count": 1, "storage_target": "{storage_targets}"}
    kit.case(sweep=sweep, cost={"seconds": 1, "bytes": 1})
    (tmp_path / "scratch").mkdir()
    scratch = Scratch(path=str(tmp_path / "scratch"), type="lustre", storage_targets=TARGETS)
    site = kit.site()
    partition = site.partition.model_copy(update={"scratch": scratch})
    site = site.model_copy(update={"partition": partition})
    run = kit.run(site=site)
    tools = write_tool(tmp_path / "tools", "lfs", TARGETS)
    environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}
    steps = steps_of(run)
    assert len(steps) == TARGETS
    for step in steps:
        subprocess.run(["dash", str(step / "run.sh")], check=True, env=environment, timeout=300)
    run.files.nodes.mkdir()
    for host, node in reports_of(run).items():
        write_atomic(run.files.nodes / f"{host}.json", node.model_dump_json())
    verdict = written_verdict(run)
    assert [each.reason for each in verdict.results if each.verdict == "INVALID"] == []
    written = json.loads(run.files.verdict.read_text(encoding="utf-8"))
    named = [(each["target"], each["file_system"]) for each in written["storage_targets"]]
    assert named == ([] if slow is None else [(slow, "scratch")])
    assert written["counts"]["FAIL"] == len(named)
    assert written["fleet"]["nodes"] == []
    report = page_of(run, verdict)
    expected = f"storage target {slow} of scratch: 0.4 × the median of {TARGETS}"
    assert (expected in report) is (slow is not None)
    assert "Storage targets" in report
