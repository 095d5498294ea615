"""Typical values of healthy hardware: their parts of a peak, tolerances and conditions."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fixtures.probes import node_facts
from tests.fixtures.report_run import software
from tests.fixtures.stated import stated_node
from tests.folders import ROOT
from tests.unit.judge.test_references import figures
from tests.unit.judge.test_verdict import record

from proofmark.cases.loading import load_benchmarks
from proofmark.cases.reference import UNIT_OF, HardwareRule, Reference, Rule, TypicalRule
from proofmark.common.message import Message
from proofmark.judge.references.derived import (
    PEAK,
    UNKNOWN_BUILD,
    Build,
    Setting,
    TypicalValue,
    builds,
    derive,
    typical_value,
    value_of_rule,
)
from proofmark.judge.references.figure_comparison import OF_ONE_NODE, Comparison, Figure
from proofmark.judge.references.judgement import Judgement
from proofmark.site.hardware import StatedNode
from proofmark.site.hardware_limits import (
    Typical,
    TypicalConditions,
    families,
    link,
    processors,
)
from proofmark.site.node.facts import NodeFacts
from proofmark.site.node.parts import Nic
from proofmark.site.partition import JudgeExpected
from proofmark.software.software import Package, Software

RATIO, TOLERANCE = 0.8, 0.04
TUNED = Build("mkl", streaming_stores=True)
ALL_CORES: dict[str, Any] = {"threads": 40}
UNITS: dict[Rule, str] = {
    "typical_hpl": "GFlop/s",
    "typical_triad": "GB/s",
    "typical_bandwidth": "GB/s",
}


@pytest.fixture(scope="module")
def node() -> NodeFacts:
    """Return a node with 40 cores, 12 memory modules and a port of EDR."""
    return node_facts("skl-2x6148", virtual=None)


@pytest.fixture
def tabled(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Give the processor of `node` typical values with the conditions of the parameter."""
    typical = Typical(
        ratio=RATIO,
        tolerance=TOLERANCE,
        conditions=TypicalConditions(system="a healthy machine", **getattr(request, "param", {})),
        source="a guide",
        date="2024",
    )
    monkeypatch.setattr("proofmark.judge.references.derived.typical_shares", lambda *_: (typical,))


class Watched(NodeFacts):
    """Facts that know which of them were read."""

    def __getattribute__(self, name: str) -> Any:
        """Note `name`."""
        READ.add(name)
        return super().__getattribute__(name)


READ: set[str] = set()


@pytest.mark.parametrize("name", ["skl-2x6148", "power9-ppc64le", "live-kvm-zen3", "spr-vm"])
def test_nodes_of_one_kind_differ_in_no_fact_that_a_rule_reads(name: str) -> None:
    """Such nodes share the value of a rule. A message has the name of its node."""
    watched = Watched.model_construct(**vars(node_facts(name, virtual=None)))
    READ.clear()
    for rule in get_args(HardwareRule) + get_args(TypicalRule):
        for parameters in (ALL_CORES, {"threads": 1, "ranks": 1}, {"nodes": 2, "ranks": 2}):
            value_of_rule(rule, Setting([watched], build=TUNED), parameters)
    assert "cpu_model" in READ
    assert not READ & (OF_ONE_NODE - {"hostname"})


def conditions(**stated: Any) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("tabled", [stated], indirect=True)


def unheld(rule: Rule, node: NodeFacts, build: Build = TUNED, **parameters: Any) -> tuple[str, ...]:
    """Return the codes of the conditions that do not hold."""
    found = typical_value(rule, Setting([node], build=build), {**ALL_CORES, **parameters})
    assert isinstance(found, TypicalValue)
    return tuple(each.code for each in found.unheld)


OF_PROCESSOR: tuple[Rule, ...] = ("typical_hpl", "typical_triad")


