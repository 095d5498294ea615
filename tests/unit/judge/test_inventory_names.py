"""A node whose host name is not that of the inventory: the inventory's name counts everywhere."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.fixtures.finished import written_verdict
from tests.fixtures.kit import LIMIT, Kit, carried_out, kit_with

from proofmark.cli.main import main
from proofmark.common.files import names_in
from proofmark.jobs.execute import execute
from proofmark.judge.baseline_files import Acceptance, accepted_baseline, judged_figures
from proofmark.runs.evidence import seal
from proofmark.runs.nodes import nodes_of, probed_nodes
from proofmark.runs.run import Run, site_of
from proofmark.site.inventory import Site

NODE, REPORTED = "of-the-inventory", os.uname().nodename


def measured(kit: Kit, site: Site) -> Run:
    """Return a run of this machine, which calls itself `REPORTED`."""
    return carried_out(kit.run(site=site))


def texts(value: Any) -> Iterator[str]:
    """Yield each text of a JSON value."""
    if isinstance(value, dict):
        value = [*value, *value.values()]
    if isinstance(value, list):
        for each in value:
            yield from texts(each)
    elif isinstance(value, str):
        yield value


kit = kit_with(references=[LIMIT])


def test_each_output_has_the_name_of_the_inventory(
    kit: Kit, capsys: pytest.CaptureFixture[str]
) -> None:
    run = measured(kit, kit.site(hosts=(NODE,)))
    (node,) = nodes_of(run).values()
    assert (node.host, node.newest.hostname, node.newest.reported) == (NODE, NODE, REPORTED)
    assert probed_nodes(run).keys() == {NODE}
    sealed = seal(run.folder).run()
    assert list(names_in(sealed.files.nodes)) == [f"{NODE}.json"]
    verdict = written_verdict(sealed)
    assert {result.record.node for result in verdict.results} == {NODE}
    assert {result.verdict for result in verdict.results} == {"PASS"}
    written = set(texts(json.loads(sealed.products.verdict.read_text())))
    assert NODE in written and REPORTED not in written
    assert main(["status", f"{run.folder}"]) == 0
    assert REPORTED not in capsys.readouterr().out.split()


def test_such_a_run_can_be_accepted(kit: Kit) -> None:
    run = measured(kit, kit.site(hosts=(NODE,)))
    stated = Acceptance("accepted", datetime.now(UTC), "we", "digest", reason="a test")
    baseline, figures = accepted_baseline(run.id, judged_figures(run), site_of(run), stated)
    assert baseline.states().keys() == {NODE}
    assert set(figures["node"]) == {NODE}


def test_the_machine_of_the_play_may_report_its_own_name(kit: Kit) -> None:
    """The site of ``inventory/local`` declares no name: that of the probe of the plan counts."""
    site = kit.site(hosts=(NODE,)).model_copy(update={"aliases": {}})
    run = kit.run(site=site)
    run.files.facts_probe.write_text(f"=== host\n| hostname: {REPORTED}\n")
    execute(run, "none", lambda line: None)
    assert probed_nodes(run).keys() == {NODE}
    assert {result.record.node for result in written_verdict(run).results} == {NODE}


def test_a_name_of_no_planned_node_stays_and_is_named(kit: Kit) -> None:
    site = kit.site(hosts=(NODE,)).model_copy(update={"aliases": {}, "connection": "ssh"})
    run = measured(kit, site)
    assert REPORTED in nodes_of(run)
    results = written_verdict(run).results
    assert {result.verdict for result in results} == {"INVALID"}
    for result in results:
        assert REPORTED in result.record.reason and NODE in result.record.reason


def test_of_several_nodes_with_one_name_that_of_the_job_counts(kit: Kit) -> None:
    """Several nodes of an inventory may be one machine; the job has one of them."""
    run = measured(kit, kit.site(hosts=("n1", "n2")))
    assert nodes_of(run).keys() == {"n1"}
    assert {result.verdict for result in written_verdict(run).results} == {"PASS"}
