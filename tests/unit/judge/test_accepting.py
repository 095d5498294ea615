"""What a run needs for exit code 0: limits that were evaluated, required metrics that were judged.

The machine of these tests is the SKL partition of paper P1, under another name: 12 nodes with 12
modules of DDR4-2666 (256 GB/s) and links of 12.5 GB/s.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.fixtures.finished import as_host
from tests.fixtures.kit import item, make_kit
from tests.fixtures.messages import said
from tests.fixtures.shipped import shipped_benchmarks, shipped_site
from tests.fixtures.stated import stated_node
from tests.folders import PROBES

from proofmark.cases.suite import Benchmarks
from proofmark.common.errors import BadInput
from proofmark.common.nodesets import folded
from proofmark.judge.ending import ending
from proofmark.judge.evidence import Evidence
from proofmark.judge.judging import judge
from proofmark.judge.verdict import Verdict, exit_code
from proofmark.plan.expansion import make_plan
from proofmark.plan.plan import Plan, Step
from proofmark.plan.step import StepInstance
from proofmark.records.columns import Record, Records
from proofmark.site.contract_document import ContractItem
from proofmark.site.hardware import StatedNode
from proofmark.site.inventory import Site
from proofmark.site.machines import machines_of
from proofmark.site.node.facts import NodeFacts, parse_probe

KERNELS = ("copy", "scale", "add", "triad")
SPREAD = (1.0, 1.01, 0.99, 1.005, 0.995)
"""Factors of the rates of consecutive nodes."""
STREAM = {"memory": "ddr", "threads": 40, "array": 64000000, "working_set": "memory"}
DIMMS = stated_node(memory={"channels": 12, "mt_per_s": 2666})


@cache
def expecting() -> Benchmarks:
    """Return the cases with their floors as expected values of this machine: they make a PASS."""
    cases = {
        name: case.model_copy(
            update={
                "references": [
                    each.model_copy(update={"kind": "expected"}) if each.kind == "floor" else each
                    for each in case.references
                ]
            }
        )
        for name, case in shipped_benchmarks().cases.items()
    }
    return shipped_benchmarks().model_copy(update={"cases": cases})


@cache
def site() -> Site:
    shipped = shipped_site("nurion", "skl")
    hosts = shipped.hosts[:12]
    return shipped.model_copy(update={"hosts": hosts, "partition_hosts": list(hosts)})


@cache
def plan_of(suite: str) -> Plan:
    return make_plan(shipped_benchmarks(), suite, site(), machines_of(site())[0])


@cache
def healthy() -> NodeFacts:
    facts = parse_probe((PROBES / "skl-2x6148.txt").read_text(encoding="utf-8"), "probe")
    dimm = facts.dimms[0].model_copy(update={"rated": 2666, "configured": 2666})
    return facts.model_copy(update={"dimms": (dimm,) * 12})


def unprobed() -> NodeFacts:
    """Return the facts of a node without root and without an adapter."""
    return healthy().model_copy(update={"dimms": (), "ports": ()})


def step_of(case: str, suite: str = "node") -> Step:
    return next(step for step in plan_of(suite).steps() if step.case == case)


def record(case: str, metric: str, value: float, unit: str, **changes: Any) -> Record:
    fields: dict[str, Any] = {
        **dict.fromkeys(Record.__slots__, ""),
        "run": "r",
        "attempt": 1,
        "system": "site",
        "origin": "measured",
        "case": case,
        "benchmark": case,
        "metric": metric,
        "value": value,
        "unit": unit,
        "repeat": 1,
        "mode": "current",
        "parameters": {},
        "valid": True,
    }
    return Record(**{**fields, **changes})


def figures(
    case: str, metric: str, value: float, unit: str, *, parameters: dict[str, Any], **changes: Any
) -> list[Record]:
    """Return one figure of each node or pair of the first step of `case`, about `value`."""
    step = step_of(case)
    return [
        record(
            case,
            metric,
            value * SPREAD[place % len(SPREAD)] * (1 + 1e-9 * place),
            unit,
            step=str(instance),
            node=folded(hosts),
            parameters=parameters,
            **{"placement": step.placement, **changes},
        )
        for place, (instance, hosts) in enumerate(step.instances().items())
    ]


def stream(rate: float, metrics: Sequence[str] = KERNELS, **changes: Any) -> list[Record]:
    parameters = {**STREAM, **changes.pop("parameters", {})}
    return [
        each
        for metric in metrics
        for each in figures("stream", metric, rate, "MB/s", parameters=parameters, **changes)
    ]


def osu_bw(rate: float, size: int = 4194304) -> list[Record]:
    parameters = {"ranks": 2, "nodes": 2, "bytes": size}
    return figures("osu-bw", "bandwidth", rate, "MB/s", parameters=parameters)


def hpl(rate: float = 1700) -> list[Record]:
    parameters = {"memory": "ddr", "memory_share": 0.2, "ranks": 2}
    return figures("hpl", "rmax", rate, "Gflops", parameters=parameters)


def judged(
    records: Sequence[Record],
    facts: NodeFacts | None = None,
    limits: Sequence[ContractItem] = (),
    suite: str = "node",
    node: StatedNode | None = None,
    plan: Plan | None = None,
) -> Verdict:
    """Return the verdict on `records` by `expecting`; steps without one count as measured."""
    return measured(judge(evidence(records, facts, limits, suite, node, plan)))


def by_floors(records: Sequence[Record], suite: str = "node") -> Verdict:
    """Return the verdict on `records` by the floors of the cases."""
    return measured(judge(replace(evidence(records, suite=suite), benchmarks=shipped_benchmarks())))


def measured(verdict: Verdict) -> Verdict:
    """Return the verdict as if all steps were measured."""
    covered = replace(verdict.coverage, measured=verdict.coverage.expected, missing=())
    return replace(verdict, coverage=covered)


def evidence(
    records: Sequence[Record],
    facts: NodeFacts | None = None,
    limits: Sequence[ContractItem] = (),
    suite: str = "node",
    node: StatedNode | None = None,
    plan: Plan | None = None,
) -> Evidence:
    known = facts or healthy()
    nodes = {host: as_host(known, host) for host in site().hosts}
    planned, read = plan or plan_of(suite), Records.of(records)
    return Evidence("r", planned, read, expecting(), limits, nodes, node=node or StatedNode())


def limit(**changes: Any) -> ContractItem:
    fields = {"case": "stream", "metric": "triad", "source": "contract", "at_least": 0.5}
    return item(**{**fields, **changes})


def words(verdict: Verdict) -> dict[str, int]:
    return {word: count for word, count in verdict.counts.items() if count}


class TestPeers:
    @pytest.mark.fault("uniformly-slow-memory")
    def test_memory_that_is_slow_on_all_nodes_fails(self) -> None:
        verdict = by_floors(stream(20e3))
        assert (words(verdict), verdict.exit_code()) == ({"FAIL": 48}, 1)
        for kernel, least in zip(KERNELS, (0.45, 0.45, 0.5, 0.5), strict=True):
            (first, *_) = verdict.about(lambda each, name=kernel: each.metric == name)  # type: ignore[misc]
            expected = f"0.0781 × memory_bandwidth (255936 MB/s) is not at least {least:g}"
            assert first.reason == expected

    def test_memory_at_its_published_speed_passes(self) -> None:
        """The control: 177.2 of 256 GB/s in paper P1, and the links and HPL beside it."""
        verdict = judged([*stream(177.2e3), *osu_bw(11e3), *hpl()])
        assert (words(verdict), verdict.exit_code()) == ({"PASS": 48 + 6 + 12}, 0)
        assert verdict.unmet == ()

    @pytest.mark.fault("floors-alone")
    def test_floors_and_peers_make_no_pass(self) -> None:
        verdict = by_floors([*stream(177.2e3), *hpl()])
        assert (words(verdict), verdict.exit_code()) == ({"UNJUDGED": 48 + 12}, 4)
        assert verdict.headline().word == "NO FAULT FOUND"
        assert verdict.headline().text == (
            "6 of 6 floors; 60 of 60 figures like their peers; no contract, no expected value"
        )
        assert len(verdict.unmet) == 2, "the required metrics of the suite"

    def test_links_that_reach_what_such_links_reach_elsewhere_pass(self) -> None:
        """12.1 GB/s is the slowest source for 4X EDR, with a tolerance of a tenth."""
        verdict = by_floors(osu_bw(11.2e3))
        assert words(verdict) == {"PASS": 6}
        assert verdict.headline().text.startswith("6 of 6 expected values; 1 of 1 floors; ")
        slower = by_floors(osu_bw(10e3))
        assert (words(slower), slower.exit_code()) == ({"FAIL": 6}, 1)

    @pytest.mark.fault("memory-facts-unknown")
    def test_without_the_modules_the_run_is_unjudged_and_the_key_is_named(self) -> None:
        verdict = judged([*stream(20e3), *hpl()], unprobed())
        assert (words(verdict), verdict.exit_code()) == ({"UNJUDGED": 48, "PASS": 12}, 4)
        assert verdict.missing_keys == ("partition.node.memory.mt_per_s",)
        (line,) = verdict.unmet
        assert line.startswith(
            "stream triad on Intel(R) Xeon(R) Gold 6148 CPU @ 2.40GHz, 2 × 20 cores; memory ddr: "
            "the speed of any memory module of skl0001 is not known; the key "
            "partition.node.memory.mt_per_s enables this judgement; like its peers: 1 × the median "
            "of 12"
        )
        lines = ending(verdict, "report.html", "runs/r")
        assert lines[0].startswith("UNJUDGED: ")
        assert lines[1].startswith("worst: not judged: stream triad on ")
        assert "next: Add partition.node.memory.mt_per_s to the facts of the partition" in lines[2]

    def test_with_the_named_key_the_run_is_judged(self) -> None:
        assert judged(stream(20e3), unprobed(), node=DIMMS).exit_code() == 1
        healthy_run = judged([*stream(180e3), *hpl()], unprobed(), node=DIMMS)
        assert words(healthy_run) == {"PASS": 48 + 12}
        # The modules that are stated were not found out on any node.
        unread = [line.partition("was not found out: ")[2] for line in healthy_run.unmet]
        assert unread == ["memory modules", "speed of the memory modules"]
        assert healthy_run.exit_code() == 4

    @pytest.mark.fault("uniformly-slow-links")
    def test_links_that_are_slow_everywhere_fail(self) -> None:
        verdict = by_floors([*osu_bw(1000), *osu_bw(0.5, 8)])
        assert (words(verdict), verdict.exit_code()) == ({"FAIL": 6, "UNJUDGED": 6}, 1)
        reasons = [f"{result.reason}" for result in verdict.of("FAIL")]
        assert any("0.08 × link_bandwidth (12500 MB/s) is not at least 0.5" in x for x in reasons)

    def test_links_at_their_speed_pass(self) -> None:
        verdict = judged([*osu_bw(11e3), *osu_bw(0.5, 8)])
        assert (words(verdict), verdict.exit_code()) == ({"PASS": 6, "UNJUDGED": 6}, 0)
        assert all(each.reason.startswith("like its peers: ") for each in verdict.of("UNJUDGED"))

    @pytest.mark.fault("link-facts-unknown")
    def test_without_a_port_the_run_is_unjudged_and_the_key_is_named(self) -> None:
        verdict = judged([*osu_bw(1000), *hpl()], unprobed())
        assert (words(verdict), verdict.exit_code()) == ({"UNJUDGED": 6, "PASS": 12}, 4)
        assert verdict.missing_keys == ("partition.node.rails.rate",)
        stated = stated_node(rails={"rate": 12.5e9})
        assert judged([*osu_bw(1000), *hpl()], unprobed(), node=stated).exit_code() == 1
        assert judged([*osu_bw(11e3), *hpl()], unprobed(), node=stated).exit_code() == 0

    def test_an_outlier_still_fails(self) -> None:
        slow, *others = stream(100e3, ["triad"])
        verdict = judged([replace(slow, value=50e3), *others], unprobed())
        assert (words(verdict), verdict.exit_code()) == ({"FAIL": 1, "UNJUDGED": 11}, 1)


class TestAnyFailure:
    @pytest.mark.fault("one-of-two-references-missed")
    def test_one_missed_reference_fails_a_figure_that_keeps_another(self) -> None:
        verdict = judged([*stream(150e3, ["triad"])], limits=[limit(value=170e3, at_least=1)])
        assert (words(verdict), verdict.exit_code()) == ({"FAIL": 12}, 1)
        outcomes = {tuple(each.outcome for each in result.references) for result in verdict.results}
        assert all({"PASS", "FAIL"} <= {*each} for each in outcomes)

    def test_both_references_kept(self) -> None:
        kept = limit(value=140e3, at_least=1)
        verdict = judged(
            [*stream(150e3), *hpl()], limits=[kept, kept.model_copy(update={"metric": "copy"})]
        )
        assert (words(verdict), verdict.exit_code()) == ({"PASS": 60}, 0)


class TestLimits:
    def everything(self) -> list[Record]:
        return [*stream(180e3), *hpl()]

    @pytest.mark.parametrize(
        ("changes", "why"),
        [
            pytest.param(
                {"against": {"metric": "copy", "where": {"threads": 41}}},
                "copy at threads 41 was not measured: skl[0001-0012]",
                id="counterpart",
                marks=pytest.mark.fault("limit-counterpart-not-measured"),
            ),
            pytest.param(
                {"case": "hpl", "metric": "time", "value": 1},
                "the output of 0001-hpl has no row for it: skl[0001-0012]",
                id="row",
                marks=pytest.mark.fault("limit-row-missing"),
            ),
        ],
    )
    def test_a_limit_that_was_not_evaluated_gives_exit_code_4(
        self, changes: dict[str, Any], why: str
    ) -> None:
        """The expected values of the figures PASS."""
        verdict = judged(self.everything(), limits=[limit(**changes)])
        assert (words(verdict), verdict.exit_code()) == ({"PASS": 60}, 4)
        (line,) = verdict.unmet
        assert line.endswith(f"limit of 1 an item not evaluated: {why}")
        assert verdict.as_json()["unmet"] == [line]

    @pytest.mark.fault("limit-rule-not-computable")
    def test_a_rule_that_cannot_be_computed_gives_exit_code_4(self) -> None:
        bound = limit(case="hpl", metric="rmax", rule="memory_bandwidth", at_least=0.1)
        impossible = bound.model_copy(update={"rule": "rpeak_nominal"})
        facts = healthy().model_copy(update={"base_hz": None})
        verdict = judged(self.everything(), facts, limits=[impossible])
        assert (words(verdict), verdict.exit_code()) == ({"PASS": 60}, 4)
        assert verdict.missing_keys == ("partition.node.clock_hz",)
        (check,) = verdict.contract
        assert (check.compared, len(check.not_evaluated)) == (0, 1)
        assert check.not_evaluated[0].endswith("enables this judgement: skl[0001-0012]")

    def test_limits_that_were_evaluated_give_exit_code_0(self) -> None:
        limits = [
            limit(against={"metric": "copy"}),
            limit(case="hpl", metric="rmax", rule="rpeak_nominal"),
            limit(rule="memory_bandwidth", where={"memory": "ddr", "threads": 40}),
            limit(value=100e3, where={"array": 64000000}, mode="current"),
        ]
        verdict = judged(self.everything(), limits=limits)
        assert (verdict.unmet, verdict.exit_code()) == ((), 0)
        assert [check.compared for check in verdict.contract] == [12] * 4
        written = verdict.head()["limits"][3]
        known = {"limit": "1 an item", "number": "1", "outcome": "PASS", "compared": 12}
        assert known.items() <= written.items()
        assert (written["not_evaluated"], written["nodes_met"]) == ([], 12)

    @pytest.mark.fault("limit-row-missing-on-one-node")
    def test_a_row_that_is_missing_on_one_node_gives_exit_code_4(self) -> None:
        records = self.everything()
        at = next(place for place, each in enumerate(records) if each.metric == "triad")
        del records[at]
        verdict = judged(records, limits=[limit(value=100e3)])
        assert (verdict.contract[0].compared, verdict.exit_code()) == (11, 4)
        assert verdict.contract[0].not_evaluated == (
            f"the output of {step_of('stream').id} has no row for it: skl0001",
        )

    def test_one_of_several_rows_that_is_missing_on_a_node_is_named(self) -> None:
        bounds = limit(case="osu-bw", metric="bandwidth", value=1e-9, unit="MB/s", at_least=1)
        records = [*osu_bw(11e3), *osu_bw(1, 8)[1:], *hpl()]
        verdict = judged(records, limits=[bounds])
        step = step_of("osu-bw").id
        assert verdict.contract[0].not_evaluated == (
            f"the output of {step} has no row for it: skl[0001-0002]",
        )
        assert judged([*osu_bw(11e3), *osu_bw(1, 8), *hpl()], limits=[bounds]).exit_code() == 0

    @pytest.mark.parametrize(
        "other",
        [
            {"case": "ior", "metric": "read", "mode": "flat"},
            {"case": "npb-btio", "metric": "time", "unit": "s"},
            {"where": {"memory": "mcdram"}},
            {"where": {"placement": "spread"}},
            {"where": {"threads": 20}},
            {"case": "hpl", "metric": "rmax", "where": {"ranks": 3}},
            {"system": "elsewhere"},
        ],
    )
    def test_a_limit_for_other_plans_does_not_matter(self, other: dict[str, Any]) -> None:
        verdict = judged(self.everything(), limits=[limit(**{"value": 1, **other})])
        assert (verdict.contract, verdict.exit_code()) == ((), 0)

    @pytest.mark.parametrize("left_out", ["not_run", "not_needed"])
    def test_a_limit_only_for_steps_that_do_not_run_was_not_evaluated(self, left_out: str) -> None:
        plan = plan_of("node")
        step = step_of("stream")
        if left_out == "not_run":
            stays = [
                job.model_copy(update={"steps": [each for each in job.steps if each.id != step.id]})
                for job in plan.groups[0].jobs
            ]
            job = plan.groups[0].jobs[0].model_copy(update={"steps": [step]})
            groups = [
                plan.groups[0].model_copy(update={"jobs": stays}),
                plan.groups[0].model_copy(update={"mode": "flat", "jobs": [job]}),
            ]
            plan = plan.model_copy(update={"groups": groups})
            why = f"{step.id}: NOT RUN: needs mode flat"
        else:
            plan = plan.model_copy(update={"not_needed": {step.id: "as 0009"}})
            why = f"{step.id}: NOT NEEDED: as 0009"
        verdict = judged(hpl(), limits=[limit(value=1)], plan=plan)
        assert verdict.exit_code() == 4
        assert verdict.contract[0].not_evaluated == (f"no step of the run measures it; {why}",)
        measured = judged([*hpl(), *stream(180e3)], limits=[limit(value=1)], plan=plan)
        assert (measured.contract[0].compared, measured.unmet) == (12, ())

    def test_the_first_step_for_it_that_does_not_run_is_named(self) -> None:
        first, second = (
            step_of("stream").model_copy(update={"id": name}) for name in ("0008-a", "0009-b")
        )
        plan = plan_of("node")
        job = plan.groups[0].jobs[0].model_copy(update={"steps": [first, second]})
        group = plan.groups[0].model_copy(update={"jobs": [*plan.groups[0].jobs, job]})
        left_out = {step_of("ior").id: "x", "0008-a": "y", "0009-b": "z", step_of("stream").id: "w"}
        plan = plan.model_copy(update={"groups": [group], "not_needed": left_out})
        (check,) = judged(hpl(), limits=[limit(value=1)], plan=plan).contract
        assert check.not_evaluated == ("no step of the run measures it; 0008-a: NOT NEEDED: y",)

    def test_a_step_without_records_is_missing_and_not_a_missing_row(self) -> None:
        assert judged(hpl(), limits=[limit(value=1)]).contract[0].not_evaluated == ()

    def test_a_limit_that_an_emulated_figure_misses_judges_nothing(self) -> None:
        records = [replace(each, origin="emulated") for each in self.everything()]
        verdict = judged(records, limits=[limit(value=1e9)])
        check = verdict.contract[0]
        assert (check.compared, check.outcome, verdict.exit_code()) == (12, "UNJUDGED", 4)
        assert "is not at least 0.5: " in verdict.unmet[0]


class TestRequired:
    @pytest.mark.fault("required-metric-not-judged")
    def test_a_pass_of_hpl_does_not_accept_unjudged_memory(self) -> None:
        verdict = judged([*hpl(), *stream(180e3)], unprobed())
        assert words(verdict) == {"PASS": 12, "UNJUDGED": 48}
        assert verdict.exit_code() == 4

    def test_a_metric_without_a_row_is_named(self) -> None:
        verdict = judged([*hpl(), *stream(180e3, ["copy", "scale", "add"])])
        assert verdict.unmet == (
            "stream triad on Intel(R) Xeon(R) Gold 6148 CPU @ 2.40GHz, 2 × 20 cores; memory ddr: "
            "no output has a matching row",
        )

    def test_each_memory_mode_and_kind_of_node_is_a_class(self) -> None:
        both = [*stream(180e3), *stream(180e3, parameters={"memory": "mcdram"})]
        verdict = judged([*both, *hpl()])
        (line,) = verdict.unmet
        assert "; memory mcdram: the in-package memory of Intel(R) Xeon(R) Gold 6148" in line
        assert verdict.missing_keys == ("partition.node.memory.fast_bytes_per_s",)
        modes = [*stream(180e3), *stream(180e3, ["copy"], mode="flat")]
        (line,) = judged([*modes, *hpl()]).unmet
        assert line.partition(" on ")[0] == "stream triad"
        assert line.partition(":")[0].endswith("; mode flat; memory ddr")

    def test_a_class_of_nodes_without_facts_is_named(self) -> None:
        nodes = {host: healthy() for host in site().hosts[1:]}
        verdict = judge(
            Evidence("r", plan_of("node"), Records.of(stream(180e3)), expecting(), [], nodes)
        )
        assert verdict.required == (
            "stream triad on unknown hardware; memory ddr: skl0001: the node's hardware is not "
            "known",
        )

    def test_only_the_required_part_of_a_case_counts(self) -> None:
        """Without a size or placement of the requirement nothing is required."""
        inside = [replace(each, placement="same-socket") for each in osu_bw(11e3)]
        assert judged([*inside, *hpl()]).unmet == ()

    def test_several_nodes_together_are_a_class(self) -> None:
        verdict = judged([*osu_bw(11e3, 8), *hpl()])
        assert verdict.unmet[0].startswith("osu-bw bandwidth on 2 nodes of Intel(R) Xeon(R) Gold")

    def test_a_failure_is_a_judgement(self) -> None:
        assert judged(stream(20e3)).unmet == ()

    def test_an_invalid_figure_is_none(self) -> None:
        records = [replace(each, valid=False, reason=said("broken")) for each in stream(180e3)]
        assert len(judged(records).unmet) == 1

    def test_quick_requires_only_its_ratios(self) -> None:
        suite = shipped_benchmarks().suites["quick"]
        metrics = {each.case: each.metrics for each in suite.required_metrics}
        assert metrics == {"hpcc": ["hpl_rmax", "dgemm_star"], "hpl": ["rmax"]}
        for case, required in metrics.items():
            ratios = {
                each.metric for each in shipped_benchmarks().case(case).references if each.against
            }
            assert ratios == set(required)
        for each in suite.alternatives:
            assert len(metrics.keys() & set(each.cases)) == 1


class TestRehearsal:
    def emulated(self, records: Sequence[Record], **changes: Any) -> list[Record]:
        return [replace(each, origin="emulated", **changes) for each in records]

    def test_like_peers_suffice_in_an_emulated_run(self) -> None:
        verdict = judged(self.emulated(stream(20e3)), unprobed())
        assert (words(verdict), verdict.exit_code()) == ({"UNJUDGED": 48}, 0)
        assert (verdict.conditions.rehearsed, verdict.head()["rehearsed"]) == (48, 48)

    def test_one_measured_figure_makes_the_run_a_measured_one(self) -> None:
        records = [*self.emulated(stream(20e3)), *osu_bw(1, 8)]
        verdict = judged(records, unprobed())
        assert (verdict.conditions.rehearsed, verdict.exit_code()) == (0, 4)

    @pytest.mark.fault("rehearsed-metric-missing")
    def test_a_required_metric_that_was_not_measured_is_named(self) -> None:
        verdict = judged(self.emulated(stream(20e3, ["copy", "scale", "add"])), unprobed())
        assert verdict.exit_code() == 4
        assert verdict.unmet[0].endswith("no output has a matching row")

    def test_an_emulated_outlier_fails(self) -> None:
        slow, *others = self.emulated(stream(100e3))
        assert judged([replace(slow, value=50e3), *others], unprobed()).exit_code() == 1

    def test_two_nodes_are_no_peers(self) -> None:
        nodes = {"skl0001", "skl0002"}
        few = [each for each in self.emulated(stream(20e3)) if each.node in nodes]
        assert judged(few, unprobed()).exit_code() == 4


class TestHpl:
    @pytest.mark.parametrize(("nodes", "peak"), [(1, 3072), (2, 6144), (12, 36864)])
    def test_the_peaks_of_the_nodes_add_up(self, nodes: int, peak: float) -> None:
        hosts = site().hosts[:nodes]
        one = record("hpl", "rmax", 0.51 * peak, "Gflops", placement="fitted", node=folded(hosts))
        (result,) = judged([one], suite="full").results
        values = [each.value for each in result.references]
        assert values == pytest.approx([peak * 2.2 / 2.4, peak])
        assert result.verdict == "PASS"
        (result,) = judged([replace(one, value=0.15 * peak)], suite="full").results
        assert result.verdict == "FAIL"

    def test_a_node_without_facts_among_several_is_named(self) -> None:
        one = record("hpl", "rmax", 3000, "Gflops", placement="fitted", node="skl[0011-0013]")
        (result,) = judged([one], suite="full").results
        assert result.verdict == "UNJUDGED"
        (unknown,) = (each for each in result.reason.parts if each.code == "hardware-unknown")
        assert unknown.fields["nodes"] == "skl0013"

    @pytest.mark.parametrize("mode", ["a2a-flat", "quadrant-flat", "snc4-flat", "quadrant-cache"])
    @pytest.mark.parametrize("share", [0.2, 0.8])
    def test_hpl_of_a_knl_is_judged_in_each_mode(self, mode: str, share: float) -> None:
        text = (PROBES / "knl-7250-quadrant-flat.txt").read_text(encoding="utf-8")
        knl = parse_probe(text, "probe").model_copy(update={"virtual": None, "base_hz": 1400000000})
        one = record("hpl", "rmax", 0.6 * 3046.4, "Gflops", placement="fitted", mode=mode)
        one = replace(one, node="skl0001", parameters={"memory_share": share})
        (result,) = judged([one], knl, suite="p1").results
        assert result.verdict == "PASS"
        passed = [each.value for each in result.references if each.outcome == "PASS"]
        assert passed[-1] == pytest.approx(3046.4)
        (result,) = judged([replace(one, value=500)], knl, suite="p1").results
        assert result.verdict == "FAIL"


class TestThreads:
    @pytest.mark.parametrize(
        ("threads", "word"), [(39, "UNJUDGED"), (40, "FAIL"), (80, "UNJUDGED")]
    )
    def test_only_figures_with_one_thread_on_each_core_are_judged(
        self, threads: int, word: str
    ) -> None:
        records = stream(20e3, parameters={"threads": threads})
        assert {result.verdict for result in judged(records, suite="p2").results} == {word}

    def test_other_references_judge_any_number_of_threads(self) -> None:
        records = stream(100e3, ["triad"], parameters={"threads": 20})
        verdict = judged(records, limits=[limit(value=90e3)], suite="p2")
        assert words(verdict) == {"PASS": 12}
        assert verdict.judgements() == 3 * 12, "the limit, the peers, and what is typical of 40"

    def test_a_figure_without_threads_is_judged(self) -> None:
        records = [
            replace(each, parameters={"memory": "ddr", "working_set": "memory"})
            for each in stream(20e3)
        ]
        assert words(judged(records)) == {"FAIL": 48}


def test_the_exit_code_of_unmet_requirements() -> None:
    covered = judged([]).coverage
    assert exit_code({"PASS": 1}, covered) == 0
    assert exit_code({"PASS": 1}, covered, ["x"]) == 4
    assert exit_code({"FAIL": 1}, covered, ["x"]) == 1
    assert exit_code({}, covered) == 4
    assert exit_code({}, covered, (), enough=True) == 0
    assert exit_code({}, covered, ["x"], enough=True) == 4


def test_values_without_a_source_are_refused() -> None:
    with pytest.raises(ValueError, match=r"sources\.avx_hz: the document that states avx_hz"):
        StatedNode(avx_hz=1e9)


@pytest.mark.parametrize(
    ("required", "found"),
    [
        ({"case": "fake", "metrics": ["speed"]}, "unknown metric 'speed'"),
        ({"case": "fak", "metrics": ["rate"]}, "no case of the suite: 'fak'"),
        (
            {"case": "fake", "metrics": ["rate"], "where": {"sise": 1}},
            "unknown parameter 'sise'",
        ),
    ],
)
def test_a_required_metric_that_does_not_exist_is_refused(
    tmp_path: Path, required: dict[str, Any], found: str
) -> None:
    kit = make_kit(tmp_path)
    right = {"case": "fake", "metrics": ["rate"], "where": {"size": 1}}
    kit.suites(quick={"title": "Quick", "required_metrics": [right]})
    assert kit.benchmarks().suites["quick"].required_metrics[0].where == {"size": 1}
    kit.suites(quick={"title": "Quick", "required_metrics": [right, required]})
    with pytest.raises(BadInput, match=found):
        kit.benchmarks()


def test_failures_within_their_noise_are_measured_again() -> None:
    at, *others = stream(150e3, ["triad"])
    noisy = [
        replace(at, value=value, attempt=number) for number, value in enumerate((110e3, 150e3), 1)
    ]
    noisy.append(replace(at, value=100e3, attempt=3))
    slow = replace(others[0], value=20e3)
    verdict = judged([*noisy, slow, *others[1:]])
    step = step_of("stream").id
    assert {result.record.node: result.retest for result in verdict.of("FAIL")} == {"skl0002": True}
    assert [result.record.node for result in verdict.again] == ["skl0001"]
    assert verdict.retest() == (f"{step}/skl0002",)
    command = f"proofmark rerun runs/r {step}/skl0002"
    assert verdict.retest_command() == command
    sound = verdict.results.aggregates.sound_steps()
    assert {StepInstance.parse(each).step for each in sound} == {step}
    clean = judged(stream(150e3, ["triad"]))
    assert (clean.retest(), clean.retest_command()) == ((), "")


def test_repeats_are_paired_also_beside_other_references() -> None:
    records = [
        replace(each, repeat=repeat, step=f"{repeat:04d}-stream/{each.node}")
        for repeat in (1, 2, 3)
        for each in stream(100e3 * repeat, ["copy", "triad"])
    ]
    verdict = judged(records, limits=[limit(against={"metric": "copy"}, at_least=0.9)])
    (first, *_) = verdict.about(lambda each: each.metric == "triad")
    kinds = {answer.kind: answer.ratios for answer in first.references}
    assert kinds == {"expected": (), "contract": (1, 1, 1), "peers": ()}


def test_a_figure_without_a_judgement_has_no_answer() -> None:
    verdict = judged(stream(20e3, KERNELS[:3], parameters={"threads": 20}), suite="p2")
    assert verdict.results.answers == {}
    assert verdict.results.plain.all()


def test_a_figure_is_compared_with_one_of_another_case() -> None:
    at, *_ = stream(100e3, ["triad"])
    read = record("ior", "read", 50e3, "MiB/s", node=at.node, step="9999-ior")
    wanted = limit(against={"metric": "read", "case": "ior"}, at_least=1)
    (result, _) = judged([at, read], limits=[wanted]).results
    assert result.references[-1].value == pytest.approx(50e3 * 2**20 / 1e6)


def test_a_trait_that_only_one_of_two_figures_has_is_ignored() -> None:
    triad, copy = (stream(100e3, [metric])[0] for metric in ("triad", "copy"))
    short = replace(copy, parameters={"memory": "ddr", "threads": 40})
    (result, _) = judged([triad, short], limits=[limit(against={"metric": "copy"})]).results
    assert result.references[-1].ratio == 1


def test_one_judged_node_judges_its_class() -> None:
    nodes = {host: unprobed() for host in site().hosts} | {site().hosts[5]: healthy()}
    verdict = judge(
        Evidence("r", plan_of("node"), Records.of(stream(180e3)), expecting(), [], nodes)
    )
    assert (words(verdict), verdict.required) == ({"PASS": 4, "UNJUDGED": 44}, ())


def test_one_invalid_emulated_figure_leaves_its_class_measured() -> None:
    first, *others = [replace(each, origin="emulated") for each in stream(20e3)]
    broken = replace(first, valid=False, reason=said("broken"))
    assert judged([broken, *others], unprobed()).required == ()


def test_the_reason_is_that_of_a_figure_with_a_reference() -> None:
    verdict = judged([*osu_bw(1, 8), *osu_bw(11e3), *osu_bw(2, 16)], unprobed())
    assert "(no active port) is not known" in verdict.required[0]
