"""The three lines with which an acceptance ends."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from tests.fixtures.kit import GivenResults
from tests.fixtures.messages import disturbed, said

from proofmark.common.message import NOTHING, Message
from proofmark.common.printed_command import PrintedCommand
from proofmark.judge.additions import Finding, Suspect
from proofmark.judge.confidence import too_noisy
from proofmark.judge.coverage import Coverage, Uncovered
from proofmark.judge.diagnosis.bad_nodes import BadNode, BadNodes, SlowFigure
from proofmark.judge.ending import ending, next_command, open_points
from proofmark.judge.executions import RunConditions
from proofmark.judge.next_steps import LONGEST_REASON, named, next_steps
from proofmark.judge.references.judgement import Judgement
from proofmark.judge.results import NOT_BY_RERUN, WORDS, Again, InvalidCause, Result
from proofmark.judge.verdict import Verdict
from proofmark.records.columns import Execution, Record
from proofmark.runs.job_folder import StoppedJob
from proofmark.runs.stage_faults import StageFault
from proofmark.site.node.counters import CounterChange

NO_CAUSE: dict[str, Any] = {"causes": (), "counters": ()}


def expected(inventory: str) -> str:
    return f"proofmark init {inventory} --diff"


def figure(word: str, value: float | None = 100.0, **changes: Any) -> Result:
    """Return a figure of the case `fake`; its limit is 90."""
    fields: dict[str, Any] = {
        **dict.fromkeys(Record.__slots__, ""),
        "reason": NOTHING,
        "case": "fake",
        "metric": "rate",
        "value": value,
        "unit": "MB/s",
        "node": "n1",
        "parameters": {},
        **{name: changes.pop(name) for name in list(changes) if name in Record.__slots__},
    }
    ratio = None if value is None else value / 100
    limit = Judgement("contract", "s", word, NOTHING, 100.0, ratio, 0.9, None)
    reason = said(changes.pop("why", f"{value} is not enough"))
    references = (limit,) if word in ("PASS", "FAIL") else ()
    return Result(Record(**fields), (), word, reason, references, **changes)


def verdict(*results: Result, **covered: Any) -> Verdict:
    counts = Counter(result.verdict for result in results)
    lists = {
        name: tuple(Uncovered(text, said(text)) for text in covered.pop(name, ()))
        for name in ("missing", "not_run", "not_needed")
    }
    stopped = tuple(StoppedJob("", said(text)) for text in covered.pop("stopped", ()))
    given = {"expected": 4, "measured": 4, "duplicate": 0, **lists, **covered}
    coverage = Coverage(**given, stopped_jobs=stopped)
    return Verdict("r", {word: counts[word] for word in WORDS}, coverage, GivenResults(results))


def lines(judged: Verdict, *, strict: bool = False) -> tuple[str, str]:
    """Return the texts of the second and third line; check the first line and the report's path."""
    printed = ending(judged, "/runs/r/report.html", "runs/r", strict=strict)
    assert all(line.isprintable() for line in printed)
    first = judged.headline(strict=strict)
    counts = ", ".join(f"{judged.counts[word]} {word}" for word in WORDS)
    measured = f"{judged.coverage.measured} of 4 steps measured"
    assert printed[0] == f"{first.word}: {first.text}; {counts}; {measured}"
    report, _, command = printed[2].partition("; next: ")
    assert report == "report: /runs/r/report.html"
    return printed[1].removeprefix("worst: "), command


def test_a_pass_prints_the_command_that_signs() -> None:
    assert lines(verdict(figure("PASS"))) == (
        "no figure was judged",
        "proofmark sign runs/r --key FILE",
    )


def test_the_failed_figure_furthest_from_its_limit_is_first() -> None:
    values = {"a": 80.0, "b": 10.0, "c": 89.0, "d": 50.0}
    failed = [figure("FAIL", value, metric=name) for name, value in values.items()]
    worst, _ = lines(verdict(figure("PASS"), *failed, figure("INVALID", None)))
    assert worst == (
        "FAIL fake b 10 MB/s: 10.0 is not enough | FAIL fake d 50 MB/s: 50.0 is not enough | "
        "FAIL fake a 80 MB/s: 80.0 is not enough"
    )
    assert lines(verdict(*failed))[1] == "proofmark verdict runs/r"


