"""Facts of several kinds of nodes, from recorded and constructed probes."""

from __future__ import annotations

from pathlib import Path

import archspec.cpu
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fixtures.probes import node_facts, probe_text
from tests.folders import HWLOC

from proofmark.common.errors import BadInput
from proofmark.site.machines import Machine
from proofmark.site.node import parts
from proofmark.site.node.cpu import architecture, cpu_list, cpu_mask, read_cpuinfo, vector_set
from proofmark.site.node.facts import NodeFacts, parse_probe
from proofmark.site.node.hwloc import lstopo
from proofmark.site.node.parts import size
from proofmark.site.node.probe_text import read_stream

LIVE = "live-kvm-zen3"
NODES = [LIVE, "knl-7250-quadrant-flat", "skl-2x6148", "spr-vm", "power9-ppc64le"]


def with_topology(facts: NodeFacts) -> NodeFacts:
    """Return `facts` with a topology: most of the probes were made without lstopo."""
    return facts.model_copy(update={"topology_xml": (HWLOC / "skl.xml").read_text()})


@pytest.mark.parametrize("name", NODES)
def test_facts_are_unchanged_after_json(name: str) -> None:
    assert NodeFacts.model_validate_json(node_facts(name).model_dump_json()) == node_facts(name)


@pytest.mark.parametrize("name", NODES)
def test_the_first_line_marks_a_probe_as_recorded_or_constructed(name: str) -> None:
    origin = "# recorded" if name == LIVE else "# constructed"
    assert probe_text(name).startswith(origin)


@pytest.mark.parametrize(
    ("name", "known"),
    [
        (LIVE, {"architecture": "zen2", "vector_isa": "AVX2", "virtual": "kvm", "family": 25}),
        (
            "knl-7250-quadrant-flat",
            {
                "architecture": "mic_knl",
                "vector_isa": "AVX-512",
                "vector_bits": 512,
                "virtual": None,
                "family": 6,
                "model": 87,
                "microcode": "0x1b6",
                "base_hz": 1_400_000_000,
                "governor": "performance",
                "clock_offset_s": -1.2345e-05,
            },
        ),
        (
            "skl-2x6148",
            {
                "architecture": "skylake_avx512",
                "base_hz": 2_400_000_000,
                "turbo": True,
                "smt": "off",
            },
        ),
        ("spr-vm", {"architecture": "sapphirerapids", "model": 207, "virtual": "kvm"}),
        (
            "power9-ppc64le",
            {"architecture": "power9le", "vector_isa": "VSX", "cpu_model": "POWER9"},
        ),
    ],
)
def test_processor_of_each_node(name: str, known: dict[str, object]) -> None:
    facts = node_facts(name).model_dump()
    assert {key: facts[key] for key in known} == known


@pytest.mark.parametrize(
    ("name", "cores", "sockets", "numa", "threads", "llc"),
    [
        (LIVE, 2, 1, 1, 1, 32 << 20),
        ("knl-7250-quadrant-flat", 68, 1, 1, 4, 34 << 20),  # MCDRAM is memory without cores
        ("skl-2x6148", 40, 2, 2, 1, 2 * 28160 << 10),
        ("power9-ppc64le", 32, 2, 2, 4, 16 * 10 << 20),
    ],
)
def test_the_machine_has_the_symbols_of_the_facts(
    name: str, cores: int, sockets: int, numa: int, threads: int, llc: int
) -> None:
    facts = with_topology(node_facts(name))
    assert Machine.from_facts(facts, nodes=3).symbols == {
        "cores": cores,
        "sockets": sockets,
        "numa": numa,
        "threads_per_core": threads,
        "memory_bytes": facts.memory_bytes,
        "llc_bytes": llc,
        "nodes": 3,
    }


def test_domains_across_packages_have_the_cores_of_the_facts() -> None:
    across = lstopo("[numa(memory=96GiB)] [numa(memory=96GiB)] pack:2 core:20 pu:1")
    facts = node_facts("skl-2x6148").model_copy(update={"topology_xml": across})
    domains = Machine.from_facts(facts, nodes=1).topology.numa_domains
    assert [len(domain.cores) for domain in domains] == [20, 20]


def test_a_symbol_of_unknown_value_is_left_out() -> None:
    text = "\n".join(
        line for line in probe_text("spr-vm").split("\n") if not line.startswith("| L")
    )
    facts = with_topology(parse_probe(text, "spr-vm"))
    assert "llc_bytes" not in Machine.from_facts(facts, nodes=1).symbols


def test_numa_domains_of_a_knl_in_flat_mode() -> None:
    ddr, mcdram = node_facts("knl-7250-quadrant-flat").numa
    assert (len(ddr.cpus), ddr.memory_bytes >> 20) == (272, 98207)
    assert (mcdram.cpus, mcdram.memory_bytes >> 20, mcdram.distances) == ((), 16384, (31, 10))


