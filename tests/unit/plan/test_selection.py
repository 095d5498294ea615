"""Limits that select no figure of any suite of a partition are refused."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fixtures.kit import FAKE, SYMBOLS, Kit, contract_of, item, make_kit, topology
from tests.fixtures.report_run import made_run

from proofmark.cases.reference import Reference
from proofmark.common.errors import BadInput
from proofmark.judge.aggregate import aggregate
from proofmark.judge.judging import read_and_judge
from proofmark.judge.references.figure_comparison import Figures as Measured
from proofmark.judge.references.judgement import applies, traits
from proofmark.plan.expansion import all_suites, idle_limits
from proofmark.plan.selection import Trait, figures_of_plan, selecting_suites, selection
from proofmark.plan.validation import by_suite, without_figures
from proofmark.records.columns import Record, Records
from proofmark.runs.run import Run, benchmarks_of
from proofmark.site.contract_document import ContractItem
from proofmark.site.hardware import Mode
from proofmark.site.machines import Machine

LIMIT: dict[str, Any] = {
    "case": "fake",
    "metric": "rate",
    "source": "contract",
    "value": 1,
    "unit": "MB/s",
    "at_least": 1,
}
MACHINE = Machine(SYMBOLS, topology())
KEY = "items.0"


@pytest.fixture
def kit(tmp_path: Path) -> Kit:
    """A kit with the suites quick and large, and a case with a word and a printed parameter."""
    kit = make_kit(tmp_path)
    kit.suites(quick={"title": "Quick"}, large={"title": "Large"}, unused={"title": "Nothing"})
    read = copy.deepcopy(FAKE["read"])
    read["parameters"] = {"size": "int", "printed": "int", "label": "lower"}
    kit.case(
        sweep={"size": [1, "{cores + 1}"], "memory_kind": ["ddr", "mcdram"]},
        arguments=["{size}", "{memory_kind}"],
        suites={"quick": {}, "large": {"sweep": {"size": "{1024 * cores}"}}},
        read=read,
    )
    return kit


def limits(*changes: dict[str, Any]) -> list[ContractItem]:
    return [item(**{**LIMIT, **change}) for change in changes]


def refusal(kit: Kit, change: dict[str, Any]) -> str:
    with pytest.raises(BadInput) as error:
        kit.plan(site=kit.site(limits(change)))
    return str(error.value).replace("inventory/here/contract.yml: items.0", "limit")


ACCEPTED: list[dict[str, Any]] = [
    {},
    {"where": {"size": 1}},
    {"where": {"size": 3.0}},
    {"where": {"size": 2048}},  # an expression of the suite large
    {"where": {"memory_kind": "mcdram", "size": 3}},
    {"where": {"printed": 17}},  # only the output has it
    {"where": {"label": "any"}},
    {"where": {"benchmark": "FAKE"}},
    {"mode": "current", "system": "local"},
    {"value": None, "unit": None, "against": {"metric": "rate", "where": {"memory_kind": "ddr"}}},
]

REFUSED = [
    ({"where": {"memory_kind": "ddrr"}}, "limit.where.memory_kind: found 'ddrr', did you mean 'd"),
    ({"where": {"size": "1"}}, "limit.where.size: found '1'; accepted: 1, 3, 2048"),
    ({"where": {"size": 4}}, "limit.where.size: found 4; accepted: 1, 3, 2048"),
    ({"where": {"printed": "17"}}, "limit.where.printed: found '17'; accepted: a whole number"),
    ({"where": {"printed": 1.5}}, "limit.where.printed: found 1.5; accepted: a whole number"),
    ({"where": {"label": "Any"}}, "limit.where.label: found 'Any'; accepted: a word in lower case"),
    ({"where": {"benchmark": "fake"}}, "limit.where.benchmark: found 'fake'; accepted: 'FAKE'"),
    ({"where": {"threads": 1}}, "limit.where.threads: found 'threads', which no figure has"),
    ({"mode": "curent"}, "limit.mode: found 'curent', did you mean 'current'?; accepted: current"),
    ({"case": "idle"}, "limit.case: found 'idle' of no suite, which no suite runs"),
    (
        {"where": {"size": 2048, "memory_kind": "ddr", "placement": "close"}},
        "limit.where.placement: found 'close'; accepted: ''",
    ),
    (
        {
            "value": None,
            "unit": None,
            "against": {"metric": "rate", "where": {"memory_kind": "ddrr"}},
        },
        "limit.against.where.memory_kind: found 'ddrr', did you mean 'ddr'?",
    ),
    (
        {"value": None, "unit": None, "against": {"metric": "rate", "case": "idle"}},
        "limit.against.case: found 'idle' of no suite",
    ),
]


@pytest.mark.parametrize("change", ACCEPTED)
def test_a_limit_that_selects_figures_is_accepted(kit: Kit, change: dict[str, Any]) -> None:
    """The control: limits of both suites, and on values that only the output has."""
    kit.case("idle", suites={})
    kit.plan(site=kit.site(limits(change)))


@pytest.mark.fault("limit-selects-nothing")
@pytest.mark.parametrize(("change", "expected"), REFUSED)
def test_a_limit_that_selects_no_figure_is_refused(
    kit: Kit, change: dict[str, Any], expected: str
) -> None:
    kit.case("idle", suites={})
    assert refusal(kit, change).startswith(expected)


@pytest.mark.fault("limit-selects-nothing")
def test_values_of_two_suites_are_no_figure_together(kit: Kit) -> None:
    kit.case(
        sweep={"size": 1, "kind": "a"},
        arguments=["{size}", "{kind}"],
        suites={"quick": {}, "large": {"sweep": {"size": 2, "kind": "b"}}},
    )
    kit.plan(site=kit.site(limits({"where": {"size": 2, "kind": "b"}})))
    message = refusal(kit, {"where": {"size": 1, "kind": "b"}})
    found = "metric, size, kind together, which no figure has"
    assert message == f"limit.where: found {found}; accepted: size 2; or kind 'a'"


@pytest.mark.fault("limit-selects-nothing")
def test_a_metric_that_is_judged_with_another_value_is_named(kit: Kit) -> None:
    rate = {"unit": "MB/s", "better": "higher", "bound": "universal", "what": "x"}
    kit.case(metrics={"rate": {**rate, "judged_with": {"size": 7}}})
    message = refusal(kit, {})
    assert message.startswith("limit.metric: found rate, which is judged only with size 7;")
    assert "the suites of this site plan size 1" in message


@pytest.mark.fault("limit-selects-nothing")
def test_the_reference_of_another_suite_is_never_measured(kit: Kit) -> None:
    against = {"metric": "rate", "case": "other"}
    changed = {"value": None, "unit": None, "against": against}
    kit.case("other", suites={"quick": {}})
    kit.plan(site=kit.site(limits(changed)))
    kit.case("other", suites={"large": {}})
    kit.case(suites={"quick": {}})
    message = refusal(kit, changed)
    assert message.startswith("limit.against: found other rate, which no suite measures with a")


AGAINST = {"value": None, "unit": None, "against": {"metric": "rate", "case": "other"}}


@pytest.mark.fault("limit-selects-nothing")
@pytest.mark.parametrize(("nodes", "measured"), [(1, True), (2, False)])
def test_a_reference_is_measured_on_the_same_nodes(kit: Kit, nodes: int, measured: bool) -> None:
    """The case with one node is the control."""
    kit.case(sweep={"size": 1, "nodes": 1})
    kit.case("other", sweep={"size": 1, "nodes": nodes})
    site = kit.site(limits(AGAINST), hosts=["one", "two"])
    mistakes = idle_limits(kit.benchmarks(), site, MACHINE)
    assert [mistake.key for mistake in mistakes] == ([] if measured else [f"{KEY}.against"])


@pytest.mark.fault("limit-selects-nothing")
@pytest.mark.parametrize(("mode", "measured"), [("flat", True), ("cache", False)])
def test_a_reference_is_measured_in_the_same_mode(kit: Kit, mode: str, measured: bool) -> None:
    """The mode of the limit's own figures is the control."""
    kit.case(suites={"quick": {"modes": ["flat"]}})
    kit.case("other", suites={"quick": {"modes": [mode]}})
    modes = {"modes": {"flat": Mode(), "cache": Mode()}, "current_mode": "flat"}
    site = kit.site(limits(AGAINST))
    site = site.model_copy(update={"partition": site.partition.model_copy(update=modes)})
    mistakes = idle_limits(kit.benchmarks(), site, MACHINE)
    assert [mistake.key for mistake in mistakes] == ([] if measured else [f"{KEY}.against"])
    other = [each.model_copy(update={"mode": mode}) for each in limits({})]
    changed = site.model_copy(update={"contract": contract_of(other)})
    mistakes = idle_limits(kit.benchmarks(), changed, MACHINE)
    assert [mistake.key for mistake in mistakes] == ([] if measured else [f"{KEY}.mode"])


