"""The statistics of a stability run, its causes, and the time that counts."""

from __future__ import annotations

import re
from dataclasses import replace
from math import inf, nan
from typing import Any

import pytest

from proofmark.packages.stability.job_causes import JobEnd, Shown, cause_of, nodes_lost
from proofmark.packages.stability.job_runs import JobRun
from proofmark.packages.stability.sampling import mean_time_interval, risks_of, unreachable
from proofmark.packages.stability.stability_plan import StabilityTest, lanes
from proofmark.packages.stability.tally import tally
from proofmark.packages.stability.terms import StabilityTerms
from proofmark.plan.plan import Job, Step
from proofmark.runs.job_folder import Look, State
from proofmark.site.contract_document import ContractItem

HOUR = 3600.0
FS: JobEnd = "file-system"


def item(metric: str, value: float, **limit: Any) -> ContractItem:
    fields = {"number": "7", "text": "t", "unit": "h", "value": value, **limit}
    return ContractItem.model_validate({"case": "stability", "metric": metric, **fields})


# The true risks of standard test plans of MIL-HDBK-781A: the discrimination ratio, the duration in
# multiples of the lower test MTBF, the failures that are accepted, the risks of producer and
# consumer in percent.
@pytest.mark.parametrize(
    ("ratio", "duration", "accepted", "producer", "consumer"),
    [(1.5, 45.0, 36, 12.0, 9.9), (2, 18.8, 13, 9.6, 10.6), (3, 9.3, 5, 9.4, 9.9)],
    ids=["IX-D", "XII-D", "XV-D"],
)
def test_the_risks_are_those_of_the_handbook(
    ratio: float, duration: float, accepted: int, producer: float, consumer: float
) -> None:
    failures = item("interrupts", accepted, at_most=1)
    bad, good = duration / accepted, duration / ratio / accepted
    risks = risks_of(failures, 336, 0, good, bad)
    assert risks is not None
    assert risks.most == accepted
    assert 100 * risks.producer == pytest.approx(producer, abs=0.06)
    assert 100 * risks.consumer == pytest.approx(consumer, abs=0.06)


def test_the_interval_has_the_chi_square_limits() -> None:
    """χ²(0.95; 2) is 5.991, χ²(0.95; 12) 21.026 and χ²(0.05; 10) 3.940 in each table."""
    for found, expected in (
        (mean_time_interval(336, 0), (672 / 5.991, inf)),
        (mean_time_interval(100, 5), (200 / 21.026, 200 / 3.940)),
    ):
        assert found == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize(
    ("metric", "value", "unit", "limit"),
    [
        ("mtbi", 500, "h", "at most 336 h: .*; 21 days"),
        ("mtbi", 336, "h", ""),
        ("mtbi_low", 113, "h", r"at most 112\.2 h: .*; 15 days"),
        ("mtbi_low", 112, "h", ""),
        ("hours", 337, "h", "at most 336 h: .*; 15 days"),
        ("load", 81, "%", "at most 80 %"),
        ("load", 80, "%", ""),
        ("jobs_finished", 101, "%", "at most 100 %"),
        ("availability", 100, "%", ""),
        ("jobs_started", 1e6, "jobs", ""),
    ],
)
def test_an_item_that_no_machine_can_meet_in_the_time_is_found(
    metric: str, value: float, unit: str, limit: str
) -> None:
    """The terms are 14 days with a load of 0.8. The days that are named are enough."""
    terms = StabilityTerms(days=14, load=0.8)
    of_item = item(metric, value, unit=unit, at_least=1)
    found = unreachable(of_item, terms)
    assert (found is not None) == bool(limit)
    if found:
        assert re.match(limit, found[1])
    if days := re.search(r"(\d+) days are enough", found[1] if found else ""):
        enough = terms.model_copy(update={"days": float(days[1])})
        assert unreachable(of_item, enough) is None
        less = terms.model_copy(update={"days": float(days[1]) - 1})
        assert unreachable(of_item, less) is not None
    assert unreachable(item(metric, value, unit=unit, at_most=1), terms) is None
    assert unreachable(of_item.model_copy(update={"case": "other"}), terms) is None


