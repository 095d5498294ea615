"""No healthy machine of other people misses an expected value whose conditions it meets."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
import yaml
from tests.folders import DATA, ROOT

from proofmark.site.hardware_limits import (
    Figure,
    ProcessorLimits,
    ethernet,
    link,
    links,
    processor,
    processors,
    typical_shares,
)

TEXT = (DATA / "healthy-machines.yml").read_text(encoding="utf-8")
FILE = yaml.load(TEXT, Loader=yaml.CSafeLoader)


@dataclass(frozen=True)
class Machine:
    """A measurement: its share of the peak or of the port; conditions as the source states them."""

    system: str
    of: str
    kind: str
    share: float
    conditions: dict[str, Any]
    source: str


@dataclass(frozen=True)
class Expected:
    """The lowest share of a healthy machine, and where it holds."""

    lowest: float
    system: str
    source: str
    conditions: dict[str, Any] = field(default_factory=dict)


def limits_of(model: str) -> ProcessorLimits:
    row = processor(model)
    assert row is not None, model
    return row


def hpl_peak(model: str, cores: int) -> float:
    """Return Gflop/s."""
    row = limits_of(model)
    assert row.base_hz and row.flop_per_cycle
    return cores * row.base_hz * row.flop_per_cycle / 1e9


def top500(section: str, tcp: bool) -> list[Machine]:
    """Return HPL of whole systems; each of them has more nodes than any row of nodes."""
    conditions = {"bare_metal": True, "tcp": tcp, "nodes": 100}
    return [
        Machine(system, model, "hpl", rmax / hpl_peak(model, cores), conditions, f"TOP500 {id_}")
        for model, rows in FILE[section].items()
        for id_, _, system, cores, rmax in rows
    ]


def node(record: dict[str, Any]) -> Machine:
    model = record["processor"]
    if record["kind"] == "hpl":
        peak = hpl_peak(model, record["cores"])
    else:
        channels = limits_of(model).channels
        assert channels
        peak = record["nodes"] * record["sockets"] * channels * record["ddr"] * 8
    conditions = record["conditions"] | {"nodes": record["nodes"]}
    share = record["value"] / peak
    return Machine(record["system"], model, record["kind"], share, conditions, record["source"])


def port_rate(port: str | int) -> float:
    limit = ethernet(port) if isinstance(port, int) else link(port)
    assert limit is not None, port
    return limit.bytes_per_s


NODES = [*top500("top500", False), *top500("top500_tcp", True), *map(node, FILE["nodes"])]
PORTS = [
    Machine(
        record["system"],
        str(record["port"]),
        record["kind"],
        record["value"] * 1e6 / port_rate(record["port"]),
        record["conditions"],
        record["source"],
    )
    for record in FILE["links"]
    if record["kind"] == "bandwidth"
]


def typical(machine: Machine) -> list[Expected]:
    figure: Figure = "hpl" if machine.kind == "hpl" else "triad"
    return [
        Expected(
            each.ratio - each.tolerance,
            each.conditions.system,
            each.source,
            each.conditions.model_dump(exclude={"system"}, exclude_defaults=True),
        )
        for each in typical_shares(limits_of(machine.of), figure)
    ]


def measured(machine: Machine) -> list[Expected]:
    """Return what MPI reached over as many lanes of the same kind of port."""
    port: str | int = int(machine.of) if machine.of.isdigit() else machine.of
    rate = port_rate(port)
    rows = [(row.megabits == port, rate, row.mpi) for row in links().ethernet]
    rows += [
        (machine.of.endswith(f"X {row.speed}".rstrip() + ")"), row.lane_bytes_per_s, row.mpi)
        for row in links().lanes
    ]
    return [
        Expected(
            each.bytes_per_s / rate - each.tolerance,
            each.system,
            each.source,
            {"bare_metal": each.bare_metal, "tcp": each.tcp},
        )
        for same, lane, mpi in rows
        for each in mpi
        if same and each.bytes_per_s and rate in (lane, each.lanes * lane)
    ]


def contradicts(name: str, wanted: Any, stated: dict[str, Any]) -> bool:
    """Return whether a statement is against a condition.

    What the source does not state may hold, but streaming stores: without a flag most compilers
    make none.
    """
    if name == "streaming_stores":
        return stated.get(name) is not wanted
    if name not in stated:
        return False
    if name == "nodes":
        return bool(stated[name] > wanted)
    if name == "tcp":
        return stated.get("nodes") != 1 and stated[name] is not wanted
    return stated[name] not in wanted if name == "blas" else stated[name] != wanted


def judging(machine: Machine) -> list[Expected]:
    """Return the expected values whose conditions the machine meets."""
    found = measured(machine) if machine.kind == "bandwidth" else typical(machine)
    return [
        each
        for each in found
        if not any(contradicts(*item, machine.conditions) for item in each.conditions.items())
    ]


def misses(machine: Machine) -> bool:
    return any(machine.share < each.lowest for each in judging(machine))


MACHINES = [*NODES, *PORTS]
JUDGED = [(machine, each) for machine in MACHINES for each in judging(machine)]
KINDS = {"hpl": "HPL", "triad": "Triad of STREAM", "bandwidth": "osu_bw"}


def test_no_healthy_machine_misses_an_expected_value() -> None:
    for machine, each in JUDGED:
        assert machine.share >= each.lowest, (machine, each)


def test_a_share_is_possible() -> None:
    """The boost of Zen 4 is above the nominal frequency; no other share is above one."""
    assert [machine for machine in MACHINES if not 0.2 < machine.share < 1.02] == []


def test_a_slow_machine_misses_the_value_that_the_healthy_one_meets() -> None:
    for machine, expected in JUDGED:
        slow = replace(machine, share=0.8 * expected.lowest)
        assert not misses(machine) and misses(slow), (machine, expected)


def test_most_machines_are_found_if_they_lose_three_tenths() -> None:
    lost = [misses(replace(machine, share=0.7 * machine.share)) for machine, _ in JUDGED]
    assert len(lost) > 150 and sum(lost) / len(lost) > 0.9


def test_a_machine_is_no_source_of_the_value_that_judges_it() -> None:
    for machine, each in JUDGED:
        assert machine.system not in each.system, machine
        assert machine.source.split(",")[0] not in each.source, machine


def test_what_is_not_under_the_conditions_is_not_judged() -> None:
    """HPL over TCP and with OpenBLAS, Triad without streaming stores, MPI over TCP."""
    others = [machine for machine in MACHINES if not judging(machine)]
    below = [
        machine
        for machine in others
        for each in (measured(machine) if machine.kind == "bandwidth" else typical(machine))
        if machine.share < each.lowest
    ]
    assert {machine.kind for machine in below} == {"hpl", "triad"}
    assert {"Unayzah", "Kebnekaise (Skylake), foss/2021a"} <= {each.system for each in below}
    assert all(machine.conditions.get("tcp") is not False for machine in below)


def test_latencies_over_the_same_port_differ_more_than_bandwidths() -> None:
    """A latency has no tolerance: those of healthy machines differ by more than a tenth."""
    over = defaultdict(set)
    for record in FILE["links"]:
        if record["kind"] == "latency":
            over[record["port"]].add(record["value"] * 1e-6)
    for row in links().lanes:
        for each in row.mpi:
            port = next((text for text in over if str(text).endswith(f"4X {row.speed})")), None)
            if port and each.latency_s and each.lanes == 4:
                over[port].add(each.latency_s)
    spread = {port: max(found) / min(found) for port, found in over.items() if len(found) > 1}
    assert spread and max(spread.values()) > 1.2


def test_the_page_of_the_trials_has_these_numbers() -> None:
    page = (ROOT / "docs" / "tested.md").read_text(encoding="utf-8")
    rows = table()
    assert rows and [line for line in rows if line not in page] == []


def table() -> list[str]:
    rows: dict[str, list[Any]] = {
        "hpl": [row.hpl for row in processors() if row.hpl],
        "triad": [row.triad for row in processors() if row.triad],
        "bandwidth": [
            each
            for mpi in (*(row.mpi for row in links().lanes), *(row.mpi for row in links().ethernet))
            for each in mpi
            if each.bytes_per_s
        ],
    }
    lines = []
    for kind, name in KINDS.items():
        judged = [(machine, each) for machine, each in JUDGED if machine.kind == kind]
        measured_ = sum(machine.kind == kind for machine in MACHINES)
        who = len({(machine.system, machine.of) for machine, _ in judged})
        checked = len({(each.system, each.source, each.lowest) for _, each in judged})
        lines.append(f"| {name} | {measured_} | {who} | {who} | {len(rows[kind])} | {checked} |")
    return lines


def floors_of_hpl() -> dict[str, float]:
    """Return the least share of each peak that a floor of the case accepts."""
    case = yaml.safe_load((ROOT / "benchmarks/hpl.yml").read_text(encoding="utf-8"))
    of_peak = (each for each in case["references"] if each["kind"] == "floor" and "rule" in each)
    return {each["rule"]: each["at_least"] for each in of_peak}


SMALL_MATRIX = 0.8
"""The rate with a matrix of a fifth of the memory ÷ that with a full one."""


@pytest.mark.fault("floor-of-another-library")
@pytest.mark.parametrize("broken", [1.0, 0.25], ids=["control", "fault"])
def test_a_floor_of_hpl_finds_only_what_is_broken(broken: float) -> None:
    """No healthy machine misses it, with any library and network; a quarter of the rate does."""
    floors = floors_of_hpl()
    shares = sorted(
        (each.share, each.of) for each in MACHINES if each.kind == "hpl" and each.system
    )
    lowest, highest = shares[0], shares[-1]
    assert floors["rpeak_nominal"] <= SMALL_MATRIX * lowest[0], lowest
    rows = [row for row in processors() if row.avx_hz and row.base_hz]
    for row in rows:
        ratio = (row.avx_hz or 0) / (row.base_hz or 1)
        assert floors["rpeak_avx"] * ratio <= SMALL_MATRIX * lowest[0], row.name
    if broken < 1:
        usual = shares[len(shares) // 2][0]
        assert broken * usual < floors["rpeak_nominal"] < highest[0]
