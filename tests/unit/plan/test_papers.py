"""The suite of a paper is its matrix, written by hand in tests/papers/, and has all its claims."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Container, Iterator, Mapping
from functools import cache
from itertools import product
from typing import Any

import polars as pl
import pytest
import yaml
from tests.fixtures.shipped import shipped_benchmarks, shipped_site
from tests.fixtures.sweeps import COLUMNS
from tests.folders import ROOT

from proofmark.packages.papers.all_claims import CLAIMS, answers
from proofmark.plan.expansion import make_plan
from proofmark.plan.plan import Plan, Step
from proofmark.site.inventory import Site
from proofmark.site.machines import Machine, declared, machines_of
from proofmark.site.node.topology import Topology

PAPERS = {path.stem: path for path in sorted((ROOT / "tests" / "papers").glob("*.yml"))}
RESTATED: dict[str, dict[str, Any]] = {
    name: yaml.safe_load(path.read_text(encoding="utf-8")) for name, path in PAPERS.items()
}
REPEATS = 3
"""The repeats of a suite of a paper."""
SYSTEMS = [(paper, system) for paper, systems in RESTATED.items() for system in systems]
EXPERIMENTS = [
    (paper, system, name)
    for paper, systems in RESTATED.items()
    for system, about in systems.items()
    for name in about["experiments"]
]


@cache
def site(inventory: str, partition: str) -> Site:
    return shipped_site(inventory, partition)


@cache
def plan(suite: str, inventory: str, partition: str) -> Plan:
    chosen = site(inventory, partition)
    machines, probe = machines_of(chosen)
    assert probe == ""  # no node was probed
    return make_plan(shipped_benchmarks(), suite, chosen, machines, digest=False)


def of(paper: str, system: str) -> Plan:
    return plan(paper, RESTATED[paper][system]["inventory"], system)


def with_parameters(made: Plan) -> Iterator[tuple[Step, dict[str, Any]]]:
    """Yield every step with the values that an experiment may require."""
    for group in made.groups:
        for job in group.jobs:
            for step in job.steps:
                facts = {"mode": group.mode, "nodes": len(step.nodes), "case": step.case}
                counts = {"ranks": step.ranks, "threads": step.threads}
                yield (
                    step,
                    {
                        **step.derived,
                        **step.parameters,
                        **facts,
                        **counts,
                        "placement": step.placement,
                    },
                )


def values(given: Any) -> list[Any]:
    if isinstance(given, dict):
        return list(range(given["from"], given["to"] + 1))
    return list(given)


def matrix(experiment: Mapping[str, Any]) -> dict[tuple[tuple[str, Any], ...], None]:
    """Return the points of an experiment as sorted pairs of axis and value."""
    found: dict[tuple[tuple[str, Any], ...], None] = {}
    for block in experiment["blocks"]:
        axes = {axis: values(given) for axis, given in block.items()}
        for combination in product(*axes.values()):
            found[tuple(sorted(zip(axes, combination, strict=True)))] = None
    return found


def belongs(about: Mapping[str, Any], experiment: Mapping[str, Any], points: Container[Any]) -> Any:
    """Return the point of `experiment`, which has `points`, that a step measures, or None."""
    if about["case"] != experiment["case"]:
        return None
    every = experiment.get("every", {})
    if any(about.get(key) != value for key, value in every.items()):
        return None
    for block in experiment["blocks"]:
        if block.keys() <= about.keys():
            point = tuple(sorted((axis, about[axis]) for axis in block))
            if point in points:
                return point
    return None


@pytest.mark.parametrize(("paper", "system", "name"), EXPERIMENTS)
def test_an_experiment_is_planned_point_by_point(paper: str, system: str, name: str) -> None:
    experiment = RESTATED[paper][system]["experiments"][name]
    expected_points = matrix(experiment)
    assert len(expected_points) == experiment["count"]
    found = [
        (point, step)
        for step, about in with_parameters(of(paper, system))
        if (point := belongs(about, experiment, expected_points)) is not None
    ]
    for repeat in range(1, REPEATS + 1):
        points = [point for point, step in found if step.repeat == repeat]
        assert sorted(points, key=str) == sorted(expected_points, key=str)
    if size := experiment.get("bytes"):
        sizes = {step.bytes for _, step in found}
        assert (min(sizes), max(sizes)) == (size["from"], size["to"])


@pytest.mark.parametrize(("paper", "system"), SYSTEMS)
def test_a_suite_has_no_other_steps_than_its_paper(paper: str, system: str) -> None:
    about = RESTATED[paper][system]
    experiments = [(each, matrix(each)) for each in about["experiments"].values()]
    steps = list(with_parameters(of(paper, system)))
    strange = [
        step.id
        for step, found in steps
        if all(belongs(found, *experiment) is None for experiment in experiments)
    ]
    assert strange == []
    once = about.get("steps", sum(each["count"] for each, _ in experiments))
    assert len(steps) == REPEATS * once
    if "jobs" in about:
        assert of(paper, system).totals.jobs == about["jobs"]


def test_p2_has_136_thread_counts_in_one_job() -> None:
    made = of("p2", "knl")
    (job,) = (job for group in made.groups for job in group.jobs)
    assert {step.threads for step in job.steps} == set(range(1, 137))
    assert len(job.nodes) == 1


def test_memory_is_bound_by_the_topology() -> None:
    for step, about in with_parameters(of("p1", "knl")):
        if step.case == "stream":
            assert step.membind == {"ddr": [0], "mcdram": [1]}[about["memory"]]
        if step.case == "hpl":
            domains = {"snc2-flat": [0, 1], "snc4-flat": [0, 1, 2, 3]}.get(about["mode"], [0])
            assert step.membind == domains
    # One kind of memory: the page cache may use the memory of both sockets (C1.7).
    assert {tuple(step.membind) for step in of("p1", "skl").steps()} == {()}


def test_hpl_fits_into_the_memory_that_it_is_bound_to() -> None:
    ddr = 98207 << 20
    for step, about in with_parameters(of("p1", "knl")):
        if step.case == "hpl" and about["mode"] == "quadrant-flat":
            n = int(about["n"])
            assert 0.75 < 8 * n * n / (ddr * about["nodes"]) <= 0.8
            assert n % int(about["nb"]) == 0
            assert int(about["p"]) * int(about["q"]) == step.ranks


def test_ranks_across_domains_are_unfitted_and_others_are_not() -> None:
    chosen = site("nurion", "knl")
    machines, _ = machines_of(chosen)
    for step, about in with_parameters(of("p1", "knl")):
        if step.case == "hpl":
            core_of = machines(about["mode"]).topology.core_of
            spans = any(len({core_of[cpu].numa for cpu in rank.cpus}) > 1 for rank in step.cpus)
            assert spans == (step.placement == "unfitted")


def test_the_buffers_of_collectives_fit_into_the_memory() -> None:
    memory = 8 * 32 << 30
    for step, about in with_parameters(of("p5", "p595")):
        buffers = 2 if about["collective"] in ("Bcast", "Allreduce") else 2 * step.ranks
        largest = 2 ** int(about["largest_log2"])
        assert buffers * largest * min(step.ranks, 64) <= memory / 2
        assert largest <= 4 << 20
    assert {2 ** int(about["largest_log2"]) for _, about in with_parameters(of("p5", "p595"))} > {
        4 << 20
    }


def test_contention_gives_every_copy_a_pair_of_the_two_nodes() -> None:
    for step, about in with_parameters(of("p3", "tachyon1")):
        if step.case == "osu-contention":
            assert (step.copies, step.ranks) == (about["pairs"], 2 * about["pairs"])
            for copy in range(step.copies):
                (one, first), (other, second) = step.cpus[copy :: step.copies]
                assert (one, other) == (0, 1)
                assert first == second


def test_each_distance_chooses_a_pair_of_nodes_at_this_distance() -> None:
    chosen = site("tachyon", "tachyon1")
    pairs = {
        str(about["distance"]): step.nodes
        for step, about in with_parameters(of("p3", "tachyon1"))
        if step.case == "osu-bw" and "distance" in about
    }
    shared = {
        level: {key for key in ("chip", "line-card") if places[0][key] == places[1][key]}
        for level, nodes in pairs.items()
        if (places := [chosen.location(node) for node in nodes])
    }
    expected = {"chip": {"chip", "line-card"}, "line-card": {"line-card"}, "switch": set()}
    assert shared == expected


def test_the_nominal_peaks_are_those_of_the_paper() -> None:
    """P1.rpeak, equations 1 and 2."""
    for partition, gflops in {"knl": 3046.4, "skl": 3072.0}.items():
        chosen = site("nurion", partition)
        machine = declared(chosen, chosen.partition.node, chosen.partition.current_mode)
        assert machine.symbols["rpeak_nominal"] == pytest.approx(gflops * 1e9)


@pytest.mark.parametrize("suite", ["node", "burnin", "tune", "full", *PAPERS])
def test_every_suite_plans_on_a_small_machine(suite: str) -> None:
    local = site("local", "local")
    seen = Topology.from_lstopo("pack:1 [numa(memory=8GiB)] l3:1(size=8MiB) core:2 pu:1")
    symbols = {
        "cores": 2,
        "sockets": 1,
        "numa": 1,
        "domain_cores": [2],
        "domain_threads": 2,
        "main_memory": "ddr",
        "memories": ["ddr"],
        "threads_per_core": 1,
        "memory_bytes": 8 << 30,
        "llc_bytes": 8 << 20,
        "likely_flops": 4e10,
        "nodes": 1,
    }
    made = make_plan(shipped_benchmarks(), suite, local, Machine(symbols, seen))
    assert made.totals.steps > 0
    assert all(step.scope == "job" and step.nodes == ["localhost"] for step in made.steps())


XEON_MAX = "pack:2 [numa(memory=256GiB)] [numa(memory=64GiB)] l3:1(size=112MiB) core:56 pu:1"
CACHE_MODE = "pack:2 [numa(memory=256GiB)] l3:1(size=112MiB) core:56 pu:1"


@pytest.mark.parametrize(
    ("notation", "memories"), [(XEON_MAX, {"ddr", "hbm"}), (CACHE_MODE, {"ddr"})]
)
@pytest.mark.parametrize("suite", ["p1", "p2"])
def test_a_xeon_max_repeats_the_experiments_of_the_papers(
    suite: str, notation: str, memories: set[str]
) -> None:
    """In Flat mode STREAM and IOR use the memory of the package, too. No case names it."""
    chosen = site("example-xeon", "xeon")
    changes = {"cpu_model": "Intel(R) Xeon(R) CPU Max 9480", "topology": notation}
    node = chosen.partition.node.model_copy(update=changes)
    partition = chosen.partition.model_copy(update={"node": node})
    of_max = chosen.model_copy(update={"partition": partition})
    machine = declared(of_max, node, partition.current_mode)
    made = make_plan(shipped_benchmarks(), suite, of_max, machine)
    for case in {"p1": ("stream", "ior"), "p2": ("stream",)}[suite]:
        steps = [step for step in made.steps() if step.case == case]
        assert {step.parameters["memory"] for step in steps} == memories
    (bound,) = {
        tuple(step.membind)
        for step in made.steps()
        if step.case == "stream" and step.threads == 112 and step.parameters["memory"] == "ddr"
    }
    assert bound == ((0, 2) if len(memories) > 1 else ())


@pytest.mark.fault("paper-measured-once")
@pytest.mark.parametrize("paper", PAPERS)
def test_a_suite_of_a_paper_runs_each_step_three_times(paper: str) -> None:
    assert shipped_benchmarks().suite(paper).repeats == 3
    for system in RESTATED[paper]:
        made = of(paper, system)
        counts = Counter(step.repeat for step in made.steps())
        assert counts == dict.fromkeys((1, 2, 3), made.totals.steps // 3)


@pytest.mark.parametrize("system", ["knl", "skl"])
def test_the_papers_bind_memory_on_knl_and_not_on_skl(system: str) -> None:
    bound = {
        (step.case, bool(step.membind))
        for step, about in with_parameters(of("p1", system))
        if "memory" in about
    }
    assert bound == {(case, system == "knl") for case in ("hpl", "ior", "stream")}


PARTITIONS = [
    ("nurion", "knl"),
    ("nurion", "skl"),
    ("tachyon", "tachyon1"),
    ("tachyon", "tachyon2"),
    ("p595", "p595"),
]
SUITES = [*PAPERS, "node", "full", "burnin"]


@pytest.mark.parametrize("system", PARTITIONS, ids=[name for _, name in PARTITIONS])
@pytest.mark.parametrize("suite", SUITES)
def test_each_step_of_the_papers_systems_fits_into_its_limit(
    suite: str, system: tuple[str, str]
) -> None:
    for step in plan(suite, *system).steps():
        # The limit begins after the load of the step is warm.
        warm_up_s = step.load.warm_up_s if step.load else 0
        assert step.timeout >= 60 + int(10 * (step.seconds - warm_up_s)), step.id


KERNELS = ("copy", "scale", "add", "triad")


def printed(step: Step) -> Iterator[tuple[str, str, str, dict[str, Any]]]:
    """Yield benchmark, metric, unit and parameters of each figure that a step prints."""
    if step.case == "stream":
        for kernel in KERNELS:
            yield "STREAM", kernel, "MB/s", {"threads": step.threads}
    elif step.case == "hpl":
        yield "HPL", "rmax", "Gflops", {"n": step.derived["n"]}
    elif step.case == "ior":
        for operation in ("write", "read"):
            yield "IOR", operation, "MiB/s", {"tasks": step.ranks, "transfer_bytes": 2097152}
    elif step.case == "osu-bw":
        for power in range(23):
            yield "Bandwidth", "bandwidth", "MB/s", {"bytes": 2**power}
    elif step.case == "osu-contention":
        for pair in range(1, step.copies + 1):
            number = {"pair": pair} if step.copies > 1 else {}
            yield (
                "Bandwidth",
                "bandwidth",
                "MB/s",
                {"bytes": step.parameters["message_bytes"], **number},
            )
    elif step.case == "npb-btio":
        yield "BT", "io_time", "s", {"ranks": step.ranks}
    elif step.case == "imb-collectives":
        for power in range(int(step.derived["largest_log2"]) + 1):
            sizes = {"ranks": step.ranks, "bytes": 2**power}
            yield str(step.parameters["collective"]), "t_avg", "usec", sizes


def planned() -> pl.DataFrame:
    """Return three records of each figure of the plan of each paper; all values are 1."""
    rows = []
    for paper, system in SYSTEMS:
        for group in of(paper, system).groups:
            for step in (step for job in group.jobs for step in job.steps):
                for benchmark, metric, unit, parameters in printed(step):
                    row = {
                        "step": step.id,
                        "system": system,
                        "case": step.case,
                        "benchmark": benchmark,
                        "metric": metric,
                        "unit": unit,
                        "mode": group.mode,
                        "placement": step.placement,
                        "parameters": json.dumps({**step.parameters, **parameters}, sort_keys=True),
                    }
                    rows.append(row)
    table = pl.DataFrame(rows).with_columns(
        run=pl.lit("r"),
        attempt=pl.lit(1),
        partition=pl.lit("p"),
        node=pl.lit("n"),
        origin=pl.lit("measured"),
        value=pl.lit(1.0),
        repeat=pl.lit(1),
        environment_hash=pl.lit("e"),
        valid=pl.lit(True),
        reason=pl.lit(""),
    )
    return pl.concat([table.select(COLUMNS)] * 3)


@pytest.fixture(scope="module")
def words() -> dict[tuple[str, tuple[str, ...]], str]:
    return {
        (answer.claim.id, answer.claim.systems): f"{answer.word}: {answer.missing}"
        for answer in answers(planned())
    }


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: f"{claim.id}-{claim.systems[0]}")
def test_the_suite_of_a_paper_is_a_complete_sweep(
    words: dict[tuple[str, tuple[str, ...]], str], claim: Any
) -> None:
    word = words[claim.id, claim.systems]
    # Equal figures contradict most claims, but no point is missing.
    assert word.startswith(("holds", "does not hold")), word
