"""What will stay unjudged is known before the run, by the functions that judge it later."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.fixtures.kit import LIMIT, Kit, carried_out, contract_of, item, make_kit
from tests.fixtures.shipped import shipped_benchmarks, shipped_site
from tests.fixtures.stated import stated_node
from tests.folders import PROBES
from tests.sites import LARGE
from tests.unjudged_page import BEGIN, DECLARED, PAGE, lines, name_of, page, plans

from proofmark.judge.foreseen import ITEMS, Unjudged, refusals, unjudged_of
from proofmark.judge.judging import judge_run
from proofmark.plan.expansion import make_plan
from proofmark.plan.totals import LEAST_S, MARGIN, endless_steps, requested_s, within_limit
from proofmark.site.contract_document import ContractItem
from proofmark.site.execution import Queue
from proofmark.site.inventory import Site
from proofmark.site.machines import machines_of

PROBE = (PROBES / "live-kvm-zen3.txt").read_text(encoding="utf-8")
"""The probe that the nodes of a kit print: a virtual machine."""
REQUIRED = [{"case": "fake", "metrics": ["rate"]}]
FLOOR = {**LIMIT, "kind": "floor"}
BY_RULE = {key: value for key, value in LIMIT.items() if key not in ("value", "unit")} | {
    "rule": "memory_bandwidth",
    "at_least": 1e-9,
}
DIMMS = {"memory": {"channels": 8, "mt_per_s": 3200}}


def limit(**values: Any) -> ContractItem:
    return item(**{**LIMIT, "case": "fake", **values})


def foreseen(kit: Kit, site: Site) -> list[Unjudged]:
    plan = kit.plan(site=site)
    return unjudged_of(plan, kit.benchmarks(), site, machines_of(site)[0], PROBE)


@pytest.mark.parametrize(
    ("references", "limits", "facts", "sanity", "code"),
    [
        pytest.param([], [], {}, False, "no-reference", id="nothing"),
        pytest.param([FLOOR], [], {}, False, "floor-only", id="floor"),
        pytest.param([FLOOR], [], {}, True, "", id="floor of a sanity suite"),
        pytest.param([], [LIMIT], {}, False, "", id="limit"),
        pytest.param([], [BY_RULE], {}, False, "fact-hidden", id="unknown memory"),
        pytest.param([], [BY_RULE], DIMMS, False, "", id="rated memory"),
        pytest.param([FLOOR], [BY_RULE], {}, False, "fact-hidden", id="floor and limit"),
    ],
)
def test_what_is_foreseen_is_what_the_verdict_says_later(
    tmp_path: Path,
    references: list[dict[str, Any]],
    limits: list[dict[str, Any]],
    facts: dict[str, Any],
    sanity: bool,
    code: str,
) -> None:
    kit = make_kit(tmp_path)
    kit.case(references=references)
    kit.suites(
        quick={
            "title": "Quick",
            "kind": "sanity" if sanity else "acceptance",
            "required_metrics": REQUIRED,
        }
    )
    site = kit.site([item(**{**each, "case": "fake"}) for each in limits])
    stated = {"node": stated_node(**facts)}
    site = site.model_copy(update={"partition": site.partition.model_copy(update=stated)})
    found = [each for each in foreseen(kit, site) if each.kind != "reference"]
    assert {each.kind for each in found} <= {"limit" if limits else "required"}
    assert [each.reason.code for each in found] == ([code] if code else [])
    key = "partition.node.memory.channels" if code == "fact-hidden" else ITEMS
    assert all(each.key == key for each in found)
    run = carried_out(kit.run(site=site))
    verdict = judge_run(run)
    required = [each for each in verdict.required if each.code == "required-open"]
    assert bool(required) == (bool(code) and not limits)
    said = [code for message in verdict.unmet for code in message.codes]
    assert ("fact-hidden" in said) == (code == "fact-hidden")
    open_limits = [each for each in verdict.limits if each.of_contract and each.outcome != "PASS"]
    assert len(open_limits) == sum(each.kind == "limit" for each in foreseen(kit, site))


def test_a_baseline_judges_required_metrics(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kit = make_kit(tmp_path)
    kit.suites(quick={"title": "Quick", "required_metrics": REQUIRED})
    assert [each.kind for each in foreseen(kit, kit.site())] == ["required"]
    module = "proofmark.judge.foreseen.chosen_baseline"
    monkeypatch.setattr(module, lambda *_: tmp_path / "accepted")
    assert foreseen(kit, kit.site()) == []


def test_a_required_metric_of_a_parameter_that_no_result_has_is_open(tmp_path: Path) -> None:
    kit = make_kit(tmp_path)
    required = [{**each, "where": {"threads": 7}} for each in REQUIRED]
    kit.suites(quick={"title": "Quick", "required_metrics": required})
    (found,) = foreseen(kit, kit.site())
    assert found.as_json() == {
        **{"kind": "required", "figure": "fake rate", "limit": "", "key": ITEMS},
        **found.reason.as_json("reason"),
    }
    assert found.reason.code == "no-row"


def test_a_limit_without_its_reference_and_a_virtual_node(tmp_path: Path) -> None:
    kit = make_kit(tmp_path)
    kit.case(sweep={"size": [1, 7]})
    other = {"metric": "rate", "where": {"size": 7}}
    elsewhere = limit(value=None, unit=None, against=other, where={"size": 1})
    assert foreseen(kit, kit.site([elsewhere])) == []
    kit.suites(quick={"title": "Quick"}, large={"title": "Large"})
    both = {"quick": {}, "large": {"sweep": {"size": [1, 7]}}}
    kit.case(sweep={"size": [1, 2]}, suites=both)
    (found,) = foreseen(kit, kit.site([elsewhere]))
    assert (found.kind, found.reason.code, found.key) == ("limit", "not-measured", ITEMS)
    site = kit.site([elsewhere])
    (mistake,) = refusals([found], site)
    assert (mistake.file, mistake.key) == ("inventory/here/contract.yml", "items")
    emulated = site.partition.model_copy(update={"origin": "emulated"})
    assert foreseen(kit, site.model_copy(update={"partition": emulated})) == []


@pytest.mark.parametrize("rule", ["rpeak_avx", "rpeak_nominal"])
def test_a_limit_that_can_never_be_computed_is_known_before_the_run(rule: str) -> None:
    """The AVX frequency of no EPYC is in a table; the nominal one is declared."""
    site = shipped_site("example-epyc", "epyc")
    of_contract = limit(
        case="hpl", metric="rmax", value=None, unit=None, rule=rule, where={"placement": "fitted"}
    )
    for stated in ({}, {"avx_hz": 2.0e9}):
        changes = {"node": site.partition.node.model_copy(update=stated)}
        partition = site.partition.model_copy(update=changes)
        contract = contract_of([of_contract])
        known = site.model_copy(update={"partition": partition, "contract": contract})
        machines, _ = machines_of(known)
        plan = make_plan(shipped_benchmarks(), "node", known, machines, digest=False)
        found = unjudged_of(plan, shipped_benchmarks(), known, machines)
        limits = [each for each in found if each.kind == "limit"]
        open_ = rule == "rpeak_avx" and not stated
        assert [each.key for each in limits] == (["partition.node.avx_hz"] if open_ else [])
        assert all("AVX frequency of AMD EPYC 9654" in each.message for each in limits)


LIKE_OTHERS = {"example-grace/grace", "example-xeon/xeon", "tachyon/tachyon2"}
"""Partitions with the same lines and jobs as another partition."""
SITES = [
    pytest.param(*each, marks=[pytest.mark.soak] if "/".join(each) in LARGE | LIKE_OTHERS else [])
    for each in DECLARED
]


@pytest.mark.soak
def test_the_page_has_the_table_of_the_shipped_sites() -> None:
    assert page() == PAGE.read_text(encoding="utf-8"), "python -m tests.unjudged_page"


@pytest.mark.parametrize(("inventory", "partition"), SITES)
def test_the_page_has_the_lines_of_a_shipped_site(inventory: str, partition: str) -> None:
    _, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    found = {}
    for row in rest.partition("\n## ")[0].strip().splitlines()[2:]:
        _, text, where, _ = row.split("|")
        for part in where.strip().split("; "):
            names, _, suites = part.partition(": ")
            if name_of(inventory, partition) in names.split(", "):
                found[text.strip()] = suites.split(", ")
    assert found == lines(inventory, partition), "python -m tests.unjudged_page"


@pytest.mark.parametrize(("inventory", "partition"), SITES)
def test_no_job_of_a_shipped_site_exceeds_the_longest_job(inventory: str, partition: str) -> None:
    """A step fits into a job of 12 hours, or the plan is refused with what to change."""
    declared = shipped_site(inventory, partition).partition.queue
    for queue in (declared, Queue(max_walltime_s=12 * 3600)):
        longest = queue.max_walltime_s
        for plan in plans(inventory, partition):
            for job in (job for group in plan.groups for job in group.jobs):
                endless = [*endless_steps("", job.steps, queue)]
                assert all("max_walltime_s" in each.accepted for each in endless)
                parts = [*within_limit(job.steps, queue)]
                assert [step for part in parts for step in part] == job.steps
                for part in [] if endless else parts:
                    requested, expected = requested_s(part, queue), sum(s.wall_s for s in part)
                    assert requested <= (longest or requested)
                    if len(part) > 1 and requested > LEAST_S:
                        assert 1.5 <= requested / expected <= MARGIN + 0.01
