"""Limits that are derived from probed facts, or from what the inventory states."""

from __future__ import annotations

from typing import Any

import pytest
from tests.fixtures.probes import node_facts
from tests.fixtures.stated import stated_node

from proofmark.cases.reference import UNIT_OF, Rule
from proofmark.common.message import Message
from proofmark.judge.references.derived import (
    Derived,
    Nominal,
    derive,
    flop_per_cycle,
    key_of,
    peak,
)
from proofmark.site.hardware import StatedNode
from proofmark.site.hardware_limits import ProcessorLimits, links
from proofmark.site.node.facts import NodeFacts
from proofmark.site.node.parts import ReportedDomain

STATED = StatedNode.model_validate(
    {
        "memory": {"channels": 8, "mt_per_s": 3200, "fast_bytes_per_s": 400e9},
        "rails": {"rate": 25e9, "latency_s": 2e-6},
        "clock_hz": 2e9,
        "avx_hz": 1.5e9,
        "flop_per_cycle": 16,
        "sources": dict.fromkeys(("memory", "rails", "avx_hz", "flop_per_cycle"), "the offer"),
    }
)
EDR = "100 Gb/sec (4X EDR)"


def limit(
    rule: Rule, *nodes: NodeFacts, memory: str = "ddr", stated: StatedNode | None = None
) -> Derived:
    found = derive(rule, nodes, {"memory": memory}, stated or StatedNode())
    assert isinstance(found, Derived), found
    return found


def reason(
    rule: Rule, *nodes: NodeFacts, memory: str = "ddr", stated: StatedNode | None = None
) -> str:
    found = derive(rule, nodes, {"memory": memory}, stated or StatedNode())
    assert isinstance(found, str), found
    return found


CASES: list[tuple[Rule, str, float, str]] = [
    ("memory_bandwidth", "ddr", 204.8, "GB/s"),
    ("memory_bandwidth", "mcdram", 400, "GB/s"),
    ("link_bandwidth", "ddr", 25, "GB/s"),
    ("link_latency", "ddr", 2, "us"),
    ("rpeak_nominal", "ddr", 40 * 16 * 2, "GFlop/s"),
    ("rpeak_avx", "ddr", 40 * 16 * 1.5, "GFlop/s"),
]


@pytest.mark.parametrize("virtual", [None, "kvm"])
@pytest.mark.parametrize(("rule", "memory", "value", "unit"), CASES)
def test_a_stated_value_replaces_that_of_the_probe(
    rule: Rule, memory: str, value: float, unit: str, virtual: str | None
) -> None:
    found = limit(rule, node_facts(virtual=virtual), memory=memory, stated=STATED)
    assert virtual is None or found.reach == 1
    assert found.value == pytest.approx(value)
    assert UNIT_OF[rule] == unit
    assert found.source.endswith("the offer")


@pytest.mark.parametrize(("rule", "memory", "value", "unit"), CASES)
def test_the_values_of_several_nodes_add_up_but_those_of_links_do_not(
    rule: Rule, memory: str, value: float, unit: str
) -> None:
    found = limit(rule, node_facts(), node_facts(), node_facts(), memory=memory, stated=STATED)
    times = 1 if rule.startswith("link") else 3
    assert found.value == pytest.approx(times * value)
    assert UNIT_OF[rule] == unit
    assert found.source.startswith("3 nodes, each: ")


DDR4 = "six channels of DDR4-2666"


