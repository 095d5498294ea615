"""Judgements of figures of others: what they need besides the value."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.fixtures.kit import contract_of, item
from tests.fixtures.shipped import shipped_benchmarks
from tests.fixtures.stated import stated_node
from tests.folders import BENCHMARKS

from proofmark.cases.suite import Benchmarks
from proofmark.judge.judging import read_and_judge
from proofmark.judge.verdict import Verdict
from proofmark.packages.foreign.adopted_outputs import REASONS
from proofmark.packages.foreign.adoption import adopt_folder, site_of_hosts
from proofmark.packages.foreign.adoption_request import AdoptionRequest
from proofmark.packages.foreign.path_rules import PathRule
from proofmark.report.run_data import gather
from proofmark.report.sections.signed_sheets import exceptions, next_steps
from proofmark.runs.run import open_run
from proofmark.site.ceilings import UNIVERSAL, stated_ceilings
from proofmark.site.hardware import StatedNode

SAMPLES = BENCHMARKS / "samples"
OUTPUTS = {
    "stream": "stream-5.10_N2000000_t2.txt",
    "fio-cache": "fio-3.33_4m_2m_n2_fpp.json",
    "osu-bw": "osu-7.4_bw_n2.txt",
    "hpl": "hpl-2.3_N2048-6144_NB128-192_P1Q2.txt",
}
STREAM = {"case": "stream", "metric": "triad", "value": 10000.0, "source": "contract 1"}
FIO = {"case": "fio-cache", "metric": "write", "value": 200000.0, "source": "contract 2"}


@pytest.fixture(scope="module")
def benchmarks() -> Benchmarks:
    return shipped_benchmarks()


def judged(
    benchmarks: Benchmarks,
    folder: Path,
    *limits: Mapping[str, Any],
    nodes: Mapping[str, tuple[str, ...]] | None = None,
    hosts: tuple[str, ...] = ("n1",),
    network: bool = False,
    **facts_of_site: Any,
) -> Verdict:
    """Return the verdict on one output of each case in `nodes` (default: STREAM on n1)."""
    of_cases = nodes or {"stream": ("n1",)}
    for case, named in of_cases.items():
        for name in named:
            path = folder / "vendor" / name / case
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes((SAMPLES / OUTPUTS[case]).read_bytes())
    site = site_of_hosts(hosts)
    own = [item(**limit) for limit in limits]
    declared: dict[str, Any] = {**facts_of_site}
    if network:
        facts = {"fabric": {"network": {"kind": "infiniband"}}}
        partition = {**site.partition.model_dump(mode="json"), **facts}
        declared["fabric"] = type(site.partition).model_validate(partition).fabric
    site = site.model_copy(
        update={
            "partition": site.partition.model_copy(update=declared),
            "contract": contract_of(own),
        }
    )
    cases = {name: benchmarks.cases[name] for name in of_cases}
    patterns = {name: [f"*/{name}"] for name in of_cases}
    rule = PathRule("(n[0-9]+)", cases)
    request = AdoptionRequest(folder / "vendor", patterns, rule, run_id="vendor")
    run, _ = adopt_folder(folder / "runs", request, benchmarks, site)
    return read_and_judge(open_run(run.folder))[1]


@pytest.mark.core("the control")
@pytest.mark.parametrize(("bound", "code"), [({"at_least": 1}, 0), ({"at_most": 1}, 1)])
def test_a_limit_on_a_value_judges(
    benchmarks: Benchmarks, tmp_path: Path, bound: dict[str, float], code: int
) -> None:
    verdict = judged(benchmarks, tmp_path, {**STREAM, **bound})
    assert verdict.counts["PASS"] == (code == 0)
    assert verdict.counts["FAIL"] == (code == 1)
    assert (verdict.exit_code(), verdict.unmet) == (code, ())


@pytest.mark.fault("imported-proof-missing")
@pytest.mark.parametrize("bound", [{"at_least": 1}, {"at_most": 1}])
@pytest.mark.parametrize(
    ("condition", "proof"),
    [
        ({"mode": "flat"}, "mode"),
        ({"all_cores": True}, "cores"),
        ({"value": None, "rule": "memory_bandwidth"}, "facts"),
        (
            {"value": None, "against": {"metric": "copy", "times": "{ranks}"}},
            "parameter",
        ),
    ],
)
def test_a_limit_that_needs_a_proof_does_not_judge(
    benchmarks: Benchmarks,
    tmp_path: Path,
    condition: dict[str, Any],
    proof: str,
    bound: dict[str, float],
) -> None:
    verdict = judged(benchmarks, tmp_path, {**STREAM, **condition, **bound})
    assert verdict.counts["PASS"] + verdict.counts["FAIL"] == 0
    (check,) = verdict.contract
    assert check.not_evaluated == (f"{REASONS[proof]}: n1",)
    assert verdict.exit_code() == 4


@pytest.mark.core("a verdict of the package")
@pytest.mark.fault("imported-proof-missing")
def test_a_program_that_writes_files_never_passes(benchmarks: Benchmarks, tmp_path: Path) -> None:
    nodes = {"fio-cache": ("n1",)}
    verdict = judged(benchmarks, tmp_path, {**FIO, "at_least": 1}, nodes=nodes)
    assert verdict.counts["PASS"] == 0
    assert REASONS["file_system"] in verdict.unmet[0]
    assert verdict.exit_code() == 4


def test_a_program_that_writes_files_can_fail(benchmarks: Benchmarks, tmp_path: Path) -> None:
    nodes = {"fio-cache": ("n1",)}
    verdict = judged(benchmarks, tmp_path, {**FIO, "at_most": 1}, nodes=nodes)
    assert verdict.counts["FAIL"] > 0
    assert verdict.exit_code() == 1


@pytest.mark.fault("edited-figure-of-others")
def test_a_figure_far_above_its_contract_is_not_pass(
    benchmarks: Benchmarks, tmp_path: Path
) -> None:
    verdict = judged(benchmarks, tmp_path, {**STREAM, "value": 490.0, "at_least": 1})
    assert verdict.counts["PASS"] == 0
    found = {each.reason.code for each in verdict.results if each.record.metric == "triad"}
    assert found
    believed = judged(benchmarks, tmp_path / "control", {**STREAM, "at_least": 1})
    assert believed.counts["PASS"] > 0


@pytest.mark.fault("imported-proof-missing")
@pytest.mark.parametrize("network", [False, True])
def test_figures_between_nodes_need_the_network_that_the_site_names(
    benchmarks: Benchmarks, tmp_path: Path, *, network: bool
) -> None:
    limit: dict[str, Any] = {"case": "osu-bw", "metric": "bandwidth", "where": {"bytes": 1048576}}
    limit |= {"value": 2000.0, "at_least": 1, "source": "contract 3"}
    verdict = judged(
        benchmarks,
        tmp_path,
        limit,
        nodes={"osu-bw": ("n1-n2",)},
        hosts=("n1", "n2"),
        network=network,
    )
    assert verdict.counts["PASS"] == (0 if network else 1)
    assert verdict.exit_code() == (4 if network else 0)


def test_a_limit_without_any_row_is_not_evaluated(benchmarks: Benchmarks, tmp_path: Path) -> None:
    limit = {**STREAM, "where": {"threads": 64}, "at_least": 1}
    verdict = judged(benchmarks, tmp_path, limit)
    assert verdict.contract[0].not_evaluated == ("no output has a row for it: n1",)
    assert verdict.exit_code() == 4


def test_hosts_without_an_output_are_a_degraded_run(benchmarks: Benchmarks, tmp_path: Path) -> None:
    hosts = ("n1", "n2", "n3")
    verdict = judged(benchmarks, tmp_path, nodes={"stream": ("n1", "n3")}, hosts=hosts)
    assert verdict.degraded
    assert (verdict.degraded.label, verdict.degraded.missing) == (
        "degraded: 2 of 3 nodes",
        ("n2",),
    )


def test_the_summary_states_the_origin_and_repeats_nothing(
    benchmarks: Benchmarks, tmp_path: Path
) -> None:
    """The programs of others cannot run again: a FAIL has a next step without a command."""
    judged(benchmarks, tmp_path, {**STREAM, "at_most": 1})
    run = open_run(tmp_path / "runs" / "vendor")
    run_data = gather(run, read_and_judge(run)[1])
    texts = {text for _, text, _ in exceptions(run_data)}
    assert "Imported: others produced the outputs, their provenance is missing" in texts
    steps = next_steps(run_data)
    assert "FAIL" in {step.word for step in steps}
    assert not any("rerun" in step.command for step in steps)


@pytest.mark.parametrize(("cores", "invalid"), [(64, False), (1, True)])
def test_imported_figures_have_the_bounds_of_the_declared_hardware(
    benchmarks: Benchmarks, tmp_path: Path, cores: int, invalid: bool
) -> None:
    """The sample has about 40 GFlop/s. One core of 2 GHz has 4 flop per cycle here."""
    node = stated_node(clock_hz=2e9, flop_per_cycle=4, cores=cores)
    verdict = judged(benchmarks, tmp_path, nodes={"hpl": ("n1",)}, node=node)
    reasons = {result.reason.main_code for result in verdict.of("INVALID")}
    assert reasons == ({"above-bound", "below-bound"} if invalid else set())


def test_the_ceilings_of_declared_hardware() -> None:
    assert stated_ceilings(StatedNode()) == UNIVERSAL
    genoa = stated_ceilings(stated_node(cpu_model="AMD EPYC 9654 96-Core Processor", sockets=2))
    peak = 2 * 96 * 16 * 2.4e9
    assert genoa.flops.value == pytest.approx(1.1 * peak)  # its best HPL is 1.009 × the peak
    memory = {"modules": 12, "mt_per_s": 2666}
    node = stated_node(memory=memory, rails={"count": 2, "rate": 12.5e9}, llc_bytes=2**20)
    found = stated_ceilings(node)
    assert found.memory.value == pytest.approx(1.1 * 12 * 8 * 2666e6)
    assert found.link.value == pytest.approx(1.1 * 2 * 25e9)
    assert found.cores == UNIVERSAL.cores and found.flops == UNIVERSAL.flops
    assert found.llc_bytes.value == 2**20