def test_numa_domains_have_the_numbers_of_the_kernel() -> None:
    assert [domain.index for domain in node_facts("power9-ppc64le").numa] == [0, 8]


def test_differences_between_processors_are_reported() -> None:
    assert node_facts("skl-2x6148").differing == {"microcode": ("0x2000065 x 1", "0x2006a08 x 39")}
    assert node_facts("skl-2x6148").governor == "performance powersave"
    assert node_facts("knl-7250-quadrant-flat").differing == {}


def test_dimms() -> None:
    facts = node_facts("skl-2x6148")
    assert (len(facts.dimms), facts.dimm_slots_empty) == (12, 4)
    assert {dimm.part_number for dimm in facts.dimms} == {"M393A2K40BB2-CTD"}
    slow = [dimm.locator for dimm in facts.dimms if dimm.configured != dimm.rated]
    assert slow == ["P1-DIMMD1"]
    assert sum(dimm.bytes or 0 for dimm in facts.dimms) == 192 << 30


def test_a_machine_without_dimms_has_the_reason() -> None:
    assert node_facts("power9-ppc64le").dimms == ()
    assert node_facts("power9-ppc64le").absent["dimms"] == "no such tool: dmidecode"
    assert node_facts("power9-ppc64le").absent["dimms"].code == "absent-no-tools"


def test_network_and_mounts() -> None:
    facts = node_facts("skl-2x6148")
    (nic,) = facts.nics
    assert (nic.name, nic.megabits, nic.link) == ("ib0", 100_000, "x16 at 8.0 GT/s PCIe")
    assert nic.link == nic.link_best
    (port,) = facts.ports
    assert (port.adapter, port.firmware, port.state) == ("mlx5_0", "16.28.2006", "4: ACTIVE")
    assert [(m.kind, m.target) for m in facts.mounts][1:] == [
        ("lustre", "/scratch"),
        ("nfs4", "/home"),
    ]
    assert facts.mounts[-1].source == "nas:/my home"


def test_board_and_firmware() -> None:
    facts = node_facts("knl-7250-quadrant-flat")
    assert facts.firmware["board_name"] == "S7200AP"
    assert facts.firmware["product_serial"] == "BQWL00000042"
    assert node_facts("power9-ppc64le").firmware == {"model": "8335-GTW", "system-id": "7812345"}


def test_a_cpuset_of_two_cores() -> None:
    text = probe_text("knl-7250-quadrant-flat")
    bound = parse_probe(text.replace("Cpus_allowed_list: 0-271", "Cpus_allowed_list: 4,72,8"), "x")
    assert (bound.cores, bound.threads_per_core, bound.cpus) == (2, 2, (4, 8, 72))
    assert (bound.cores_online, bound.last_level_bytes) == (68, 2 << 20)


def test_the_topology_is_unchanged() -> None:
    assert node_facts("skl-2x6148").topology_xml.startswith("<?xml")
    assert node_facts("skl-2x6148").topology_xml.endswith("</topology>")
    assert node_facts("knl-7250-quadrant-flat").absent["topology"] == "no such tool: lstopo"


def test_this_machine_has_the_architecture_that_archspec_detects() -> None:
    host = archspec.cpu.host()
    lines = Path("/proc/cpuinfo").read_text().partition("\n\n")[0].split("\n")
    assert architecture(read_cpuinfo(lines, str(host.family))) == host.name


@pytest.mark.parametrize("target", ["cascadelake", "zen4", "k10"])
def test_a_processor_with_the_features_of_a_target_is_that_target(target: str) -> None:
    known = archspec.cpu.TARGETS[target]
    flags = " ".join(known.features)
    processor = read_cpuinfo([f"vendor_id : {known.vendor}", f"flags : {flags}"], "x86_64")
    assert architecture(processor) == target


def test_an_unknown_machine_has_its_name_as_architecture() -> None:
    assert architecture(read_cpuinfo(["processor : 0"], "s390x")) == "s390x"


def test_an_arm_processor() -> None:
    lines = [
        "processor\t: 0",
        "Features\t: fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid sve",
        "CPU implementer\t: 0x46",
        "CPU part\t: 0x001",
    ]
    processor = read_cpuinfo(lines, "aarch64")
    assert (processor.vendor, vector_set(processor.features)) == ("Fujitsu", ("SVE", None))


@pytest.mark.parametrize(
    ("flags", "isa"),
    [("sse2", "SSE2"), ("sse2 pni", "SSE3"), ("sse4_2 avx", "AVX"), ("", "scalar")],
)
def test_vector_instructions(flags: str, isa: str) -> None:
    assert vector_set(flags.split())[0] == isa


