"""HPL on nodes with NUMA domains that have no memory or different numbers of cores."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from itertools import product
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fixtures.shipped import shipped_benchmarks
from tests.unit.plan.test_papers import site

from proofmark.common.errors import BadInput
from proofmark.plan.expansion import make_plan
from proofmark.plan.placement import PlacementRequest, place
from proofmark.plan.plan import Plan
from proofmark.plan.totals import idle_cores
from proofmark.site.machines import declared
from proofmark.site.node import hwloc
from proofmark.site.node.topology import Core, NumaDomain, Topology

FOUR = "pack:1 die:4 [numa(memory=64GiB)] l3:1(size=16MiB) core:6 pu:2"
"""A node with four domains. Each domain has six cores, each core two hardware threads."""


def xml_of(change: Callable[[ElementTree.Element], None], notation: str = FOUR) -> str:
    """Return hwloc's XML of the synthetic node `notation`, changed by `change`."""
    root = ElementTree.fromstring(hwloc.lstopo(notation))
    change(root)
    return ElementTree.tostring(root, encoding="unicode")


def memory_of(domain: int, size: str | None, root: ElementTree.Element) -> None:
    """Set the size of the memory of a domain. With None, remove its NUMA node, as hwloc does."""
    parents = {child: parent for parent in root.iter() for child in parent}
    (node,) = root.findall(f".//object[@type='NUMANode'][@os_index='{domain}']")
    if size is None:
        parents[node].remove(node)
    else:
        node.set("local_memory", size)


def without_memory(size: str | None, root: ElementTree.Element) -> None:
    """Remove the memory of the first and of the last domain."""
    for domain in (0, 3):
        memory_of(domain, size, root)


def allowed(mask: str, root: ElementTree.Element) -> None:
    """Allow only the hardware threads in `mask`."""
    (machine,) = root.findall("object")
    machine.set("allowed_cpuset", mask)


def near(latencies: Mapping[tuple[int, int], int], root: ElementTree.Element) -> None:
    """Remove the memory of the last domain. Add a matrix of latencies between the domains."""
    memory_of(3, "0", root)
    matrix = ElementTree.SubElement(root, "distances2", type="NUMANode", kind="5", nbobjs="4")
    ElementTree.SubElement(matrix, "indexes").text = "0 1 2 3"
    pairs = product(range(4), range(4))
    values = (10 if a == b else latencies.get((a, b), 20) for a, b in pairs)
    ElementTree.SubElement(matrix, "u64values").text = " ".join(map(str, values))


Plans = Callable[[str, int], tuple[Plan, list[str]]]


@pytest.fixture
def hpl(tmp_path: Path) -> Plans:
    """Return a function from the XML of a node to its plan of HPL, and the notes on idle cores."""

    def planned(xml: str, threaded_blas: int) -> tuple[Plan, list[str]]:
        topology = tmp_path / "node.xml"
        topology.write_text(xml, encoding="utf-8")
        chosen = site("nurion", "skl")
        node = chosen.partition.node.model_copy(update={"topology": str(topology)})
        facts = {**chosen.partition.facts, "threaded_blas": threaded_blas}
        partition = chosen.partition.model_copy(update={"facts": facts, "node": node})
        one = chosen.model_copy(update={"hosts": chosen.hosts[:1], "partition": partition})
        machine = declared(one, node, partition.current_mode)
        made = make_plan(shipped_benchmarks(), "node", one, machine)
        return made, list(idle_cores(made, lambda _: machine))

    return planned


def ranks_of(made: Plan) -> list[tuple[int, ...]]:
    """Return the hardware threads of each rank of HPL."""
    (step,) = [step for step in made.steps() if step.case == "hpl"]
    return [rank.cpus for rank in step.cpus]


