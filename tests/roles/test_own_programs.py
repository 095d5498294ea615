"""A program of the kit is compiled by the play, and measures."""

from __future__ import annotations

import shutil

import pytest
import yaml
from tests.folders import ROOT
from tests.roles.kit import Kit

pytestmark = [pytest.mark.slow, pytest.mark.soak]


def test_the_acceptance_compiles_the_program_and_measures_with_it(kit: Kit) -> None:
    for name in ("common/sources", "local"):
        shutil.copytree(
            ROOT / "environments" / name, kit.folder / "environments" / name, dirs_exist_ok=True
        )
    case = yaml.safe_load((ROOT / "benchmarks/os-noise.yml").read_text(encoding="utf-8"))
    case["suites"] = {"quick": {"scope": "each-node", "sweep": {"seconds": 1}}}
    (kit.folder / "benchmarks/nap.yml").unlink()
    (kit.folder / "benchmarks/os-noise.yml").write_text(yaml.safe_dump(case, sort_keys=False))
    (kit.folder / "benchmarks/suites.yml").write_text("suites: {quick: {title: noise}}\n")
    assert kit.play("acceptance.yml").code in (0, 2), "the machine may be disturbed"
    results = kit.verdict()["results"]
    assert {each["metric"] for each in results} == set(case["metrics"])
    assert not [each["reason"] for each in results if each["verdict"] == "INVALID"]
    assert [path.name for path in kit.folder.glob(".provision/os-noise-*/bin/*")] == ["os_noise"]