@pytest.mark.parametrize(
    ("metric", "limit", "most", "jobs"),
    [
        ("jobs_finished", {"value": 95, "at_least": 1}, 10, 200),
        ("mtbi", {"value": 100, "at_least": 1}, 3, 0),
        ("mtbi", {"value": 400, "at_least": 1}, -1, 0),
        ("mtbi_low", {"value": 112, "at_least": 1}, 0, 0),
        ("nodes_lost", {"value": 2, "at_most": 1}, 2, 0),
    ],
)
def test_the_failures_that_an_item_accepts(
    metric: str, limit: dict[str, Any], most: int, jobs: int
) -> None:
    risks = risks_of(item(metric, **limit), 336, 200, 0.5, 2)
    assert risks is not None
    assert (risks.most, risks.jobs) == (most, jobs)
    assert risks_of(item("availability", 99, at_least=1), 336, 200, 0.5, 2) is None


STEP = Step(
    id="00001-fake",
    case="fake",
    repeat=1,
    nodes=["n1"],
    ranks=1,
    threads=1,
    placement="",
    parameters={},
    derived={},
    package="fake",
    program="fake",
    launch="process",
    arguments=[],
    environment={},
    inputs={},
    output="stdout",
    variants={},
    cpus=[],
    seconds=60,
    timeout=60,
    bytes=0,
)


def test_of(hosts: int = 2, sizes: tuple[int, ...] = (1,), **terms: Any) -> StabilityTest:
    names = [f"n{number}" for number in range(1, hosts + 1)]
    mix = [STEP.model_copy(update={"nodes": names[:size]}) for size in sizes]
    usual = {"hours": 2, "load": 1, "restart_on": [], "good": 0.5, "bad": 2}
    return StabilityTest(**{**usual, **terms}, hosts=names, counted=STEP, mix=mix)


test_of.__test__ = False  # type: ignore[attr-defined]


def job(number: int, begin: float, end: float, **changes: Any) -> JobRun:
    """Return a job on n1 from `begin` to `end`, in hours."""
    planned = Job(id=f"000-{number:05d}", nodes=["n1"], steps=[STEP])
    times = {"submitted": begin * HOUR, "started": begin * HOUR, "ended": end * HOUR}
    usual = {"state": State.ENDED, "reason": "", "withdrawn": False, "open": False}
    return JobRun(**{"job": planned, **times, **usual, **changes})


@pytest.mark.parametrize(
    ("changes", "shown", "down", "cause"),
    [
        ({}, Shown(code=0), False, None),
        ({"open": True, "state": State.RUNNING}, Shown(), False, None),
        ({"withdrawn": True, "state": State.CANCELLED}, Shown(), False, None),
        ({}, Shown(code=1), False, "unknown"),
        ({}, Shown(code=139), False, "program"),
        ({}, Shown(code=0, reasons={"reader-no-line"}), False, "unknown"),
        ({}, Shown(code=0, reasons={"disturbed"}), False, "invalid"),
        ({"withdrawn": True, "state": State.CANCELLED}, Shown(), True, "node"),
        ({"withdrawn": True, "state": State.NODE_FAILED}, Shown(), False, "node"),
        ({"withdrawn": True, "state": State.KILLED}, Shown("x: Stale file handle\n"), False, FS),
        ({"withdrawn": True, "state": State.KILLED}, Shown("No route to host"), False, None),
        ({"withdrawn": True}, Shown(code=0, reasons={"disturbed"}), False, "invalid"),
        ({}, Shown(code=137), False, "unknown"),
        ({}, Shown(code=1, timed_out=True), False, "unknown"),
        ({}, Shown("x: Stale file handle\n", code=1), False, "file-system"),
        ({}, Shown("x: Stale file handle\n", code=0), False, None),
        ({}, Shown(code=1, files=True), False, "file-system"),
        ({}, Shown("No route to host", code=1), False, "fabric"),
        ({}, Shown("No route to host", code=1), True, "node"),
        ({"state": State.NODE_FAILED}, Shown(), False, "node"),
        ({"state": State.REFUSED}, Shown(), False, "scheduler"),
        ({"state": State.CANCELLED}, Shown(), False, "scheduler"),
        ({"state": State.TIME_LIMIT}, Shown("Input/output error"), False, "file-system"),
        ({"state": State.TIME_LIMIT}, Shown(), False, "unknown"),
        ({"state": State.ENDED_UNKNOWN}, Shown(), False, "unknown"),
        ({"state": State.TIME_LIMIT}, Shown(code=1), False, "unknown"),
        ({}, Shown(), False, "unknown"),
        ({}, Shown(code=0, timed_out=True), False, "unknown"),
        ({"state": State.FAILED}, Shown(code=0), False, "unknown"),
    ],
)
def test_the_cause(changes: dict[str, Any], shown: Shown, down: bool, cause: JobEnd | None) -> None:
    assert cause_of(job(1, 0, 1, **changes), shown, node_down=down) == cause