@pytest.mark.usefixtures("tabled")
class TestValue:
    @pytest.mark.parametrize("rule", OF_PROCESSOR)
    def test_it_is_a_part_of_the_peak_with_the_relative_tolerance_of_the_source(
        self, node: NodeFacts, rule: Rule
    ) -> None:
        peak = derive(PEAK[rule], [node], {})
        found = typical_value(rule, Setting([node], build=TUNED), ALL_CORES)
        assert isinstance(found, TypicalValue) and not isinstance(peak, Message)
        assert found.value == pytest.approx(RATIO * peak.value)
        assert UNIT_OF[rule] == UNITS[rule]
        assert found.tolerance == pytest.approx(TOLERANCE / RATIO)
        assert found.source == f"0.8 × {PEAK[rule]}: a healthy machine; a guide"
        assert found.unheld == ()

    @pytest.mark.parametrize("rule", OF_PROCESSOR)
    def test_the_values_of_several_nodes_add_up(self, node: NodeFacts, rule: Rule) -> None:
        one = typical_value(rule, Setting([node]), {})
        three = typical_value(rule, Setting([node] * 3), {})
        assert isinstance(one, TypicalValue) and isinstance(three, TypicalValue)
        assert three.value == pytest.approx(3 * one.value)

    def test_a_missing_fact_of_the_peak_is_the_reason(self, node: NodeFacts) -> None:
        blind = node.model_copy(update={"dimms": ()})
        found = typical_value("typical_triad", Setting([blind]), ALL_CORES)
        assert isinstance(found, Message) and "fact-unknown" in found.codes

    def test_the_rated_hardware_replaces_that_of_the_probe(self, node: NodeFacts) -> None:
        stated = StatedNode(clock_hz=1e9, flop_per_cycle=16)
        found = typical_value("typical_hpl", Setting([node], stated, TUNED), ALL_CORES)
        assert isinstance(found, TypicalValue)
        assert found.value == pytest.approx(RATIO * 40 * 16)

    @pytest.mark.parametrize("memory", ["mcdram", "hbm"])
    def test_it_is_for_the_modules_and_not_for_the_memory_in_the_package(
        self, node: NodeFacts, memory: str
    ) -> None:
        knl = node_facts("knl-7250-quadrant-flat", virtual=None)
        found = typical_value("typical_triad", Setting([knl]), {"memory": "mcdram"})
        assert isinstance(found, Message) and found.code == "typical-processor"
        found = typical_value("typical_hpl", Setting([node]), {"memory": memory})
        assert isinstance(found, Message) and found.code == "typical-processor"