@pytest.mark.parametrize(("word", "more"), [("FAIL", [1, 0]), ("INVALID", [2])])
def test_figures_with_other_reasons_are_other_kinds(word: str, more: list[int]) -> None:
    """A kind of FAIL has the code of a reason, one of INVALID a cause."""
    cause = InvalidCause.NO_END if word == "INVALID" else None
    reasons = [Message("no-row"), Message("killed", signal="SIGKILL"), Message("no-row")]
    given = [replace(figure(word), reason=reason, cause=cause) for reason in reasons]
    worst, _ = lines(verdict(*given))
    counted = [re.search(r" and (\d) more$", each) for each in worst.split(" | ")]
    assert [int(each[1]) if each else 0 for each in counted] == more


class SlowPort(Finding):
    """A finding of another package."""

    def suspects(self) -> Iterator[Suspect]:
        yield Suspect("port 7 is slow", "replace it", "n[1-2]", 3, ("n[1-2]",))


def test_a_suspect_of_a_package_is_the_step_for_what_it_explains() -> None:
    slow = [figure("FAIL", 50.0, node=node) for node in ("n[1-2]", "n[3-4]")]
    found = replace(verdict(*slow), added={"fabric": SlowPort()})
    suspect, other = next_steps(found)
    assert (suspect.word, suspect.problem, suspect.nodes) == ("FAIL", "port 7 is slow", "n[1-2]")
    assert (suspect.action, suspect.figures) == ("replace it", 3)
    assert (other.nodes, other.figures) == ("n[3-4]", 1)


def test_the_node_is_named_if_several_were_measured() -> None:
    worst, _ = lines(verdict(figure("PASS"), figure("FAIL", 80.0, node="n2")))
    assert worst == "FAIL fake rate 80 MB/s on n2: 80.0 is not enough"


