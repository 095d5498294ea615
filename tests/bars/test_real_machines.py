"""Sound machines have no FAIL, and faulty ones no PASS."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import pytest
from tests.bars.real_machines import (
    ACCELERATORS,
    CHANNELS,
    HOSTS,
    MACHINES,
    NAMES,
    OTHER,
    PERSISTENT,
    PORTS,
    PROCESSORS,
    RATES,
    SIDE_CACHES,
    SLOTS,
    RealMachine,
)
from tests.fixtures.stated import stated_node
from tests.folders import PROBES

from proofmark.judge.references.derived import Derived, derive
from proofmark.judge.stated_parts import (
    nominal_parts,
    ordered_hardware,
    part_faults,
    statements,
    unknown_orders,
)
from proofmark.judge.verdict import Verdict
from proofmark.site.installed_parts import Parts, declared_parts, parts_of
from proofmark.site.node.facts import parse_probe

pytestmark = pytest.mark.core("the verdicts of real machines")


def codes(verdict: Verdict) -> set[str]:
    """Return the codes of what the verdict states about nodes and about what is missing."""
    found: set[str] = set()
    failed = (result.reason for result in verdict.of("FAIL"))
    opened = [*chain(*(limit.not_evaluated for limit in verdict.limits))]
    faults = [fault.reason for fault in verdict.faults]
    for message in (*faults, *verdict.required, *failed, *opened):
        found.update(message.codes)
    return found


def sound(folder: Path, machine: RealMachine) -> None:
    verdict = machine.verdict(folder)
    assert machine.code not in codes(verdict)
    assert (verdict.counts["FAIL"], verdict.counts["INVALID"], verdict.faults) == (0, 0, ())


@pytest.mark.parametrize(
    "machine", [each for each in MACHINES if each.sound], ids=lambda machine: machine.name
)
def test_a_sound_machine_has_no_fail(tmp_path: Path, machine: RealMachine) -> None:
    """The controls."""
    sound(tmp_path, machine)


@pytest.mark.fault("other-part")
@pytest.mark.parametrize(
    "machine", [each for each in PROCESSORS if not each.sound], ids=lambda machine: machine.name
)
def test_a_machine_with_another_part_never_passes(tmp_path: Path, machine: RealMachine) -> None:
    verdict = machine.verdict(tmp_path)
    assert machine.code in codes(verdict)
    assert verdict.exit_code() in (1, 4)


@pytest.mark.fault("path-of-messages")
@pytest.mark.parametrize(
    "machine",
    [each for each in (*PORTS, *RATES, *SLOTS) if not each.sound],
    ids=lambda machine: machine.name,
)
def test_the_path_of_a_message_bounds_its_rate(tmp_path: Path, machine: RealMachine) -> None:
    verdict = machine.verdict(tmp_path)
    assert machine.code in codes(verdict)
    assert verdict.exit_code() in (1, 4)


@pytest.mark.fault("memory-channels-empty")
@pytest.mark.parametrize(
    "machine", [each for each in CHANNELS if not each.sound], ids=lambda machine: machine.name
)
def test_empty_channels_never_pass(tmp_path: Path, machine: RealMachine) -> None:
    verdict = machine.verdict(tmp_path)
    assert machine.code in codes(verdict)
    assert verdict.exit_code() in (1, 4)
    assert verdict.headline().word in ("FAIL", "UNJUDGED")


@pytest.mark.fault("memory-persistent")
@pytest.mark.parametrize(
    "machine", [each for each in PERSISTENT if not each.sound], ids=lambda machine: machine.name
)
def test_persistent_memory_is_no_channel(tmp_path: Path, machine: RealMachine) -> None:
    verdict = machine.verdict(tmp_path)
    assert machine.code in codes(verdict)
    assert verdict.headline().word == "UNJUDGED"


@pytest.mark.fault("accelerator-missing")
@pytest.mark.parametrize(
    "machine", [each for each in ACCELERATORS if not each.sound], ids=lambda machine: machine.name
)
def test_a_node_with_less_of_its_accelerators_never_passes(
    tmp_path: Path, machine: RealMachine
) -> None:
    verdict = machine.verdict(tmp_path)
    assert machine.code in codes(verdict)
    assert verdict.exit_code() == 1


def test_one_machine_with_two_names_never_passes(tmp_path: Path) -> None:
    (machine,) = [each for each in NAMES if not each.sound]
    verdict = machine.verdict(tmp_path)
    assert machine.code in codes(verdict)
    assert verdict.exit_code() == 1


@pytest.mark.fault("side-cache")
@pytest.mark.parametrize(
    "machine", [each for each in SIDE_CACHES if not each.sound], ids=lambda machine: machine.name
)
def test_a_memory_side_cache_bounds_the_memory(tmp_path: Path, machine: RealMachine) -> None:
    verdict = machine.verdict(tmp_path)
    assert machine.code in codes(verdict)
    assert verdict.exit_code() == 1


def test_a_slow_node_with_another_processor_is_compared_with_those_of_the_order(
    tmp_path: Path,
) -> None:
    (machine,) = [each for each in PROCESSORS if "15 %" in each.name]
    verdict = machine.verdict(tmp_path)
    (figure,) = verdict.fleet.figures
    assert (figure.fleet_limit.nodes, figure.flagged) == (8, ("n03",))


def test_a_limit_follows_from_the_ordered_processor() -> None:
    """Rpeak of 40 cores with 2.4 GHz, also if the nodes have 2.0 GHz."""
    probe = (PROBES / "skl-2x6148.txt").read_text(encoding="utf-8")
    for old, new in OTHER.items():
        assert old in probe
        probe = probe.replace(old, new)
    nodes = {"n1": parse_probe(probe, "probe")}
    peaks = {}
    for name in ("Intel Xeon Gold 6148", "Intel Xeon Gold 6138"):
        stated = statements(nodes, declared_parts(stated_node(cpu_model=name)), {})
        nominal = nominal_parts(nodes, stated)
        limit = derive("rpeak_nominal", [*nodes.values()], {}, stated=[nominal["n1"]])
        assert isinstance(limit, Derived)
        peaks[name] = limit.value
    assert peaks["Intel Xeon Gold 6148"] == pytest.approx(40 * 32 * 2.4)
    assert peaks["Intel Xeon Gold 6138"] == pytest.approx(40 * 32 * 2.0)


def test_two_kinds_of_nodes_that_were_accepted_are_no_fault() -> None:
    """A signature states what was ordered for each node."""
    probe = (PROBES / "skl-2x6148.txt").read_text(encoding="utf-8")
    other = probe
    for old, new in OTHER.items():
        other = other.replace(old, new)
    nodes = {host: parse_probe(other if host == "n07" else probe, "probe") for host in HOSTS}
    assert part_faults(nodes, statements(nodes, Parts(), {})).keys() == {"n07"}
    accepted = {host: parts_of(facts) for host, facts in nodes.items()}
    stated = statements(nodes, Parts(), accepted)
    assert part_faults(nodes, stated) == {}
    assert len(set(ordered_hardware(nodes, stated).values())) == 2
    assert [*unknown_orders(nodes, stated)] == []