@pytest.mark.parametrize(
    ("rule", "parts", "value", "begin", "end"),
    [
        ("rpeak_nominal", {}, 3072, "40 cores × 32 flop/cycle × 2.4 GHz; ", DDR4),
        ("rpeak_nominal", {"cores": (48, "declared")}, 3686.4, "48 cores, declared × 32 ", DDR4),
        (
            "rpeak_nominal",
            {"processor": ("Intel Xeon Gold 6130", "accepted")},
            *(2688, "40 cores × 32 flop/cycle × 2.1 GHz (Intel, product", "units in ARK"),
        ),
        ("memory_bandwidth", {}, 255.936, "12 channels × 8 bytes × 2666 MT/s; ", DDR4),
        ("memory_bandwidth", {"dimms": (8, "usual")}, 170.624, "8 ch", f"{DDR4}, as most nodes"),
        ("memory_bandwidth", {"dimms": (24, "usual")}, 255.936, "12", f"{DDR4}, as most nodes"),
        ("memory_bandwidth", {"sockets": (1, "accepted")}, 127.968, "6 ", "accepted before"),
        ("memory_bandwidth", {"dimm_mt_per_s": (2400, "usual")}, 255.936, "12", "as most nodes"),
        (
            "memory_bandwidth",
            {"dimms": (6, "accepted"), "dimm_mt_per_s": (2933, "declared")},
            *(127.968, "6 channels × 8 bytes × 2666", f"{DDR4}, declared, accepted before"),
        ),
        ("link_bandwidth", {"gbit_per_s": (200.0, "usual")}, 25, "InfiniBand", ", as most nodes"),
        ("link_bandwidth", {"gbit_per_s": (56.0, "usual")}, 12.5, "InfiniBand", ", as most nodes"),
        ("link_latency", {"gbit_per_s": (200.0, "accepted")}, 1, "Mellanox", ", accepted before"),
    ],
)
def test_the_parts_that_were_ordered_replace_those_of_the_node(
    rule: Rule, parts: dict[str, tuple[Any, str]], value: float, begin: str, end: str
) -> None:
    given = {name: part for name, (part, _) in parts.items()}
    nominal = Nominal(**given, sources={name: by for name, (_, by) in parts.items()})
    found = derive(rule, [node_facts()], {}, stated=[nominal])
    assert isinstance(found, Derived)
    assert found.value == pytest.approx(value)
    assert found.source.startswith(begin) and found.source.endswith(end)


@pytest.mark.parametrize(
    ("rule", "nominal", "key"),
    [
        ("rpeak_avx", Nominal(processor="Intel Xeon Gold 6130"), "avx_hz"),
        ("rpeak_nominal", Nominal(processor="Unknown 1"), "clock_hz"),
        (
            "link_bandwidth",
            Nominal(gbit_per_s=123.0, sources={"gbit_per_s": "usual"}),
            "rails.rate",
        ),
    ],
)
def test_parts_that_were_ordered_and_are_in_no_table(
    rule: Rule, nominal: Nominal, key: str
) -> None:
    found = derive(rule, [node_facts()], {}, stated=[nominal])
    assert isinstance(found, Message) and key_of(found) == f"partition.node.{key}"


def test_the_slowest_link_limits_several_nodes() -> None:
    (port,) = node_facts().ports
    slow = node_facts(ports=(port.model_copy(update={"rate": "20 Gb/sec (4X DDR)"}),))
    for nodes in ((node_facts(), slow), (slow, node_facts())):
        assert limit("link_bandwidth", *nodes).value == 2
        assert limit("link_latency", *nodes).value == pytest.approx(2)
    assert limit("link_latency", node_facts()).value == pytest.approx(1)
    assert "ConnectX-4" in limit("link_latency", node_facts()).source


def test_the_port_that_carries_messages_counts() -> None:
    """Of ports with several rates none is assumed: the fastest may be that of the storage."""
    (port,) = node_facts().ports
    slow = port.model_copy(update={"port": "2", "rate": "20 Gb/sec (4X DDR)"})
    down = port.model_copy(update={"port": "3", "state": "1: DOWN", "rate": "odd"})
    silent = port.model_copy(update={"port": "4", "rate": None})
    for ports in ((port, slow, down, silent), (slow, port)):
        values: dict[Rule, float] = {"link_bandwidth": 12.5, "link_latency": 1.0}
        for rule, value in values.items():
            assert "not known (" in reason(rule, node_facts(ports=ports))
            given = [Nominal(ports=("mlx5_0:1",))]
            found = derive(rule, [node_facts(ports=ports)], {}, stated=given)
            assert isinstance(found, Derived) and found.value == pytest.approx(value)


