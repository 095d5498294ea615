"""Rpeak nominal in the report: what the judge knows, and nothing else."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.folders import PROBES

from proofmark.judge.references.derived import Derived, derive
from proofmark.report.run_data import RunData
from proofmark.report.sections.peak import peak_of_run, section
from proofmark.site.hardware import StatedNode
from proofmark.site.node.facts import NodeFacts, parse_probe

ZEN4 = {"cpu_model": "AMD EPYC 9654 96-Core Processor", "architecture": "zen4", "base_hz": 2.4e9}
FUTURE = {"cpu_model": "AMD EPYC of tomorrow", "architecture": "zen4", "base_hz": 2.4e9}


def facts(**changes: Any) -> NodeFacts:
    text = (PROBES / "skl-2x6148.txt").read_text(encoding="utf-8")
    return parse_probe(text, "probe").model_copy(update=changes)


def run_of(node: NodeFacts, stated: StatedNode) -> RunData:
    """Return what the section reads of a run with one node and no figure."""
    site = SimpleNamespace(partition=SimpleNamespace(node=stated))
    verdict = SimpleNamespace(about=lambda _: [])
    return cast(RunData, SimpleNamespace(facts=[node], nodes=[node], site=site, verdict=verdict))


@pytest.mark.parametrize(
    ("node", "stated", "row"),
    [
        (facts(), StatedNode(), ("40", "32", "2.4", "3072 GFlop/s")),
        (facts(**ZEN4), StatedNode(), ("40", "16", "2.4", "1536 GFlop/s")),
        (facts(**FUTURE), StatedNode(), ("40", "unknown", "2.4", "unknown")),
        (facts(virtual="kvm"), StatedNode(), ("40", "32", "unknown", "unknown")),
        (
            facts(**FUTURE),
            StatedNode(flop_per_cycle=16, clock_hz=2e9),
            ("40", "16", "2", "1280 GFlop/s"),
        ),
    ],
    ids=["Skylake", "Zen 4", "no row", "virtual", "stated"],
)
def test_the_report_states_what_the_judge_knows(
    node: NodeFacts, stated: StatedNode, row: tuple[str, ...]
) -> None:
    run = run_of(node, stated)
    (table, *_) = section(run).blocks[0].tables
    assert tuple(each.cell.text for each in table.rows[0].cells[:4]) == row
    limit = derive("rpeak_nominal", [node], {}, stated)
    assert peak_of_run(run) == (limit.value if isinstance(limit, Derived) else None)
