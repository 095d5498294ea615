"""The physical ceilings of a node: computed from facts, or universal if a fact is not known."""

from __future__ import annotations

from typing import Any

import pytest
from tests.folders import PROBES

from proofmark.cases.case import NODE_CEILINGS
from proofmark.site.ceilings import (
    MARGIN,
    NAMES,
    NOMINAL,
    UNIVERSAL,
    Ceilings,
    ceilings_of,
    of_nodes,
)
from proofmark.site.node.facts import NodeFacts, parse_probe
from proofmark.site.node.parts import Dimm, Nic, Port


def bare_metal(name: str = "skl-2x6148", **changes: Any) -> NodeFacts:
    text = (PROBES / f"{name}.txt").read_text(encoding="utf-8")
    return parse_probe(text, name).model_copy(update={"virtual": None, **changes})


def nic(megabits: int | None) -> Nic:
    fields = dict.fromkeys(("firmware", "mtu", "link", "link_best"))
    return Nic(name="eth0", driver="mlx5_core", state="up", megabits=megabits, **fields)


def test_the_cases_know_each_ceiling() -> None:
    assert set(NODE_CEILINGS) == set(NAMES)


def test_a_node_whose_facts_are_known() -> None:
    """Two Xeon Gold 6148: the ceilings are 1.5 times the data sheet."""
    found = ceilings_of(bare_metal())
    assert found.memory.value == pytest.approx(MARGIN * 12 * 8 * 2666e6)
    assert found.memory.source == "1.5 × 12 channels × 8 B × 2666 MT/s"
    assert found.flops.value == pytest.approx(MARGIN * 40 * 32 * 2.4e9)
    assert found.flops.source == "1.5 × Rpeak nominal of 40 cores"
    assert found.core_flops.value == pytest.approx(MARGIN * 32 * 3.7e9), "one core has its turbo"
    assert found.cache.value == pytest.approx(40 * found.core_cache.value)
    assert found.link.value == pytest.approx(NOMINAL * 2 * 12.5e9)
    assert found.llc_bytes.value == 2 * 28160 * 1024


def test_the_memory_of_a_xeon_phi_has_both_kinds() -> None:
    found = ceilings_of(bare_metal("knl-7250-quadrant-flat")).memory
    assert found.value == pytest.approx(MARGIN * (6 * 8 * 2400e6 + 490e9))


@pytest.mark.parametrize("change", [{"dimms": ()}, {"cpu_model": "Future CPU"}])
def test_memory_of_unknown_channels_has_the_ceiling_of_the_caches(change: dict[str, Any]) -> None:
    found = ceilings_of(bare_metal(**change))
    assert found.memory == found.cache
    assert found.memory.value > ceilings_of(bare_metal()).memory.value


def test_a_module_of_unknown_speed_has_the_ceiling_of_the_caches() -> None:
    known = bare_metal().dimms
    unknown = known[0].model_copy(update={"rated": None, "configured": None})
    found = ceilings_of(bare_metal(dimms=(*known[1:], unknown)))
    assert found.memory == found.cache


def test_the_fastest_speed_of_the_modules_counts() -> None:
    slow: list[Dimm] = [
        each.model_copy(update={"rated": 2133, "configured": None}) for each in bare_metal().dimms
    ]
    overclocked = slow[0].model_copy(update={"configured": 3000})
    found = ceilings_of(bare_metal(dimms=(*slow[1:], overclocked)))
    assert found.memory.value == pytest.approx(MARGIN * len(slow) * 8 * 3000e6)


def test_a_cpuset_hides_no_memory() -> None:
    """One of two sockets may be used: its cores reach the memory of both."""
    whole = bare_metal()
    half = bare_metal(cpus=whole.cpus[:20], sockets=1, cores=20)
    assert ceilings_of(half).memory == ceilings_of(whole).memory
    assert ceilings_of(half).flops == ceilings_of(whole).flops


@pytest.mark.parametrize("modules", [("nvidia",), ("lustre", "amdgpu"), ()])
def test_an_accelerator_computes_more_than_the_cores(modules: tuple[str, ...]) -> None:
    """Without the list of modules an accelerator cannot be excluded."""
    found = ceilings_of(bare_metal(modules=modules))
    assert (found.flops, found.core_flops) == (UNIVERSAL.flops, UNIVERSAL.core_flops)


def test_a_virtual_node_has_the_universal_clock_memory_and_links() -> None:
    found = ceilings_of(bare_metal(virtual="kvm"))
    assert (found.clock, found.link) == (UNIVERSAL.clock, UNIVERSAL.link)
    assert found.memory == found.cache
    assert found.llc_bytes == UNIVERSAL.llc_bytes


