"""References select figures of their own system, or `cases --check` refuses them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.folders import ROOT

from proofmark.cli.main import main


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a checkout with the cases and inventories of the kit, which is the current folder.

    The KNL partition has fewer nodes. tests/verbs.txt has the command with all of them.
    """
    for name in ("benchmarks", "inventory"):
        shutil.copytree(ROOT / name, tmp_path / name)
    hosts = tmp_path / "inventory/nurion/hosts.yml"
    hosts.write_text(hosts.read_text(encoding="utf-8").replace("0001:8305", "0001:0100"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def change(checkout: Path, *changes: dict[str, Any]) -> int:
    """Replace one reference of STREAM by copies with these changes; return its place."""
    path = checkout / "benchmarks" / "stream.yml"
    case = yaml.safe_load(path.read_text(encoding="utf-8"))
    (place,) = (n for n, each in enumerate(case["references"]) if each.get("system") == "skl")
    plain = case["references"][place]
    case["references"][place : place + 1] = [{**plain, **each} for each in changes]
    path.write_text(yaml.safe_dump(case, sort_keys=False), encoding="utf-8")
    return place


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
    change(checkout, changes)
    assert (main(["cases", "--check"]), *capsys.readouterr()) == (0, "", "")


WRONG: list[tuple[dict[str, Any], str]] = [
    (
        {"where": {"threads": 41}},
        "where.threads: found 41; accepted: 1, 2, 3, ",
    ),
    ({"where": {"threads": "40"}}, "where.threads: found '40'; accepted: "),
    ({"where": {"memory": "mcdram"}}, "where.memory: found 'mcdram'; accepted: 'ddr'"),
    ({"mode": "quadrant-flat"}, "mode: found 'quadrant-flat'; accepted: current"),
    (
        {"system": "slk"},
        "system: found 'slk', which no inventory declares, did you mean 'skl'?",
    ),
    ({"system": "local"}, "system: found 'local', which no inventory declares"),
]
"""Changes of a reference, and the error message of each."""


@pytest.mark.fault("reference-selects-nothing")
def test_references_that_select_no_figure_of_their_system(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = change(checkout, *(changes for changes, _ in WRONG))
    code, (printed, errors) = main(["cases", "--check"]), capsys.readouterr()
    lines = errors.splitlines()
    assert (code, printed, len(lines)) == (3, "", len(WRONG))
    begin = f"{checkout}/benchmarks/stream.yml: references."
    expected = {place: words for place, (_, words) in enumerate(WRONG, start=first)}
    for place, words in expected.items():
        assert any(f"{begin}{place}.{words}" in line for line in lines), (place, errors)


@pytest.mark.fault("reference-selects-nothing")
def test_wrong_facts_of_the_system_are_reported(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    facts = checkout / "inventory/nurion/group_vars/skl/partition.yml"
    facts.write_text(facts.read_text(encoding="utf-8").replace("scheduler:", "sheduler:"))
    assert main(["cases", "--check"]) == 3
    assert "partition.sheduler: found" in capsys.readouterr().err