@pytest.mark.parametrize(
    ("link", "kind", "ports", "value", "named"),
    [
        ("x16 at 16.0 GT/s PCIe", "MT4123", 1, 25.0, "a lane, 4 lanes"),
        ("x16 at 8.0 GT/s PCIe", "MT4123", 1, 15.754 * 256 / 282, "slot x16 at 8.0 GT/s"),
        ("x16 at 5.0 GT/s PCIe", "MT4123", 1, 8.0 * 256 / 282, "slot x16 at 5.0 GT/s"),
        ("x8 at 16.0 GT/s PCIe", "MT4123", 1, 15.754 * 256 / 282, "slot x8 at 16.0 GT/s"),
        ("x16 at 32.0 GT/s PCIe", "MT4123", 2, 25.0, "on a card no more than card MT4123"),
        ("x16 at 32.0 GT/s PCIe", "MT4129", 2, 50.0, "2 rails"),
        ("", "", 1, 25.0, "a lane, 4 lanes"),
    ],
)
def test_the_least_of_port_card_and_slot_bounds_a_path(
    link: str, kind: str, ports: int, value: float, named: str
) -> None:
    """The source names what bounds it."""
    (port,) = node_facts().ports
    change = {"rate": "200 Gb/sec (4X HDR)", "kind": kind or None, "link": link or None}
    both = [
        port.model_copy(update={**change, "adapter": f"mlx5_{n}", "slot": f"0000:17:00.{n}"})
        for n in range(ports)
    ]
    node = node_facts(ports=tuple(both))
    found = derive("link_bandwidth", [node], {"rail": "all"} if ports > 1 else {})
    assert isinstance(found, Derived)
    assert found.value == pytest.approx(value, rel=1e-3)
    assert named in found.source


UNKNOWN: list[tuple[Rule, dict[str, Any], str, str]] = [
    ("link_bandwidth", {"ports": ()}, "the link of skl-test (no active port)", "rails.rate"),
    ("link_latency", {"ports": ()}, "the link of skl-test (no active port)", "rails.latency_s"),
    (
        "memory_bandwidth",
        {"dimms": ()},
        "the speed of any memory module of skl-test",
        "memory.mt_per_s",
    ),
    (
        "memory_bandwidth",
        {"cpu_model": "Xeon of tomorrow"},
        "the number of memory channels of Xeon of tomorrow",
        "memory.channels",
    ),
    ("rpeak_nominal", {"base_hz": None}, "the nominal frequency of", "clock_hz"),
    ("rpeak_avx", {"cpu_model": "X", "model": 106}, "the AVX frequency of X", "avx_hz"),
    (
        "rpeak_nominal",
        {"cpu_model": "Xeon Silver"},
        "the number of vector units of Xeon Silver",
        "flop_per_cycle",
    ),
    (
        "rpeak_nominal",
        {"cpu_model": "EPYC of zen", "vector_isa": "AVX2", "architecture": "zen"},
        "the number of vector units of EPYC of zen",
        "flop_per_cycle",
    ),
]


@pytest.mark.parametrize(("rule", "changes", "what", "key"), UNKNOWN)
def test_a_missing_fact_is_named_with_the_key_that_replaces_it(
    rule: Rule, changes: dict[str, Any], what: str, key: str
) -> None:
    node = node_facts(hostname="skl-test", **changes)
    found = reason(rule, node)
    assert found.startswith(what)
    assert found.endswith(f" is not known; the key partition.node.{key} enables this judgement")
    section, _, name = key.rpartition(".")
    value = getattr(getattr(STATED, section) if section else STATED, name)
    # The speed of the modules is the other half of the bandwidth.
    both = {"mt_per_s": 3200} if name == "channels" else {}
    given = stated_node(**({section: {name: value, **both}} if section else {name: value}))
    assert limit(rule, node, stated=given).value > 0
    assert reason(rule, node_facts(), node) == found


@pytest.mark.parametrize(("modules", "speed"), [(1, 2666), (2, 2400)])
def test_two_modules_on_a_channel_have_their_configured_speed(modules: int, speed: int) -> None:
    """They run slower by design. One module that does is a fault."""
    dimms = [
        each.model_copy(update={"rated": 2666, "configured": 2400}) for each in node_facts().dimms
    ]
    node = node_facts(dimms=tuple(dimms * modules))
    assert limit("memory_bandwidth", node).value == pytest.approx(12 * 8 * speed / 1000)