def test_the_node_whose_hardware_failed_is_the_lost_one() -> None:
    """No look shows a node that is down; without the report of a node it is the first one."""
    one = job(1, 0, 2)
    both = replace(one, job=one.job.model_copy(update={"nodes": ["n1", "n2"]}))
    for faulty, lost in (({one.job.id: {"n2"}}, ("n2",)), ({}, ("n1",))):
        assert tally(test_of(), [both], ["node"], [], faulty).lost == lost


@pytest.mark.core("the package works")
def test_a_failure_begins_the_time_again() -> None:
    jobs = [job(1, 0, 1), job(2, 1, 1.5), job(3, 1.5, 2.5), job(4, 2.5, 3.5), job(5, 3.5, 4)]
    causes: list[JobEnd | None] = [None, "fabric", None, None, "program"]
    whole = tally(test_of(), jobs, causes, [])
    assert (whole.begin, whole.end, whole.restarts) == (0, 2 * HOUR, 0)
    assert (whole.started, whole.finished, whole.failed["fabric"]) == (3, 2, 1)
    again = tally(test_of(restart_on=["fabric"]), jobs, causes, [])
    assert (again.begin, again.end, again.restarts) == (1.5 * HOUR, 3.5 * HOUR, 1)
    assert (again.started, again.failed["fabric"], again.failed["program"]) == (3, 0, 1)
    assert again.interrupts == 0
    open_ = tally(test_of(restart_on=["program"]), jobs, causes, [])
    assert (open_.end, open_.over) == (inf, False)


def every_minute(begin: float, end: float, down: dict[str, str] | None = None) -> list[Look]:
    """Return a look for each minute from `begin` to `end`, in hours."""
    return [
        Look(60.0 * minute, down or {}) for minute in range(round(60 * begin), round(60 * end) + 1)
    ]


def test_a_time_in_which_nobody_looked_is_not_available() -> None:
    """The controller is away for five hours; a job runs in the first of them."""
    looks = [Look(0, {}), Look(300, {"n2": "down"}), Look(600, {}), Look(6 * HOUR, {})]
    looks.append(Look(6 * HOUR + 600, {}))
    jobs = [job(1, 0, 1), job(2, 6, nan, state=State.RUNNING, open=True)]
    found = tally(test_of(), jobs, [None, None], looks)
    assert found.hours == pytest.approx(1 + 600 / HOUR)
    assert (found.over, found.running, found.started, found.finished) == (False, 1, 2, 1)
    assert found.seen.looked == pytest.approx(1200 / HOUR)
    assert found.seen.unseen == pytest.approx(6 - 600 / HOUR)
    assert found.availability == pytest.approx((2 * 1200 - 300) / (2 * (6 * HOUR + 600)))
    assert found.seen.up_when_seen == pytest.approx(1 - 300 / (2 * 1200))


def test_a_whole_time_with_looks_is_available_as_seen() -> None:
    looks = [*every_minute(0, 1), *every_minute(1, 2, {"n2": "down"})[1:]]
    found = tally(test_of(), [job(1, 0, 2)], [None], looks)
    assert (found.over, found.seen.unseen, dict(found.doubts)) == (True, 0, {})
    assert found.availability == found.seen.up_when_seen == pytest.approx(0.75, abs=1 / 120)
    assert tally(test_of(), [job(1, 0, 2)], [None], every_minute(0, 2)).availability == 1


