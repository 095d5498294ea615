"""The three lines with which an acceptance ends."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from tests.fixtures.kit import GivenResults

from proofmark.judge.coverage import Coverage
from proofmark.judge.ending import LONGEST, MEANING, ending
from proofmark.judge.references.compare import Judgement
from proofmark.judge.results import WORDS, Result
from proofmark.judge.verdict import Verdict
from proofmark.records.columns import Record


def figure(word: str, value: float | None = 100.0, **changes: Any) -> Result:
    """Return a figure of the case `fake`; what fails misses a limit of 90."""
    fields: dict[str, Any] = {
        **dict.fromkeys(Record.__slots__, ""),
        "case": "fake",
        "metric": "rate",
        "value": value,
        "unit": "MB/s",
        "node": "n1",
        "parameters": {},
        **{name: changes.pop(name) for name in list(changes) if name in Record.__slots__},
    }
    ratio = None if value is None else value / 100
    limit = Judgement("derived", "s", word, "", 100.0, ratio, 0.9, None)
    reason = changes.pop("why", f"{value} is not enough")
    references = (limit,) if word in ("PASS", "FAIL") else ()
    return Result(Record(**fields), (), word, reason, references, **changes)


def verdict(*results: Result, **covered: Any) -> Verdict:
    counts = Counter(result.verdict for result in results)
    coverage = Coverage(**{"expected": 4, "measured": 4, "duplicate": 0, "missing": (), **covered})
    return Verdict("r", {word: counts[word] for word in WORDS}, coverage, GivenResults(results))


def lines(found: Verdict, *, strict: bool = False) -> tuple[str, str]:
    """Return the second and the third line; check what is true of every ending."""
    printed = ending(found, "/runs/r/report.html", strict=strict)
    assert all(line.isprintable() for line in printed)
    word = MEANING[found.exit_code(strict=strict)]
    counts = ", ".join(f"{found.counts[each]} {each}" for each in WORDS)
    measured = f"{found.coverage.measured} of 4 steps measured"
    assert printed[0] == f"{word}: {counts}; {measured}"
    report, _, command = printed[2].partition("; next: ")
    assert report == "report: /runs/r/report.html"
    return printed[1].removeprefix("worst: "), command


def test_a_pass_names_nothing_bad_and_the_command_that_signs() -> None:
    assert lines(verdict(figure("PASS"))) == (
        "no figure failed",
        "proofmark sign runs/r --key FILE",
    )


def test_figures_that_failed_come_the_furthest_from_their_limit_first() -> None:
    values = {"a": 80.0, "b": 10.0, "c": 89.0, "d": 50.0}
    found = [figure("FAIL", value, metric=name) for name, value in values.items()]
    worst, _ = lines(verdict(figure("PASS"), *found, figure("INVALID", None)))
    assert worst == (
        "FAIL fake b 10 MB/s: 10.0 is not enough | FAIL fake d 50 MB/s: 50.0 is not enough | "
        "FAIL fake a 80 MB/s: 80.0 is not enough"
    )
    assert lines(verdict(*found))[1] == "proofmark verdict runs/r"


def test_the_node_is_named_where_there_are_several() -> None:
    worst, _ = lines(verdict(figure("PASS"), figure("FAIL", 80.0, node="n2")))
    assert worst == "FAIL fake rate 80 MB/s on n2: 80.0 is not enough"


def test_figures_of_one_metric_are_told_apart_by_their_parameters() -> None:
    worst, _ = lines(verdict(figure("FAIL", 80.0, parameters={"n": 4, "layout": "shared"})))
    assert worst == "FAIL fake rate (n=4 layout=shared) 80 MB/s: 80.0 is not enough"


def test_a_failure_within_its_noise_is_measured_again() -> None:
    doubtful = figure("FAIL", 89.0, retest=True, steps=("0002-fake",))
    _, command = lines(verdict(doubtful, figure("FAIL", 10.0, steps=("0001-fake",))))
    assert command == "proofmark rerun runs/r 0002-fake, then proofmark report runs/r"


def test_what_fails_comes_before_what_is_invalid_and_that_before_a_hole() -> None:
    found = verdict(
        figure("INVALID", None, why="exit code 9", steps=("0003-fake",)),
        figure("INVALID", None, why="exit code 9", metric="other", steps=("0003-fake",)),
        figure("FAIL", 80.0),
        measured=3,
        missing=("0004-fake: n2",),
    )
    worst, command = lines(found)
    assert worst == (
        "FAIL fake rate 80 MB/s: 80.0 is not enough | INVALID fake rate no value: exit code 9 | "
        "not measured: 0004-fake: n2"
    )
    assert command == "the same ansible-playbook command again measures what is missing"


def test_a_hole_names_the_job_that_stopped() -> None:
    why = "job 00-0001: lost a node: n2"
    worst, _ = lines(verdict(figure("PASS"), measured=3, missing=("0004-fake",), stopped=(why,)))
    assert worst == f"not measured: {why}"


def test_invalid_steps_are_run_again_as_long_as_they_can_be_listed() -> None:
    def broken(count: int) -> Verdict:
        steps = (f"{number:04d}-fake" for number in range(count))
        return verdict(*(figure("INVALID", None, why="disturbed", steps=(s,)) for s in steps))

    command = lines(broken(2))[1]
    assert command == "proofmark rerun runs/r 0000-fake 0001-fake, then proofmark report runs/r"
    assert lines(broken(50))[1] == "proofmark verdict runs/r"


def test_a_figure_that_came_twice_is_named() -> None:
    worst, command = lines(verdict(figure("PASS"), duplicate=2))
    assert (worst, command) == (
        "figures that came twice from one step: 2",
        "proofmark verdict runs/r",
    )


@pytest.mark.parametrize("strict", [True, False])
def test_what_is_unjudged_needs_limits_where_it_is_not_accepted(strict: bool) -> None:
    worst, command = lines(verdict(figure("PASS"), figure("UNJUDGED")), strict=strict)
    assert worst == "no figure failed; figures without a limit: 1"
    assert command == (
        "add limits to the partition's facts, then proofmark report runs/r"
        if strict
        else "proofmark sign runs/r --key FILE"
    )


def test_steps_of_another_mode_need_a_confirmed_reboot() -> None:
    worst, command = lines(verdict(figure("PASS"), not_run=("0005-fake: NOT RUN",)))
    assert worst == "no figure failed; steps of another mode: 1"
    assert "-e confirm_reboot=true" in command


def test_hostile_and_long_reasons_stay_one_line() -> None:
    reason = "\x1b[31mred\nworst: " + "w " * 500
    worst, _ = lines(verdict(figure("INVALID", None, why=reason)))
    assert worst.startswith("INVALID fake rate no value: [31mred worst: w w")
    assert worst.endswith("w (and more)")
    assert len(worst) < LONGEST + 60