def test_one_module_of_unknown_speed_is_named() -> None:
    one, *others = node_facts().dimms
    odd = one.model_copy(update={"rated": None, "configured": None})
    found = reason("memory_bandwidth", node_facts(dimms=(*others, odd)))
    assert found.startswith("the speed of a memory module of")


def test_a_link_of_unknown_rate_is_named() -> None:
    (port,) = node_facts().ports
    odd = port.model_copy(update={"rate": "17 Gb/sec (3X ODD)"})
    assert "(17 Gb/sec (3X ODD))" in reason("link_bandwidth", node_facts(ports=(odd,)))
    both = node_facts(ports=(port, odd.model_copy(update={"port": "2"})))
    found = derive("link_bandwidth", [both], {}, stated=[Nominal(ports=("mlx5_0:2",))])
    assert isinstance(found, Message) and "(17 Gb/sec (3X ODD))" in str(found)


def test_a_port_of_ethernet_has_no_latency_of_infiniband() -> None:
    (port,) = node_facts().ports
    roce = node_facts(ports=(port.model_copy(update={"layer": "Ethernet"}),))
    assert limit("link_bandwidth", roce).value == 12.5
    assert limit("link_bandwidth", roce).source.startswith("IEEE 802.3bj")
    assert f"({EDR})" in reason("link_latency", roce)
    slow = node_facts(
        ports=(port.model_copy(update={"layer": "Ethernet", "rate": "40 Gb/sec (4X QDR)"}),)
    )
    assert limit("link_bandwidth", slow).value == 5
    assert limit("link_latency", slow).value == pytest.approx(1.93)


@pytest.mark.parametrize("rule", ["rpeak_nominal", "rpeak_avx", "memory_bandwidth"])
def test_a_virtual_node_hides_its_hardware(rule: Rule) -> None:
    found = reason(rule, node_facts(hostname="v1", virtual="kvm"))
    assert " is not known (v1 is virtual: kvm); the key partition.node." in found
    assert limit("link_bandwidth", node_facts(virtual="kvm")).value == 12.5


def test_a_virtual_node_with_a_stated_clock_has_unknown_units() -> None:
    stated = StatedNode(clock_hz=2e9)
    virtual = node_facts(virtual="kvm", cpu_model="X", vector_isa="AVX2")
    assert "number of vector units" in reason("rpeak_nominal", virtual, stated=stated)
    known = node_facts(cpu_model="X", vendor="AuthenticAMD", family=25, model=1, features=("avx2",))
    found = limit("rpeak_nominal", known, stated=stated)
    assert found.value == 40 * 16 * 2
    assert found.source.startswith("40 cores × 16 flop/cycle × 2 GHz; Milan (Zen 3); ")


def test_mcdram_of_a_processor_without_it_is_unknown() -> None:
    found = reason("memory_bandwidth", node_facts(), memory="mcdram")
    assert found.startswith("the in-package memory of Intel(R) Xeon(R) Gold 6148")
    assert "partition.node.memory.fast_bytes_per_s" in found
    assert "in-package memory of X" in reason(
        "memory_bandwidth", node_facts(cpu_model="X"), memory="mcdram"
    )
    knl = node_facts("knl-7250-quadrant-flat", virtual=None)
    assert limit("memory_bandwidth", knl, memory="mcdram").value == 490
    assert derive("memory_bandwidth", [node_facts()], {}) == derive(
        "memory_bandwidth", [node_facts()], {"memory": "ddr"}
    )


@pytest.mark.parametrize(
    "changes", [{"cpus": tuple(range(4))}, {"cpu_quota": 2.0}], ids=["cpuset", "quota"]
)
def test_a_part_of_the_processors_cannot_saturate_the_memory(changes: dict[str, Any]) -> None:
    found = reason("memory_bandwidth", node_facts(hostname="n1", **changes), stated=STATED)
    assert found == "n1: the run may use only a part of the processors of the node"


