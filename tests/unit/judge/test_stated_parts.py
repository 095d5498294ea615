"""Nodes with fewer or slower parts than stated are faults, and limits follow from the statement."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError
from tests.fixtures.finished import as_host, written_verdict
from tests.fixtures.fleet import fleet_run
from tests.fixtures.kit import item
from tests.fixtures.probes import node_facts
from tests.fixtures.stated import sourced, stated_node
from tests.folders import PROBES

from proofmark.cases.reference import Rule
from proofmark.cli.main import main
from proofmark.common.message import Message
from proofmark.common.message_table import MESSAGES
from proofmark.judge import stated_parts
from proofmark.judge.baseline import accepted_parts
from proofmark.judge.references.derived import Nominal
from proofmark.judge.stated_parts import (
    empty_channels,
    nominal_parts,
    part_faults,
    shown_basis,
    statements,
    unknown_orders,
    unread_parts,
)
from proofmark.judge.verdict import Verdict
from proofmark.packages.service.gate_decisions import decide, evidence_of
from proofmark.packages.survey.answers import Question
from proofmark.packages.survey.findings import parts_question
from proofmark.runs.run import Run
from proofmark.site.accepted_baseline import AcceptedNodes, Baseline
from proofmark.site.hardware import StatedAccelerators, StatedNode
from proofmark.site.installed_parts import (
    OTHER,
    ROWS,
    Parts,
    declared_parts,
    missing_parts,
    parts_of,
    parts_to_accept,
    unknown_parts,
)
from proofmark.site.node.facts import NodeFacts, parse_probe

PROBE = (PROBES / "skl-2x6148.txt").read_text(encoding="utf-8")
DIMMS = {"memory": {"modules": 12, "module_bytes": 2**34, "mt_per_s": 2666}}
EDR = {"rails": {"count": 1, "rate": "100 Gb/sec (4X EDR)"}}
NODES = [f"n{number}" for number in range(8)]


SECTION = "=== load\n"


def accelerators(*lanes: int, rate: str = "16.0 GT/s PCIe", ecc: str = "Enabled") -> dict[str, str]:
    """Return the change of a probe that gives the node accelerators with links of this width."""
    lines = []
    for number, width in enumerate(lanes):
        values = {"class": "0x030200", "vendor": "0x10de", "device": "0x2330", "ecc": ecc}
        values |= {"current_link_width": f"{width}", "max_link_speed": rate}
        lines += [f"| 0000:{number}7:00.0 {key}: {value}" for key, value in values.items()]
    section = "\n".join(("=== accelerators", *lines)) + "\n"
    return {SECTION: section + SECTION}


FOUR = accelerators(16, 16, 16, 16)
GPUS = {"accelerators": {"count": 4, "lanes": 16, "gt_per_s": 16.0, "ecc": True}}


@pytest.mark.fault("accelerator-missing")
@pytest.mark.parametrize("declared", [True, False])
@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (accelerators(16, 16, 16), "accelerators that answer: 3, accepted 4"),
        (accelerators(16, 16, 63, 16), "accelerators that answer: 3, accepted 4"),
        ({SECTION: f"=== accelerators\n!no-accelerator accelerators\n{SECTION}"}, "answer: 0"),
        (accelerators(16, 16, 8, 16), "PCIe lanes of the accelerators: 3 × 16 + 1 × 8"),
        (accelerators(*[16] * 4, rate="8.0 GT/s PCIe"), "GT/s of the PCIe links"),
        (accelerators(*[16] * 4, ecc="Disabled"), "accelerators with ECC: 0, accepted 4"),
        (accelerators(*[16] * 5), ""),
    ],
)
def test_a_node_that_lost_an_accelerator_is_named(
    tmp_path: Path, changes: dict[str, str], reason: str, declared: bool
) -> None:
    others = {node: changes if node == "n3" else FOUR for node in NODES}
    _, verdict = judged(tmp_path, others, parts=GPUS if declared else None, rate=130)
    assert list(named(verdict)) == (["n3"] if reason else [])
    assert all(reason in text for text in named(verdict).values()), named(verdict)
    assert verdict.exit_code() == (1 if reason else 0)


@pytest.mark.fault("accelerator-missing")
def test_accelerators_that_a_probe_does_not_report_are_not_judged(tmp_path: Path) -> None:
    _, verdict = judged(tmp_path, {}, parts=GPUS, rate=130)
    assert named(verdict) == {} and verdict.exit_code() == 4
    assert "n[0-7]: the stated part was not found out: accelerators" in verdict.unmet


def test_sound_accelerators_are_no_fault(tmp_path: Path) -> None:
    """The control."""
    _, verdict = judged(tmp_path, on_all(FOUR), parts=GPUS, rate=130)
    assert (named(verdict), verdict.unmet, verdict.exit_code()) == ({}, (), 0)


def without_modules(least: int = 6) -> dict[str, str]:
    """Return the changes of a probe that take the first `least` of twelve modules out."""
    blocks = re.findall(r"\| \tSize: 16384 MB\n\| \tLocator: \S+\n", PROBE)
    assert len(blocks) == 12
    return {block: block.replace("16384 MB", "No Module Installed") for block in blocks[:least]}


HALF = without_modules()
SLOW_PORT = {"100 Gb/sec (4X EDR)": "10 Gb/sec (4X SDR)"}
FULL, SLOWEST = (f"Configured Clock Speed: {speed} MT/s" for speed in (2666, 2400))
SLOW_MODULES = {FULL: "Configured Clock Speed: 2133 MT/s"}
NO_PORT = {
    "mlx5_0/1 state: 4: ACTIVE": "mlx5_0/1 state: 1: DOWN",
    "ib0 operstate: up": "ib0 operstate: down",
}


def judged(
    folder: Path,
    changes: Mapping[str, Mapping[str, str]],
    *,
    parts: Mapping[str, Any] | None = None,
    rule: str = "memory_bandwidth",
    rate: float = 105,
    hosts: list[str] = NODES,
) -> tuple[Run, Verdict]:
    """Return a run in which each node measured `rate` in GB/s, and its verdict."""
    limit = {"case": "fake", "metric": "rate", "rule": rule, "at_least": 0.5, "source": "s"}
    run = fleet_run(
        folder,
        {host: [1000 * rate, 1001 * rate] for host in hosts},
        # One module of this probe runs at 2400 MT/s.
        changes={host: {SLOWEST: FULL, **changes.get(host, {})} for host in hosts},
        partition={"node": sourced(**(parts or {}))},
        items=[item(**limit)],
    )
    return run, written_verdict(run)


def named(verdict: Verdict) -> dict[str, str]:
    """Return the first fault of each node: others may name the rail."""
    return {fault.node: str(fault.reason) for fault in reversed(verdict.faults)}


def on_all(changes: Mapping[str, str], hosts: list[str] = NODES) -> dict[str, Mapping[str, str]]:
    return dict.fromkeys(hosts, changes)


@pytest.mark.fault("parts-missing")
@pytest.mark.parametrize(
    ("changes", "parts", "reason"),
    [
        (HALF, DIMMS, "DIMMs: 6, accepted 12"),
        (without_modules(1), DIMMS, "DIMMs: 11, accepted 12"),
        (SLOW_MODULES, DIMMS, "MT/s of a DIMM: 2133, accepted 2666"),
        (
            {"Size: 16384 MB": "Size: 8192 MB"},
            DIMMS,
            "size of 12 DIMMs: 8 GiB, accepted 16 GiB",
        ),
        (SLOW_PORT, EDR, "Gb/s of the ports: 1 × 10, accepted 1 × 100"),
        (NO_PORT, EDR, "active ports of the network: 0, accepted 1"),
        ({}, {"rails": {"count": 4, "rate": 12.5e9}}, "network: 1, accepted 4"),
        ({}, {"cores": 48}, "cores: 40, accepted 48"),
        ({}, {"sockets": 4}, "sockets: 2, accepted 4"),
        ({}, {"memory": {"bytes": 2**38}}, "memory: 186.9 GiB, accepted 256.0 GiB"),
    ],
)
def test_a_node_with_less_than_declared_is_a_fault_by_name(
    tmp_path: Path, changes: dict[str, str], parts: dict[str, Any], reason: str
) -> None:
    """Also if all nodes have the same fault, and if there is one node only."""
    for number, hosts in enumerate((NODES[:3], ["n1"])):
        folder = tmp_path / str(number)
        _, verdict = judged(folder, on_all(changes, hosts), parts=parts, hosts=hosts, rate=130)
        assert named(verdict).keys() == set(hosts)
        assert all(
            text.startswith("less hardware than declared: ") for text in named(verdict).values()
        )
        assert all(reason in text for text in named(verdict).values()), named(verdict)
        assert verdict.exit_code() == 1
        fault = verdict.head()["fleet"]["nodes"][0]["known"][0]
        assert fault["code"] == "hardware-declared" and fault["fields"]["text"][0]["fields"]


@pytest.mark.fault("parts-missing")
def test_sound_nodes_are_no_fault(tmp_path: Path) -> None:
    """The control."""
    parts = {**DIMMS, **EDR, "cores": 40, "sockets": 2}
    _, verdict = judged(tmp_path, {}, parts=parts, rate=130)
    assert (named(verdict), verdict.unmet, verdict.exit_code()) == ({}, (), 0)
    assert not verdict.hardware.basis


def test_limits_follow_from_the_declared_parts(tmp_path: Path) -> None:
    """Half of the modules give half of the rate on all nodes: alike, and FAIL."""
    _, verdict = judged(tmp_path / "declared", on_all(HALF), parts=DIMMS)
    assert verdict.counts["FAIL"] == len(NODES) and not verdict.hardware.basis
    (result, *_) = verdict.of("FAIL")
    assert "0.41 × memory_bandwidth (255936 MB/s)" in result.reason
    assert "declared" in result.references[0].source
    _, verdict = judged(tmp_path / "shown", on_all(HALF))
    assert verdict.counts["PASS"] == len(NODES)
    assert "because nothing states it: memory modules (n[0-7])" in verdict.hardware.basis
    assert verdict.head()["basis_code"] == "parts-shown"


@pytest.mark.parametrize("stated", [EDR, {"rails": {"rate": 12.5e9}}])
def test_a_port_that_is_slow_on_all_nodes_fails(tmp_path: Path, stated: dict[str, Any]) -> None:
    _, verdict = judged(tmp_path, on_all(SLOW_PORT), rule="link_bandwidth", rate=0.9, parts=stated)
    assert verdict.counts["FAIL"] == len(NODES) and named(verdict).keys() == set(NODES)
    assert "12500 MB/s" in next(iter(verdict.of("FAIL"))).reason


@pytest.mark.fault("parts-missing")
@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (HALF, "DIMMs: 6, accepted 12"),
        (SLOW_MODULES, "MT/s of a DIMM: 2133"),
        (SLOW_PORT, "Gb/s of the ports: 1 × 10, accepted 1 × 100"),
        (NO_PORT, "active ports of the fabric: 0, accepted 1"),
        ({"MemTotal:       196000000": "MemTotal:       98000000"}, "memory: 93.5 GiB"),
    ],
)
@pytest.mark.parametrize("bad", [["n3"], ["n1", "n3", "n6"]])
def test_a_node_with_less_than_most_nodes_is_a_fault(
    tmp_path: Path, changes: dict[str, str], reason: str, bad: list[str]
) -> None:
    _, verdict = judged(tmp_path, on_all(changes, bad), rate=130)
    assert named(verdict).keys() == set(bad) and verdict.exit_code() == 1
    assert all(reason in text for text in named(verdict).values())
    assert all("less hardware than most nodes" in text for text in named(verdict).values())


def test_the_limit_of_a_node_follows_from_its_peers(tmp_path: Path) -> None:
    _, verdict = judged(tmp_path, {"n3": HALF})
    assert [result.verdict for result in verdict.results] == ["FAIL"] * len(NODES)
    assert all("255936" in result.reason for result in verdict.results)


def test_declared_parts_replace_those_of_most_nodes(tmp_path: Path) -> None:
    """A site with two sizes of nodes declares the smaller one."""
    least = {"memory": {"modules": 6}}
    memory = {"MemTotal:       196000000": "MemTotal:       98000000"}
    _, verdict = judged(tmp_path, {"n3": {**HALF, **memory}}, parts=least, rate=130)
    assert named(verdict) == {}


def test_more_than_usual_is_no_fault(tmp_path: Path) -> None:
    _, verdict = judged(tmp_path, on_all(HALF, NODES[1:]), rate=100)
    assert named(verdict) == {}


def test_declared_parts_that_no_probe_can_read_are_not_judged(tmp_path: Path) -> None:
    silent = {"=== dimms\n": "=== dimms\n! dimms: needs root\n=== more\n"}
    _, verdict = judged(tmp_path, on_all(silent), parts=DIMMS, rate=130)
    assert named(verdict) == {} and verdict.exit_code() == 4
    assert "n[0-7]: the stated part was not found out: memory modules" in verdict.unmet
    assert verdict.counts["PASS"] == len(NODES)


def test_a_gate_keeps_a_single_node_with_half_of_its_modules(tmp_path: Path) -> None:
    for parts, action in ((DIMMS, "keep"), ({}, "resume")):
        run, verdict = judged(tmp_path / action, {"n1": HALF}, parts=parts, hosts=["n1"], rate=120)
        decision = decide(evidence_of(verdict, run.plan, ()), ["n1"])["n1"]
        assert decision.action == action
        assert decision.fault == (action == "keep")


def accepted(*nodes: NodeFacts) -> Baseline:
    states = tuple(
        AcceptedNodes(
            nodes=f"a{number}",
            parts=parts_to_accept(node),
            traits={"processor": node.cpu_model},
        )
        for number, node in enumerate(nodes)
    )
    base = {"name": "b", "site": "s", "partition": "p", "origin": "measured", "figures": "f"}
    return Baseline(**base, runs=(), nodes=states)


def test_a_new_node_has_at_least_the_parts_of_most_accepted_nodes() -> None:
    whole = node_facts()
    half = node_facts(dimms=whole.dimms[:6])
    baseline = accepted(whole, whole, half)
    parts = accepted_parts(baseline, {"new": half, "a2": half, "a0": half})
    found = {host: missing_parts(stated, parts_of(half)).keys() for host, stated in parts.items()}
    assert found == {"new": {"dimms"}, "a2": set(), "a0": {"dimms"}}
    other = node_facts(cpu_model="Another CPU", dimms=())
    less = missing_parts(accepted_parts(baseline, {"x": other})["x"], parts_of(other))
    assert less.keys() == {"processor"}


def test_a_slower_port_than_accepted_is_less() -> None:
    (port,) = node_facts().ports
    slow = node_facts(ports=(port.model_copy(update={"rate": "50 Gb/sec (2X EDR)"}),))
    stated = accepted_parts(accepted(node_facts()), {"a0": slow})["a0"]
    assert missing_parts(stated, parts_of(slow)).keys() == {"ports"}


def test_a_baseline_has_the_parts_of_its_nodes_and_no_others() -> None:
    (state,) = accepted(node_facts()).nodes
    assert AcceptedNodes.model_validate_json(state.model_dump_json()) == state
    for name, value in (("core", 4), ("reserved", math.nan)):
        stored = {**state.model_dump(), "parts": {**vars(state.parts), name: value}}
        with pytest.raises(ValidationError):
            AcceptedNodes.model_validate(stored)


def test_ports_of_roce_are_counted_once() -> None:
    (port,) = node_facts().ports
    (nic,) = node_facts().nics
    two = node_facts(ports=(port,) * 2, nics=(nic,) * 2)
    four = declared_parts(stated_node(rails={"count": 4, "rate": 12.5e9}))
    assert missing_parts(four, parts_of(two)).keys() == {"rails"}
    slingshot = node_facts(ports=(), nics=(nic,) * 4)
    assert missing_parts(four, parts_of(slingshot)) == {}


def test_a_virtual_node_has_no_known_modules() -> None:
    assert parts_of(node_facts(virtual="kvm")).dimms is None


def test_init_proposes_the_parts_that_it_found() -> None:
    """The proposal is a declaration that the node meets."""
    node = node_facts()
    (question,) = parts_question(node, "n1").values()
    assert isinstance(question, Question)
    given = yaml.safe_load("\n".join(question.answer))["node"]
    assert given["memory"] == {"modules": 12, "module_bytes": 2**34, "mt_per_s": 2400}
    assert given["rails"] == {"count": 1, "rate": "100 Gb/sec (4X EDR)"}
    declared = declared_parts(StatedNode.model_validate(given))
    assert missing_parts(declared, parts_of(node)) == {}
    assert missing_parts(declared, parts_of(node_facts(dimms=node.dimms[:11]))).keys() == {"dimms"}
    (hidden,) = parts_question(node_facts(virtual="kvm"), "n1").values()
    assert isinstance(hidden, Question) and "    bytes: " in "\n".join(hidden.answer)


def test_the_accelerators_of_a_node_are_what_init_asks_for() -> None:
    """The inventory accepts the answer, and the node has each stated part."""
    for change, count in ((FOUR, 4), ({}, 0)):
        text = PROBE
        for old, new in change.items():
            text = text.replace(old, new)
        found = parse_probe(text, "probe")
        (question,) = parts_question(found, "n1").values()
        assert isinstance(question, Question)
        given = yaml.safe_load("\n".join(question.answer))["node"]
        stated = StatedNode.model_validate(given)
        assert (stated.accelerators.count if stated.accelerators else 0) == count
        assert missing_parts(declared_parts(stated), parts_of(found)) == {}
        if count:
            assert stated.accelerators == StatedAccelerators(**GPUS["accelerators"])


MODEL = "| mlx5_0 hca_type: MT4119\n"
NO_MODEL = "!no-value fabric.{0} hca_type: /sys/class/infiniband/{0}/hca_type\n"
OMNI_PATH = {MODEL: NO_MODEL.format("hfi1_0"), "mlx5_0": "hfi1_0"}
EFA = {
    MODEL: NO_MODEL.format("efa_0"),
    "mlx5_0": "efa_0",
    "layer: InfiniBand": "layer: Unspecified",
}
NO_FABRIC = {
    re.search(r"=== fabric\n(?:\| .*\n)+", PROBE)[0]: (  # type: ignore[index]
        "=== fabric\n!no-file fabric: /sys/class/infiniband\n"
    )
}
SLINGSHOT = {
    **NO_FABRIC,
    "| ib0 operstate": "| ib0 driver: cxi_ss1\n| ib0 operstate",
    "ib0": "hsn0",
}
NO_RATE = {"ib0 speed: 100000": "ib0 speed: -1"}
HFI_RAIL = {"rails": {"adapters": {"hfi1_0:1": 0}, "rate": "100 Gb/sec (4X EDR)"}}


@pytest.mark.parametrize(
    ("driver", "parts"),
    [
        (OMNI_PATH, {}),
        (OMNI_PATH, HFI_RAIL),
        (EFA, {}),
        (SLINGSHOT, {}),
        ({**NO_RATE, **SLINGSHOT}, {}),
    ],
)
@pytest.mark.parametrize("number", [3, 8])
def test_a_part_that_no_node_shows_is_not_stated(
    tmp_path: Path, driver: dict[str, str], parts: dict[str, Any], number: int
) -> None:
    """Drivers without the model of an adapter, or without the rate of its port: nodes pass."""
    hosts = NODES[:number]
    run, verdict = judged(tmp_path, on_all(driver, hosts), parts=parts, hosts=hosts, rate=130)
    assert (named(verdict), verdict.unmet, verdict.exit_code()) == ({}, (), 0)
    assert main(["verdict", str(run.folder)]) == 0


@pytest.mark.parametrize(
    ("driver", "change", "parts", "missing"),
    [
        (SLINGSHOT, NO_RATE, {}, "ports of the network"),
        (NO_FABRIC, NO_RATE, {}, "Ethernet interfaces"),
        (SLINGSHOT, NO_RATE, {"rails": {"count": 1, "rate": 12.5e9}}, "ports of the network"),
        ({}, {MODEL: ""}, {}, "model of the network adapters"),
    ],
)
def test_a_part_that_one_node_does_not_show_is_not_judged(
    tmp_path: Path,
    driver: dict[str, str],
    change: dict[str, str],
    parts: dict[str, Any],
    missing: str,
) -> None:
    changes = {**on_all(driver), "n3": {**change, **driver}}
    _, verdict = judged(tmp_path, changes, parts=parts, rate=130)
    assert (named(verdict), verdict.exit_code()) == ({}, 4)
    # An interface of Slingshot is a port, too.
    assert verdict.unmet[0] == f"n3: the stated part was not found out: {missing}"


@pytest.mark.parametrize(
    ("stated", "found", "code"),
    [
        (("", "A"), ("", "A"), ""),
        (("", "A"), ("", "B"), "other-cards"),
        (("A", "B"), ("", "C"), "other-cards"),
        (("A", "A"), ("", "A"), None),
        (("", "A"), ("A", "B"), ""),
        (("A",), ("", ""), None),
        (("A", "A"), ("A",), ""),
    ],
)
def test_a_model_that_is_not_shown_can_be_the_stated_one(
    stated: tuple[str, ...], found: tuple[str, ...], code: str | None
) -> None:
    ordered, shown = Parts(cards=stated), Parts(cards=found)
    assert [each.code for each in missing_parts(ordered, shown).values()] == [code] * bool(code)
    assert unknown_parts(ordered, shown) == (("cards",) if code is None else ())


def test_a_rate_that_is_not_known_hides_no_slow_port() -> None:
    stated = Parts(ports=(100.0,))
    assert unknown_parts(stated, Parts(ports=(10.0, 0.0))) == ("ports",)
    assert unknown_parts(stated, Parts(ports=(100.0, 0.0))) == ()
    assert missing_parts(stated, Parts(ports=(10.0,))).keys() == {"ports"}


def test_each_part_that_is_compared_has_its_texts() -> None:
    for name, row in ROWS.items():
        if row.compared:
            assert {f"part-{name}", f"{'other' if name in OTHER else 'lost'}-{name}"} <= set(
                MESSAGES
            )
            assert set(row.related) <= set(ROWS)


def test_an_accepted_node_has_the_parts_of_its_baseline() -> None:
    """Its persistent modules are not counted, and those of a virtual node are not known.

    Nor is its processor, of which a hypervisor shows a name of its own.
    """
    (module, *others) = node_facts().dimms
    optane = node_facts(
        dimms=(module.model_copy(update={"kind": "Logical non-volatile device"}), *others)
    )
    invented = node_facts(virtual="kvm", cpu_model="QEMU Virtual CPU version 2.5+")
    for node in (optane, node_facts(virtual="kvm"), invented):
        stated = accepted_parts(accepted(node), {"a0": node})["a0"]
        assert (missing_parts(stated, parts_of(node)), unknown_parts(stated, parts_of(node))) == (
            {},
            (),
        )


def test_the_limit_of_an_upgraded_node_follows_from_its_own_parts() -> None:
    """The accepted run states it, so the limit does not rest on what the node shows alone."""
    nodes = {"a0": node_facts()}
    before = accepted(node_facts(dimms=nodes["a0"].dimms[:-1]))
    stated = statements(nodes, Parts(), accepted_parts(before, nodes))
    nominal = nominal_parts(nodes, stated)["a0"]
    assert stated["a0"].by["accepted"].dimms == len(nodes["a0"].dimms) - 1
    assert (nominal.dimms, nominal.sources["dimms"]) == (None, "accepted")


@pytest.mark.parametrize(
    ("slow", "rates"),
    [
        (0, [100.0, 100.0, 100.0, 100.0]),
        (1, [100.0, 100.0, 100.0, 100.0]),  # most nodes have the faster port
        (3, [None, 40.0, 40.0, 40.0]),  # n0 was upgraded: its limit is that of its own port
    ],
)
def test_the_ports_that_carry_messages_have_the_rate_of_most_nodes(
    slow: int, rates: list[float | None]
) -> None:
    """What most nodes have on another port is no rate of these."""
    (port,) = node_facts().ports
    other = port.model_copy(update={"adapter": "mlx5_1", "rate": "200 Gb/sec (4X HDR)"})
    nodes = {}
    for place in range(4):
        rate = "40 Gb/sec (4X QDR)" if place >= 4 - slow else EDR["rails"]["rate"]
        own = port.model_copy(update={"rate": rate})
        nodes[f"n{place}"] = as_host(node_facts(ports=(own, other)), f"n{place}")
    stated = statements(nodes, Parts(), {})
    carrying = dict.fromkeys(nodes, ("mlx5_0:1",))
    found = [*nominal_parts(nodes, stated, carrying).values()]
    assert [each.ports for each in found] == [("mlx5_0:1",)] * 4
    assert [each.gbit_per_s for each in found] == rates
    assert {each.sources["gbit_per_s"] for each in found} == {"usual"}
    assert all(not each.ports for each in nominal_parts(nodes, stated).values())
    declared = statements(nodes, Parts(rails=(200.0,)), {})
    given = [*nominal_parts(nodes, declared, carrying).values()]
    assert {(each.gbit_per_s, each.sources["gbit_per_s"]) for each in given} == {
        (200.0, "declared")
    }


def test_the_parts_of_a_node_are_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a probe found stands beside what was stated, so that nothing finds it again."""
    found: list[NodeFacts] = []

    def once(each: NodeFacts) -> Parts:
        found.append(each)
        return parts_of(each)

    nodes = {"a0": node_facts(), "a1": node_facts(dimms=node_facts().dimms[:-1])}
    monkeypatch.setattr(stated_parts, "parts_of", once)
    stated = statements(nodes, declared_parts(stated_node(cores=1000)), {})
    assert part_faults(nodes, stated).keys() == nodes.keys()
    assert nominal_parts(nodes, stated).keys() == nodes.keys()
    [*empty_channels(nodes, stated), *unknown_orders(nodes, stated)]
    assert unread_parts(nodes, stated) == ()
    assert found == [*nodes.values()]


