"""Rpeak nominal on the page: what the judge knows, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest
from tests.fixtures.probes import node_facts

from proofmark.common.message import Message
from proofmark.report.sections import main_figures
from proofmark.report.sections.node_provenance import described
from proofmark.site.hardware import StatedNode
from proofmark.site.node.facts import NodeFacts
from proofmark.site.node.parts import Dimm

FUTURE: dict[str, Any] = {
    "cpu_model": "AMD EPYC of tomorrow",
    "architecture": "zen4",
    "base_hz": 2.4e9,
}


@pytest.mark.parametrize(
    ("node", "stated", "rate"),
    [
        (node_facts(), StatedNode(), "3072 GFlop/s"),
        (node_facts(**FUTURE), StatedNode(), None),
        (node_facts(virtual="kvm"), StatedNode(), None),
        (node_facts(**FUTURE), StatedNode(flop_per_cycle=16, clock_hz=2e9), "1280 GFlop/s"),
    ],
    ids=["Skylake", "no row", "virtual", "stated"],
)
def test_the_page_states_what_the_judge_knows(
    node: NodeFacts, stated: StatedNode, rate: str | None
) -> None:
    assert dict(described(node, stated)).get("Rpeak nominal") == rate


def test_empty_slots_are_counted_behind_modules() -> None:
    """Without a module the slots say nothing: the node did not report its memory."""
    module = Dimm(locator="A1", bytes=2**34, rated=2666, configured=2666)
    for dimms, shown in (((module, module), "; 4 slots empty"), ((), "not reported")):
        node = node_facts(dimms=dimms, dimm_slots_empty=4, absent={})
        assert dict(described(node, StatedNode()))["Memory modules"].endswith(shown)


def test_a_fact_that_a_node_did_not_report_is_said() -> None:
    """An empty text is no value, and a reason that is known is stated."""
    why = Message("absent-no-value", path="etc")
    shown = dict(described(node_facts(os="", cmdline="", absent={"os": why}), StatedNode()))
    assert shown["Operating system"] == f"not reported ({why})"
    assert shown["Kernel command line"] == "not reported"


@pytest.mark.parametrize("key", ["hpl", "triad", "pingpong"])
def test_a_processor_whose_cores_no_source_states_has_no_usual_value(key: str) -> None:
    """Its source alone is no value; the control has both."""
    for model in ("POWER6", "ARM part 0xd4f"):
        assert main_figures._of_processor(key, node_facts(cpu_model=model)) == ("", "")
    value, source = main_figures._of_processor(key, node_facts())
    assert bool(value) == bool(source) == (key != "pingpong")
    assert "virtual" not in source and (not source or "(20 cores)" in source)