@pytest.mark.parametrize(("left", "judged"), [(18, True), (17, False)])
def test_seven_eighths_of_each_domain_saturate_the_memory(left: int, judged: bool) -> None:
    """Core specialisation takes few processors; a domain that lacks more is not saturated."""
    node = node_facts()
    first, *others = (each.cpus for each in node.numa)
    assert len(first) == 20
    own = node_facts(cpus=(*first[:left], *(cpu for each in others for cpu in each)))
    found = derive("memory_bandwidth", [own], {})
    assert isinstance(found, Derived) is judged
    assert not judged or found == derive("memory_bandwidth", [node], {})


def test_modules_beyond_the_channels_add_nothing_and_the_slowest_counts() -> None:
    one = node_facts().dimms[0]
    fast = [one.model_copy(update={"rated": 3200, "configured": 3200})] * 24
    found = limit("memory_bandwidth", node_facts(dimms=tuple(fast)))
    assert found.value == pytest.approx(12 * 8 * 2.666)
    slow = one.model_copy(update={"rated": 2400})
    mixed = limit("memory_bandwidth", node_facts(dimms=(*fast[:5], slow)))
    assert mixed.value == pytest.approx(6 * 8 * 2.4)
    assert mixed.source.startswith("6 channels × 8 bytes × 2400 MT/s; ")


def test_each_link_has_a_latency_with_its_source() -> None:
    assert all(1e-7 < row.latency_s < 1e-5 and row.latency_source for row in links().lanes)


@pytest.mark.parametrize(
    ("vendor", "family", "model", "features", "flops"),
    [
        ("GenuineIntel", 6, 143, ("avx2", "avx512f"), 32),
        ("GenuineIntel", 6, 143, ("avx2", "fma"), None),
        ("GenuineIntel", 6, 175, ("avx2", "fma"), 8),
        ("GenuineIntel", 6, 190, ("avx2", "fma"), None),
        ("GenuineIntel", 6, 85, ("avx2", "avx512f"), None),
        ("AuthenticAMD", 25, 17, ("avx2", "avx512f"), 16),
        ("AuthenticAMD", 26, 2, ("avx2", "avx512f"), 32),
        ("  Shanghai  ", 7, 59, ("avx2", "fma"), None),
        ("ARM", None, None, ("asimd",), None),
    ],
    ids=[
        "spr",
        "spr-off",
        "sierra-forest",
        "gracemont",
        "skylake",
        "zen4",
        "zen5",
        "zhaoxin",
        "arm",
    ],
)
def test_flop_per_cycle_of_a_microarchitecture_and_never_of_flags(
    vendor: str, family: int | None, model: int | None, features: tuple[str, ...], flops: int | None
) -> None:
    known: dict[str, Any] = {"vendor": vendor, "family": family, "model": model}
    node = node_facts(cpu_model="Future CPU", base_hz=2_000_000_000, features=features, **known)
    found = flop_per_cycle(node)
    assert (found and found[0]) == flops
    assert peak(node) == (None if flops is None else 40 * 2 * flops)
    assert peak(node.model_copy(update={"base_hz": None})) is None
    assert flop_per_cycle(node.model_copy(update={"virtual": "kvm"})) is None


MAX = "Intel(R) Xeon(R) CPU Max 9480"


def _domains(*sizes: tuple[int, bool]) -> tuple[ReportedDomain, ...]:
    """Return domains of so many GiB, with or without a processor."""
    return tuple(
        ReportedDomain(index=index, cpus=(index,) if cpus else (), memory_bytes=gib << 30)
        for index, (gib, cpus) in enumerate(sizes)
    )


def test_each_kind_of_memory_has_its_own_rate_or_none() -> None:
    flat = node_facts(
        cpu_model=MAX, numa=_domains((128, True), (128, True), (64, False), (64, False))
    )
    hbm = limit("memory_bandwidth", flat, memory="hbm")
    assert (hbm.value, round(hbm.reach, 2)) == (2 * 1638.4, 0.64)
    ddr = limit("memory_bandwidth", flat, memory="ddr")
    assert ddr.reach == 1 and ddr.value < 400
    for kind in ("cxl", "nvm", "gpu", "other"):
        assert reason("memory_bandwidth", flat, memory=kind).startswith(
            f"the rate of the memory {kind}"
        )
    alone = node_facts(cpu_model=MAX, numa=_domains((64, True), (64, True)), dimms=())
    assert limit("memory_bandwidth", alone, memory="ddr") == limit(
        "memory_bandwidth", alone, memory="hbm"
    )
    assert reason("memory_bandwidth", alone, memory="cxl").startswith("the rate of the memory cxl")
    a64fx = node_facts(
        cpu_model="Fujitsu part 0x001", sockets=1, numa=_domains((32, True)), dimms=()
    )
    assert limit("memory_bandwidth", a64fx).value == 1024


