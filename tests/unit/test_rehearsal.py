"""The parts of a rehearsal: what its nodes look like, what its faults are, what its answer is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.bmc.machine import AS_DELIVERED
from tests.bmc.machine import FAULTS as BMC_FAULTS
from tests.bmc.node import notation
from tests.rehearsal.__main__ import NOT_NAMED, STOPPED, answer, named_by
from tests.rehearsal.faults import FAULTS
from tests.rehearsal.play import Played
from tests.rehearsal.shapes import SHAPES

from proofmark.firmware import wanted
from proofmark.machines import topology_of_mode
from proofmark.modes.proof import layout_of
from proofmark.site import Site, load_site
from proofmark.topology import Topology

ROOT = Path(__file__).parents[2]
NAMED = "fatal: DENIED: 1 nodes (rknl0002): once\n"


@pytest.fixture(scope="module", params=["knl", "skl"])
def site(request: pytest.FixtureRequest) -> Site:
    """Read the site where no rehearsal runs."""
    return load_site(ROOT / "inventory/rehearsal", request.param)


def test_nodes_show_in_each_mode_what_the_site_declares(site: Site) -> None:
    assert len(site.hosts) == 8 and site.partition.origin == "emulated"
    assert site.partition.firmware
    for name, mode in site.partition.modes.items():
        attributes: dict[str, Any] = {**AS_DELIVERED[site.partition_name]}
        attributes |= wanted(site.partition.firmware, mode.settings)
        shown = Topology.from_lstopo(notation(attributes, site.partition_name))
        assert layout_of(shown) == layout_of(topology_of_mode(site, name)), name


def test_each_processor_stands_in_cpuinfo(site: Site) -> None:
    shape = SHAPES[site.partition_name]
    blocks = shape.cpuinfo().rstrip().split("\n\n")
    assert len(blocks) == shape.slurm["CPUs"]
    last = dict(line.split(":", 1) for line in blocks[-1].splitlines())
    told = {key.strip(): value.strip() for key, value in last.items()}
    assert (told["processor"], told["core id"]) == (f"{len(blocks) - 1}", f"{shape.cores - 1}")


def test_a_verdict_names_bad_nodes_and_jobs_that_ended_early() -> None:
    fleet = {"nodes": [{"node": "rknl0002", "likely": "the node itself"}]}
    told = named_by({"fleet": fleet, "coverage": {"stopped": ["job 00-0001: lost a node"]}})
    assert told == ["bad node: rknl0002: the node itself", "job 00-0001: lost a node"]
    assert FAULTS["slow-link"].says.format(node="rknl0002") in told[0]


def test_its_faults_are_those_that_must_be_caught() -> None:
    known = yaml.safe_load((ROOT / "tests/faults.yml").read_text())
    assert FAULTS.keys() <= known.keys()
    assert {fault.bmc for fault in FAULTS.values()} - {""} <= BMC_FAULTS.keys()


@pytest.mark.parametrize(
    ("name", "played", "code"),
    [
        ("", Played(0, "", False), 0),
        ("", Played(2, "", False), 2),
        ("", Played(0, "", True), STOPPED),
        ("bmc-wrong-password", Played(2, NAMED, False), 2),
        ("bmc-wrong-password", Played(2, NAMED.replace("0002", "0003"), False), NOT_NAMED),
        ("bmc-wrong-password", Played(0, NAMED, False), NOT_NAMED),
        ("scheduler-restarts", Played(0, "PASS: 3 PASS, 0 FAIL, 0 INVALID", False), 0),
        ("scheduler-restarts", Played(2, "0 FAIL, 0 INVALID", False), NOT_NAMED),
    ],
)
def test_the_answer_is_that_of_the_playbooks_if_it_names_the_fault(
    name: str, played: Played, code: int
) -> None:
    assert answer(name, FAULTS.get(name), "rknl0002", played) == code
