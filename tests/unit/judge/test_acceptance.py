"""An acceptance: which runs decide about an item, and the word of the whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.fixtures.kit import Kit, make_kit
from tests.fixtures.kit import item as kit_item
from tests.fixtures.messages import disturbed, said
from tests.unit.judge.test_verdict import record

from proofmark.common.message import NOTHING, Message
from proofmark.judge.acceptance import (
    CODES,
    NO_FIGURE,
    Acceptance,
    AcceptedItem,
    Deciding,
    JudgedRun,
    RunLeftOut,
    acceptance,
    derived_value,
    differences,
    differences_of,
    other_state,
)
from proofmark.judge.acceptance_gaps import gaps
from proofmark.judge.coverage import Degraded
from proofmark.judge.diagnosis.bad_nodes import BadNode, BadNodes
from proofmark.judge.evidence import Evidence
from proofmark.judge.judging import judge
from proofmark.judge.references.judgement import FigureScope, JudgedFigure
from proofmark.judge.results import InvalidCause
from proofmark.judge.verdict import Verdict
from proofmark.plan.kinds import kind_of
from proofmark.plan.plan import Plan
from proofmark.plan.selection import PlannedItem
from proofmark.records.columns import Record, Records
from proofmark.runs.sealed_runs import Sighting
from proofmark.runs.stage_faults import StageFault
from proofmark.site.contract_document import (
    Contract,
    ContractItem,
    DerivedItem,
    Item,
    WitnessedItem,
)

NODES = ("n1", "n2", "n3", "n4")
GOOD, BAD = 250.0, 50.0
WORD = {GOOD: "PASS", BAD: "FAIL"}


def item(number: str = "1", **changes: Any) -> ContractItem:
    """Return an item that each node meets with `GOOD` and misses with `BAD`."""
    fields = {"case": "fake", "metric": "rate", "value": 100, "unit": "MB/s", "at_least": 1}
    return kit_item(number=number, text=f"text {number}", **{**fields, **changes})


@dataclass(frozen=True)
class Machine:
    """A machine of four nodes, whose suite measures each node by itself."""

    kit: Kit

    def plan(self, nodes: Sequence[str] = NODES) -> Plan:
        return self.kit.plan(site=self.kit.site(hosts=nodes))

    def run(
        self,
        day: int,
        values: Mapping[str, float | None],
        *items: ContractItem,
        planned: Sequence[str] = (),
        **reported: Any,
    ) -> JudgedRun:
        """Return the run of a day: the value of each node, in each repeat; None is INVALID.

        `reported` are the functional items and the facts of the nodes.
        """
        plan = self.plan(planned or tuple(values))
        records = [each for node, value in values.items() for each in of_node(plan, node, value)]
        return self.judged(day, plan, records, items, **reported)

    def judged(
        self,
        day: int,
        plan: Plan,
        records: Sequence[Record],
        items: Sequence[ContractItem],
        **reported: Any,
    ) -> JudgedRun:
        benchmarks = self.kit.benchmarks()
        name = f"run{day}"
        limits = items or (item(),)
        evidence = Evidence(name, plan, Records.of(records, name), benchmarks, limits)
        found = judge(replace(evidence, **reported))
        when = datetime(2026, 11, day, tzinfo=UTC)
        return JudgedRun(plan, when, f"{day:064d}", found, plan.current_mode)


def of_node(plan: Plan, node: str, value: float | None) -> list[Record]:
    found = []
    for step in plan.steps():
        (folder,) = (f"{each}" for each, nodes in step.instances().items() if nodes == [node])
        about: dict[str, Any] = {"step": folder, "node": node, "repeat": step.repeat}
        about |= {"parameters": step.parameters, "mode": plan.current_mode}
        about |= {"value": value} if value else {"valid": False, "reason": said("broken")}
        found.append(record(**about))
    return found


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    kit = make_kit(tmp_path_factory.mktemp("kit"))
    kit.case(suites={"quick": {"scope": "each-node"}}, sweep={"size": [1]})
    return Machine(kit)


def accepted(
    runs: Sequence[JudgedRun], *items: Item, left_out: Sequence[RunLeftOut] = ()
) -> Acceptance:
    document = Contract(title="T", parties={"buyer": "B"}, items=list(items or (item(),)))
    return acceptance("here", document, {"local": NODES}, runs, left_out)


def only(found: Acceptance) -> AcceptedItem:
    (each,) = found.items
    return each


def every(value: float | None, **others: float | None) -> dict[str, float | None]:
    return {**dict.fromkeys(NODES, value), **others}


class TestDecidingRuns:
    def test_control_a_healthy_machine_passes(self, machine: Machine) -> None:
        found = accepted([machine.run(1, every(GOOD))])
        assert (found.word, CODES[found.word], found.text) == ("PASS", 0, "1 of 1 items met")
        each = only(found)
        assert (each.nodes, each.unmeasured, each.reasons) == ((4, 4), (), ())
        (evidence,) = each.evidence
        assert (evidence.run, evidence.date, evidence.nodes) == ("run1", "2026-11-01", "n[1-4]")
        assert each.shown.value == GOOD

    def test_the_worst_reasons_are_stated_and_all_nodes_are_named(self, machine: Machine) -> None:
        """Each node misses the limit by another value."""
        values = {node: float(60 + place) for place, node in enumerate(NODES)}
        reasons = only(accepted([machine.run(1, values)])).reasons
        assert [each.fields["nodes"] for each in reasons] == ["n1", "n2", "n3", "n4"]
        assert [each.code for each in reasons] == ["limit-open-on"] * 3 + ["acceptance-more"]

    def test_one_bad_node_fails_and_is_shown(self, machine: Machine) -> None:
        found = accepted([machine.run(1, every(GOOD, n3=BAD))])
        each = only(found)
        assert (found.word, CODES[found.word], each.nodes) == ("FAIL", 1, (3, 4))
        assert each.shown.node == "n3"
        assert [reason.fields["nodes"] for reason in each.reasons] == ["n3"]

    @pytest.mark.fault("acceptance-miss-then-pass")
    @pytest.mark.parametrize("first", [BAD, None])
    def test_what_an_earlier_run_missed_stays_listed(
        self, machine: Machine, first: float | None
    ) -> None:
        """The order of the arguments does not matter: the date of sealing does."""
        runs = [machine.run(1, every(GOOD, n2=first)), machine.run(2, every(GOOD))]
        for order in (runs, runs[::-1]):
            found = accepted(order)
            assert found.word == "PASS"
            (missed,) = only(found).others
            outcome = "FAIL" if first else "INVALID"
            assert (missed.run, missed.date) == ("run1", "2026-11-01")
            assert (missed.outcome, missed.nodes, missed.later) == (outcome, "n2", False)
            written = found.as_json()["items"][0]["other_runs"]
            assert [each["outcome"] for each in written] == [outcome]

    def test_a_newer_miss_is_not_excused_by_an_older_pass(self, machine: Machine) -> None:
        found = accepted([machine.run(1, every(GOOD)), machine.run(2, every(GOOD, n4=BAD))])
        assert found.word == "FAIL"
        assert only(found).others == ()

    def test_a_run_of_one_node_decides_for_this_node_only(self, machine: Machine) -> None:
        broken = machine.run(1, every(GOOD, n1=BAD, n2=BAD))
        found = accepted([broken, machine.run(2, {"n1": GOOD})])
        each = only(found)
        assert (found.word, each.nodes) == ("FAIL", (3, 4))
        assert [(part.run, part.nodes) for part in each.evidence] == [
            ("run2", "n1"),
            ("run1", "n[2-4]"),
        ]
        both = accepted([broken, machine.run(2, {"n1": GOOD}), machine.run(3, {"n2": GOOD})])
        assert both.word == "PASS"

    def test_two_racks_of_two_runs_are_one_machine(self, machine: Machine) -> None:
        racks = [machine.run(1, {"n1": GOOD, "n2": GOOD}), machine.run(2, {"n3": GOOD, "n4": GOOD})]
        assert accepted(racks).word == "PASS"
        half = accepted(racks[:1])
        each = only(half)
        assert (half.word, CODES[half.word]) == ("UNJUDGED", 4)
        assert each.unmeasured == ("n3", "n4")
        assert [str(reason) for reason in each.reasons] == ["no run measured n[3-4]"]

    def test_a_fail_is_worse_than_nodes_that_nobody_measured(self, machine: Machine) -> None:
        assert accepted([machine.run(1, {"n1": BAD})]).word == "FAIL"

    def test_a_share_of_nodes_does_not_excuse_nodes_that_nobody_measured(
        self, machine: Machine
    ) -> None:
        most = item(nodes=0.75)
        some = machine.run(1, {"n1": GOOD, "n2": GOOD, "n3": GOOD}, most)
        assert accepted([some], most).word == "UNJUDGED"
        assert not only(accepted([some], most)).can_be_waived
        assert only(accepted([some], most)).nodes == (3, 4)
        other = machine.run(2, {"n4": BAD}, most)
        assert accepted([some, other], most).word == "PASS"
        worse = machine.run(3, {"n3": BAD}, most)
        assert accepted([some, other, worse], most).word == "FAIL"

    @pytest.mark.fault("acceptance-node-unmeasured")
    def test_a_planned_node_without_a_row_is_no_pass(self, machine: Machine) -> None:
        run = machine.run(1, {"n1": GOOD, "n2": GOOD, "n3": GOOD}, planned=NODES)
        found = accepted([run])
        assert found.word == "UNJUDGED"
        assert only(found).shown is not NO_FIGURE
        assert {each.fields["nodes"] for each in only(found).reasons} == {"n4"}

    def test_no_run_at_all_is_unjudged(self) -> None:
        found = accepted([])
        assert (found.word, only(found).reasons) == ("UNJUDGED", ("no run measured it",))
        assert [(each.phase, each.word, each.date) for each in found.phases] == [
            ("performance", "UNJUDGED", "")
        ]


@pytest.mark.parametrize(
    ("derived", "unit", "weights", "parts", "value"),
    [
        ("sum", "GB/s", None, ((3000.0, "MB/s"), (2.0, "GB/s")), 5.0),
        ("sum", "MB/s", [2.0, 1.0], ((3000.0, "MB/s"), (2.0, "GB/s")), 8000.0),
        ("geometric-mean", "GB/s", None, ((2000.0, "MB/s"), (8.0, "GB/s")), 4.0),
        ("geometric-mean", "MB/s", [3.0, 1.0], ((1.0, "MB/s"), (16.0, "MB/s")), 2.0),
        ("throughput", "jobs/h", [30.0, 10.0], ((1800.0, "s"), (1800.0, "s")), 40.0),
        ("throughput", "jobs/s", None, ((1.0, "s"), (3000.0, "ms")), 0.5),
        ("throughput", "jobs/h", None, ((1.0, "s"), (2.0, "MB/s")), None),
        ("sum", "GB/s", None, ((1.0, "GB/s"), (2.0, "s")), None),
        ("sum", "GB/s", None, ((1.0, "GB/s"), (None, "GB/s")), None),
    ],
)
def test_what_follows_from_values(
    derived: Any,
    unit: str,
    weights: list[float] | None,
    parts: Sequence[tuple[float | None, str]],
    value: float | None,
) -> None:
    numbers = [str(place) for place in range(len(parts))]
    about = {
        "number": "D",
        "text": "t",
        "derived": derived,
        "items": numbers,
        "weights": weights or [],
    }
    terms = DerivedItem.model_validate({**about, "unit": unit, "value": 1.0, "at_least": 1})
    scope = FigureScope(frozenset(NODES), together=True)
    figures = [
        JudgedFigure(number, (), "PASS", NOTHING, scope, of_part, unit=own)
        for number, (of_part, own) in zip(numbers, parts, strict=True)
    ]
    found = derived_value(terms, figures)
    assert found == (None if value is None else pytest.approx(value))


class TestConfigurationOfNodes:
    """A repaired node is measured again, alone: what it was before decides nothing more."""

    def runs(self, machine: Machine, before: str, after: str) -> list[JudgedRun]:
        """Return a run of all nodes, in which n3 has `before`, and one of n3 alone."""
        old = {(node, "DIMMs"): before if node == "n3" else "24" for node in NODES}
        whole = replace(machine.run(1, every(GOOD)), configuration=old)
        alone = machine.run(2, {"n3": GOOD})
        return [whole, replace(alone, configuration={("n3", "DIMMs"): after})]

    def test_the_run_decides_no_longer_about_the_node(self, machine: Machine) -> None:
        found = accepted(self.runs(machine, "23", "24"))
        assert (found.word, only(found).differs) == ("PASS", ())

    def test_the_other_nodes_have_what_they_had(self, machine: Machine) -> None:
        """n3 has newer parts than all others: it decides what is accepted now."""
        found = accepted(self.runs(machine, "24", "25"))
        (text,) = map(str, only(found).differs)
        assert text == "run1: DIMMs of n[1-2,4]: 24; the newest run has 25"
        assert found.word == "UNJUDGED"

    def test_the_first_differences_are_stated_and_the_others_counted(
        self, machine: Machine
    ) -> None:
        old, new = (
            replace(
                machine.run(day, {node: GOOD for node in nodes}),
                configuration={(node, f"part {n}"): f"{day}" for node in nodes for n in range(5)},
            )
            for day, nodes in ((1, ("n1", "n2")), (2, ("n3", "n4")))
        )
        each = only(accepted([old, new]))
        texts = [f"run1: part {n} of n[1-2]: 1; the newest run has 2" for n in range(5)]
        assert [*map(str, each.differs)] == texts
        assert each.reasons[:3] == tuple(texts[:3])
        assert each.reasons[3] == Message("acceptance-differs-more", count=2)

    @pytest.mark.parametrize(("processor", "differs"), [("a", True), ("b", False)])
    def test_a_node_is_compared_with_those_of_its_processor(
        self, machine: Machine, processor: str, differs: bool
    ) -> None:
        """The newest run does not have n1. Nodes with another processor may have another BIOS."""

        def has(node: str, of: str, bios: str) -> dict[tuple[str, str], str]:
            return {(node, "processor"): of, (node, "BIOS"): bios}

        old = replace(machine.run(1, every(GOOD)), configuration=has("n1", processor, "1"))
        new = machine.run(2, {"n2": GOOD, "n3": GOOD})
        others = has("n2", "a", "3") | has("n3", "a", "2")
        found = [*differences([replace(new, configuration=others), old])]
        assert found == ([("run1", ["n1"], "BIOS", "1", "2")] if differs else [])

    def test_what_all_measured_together_was_measured_with_it(self, machine: Machine) -> None:
        whole, after = self.runs(machine, "23", "24")
        scope = FigureScope(frozenset(NODES), together=True)
        figure = JudgedFigure("1", (), "PASS", NOTHING, scope, GOOD, unit="MB/s")
        together = AcceptedItem(item(), "local", (Deciding(whole, figure),))
        (text,) = map(str, differences_of(together, [*differences([after, whole])]))
        assert text == "run1: DIMMs of n3: 23; the newest run has 24"


class TestFiguresThatNothingJudged:
    @pytest.fixture
    def three(self, tmp_path: Path) -> Machine:
        kit = make_kit(tmp_path)
        kit.suites(quick={"title": "Q", "repeats": 3})
        kit.case(suites={"quick": {"scope": "each-node"}}, sweep={"size": [1]})
        return Machine(kit)

    @pytest.mark.parametrize("first", [GOOD, BAD])
    def test_they_replace_nothing_and_are_listed(
        self, machine: Machine, three: Machine, first: float
    ) -> None:
        """The newer run has fewer repeats than the item needs: a miss stays a miss."""
        needs = item(runs=3)
        old = three.run(1, every(first), needs)
        new = machine.run(2, every(GOOD), needs)
        assert accepted([new], needs).word == "UNJUDGED"
        found = accepted([old, new], needs)
        assert found.word == WORD[first]
        (again,) = only(found).others
        assert (again.run, again.outcome, again.later) == ("run2", "UNJUDGED", True)

    def test_a_setting_that_nothing_judged_keeps_the_older_figures(self, tmp_path: Path) -> None:
        """The newer run passes one setting and lacks the other: the older FAIL decides."""
        kit = make_kit(tmp_path)
        kit.case(suites={"quick": {"scope": "each-node"}}, sweep={"size": [1, 2]})
        both, needs = Machine(kit), item()
        plan = both.plan(NODES)
        whole = [each for node in NODES for each in of_node(plan, node, GOOD)]
        second = [each.parameters["size"] == 2 for each in whole]
        old = [
            replace(each, value=BAD) if of_second else each
            for each, of_second in zip(whole, second, strict=True)
        ]
        new = [each for each, of_second in zip(whole, second, strict=True) if not of_second]
        runs = [both.judged(1, plan, old, [needs]), both.judged(2, plan, new, [needs])]
        assert accepted(runs, needs).word == "FAIL"
        assert accepted([*runs, both.judged(3, plan, whole, [needs])], needs).word == "PASS"


class TestNodesThatMeasureTogether:
    @pytest.fixture
    def fabric(self, tmp_path: Path) -> Machine:
        kit = make_kit(tmp_path)
        kit.case(sweep={"size": [1], "nodes": ["{nodes}"]})
        return Machine(kit)

    def together(self, fabric: Machine, day: int, nodes: str, value: float) -> JudgedRun:
        hosts = {"n[1-4]": NODES, "n[1-2]": NODES[:2]}[nodes]
        site = fabric.kit.site(hosts=hosts)
        plan = fabric.kit.plan(site=site)
        (step,) = plan.steps()
        changed = step.model_copy(update={"nodes": list(hosts)})
        (group,) = plan.groups
        job = group.jobs[0].model_copy(update={"steps": [changed], "nodes": list(hosts)})
        plan = plan.model_copy(update={"groups": [group.model_copy(update={"jobs": [job]})]})
        about: dict[str, Any] = {"step": step.id, "node": nodes}
        about |= {"parameters": step.parameters}
        return fabric.judged(day, plan, [record(**about, value=value)], [item()])

    def test_no_node_needs_an_own_figure(self, fabric: Machine) -> None:
        assert accepted([self.together(fabric, 1, "n[1-2]", GOOD)]).word == "PASS"

    @pytest.mark.fault("acceptance-of-fewer-nodes")
    def test_fewer_nodes_replace_no_miss(self, fabric: Machine) -> None:
        whole = self.together(fabric, 1, "n[1-4]", BAD)
        half = self.together(fabric, 2, "n[1-2]", GOOD)
        assert accepted([whole, half]).word == "FAIL"
        assert accepted([whole, half, self.together(fabric, 3, "n[1-4]", GOOD)]).word == "PASS"

    def test_a_run_that_lacks_nodes_decides_nothing_of_them_together(self, fabric: Machine) -> None:
        run = self.together(fabric, 1, "n[1-2]", GOOD)
        lacking = replace(run, verdict=replace(run.verdict, degraded=Degraded(2, 4)))
        found = accepted([lacking])
        assert found.word == "UNJUDGED"
        assert [each.reason.code for each in found.limited] == ["acceptance-degraded"]


def test_each_node_of_a_run_that_lacks_nodes_decides(machine: Machine) -> None:
    run = machine.run(1, every(GOOD, n2=BAD))
    lacking = replace(run, verdict=replace(run.verdict, degraded=Degraded(3, 4)))
    assert accepted([lacking]).word == "FAIL"


class TestOtherStates:
    def test_a_run_of_another_mode_decides_only_items_of_its_mode(self, machine: Machine) -> None:
        run = replace(machine.run(1, every(GOOD)), mode_now="flat")
        found = accepted([run])
        assert found.word == "UNJUDGED"
        assert [each.reason.code for each in found.limited] == ["acceptance-mode"]
        named = item(mode=run.plan.current_mode)
        of_mode = replace(machine.run(1, every(GOOD), named), mode_now="flat")
        assert accepted([of_mode], named).word == "PASS"

    @pytest.mark.parametrize(
        ("kind", "origin", "code"),
        [
            ("", "measured", ""),
            ("", "emulated", "acceptance-origin"),
            ("", "predicted", "acceptance-origin"),
            ("imported", "measured", "acceptance-origin"),
        ],
    )
    def test_what_is_no_measurement(
        self, machine: Machine, kind: str, origin: str, code: str
    ) -> None:
        plan = machine.plan().model_copy(update={"kind": kind})
        assert other_state(kind_of(plan).origin or origin).code == code

    def test_an_item_of_another_contract_is_not_decided(self, machine: Machine) -> None:
        """The value of the item differs: the run judged another limit."""
        assert accepted([machine.run(1, every(GOOD))], item(value=99)).word == "UNJUDGED"


class TestMisses:
    """What a measurement of the contract stops at: what its own runs missed."""

    def test_only_the_misses_of_these_runs_count(self, machine: Machine) -> None:
        bad = machine.run(1, every(GOOD, n2=BAD))
        good = machine.run(2, {"n1": GOOD})
        found = accepted([bad, good])
        assert found.word == "FAIL"
        assert found.misses({"run1"}) and found.misses({"run1", "run2"})
        assert not found.misses({"run2"}), "an earlier miss is measured again, and does not stop"
        assert not found.misses(set())
        healthy = machine.run(4, every(GOOD))
        faulty = machine.run(3, every(GOOD))
        faulty = replace(faulty, verdict=with_fault(faulty.verdict, "n1"))
        assert accepted([faulty]).misses({"run3"})
        assert not accepted([healthy, faulty]).misses({"run3"}), "measured again since"

    def test_a_minor_miss_stops_nothing(self, machine: Machine) -> None:
        minor = item(severity="minor")
        assert not accepted([machine.run(1, every(BAD), minor)], minor).misses({"run1"})


@pytest.mark.parametrize(
    ("outcome", "causes"),
    [
        ("INVALID", (InvalidCause.NO_SPACE, InvalidCause.OTHER)),
        ("FAIL", ()),
        ("UNJUDGED", ()),
    ],
)
def test_each_cause_but_a_disturbance_is_advised_once(
    machine: Machine, outcome: str, causes: Sequence[InvalidCause]
) -> None:
    """Who measures again repeats the disturbed steps anyway."""
    run = machine.run(1, every(GOOD))
    full = Message("reader-no-space", words="No space left on device")
    reasons = (full, disturbed("stress"), said("broken"), full)
    deciding = tuple(
        Deciding(run, JudgedFigure(f"n{number}", (), outcome, why))
        for number, why in enumerate(reasons)
    )
    found = AcceptedItem(item(), "local", deciding)
    assert found.advice == tuple(each.text for each in causes)


class TestWitnessed:
    """An item that a person sees, by the newest word of each signer."""

    def outcome(self, *words: str, roles: Sequence[str] = ("buyer", "witness")) -> AcceptedItem:
        """Return the item after `words`: of whom, and P or F; the last one is the oldest."""
        item = WitnessedItem(number="1", text="training", witnessed="a day")
        names = {"buyer": "b@here", "witness": "w@here", "supplier": "s@here"}
        contract = Contract(
            title="T",
            parties={"buyer": "B"},
            signers={role: [f"{names[role]} ssh-ed25519 AAA{role[0].upper()}"] for role in roles},
            items=[item],
        )
        seen = [
            Sighting(
                item="1",
                contract="0" * 64,
                outcome="PASS" if word.endswith("P") else "FAIL",
                by=names[word.split()[0]],
                time=datetime(2026, 11, 20 - age, tzinfo=UTC),
                reason="seen",
            )
            for age, word in enumerate(words)
        ]
        return only(acceptance("here", contract, {"local": NODES}, [], seen=seen))

    @pytest.mark.parametrize(
        ("words", "word"),
        [
            (("buyer P",), "PASS"),
            (("buyer P", "buyer F"), "PASS"),
            (("buyer F", "buyer P"), "FAIL"),
            (("supplier P", "witness P"), "PASS"),
            (("supplier F", "witness P"), "FAIL"),
        ],
    )
    def test_the_newest_word_of_each_signer_counts(self, words: Sequence[str], word: str) -> None:
        assert self.outcome(*words).outcome == word

    @pytest.mark.parametrize(
        ("roles", "names"), [(("buyer", "witness"), "b@here or w@here"), (("supplier",), "–")]
    )
    def test_who_has_to_see_it_is_named(self, roles: Sequence[str], names: str) -> None:
        found = self.outcome("supplier P", roles=roles)
        assert found.outcome == "UNJUDGED"
        (why,) = found.deciding
        assert why.figure.reason == f"not seen by {names}"


class TestWord:
    def test_a_minor_item_is_stated_and_fails_nothing(self, machine: Machine) -> None:
        items = [item("1"), item("2", value=300, severity="minor")]
        found = accepted([machine.run(1, every(GOOD), *items)], *items)
        assert (found.word, [each.outcome for each in found.items]) == ("PASS", ["PASS", "FAIL"])
        assert found.text == "1 of 2 items met; minor items not met: 1"

    @pytest.mark.parametrize(("lacks", "word"), [(False, "PASS"), (True, "UNJUDGED")])
    def test_evidence_that_is_missing_is_no_pass(
        self, machine: Machine, lacks: bool, word: str
    ) -> None:
        """The control is a run that decides nothing anyway."""
        odd = RunLeftOut("odd", said("not sealed"), open=lacks)
        assert accepted([machine.run(1, every(GOOD))], left_out=[odd]).word == word

    def test_items_without_one_that_binds_are_no_pass(self, machine: Machine) -> None:
        minor = item(severity="minor")
        assert accepted([machine.run(1, every(BAD), minor)], minor).word == "UNJUDGED"
        assert accepted([machine.run(1, every(GOOD), minor)], minor).word == "PASS"

    @pytest.mark.parametrize(
        ("values", "word"),
        [
            ((GOOD, GOOD), "PASS"),
            ((GOOD, BAD), "FAIL"),
            ((GOOD, None), "INVALID"),
            ((None, BAD), "FAIL"),
        ],
    )
    def test_each_phase_has_its_word_and_date(
        self, machine: Machine, values: tuple[float | None, float | None], word: str
    ) -> None:
        """The items of one phase are those of one machine, measured on another day."""
        first = item("1", phase="functionality")
        second = item("2", phase="stability", system="local")
        runs = [
            machine.run(3, every(values[0]), first),
            machine.run(7, every(values[1]), second),
        ]
        found = accepted(runs, first, second)
        dates = {each.phase: each.date for each in found.phases}
        assert dates == {"functionality": "2026-11-03", "stability": "2026-11-07"}
        words = {each.phase: each.word for each in found.phases}
        of = {GOOD: "PASS", BAD: "FAIL", None: "INVALID"}
        assert words == {"functionality": of[values[0]], "stability": of[values[1]]}
        assert found.word == word

    def test_a_fault_of_a_node_is_no_pass_until_the_node_is_measured_again(
        self, machine: Machine
    ) -> None:
        run = machine.run(1, every(GOOD))
        broken = replace(run, verdict=with_fault(run.verdict, "n2"))
        found = accepted([broken])
        assert (found.word, only(found).outcome) == ("FAIL", "PASS")
        assert found.text == "1 of 1 items met; 1 node with a fault that no figure has"
        assert accepted([broken, machine.run(2, {"n1": GOOD})]).word == "FAIL"
        repaired = accepted([broken, machine.run(2, {"n2": GOOD})])
        assert repaired.word == "PASS"
        (fault,) = repaired.faults
        assert fault.as_json() == {
            **{"run": "run1", "date": "2026-11-01", "word": "FAIL", "nodes": "n2"},
            **{"stands": False, **said("a lost module").as_json("reason")},
        }

    @pytest.mark.fault("stage-failed-after-the-jobs")
    def test_a_stage_that_failed_is_no_pass_until_the_node_is_measured_again(
        self, machine: Machine
    ) -> None:
        about = {"nodes": "n[2-3]", "code": "NO_ANSWER", "text": "no response"}
        failed = (StageFault(stage="restore", **about),)
        broken = machine.run(1, every(GOOD), stage_faults=failed)
        found = accepted([broken])
        assert (found.word, only(found).outcome) == ("UNJUDGED", "PASS")
        assert found.text == "1 of 1 items met; 2 nodes with a fault that no figure has"
        (fault,) = found.faults
        assert fault.reason == "restore: NO_ANSWER: no response"
        assert (fault.run, fault.word, fault.nodes, fault.stands) == (
            *("run1", "UNJUDGED", "n[2-3]", True),
        )
        assert accepted([broken, machine.run(2, {"n2": GOOD})]).word == "UNJUDGED"
        again = machine.run(2, {"n2": GOOD, "n3": GOOD})
        assert accepted([broken, again]).word == "PASS"
        newest = machine.run(3, every(GOOD), stage_faults=failed)
        assert accepted([broken, again, newest]).word == "UNJUDGED"
        assert accepted([broken, machine.run(2, every(BAD))]).word == "FAIL"
        finding = (StageFault(stage="collect", **about),)
        assert accepted([machine.run(1, every(GOOD), stage_faults=finding)]).word == "PASS"


def with_fault(verdict: Verdict, node: str) -> Verdict:
    bad = BadNode(node, (), retest=False, causes=(), counters=())
    known = replace(bad, known=(said("a lost module"),))
    return replace(verdict, bad=BadNodes(nodes=(known,), measured=4))


class TestGaps:
    """The suites: short has too few repeats, long enough, other lacks programs."""

    TIMES = {("local", "short"): 60.0, ("local", "long"): 600.0, ("local", "longer"): 900.0}

    def missing(self, repeats: dict[str, int], each: ContractItem) -> list[tuple[str, str]]:
        planned = [PlannedItem("local", each, repeats)]
        found = gaps(accepted([], each).open_items, planned, self.TIMES, "inventory/here")
        return [(gap.suite, gap.command) for gap in found]

    def test_the_first_suite_with_more_repeats_if_it_has_too_few(self) -> None:
        known = {"short": 1, "long": 3, "longer": 5, "other": 9}
        of_site = "ansible-playbook acceptance.yml -i inventory/here -l local -e suite="
        assert self.missing(known, item()) == [("short", f"{of_site}short")]
        assert self.missing({"long": 3, "longer": 5}, item(runs=3)) == [("long", f"{of_site}long")]
        more = [("short", f"{of_site}short -e repeats=9")]
        assert self.missing(known, item(runs=9)) == more
        assert self.missing({"other": 9}, item()) == [("", "")]

    def test_the_repeats_of_the_noisiest_figure(self, machine: Machine) -> None:
        each = only(accepted([machine.run(1, every(GOOD))]))
        first, *others = each.deciding
        assert first.figure.judgement and each.repeats_needed == 1
        noisy = replace(first.figure.judgement, repeats_needed=7)
        deciding = replace(first, figure=replace(first.figure, judgement=noisy))
        assert replace(each, deciding=(*others, deciding)).repeats_needed == 7

    def test_only_the_nodes_that_nobody_measured(self, machine: Machine) -> None:
        found = accepted([machine.run(1, {"n1": GOOD})])
        planned = [PlannedItem("local", item(), {"short": 1})]
        (gap,) = gaps(found.open_items, planned, self.TIMES, "inventory/here")
        assert "-l 'n[2-4]' -e suite=short" in gap.command
        assert (gap.items, gap.seconds) == (("1",), 60.0)
        whole = accepted([machine.run(1, every(GOOD))])
        assert [*gaps(whole.open_items, planned, self.TIMES, "i")] == []
