"""The output of node-tools.sh, from recorded versions of programs and from manuals."""

from __future__ import annotations

import shutil
import subprocess
from importlib.resources import files
from pathlib import Path

import pytest
from tests.fixtures.kit import SYMBOLS, make_kit, topology
from tests.folders import DATA, PROBES

from proofmark.common.errors import BadInput
from proofmark.packages.survey.answers import (
    Fact,
    NodeReport,
    bmc_address,
    bmc_manufacturer,
    modules,
    rates,
    read_tools,
    versions,
)
from proofmark.packages.survey.findings import rates_found
from proofmark.plan.expansion import make_plan
from proofmark.site.machines import Machine
from proofmark.site.node.facts import parse_probe

LAN = (DATA / "schedulers/ipmitool-lan.txt").read_text().splitlines()
MC = (DATA / "schedulers/ipmitool-mc.txt").read_text().splitlines()


@pytest.mark.parametrize(
    ("line", "version"),
    [
        ("gcc: /usr/bin/gcc: gcc (Debian 12.2.0-14+deb12u1) 12.2.0", "gcc 12.2.0, /usr/bin/gcc"),
        ("clang: /c: clang version 17.0.6 (Red Hat 17.0.6-5.el9)", "clang 17.0.6, /c"),
        ("nvc: /n: nvc 24.7-0 64-bit target on x86-64 Linux", "nvc 24.7, /n"),
        ("mpirun: /m: mpirun (Open MPI) 4.1.4", "mpirun 4.1.4, /m"),
        ("cc: /cray/cc: no licence", "cc of unknown version, /cray/cc"),
    ],
)
def test_the_version_is_not_that_of_the_package(line: str, version: str) -> None:
    assert versions([line, "srun: /usr/bin/srun: slurm-wlm 22.05.8"]) == [version]


def test_folders_and_families_of_modules_are_no_modules() -> None:
    lines = ("Modules Release 5.2.0", "/etc/modulefiles:", "gcc/", "gcc/13.2.0", "x y", "")
    assert modules(lines) == ("Modules Release 5.2.0", ["gcc/13.2.0"])


def test_address_and_manufacturer_of_a_bmc() -> None:
    assert (bmc_address(LAN), bmc_manufacturer(MC)) == ("127.9.0.1", "Dell Inc.")
    assert (bmc_address(MC), bmc_manufacturer(LAN)) == ("", "")


@pytest.mark.parametrize("value", ["0.0.0.0", "::", "unset", "10.0.0.1; reboot", ""])
def test_an_address_that_is_none_is_not_used(value: str) -> None:
    assert bmc_address([f"IP Address              : {value}"]) == ""


def test_an_unknown_manufacturer_is_not_used() -> None:
    assert bmc_manufacturer(["Manufacturer Name         : Unknown (0x9325)"]) == ""


@pytest.mark.fault("init-tool-fails")
def test_a_section_that_failed_has_its_reason() -> None:
    head = "proofmark-probe 1 tools\n=== bmc\n"
    assert read_tools(f"{head}! bmc: needs root\n=== end\n", "bmc", "n1") == ((), "needs root")
    assert read_tools(f"{head}=== end\n", "bmc", "n1") == ((), "no output for bmc")
    with pytest.raises(BadInput, match="n1: bmc: found the end of the text"):
        read_tools(f"{head}| IP Address : 10.0.0.1\n", "bmc", "n1")


def test_a_node_measures_its_rates_and_keeps_nothing(tmp_path: Path) -> None:
    """The real script runs on this machine. It prints no rate of a folder that it cannot write."""
    script = files("proofmark.packages.survey") / "node-tools.sh"
    for folder, names in ((tmp_path, {"flops", "write"}), (tmp_path / "none", {"flops"})):
        done = subprocess.run(
            ["sh", str(script), "rates", str(folder)], capture_output=True, text=True, check=True
        )
        lines, _ = read_tools(done.stdout, "rates", "node-tools.sh")
        found = rates(lines)
        assert found.keys() == names & found.keys()
        assert all(1e5 < rate < 1e17 for rate in found.values())
        assert ("flops" in found) == bool(shutil.which("cc"))
    assert list(tmp_path.iterdir()) == []


def test_measured_rates_are_facts_by_which_a_plan_estimates_times(tmp_path: Path) -> None:
    facts = parse_probe((PROBES / "live-kvm-zen3.txt").read_text(encoding="utf-8"), "probe")
    lines = ("flops: 6e+10", "write: 1.5e9", "flops: x")
    report = NodeReport("n1", facts, {"rates": lines})
    found = {
        key: each.value
        for key, each in rates_found(report, facts).items()
        if isinstance(each, Fact)
    }
    assert found == {"facts.core_flops": 6e10 / facts.cores, "scratch.client_bytes_per_s": 1.5e9}
    assert rates_found(NodeReport("n1", facts), facts) == {}
    kit = make_kit(tmp_path)
    kit.case(cost={"seconds": "{1e12 / likely_flops}"})
    for measured, seconds in (({}, 25), ({"core_flops": 1e12}, 1)):
        here = kit.site(facts=measured)
        machine = Machine({**SYMBOLS, "likely_flops": 4e10}, topology())
        plan = make_plan(kit.benchmarks(), "quick", here, machine)
        assert next(plan.steps()).seconds == seconds
        assumed = {key for key in plan.assumed if key.startswith("facts.")}
        assert assumed == ({*()} if measured else {"facts.core_flops"})