@pytest.mark.fault("limit-selects-nothing")
@pytest.mark.parametrize(("size", "measured"), [(2, True), (3, False)])
def test_a_reference_of_the_same_case_differs_only_in_where(
    kit: Kit, size: int, measured: bool
) -> None:
    """Size 2 is measured with both kinds (the control), size 3 only with the other kind."""
    kit.case(
        sweep={"size": [1, 2, 3], "kind": ["a", "b"]},
        arguments=["{size}", "{kind}"],
        where="{kind == 'b' or size < 3}",
    )
    changed = {
        "where": {"size": size, "kind": "b"},
        "value": None,
        "unit": None,
        "against": {"metric": "rate", "where": {"kind": "a"}},
    }
    mistakes = idle_limits(kit.benchmarks(), kit.site(limits(changed)), MACHINE)
    assert [mistake.key for mistake in mistakes] == ([] if measured else [f"{KEY}.against"])


def test_a_limit_on_more_nodes_than_selected_is_of_the_whole_partition(kit: Kit) -> None:
    kit.case(sweep={"size": 1, "nodes": "{upto(nodes)}"})
    hosts = ["one", "two"]
    site = kit.site(limits({"where": {"nodes": 2}}), hosts=hosts)
    some = site.model_copy(update={"hosts": ("one",), "partition_hosts": hosts})
    assert idle_limits(kit.benchmarks(), some, MACHINE) == []
    three = kit.site(limits({"where": {"nodes": 3}}), hosts=hosts)
    (mistake,) = idle_limits(kit.benchmarks(), three, MACHINE)
    assert (mistake.found, mistake.accepted) == ("3", "1, 2")