@pytest.mark.parametrize(("others", "place"), [((), ""), (("n2",), " on n1")])
def test_a_noisy_figure_is_named_with_its_node_if_several_were_measured(
    others: tuple[str, ...], place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    noisy, noise = figure("UNJUDGED", 80.0, node="n1"), too_noisy(0.62, 0.1, 14)
    monkeypatch.setattr(GivenResults, "too_noisy", lambda self: iter([(noisy, noise)]))
    judged = verdict(noisy, *(figure("PASS", node=node) for node in others))
    *_, line = open_points(judged)
    assert line == f"UNJUDGED fake rate 80 MB/s{place}: {noise}"


def test_a_figure_is_named_with_its_parameters() -> None:
    worst, _ = lines(verdict(figure("FAIL", 80.0, parameters={"n": 4, "layout": "shared"})))
    assert worst == "FAIL fake rate (n=4 layout=shared) 80 MB/s: 80.0 is not enough"


def test_a_failure_within_its_noise_is_measured_again() -> None:
    within_noise = figure("FAIL", 89.0, retest=True, steps=("0002-fake",))
    _, command = lines(verdict(within_noise, figure("FAIL", 10.0, steps=("0001-fake",))))
    assert command == "proofmark rerun runs/r 0002-fake, then proofmark report runs/r"


def test_the_order_is_failed_then_invalid_then_missing() -> None:
    judged = verdict(
        figure("INVALID", None, why="exit code 9", steps=("0003-fake",)),
        figure("INVALID", None, why="exit code 9", metric="other", steps=("0003-fake",)),
        figure("FAIL", 80.0),
        measured=3,
        missing=("0004-fake: n2",),
    )
    worst, command = lines(judged)
    assert worst == (
        "FAIL fake rate 80 MB/s: 80.0 is not enough | INVALID fake rate no value: exit code 9 "
        "and 1 more | not measured: 0004-fake: n2"
    )
    assert command == "run the same ansible-playbook command again: it measures the missing steps"


def test_a_missing_step_is_explained_by_its_stopped_job() -> None:
    why = "job 00-0001: lost a node: n2"
    worst, _ = lines(verdict(figure("PASS"), measured=3, missing=("0004-fake",), stopped=(why,)))
    assert worst == f"not measured: {why}"


def test_a_few_invalid_steps_are_listed_in_the_rerun_command() -> None:
    def invalid(count: int) -> Verdict:
        steps = (f"{number:04d}-fake" for number in range(count))
        return verdict(*(figure("INVALID", None, why="exit code 1", steps=(s,)) for s in steps))

    advice = InvalidCause.OTHER.text
    command = lines(invalid(2))[1]
    rerun = "proofmark rerun runs/r 0000-fake 0001-fake, then proofmark report runs/r"
    assert command == f"{advice}: {rerun}"
    assert lines(invalid(50))[1] == f"{advice}: proofmark verdict runs/r"


@pytest.mark.parametrize("cause", InvalidCause)
def test_terminal_and_page_print_the_same_advice(cause: InvalidCause) -> None:
    """The terminal said "rerun" where the page said "replace the part first"."""
    judged = verdict(figure("INVALID", None, cause=cause, steps=("0001-fake",)))
    (step,) = next_steps(judged)
    advice = lines(judged)[1]
    assert step.action == cause.text.format(processes=named(()))
    assert advice.startswith(step.action)
    assert ("proofmark rerun" in advice) is (step.again is Again.RERUN)
    assert (step.cause, step.steps) == (cause, () if cause in NOT_BY_RERUN else ("0001-fake",))


def test_the_cause_with_the_most_figures_is_advised_first_with_all_its_steps() -> None:
    def of(cause: InvalidCause, number: int, why: str) -> Result:
        return figure("INVALID", None, cause=cause, why=why, steps=(f"{number:04d}-fake",))

    judged = verdict(
        of(InvalidCause.NO_SPACE, 1, "full"),
        *(of(InvalidCause.ERROR_COUNTERS, 2, "errors") for _ in range(3)),
        of(InvalidCause.ERROR_COUNTERS, 3, "other errors"),
    )
    advice = InvalidCause.ERROR_COUNTERS.text
    rerun = "proofmark rerun runs/r 0002-fake 0003-fake, then proofmark report runs/r"
    assert lines(judged)[1] == f"{advice}: {rerun}"


def test_a_node_that_needs_a_repair_is_not_measured_again_first() -> None:
    """Its figures fail within the noise, but its counters show a fault: the page says replace."""
    failed = figure("FAIL", 89.0, retest=True, steps=("0002-fake",), step="0002-fake")
    slow = SlowFigure(failed, -0.11)

    def judged(**of_node: Any) -> Verdict:
        node = BadNode("n1", (slow,), **{"retest": False, **of_node}, **NO_CAUSE)
        return replace(verdict(failed), bad=BadNodes((node,), measured=2))

    rerun = "proofmark rerun runs/r 0002-fake, then proofmark report runs/r"
    again = judged(retest=True)
    assert lines(again)[1] == rerun
    (first, *_rest) = next_steps(again)
    assert first.action.startswith("Measure again before you act")
    assert (first.nodes, first.steps, first.figures) == ("n1", ("0002-fake",), 1)
    broken = judged(known=(said("lost a DIMM"),))
    assert lines(broken)[1] == "proofmark verdict runs/r"
    assert next_steps(broken)[0].action.startswith("Send rma.csv to the vendor")


@pytest.mark.parametrize(
    ("code", "action"),
    [
        ("same-machine", "Find out which machine each of these names is"),
        ("same-file", "Ask who measured"),
        ("hardware-usual", "Replace the parts"),
    ],
)
def test_a_node_that_is_no_node_of_its_own_is_not_repaired(code: str, action: str) -> None:
    """The number of its nodes is no number of figures. The control is a part that is missing."""
    fields = {name: "x" for name in ("nodes", "key", "value", "case", "steps", "text")}
    nodes = tuple(
        BadNode(name, (), retest=False, known=(Message(code, **fields),), **NO_CAUSE)
        for name in ("n1", "n2")
    )
    (step,) = next_steps(replace(verdict(), bad=BadNodes(nodes, measured=2)))
    assert (step.word, step.nodes, step.figures) == ("FAIL", "n[1-2]", 0)
    assert step.action.startswith(action)


def test_two_counters_say_what_is_likely() -> None:
    """A node has a counter for each port and module: the others stand in the rows below."""
    changes = tuple(
        CounterChange(
            name=f"edac.{name}",
            before="0",
            after="9",
            difference=9,
            place=None,
            invalid=True,
            meaning=said("errors"),
        )
        for name in ("one", "two", "three")
    )
    node = BadNode("n1", (), retest=False, causes=(), counters=changes)
    assert all(name in f"{node.likely}" for name in ("one", "two"))
    assert "three" not in f"{node.likely}"


SECOND_ONLY = RunConditions(fixed=frozenset({"0001-fake"}))
"""Only the second of two steps can run again."""


def test_steps_that_cannot_run_again_are_in_no_command() -> None:
    """They use the files of another step in scratch: `proofmark rerun` refuses them."""
    invalid = [figure("INVALID", None, steps=(f"000{number}-fake",)) for number in (1, 2)]
    judged = replace(verdict(*invalid), conditions=SECOND_ONLY)
    assert lines(judged)[1].endswith(
        "proofmark rerun runs/r 0002-fake, then proofmark report runs/r"
    )
    failed = [
        figure("FAIL", 89.0, retest=True, steps=(f"000{number}-fake/n1",)) for number in (1, 2)
    ]
    assert replace(verdict(*failed), conditions=SECOND_ONLY).retest() == ("0002-fake/n1",)


@pytest.mark.parametrize("cause", sorted(NOT_BY_RERUN, key=str))
def test_no_rerun_is_advised_where_it_cannot_help(cause: InvalidCause) -> None:
    """A machine that is not that of the inventory needs the comparison of both."""
    judged = verdict(figure("INVALID", None, cause=cause, steps=("0001-fake",)))
    again = PrintedCommand("ansible-playbook", "x.yml", "-i", "inventory/mysite", "-l", "knl")
    for known, name in ((PrintedCommand(), "INVENTORY"), (again, "inventory/mysite")):
        command = ending(judged, "r.html", "runs/r", again=known)[2].partition("next: ")[2]
        assert "rerun" not in command
        if cause is InvalidCause.BINDING:
            assert command.endswith(f"Compare the machine with the inventory: {expected(name)}")


def test_the_advice_for_disturbed_figures_names_the_processes() -> None:
    """It repeats neither the rerun of single steps nor the verdict: the cause has to end first."""
    judged = verdict(*(figure("INVALID", None, cause=InvalidCause.DISTURBED) for _ in range(380)))
    execution = Execution("s", 1, 1, disturbed=disturbed("x"), disturbers=(("stress", 0.98),))
    object.__setattr__(judged.results.aggregates.records, "executions", [execution])
    assert lines(judged)[1] == (
        "Stop stress (98 % of a CPU). Then the same command repeats only the disturbed steps: "
        "run the same ansible-playbook command with -e run_id=r"
    )


def test_duplicate_figures_are_counted() -> None:
    worst, command = lines(verdict(figure("PASS"), duplicate=2))
    assert (worst, command) == (
        "duplicate figures of one step: 2",
        "proofmark verdict runs/r",
    )


@pytest.mark.parametrize("strict", [True, False])
def test_unjudged_figures_need_limits_if_strict(strict: bool) -> None:
    worst, command = lines(verdict(figure("PASS"), figure("UNJUDGED")), strict=strict)
    assert worst == "no figure was judged"
    assert command == (
        "Add items to contract.yml, then start a new run (-e fresh=true)"
        if strict
        else "proofmark sign runs/r --key FILE"
    )


def test_steps_of_another_mode_need_a_confirmed_reboot() -> None:
    worst, command = lines(verdict(figure("PASS"), not_run=("0005-fake: NOT RUN",)))
    assert worst == "no figure was judged"
    assert "-e confirm_reboot=true" in command


def test_after_a_failed_stage_the_same_command_runs_again() -> None:
    fault = StageFault(stage="scratch", nodes="n1", code="FULL", text="no space")
    judged = replace(verdict(figure("PASS")), conditions=RunConditions(stage_faults=(fault,)))
    known = PrintedCommand("ansible-playbook", "site.yml")
    assert next_command(judged, judged.exit_code(), "runs/r", known) == (
        "Solve the cause on these nodes. Then run the same command again: ansible-playbook site.yml"
    )


def test_reasons_with_control_characters_or_excess_length_become_one_line() -> None:
    reason = "\x1b[31mred\nworst: " + "w " * 500
    worst, _ = lines(verdict(figure("INVALID", None, why=reason)))
    assert worst.startswith("INVALID fake rate no value: [31mred worst: w w")
    assert worst.endswith("w (and more)")
    assert len(worst) < LONGEST_REASON + 60


def test_a_sentence_is_said_once() -> None:
    """Three figures that one disturbance made INVALID are one, with the number of the others."""
    judged = verdict(
        *(
            figure("INVALID", cause=InvalidCause.DISTURBED, parameters={"step": step})
            for step in range(3)
        ),
        *(figure("FAIL", 80.0 - step, node=f"n{step}") for step in range(4)),
    )
    worst, _ = lines(judged)
    assert worst.count("INVALID fake") == worst.count("FAIL fake") == 1
    assert "and 3 more (n0, n1, n2) | INVALID" in worst and worst.endswith("and 2 more")
