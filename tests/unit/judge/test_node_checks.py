"""The functional items of a contract: what nodes report about themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from pydantic import ValidationError
from tests.folders import PROBES
from tests.unit.judge.test_acceptance import GOOD, NODES, Machine, accepted, every, only
from tests.unit.judge.test_acceptance import machine as machine

from proofmark.judge.acceptance import CODES
from proofmark.judge.node_checks import (
    CHECKS,
    NO_VERSION,
    NOT_LOADED,
    CheckOutcome,
    check_outcomes,
)
from proofmark.runs.job_folder import Look
from proofmark.site.contract_document import CheckItem, CheckName, Contract
from proofmark.site.node.facts import NodeFacts, parse_probe
from proofmark.site.node.parts import Accelerator, MountedFileSystem, Nic, Port

SKL, KNL = (
    (PROBES / f"{name}.txt").read_text(encoding="utf-8")
    for name in ("skl-2x6148", "knl-7250-quadrant-flat")
)
WIDTH = "| \tTotal Width: 72 bits\n"
MODULES = parse_probe(KNL.replace(WIDTH, f"{WIDTH}| \tData Width: 64 bits\n"), "probe").dimms
FACTS = parse_probe(SKL, "probe").model_copy(update={"dimms": MODULES, "absent": {}})
HOSTS = tuple(f"n{number}" for number in range(1, 9))


def changed(**changes: Any) -> NodeFacts:
    return FACTS.model_copy(update=changes)


def firmware(**changes: str) -> NodeFacts:
    return changed(firmware={**FACTS.firmware, **changes})


def driver(version: str) -> NodeFacts:
    """Return a node whose driver of the fabric has this version, or none."""
    known = {"mlx5_core": version} if version else {}
    return changed(modules=("lustre", "mlx5_core"), drivers={"lustre": "2.15.5", **known})


def mounted(
    size: float | None = 1000, source: str = "nas:/a", options: str = "rw", **changes: Any
) -> NodeFacts:
    """Return a node with a file system of the network, whose size is in GiB, and a disk."""
    mounts = (
        MountedFileSystem(
            source=source,
            target="/scratch",
            kind="lustre",
            options=options,
            bytes=None if size is None else int(size * 2**30),
        ),
        MountedFileSystem(source="/dev/sda1", target="/", kind="xfs", options="rw", bytes=2**40),
    )
    return changed(mounts=mounts, **changes)


LOCAL = ("tmpfs", "overlay", "squashfs")


def gpus(count: int) -> NodeFacts:
    one = Accelerator(
        slot="", kind="", driver="nvidia", answers=True, lanes=16, gt_per_s=16, ecc=True
    )
    return changed(accelerators=(one,) * count)


def check(name: str, **changes: Any) -> CheckItem:
    rule = {} if changes.keys() & {"value", "at_least", "at_most"} else {"equal": True}
    fields = {"number": "F1", "text": "a state", "check": name}
    return CheckItem.model_validate({**fields, **rule, **changes})


def outcome(
    item: CheckItem,
    others: Mapping[str, NodeFacts] | None = None,
    nodes: Sequence[str] = HOSTS,
    looks: Sequence[Look] = (),
) -> CheckOutcome:
    """Return the outcome on eight nodes; `others` differ from the usual ones."""
    facts = {**dict.fromkeys(HOSTS, FACTS), **(others or {})}
    known = {node: of_node for node, of_node in facts.items() if of_node is not None}
    (found,) = check_outcomes([item], nodes, known, looks)
    return found


NICS = (
    Nic(
        name="eth0",
        driver="ice",
        state="up",
        firmware="1.0",
        mtu=1500,
        megabits=100000,
        link="16.0 GT/s PCIe x16",
        link_best="16.0 GT/s PCIe x16",
        numa=0,
    ),
)


UNVERSIONED = changed(nics=NICS, drivers={})
"""A node whose drivers state no version."""


def of_parts(parts: Sequence[Port | Nic], **changes: Any) -> tuple[Port | Nic, ...]:
    """Return parts of a node with `changes`."""
    return tuple(each.model_copy(update=changes) for each in parts)


class TestEqual:
    @pytest.mark.parametrize("name", sorted(CHECKS))
    def test_control_equal_nodes_are_not_blamed(self, name: CheckName) -> None:
        """What this node does not report is UNJUDGED, and never PASS."""
        found = outcome(check(name))
        reported = any(value is not None for value in CHECKS[name](FACTS).values())
        assert found.outcome == ("PASS" if reported else "UNJUDGED")
        assert found.faults == {}

    @pytest.mark.fault("node-with-another-state")
    @pytest.mark.parametrize(
        ("name", "other"),
        [
            ("bios", firmware(bios_version="9.9")),
            ("firmware", firmware(bios_version="9.9")),
            ("firmware", firmware(bios_date="01/01/2001")),
            ("firmware", firmware(board_name="another")),
            ("firmware", changed(microcode="0x1")),
            ("firmware", changed(ports=of_parts(FACTS.ports, firmware="9.9"))),
            ("firmware", changed(nics=of_parts(NICS, firmware="9.9"))),
            ("links", changed(ports=of_parts(FACTS.ports, rate="10 Gb/sec (4X)"))),
            ("links", changed(nics=of_parts(NICS, link="2.5 GT/s"))),
            ("ports", changed(ports=())),
            ("microcode", changed(microcode="0x1")),
            ("kernel", changed(kernel="3.10.0")),
            ("os", changed(os="another")),
            ("processor", changed(cpu_model="Intel(R) Xeon(R) Gold 6138 CPU @ 2.00GHz")),
            ("settings", changed(governor="powersave")),
            ("settings", changed(turbo=False)),
            ("cores", changed(cores_online=39)),
            ("sockets", changed(sockets=1)),
            ("memory", changed(memory_total_bytes=FACTS.memory_total_bytes // 2)),
            ("drivers", changed(modules=("lustre",))),
            ("drivers", driver("24.10")),
            ("drivers", driver("")),
            ("mounts", mounted(size=900)),
            ("mounts", mounted(source="nas:/b")),
            ("mounts", mounted(options="ro")),
            ("mounts", mounted(options="rw,localflock")),
            ("mounts", changed(mounts=FACTS.mounts)),
            ("accelerators", gpus(3)),
        ],
    )
    def test_the_node_that_differs_is_named(self, name: str, other: NodeFacts) -> None:
        usual = {"drivers": driver("24.07"), "mounts": mounted(), "accelerators": gpus(4)}
        if other.nics and other.nics != FACTS.nics:
            usual |= {name: changed(nics=NICS)}
        others = dict.fromkeys(HOSTS, usual.get(name, FACTS))
        found = outcome(check(name), {**others, "n3": other})
        assert (found.outcome, found.nodes) == ("FAIL", (7, 8))
        (reason,) = found.faults.values()
        assert [*found.faults] == ["n3"]
        assert "check-unlike" in reason.codes

    def test_sizes_that_differ_little_are_equal(self) -> None:
        """ZFS: the whole size changes with what is free, and no two nodes see the same."""
        sizes = {host: mounted(1000 + number) for number, host in enumerate(HOSTS)}
        assert outcome(check("mounts"), sizes).outcome == "PASS"
        unknown = outcome(check("mounts"), {**sizes, "n2": mounted(None)})
        assert (unknown.outcome, unknown.faults) == ("UNJUDGED", {})
        halves = {host: mounted(500 * (1 + number % 2)) for number, host in enumerate(HOSTS)}
        assert len(outcome(check("mounts"), halves).faults) == 8

    def test_what_differs_between_sound_nodes_is_not_compared(self) -> None:
        """Folders of the nodes on a server, mounts on demand, sessions, containers."""
        home = mounted(source="nas:/home").mounts[0].model_copy(update={"target": "/home/user"})
        local = [home.model_copy(update={"source": each, "kind": each}) for each in LOCAL]
        nodes = {}
        for number, host in enumerate(HOSTS):
            node = mounted(source=f"nas:/{host}", hostname=host, automounts=("/home",))
            more = (home, *local) if number % 3 == 0 else ()
            nodes[host] = node.model_copy(update={"mounts": (*node.mounts, *more)})
        assert outcome(check("mounts"), nodes).outcome == "PASS"

    def test_without_a_majority_all_nodes_miss_it(self) -> None:
        others = {host: changed(kernel="3.10.0") for host in HOSTS[:4]}
        found = outcome(check("kernel"), others)
        assert (found.outcome, len(found.faults)) == ("FAIL", 8)
        assert all("check-no-most" in reason.codes for reason in found.faults.values())

    def test_a_node_that_reports_nothing_is_not_judged(self) -> None:
        silent = outcome(check("kernel"), nodes=(*HOSTS, "n9"))
        assert (silent.outcome, silent.faults) == ("UNJUDGED", {})
        (message,) = silent.not_evaluated
        assert message.fields["nodes"] == "n9"
        unknown = outcome(check("microcode"), {"n3": changed(microcode=None)})
        assert unknown.outcome == "UNJUDGED"
        (message,) = unknown.messages
        assert message.fields["limit"] == "F1 a state"

    def test_the_share_of_nodes_and_minor_items_blame_none(self) -> None:
        other = {"n3": changed(kernel="3.10.0")}
        enough = outcome(check("kernel", nodes=0.8), other)
        assert (enough.outcome, enough.faults) == ("PASS", {})
        assert [*enough.as_json()["missed"]] == ["n3"]
        minor = outcome(check("kernel", severity="minor"), other)
        assert (minor.outcome, minor.faults) == ("FAIL", {})


class TestValues:
    @pytest.mark.parametrize(
        ("name", "rule", "word"),
        [
            ("nodes", {"at_least": 8}, "PASS"),
            ("nodes", {"at_least": 9}, "FAIL"),
            ("nodes", {"value": 8}, "PASS"),
            ("sockets", {"value": 2}, "PASS"),
            ("sockets", {"value": 4}, "FAIL"),
            ("cores", {"at_least": 40}, "PASS"),
            ("cores", {"at_least": 41}, "FAIL"),
            ("memory", {"at_least": 1}, "PASS"),
            ("memory", {"at_most": 1}, "FAIL"),
            ("processor", {"value": FACTS.cpu_model}, "PASS"),
            ("processor", {"value": "another processor"}, "FAIL"),
            ("kernel", {"value": FACTS.kernel}, "PASS"),
            ("ecc", {"value": "on"}, "PASS"),
            ("ecc", {"value": "off"}, "FAIL"),
        ],
    )
    def test_the_value_of_the_contract(self, name: str, rule: dict[str, Any], word: str) -> None:
        """All nodes agree, so that only the contract can find the wrong machine."""
        assert outcome(check(name, **rule)).outcome == word

    def test_a_node_without_a_report_is_not_counted(self) -> None:
        found = outcome(check("nodes", at_least=9), nodes=(*HOSTS, "n9"))
        assert (found.outcome, found.figures[0].value) == ("FAIL", 8)
        assert found.figures[0].reason == "nodes is 8; at least 9 is needed"

    @pytest.mark.parametrize(
        ("name", "rule", "node", "word"),
        [
            ("mounts", {"only": "/scratch", "at_least": 900}, mounted(), "PASS"),
            ("mounts", {"only": "/scratch", "at_least": 1100}, mounted(), "FAIL"),
            ("mounts", {"only": "/scratch", "value": 1010}, mounted(), "PASS"),
            ("mounts", {"only": "/scratch", "value": 1100}, mounted(), "FAIL"),
            ("mounts", {"only": "/", "at_least": 1000}, mounted(), "PASS"),
            ("mounts", {"only": "/home", "at_least": 1}, mounted(), "FAIL"),
            ("mounts", {"only": "/scratch", "at_least": 1}, mounted(None), "UNJUDGED"),
            ("mounts", {"only": "/scratch", "at_least": 1}, changed(mounts=()), "UNJUDGED"),
            ("drivers", {"only": "mlx5_core", "value": "24.07"}, driver("24.07"), "PASS"),
            ("drivers", {"only": "mlx5_core", "value": "24.10"}, driver("24.07"), "FAIL"),
            ("drivers", {"only": "mlx5_core", "value": "24.07"}, driver(""), "FAIL"),
            ("drivers", {"only": "hfi1", "value": "1"}, driver("24.07"), "FAIL"),
            ("drivers", {"only": "mlx5_core", "value": "1"}, changed(drivers=None), "UNJUDGED"),
            ("drivers", {"only": "ice", "value": NO_VERSION}, UNVERSIONED, "PASS"),
            ("drivers", {"only": "mlx5_core", "value": NO_VERSION}, driver(""), "PASS"),
            ("drivers", {"only": "hfi1", "value": NOT_LOADED}, UNVERSIONED, "PASS"),
            ("accelerators", {"value": 4}, gpus(4), "PASS"),
            ("accelerators", {"value": 4}, gpus(3), "FAIL"),
            ("accelerators", {"value": 4}, changed(accelerators=None), "UNJUDGED"),
            ("firmware", {"only": "BIOS", "value": "1.2"}, firmware(bios_version="1.2"), "PASS"),
            ("firmware", {"only": "BIOS", "value": "1.2"}, firmware(bios_version="9"), "FAIL"),
        ],
    )
    def test_one_value_of_a_check(
        self, name: str, rule: dict[str, Any], node: NodeFacts, word: str
    ) -> None:
        found = outcome(check(name, **rule), dict.fromkeys(HOSTS, node))
        assert found.outcome == word, [str(why) for why in found.missed.values()]

    def test_modules_without_check_bits(self) -> None:
        """One module of twelve without ECC, and a node whose modules do not state it."""
        plain, *others = MODULES
        bits = {0: "FAIL", None: "UNJUDGED", 8: "PASS"}
        for count, word in bits.items():
            modules = (plain.model_copy(update={"check_bits": count}), *others)
            found = outcome(check("ecc", value="on"), {"n2": changed(dimms=modules)})
            assert found.outcome == word
            assert [*found.faults] == (["n2"] if word == "FAIL" else [])

    def test_a_clock_that_is_off(self) -> None:
        item = check("clock", at_most=0.5)
        right = dict.fromkeys(HOSTS, changed(clock_offset_s=0.01))
        assert outcome(item, right).outcome == "PASS"
        found = outcome(item, {**right, "n2": changed(clock_offset_s=-3.0)})
        assert (found.outcome, [*found.faults]) == ("FAIL", ["n2"])

    @pytest.mark.parametrize(
        "fields",
        [
            {"equal": True, "value": "x"},
            {"value": None},
            {"at_least": 1, "check": "kernel"},
            {"value": "many", "check": "cores"},
            {"value": 4.18, "check": "kernel"},
            {"equal": True, "check": "nodes"},
            {"equal": True, "check": "colour"},
            {"at_least": 1, "check": "mounts"},
            {"value": "big", "check": "mounts", "only": "/scratch"},
            {"at_least": 1, "check": "drivers", "only": "mlx5_core"},
            {"equal": True, "check": "kernel", "only": "kernel"},
        ],
    )
    def test_a_rule_that_could_not_judge_is_refused(self, fields: dict[str, Any]) -> None:
        given = {"number": "F1", "text": "a state", "check": "kernel", **fields}
        with pytest.raises(ValidationError):
            Contract.model_validate({"title": "C", "parties": {"buyer": "B"}, "items": [given]})


class TestStates:
    """What the scheduler said of the nodes while the run ran."""

    def looks(self, **down: str) -> list[Look]:
        """Return three looks at the nodes: in the second, those of `down` are."""
        return [Look(1.0, {}), Look(2.0, down), Look(3.0, {})]

    def test_control_nodes_in_service(self) -> None:
        for rule in ({"value": "in service"}, {"equal": True}):
            assert outcome(check("states", **rule), looks=self.looks()).outcome == "PASS"

    @pytest.mark.fault("node-drained-during-run")
    @pytest.mark.parametrize("rule", [{"value": "in service"}, {"equal": True}])
    def test_a_node_that_was_down_once_is_named(self, rule: dict[str, Any]) -> None:
        found = outcome(check("states", **rule), looks=self.looks(n3="down drained a fan"))
        assert (found.outcome, [*found.faults]) == ("FAIL", ["n3"])
        assert "down drained a fan" in str(found.faults["n3"])

    def test_a_node_that_the_scheduler_does_not_name_is_not_judged(self) -> None:
        assert outcome(check("states")).outcome == "UNJUDGED"
        looks = [Look(1.0, {}, ("n2",)), Look(2.0, {}, ("n1", "n2"))]
        found = outcome(check("states"), looks=looks)
        (message,) = found.not_evaluated
        assert (found.outcome, message.fields["nodes"]) == ("UNJUDGED", "n2")


class TestAcceptance:
    """The same items in a verdict and in an acceptance."""

    def machines(self, **others: NodeFacts) -> dict[str, NodeFacts]:
        """Return the facts of four machines: each has its own serial numbers."""
        found = {}
        for node in NODES:
            facts = others.get(node, FACTS)
            serials = {
                key: f"{value} {node}" for key, value in facts.firmware.items() if "serial" in key
            }
            own = {"boot_id": node, "firmware": {**facts.firmware, **serials}, "dimms": ()}
            found[node] = facts.model_copy(update=own)
        return found

    def test_a_differing_node_fails_and_its_run_is_named(self, machine: Machine) -> None:
        item = check("kernel")
        good = machine.run(1, every(GOOD), facts=self.machines(), checks=[item])
        found = accepted([good], item)
        assert (found.word, only(found).nodes) == ("PASS", (4, 4))
        other = self.machines(n3=changed(kernel="3.10.0"))
        bad = machine.run(2, every(GOOD), facts=other, checks=[item])
        assert [node.host for node in bad.verdict.bad.nodes] == ["n3"]
        assert bad.verdict.exit_code() == 1
        found = accepted([good, bad], item)
        each = only(found)
        assert (found.word, CODES[found.word], each.nodes) == ("FAIL", 1, (3, 4))
        assert [(part.run, part.nodes) for part in each.evidence] == [("run2", "n[1-4]")]
        assert each.as_json()["check"] == "kernel"

    def test_too_few_nodes_fail_without_a_node_to_blame(self, machine: Machine) -> None:
        item = check("nodes", at_least=5)
        run = machine.run(1, every(GOOD), facts=self.machines(), checks=[item])
        assert (run.verdict.exit_code(), run.verdict.bad.nodes) == (1, ())
        assert accepted([run], item).word == "FAIL"

    @pytest.mark.parametrize(
        ("least", "outcomes"), [(8, "PASS"), (9, "UNJUDGED"), (10, "UNJUDGED"), (11, "FAIL")]
    )
    def test_a_part_of_the_nodes_does_not_tell_their_number(
        self, least: int, outcomes: str
    ) -> None:
        """The run of eight nodes left out two of the partition."""
        (found,) = check_outcomes(
            [check("nodes", at_least=least)], HOSTS, dict.fromkeys(HOSTS, FACTS), left_out=2
        )
        assert found.outcome == outcomes

    def test_without_reports_nothing_passes(self, machine: Machine) -> None:
        item = check("kernel")
        run = machine.run(1, every(GOOD), checks=[item])
        assert run.verdict.exit_code() == 4
        assert accepted([run], item).word == "UNJUDGED"


@pytest.mark.parametrize("without", [{"mounts": ()}, {"drivers": {}, "modules": ()}])
def test_an_item_of_which_no_node_shows_a_part_is_not_met(without: Mapping[str, Any]) -> None:
    (name, *_) = without
    found = outcome(check(name), dict.fromkeys(HOSTS, changed(**without)))
    assert {each.outcome for each in found.figures} == {"UNJUDGED"}
    (why,) = {each.reason for each in found.figures}
    assert (why.code, why.fields) == ("check-unknown", {"name": name})
