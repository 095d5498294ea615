"""The decisions of a search: which points are needed, and which is the best."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fixtures.kit import examples
from tests.fixtures.shipped import shipped_benchmarks, shipped_site

from proofmark.cases.case import SearchRule
from proofmark.plan.expansion import make_plan
from proofmark.plan.plan import Plan, Step
from proofmark.plan.search import PASSES, Candidate, Search, SearchDecision, decide
from proofmark.site.machines import machines_of

AXES: Mapping[str, tuple[int, ...]] = {"a": (1, 2, 3), "b": (1, 2), "c": (1, 2, 3)}
Point = tuple[int, ...]


def search(repeats: int = 1, **rule: Any) -> Search:
    """Return a search over `AXES`; the ids of its steps are the point and the repeat."""
    given = {"metric": "rate", "axes": [*AXES], **rule}
    axes = given["axes"]
    made = SearchRule(**given)
    vars(made)["least_gain"] = 0.02
    points = itertools.product(*(AXES[axis] for axis in axes))
    return Search(
        id="search",
        case="fake",
        rule=made,
        better="higher",
        unit="MB/s",
        candidates=[
            Candidate(
                values=dict(zip(axes, point, strict=True)),
                steps=[step_id(point, repeat) for repeat in range(repeats)],
            )
            for point in points
        ],
    )


def step_id(point: Point, repeat: int = 0) -> str:
    return "-".join(map(str, (*point, repeat)))


def executed(of: Search, figures: Mapping[str, float | None]) -> SearchDecision:
    """Measure what the search needs until it ends; each decision needs a step that is new."""
    known: dict[str, float | None] = {}
    while not (decision := decide(of, known)).ended:
        new = {step: figures[step] for step in decision.needed if step not in known}
        assert new
        known |= new
    assert {*decision.needed} == {*known}
    return decision


def rates(values: Any) -> dict[str, float | None]:
    points = itertools.product(*AXES.values())
    return {step_id(point): value for point, value in zip(points, values, strict=True)}


VALUES = st.lists(st.one_of(st.none(), st.floats(1, 1000)), min_size=18, max_size=18)


class TestDecide:
    @given(VALUES)
    @examples(1)
    def test_it_ends_with_the_best_of_the_points_that_it_measured(
        self, values: list[float | None]
    ) -> None:
        figures = rates(values)
        decision = executed(search(), figures)
        valid = [value for step in decision.needed if (value := figures[step]) is not None]
        assert (decision.best is None) == (not valid)
        assert decision.value == max(valid, default=0.0)
        assert len(decision.needed) <= 1 + PASSES * sum(len(axis) - 1 for axis in AXES.values())

    @given(VALUES)
    @examples(0.5)
    def test_the_same_figures_give_the_same_decision(self, values: list[float | None]) -> None:
        decision = executed(search(), rates(values))
        all_figures = decide(search(), rates(values))
        assert all_figures == decision

    @pytest.mark.parametrize(("better", "best"), [("higher", 3), ("lower", 1)])
    def test_lower_is_better_if_the_metric_says_so(self, better: str, best: int) -> None:
        rising = search(axes=["a"]).model_copy(update={"better": better})
        decision = executed(rising, {step_id((value,)): 10.0 * value for value in AXES["a"]})
        assert decision.best is not None
        assert decision.best.values == {"a": best}

    def test_a_gain_within_the_noise_of_the_repeats_does_not_count(self) -> None:
        noisy = search(repeats=2, axes=["a"])
        figures = {
            step_id((value,), repeat): 100 * (1 + 0.1 * (value - 1)) * (1 + 0.3 * repeat)
            for value in AXES["a"]
            for repeat in (0, 1)
        }
        decision = executed(noisy, figures)
        assert decision.noise == pytest.approx(0.3 / 1.15 / 2)
        assert len(decision.needed) == 4  # 10 % from the first to the second value: no gain
        quiet = {step: value for step, value in figures.items() if step.endswith("-0")}
        assert len(executed(search(axes=["a"]), quiet).needed) == 3

    def test_one_invalid_repeat_makes_the_point_invalid(self) -> None:
        figures: dict[str, float | None] = {
            step_id((value,), repeat): 100.0 * value for value in AXES["a"] for repeat in (0, 1)
        }
        figures[step_id((3,), 1)] = None
        best = executed(search(repeats=2, axes=["a"]), figures).best
        assert best is not None
        assert best.values == {"a": 2}


PARTITIONS = [
    ("nurion", "knl"),
    ("nurion", "skl"),
    ("tachyon", "tachyon1"),
    pytest.param(("tachyon", "tachyon2"), marks=pytest.mark.soak),
    ("local", "local"),
]


@pytest.fixture(scope="module", params=PARTITIONS, ids=lambda names: names[1])
def tune(request: pytest.FixtureRequest) -> Plan:
    inventory, partition = request.param
    site = shipped_site(inventory, partition)
    return make_plan(shipped_benchmarks(), "tune", site, machines_of(site)[0], digest=False)


def what_runs(step: Step) -> tuple[object, ...]:
    """Return what a step starts; two points with the same measure the same."""
    files = (*step.arguments, *step.inputs.values(), *step.environment.items())
    return (step.repeat, step.ranks, step.threads, repr(step.cpus), step.nodes[0], files)


class TestHplTune:
    def test_no_two_points_start_the_same(self, tune: Plan) -> None:
        steps = list(tune.steps())
        assert len({what_runs(step) for step in steps}) == len(steps) > 0

    def test_a_parameter_varies_only_where_hpl_uses_it(self, tune: Plan) -> None:
        for step in tune.steps():
            columns = int(step.derived["q"])
            varied = (step.parameters["bcast"], step.parameters["depth"])
            if columns == 1:
                assert varied == (1, 1)
            if columns == 2:
                assert varied[0] in (1, 4, 5)
            assert int(step.derived["p"]) * columns == step.ranks

    def test_the_cost_counts_one_pass(self, tune: Plan) -> None:
        (only,) = tune.searches
        repeats = len(only.candidates[0].steps)
        assert tune.totals.steps == repeats * only.planned_candidates() < len(list(tune.steps()))