def test_without_a_look_no_availability_is_known() -> None:
    for looks in ([], [Look(HOUR, {})], [Look(0, {}), Look(2 * HOUR, {})]):
        found = tally(test_of(), [job(1, 0, 2)], [None], looks)
        assert (found.over, found.hours, found.availability) == (True, 2, None)
        assert found.seen.unseen == 2
        assert "availability" not in found.text()
        assert {name: found.doubts[name].value for name in ("hours", "mtbi", "mtbi_low")} == {
            **{"hours": 0, "mtbi": 0, "mtbi_low": 0}
        }
        assert found.doubts["hours"].reason.code == "stability-unseen"


def test_a_node_of_which_the_scheduler_tells_nothing_is_not_seen() -> None:
    looks = [Look(each.time, {}, unknown=("n2",)) for each in every_minute(0, 2)]
    found = tally(test_of(), [job(1, 0, 2)], [None], looks)
    assert (found.availability, found.seen.up_when_seen) == (0.5, 1)
    assert {name: doubt.value for name, doubt in found.doubts.items()} == {"availability": 100}
    assert found.doubts["availability"].reason.fields == {"unseen": "1", "hours": "2"}
    none = [Look(each.time, {}, unknown=("n1", "n2")) for each in looks]
    assert tally(test_of(), [job(1, 0, 2)], [None], none).availability is None


def test_the_doubt_of_a_gap_is_what_the_figures_are_without_it() -> None:
    """Nobody looks in the second of four hours; a job fails in it."""
    looks = [*every_minute(0, 1), *every_minute(2, 4)]
    jobs = [job(1, 0, 1), job(2, 1, 2), job(3, 2, 4)]
    found = tally(test_of(1, hours=4), jobs, [None, "unknown", None], looks)
    assert (found.hours, found.mtbi, found.load, found.lost) == (4, 4, 1, ())
    assert found.availability == pytest.approx(0.75)
    values = {name: doubt.value for name, doubt in found.doubts.items()}
    assert values.pop("mtbi_low") == pytest.approx(mean_time_interval(3, 1)[0])
    expected = {"availability": 100, "hours": 3, "mtbi": 3, "load": 75, "nodes_lost": 1}
    assert values == pytest.approx(expected)


def test_invalid_and_withdrawn_jobs() -> None:
    """The kit cancels two jobs; a node of one of them is dead. A third result is INVALID."""
    gone = {"withdrawn": True, "state": State.CANCELLED}
    jobs = [job(1, 0, 1), job(2, 0.5, 1, **gone), job(3, 1, 1.5, **gone), job(4, 1.5, 2)]
    looks = [*every_minute(0, 0.75), *every_minute(0.75, 1.25, {"n1": "down"})[1:]]
    looks += every_minute(1.25, 2)[1:]
    ends = [None, *(cause_of(j, Shown(), node_down=bool(nodes_lost(j, looks))) for j in jobs[1:3])]
    assert ends == [None, "node", None]
    found = tally(test_of(), jobs, [*ends, "invalid"], looks)
    assert (found.started, found.finished, found.invalid, found.failed["node"]) == (3, 1, 1, 1)
    assert (found.interrupts, found.lost) == (1, ("n1",))
    assert "jobs_finished: 33.3" in found.text()


