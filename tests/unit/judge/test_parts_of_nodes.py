"""Slow NUMA domains, sockets and rails of a node are named, and rails that are down or missing."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import yaml
from tests.fixtures.finished import as_host
from tests.fixtures.probes import node_facts
from tests.fixtures.stated import stated_node
from tests.unit.judge.test_accepting import evidence, measured

from proofmark.common.nodesets import folded
from proofmark.judge.diagnosis.node_faults import narrow_slots, rail_faults
from proofmark.judge.judging import judge
from proofmark.judge.references.derived import Derived, Nominal, derive
from proofmark.judge.verdict import Verdict
from proofmark.packages.survey.answers import Question
from proofmark.packages.survey.findings import parts_question
from proofmark.records.columns import Record
from proofmark.site.hardware import StatedNode
from proofmark.site.installed_parts import Parts, declared_parts
from proofmark.site.node.facts import NodeFacts
from proofmark.site.node.parts import Nic, Port
from proofmark.site.rails import rails_of

HOSTS = [f"skl{number:04d}" for number in range(1, 13)]
DOMAINS = [f"numa-{number}" for number in range(8)]
RAILS = [f"mlx5_{number}:1" for number in range(4)]
Rate = float | Sequence[float]


def record(case: str, metric: str, node: str, value: float, repeat: int, **about: Any) -> Record:
    placement = about.pop("placement", "close")
    return Record(
        *("r", f"0001-{case}/{node}", 1, "skl", "skl", node, "measured", case, case, metric),
        *(value, "MB/s", repeat, "current", placement, about, "h", True, ""),  # type: ignore[arg-type]
    )


def stream(
    parts: Iterable[str], dead: Mapping[tuple[str, str], Rate], hosts: Sequence[str]
) -> list[Record]:
    """Return Triad of each part of each node: 30 GB/s ± 2 %, or the rates in `dead`."""
    made = []
    for at, host in enumerate(hosts):
        for number, part in enumerate(parts):
            rate = dead.get((host, part), 30e3 * (1 + 0.02 * ((at + number) % 3 - 1)) + at / 7)
            rates = [rate] if isinstance(rate, float) else rate
            about = {"domain": part, "threads": 24 - number % 2, "working_set": "memory"}
            made += [
                record("stream", "triad", host, each, repeat, **about)
                for repeat, each in enumerate(rates, start=1)
            ]
    return made


def pairs(slow: Mapping[tuple[str, str], float], hosts: Sequence[str]) -> list[Record]:
    """Return the bandwidth of each rail of neighbours: 24 GB/s, times a factor of an end."""
    made = []
    ring = [*hosts, hosts[0]] if len(hosts) > 2 else hosts
    for one, other in pairwise(ring):
        for rail in [*RAILS, "all"]:
            factor = min(slow.get((host, rail), 1.0) for host in (one, other))
            rate = 24e3 * factor * (4 if rail == "all" else 1)
            about = {"rail": rail, "bytes": 4194304, "ranks": 8, "placement": "other-node"}
            made.append(
                record("osu-mbw-mr", "bandwidth", folded(sorted((one, other))), rate, 1, **about)
            )
    return made


def named(
    records: Sequence[Record], nodes: Mapping[str, NodeFacts] | None = None
) -> dict[str, str]:
    verdict = measured(judge(replace(evidence(records), facts=nodes or {})))
    assert bool(faults(verdict)) == (verdict.exit_code() == 1)
    return faults(verdict)


def faults(verdict: Verdict) -> dict[str, str]:
    return {node.host: str(node.likely) for node in verdict.bad.nodes}


@pytest.mark.fault("dead-memory-channel")
@pytest.mark.parametrize(
    ("parts", "part", "name"),
    [
        (DOMAINS, "numa-3", "NUMA domain 3"),
        (DOMAINS[:2], "numa-1", "NUMA domain 1"),
        ([*DOMAINS, "socket-0", "socket-1"], "socket-1", "socket 1"),
        ([*DOMAINS, "socket-0", "socket-1"], "numa-0", "NUMA domain 0"),
    ],
)
@pytest.mark.parametrize("hosts", [HOSTS, HOSTS[11:]])
def test_a_dead_channel_names_the_domain(
    hosts: list[str], parts: list[str], part: str, name: str
) -> None:
    """One of three channels of the domain is dead: 4 % of the node, 33 % of the domain."""
    records = stream(parts, {("skl0012", part): [20e3, 20.1e3]}, hosts)
    found = named(records)
    assert list(found) == ["skl0012"]
    assert name in found["skl0012"]
    assert "stream triad is 0.6" in found["skl0012"]


def test_alike_domains_are_no_fault() -> None:
    assert not named(stream([*DOMAINS, "socket-0", "socket-1"], {}, HOSTS))


def test_one_slow_repeat_of_a_domain_is_no_fault() -> None:
    assert not named(stream(DOMAINS, {("skl0012", "numa-3"): [20e3, 30e3, 30e3]}, HOSTS[11:]))


@pytest.mark.fault("slow-rail")
@pytest.mark.parametrize(
    ("hosts", "accused"), [(HOSTS, ["skl0005"]), (HOSTS[4:6], ["skl0005", "skl0006"])]
)
def test_a_slow_rail_is_named_with_its_adapter(hosts: list[str], accused: list[str]) -> None:
    """With a single pair, either end can have the slow rail."""
    found = named(pairs({("skl0005", "mlx5_2:1"): 0.5, ("skl0005", "all"): 0.9}, hosts))
    assert list(found) == accused
    assert all("rail mlx5_2:1: osu-mbw-mr bandwidth is 0.5 ×" in text for text in found.values())


def test_alike_rails_are_no_fault() -> None:
    assert not named(pairs({}, HOSTS))
    half = {(host, "mlx5_3:1"): 0.4 for host in HOSTS}  # a slower kind of adapter on all nodes
    assert not faults(measured(judge(replace(evidence(pairs(half, HOSTS)), facts={}))))


@pytest.mark.parametrize(("nodes", "usual"), [(12, True), (4, True), (3, False)])
def test_four_pairs_show_what_is_usual_for_a_rail(nodes: int, usual: bool) -> None:
    """With fewer, a rail that is slow on all of them is a fault."""
    hosts = HOSTS[:nodes]
    half = {(host, "mlx5_3:1"): 0.4 for host in hosts}
    found = faults(measured(judge(replace(evidence(pairs(half, hosts)), facts={}))))
    assert bool(found) is not usual
    assert all("rail mlx5_3:1" in text for text in found.values())


@pytest.mark.parametrize("unit", [1.0, 1e-6, 1e6])
def test_a_slow_part_is_named_in_any_unit(unit: float) -> None:
    rates = {(host, part): 30e3 * unit for host in HOSTS for part in DOMAINS}
    rates |= {("skl0012", "numa-3"): 20e3 * unit}
    assert list(named(stream(DOMAINS, rates, HOSTS))) == ["skl0012"]


def test_noise_is_no_fault() -> None:
    """A noise of 8 % in single measurements of 1,600 domains."""
    random = np.random.default_rng(1)
    hosts = [f"skl{number:04d}" for number in range(1, 133)]
    noisy = {
        (host, part): 30e3 * (1 + 0.08 * float(random.standard_normal()))
        for host in hosts
        for part in DOMAINS
    }
    verdict = judge(replace(evidence(stream(DOMAINS, noisy, hosts)), facts={}))
    assert not [node.host for node in verdict.bad.nodes if node.known]


def port(number: int, state: str = "4: ACTIVE", rate: str = "200 Gb/sec (4X HDR)") -> Port:
    return Port(
        adapter=f"mlx5_{number}",
        port="1",
        firmware=None,
        kind="MT4123",
        board="MT_0000000223",
        state=state,
        rate=rate,
        layer="InfiniBand",
        numa=2 * number,
        slot=f"0000:{number}1:00.0",
    )


WHOLE = [port(number) for number in range(4)]
DOWN = [port(0), *(port(number, "1: DOWN") for number in range(1, 4))]
MISSING = WHOLE[:3]
SLOW = [*WHOLE[:3], port(3, rate="100 Gb/sec (4X EDR)")]
HDR = "200 Gb/sec (4X HDR)"
BOUGHT: dict[str, Any] = {
    "rails": {"rate": HDR, "adapters": {f"mlx5_{number}:1": 2 * number for number in range(4)}}
}
COUNTED = {"rails": {"count": 4, "rate": HDR}}
THREE_DOWN = "; ".join(
    f"rail mlx5_{number}:1 (NUMA domain {2 * number}) is down: 1: DOWN" for number in (1, 2, 3)
)


@pytest.mark.fault("missing-rail")
@pytest.mark.parametrize(
    ("ports", "parts", "others", "reason"),
    [
        # Declared by name, declared by number, as most nodes, and by the other cards of the node.
        (DOWN, BOUGHT, 0, THREE_DOWN),
        (DOWN, COUNTED, 0, THREE_DOWN),
        (DOWN, {}, 7, THREE_DOWN),
        (DOWN, {}, 0, THREE_DOWN),
        (DOWN, COUNTED, 7, THREE_DOWN),
        (MISSING, BOUGHT, 0, "rail mlx5_3:1 is missing"),
        (MISSING, {}, 7, "rail mlx5_3:1 is missing"),
        (SLOW, BOUGHT, 0, "rail mlx5_3:1 (NUMA domain 6) runs at 100 Gb/s, accepted 200"),
        (SLOW, {}, 7, "rail mlx5_3:1 (NUMA domain 6) runs at 100 Gb/s, accepted 200"),
        (WHOLE, BOUGHT, 7, ""),
        (WHOLE, {}, 0, ""),
        (MISSING, {}, 0, ""),  # nothing states a fourth rail
    ],
)
def test_a_rail_that_is_missing_down_or_slow_is_named(
    ports: list[Port], parts: dict[str, Any], others: int, reason: str
) -> None:
    """A node with one of four rails must not pass."""
    given = {"skl0001": ports} | dict.fromkeys(HOSTS[1 : 1 + others], WHOLE)
    nodes = {host: as_host(node_facts(ports=tuple(each)), host) for host, each in given.items()}
    records = stream(["numa-0", "numa-1"], {}, list(nodes))
    verdict = measured(judge(replace(evidence(records), facts=nodes, node=stated_node(**parts))))
    found = faults(verdict)
    assert list(found) == (["skl0001"] if reason else [])
    assert reason in found.get("skl0001", "")
    assert (verdict.exit_code() == 1) == bool(reason)


def in_slot(link: str | None, best: str | None = None, **changes: Any) -> NodeFacts:
    """Return a node whose only port is in a slot with this link."""
    return node_facts(
        ports=(port(0).model_copy(update={"link": link, "link_best": best, **changes}),)
    )


X16, X8 = "x16 at 16.0 GT/s PCIe", "x8 at 16.0 GT/s PCIe"


@pytest.mark.parametrize(
    ("links", "named"),
    [
        ([X16, X16, X16], []),
        ([X16, X16, X8], ["n2"]),
        ([X8, X16, X16], ["n0"]),
        ([X16, X8, X8], []),  # most nodes have the slower slot
        ([X16, X16, X16, X8, X8], ["n3", "n4"]),
        ([X16, X8], []),  # two nodes show nothing
        ([None, X16, X16, X16], []),
        ([X16, None, None, None], []),
        ([X16, X16, "x16 at 15.6 GT/s PCIe"], []),  # within 3 %
    ],
)
def test_a_slot_that_is_slower_than_that_of_most_nodes_is_named(
    links: list[str | None], named: list[str]
) -> None:
    nodes = {f"n{number}": in_slot(link) for number, link in enumerate(links)}
    found = rail_faults(nodes, Parts(), dict.fromkeys(nodes, "hardware"))
    assert [*found] == named
    for messages in found.values():
        assert [(each.code, each.fields) for each in messages] == [
            ("rail-slot", {"rail": "mlx5_0:1", "found": X8, "accepted": X16})
        ]


@pytest.mark.parametrize(
    ("node", "codes"),
    [
        (in_slot(X16, X16), []),
        (in_slot(None, None), []),
        (in_slot(X8, X16), ["slot-narrow"]),
        (in_slot(X8, None), []),
        (in_slot("x16 at 2.5 GT/s PCIe", X16), ["slot-narrow"]),
        (in_slot("x16 at 8.0 GT/s PCIe", X16, rate="40 Gb/sec (4X QDR)"), []),  # it is enough
        (in_slot("x16 at 8.0 GT/s PCIe", X16), ["slot-narrow"]),
        (in_slot(X16, X16, rate="50 Gb/sec (1X HDR)"), ["port-narrow"]),
        (in_slot(X8, X16, rate="10 Gb/sec (4X SDR)"), ["slot-narrow", "port-narrow"]),
        (in_slot(X16, X16, rate="50 Gb/sec (1X HDR)", layer="Ethernet"), []),
        (in_slot(X8, X16, state="1: DOWN"), []),
    ],
)
def test_a_slot_or_port_below_what_its_card_can_have_is_named(
    node: NodeFacts, codes: list[str]
) -> None:
    found = [*narrow_slots({"n1": node, "n2": node})]
    assert [each.codes for each in found] == [("slot-narrow-on", code) for code in codes]
    for each in found:
        assert {
            "nodes": "n[1-2]",
            "key": "partition.node.rails.rate",
        }.items() <= each.fields.items()


@pytest.mark.parametrize("stated", [False, True])
def test_a_narrow_slot_is_open_unless_the_rate_of_the_rails_is_stated(stated: bool) -> None:
    nodes = {"skl0001": as_host(in_slot(X8, X16), "skl0001")}
    node = stated_node(**({"rails": {"rate": HDR}} if stated else {}))
    records = stream(["numa-0", "numa-1"], {}, ["skl0001"])
    verdict = judge(replace(evidence(records), facts=nodes, node=node))
    open_ = [each for each in verdict.unmet if each.code == "slot-narrow-on"]
    assert [each.fields["nodes"] for each in open_] == ([] if stated else ["skl0001"])


def test_a_second_port_without_a_cable_is_no_fault() -> None:
    """The two ports of a card of mlx5 are two adapters, functions of one PCI device."""
    second = port(0, "1: DOWN").model_copy(update={"adapter": "mlx5_1", "slot": "0000:01:00.1"})
    nodes = {"skl0001": node_facts(ports=(port(0), second))}
    roce = [each.model_copy(update={"layer": "Ethernet"}) for each in DOWN]
    assert not named(stream(DOMAINS, {}, ["skl0001"]), {"skl0001": node_facts(ports=tuple(roce))})
    assert not named(stream(["numa-0", "numa-1"], {}, ["skl0001"]), nodes)


def test_all_rails_together_have_the_rate_of_all_of_them() -> None:
    """A node with one rail left has the limit of the four that are stated."""

    def limit(ports: list[Port], rail: str, rails: int | None = None) -> float:
        found = derive(
            "link_bandwidth",
            [node_facts(ports=tuple(ports))],
            {"rail": rail},
            stated=[Nominal(rails=rails)],
        )
        assert isinstance(found, Derived)
        return found.value

    assert limit(WHOLE, "mlx5_0:1") == limit(DOWN, "all") == limit(WHOLE, "all") / 4
    assert limit(DOWN, "all", 4) == limit(WHOLE, "all")


def test_slingshot_and_omni_path_are_rails_and_roce_beside_them_is_none() -> None:
    def nic(name: str) -> Nic:
        fields = {"firmware": None, "mtu": None, "link": None, "link_best": None, "numa": 3}
        return Nic(name=name, driver="cxi_ss1", state="up", megabits=200000, **fields)

    roce = port(0).model_copy(update={"layer": "Ethernet"})
    slingshot = node_facts(ports=(roce,), nics=(nic("hsn0"), nic("hsn10"), nic("hsn2")))
    assert list(rails_of(slingshot)) == ["cxi0:1", "cxi2:1", "cxi10:1"]
    assert {rail.numa for rail in rails_of(slingshot).values()} == {3}
    assert list(rails_of(node_facts(ports=(roce,)))) == ["mlx5_0:1"]
    assert (
        json.dumps([rail.active for rail in rails_of(slingshot).values()]) == "[true, true, true]"
    )


def test_one_of_four_rails_on_all_nodes_is_a_fault_unless_it_is_declared() -> None:
    given = {host: as_host(node_facts(ports=tuple(DOWN)), host) for host in HOSTS}
    alike = dict.fromkeys(HOSTS, "hardware")
    assert rail_faults(given, Parts(), alike).keys() == {*HOSTS}
    one = stated_node(rails={"count": 1, "rate": HDR})
    assert not rail_faults(given, declared_parts(one), alike)


def test_init_proposes_the_rails_with_their_domains() -> None:
    (question,) = parts_question(node_facts(ports=tuple(WHOLE)), "n1").values()
    assert isinstance(question, Question)
    given = yaml.safe_load("\n".join(question.answer))["node"]
    assert given["rails"] == BOUGHT["rails"]
    assert StatedNode.model_validate(given).rails.number == 4
