"""A search during a run: which steps it runs, its end, continuation, and figures that are wrong."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path

import pytest
from tests.fixtures.kit import Kit, end, make_kit, steps_of

from proofmark.common.errors import BadInput
from proofmark.jobs.execute import execute
from proofmark.judge.judging import judge_run
from proofmark.plan.search import Figures, Search
from proofmark.records.read import figures_of
from proofmark.runs.progress import progress
from proofmark.runs.run import Run, open_run, read_decisions

RATES = {
    (1, 1): 100,
    (2, 1): 150,
    (3, 1): 120,
    (2, 2): 150.5,
    (1, 2): 400,
    (3, 2): 500,
}
"""The rate by size and depth. A search does not find (3, 2): each axis alone gives less there."""
PROGRAM = "\n".join(
    [
        'echo "size $1"; case "$1 $2" in',
        *(f'"{size} {depth}") echo "rate {rate}" ;;' for (size, depth), rate in RATES.items()),
        "esac; echo END",
    ]
)
SEARCH = {"metric": "rate", "axes": ["size", "depth"]}


def searching(tmp_path: Path, program: str = PROGRAM, **search: object) -> Kit:
    kit = make_kit(tmp_path)
    kit.case(
        sweep={"size": [1, 2, 3], "depth": [1, 2]},
        arguments=["{size}", "{depth}"],
        suites={"quick": {"search": {**SEARCH, **search}}},
    )
    kit.program(program)
    return kit


def measured(run: Run) -> dict[tuple[object, ...], str | None]:
    """Return the exit code of each step that ran, by its size and depth."""
    steps = {step.id: tuple(step.parameters.values()) for step in run.plan.steps()}
    return {steps[each.name]: code for each in steps_of(run) if (code := end(each))}


class TestSearch:
    def test_only_the_needed_points_run_and_the_others_have_the_reason(
        self, tmp_path: Path
    ) -> None:
        run, messages = searching(tmp_path).run(), list[str]()
        execute(run, "none", messages.append, figures_of)
        assert list(measured(run)) == [(1, 1), (2, 1), (2, 2), (3, 1)]
        reason = (
            "the search of size, depth ended: best size 2, depth 2, 150.5 MB/s; no axis gives a "
            "gain of more than 1.0% and the noise of 0.0%; 4 of 6 points measured"
        )
        ended = open_run(run.folder)
        assert set(ended.plan.not_needed.values()) == {reason}
        assert f"fake: {reason}" in messages
        assert messages[-1] == "4/4 steps"
        coverage = judge_run(ended).coverage
        assert (coverage.expected, coverage.measured, len(coverage.not_needed)) == (4, 4, 2)
        assert progress(ended, active=False).done == 4

    def test_the_job_is_submitted_once_for_each_axis(self, tmp_path: Path) -> None:
        run = searching(tmp_path).run()
        execute(run, "none", lambda line: None, figures_of)
        assert len(run.files.job(run.plan.groups[0].jobs[0].id).attempts()) == 2

    @pytest.mark.fault("search-point-invalid")
    @pytest.mark.parametrize("wrong", ["exit 1", "echo rate nonsense; echo END; exit"])
    def test_a_point_without_a_valid_figure_is_never_the_best(
        self, tmp_path: Path, wrong: str
    ) -> None:
        program = f'[ "$1" != 2 ] || {{ echo "size $1"; {wrong}; }}\n{PROGRAM}'
        run = searching(tmp_path, program).run()
        execute(run, "none", lambda line: None, figures_of)
        (reason,) = read_decisions(run.files).searches.values()
        assert "best size 3, depth 2, 500 MB/s" in reason

    def test_a_search_without_a_valid_figure_says_so(self, tmp_path: Path) -> None:
        run = searching(tmp_path, "exit 1").run()
        execute(run, "none", lambda line: None, figures_of)
        (reason,) = set(open_run(run.folder).plan.not_needed.values())
        assert "no point has a valid figure" in reason
        assert judge_run(open_run(run.folder)).exit_code() == 2

    def test_growth_stops_at_the_first_value_that_gives_no_more(self, tmp_path: Path) -> None:
        kit = searching(tmp_path, axes=["size"])
        run = kit.run()
        execute(run, "none", lambda line: None, figures_of)
        # At depth 2 the rate grows from size 2 to 3, but the search ended at size 2.
        assert list(measured(run)) == [(1, 1), (1, 2), (2, 1), (2, 2), (3, 1)]
        assert open_run(run.folder).plan.not_needed.keys() == {"0006-fake-3-2"}


class TestContinuation:
    def test_a_search_continues_from_its_results(self, tmp_path: Path) -> None:
        kit = searching(tmp_path)
        run = kit.run()
        seen: list[int] = []

        def stops(of: Run, search: Search, steps: Collection[str]) -> Figures:
            seen.append(len(steps))
            if len(steps) == 3:
                raise BadInput
            return figures_of(of, search, steps)

        with pytest.raises(BadInput):
            execute(run, "none", lambda line: None, stops)
        assert list(measured(run)) == [(1, 1), (2, 1), (3, 1)]
        again = kit.run(run_id=run.id)
        execute(again, "none", lambda line: None, figures_of)
        assert list(measured(run)) == [(1, 1), (2, 1), (2, 2), (3, 1)]
        attempts = {path.parent.name for path in run.folder.glob("workdir/steps/*/execution-2")}
        assert attempts == set()
        before: Mapping[str, object] = json.loads(run.files.decisions.read_text())
        execute(kit.run(run_id=run.id), "none", lambda line: None, figures_of)
        assert json.loads(run.files.decisions.read_text()) == before
