"""References select figures of their own system, or `cases --check` refuses them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.folders import ROOT

from proofmark.cli.main import main

STREAM_OF_SKL = 2
"""The index of the reference of STREAM for the system skl."""


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a checkout with the cases and inventories of the kit, which is the current folder."""
    for name in ("benchmarks", "inventory"):
        shutil.copytree(ROOT / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def change(checkout: Path, **changes: Any) -> None:
    """Change keys of one reference of STREAM."""
    path = checkout / "benchmarks" / "stream.yml"
    case = yaml.safe_load(path.read_text(encoding="utf-8"))
    case["references"][STREAM_OF_SKL].update(changes)
    path.write_text(yaml.safe_dump(case, sort_keys=False), encoding="utf-8")


@pytest.mark.parametrize(
    "changes",
    [
        {},
        pytest.param({"where": {"threads": 39}}, marks=pytest.mark.soak),
        pytest.param({"mode": "current"}, marks=pytest.mark.soak),
    ],
)
def test_the_references_of_the_kit_select_figures(
    checkout: Path, capsys: pytest.CaptureFixture[str], changes: dict[str, Any]
) -> None:
    """The control; the other changes select other figures of the same system."""
    change(checkout, **changes)
    assert (main(["cases", "--check"]), *capsys.readouterr()) == (0, "", "")


@pytest.mark.fault("reference-selects-nothing")
@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            {"where": {"threads": 41}},
            "where.threads: found 41, did you mean 40?; accepted: 1, 2, 3, ",
        ),
        ({"where": {"threads": "40"}}, "where.threads: found '40', did you mean 40, a number?"),
        ({"where": {"memory": "mcdram"}}, "where.memory: found 'mcdram'; accepted: 'ddr'"),
        ({"mode": "quadrant-flat"}, "mode: found 'quadrant-flat'; accepted: current"),
        (
            {"system": "slk"},
            "system: found 'slk', which no inventory declares, did you mean 'skl'?",
        ),
        ({"system": "local"}, "system: found 'local', which no inventory declares"),
    ],
)
def test_a_reference_that_selects_no_figure_of_its_system(
    checkout: Path, capsys: pytest.CaptureFixture[str], changes: dict[str, Any], expected: str
) -> None:
    change(checkout, **changes)
    code, (printed, said) = main(["cases", "--check"]), capsys.readouterr()
    file = f"{checkout}/benchmarks/stream.yml"
    assert (code, printed) == (3, "")
    assert said.startswith(f"proofmark: {file}: references.{STREAM_OF_SKL}.{expected}")
    assert said.count("\n") == 1


@pytest.mark.fault("reference-selects-nothing")
def test_wrong_facts_of_the_system_are_reported(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    facts = checkout / "inventory/nurion/group_vars/skl/partition.yml"
    facts.write_text(facts.read_text(encoding="utf-8").replace("scheduler:", "sheduler:"))
    assert main(["cases", "--check"]) == 3
    assert "partition.sheduler: found" in capsys.readouterr().err
