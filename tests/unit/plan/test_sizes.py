"""Sizes and repeats that follow from the machine: the time of `quick`, arrays, lengths of runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from tests.fixtures.kit import contract_of, item
from tests.fixtures.shipped import shipped_benchmarks, shipped_site

from proofmark.common.errors import BadInput
from proofmark.plan.expansion import make_plan
from proofmark.plan.plan import Plan
from proofmark.plan.sweep import storage_rates
from proofmark.site.contract_document import ContractItem
from proofmark.site.machines import machines_of

BOUND_S = 300
NODES = {
    2: "pack:1 l3:1(size=32MiB) core:2 pu:1",
    64: "pack:2 [numa(memory=64GiB)] l3:1(size=32MiB) core:32 pu:1",
    192: "pack:2 [numa(memory=384GiB)] l3:12(size=32MiB) l2:8(size=1MiB) core:1 pu:2",
    384: "pack:2 [numa(memory=384GiB)] l3:12(size=32MiB) l2:16(size=1MiB) core:1 pu:2",
}


def plan(
    cores: int,
    origin: str = "spack",
    suite: str = "quick",
    limits: Sequence[ContractItem] = (),
    **scratch: Any,
) -> Plan:
    """Return the plan of a suite on one node of the example with `cores` cores."""
    site = shipped_site("example-epyc", "epyc")
    partition = site.partition
    node = partition.node.model_copy(update={"topology": NODES[cores]})
    mode = partition.modes[partition.current_mode].model_copy(update={"topology": None})
    partition = partition.model_copy(
        update={
            "node": node,
            "provision_from": origin,
            "modes": {partition.current_mode: mode},
            "scratch": partition.scratch.model_copy(update=scratch),
        }
    )
    site = site.model_copy(
        update={"partition": partition, "hosts": site.hosts[:1], "contract": contract_of(limits)}
    )
    return make_plan(shipped_benchmarks(), suite, site, machines_of(site)[0])


@pytest.mark.parametrize("cores", NODES)
@pytest.mark.parametrize("origin", ["system", "spack"])
@pytest.mark.parametrize("rates", [{}, {"client_bytes_per_s": None, "bytes_per_s": None}])
def test_quick_ends_within_five_minutes(cores: int, origin: str, rates: dict[str, Any]) -> None:
    made = plan(cores, origin, **rates)
    assert made.totals.wall_s <= BOUND_S
    stated = {
        name: case.suites["quick"][0].repeats
        for name, case in shipped_benchmarks().cases.items()
        if "quick" in case.suites
    }
    for case in {step.case for step in made.steps()}:
        repeats = max(step.repeat for step in made.steps() if step.case == case)
        fewer = f"{case}: {repeats} of {stated[case]} repeats, within 4 min 45 s"
        assert (fewer in made.left_out) is (repeats < stated[case])
        assert repeats >= 3 or case not in ("hpcc", "hpl", "hpl-core")


def test_a_suite_without_a_limit_keeps_its_repeats() -> None:
    assert max(step.repeat for step in plan(192, suite="p2").steps()) == 3


def test_small_arrays_and_short_solves_are_labelled() -> None:
    """On two cores the arrays of hpcc have 19 MB, beside 32 MiB of cache."""
    step = next(each for each in plan(2, "system").steps() if each.case == "hpcc")
    assert (step.parameters["stream_arrays"], step.parameters["solve"]) == ("cache", "short")
    long = [each for each in plan(192, suite="node").steps() if each.case == "hpl"]
    assert {each.parameters["solve"] for each in long} == {"steady"}


def limit_of(**where: str) -> ContractItem:
    """Return a contract limit for Triad of hpcc."""
    return item(
        case="hpcc",
        metric="stream_star_triad",
        where=dict(where),
        value=12.5,
        unit="GB/s",
        at_least=0.95,
        source="annex 2",
    )


@pytest.mark.fault("memory-limit-for-a-cache")
def test_a_contract_does_not_judge_memory_by_a_figure_of_the_cache() -> None:
    with pytest.raises(BadInput, match="stream_arrays 'cache'"):
        plan(2, "system", limits=[limit_of()])


def test_a_limit_that_names_the_cache_is_accepted() -> None:
    plan(2, "system", limits=[limit_of(stream_arrays="cache")])


def test_the_space_is_what_can_be_written_in_the_time() -> None:
    site = shipped_site("nurion", "skl")
    scratch = site.partition.scratch
    for client, servers in ((None, None), (1e9, None), (None, 50e9), (1e9, 50e9)):
        known = scratch.model_copy(update={"client_bytes_per_s": client, "bytes_per_s": servers})
        partition = site.partition.model_copy(update={"scratch": known})
        rates = storage_rates(partition)
        of = site.model_copy(update={"partition": partition, "hosts": site.hosts[:132]})
        made = make_plan(shipped_benchmarks(), "io", of, machines_of(of)[0])
        for step in made.steps():
            if step.case in ("ior-easy", "ior-hard"):
                clients = 1 if step.scope == "each-node" else len(step.nodes)
                peak = min(clients * rates["client_peak"], rates["servers_peak"])
                assert step.bytes <= peak * float(step.parameters["limit_s"]) * (1 + 1e-6)
        assert ("scratch.bytes_per_s" in made.assumed) is (servers is None)


def test_mdtest_creates_files_for_a_time_at_any_scale() -> None:
    site = shipped_site("nurion", "skl")
    made = make_plan(shipped_benchmarks(), "io", site, machines_of(site)[0])
    steps = [step for step in made.steps() if step.case == "mdtest"]
    for step in steps:
        words = step.arguments
        limit = int(words[words.index("-W") + 1])
        items = int(words[words.index("-n") + 1])
        assert limit >= 30 and "-P" in words and "-F" in words
        # The creation of a million files per second does not end before the time.
        assert items * step.ranks >= limit * min(20_000 * len(step.nodes), 1_000_000)
        easy = step.parameters["directories"] == "many"
        assert words[words.index("-w") + 1] == ("0" if easy else "3901")
    assert max(step.ranks for step in steps) >= 1024


@pytest.mark.parametrize("suite", ["node", "full"])
@pytest.mark.parametrize(
    ("where", "shares"),
    [
        (None, {0.2}),
        ({}, {0.8}),
        ({"memory_share": 0.2}, {0.2}),
        ({"nodes": 1, "memory_share": 0.5}, {0.5}),
        ({"nodes": 4}, {0.2}),
    ],
)
def test_hpl_of_a_node_has_the_size_that_the_contract_agrees(
    suite: str, where: dict[str, Any] | None, shares: set[float]
) -> None:
    """A matrix of a fifth of the memory of a KNL solves for less than a minute."""
    site = shipped_site("nurion", "knl")
    of_node = {"case": "hpl", "metric": "rmax", "value": 1000, "unit": "Gflops", "at_least": 1}
    items = [] if where is None else [item(**of_node, where=where)]
    site = site.model_copy(
        update={
            "hosts": site.hosts[:4],
            "partition_hosts": list(site.hosts[:4]),
            "contract": contract_of(items),
        }
    )
    plan = make_plan(shipped_benchmarks(), suite, site, machines_of(site)[0], digest=False)
    steps = [each for each in plan.steps() if each.case == "hpl" and each.scope == "each-node"]
    assert {each.recorded["memory_share"] for each in steps} == shares
    if shares == {0.8}:
        assert {each.recorded["solve"] for each in steps} == {"steady"}


@pytest.mark.parametrize("cores", [64, 192, 384])
def test_hpl_has_a_rank_for_each_l3_cache_that_several_cores_share(cores: int) -> None:
    """One L3 of a socket is no part of it; 12 of them are."""
    caches = 24 if cores > 64 else 2
    (step,) = [each for each in plan(cores, suite="node").steps() if each.case == "hpl"]
    assert (step.ranks, step.threads) == (caches, cores // caches)