def test_a_suite_that_cannot_run_is_named(kit: Kit) -> None:
    kit.case(suites={"quick": {}, "large": {"sweep": {"size": "{no_such_fact}"}}})
    message = refusal(kit, {"where": {"size": 2048}})
    assert message.endswith("accepted: 1, 2 (not run here: large)")


class TestOtherSuites:
    @pytest.mark.fault("limit-of-another-suite")
    def test_it_is_listed(self, kit: Kit) -> None:
        site = kit.site(limits({"where": {"size": 2048}}, {}))
        plan = kit.plan(site=site)
        lines = list(without_figures(plan, kit.benchmarks(), site, MACHINE))
        assert lines == ["not in this suite: limit fake rate (size=2048), of large"]

    def test_a_limit_of_this_suite_is_not_listed(self, kit: Kit) -> None:
        """The control."""
        site = kit.site(limits({}, {"where": {"size": 1}}))
        assert list(without_figures(kit.plan(site=site), kit.benchmarks(), site, MACHINE)) == []

    def test_a_limit_without_its_reference_in_the_suite_is_listed(self, kit: Kit) -> None:
        kit.case("other", suites={"large": {}})
        site = kit.site(
            limits({"value": None, "unit": None, "against": {"metric": "rate", "case": "other"}})
        )
        plan = kit.plan(site=site)
        (line,) = without_figures(plan, kit.benchmarks(), site, MACHINE)
        assert line == "not evaluated in this suite: limit fake rate: no step measures other rate"
        lines = by_suite(
            site.items.values(), [plan, kit.plan("large", site=site)], kit.benchmarks()
        )
        assert lines == ["fake rate: in large; not in this suite: quick"]

    def test_the_suites_of_each_limit(self, kit: Kit) -> None:
        site = kit.site(limits({"where": {"size": 2048}}, {"mode": "current"}))
        plans = [kit.plan(suite, site=site) for suite in ("quick", "large")]
        assert by_suite(site.items.values(), plans, kit.benchmarks()) == [
            "fake rate (size=2048): in large; not in this suite: quick",
            "fake rate (mode current): in quick, large; not in this suite: –",
        ]
        suites = all_suites(kit.benchmarks(), {"fake"}, site, MACHINE)
        (first, _) = site.items.values()
        assert selecting_suites(first, "fake", suites) == ["large"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Records]:
    """A run of real outputs, and its records."""
    run = made_run(tmp_path_factory.mktemp("finished"))
    records, _ = read_and_judge(run)
    return run, records