@pytest.mark.parametrize(
    ("changes", "hertz"),
    [
        ({"frequency_driver": "intel_pstate", "max_hz": 3_000_000_000}, 3.3e9),
        ({"frequency_driver": "intel_pstate", "max_hz": 6_200_000_000}, 6.5e9),
        ({"frequency_driver": "acpi-cpufreq", "max_hz": 2_000_000_000, "base_hz": 2 * 10**9}, 5e9),
        ({"frequency_driver": "acpi-cpufreq", "base_hz": 3 * 10**9}, 6.5e9),
        ({"frequency_driver": None, "base_hz": None, "max_hz": None}, 6.5e9),
    ],
)
def test_the_clock_of_a_processor_without_a_line_in_the_table(
    changes: dict[str, Any], hertz: float
) -> None:
    """The largest frequency of some drivers is the nominal one."""
    found = ceilings_of(bare_metal(cpu_model="Future CPU", **changes)).clock
    assert found.value == pytest.approx(hertz)


def test_other_processors_have_a_generous_arithmetic() -> None:
    power = ceilings_of(bare_metal("power9-ppc64le", modules=("lustre",), cpu_model="POWER10"))
    assert power.core_flops.value >= 1.5 * 64 * 4e9
    plain = bare_metal(cpu_model="Future CPU", vector_bits=256, frequency_driver=None, base_hz=None)
    assert ceilings_of(plain).core_flops.value == pytest.approx(MARGIN * 16 * 6.5e9)
    copies = ceilings_of(bare_metal(vector_bits=128)).core_cache.value
    assert copies == ceilings_of(bare_metal(vector_bits=256)).core_cache.value


@pytest.mark.parametrize(
    ("changes", "known"),
    [
        ({}, True),
        ({"nics": (nic(10_000),)}, True),
        ({"nics": (nic(None),)}, False),
        ({"ports": ()}, False),
    ],
)
def test_the_links_of_a_node_are_known_or_universal(changes: dict[str, Any], known: bool) -> None:
    found = ceilings_of(bare_metal(**{"nics": (), **changes})).link
    ethernet = sum(each.megabits or 0 for each in changes.get("nics", ())) * 1e6 / 8
    assert found.value == (
        pytest.approx(NOMINAL * 2 * (12.5e9 + ethernet)) if known else UNIVERSAL.link.value
    )


@pytest.mark.parametrize(
    ("rate", "bytes_per_s"), [("300 Gb/sec (3X NDR)", 37.5e9), ("1600 Gb/sec (4X GDR)", 200e9)]
)
def test_a_port_of_unknown_rate_is_bound_by_the_number_of_sysfs(
    rate: str, bytes_per_s: float
) -> None:
    (port,) = bare_metal().ports
    other: Port = port.model_copy(update={"rate": rate})
    found = ceilings_of(bare_metal(nics=(), ports=(other,))).link
    assert found.value == pytest.approx(NOMINAL * 2 * bytes_per_s)
    assert f"1 ports with {bytes_per_s / 1e9:g} GB/s" in found.source


@pytest.mark.parametrize(("driver", "known"), [("cxi_ss1", True), ("mlx5_core", False)])
def test_slingshot_has_interfaces_and_no_port(driver: str, known: bool) -> None:
    adapters = tuple(nic(200_000).model_copy(update={"driver": driver}) for _ in range(4))
    found = ceilings_of(bare_metal(ports=(), nics=adapters)).link
    assert found.value == (pytest.approx(NOMINAL * 2 * 100e9) if known else UNIVERSAL.link.value)


def test_the_memory_of_a_xeon_max_has_both_kinds() -> None:
    dimms = tuple(
        dimm.model_copy(update={"rated": 4800, "configured": 4800}) for dimm in bare_metal().dimms
    )
    found = ceilings_of(bare_metal(cpu_model="Intel(R) Xeon(R) CPU Max 9480", dimms=dimms)).memory
    assert found.value == pytest.approx(MARGIN * (len(dimms) * 8 * 4800e6 + 2 * 1638.4e9))


@pytest.mark.parametrize(("state", "known"), [("4: ACTIVE", False), ("1: DOWN", True)])
def test_a_port_of_unknown_rate(state: str, known: bool) -> None:
    (port,) = bare_metal().ports
    other: Port = port.model_copy(update={"port": "2", "state": state, "rate": "9 Tb/sec"})
    found = ceilings_of(bare_metal(nics=(), ports=(port, other))).link
    assert (found != UNIVERSAL.link) is known


def test_nodes_add_up_and_one_node_is_itself() -> None:
    skl, knl = ceilings_of(bare_metal()), ceilings_of(bare_metal("knl-7250-quadrant-flat"))
    assert of_nodes([skl]) is skl
    assert of_nodes([]) is UNIVERSAL
    both: Ceilings = of_nodes([skl, knl])
    assert both.memory.value == pytest.approx(skl.memory.value + knl.memory.value)
    assert both.cores.value == 40 + 68
    assert both.clock == skl.clock
    assert both.link.value == max(skl.link.value, knl.link.value)
    assert of_nodes([skl] * 3).memory.source == f"3 nodes × ({skl.memory.source})"
    assert both.memory.source == f"2 nodes, the largest with {knl.memory.source}"