def test_the_counts_as_the_reader_gets_them() -> None:
    """Two of five jobs fail, and one is INVALID; a sixth one was refused and never ran."""
    jobs = [job(number, number / 4, (number + 1) / 4) for number in range(6)]
    jobs.append(job(6, 1, 1, started=nan, state=State.REFUSED, reason="no account"))
    ends: list[JobEnd | None] = ["node", None, "program", "invalid", None, None, "scheduler"]
    looks = every_minute(0, 0.5) + every_minute(0.5, 1.5, {"n2": "down"})[1:]
    found = tally(test_of(2, hours=1.5), jobs, ends, looks)
    assert (found.over, found.seen.unseen, found.lost_unseen) == (True, 0, ())
    assert (found.lost, found.nodes) == (("n1",), 2), "no look shows which node was lost"
    shown = [(each.job, each.cause, each.state, each.reason) for each in found.failures]
    assert shown == [
        ("000-00000", "node", "ended", ""),
        ("000-00002", "program", "ended", ""),
        ("000-00006", "scheduler", State.REFUSED.value, "no account"),
    ]
    assert (found.ended, found.running, found.interrupts) == (7, 0, 2)
    values = dict(line.split(": ") for line in found.text().splitlines() if ": " in line)
    low = mean_time_interval(1.5, 2)[0]
    expected = {"mtbi": 0.75, "mtbi_low": low, "hours": 1.5, "interrupts": 2, "nodes_lost": 1}
    expected |= {"jobs_started": 6, "jobs_finished": 300 / 7, "load": 50, "availability": 200 / 3}
    numbers = {name: float(values[name].split()[0]) for name in expected}
    assert numbers == pytest.approx(expected, rel=0.02)
    failed = [line for line in found.text().splitlines() if line.startswith("failed: ")]
    assert [line.split()[1:] for line in failed] == [
        *(["node", "1"], ["fabric", "0"], ["file-system", "0"], ["scheduler", "1"]),
        *(["program", "1"], ["unknown", "0"]),
    ]
    assert "scheduler 1" in f"{found.label}" and "1 INVALID" in f"{found.label}"


def test_the_doubt_about_an_availability_is_a_share_of_the_seen_time() -> None:
    """A node is down in the first of three hours; nobody looks in the last one."""
    looks = [*every_minute(10, 11, {"n1": "down"}), *every_minute(11, 12)[1:], Look(13 * HOUR, {})]
    found = tally(test_of(1, hours=3), [job(1, 10, 13)], [None], looks)
    assert found.availability == pytest.approx(1 / 3, abs=0.01)
    assert found.doubts["availability"].value == pytest.approx(50, abs=1)
    assert found.doubts["availability"].reason.fields == {"unseen": "1", "hours": "3"}
    assert found.doubts["mtbi"].reason.fields == {"unseen": "1", "hours": "3"}


def test_a_run_is_judged_until_the_last_that_is_known_of_it() -> None:
    looks, running = every_minute(10, 11), {"state": State.RUNNING, "open": True}
    for jobs, hours in (
        ([job(1, 10, nan, **running)], 1),
        ([job(1, 10, 12)], 2),
        ([job(1, 10, 10.5), job(2, 11.5, nan, **running)], 1.5),
    ):
        found = tally(test_of(hours=5), jobs, [None] * len(jobs), looks)
        assert (found.over, found.seen.hours) == (False, hours)
        assert found.seen.looked == 1
    none = tally(test_of(), [], [], looks)
    assert (none.over, none.availability, none.seen.unseen, none.seen.hours) == (False, None, 0, 0)
    left = tally(
        test_of(1, hours=1), [job(1, 10, 11), job(2, 11, nan, **running)], [None] * 2, looks
    )
    assert (left.end, left.over, left.running) == (11 * HOUR, False, 1)
    waits = job(2, 11, nan, started=nan, state=State.WAITING, open=True)
    assert tally(test_of(1, hours=1), [job(1, 10, 11), waits], [None] * 2, looks).over


def test_a_node_that_is_down_long_after_a_withdrawn_job_did_not_stop_it() -> None:
    looks = [*every_minute(0, 0.9), *every_minute(5, 6, {"n1": "down"})]
    assert nodes_lost(job(1, 0, 1, withdrawn=True), looks) == set()
    assert nodes_lost(job(1, 0, 1), looks) == {"n1"}


@pytest.mark.parametrize(
    ("sizes", "load", "first", "found"),
    [
        ((1, 2, 4, 8), 1.0, 0, [8, 4, 2, 1, 1]),
        ((1, 2, 4, 8), 0.5, 1, [4, 2, 1, 1]),
        ((1, 2, 4, 8), 1.0, 1, [4, 2, 1, 8, 1]),
        ((2, 4), 0.95, 0, [4, 2, 4, 2, 2]),
    ],
)
def test_the_lanes_fill_the_load(
    sizes: tuple[int, ...], load: float, first: int, found: list[int]
) -> None:
    made = list(lanes(test_of(16, sizes, load=load), first))
    assert sum(made) <= 16 * load
    assert made == found
