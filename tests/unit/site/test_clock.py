"""The nominal frequency of a node, from the first source that states it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.folders import PROBES

from proofmark.judge.references.derived import Derived, derive
from proofmark.site.hardware import StatedNode
from proofmark.site.hardware_limits import processor
from proofmark.site.node.facts import NodeFacts, parse_probe

NAME = "AMD EPYC 9654 96-Core Processor"
OTHER = "AMD EPYC of tomorrow"
SKL = "Intel(R) Xeon(R) Gold 6148 CPU @ 2.40GHz"
NOT_PRINTED = "! frequency.base_khz: no such file"


def socket(current: str, largest: str = "3700 MHz", status: str = "Populated, Enabled") -> str:
    """Return a structure of type 4, as dmidecode prints it."""
    return (
        "| Handle 0x0019, DMI type 4, 48 bytes\n"
        "| Processor Information\n"
        "| \tSocket Designation: P0\n"
        "| \tType: Central Processor\n"
        f"| \tMax Speed: {largest}\n"
        f"| \tCurrent Speed: {current}\n"
        f"| \tStatus: {status}\n"
        "| \n"
    )


def node(
    name: str = NAME,
    *,
    cppc: str = "",
    sockets: str = "",
    base_khz: str = "",
    virtual: bool = False,
) -> NodeFacts:
    """Return a node with the lines of the probe that state its frequency."""
    text = (PROBES / "skl-2x6148.txt").read_text(encoding="utf-8").replace(SKL, name)
    lines = f"| base_khz: {base_khz}" if base_khz else NOT_PRINTED
    if cppc:
        lines += f"\n| nominal_mhz: {cppc}"
    assert "| base_khz: 2400000\n" in text
    text = text.replace("| base_khz: 2400000\n", f"{lines}\n")
    text = text.replace("=== end\n", f"=== sockets\n{sockets}=== end\n")
    if virtual:
        text = text.replace("| machine: none\n", "| machine: kvm\n")
    facts = parse_probe(text, "probe")
    assert (facts.virtual is not None) == virtual
    return facts


def test_the_sources_have_an_order() -> None:
    at_boot = socket("2400 MHz")
    everything: dict[str, Any] = {"cppc": "2401", "sockets": at_boot}
    assert node(SKL, base_khz="2300000", **everything).base_hz == 2_300_000_000
    assert node(SKL, **everything).base_source == "the name of the processor"
    assert (node(**everything).base_hz, node(**everything).base_source) == (
        2_401_000_000,
        "ACPI CPPC",
    )
    by_smbios = node(sockets=at_boot)
    assert (by_smbios.base_hz, by_smbios.base_source) == (2_400_000_000, "SMBIOS")


def test_the_table_is_the_last_source_and_is_named() -> None:
    facts = node()
    row = processor(NAME)
    assert row is not None
    assert facts.base_hz == row.base_hz == 2_400_000_000
    assert facts.base_source == f"the table of processors: {row.source}"
    limit = derive("rpeak_nominal", [facts], {})
    assert isinstance(limit, Derived)
    assert limit.value == pytest.approx(40 * 16 * 2.4)
    assert f"× 2.4 GHz ({facts.base_source}); {row.source}" in limit.source
    stated = derive("rpeak_nominal", [facts], {}, StatedNode(clock_hz=2e9))
    assert isinstance(stated, Derived)
    assert "× 2 GHz; " in stated.source


def test_a_frequency_of_the_node_is_not_named_in_the_limit() -> None:
    limit = derive("rpeak_nominal", [node(cppc="2400")], {})
    assert isinstance(limit, Derived)
    assert "CPPC" not in limit.source


@pytest.mark.parametrize("cppc", ["0", "-1"])
def test_firmware_can_leave_out_the_nominal_frequency(cppc: str) -> None:
    facts = node(OTHER, cppc=cppc)
    assert (facts.base_hz, facts.base_source, facts.unread) == (None, "", {})


def test_a_nominal_frequency_that_is_no_number_is_named() -> None:
    facts = node(OTHER, cppc="<unsupported>")
    assert facts.base_hz is None
    assert facts.unread == {"frequency.nominal_mhz": "<unsupported>"}


@pytest.mark.parametrize(
    ("sockets", "megahertz"),
    [
        (socket("2400 MHz"), 2400),
        (socket("2400 MHz") + socket("2400 MHz"), 2400),
        (socket("2400 MHz") + socket("Unknown", "Unknown", "Unpopulated"), 2400),
        (socket("2400 MHz") + socket("2300 MHz"), None),
        (socket("3700 MHz"), None),
        (socket("3800 MHz"), None),
        (socket("Unknown"), None),
        (socket("0 MHz"), None),
        (socket("2400 MHz", "Unknown"), None),
        (socket("2400 MHz", status="Populated, Disabled By BIOS"), 2400),
        (socket("2400 MHz", status="Unpopulated"), None),
        ("", None),
    ],
)
def test_smbios_without_a_row_of_the_table(sockets: str, megahertz: int | None) -> None:
    """The speed at boot is the nominal one if the turbo needs a larger one."""
    found = node(OTHER, sockets=sockets).base_hz
    assert found == (None if megahertz is None else megahertz * 1_000_000)


@pytest.mark.parametrize(
    ("current", "source"),
    [("2400 MHz", "SMBIOS"), ("2390 MHz", "SMBIOS"), ("1500 MHz", "the table of processors")],
)
def test_smbios_must_agree_with_the_table(current: str, source: str) -> None:
    facts = node(sockets=socket(current))
    assert facts.base_source.partition(":")[0] == source
    assert facts.base_hz == pytest.approx(2.4e9, rel=0.01)


def test_a_hypervisor_can_invent_a_frequency() -> None:
    virtual = node(virtual=True, cppc="2000", sockets=socket("2000 MHz"))
    assert (virtual.base_hz, virtual.base_source) == (None, "")
    assert node(SKL, virtual=True).base_hz == 2_400_000_000