A, B, INVENTED = "Intel Xeon Gold 6148", "Intel Xeon Gold 6130", "QEMU Virtual CPU version 2.5+"


@pytest.mark.parametrize(
    ("models", "declared", "found"),
    [
        ([A, A, B, B], None, f"2 × {A}, 2 × {B}"),
        ([A, A, B, B], A, ""),
        ([A, A, A, A], None, ""),
        ([A, INVENTED, A, INVENTED], None, ""),  # a hypervisor shows a name of its own
        ([A, "Intel(R) Xeon(R) Gold 6148 CPU @ 2.40GHz", A, A], None, ""),
    ],
)
def test_nodes_with_several_processors_ask_which_was_ordered(
    models: list[str], declared: str | None, found: str
) -> None:
    nodes = {
        f"n{place}": node_facts(cpu_model=model, virtual="kvm" if model == INVENTED else None)
        for place, model in enumerate(models)
    }
    stated = statements(nodes, Parts(processor=declared), {})
    about = {"nodes": "n[0-3]", "found": found, "key": "partition.node.cpu_model"}
    expected = [Message("order-unknown", **about)] if found else []
    assert [*unknown_orders(nodes, stated)] == expected


@pytest.mark.parametrize(
    ("rule", "part", "stated"),
    [
        ("memory_bandwidth", "dimms", {"memory": {"channels": 8, "mt_per_s": 3200}}),
        ("link_bandwidth", "gbit_per_s", {"rails": {"rate": 12.5e9}}),
        ("link_latency", "gbit_per_s", {"rails": {"latency_s": 1e-6}}),
    ],
)
def test_a_limit_whose_value_is_stated_follows_from_no_shown_part(
    rule: Rule, part: str, stated: Mapping[str, Any]
) -> None:
    nominal = {"n1": Nominal(), "n2": Nominal(sources={part: "declared"})}
    rules = [(rule, ("n1", "n2"))]
    assert not shown_basis(rules, nominal, stated_node(**stated))
    shown = shown_basis(rules, nominal, stated_node())
    assert (shown.code, shown.fields["nodes"]) == ("parts-shown", "n1")