@pytest.mark.parametrize("size", [None, "0"], ids=["missing", "zero"])
@pytest.mark.parametrize("blas_threads", [1, 0])
def test_cores_without_memory_of_their_own_compute_too(
    hpl: Plans, size: str | None, blas_threads: int
) -> None:
    xml = xml_of(partial(without_memory, size))
    topology = Topology.from_xml(xml)
    assert [len(domain.cores) for domain in topology.numa_domains] == [12, 12]
    made, notes = hpl(xml, blas_threads)
    ranks = ranks_of(made)
    assert sum(len(rank) for rank in ranks) == 24
    # Two dies of six cores share a domain. Each die has an L3 cache.
    assert len(ranks) == (4 if blas_threads else 24)
    for rank in ranks:  # near one memory
        assert len({topology.core_of[cpu].numa for cpu in rank}) == 1
    assert notes == []


def test_cores_without_memory_use_the_nearest_by_latency() -> None:
    """The cores of the last domain have the shortest latency to the second domain."""
    topology = Topology.from_xml(xml_of(partial(near, {(3, 1): 12})))
    assert [len(domain.cores) for domain in topology.numa_domains] == [6, 12, 6]


@pytest.mark.parametrize(
    ("mask", "threads_of_ranks"),
    [("0x000c000f", [2, 2, 2]), ("0x001c0003", [1] * 5)],
)
def test_domains_of_unequal_size_use_all_cores(
    hpl: Plans, mask: str, threads_of_ranks: list[int]
) -> None:
    notation = "pack:2 [numa(memory=64GiB)] core:18 pu:1"
    made, notes = hpl(xml_of(partial(allowed, mask), notation), 1)
    assert [len(rank) for rank in ranks_of(made)] == threads_of_ranks
    assert notes == []


def test_a_plan_names_the_cores_that_it_leaves_idle(hpl: Plans) -> None:
    notation = "pack:2 [numa(memory=64GiB)] core:24 pu:1"
    made, (note,) = hpl(xml_of(partial(allowed, "0x0000ffff,0xfffffffe"), notation), 1)
    assert [len(rank) for rank in ranks_of(made)] == [23, 23]
    assert note.startswith("hpl, mode current: the ranks use 46 of 47 cores of a node")


@given(
    cores=st.lists(st.integers(1, 9), min_size=1, max_size=4),
    threads=st.integers(1, 4),
    data=st.data(),
)
def test_fitted_ranks_never_cross_a_domain_or_share_a_core(
    cores: list[int], threads: int, data: st.DataObject
) -> None:
    of_core = [domain for domain, count in enumerate(cores) for _ in range(count)]
    topology = Topology(
        tuple(Core(i, (i,), numa, None, numa, None, None) for i, numa in enumerate(of_core)),
        tuple(
            NumaDomain(n, 1, "ddr", own := tuple(i for i, d in enumerate(of_core) if d == n), own)
            for n in range(len(cores))
        ),
    )
    room = sum(each // threads for each in cores)
    ranks = data.draw(st.sampled_from([room, len(cores)]))
    try:
        placed = place(PlacementRequest(topology, "fitted", ranks, threads=threads))
    except BadInput:
        assert not ranks or ranks > room or min(cores) < threads
        return
    used = [topology.core_of[cpu].index for rank in placed for cpu in rank.cpus]
    assert len(used) == len(set(used)) == ranks * threads
    for rank in placed:
        assert len({topology.core_of[cpu].numa for cpu in rank.cpus}) == 1


def test_a_case_that_cannot_use_all_cores_says_so() -> None:
    """NPB BT needs a square number of ranks: 36 of the 40 cores."""
    chosen = site("nurion", "skl")
    one = chosen.model_copy(update={"hosts": chosen.hosts[:1]})
    machine = declared(one, one.partition.node, one.partition.current_mode)
    made = make_plan(shipped_benchmarks(), "full", one, machine)
    (line,) = idle_cores(made, lambda _: machine)
    assert line.startswith("npb-btio, ") and "36 of 40 cores of a node" in line
    assert line.endswith("the case plans 36 ranks × 1 thread")