@pytest.mark.parametrize("rule", OF_PROCESSOR)
def test_a_processor_without_a_typical_value_gives_a_reason(
    node: NodeFacts, rule: Rule, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proofmark.judge.references.derived.typical_shares", lambda *_: ())
    found = typical_value(rule, Setting([node]), ALL_CORES)
    assert isinstance(found, Message)
    assert found == f"what {node.cpu_model} typically reaches is in no table"


class TestConditions:
    @pytest.mark.parametrize("rule", OF_PROCESSOR)
    @pytest.mark.parametrize(
        ("tabled", "virtual", "expected"),
        [
            ({"bare_metal": True}, None, ()),
            ({"bare_metal": True}, "kvm", ("condition-virtual",)),
            ({}, "kvm", ("condition-virtual",)),
            ({"bare_metal": False}, "kvm", ()),
            ({"bare_metal": False}, None, ()),
        ],
        indirect=["tabled"],
    )
    def test_a_virtual_node_needs_a_source_about_virtual_nodes(
        self,
        tabled: None,
        node: NodeFacts,
        rule: Rule,
        virtual: str | None,
        expected: tuple[str, ...],
    ) -> None:
        guest = node.model_copy(update={"virtual": virtual})
        memory = {"channels": 12, "mt_per_s": 2666}
        stated = stated_node(clock_hz=2.4e9, flop_per_cycle=32, memory=memory)
        found = typical_value(rule, Setting([guest], stated, TUNED), ALL_CORES)
        assert isinstance(found, TypicalValue)
        assert tuple(each.code for each in found.unheld) == expected

    @conditions()
    @pytest.mark.parametrize("rule", OF_PROCESSOR)
    @pytest.mark.parametrize(
        ("parameters", "held"),
        [
            ({"threads": 40}, True),
            ({"threads": 40, "ranks": 1, "nodes": 1}, True),
            ({"ranks": 40, "threads": 1}, True),
            ({"ranks": 8, "threads": 5}, True),
            ({"ranks": 16, "threads": 5, "nodes": 2}, True),
            ({"threads": 20}, False),
            ({"ranks": 80, "threads": 1}, False),
            ({"ranks": 40, "threads": 1, "nodes": 2}, False),
            ({"threads": "all"}, False),
        ],
    )
    def test_each_core_needs_a_thread(
        self, tabled: None, node: NodeFacts, rule: Rule, parameters: dict[str, Any], held: bool
    ) -> None:
        found = typical_value(rule, Setting([node], build=TUNED), parameters)
        assert isinstance(found, TypicalValue)
        assert tuple(each.code for each in found.unheld) == (() if held else ("condition-threads",))

    @conditions(threads=20)
    @pytest.mark.parametrize(
        ("parameters", "found"),
        [
            ({"threads": 20}, None),
            ({"ranks": 4, "threads": 5}, None),
            ({"threads": 40}, "40"),
            ({"threads": 10}, "10"),
            ({"threads": "all"}, "?"),
        ],
    )
    @pytest.mark.parametrize("rule", OF_PROCESSOR)
    def test_a_source_with_idle_cores_needs_as_many_threads_and_names_its_own(
        self,
        tabled: None,
        node: NodeFacts,
        rule: Rule,
        parameters: dict[str, Any],
        found: str | None,
    ) -> None:
        value = typical_value(rule, Setting([node], build=TUNED), parameters)
        assert isinstance(value, TypicalValue)
        text = f"the source has 20 threads on 40 cores, and this run has {found}"
        assert [f"{each}" for each in value.unheld] == ([] if found is None else [text])

    @pytest.mark.parametrize(
        ("tabled", "blas", "held"),
        [
            ({}, "mkl", True),
            ({}, "openblas", True),
            ({}, "reference", False),
            ({}, None, False),
            ({"blas": ("mkl", "aocl")}, "mkl", True),
            ({"blas": ("mkl", "aocl")}, "openblas", False),
            ({"blas": ("mkl", "aocl")}, None, False),
        ],
        indirect=["tabled"],
    )
    def test_hpl_needs_a_blas_of_the_source(
        self, tabled: None, node: NodeFacts, blas: str | None, held: bool
    ) -> None:
        build = Build(blas, streaming_stores=True)
        assert unheld("typical_hpl", node, build) == (() if held else ("condition-blas",))
        assert unheld("typical_triad", node, build) == ()

    @pytest.mark.parametrize(
        ("tabled", "machine", "streaming", "held"),
        [
            ({"streaming_stores": True}, "x86_64", True, True),
            ({"streaming_stores": True}, "x86_64", False, False),
            ({"streaming_stores": True}, "x86_64", None, False),
            ({}, "x86_64", None, False),
            ({}, "x86_64", True, True),
            ({"streaming_stores": False}, "x86_64", False, True),
            ({"streaming_stores": True}, "aarch64", None, True),
        ],
        indirect=["tabled"],
    )
    def test_triad_needs_streaming_stores_on_x86(
        self, tabled: None, node: NodeFacts, machine: str, streaming: bool | None, held: bool
    ) -> None:
        other = node.model_copy(update={"machine": machine})
        build = Build("mkl", streaming)
        assert unheld("typical_triad", other, build) == (() if held else ("condition-stores",))
        assert unheld("typical_hpl", other, build) == ()

    @conditions(streaming_stores=False)
    @pytest.mark.parametrize("streaming", [True, None])
    def test_a_value_through_the_caches_is_too_low_for_streaming_stores(
        self, tabled: None, node: NodeFacts, streaming: bool | None
    ) -> None:
        build = Build("mkl", streaming)
        assert unheld("typical_triad", node, build) == ("condition-stores-cached",)

    @pytest.mark.parametrize(
        ("tabled", "nodes", "held"),
        [
            ({}, 1, True),
            ({}, 9, True),
            ({"nodes": 4}, 1, True),
            ({"nodes": 4}, 4, True),
            ({"nodes": 4}, 5, False),
            ({"nodes": 1}, 2, False),
        ],
        indirect=["tabled"],
    )
    def test_hpl_of_more_nodes_than_those_of_the_source_does_not_judge(
        self, tabled: None, node: NodeFacts, nodes: int, held: bool
    ) -> None:
        parameters = {"threads": 40 * nodes, "nodes": nodes}
        found = typical_value("typical_hpl", Setting([node] * nodes, build=TUNED), parameters)
        assert isinstance(found, TypicalValue)
        assert tuple(each.code for each in found.unheld) == (() if held else ("condition-nodes",))

    @pytest.mark.parametrize(
        ("tabled", "layer", "nodes", "held"),
        [
            ({}, "Ethernet", 1, True),
            ({}, "Ethernet", 2, False),
            ({}, "InfiniBand", 2, True),
            ({"tcp": True}, "Ethernet", 2, True),
            ({"tcp": False}, "Ethernet", 2, False),
        ],
        indirect=["tabled"],
    )
    def test_messages_that_may_pass_tcp_do_not_judge(
        self, tabled: None, node: NodeFacts, layer: str, nodes: int, held: bool
    ) -> None:
        (port,) = node.ports
        other = node.model_copy(update={"ports": (port.model_copy(update={"layer": layer}),)})
        parameters = {"threads": 40 * nodes, "nodes": nodes}
        found = typical_value("typical_hpl", Setting([other] * nodes, build=TUNED), parameters)
        assert isinstance(found, TypicalValue)
        assert tuple(each.code for each in found.unheld) == (() if held else ("condition-tcp",))

    @conditions(bare_metal=True, blas=("nvpl",))
    def test_all_that_do_not_hold_are_named_once(self, tabled: None, node: NodeFacts) -> None:
        found = typical_value("typical_hpl", Setting([node] * 2), {"threads": 3, "nodes": 2})
        assert isinstance(found, TypicalValue)
        assert [f"{each}" for each in found.unheld] == [
            "the BLAS of the source is nvpl, and that of the program is ?",
            "the source has 40 threads on 40 cores, and this run has 1.5",
        ]


def judged(
    rule: Rule,
    node: NodeFacts,
    share: float,
    *,
    build: Build = TUNED,
    tolerance: float | None = None,
    **about: Any,
) -> Judgement:
    """Return the judgement of a figure that reaches `share` of the typical value of `node`."""
    typical = typical_value(rule, Setting([node], build=build), ALL_CORES)
    assert isinstance(typical, TypicalValue)
    wanted = Reference(metric="rate", kind="expected", source="s", rule=rule)
    of = record(unit=UNITS[rule], parameters=ALL_CORES, **about)
    comparison = Comparison(figures([]), {"n1": node}, builds={"fake": build}, tolerance=tolerance)
    return comparison.judge(Figure(of, share * typical.value), wanted)


@pytest.mark.usefixtures("tabled")
class TestJudgement:
    @pytest.mark.parametrize("rule", OF_PROCESSOR)
    @pytest.mark.parametrize(
        ("share", "tolerance", "outcome"),
        [
            (0.951, None, "PASS"),
            (0.949, None, "FAIL"),
            (2.0, None, "PASS"),
            (0.951, 0.02, "FAIL"),
            (0.981, 0.02, "PASS"),
            (0.81, 0.2, "PASS"),
            (0.79, 0.2, "FAIL"),
        ],
    )
    def test_the_tolerance_is_that_of_the_source_or_of_the_site(
        self, node: NodeFacts, rule: Rule, share: float, tolerance: float | None, outcome: str
    ) -> None:
        found = judged(rule, node, share, tolerance=tolerance)
        assert (found.kind, found.outcome) == ("expected", outcome)
        assert found.at_least == pytest.approx(1 - (tolerance or TOLERANCE / RATIO))
        assert found.ratio == pytest.approx(share)
        assert found.source.startswith(f"s; 0.8 × {PEAK[rule]}: a healthy machine; a guide")

    @pytest.mark.parametrize(
        ("rule", "build"), [("typical_hpl", UNKNOWN_BUILD), ("typical_triad", Build("mkl"))]
    )
    @pytest.mark.parametrize("share", [0.5, 1.0])
    def test_a_value_whose_conditions_do_not_hold_is_shown_and_judges_nothing(
        self, node: NodeFacts, rule: Rule, build: Build, share: float
    ) -> None:
        found = judged(rule, node, share, build=build)
        assert found.outcome == "UNJUDGED"
        assert found.ratio == pytest.approx(share)
        assert found.reason.code == "conditions-open"
        assert "; it does not judge: " in found.reason

    @pytest.mark.parametrize(("share", "outcome"), [(0.5, "UNJUDGED"), (1.0, "PASS")])
    def test_the_speed_of_a_virtual_node_fails_nothing(
        self, node: NodeFacts, share: float, outcome: str
    ) -> None:
        assert judged("typical_hpl", node, share, origin="emulated").outcome == outcome

    def test_noisy_repeats_make_no_pass(self, node: NodeFacts) -> None:
        typical = typical_value("typical_hpl", Setting([node], build=TUNED), ALL_CORES)
        assert isinstance(typical, TypicalValue)
        wanted = Reference(metric="rate", kind="expected", source="s", rule="typical_hpl")
        of = record(unit="GFlop/s", parameters=ALL_CORES)
        values = [typical.value * share for share in (0.5, 1.0, 1.5)]
        comparison = Comparison(figures([]), {"n1": node}, builds={"fake": TUNED})
        found = comparison.judge(Figure(of, values[1], values), wanted)
        assert (found.outcome, found.reason.code) == ("UNJUDGED", "limit-noisy")


class TestLink:
    def test_it_is_the_slowest_source_for_the_port_at_its_rate(self, node: NodeFacts) -> None:
        edr = link("100 Gb/sec (4X EDR)")
        assert edr is not None and edr.mpi is not None and edr.mpi.bytes_per_s is not None
        found = typical_value("typical_bandwidth", Setting([node]), {})
        assert isinstance(found, TypicalValue)
        assert found.value == pytest.approx(edr.mpi.bytes_per_s / 1e9)
        assert found.value < edr.bytes_per_s / 1e9
        assert found.unheld == ()
        least = found.value * (1 - found.tolerance)
        assert least == pytest.approx(found.value - edr.mpi.tolerance * edr.bytes_per_s / 1e9)

    def test_of_several_nodes_the_slowest_counts(self, node: NodeFacts) -> None:
        (port,) = node.ports
        fast = port.model_copy(update={"rate": "200 Gb/sec (4X HDR)"})
        faster = node.model_copy(update={"ports": (fast,)})
        one = typical_value("typical_bandwidth", Setting([node]), {})
        both = typical_value("typical_bandwidth", Setting([faster, node]), {})
        assert isinstance(one, TypicalValue) and isinstance(both, TypicalValue)
        assert both.value == one.value

    def test_a_virtual_port_needs_a_source_about_virtual_ports(self, node: NodeFacts) -> None:
        guest = node.model_copy(update={"virtual": "kvm"})
        edr = link("100 Gb/sec (4X EDR)")
        assert edr is not None and edr.mpi is not None
        found = typical_value("typical_bandwidth", Setting([guest]), {})
        assert isinstance(found, TypicalValue)
        held = edr.mpi.bare_metal is False
        assert tuple(each.code for each in found.unheld) == (() if held else ("condition-virtual",))

    @pytest.mark.parametrize("rate", ["25 Gb/sec (1X EDR)", "20 Gb/sec (4X DDR)"])
    def test_a_port_without_a_source_gives_a_reason(self, node: NodeFacts, rate: str) -> None:
        (port,) = node.ports
        other = node.model_copy(update={"ports": (port.model_copy(update={"rate": rate}),)})
        found = typical_value("typical_bandwidth", Setting([other]), {})
        assert isinstance(found, Message) and found.code == "typical-link"

    @pytest.mark.parametrize(
        ("share", "outcome"), [(0.99, "PASS"), (0.91, "PASS"), (0.89, "FAIL"), (0.5, "FAIL")]
    )
    def test_half_of_a_rail_is_no_pass(self, node: NodeFacts, share: float, outcome: str) -> None:
        assert judged("typical_bandwidth", node, share).outcome == outcome


@pytest.mark.parametrize(
    ("rate", "system"), [("100 Gb/sec (4X EDR)", "Slingshot 10"), ("200 Gb/sec (4X HDR)", "Alps")]
)
@pytest.mark.parametrize(
    ("adapters", "share", "outcome"),
    [
        ({}, 1.0, "PASS"),
        ({}, 0.8, "UNJUDGED"),
        ({"mlx5_0:1": 0}, 1.0, "PASS"),
        ({"mlx5_0:1": 0}, 0.8, "FAIL"),
    ],
)
def test_an_ethernet_port_that_meets_its_value_is_pass_with_tcp_or_without(
    node: NodeFacts, rate: str, system: str, adapters: dict[str, int], share: float, outcome: str
) -> None:
    (port,) = node.ports
    ethernet = port.model_copy(update={"layer": "Ethernet", "rate": rate})
    other = node.model_copy(update={"ports": (ethernet,)})
    stated = stated_node(rails={"adapters": adapters})
    both = Setting([other, other], stated)
    value = typical_value("typical_bandwidth", both, {"nodes": 2})
    assert isinstance(value, TypicalValue) and system in value.source
    wanted = Reference(metric="rate", kind="expected", source="s", rule="typical_bandwidth")
    of = record(unit="GB/s", node="n[1-2]", parameters={"nodes": 2})
    comparison = Comparison(figures([]), {"n1": other, "n2": other}, node=stated)
    found = comparison.judge(Figure(of, share * value.value), wanted)
    assert found.outcome == outcome
    assert ("condition-tcp" in found.reason.codes) == (outcome == "UNJUDGED")


class TestSlingshot:
    """An adapter of Slingshot 11 is no port in /sys/class/infiniband, only the interface hsn0."""

    @staticmethod
    def _node(node: NodeFacts, state: str = "up", **about: Any) -> NodeFacts:
        fields = {"firmware": None, "mtu": None, "link": None, "link_best": None}
        nic = Nic(name="hsn0", driver="cxi_ss1", state=state, megabits=200000, **fields)
        return node.model_copy(update={"ports": (), "nics": (nic.model_copy(update=about),)})

    @pytest.mark.parametrize(
        ("adapters", "share", "outcome"),
        [
            ({"cxi0:1": 0}, 1.0, "PASS"),
            ({"cxi0:1": 0}, 0.8, "FAIL"),
            ({}, 1.0, "PASS"),
            ({}, 0.8, "UNJUDGED"),
        ],
    )
    def test_its_row_judges(
        self, node: NodeFacts, adapters: dict[str, int], share: float, outcome: str
    ) -> None:
        other = self._node(node)
        stated = stated_node(rails={"adapters": adapters})
        wanted = Reference(metric="rate", kind="expected", source="s", rule="typical_bandwidth")
        of = record(unit="GB/s", node="n[1-2]", parameters={"nodes": 2})
        comparison = Comparison(figures([]), {"n1": other, "n2": other}, node=stated)
        found = comparison.judge(Figure(of, share * 23.982), wanted)
        assert found.value == pytest.approx(23.982)
        assert "Slingshot 11" in found.source
        assert found.outcome == outcome

    @pytest.mark.parametrize("about", [{"state": "down"}, {"driver": "bnxt_en"}, {"megabits": 1}])
    def test_another_interface_or_one_that_is_down_has_no_value(
        self, node: NodeFacts, about: dict[str, Any]
    ) -> None:
        found = typical_value("typical_bandwidth", Setting([self._node(node, **about)]), {})
        assert isinstance(found, Message) and "fact-unknown" in found.codes


class TestBuilds:
    def test_the_blas_is_that_of_the_programs(self) -> None:
        found = builds(software(), load_benchmarks(ROOT / "benchmarks"))
        assert found["hpcc"].blas == "openblas"
        assert found["imb-pingpong"].blas is None
        assert "stream" not in found, "no program of the run"

    @pytest.mark.parametrize(
        ("origin", "spec", "expected"),
        [
            ("spack", "stream@5.10", True),
            ("spack", "stream@5.10 ~nontemporal", False),
            ("easybuild", "STREAM-5.10", True),
            ("system", "stream", None),
            ("modules", "", None),
        ],
    )
    def test_only_the_recipe_of_the_kit_is_known_to_pass_the_caches(
        self, origin: str, spec: str, expected: bool | None
    ) -> None:
        package = software().packages["hpcc"]
        changed = package.model_copy(update={"origin": origin, "spec": spec})
        assert self._build(changed).streaming_stores is expected
        assert self._build(changed.model_copy(update={"programs": {}})) == UNKNOWN_BUILD

    def test_two_families_of_one_package_are_unknown(self) -> None:
        package = software().packages["hpcc"]
        (program,) = package.programs.values()
        assert program.blas is not None
        blas = program.blas.model_copy(update={"family": "mkl"})
        other = program.model_copy(update={"name": "other", "blas": blas})
        both = package.model_copy(update={"programs": {"hpcc": program, "other": other}})
        assert self._build(both).blas is None

    @staticmethod
    def _build(package: Package) -> Build:
        return builds(
            Software.model_construct(packages={"hpcc": package}),
            load_benchmarks(ROOT / "benchmarks"),
        )["hpcc"]


class TestTable:
    def test_each_typical_value_leaves_room_for_a_healthy_machine(self) -> None:
        found = [each for row in processors() for each in (*row.hpl, *row.triad)]
        found += [each.typical for each in families()]
        assert len(found) > 60
        for each in found:
            assert each.tolerance / each.ratio < 0.25

    @given(st.floats(0.01, 1.49), st.floats(0.001, 0.49))
    def test_the_limit_is_the_least_value_of_the_source(
        self, ratio: float, tolerance: float
    ) -> None:
        """The limit × peak is (ratio - tolerance) × peak."""
        assert ratio * (1 - tolerance / ratio) == pytest.approx(ratio - tolerance)


class TestSite:
    @pytest.mark.parametrize("off", ["off", False])
    def test_a_site_may_want_none(self, off: object) -> None:
        assert JudgeExpected.model_validate(off).wanted is False

    def test_a_site_may_have_its_own_tolerance(self) -> None:
        given = JudgeExpected.model_validate({"tolerance": 0.2})
        assert (given.wanted, given.tolerance) == (True, 0.2)
        assert JudgeExpected.model_validate({}) == JudgeExpected()

    @pytest.mark.parametrize(
        "wrong",
        [
            "on",
            True,
            0,
            [],
            {"tolerance": 0},
            {"tolerance": 1},
            {"tolerance": -0.1},
            {"tolerances": 0.1},
            {"wanted": False, "tolerance": 0.1},
        ],
    )
    def test_others_are_refused(self, wrong: object) -> None:
        with pytest.raises(ValueError, match="JudgeExpected"):
            JudgeExpected.model_validate(wrong)