def reference_of(record: Record, where: dict[str, Any]) -> Reference:
    return Reference.model_validate(
        {
            "metric": record.metric,
            "kind": "floor",
            "source": "s",
            "value": 1,
            "at_least": 1,
            "mode": record.mode,
            "system": record.system,
            "where": where,
        }
    )


class TestRecords:
    """A limit can select every trait that a record has."""

    def test_each_record_can_be_selected_by_all_of_its_traits(
        self, finished: tuple[Run, Records]
    ) -> None:
        run, records = finished
        figures = figures_of_plan(run.plan, benchmarks_of(run))
        valid = [record for record in records if record.valid]
        assert len(valid) > 300
        for record in valid:
            reference = reference_of(record, dict(traits(record)))
            assert applies(reference, record)
            chosen = selection(reference, record.case, figures)
            assert record.step in chosen.steps

    @given(st.data())
    def test_a_limit_that_the_plan_excludes_applies_to_no_record(
        self, finished: tuple[Run, Records], data: st.DataObject
    ) -> None:
        run, records = finished
        figures = figures_of_plan(run.plan, benchmarks_of(run))
        record = data.draw(st.sampled_from([each for each in records if each.valid]))
        names = st.sampled_from(sorted(traits(record)))
        others = [*traits(record).values(), "x", "1", 1, 2.0]
        where = data.draw(st.dictionaries(names, st.sampled_from(others), max_size=3))
        reference = reference_of(record, where)
        steps = selection(reference, record.case, figures).steps
        of_case = [each for each in records if each.valid and each.case == record.case]
        hit = {each.step for each in of_case if applies(reference, each)}
        assert hit <= set(steps)

    def test_a_figure_with_a_measured_reference_is_comparable(
        self, finished: tuple[Run, Records]
    ) -> None:
        run, records = finished
        benchmarks = benchmarks_of(run)
        figures = figures_of_plan(run.plan, benchmarks)
        compared: set[str] = set()
        measured = Measured(aggregate(records))
        for name, case in benchmarks.cases.items():
            for reference in case.references:
                chosen = selection(reference, name, figures)
                for record in records:
                    if not record.valid or record.case != name or reference.against is None:
                        continue
                    if not applies(reference, record):
                        continue
                    assert record.step in chosen.steps
                    if measured.counterpart(record, reference.against) is not None:
                        compared.add(f"{name} {reference.against.metric}")
                        assert record.step in chosen.comparable
        assert compared >= {"hpcc dgemm_single", "hpcc dgemm_star"}


class TestTrait:
    @given(st.one_of(st.integers(0, 10**6), st.text(max_size=5)))
    def test_a_value_is_allowed_and_its_text_or_number_is_not(self, value: int | str) -> None:
        trait = Trait(frozenset({value}))
        assert trait.allows(value)
        other = str(value) if isinstance(value, int) else 7
        assert not trait.allows(other)

    @pytest.mark.parametrize(
        ("kind", "right", "wrong"),
        [
            ("int", [0, 8, 8.0], [-1, 1.5, "8"]),
            ("real", [0, 1.5], ["1.5", -1.0, float("inf")]),
            ("word", ["a", "A b"], [1, "", "a\n"]),
            ("lower", ["a"], ["A", 1]),
            ("size", [4096], ["4k", 0.5]),
            ("suffixed", [4096], ["4k"]),
        ],
    )
    def test_a_printed_value_has_the_type_of_its_reader(
        self, kind: Any, right: list[Any], wrong: list[Any]
    ) -> None:
        trait = Trait(kind=kind)
        assert all(map(trait.allows, right))
        assert not any(map(trait.allows, wrong))

    def test_two_traits_meet_in_a_value(self) -> None:
        one, two, word = Trait(frozenset({1})), Trait(frozenset({2})), Trait(kind="word")
        assert not one.meets(two)
        assert one.meets(one.joined(two))
        assert one.meets(Trait(kind="int"))
        assert Trait(kind="int").meets(Trait(kind="size"))
        assert not word.meets(Trait(kind="int"))
        assert not word.meets(one)
