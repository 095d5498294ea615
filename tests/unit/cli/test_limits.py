"""`check` and `plan` with contract limits that select nothing, or figures of other suites."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.fixtures.kit import write_contract
from tests.folders import ROOT

from proofmark.cli.main import main

LIMIT: dict[str, Any] = {
    "case": "hpl",
    "metric": "rmax",
    "source": "tender",
    "value": 20,
    "unit": "TFLOPS",
    "at_least": 1.0,
}
WRONG: list[dict[str, Any]] = [
    {"where": {"nodes": "16"}},
    {"where": {"memory": "ddrr"}},
    {"mode": "flatt"},
    {"system": "sklx"},
]
PREFIXES = ("--prefixes", "/opt/proofmark")
"""Spack cannot install below a checkout whose path has a blank: the tests run in such a one."""
RIGHT: list[dict[str, Any]] = [
    {"where": {"nodes": 16}},
    {"where": {"memory": "ddr"}, "value": 0.001},
]


@pytest.fixture
def inventory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a site with the partition skl of paper P1."""
    monkeypatch.chdir(ROOT)
    shutil.copytree(ROOT / "inventory" / "nurion", tmp_path / "nurion")
    return tmp_path / "nurion"


def write(inventory: Path, changes: list[dict[str, Any]]) -> None:
    write_contract(inventory, [{**LIMIT, **change} for change in changes])


def called(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    code = main([str(word) for word in words])
    return code, *capsys.readouterr()


@pytest.mark.fault("limit-selects-nothing")
def test_every_wrong_limit_is_a_mistake_with_its_line(
    inventory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(inventory, [*RIGHT, *WRONG])
    code, printed, said = called(capsys, "check", "-i", inventory, "-l", "skl")
    assert (code, printed) == (3, "")
    lines = said.splitlines()
    found = ["'sklx'", "'16'", "'ddrr', did you mean 'ddr'?", "'flatt'"]
    keys = ["5.system", "2.where.nodes", "3.where.memory", "4.mode"]
    assert len(lines) == len(keys)
    file = inventory / "contract.yml"
    text = file.read_text(encoding="utf-8").splitlines()
    for line, key, value in zip(lines, keys, found, strict=True):
        place, _, rest = line.removeprefix(f"proofmark: {file}:").partition(": ")
        assert rest.startswith(f"items.{key}: found {value}")
        assert key.rpartition(".")[2] in text[int(place) - 1]

    plan = ("plan", "-i", inventory, "-l", "skl", "--suite", "node")
    code, printed, said = called(capsys, *plan)
    assert (code, printed, said.splitlines()) == (3, "", lines[:1])
    write(inventory, [*RIGHT, *WRONG[:-1]])
    code, printed, said = called(capsys, *plan)
    assert (code, printed, said.splitlines()) == (3, "", lines[1:])


@pytest.mark.fault("limit-of-another-suite")
def test_limits_of_other_suites_are_listed(
    inventory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(inventory, RIGHT)
    code, printed, said = called(capsys, "check", "-i", inventory, "-l", "skl")
    assert (code, said) == (0, "")
    of_limits = [line for line in printed.splitlines() if line.startswith("limit: skl: ")]
    assert len(of_limits) == len(RIGHT)
    assert of_limits[0].startswith("limit: skl: hpl rmax (nodes=16): in system, p1, full; not in ")

    plan = ("plan", "-i", inventory, "-l", "skl", "--suite", "node", *PREFIXES)
    code, printed, said = called(capsys, *plan)
    assert (code, said) == (0, "")
    lines = [line for line in printed.splitlines() if "not in this suite" in line]
    assert lines == ["not in this suite: limit hpl rmax (nodes=16), of system, p1, full"]
    code, printed, said = called(capsys, *plan, "--json")
    assert (code, json.loads(printed)["notes"], said.splitlines()[:1]) == (0, lines, lines)


def test_a_plan_without_other_limits_lists_none(
    inventory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The control."""
    write(inventory, RIGHT[1:])
    plan = ("plan", "-i", inventory, "-l", "skl", "--suite", "node", *PREFIXES)
    code, printed, _ = called(capsys, *plan)
    assert code == 0
    assert "not in this suite" not in printed
