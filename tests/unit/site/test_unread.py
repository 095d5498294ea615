"""Optional values of a probe that cannot be read: the node is used, and the value is named."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import zip_longest

import pytest
from tests.fixtures.shipped import shipped_benchmarks, shipped_site
from tests.folders import HWLOC, PROBES, ROOT

from proofmark.cli.main import main
from proofmark.common.errors import BadInput
from proofmark.plan.expansion import make_plan
from proofmark.site.machines import Machine, machines_of
from proofmark.site.node.facts import parse_probe
from proofmark.site.node.parts import read_dimms, size
from proofmark.site.node.probe_text import Unread

NODES = ("live-kvm-zen3", "knl-7250-quadrant-flat", "skl-2x6148", "spr-vm", "power9-ppc64le")
ODD = ("", "Unknown", "-1", "32 GiB", "1,5", "9" * 5000, "n/v µ\ufffd", "<unknown>", "a b c d e f")
"""What a firmware, a kernel or another language may print instead of a value."""
REQUIRED = {"host", "topology"}
"""The sections with the identity and the topology of a node."""
NEEDED = re.compile(r"\| (kernel: |machine: (x86|ppc)|Cpus_allowed_list: )")
"""The further texts that nothing can replace."""


@cache
def recorded(name: str) -> str:
    """Return a probe with a topology: most of the probes were made without lstopo."""
    text = (PROBES / f"{name}.txt").read_text(encoding="utf-8")
    if "=== topology\n| " in text:
        return text
    xml = (HWLOC / "skl_snc2_smt2.xml").read_text(encoding="utf-8")
    quoted = "".join(f"| {line}\n" for line in xml.splitlines())
    text = re.sub(r"=== topology\n(! .*\n)?", "", text)
    return text.replace("=== end", f"=== topology\n{quoted}=== end")


def optional_lines(text: str) -> Iterator[int]:
    """Yield the numbers of the lines with optional values."""
    section = ""
    for number, line in enumerate(text.split("\n")):
        if line.startswith("=== "):
            section = line[4:]
        elif line.startswith("| ") and section not in REQUIRED and not NEEDED.match(line):
            yield number


def of_each_kind(text: str) -> list[int]:
    """Return the numbers of the first and the last of the lines that differ only in numbers."""
    lines = text.split("\n")
    kinds: dict[str, list[int]] = {}
    for number in optional_lines(text):
        kinds.setdefault(re.sub(r"\d+", "0", lines[number]), []).append(number)
    return sorted({number for each in kinds.values() for number in (each[0], each[-1])})


def one_of_each_section(text: str) -> list[list[int]]:
    """Return the lines of `of_each_kind` in groups with at most one line of a section.

    Sections are read one by one. A source of the memory is alone: one is needed.
    """
    lines, alone = text.split("\n"), []
    sections: dict[str, list[int]] = {}
    for number in of_each_kind(text):
        if "mem" in lines[number].lower():
            alone.append([number])
            continue
        section = next(line for line in reversed(lines[:number]) if line.startswith("=== "))
        sections.setdefault(section, []).append(number)
    groups = zip_longest(*sections.values())
    return [*alone, *([each for each in group if each is not None] for group in groups)]


def damaged(line: str, odd: str) -> str:
    """Return a line of a probe with `odd` as its value; the name of the value stays."""
    name, separator, _ = line.partition(": ")
    if separator:
        return f"{name}: {odd}"
    if re.match(r"\| \d+ \d+ \d+ ", line):  # a processor, whose number is needed
        return f"{' '.join(line.split()[:2])} {odd}"
    return f"| {odd}"


@pytest.mark.fault("optional-value-unread")
@pytest.mark.parametrize("odd", ODD, ids=lambda odd: odd[:10])
@pytest.mark.parametrize("name", NODES)
def test_each_optional_value_may_be_odd(name: str, odd: str) -> None:
    sound = parse_probe(recorded(name), name)
    sections = [*one_of_each_section(recorded(name))]
    assert sections
    for numbers in sections:
        lines = recorded(name).split("\n")
        for number in numbers:
            lines[number] = damaged(lines[number], odd)
        facts = parse_probe("\n".join(lines), name)
        assert (facts.hostname, facts.cpus_online) == (sound.hostname, sound.cpus_online)
        assert facts.memory_bytes > 0 and facts.topology_xml == sound.topology_xml


@pytest.mark.fault("optional-value-unread")
@pytest.mark.parametrize("odd", ODD, ids=lambda odd: odd[:10])
@pytest.mark.parametrize("name", NODES)
def test_the_plan_comes_if_all_optional_values_are_odd(
    name: str, odd: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = recorded(name).split("\n")
    for number in optional_lines(recorded(name)):
        if "MemTotal" not in lines[number]:  # one source of the memory is needed
            lines[number] = damaged(lines[number], odd)
    monkeypatch.setattr("proofmark.site.machines.probe_here", lambda: "\n".join(lines))
    site = shipped_site("local", "local")
    machines, _ = machines_of(site)
    made = make_plan(shipped_benchmarks(), "quick", site, machines)
    assert made.totals.steps > 10


def test_sound_probes_have_no_unread_value() -> None:
    for name in NODES:
        facts = parse_probe(recorded(name), name)
        assert Machine.from_facts(facts, 1).unread == {}, name


def test_an_unread_value_is_named_by_plan_and_validate(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = recorded("skl-2x6148").replace("Size: 16384 MB", "Size: 16 flurbs", 1)
    monkeypatch.setattr("proofmark.site.machines.probe_here", lambda: text)
    arguments = ["-i", f"{ROOT / 'inventory/local'}", "-l", "local", "--suite", "quick"]
    named = "dimms.P1-DIMMA1 Size: '16 flurbs' cannot be read"
    assert main(["plan", *arguments]) == 0
    assert f"not known: {named}" in capsys.readouterr().out
    main(["check", *arguments])
    assert f"not known: local: {named}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "bytes_"),
    [
        ("32 GiB", 32 << 30),
        ("32 GB", 32 << 30),
        ("1 TB", 1 << 40),
        ("1 TiB", 1 << 40),
        ("512 MiB", 512 << 20),
        ("64 KiB", 64 << 10),
        ("0 bytes", 0),
        ("2 PB", 2 << 50),
    ],
)
def test_sizes_of_all_versions_of_dmidecode(text: str, bytes_: int) -> None:
    assert size(text) == bytes_


@pytest.mark.parametrize(
    ("found", "module", "bytes_", "unread"),
    [
        ("32 GiB", True, 32 << 30, False),
        ("1 TB", True, 1 << 40, False),
        ("Unknown", True, None, False),
        ("range", True, None, True),
        ("32 XB", True, None, True),
        ("No Module Installed", False, None, False),
        ("Not Installed", False, None, False),
        ("None", False, None, False),
        ("0 bytes", False, None, False),
    ],
)
def test_a_slot_of_each_size(found: str, module: bool, bytes_: int | None, unread: bool) -> None:
    values = Unread()
    lines = ("Memory Device", f"\tSize: {found}", "\tLocator: A1", "\tSpeed: 2400 MT/s")
    modules, empty = read_dimms(lines, values)
    assert (len(modules), empty) == ((1, 0) if module else (0, 1))
    assert [each.bytes for each in modules] == ([bytes_] if module else [])
    assert values.values == ({"dimms.A1 Size": found} if unread else {})


@pytest.mark.parametrize(
    ("text", "speed"),
    [("4800 MT/s", 4800), ("1333 MHz", 1333), ("1333 MHz (0.8 ns)", 1333), ("Unknown", None)],
)
def test_speeds_of_all_versions_of_dmidecode(text: str, speed: int | None) -> None:
    lines = (
        "Memory Device",
        "\tSize: 8 GB",
        f"\tSpeed: {text}",
        f"\tConfigured Clock Speed: {text}",
    )
    ((module,), _) = read_dimms(lines, Unread())
    assert (module.rated, module.configured) == (speed, speed)


def test_an_odd_number_in_the_topology_is_unknown() -> None:
    text = recorded("live-kvm-zen3")
    odd = re.sub(r'cache_size="\d+"', 'cache_size="many"', text, count=1)
    machine = Machine.from_facts(parse_probe(odd, "live"), 1)
    assert list(machine.unread.values()) == ["many"]
    assert next(iter(machine.unread)).startswith("topology.L") and machine.topology.cores


def test_the_numbers_of_the_hardware_threads_are_needed() -> None:
    text = re.sub(r'(type="PU" os_index=)"\d+"', r'\1"x"', recorded("skl-2x6148"), count=1)
    with pytest.raises(BadInput, match="a number that cannot be read"):
        Machine.from_facts(parse_probe(text, "skl"), 1)


def test_a_numa_domain_that_cannot_be_read_leaves_the_topology() -> None:
    text = recorded("power9-ppc64le").replace("| node0 cpulist: ", "| node0 cpulist: x")
    facts = parse_probe(text, "power9")
    assert facts.numa == () and "numa.node0 cpulist" in facts.unread
    machine = Machine.from_facts(facts, 1)
    assert machine.symbols["numa"] == len(machine.topology.numa_domains) == 4