@given(st.sets(st.integers(0, 400)))
def test_lists_and_masks_of_processors(cpus: set[int]) -> None:
    assert cpu_list(",".join(map(str, sorted(cpus)))) == cpus
    words = f"{sum(1 << cpu for cpu in cpus):0416x}"
    assert cpu_mask(",".join(words[i : i + 8] for i in range(0, 416, 8))) == cpus


def test_ranges_of_processors() -> None:
    assert cpu_list("0-2,5,7-8\n") == {0, 1, 2, 5, 7, 8}
    assert cpu_list("") == frozenset()


@pytest.mark.parametrize("text", ["5-3", "1-", "-1", "0-2 5", "0x3", "a"])
def test_text_that_is_not_a_list_of_processors_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a list of processors"):
        cpu_list(text)


@pytest.mark.parametrize(
    ("text", "bytes_"), [("512K", 512 << 10), ("16 GB", 16 << 30), ("7 kB", 7168), ("12", 12)]
)
def test_sizes(text: str, bytes_: int) -> None:
    assert size(text) == bytes_


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("=== end\n", ""), "'=== end' before it"),
        (("proofmark-probe 1", "proofmark-probe 2"), "'proofmark-probe 1 <kind>'"),
        (("proofmark-probe 1 facts", "proofmark-probe 1 before"), "accepted: facts"),
        (("| hostname: cloud3\n", ""), "hostname"),
        (("Cpus_allowed_list: 0-1", "Cpus_allowed_list: 8-9"), "no processor that may be used"),
        (("Cpus_allowed: ff\n| Cpus_allowed_list: 0-1", "Cpus_allowed_list: x"), "cannot be read"),
        (("8000000 kB", "lots"), "meminfo.MemTotal: found no size"),
        (("=== cpus\n", "=== cpuinfo\n"), "each section once"),
        (("| 0 0 0 0\n", "0 0 0 0\n"), "'=== section'"),
    ],
)
def test_a_damaged_probe_is_refused_with_its_place(change: tuple[str, str], message: str) -> None:
    text = probe_text("spr-vm")
    assert change[0] in text
    with pytest.raises(BadInput) as caught:
        parse_probe(text.replace(*change), "spr.txt")
    assert "spr.txt" in str(caught.value)
    assert message in str(caught.value)


@given(st.integers(0, len(probe_text("spr-vm")) - 3))
def test_a_probe_that_is_cut_anywhere_is_refused(end: int) -> None:
    with pytest.raises(BadInput):
        parse_probe(probe_text("spr-vm")[:end], "cut")


def test_the_caches_of_like_nodes_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control is a node with other caches, which are read."""
    text = probe_text("knl-7250-quadrant-flat").replace("L2 Unified 1024K", "L2 Unified 1023K")
    lists: list[str] = []

    def counted(cpus: str) -> frozenset[int]:
        lists.append(cpus)
        return cpu_list(cpus)

    monkeypatch.setattr(parts, "cpu_list", counted)
    numbers = []
    for name, size_of_l2 in (("first", "1023K"), ("second", "1023K"), ("other", "1022K")):
        own = text.replace("| hostname: ", f"| hostname: {name}-").replace("1023K", size_of_l2)
        lists.clear()
        facts = parse_probe(own, name)
        assert facts.caches[-1].bytes == int(size_of_l2[:-1]) * 1024
        numbers.append(len(lists))
    first, second, other = numbers
    assert second < first / 10 and other == first


@given(
    st.lists(st.sampled_from(probe_text("spr-vm").split("\n")), max_size=40), st.text(max_size=40)
)
def test_garbage_is_refused_and_never_crashes(lines: list[str], noise: str) -> None:
    for text in (noise, "\n".join(["proofmark-probe 1 facts", *lines, noise, "=== end"])):
        with pytest.raises(BadInput):
            parse_probe(text, "garbage")


@pytest.mark.parametrize(
    ("line", "code", "text"),
    [
        ("!no-file x: /proc/a b", "absent-no-file", "no such file: /proc/a b"),
        ("!tool-slow x y: lctl 10", "absent-tool-slow", "lctl did not answer within 10 s"),
        ("!tool-said x: ls 2 no: way", "absent-tool-said", "ls: exit code 2: 'no: way'"),
        ("!root x", "absent-root", "needs root"),
        ("! x: words of a program", "absent-said", "words of a program"),
    ],
)
def test_a_reason_of_a_probe_has_a_code(line: str, code: str, text: str) -> None:
    stream = read_stream(f"proofmark-probe 1 facts\n{line}\n=== end\n", "x", "facts")
    (reason,) = stream.absent.values()
    assert (reason.code, reason) == (code, text)


@pytest.mark.parametrize("line", ["!unknown x", "!no-file x", "!root x: y", "!tool-slow x: lctl"])
def test_a_reason_without_its_values_is_refused(line: str) -> None:
    with pytest.raises(BadInput, match="!code name: values"):
        read_stream(f"proofmark-probe 1 facts\n{line}\n=== end\n", "x", "facts")
