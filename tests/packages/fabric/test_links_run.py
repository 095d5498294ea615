"""The slow elements of a fabric in the verdict and the report of a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.fixtures.fat_tree import FatTree
from tests.fixtures.finished import write_execution, write_reports, write_software, written_verdict
from tests.fixtures.kit import make_kit
from tests.fixtures.report_run import page_of

from proofmark.judge.verdict import Verdict
from proofmark.packages.fabric.elements import paths_of
from proofmark.packages.fabric.links import LinkFit
from proofmark.packages.fabric.samples import fair_rates
from proofmark.runs.run import Run
from proofmark.runs.start import RunInputs, start_or_continue
from proofmark.site.partition import Partition

HOSTS = tuple(f"n{number:02d}" for number in range(1, 17))
FABRIC = {"levels": [{"name": "leaf", "hosts_per_switch": 4, "uplinks": 1}], "rate": 1e8}


def run_of_rounds(folder: Path, slow: str, origin: str) -> Run:
    """Write a finished run of rounds on four switches of four nodes, whose `slow` element is so."""
    kit = make_kit(folder)
    use: dict[str, Any] = {
        "scope": "each-pair",
        "pairs": "rounds",
        "sweep": {"size": 1, "nodes": 2},
    }
    kit.case(suites={"quick": [use, {**use, "pairs": "alone"}]})
    site = kit.site(hosts=HOSTS)
    facts = {**site.partition.model_dump(), "fabric": FABRIC, "origin": origin}
    changes = {"partition": Partition.model_validate(facts), "partition_hosts": list(HOSTS)}
    site = site.model_copy(update=changes)
    run, _ = start_or_continue(
        folder / "runs", RunInputs(kit.plan(site=site), kit.benchmarks(), site, ""), run_id="links"
    )
    write_software(run, kit.software())
    paths = paths_of(site.partition.fabric, HOSTS)
    capacity = paths.capacity.copy()
    tree = FatTree(site.partition.fabric, len(HOSTS))
    if slow:
        capacity[tree.elements.links(tree.element(slow))] *= 0.25
    generator = np.random.default_rng(3)
    for step in run.plan.steps():
        pairs = step.instances()
        numbers = np.array([[HOSTS.index(host) for host in pair] for pair in pairs.values()])
        both = np.concatenate([paths.paths(numbers), paths.paths(numbers[:, ::-1])])
        rates = 100 * fair_rates(both, capacity).reshape(2, -1).min(axis=0)
        rates *= np.exp(0.02 * generator.standard_normal(len(rates)))
        for (pair, hosts), rate in zip(pairs.items(), rates, strict=True):
            text = {"stdout": f"size 1\nrate {rate:.4f}\nEND\n"}
            write_execution(run.files.step(str(pair)).folder, hosts[0], text)
    return run


def judged(folder: Path, slow: str, origin: str = "emulated") -> tuple[Run, Verdict]:
    run = run_of_rounds(folder, slow, origin)
    write_reports(run)
    return run, written_verdict(run)


@pytest.mark.parametrize("origin", ["measured", "emulated"])
def test_a_slow_uplink_fails_its_pairs_and_accuses_no_node(tmp_path: Path, origin: str) -> None:
    run, verdict = judged(tmp_path, "the uplink of leaf-003", origin)
    fit = verdict.added["fabric"]
    assert isinstance(fit, LinkFit)
    (element,) = fit.elements
    assert (element.kind, element.name, element.nodes) == (
        "uplink", "the uplink of leaf-003", "n[09-12]"
    )  # fmt: skip
    assert element.ratio == pytest.approx(0.25, rel=0.1)
    assert verdict.bad.nodes == () == verdict.bad.links
    failed = list(verdict.of("FAIL"))
    assert failed
    assert all("the uplink of leaf-003" in result.reason for result in failed)
    assert verdict.exit_code() == 1
    written = json.loads(run.files.verdict.read_text())["links"]
    assert written["elements"][0]["name"] == "the uplink of leaf-003"
    (across,) = written["bisection"]
    assert (across["level"], across["pairs"]) == ("leaf", 8)
    assert 0 < across["share"] < 1
    page = page_of(run, verdict)
    assert "1 slow element" in page
    assert "the uplink of leaf-003 (0.2" in page
    assert (run.files.plots / "links.csv").read_text().startswith("from_node,to_node,ratio\n")


@pytest.mark.core("the package works")
def test_a_slow_port_is_a_bad_node_with_its_pairs(tmp_path: Path) -> None:
    _, verdict = judged(tmp_path, "port of n00006")
    fit = verdict.added["fabric"]
    assert isinstance(fit, LinkFit)
    assert [element.name for element in fit.elements] == ["port of n07"]
    assert [node.host for node in verdict.bad.nodes] == ["n07"]
    assert verdict.bad.links == ()


def test_a_healthy_fabric_is_stated_in_the_report(tmp_path: Path) -> None:
    run, verdict = judged(tmp_path, "")
    fit = verdict.added["fabric"]
    assert isinstance(fit, LinkFit)
    assert fit.elements == ()
    assert fit.untested == ()
    assert verdict.counts["FAIL"] == 0
    page = page_of(run, verdict)
    assert "No element of the fabric is slow." in page