def test_a_cache_of_unknown_rate_is_named_with_the_key_that_states_it() -> None:
    """The memory in the package hides behind that of the modules: it has no domain."""
    node = node_facts(hostname="n1", cpu_model=MAX, numa=_domains((256, True), (256, True)))
    small, large = {"array": 10**8}, {"array": 10**10}
    unknown = derive("memory_bandwidth", [node], small)
    assert unknown == (
        "the rate of the memory-side cache of n1 (128 GiB) is not known; "
        "the key partition.node.memory.fast_bytes_per_s enables this judgement"
    )
    stated = derive("memory_bandwidth", [node], small, STATED)
    assert isinstance(stated, Derived)
    assert stated.value == 400
    assert stated.source == "memory-side cache of 128 GiB; the offer"
    for parameters in (large, {}):
        beyond = derive("memory_bandwidth", [node], parameters, STATED)
        assert isinstance(beyond, Message) and beyond.code == "fact-beyond-cache"


@pytest.mark.parametrize(
    ("cores", "gib", "rate"), [(72, 240, 512), (72, 480, 384), (96, 240, None)]
)
def test_the_soldered_memory_of_grace_follows_from_its_size(
    cores: int, gib: int, rate: float | None
) -> None:
    numa = _domains((gib, True), (gib, True), (96, False))
    node = node_facts(cpu_model="ARM part 0xd4f", cores_online=2 * cores, numa=numa, dimms=())
    found = derive("memory_bandwidth", [node], {})
    assert (found.value if isinstance(found, Derived) else None) == (rate and 2 * rate)


@pytest.mark.parametrize(
    ("kind", "locator", "memory"),
    [
        ("DDR5", "DIMM00", "ddr"),
        ("HBM2", "STACK0", "hbm"),
        ("HBM3", "STACK0", "hbm"),
        ("Logical non-volatile device", "DIMM01", "nvm"),
        ("DDR5", "CXL_1", "cxl"),
        (None, "DIMM00", "ddr"),
    ],
)
def test_only_modules_in_channels_are_ddr(kind: str | None, locator: str, memory: str) -> None:
    one = node_facts().dimms[0].model_copy(update={"kind": kind, "locator": locator})
    assert one.memory == memory
    assert bool(node_facts(dimms=(one,)).dram) is (memory == "ddr")


def test_two_nodes_are_several() -> None:
    assert limit("rpeak_nominal", node_facts(), node_facts()).source.startswith(
        "2 nodes, each: 40 cores × "
    )
    assert limit("rpeak_nominal", node_facts()).source.startswith("40 cores × ")


def test_a_line_of_the_table_without_a_value_gives_none(monkeypatch: pytest.MonkeyPatch) -> None:
    row = ProcessorLimits(
        name="X", architecture="haswell", avx_hz=2e9, source="a data sheet", date="2014"
    )
    monkeypatch.setattr("proofmark.judge.references.derived.processor", lambda _: row)
    node = node_facts(cpu_model="X", model=63)
    assert limit("rpeak_avx", node).value == 40 * 16 * 2
    unknown = node.model_copy(update={"model": 190})
    assert "number of vector units of X" in reason("rpeak_avx", unknown)
    for given in ({}, {"ddr": 2666}, {"channels": 6}):
        row = row.model_copy(update={"ddr": None, "channels": None, **given})
        assert "number of memory channels of X" in reason("memory_bandwidth", node)
    row = row.model_copy(update={"channels": 6, "ddr": 2666})
    assert limit("memory_bandwidth", node).value == pytest.approx(12 * 8 * 2.666)


def test_the_mcdram_of_each_socket_counts() -> None:
    two = node_facts("knl-7250-quadrant-flat", virtual=None, sockets=2)
    assert limit("memory_bandwidth", two, memory="mcdram").value == 980
