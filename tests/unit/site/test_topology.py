"""Topologies from hwloc's XML, compared with the output of hwloc's tools for the same file."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tests.fixtures.machine_probe import Node, topology
from tests.fixtures.topologies import read_topology
from tests.folders import HWLOC

from proofmark.common.errors import BadInput
from proofmark.site.node.topology import Cache, Core, Topology

FILES = sorted(HWLOC.glob("*.xml"))
GIB = 1 << 30


def read(name: str) -> Topology:
    return read_topology(HWLOC / f"{name}.xml")


def run(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def calc(file: Path, *arguments: str) -> list[int]:
    """Return the list of indexes that hwloc-calc prints."""
    indexes = run("hwloc-calc", "-i", str(file), *arguments)
    return [int(word) for word in indexes.split(",") if word]


def calc_each(file: Path, places: Sequence[str], *arguments: str) -> list[list[int]]:
    """Return the list of indexes that hwloc-calc prints for each of `places`."""
    done = subprocess.run(
        ["hwloc-calc", "-i", str(file), *arguments],
        input="".join(f"{place}\n" for place in places),
        capture_output=True,
        text=True,
        check=True,
    )
    # Some versions first print that they wait for places.
    lines = [line for line in done.stdout.splitlines() if not line.startswith("Waiting")]
    assert len(lines) == len(places)
    return [[int(word) for word in line.split(",") if word] for line in lines]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_cores_are_those_of_hwloc_calc(file: Path) -> None:
    topology = read_topology(file)
    assert [len(topology.cores)] == calc(file, "--number-of", "core", "all")
    places = [f"core:{core.index}" for core in topology.cores]
    expected = calc_each(file, places, "--physical-output", "--intersect", "pu")
    assert [list(core.pus) for core in topology.cores] == expected


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
@pytest.mark.parametrize(
    ("kind", "attribute"), [("package", "socket"), ("l2", "tile"), ("l3", "l3")]
)
def test_packages_and_caches_of_cores_are_those_of_hwloc_calc(
    file: Path, kind: str, attribute: str
) -> None:
    topology = read_topology(file)
    actual: dict[int, list[int]] = {}
    for core in topology.cores:
        if (index := getattr(core, attribute)) is not None:
            actual.setdefault(index, []).append(core.index)
    indexes = calc(file, "--intersect", kind, "all")
    found = calc_each(file, [f"{kind}:{index}" for index in indexes], "--intersect", "core")
    expected = dict(zip(indexes, found, strict=True))
    everything = [core.index for core in topology.cores]
    assert actual == (expected if expected or kind != "package" else {0: everything})


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_numa_domains_are_those_of_hwloc_calc(file: Path) -> None:
    topology = read_topology(file)
    nodes = calc(file, "--physical-output", "--intersect", "numanode", "all")
    assert [domain.os_index for domain in topology.numa_domains] == sorted(nodes)
    places = [f"numanode:{domain.os_index}" for domain in topology.numa_domains]
    options = ("--physical-input", "--logical-output", "--intersect", "core")
    assert [list(each.near) for each in topology.numa_domains] == calc_each(file, places, *options)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_core_has_one_domain_and_domains_agree(file: Path) -> None:
    topology = read_topology(file)
    owners = {index: domain for domain in topology.numa_domains for index in domain.cores}
    assert sorted(owners) == [core.index for core in topology.cores]
    for core in topology.cores:
        assert owners[core.index].os_index == core.numa
        assert core.index in owners[core.index].near


def test_uneven_domains_of_snc4() -> None:
    topology = read("knl_snc4_flat_uneven")
    ddr = [domain for domain in topology.numa_domains if domain.kind == "ddr"]
    mcdram = [domain for domain in topology.numa_domains if domain.kind == "mcdram"]
    assert [len(domain.cores) for domain in ddr] == [18, 18, 16, 16]
    assert [domain.cores for domain in mcdram] == [()] * 4
    assert [domain.near for domain in mcdram] == [domain.cores for domain in ddr]
    assert topology.memory_bytes == 4 * (24 + 4) * GIB


@pytest.mark.parametrize("numbers", ["0,1,2,3,4,5,6,7", "4,0,5,1,6,2,7,3", "0,4,1,5,2,6,3,7"])
def test_mcdram_is_recognised_without_its_number(numbers: str) -> None:
    topology = Topology.from_lstopo(
        f"pack:1 group:4 [numa(memory=24GiB indexes={numbers})] [numa(memory=4GiB)] core:9 pu:4"
    ).of_processor("Intel(R) Xeon Phi(TM) CPU 7250")
    ddr, mcdram = numbers.split(",")[::2], numbers.split(",")[1::2]
    kinds = {domain.os_index: domain.kind for domain in topology.numa_domains}
    assert kinds == {int(n): "ddr" for n in ddr} | {int(n): "mcdram" for n in mcdram}
    assert [core.numa for core in topology.cores[::9]] == [int(n) for n in ddr]


@pytest.mark.parametrize(
    ("subtypes", "kinds"),
    [
        (("DRAM", "HBM"), ("ddr", "hbm")),
        (("HBM", "CXL-DRAM"), ("hbm", "cxl")),
        (("MCDRAM", "DRAM"), ("mcdram", "ddr")),
        (("", "NVM"), ("ddr", "nvm")),
        (("NVM", ""), ("nvm", "ddr")),
        (("GPUMemory", "DRAM"), ("gpu", "ddr")),
        (("", "SPM"), ("ddr", "other")),
        (("", ""), ("ddr", "other")),  # no names: it is unknown whether one is faster
    ],
)
def test_the_kind_of_memory_is_that_of_the_topology(
    tmp_path: Path, subtypes: tuple[str, str], kinds: tuple[str, str]
) -> None:
    file = str(tmp_path / "node.xml")
    synthetic = "pack:1 [numa(memory=16GiB)] [numa(memory=16GiB)] core:2 pu:1"
    run("lstopo-no-graphics", "--input-format", "synthetic", "-i", synthetic, "--of", "xml", file)
    for index, subtype in enumerate(subtypes):
        if subtype:
            run("hwloc-annotate", file, file, f"numanode:{index}", "subtype", subtype)
    topology = read_topology(Path(file))
    assert tuple(domain.kind for domain in topology.numa_domains) == kinds
    main = kinds.index("ddr") if "ddr" in kinds else kinds.index("hbm")
    assert {core.numa for core in topology.cores} == {main}
    assert topology.memories[0] == kinds[main]
    assert set(topology.memories) == {*kinds} - {"gpu"}  # the memory of GPUs is not measured


@pytest.mark.parametrize(
    ("model", "in_package", "kind"),
    [
        ("Intel(R) Xeon Phi(TM) CPU 7250", False, "mcdram"),
        ("Intel(R) Xeon(R) CPU Max 9480", False, "hbm"),
        ("Intel(R) Xeon(R) Platinum 8480+", False, "other"),
        ("Intel(R) Xeon(R) CPU Max 9480", True, "hbm"),
    ],
)
def test_only_a_xeon_phi_has_mcdram(model: str, in_package: bool, kind: str) -> None:
    topology = Topology.from_lstopo("pack:1 [numa(memory=16GiB)] [numa(memory=4GiB)] core:2 pu:1")
    named = topology.of_processor(model, in_package=in_package)
    assert [domain.kind for domain in named.numa_domains] == ["ddr", kind]


def test_memory_of_an_hbm_only_machine_is_hbm() -> None:
    topology = Topology.from_lstopo("pack:2 [numa(memory=64GiB)] core:2 pu:1")
    assert topology.of_processor("Intel(R) Xeon(R) CPU Max 9480").memories == ("hbm",)
    assert topology.of_processor("Intel(R) Xeon(R) Platinum 8480+").memories == ("ddr",)


def test_books_are_groups_of_packages_and_not_groups_inside_one() -> None:
    assert [core.book for core in read("p595").cores] == [n for n in range(8) for _ in range(8)]
    assert {core.book for core in read("skl_snc2_smt2").cores} == {None}


def test_caches_and_their_sum() -> None:
    topology = read("tachyon1")
    assert topology.caches == (Cache(2, 512 << 10, 1, 16), Cache(3, 2 << 20, 4, 4))
    assert topology.llc_bytes == 8 << 20
    assert read("knl_quad_flat").llc_bytes == 34 << 20
    assert read("p595").caches == ()
    assert read("p595").llc_bytes == 0


def test_sockets_and_hardware_threads() -> None:
    counts = {
        name: (read(name).sockets, read(name).threads_per_core) for name in ("p595", "laptop")
    }
    assert counts == {"p595": (32, 2), "laptop": (1, 2)}


def test_hops_come_from_the_distances() -> None:
    square = read("tachyon1").socket_hops
    assert {pair for pair, hops in square.items() if hops == 2} == {(0, 3), (3, 0), (1, 2), (2, 1)}
    assert len(square) == 12
    # The distance of SNC-2 domains within a socket is 11: it does not count as a hop.
    assert read("skl_snc2_smt2").socket_hops == {(0, 1): 1, (1, 0): 1}
    assert read("skl").socket_hops == {}


def test_hops_are_computed_from_the_nearest_domains_of_two_sockets() -> None:
    ring = {(0, 2): 31, (0, 3): 21, (1, 2): 21, (1, 3): 31}
    node = replace(read("skl_snc2_smt2"), distances=ring)
    assert node.socket_hops == {(0, 1): 1}
    third = Core(40, (80,), 2, None, 4, None, None)
    node = replace(node, cores=(*node.cores, third), distances={**ring, (0, 4): 25, (1, 4): 26})
    assert node.socket_hops == {(0, 1): 1, (0, 2): 2}


def test_sockets_that_share_a_domain_have_no_hops() -> None:
    node = replace(
        read("p595"), distances={(a, b): 10 + abs(a - b) for a in (0, 1) for b in (0, 1)}
    )
    assert (0, 1) not in node.socket_hops
    assert node.socket_hops[0, 4] == 1


def test_distances_that_the_firmware_lacks_can_be_added(tmp_path: Path) -> None:
    file, matrix = str(tmp_path / "node.xml"), tmp_path / "matrix"
    run("lstopo-no-graphics", "-i", str(HWLOC / "tachyon2.xml"), "--of", "xml", file)
    matrix.write_text("name=NUMALatency\n6\n2\nnumanode:0\nnumanode:1\n10\n33\n34\n10\n")
    run("hwloc-annotate", file, file, "root", "distances", str(matrix))
    assert read_topology(Path(file)).distances[0, 1] == 33


def test_cores_that_may_not_be_used_are_left_out() -> None:
    text = (HWLOC / "tachyon1.xml").read_text()
    few = re.sub('allowed_cpuset="[^"]*"', 'allowed_cpuset="0x00000ff6"', text, count=1)
    topology = Topology.from_xml(few)
    assert [core.pus for core in topology.cores] == [(n,) for n in (1, 2, *range(4, 12))]
    assert [core.index for core in topology.cores] == list(range(10))
    assert topology.numa_domains[0].cores == (0, 1)
    assert Cache(3, 2 << 20, 2, 1) in topology.caches
    none = re.sub('allowed_cpuset="[^"]*"', 'allowed_cpuset="0x0"', text, count=1)
    with pytest.raises(BadInput, match="no hardware thread that may be used"):
        Topology.from_xml(none)


def test_a_machine_without_cores_has_one_for_each_hardware_thread(tmp_path: Path) -> None:
    file = tmp_path / "vm.xml"
    synthetic = ("--input-format", "synthetic", "-i", "pack:2 core:2 pu:2", "--filter", "core:none")
    run("lstopo-no-graphics", *synthetic, "--of", "xml", str(file))
    topology = read_topology(file)
    assert [core.pus for core in topology.cores] == [(n,) for n in range(8)]
    assert [core.socket for core in topology.cores] == [0] * 4 + [1] * 4


def test_this_machine() -> None:
    topology = Topology.from_lstopo()
    assert {pu for core in topology.cores for pu in core.pus} <= os.sched_getaffinity(0)
    assert topology.memory_bytes > 0


def test_the_format_of_hwloc_1_is_refused_and_can_be_converted(tmp_path: Path) -> None:
    old, new = tmp_path / "old.xml", tmp_path / "new.xml"
    arguments = ("-i", str(HWLOC / "tachyon2.xml"), "--export-xml-flags", "1", "--of", "xml")
    run("lstopo-no-graphics", *arguments, str(old))
    with pytest.raises(BadInput, match=r"old\.xml: found the XML of hwloc 1; .*converts it"):
        read_topology(old)
    run("lstopo-no-graphics", "-i", str(old), "--of", "xml", str(new))
    assert read_topology(new).cores == read("tachyon2").cores


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: found no element"),
        ("<topology version='2.0'>\n<object", "line 2: found unclosed token"),
        ("<topology>" + "<object>" * 3000 + "</object>" * 3000 + "</topology>", "64 levels deep"),
        ("<html/>", "found XML whose root is 'html'"),
        ("<topology version='2.0'/>", "accepted: the XML of hwloc 2"),
        (
            "<topology version='2.0'><object type='Machine' cpuset='0xzz'/></topology>",
            "a number that cannot be read: .*0xzz",
        ),
        (
            "<topology version='2.0'><object type='Machine' cpuset='0x1' nodeset='0x1'>"
            "<object type='PU' os_index='0' cpuset='0x1'/></object></topology>",
            "no NUMA node that may be used",
        ),
    ],
)
def test_text_that_is_not_a_topology_is_refused(text: str, message: str) -> None:
    with pytest.raises(BadInput, match=f"(?s)node.xml: .*{message}"):
        Topology.from_xml(text, "node.xml")


def test_lstopo_that_refuses_or_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BadInput, match=r"lstopo.*pack:two"):
        Topology.from_lstopo("pack:two")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(BadInput, match=r"found no program lstopo.*; accepted: hwloc 2"):
        Topology.from_lstopo()


VIRTUAL = "[numa(memory=16GiB)] [numa(memory=16GiB)] pack:2 core:4 pu:1"
"""A virtual machine whose NUMA domains are no parts of its packages."""


def test_domains_across_packages_have_the_cores_that_linux_states() -> None:
    """Hwloc attaches such domains to the whole machine: they get equal parts of the cores."""
    across = Topology.from_lstopo(VIRTUAL)
    assert [len(domain.cores) for domain in across.numa_domains] == [4, 4]
    stated = across.of_kernel({0: (0, 1, 4, 5), 1: (2, 3, 6, 7)})
    assert [domain.cores for domain in stated.numa_domains] == [(0, 1, 4, 5), (2, 3, 6, 7)]
    assert [domain.near for domain in stated.numa_domains] == [(0, 1, 4, 5), (2, 3, 6, 7)]
    assert {domain.kind for domain in stated.numa_domains} == {"ddr"}
    assert stated.memories == ("ddr",)


def test_memory_to_which_linux_states_no_cores_stays_another_memory() -> None:
    stated = Topology.from_lstopo(VIRTUAL).of_kernel({0: tuple(range(8)), 1: ()})
    assert [len(domain.cores) for domain in stated.numa_domains] == [8, 0]
    assert [domain.kind for domain in stated.numa_domains] == ["ddr", "other"]
    assert [domain.kind for domain in stated.of_processor("Intel Xeon Phi 7250").numa_domains] == [
        "ddr",
        "mcdram",
    ]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_linux_states_the_same_cores_where_hwloc_knows_them(file: Path) -> None:
    topology = read_topology(file)
    stated = {
        domain.os_index: tuple(pu for index in domain.cores for pu in topology.cores[index].pus)
        for domain in topology.numa_domains
    }
    assert topology.of_kernel(stated) == topology


@pytest.mark.parametrize(
    ("notation", "cores"),
    [
        ("pack:2 [numa] l3:8 core:8 pu:2", 8),
        ("pack:2 [numa] l3:16 core:4 pu:1", 4),
        ("pack:2 [numa] l3:1 core:20 pu:1", 20),
        ("pack:1 [numa] l2:34 core:2 pu:4", None),
    ],
)
def test_the_cores_of_an_l3_cache(notation: str, cores: int | None) -> None:
    assert Topology.from_lstopo(notation).least_l3_cores == cores


ACROSS = Node(
    "Xeon",
    cores=4,
    l3=(1024, 4),
    domains=[
        {"cores": [0, 1, 4, 5], "gib": 8, "across": True},
        {"cores": [2, 3, 6, 7], "gib": 8, "across": True},
    ],
)
"""Domains whose cores are in both packages: hwloc attaches them to the whole node."""


def test_equal_domains_of_the_whole_node_have_equal_parts_of_its_cores() -> None:
    text = topology(ACROSS)
    parts = [(each.kind, each.cores, each.near) for each in Topology.from_xml(text).numa_domains]
    assert parts == [("ddr", (0, 1, 2, 3), (0, 1, 2, 3)), ("ddr", (4, 5, 6, 7), (4, 5, 6, 7))]
