"""The lists of issues, exceptions, commands and spare parts of one run: each line of them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from tests.fixtures.cells import Tables, lists
from tests.fixtures.finished import own_number, seal, written_verdict
from tests.fixtures.fleet import fleet_run
from tests.fixtures.kit import carried_out, execution, item, make_kit, steps_of
from tests.fixtures.messages import said
from tests.fixtures.pages import Page
from tests.fixtures.pairs import fleet_of_nodes
from tests.fixtures.report_run import page_of
from tests.unit.report.test_disturbed import NODE

from proofmark.judge.coverage import Degraded, Uncovered
from proofmark.judge.diagnosis.bad_nodes import rma
from proofmark.judge.verdict import Verdict
from proofmark.records.columns import EMULATED
from proofmark.report.run_data import gather
from proofmark.report.sections.signed_sheets import exceptions
from proofmark.runs.job_folder import StoppedJob
from proofmark.runs.nodes import probed_nodes
from proofmark.runs.run import Run, Seal
from proofmark.site.node.counters import CounterChange
from proofmark.software.software import Software

RATES: dict[str, float | Sequence[float]] = {
    f"n{number:02}": [100.0 + number, 101.0 + number, 99.5 + number] for number in range(12)
}
PLACE = "P1-DIMMB1"
"""The label of a DIMM."""
HALVED = "disturbed: rate changed from 105 to 40 within the repeat, by 62%, more than 20%"
RISEN = "disturbed: rate changed from 40 to 105 within the repeat, by 62%, more than 20%"
STRESS = (
    "disturbed: the ranks got 41 % of their CPUs; a thread waited 57 % of the time, "
    "more than 10 %; a thread waited 60 % of a second, more than 50 %; "
    "other processes: stress (54 % of a CPU)"
)
APART = "Like nodes that are not one population"


@pytest.fixture(scope="module")
def troubled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Verdict, str]:
    """Return a run of twelve nodes, most of them with something that limits its verdict."""
    run = fleet_run(
        tmp_path_factory.mktemp("lists"),
        RATES | {"n05": [105.0, 40.0, 105.0], "n06": 106.0},
        items=[item(case="fake", metric="rate", value=50, unit="MB/s", at_least=1, number="1")],
        more=2,
        case={"undisturbed": {"least_seconds": 3600, "metric": "rate"}},
        changes={
            "n09": {"bios_version: 3.1": "bios_version: 2.9"},
            "n07": {
                "counters/symbol_error: 0": "counters/symbol_error: 5",
                "dimm1/dimm_label: CPU_SrcID#0_MC#0_Chan#1_DIMM#0": f"dimm1/dimm_label: {PLACE}",
            },
            "n10": {"machine: none": "machine: kvm"},
        },
        after={
            "n07": {
                "edac/mc0/dimm1/dimm_ue_count: 0": "edac/mc0/dimm1/dimm_ue_count: 2",
                "edac/mc1/ue_noinfo_count: 0": "edac/mc1/ue_noinfo_count: 5",
                "counters/symbol_error: 5": "counters/symbol_error: 0",
            },
            "n08": {"vmstat/oom_kill: 0": "vmstat/oom_kill: 2"},
        },
    )
    for host in ("n02", "n03"):
        folder = run.folder / "workdir/steps/0001-fake" / host / "execution-1"
        (folder / "noise.json").write_text(json.dumps([{**NODE, "host": host}]))
        seal(folder)
    verdict = written_verdict(run)
    return run, verdict, page_of(run, verdict)


def test_each_disturbed_execution_is_listed(troubled: tuple[Run, Verdict, str]) -> None:
    """Those of one cause in one line, with the first reason; unsteady ones too."""
    _, verdict, page = troubled
    found = lists(page)["Disturbed executions"]
    assert found == [
        f"2 disturbed executions of 0001-fake/n[02-03]; the first: {STRESS}",
        f"0001-fake/n05, execution 1: {HALVED}",
        *(f"000{number}-fake/n05, execution 1: {RISEN}" for number in (2, 3)),
    ]
    executions = verdict.results.aggregates.records.executions
    shown = [each.step for each in executions if each.disturbed or each.unsteady]
    assert len(shown) == 5


def test_the_exceptions_of_a_run_are_on_its_page(troubled: tuple[Run, Verdict, str]) -> None:
    tables = Tables(troubled[2])
    assert tables.of("What limits this verdict") == [
        ("NOTE", "Virtual nodes: another machine decides on their speed", "n10"),
        ("NOTE", "The nodes differ in BIOS; most have 3.1", "n09"),
        ("NOTE", "Figures that were measured once, with unknown noise: 1", "–"),
        ("NOTE", "Executions that other work disturbed: 5", "–"),
    ]


def test_each_kind_of_exception_has_its_row(troubled: tuple[Run, Verdict, str]) -> None:
    """The rows of a run with all of them, in their order."""
    run, verdict, _ = troubled
    data = gather(run, verdict)
    modes = ("snc2", "snc1", "snc2")
    stopped = tuple(StoppedJob(name, said(f"job {name} ended")) for name in ("00-0002", "00-0003"))
    coverage = replace(
        verdict.coverage,
        not_run=tuple(Uncovered(mode, said(mode), mode=mode) for mode in modes),
        stopped_jobs=stopped,
    )
    partition = data.site.partition.model_copy(update={"origin": EMULATED, "host_cpus": "0-3"})
    assert data.software
    (package,) = data.software.packages.values()
    found = package.model_copy(update={"findings": (said("an old kernel"), said("no threads"))})
    worse = replace(
        data,
        verdict=replace(
            verdict,
            coverage=coverage,
            degraded=Degraded(11, 14, ("n12", "n13", "n14")),
            counts={**verdict.counts, "UNJUDGED": 1200},
        ),
        site=data.site.model_copy(update={"partition": partition}),
        run=replace(run, plan=run.plan.model_copy(update={"assumed": ["node.clock", "rails"]})),
        software=Software(packages={"fake": found}),
        nodes=data.nodes[2:],
    )
    assert [*exceptions(worse)] == [
        ("DEGRADED", "degraded: 11 of 14 nodes", "without n[12-14]"),
        ("NOT RUN", "Steps of modes that were not entered (snc1, snc2): 3", ""),
        ("NOT RUN", "Jobs that ended before their last step, 2: job 00-0002 ended", ""),
        ("NOTE", "Emulated: a rehearsal, not a measurement of a machine", ""),
        ("NOTE", "The CPUs of another machine stand for those of the nodes", ""),
        ("NOTE", "Virtual nodes: another machine decides on their speed", "n10"),
        ("NOTE", "Facts of the hardware without a source: node.clock, rails", ""),
        ("NOTE", "2 of 12 nodes without provenance", ""),
        ("NOTE", "fake: an old kernel", ""),
        ("NOTE", "fake: no threads", ""),
        ("NOTE", "The nodes differ in BIOS; most have 3.1", "n09"),
        ("NOTE", "UNJUDGED figures, as no limit says that they are good enough: 1200", ""),
        ("NOTE", "Figures that were measured once, with unknown noise: 1", ""),
        ("NOTE", "Executions that other work disturbed: 5", ""),
    ]
    bare = replace(data, software=None, verdict=verdict)
    assert ("NOTE", "The programs were not recorded", "") in [*exceptions(bare)]


COUNTERS = "Error counters that changed while the benchmarks ran"


def test_each_changed_counter_is_a_row(troubled: tuple[Run, Verdict, str]) -> None:
    run, _, page = troubled
    titles, *rows = Tables(page).rows[COUNTERS]
    assert titles == ("Effect", "Meaning", "Node", "Counter", "Place", "Before", "After")
    changes: dict[str, tuple[str, CounterChange]] = {}
    for node in probed_nodes(run).values():
        changes |= {each.name: (node.host, each) for each in node.jobs[0].provenance.changes}
    rows = [row for row in rows if row != titles]
    assert len(rows) == len(changes) == 4
    for effect, meaning, host, name, place, before, after in rows:
        of_host, change = changes[name]
        assert (host, place) == (of_host, change.place or "–")
        assert (before, after, meaning) == (change.before, change.after, f"{change.meaning}")
        assert effect == ("INVALID" if change.invalid else "information")


def test_the_vendor_gets_each_part_with_its_own_evidence(
    troubled: tuple[Run, Verdict, str],
) -> None:
    """A counter with a place stands in the row of the place; one that was reset is no evidence."""
    run, verdict, _ = troubled
    rows = rma(
        [replace(node, known=()) for node in verdict.bad.nodes],
        {node.host: node.newest for node in probed_nodes(run).values()},
    )
    part, rest = "uncorrected memory errors", "uncorrected memory errors in an unknown DIMM"
    assert rows == [
        ("n07", "3A1B0001", PLACE, f"{part} at {PLACE}: edac/mc0/dimm1/dimm_ue_count +2"),
        ("n07", own_number("n07", "S"), "", f"{rest}: edac/mc1/ue_noinfo_count +5"),
    ]


BY_NAME = (
    "n[00,03,05-06,09-10,12,15] | others: no place and no setting that is known separates them"
)


@pytest.mark.parametrize(("known", "fact"), [(True, "BIOS: 2.9 | 3.1"), (False, BY_NAME)])
def test_like_nodes_of_two_levels_are_one_line(tmp_path: Path, known: bool, fact: str) -> None:
    """The setting that separates them is named if it is known."""
    slow = {f"n{number:02}" for number in (0, 3, 5, 6, 9, 10, 12, 15)}
    rates = {
        host: [80.0 + number / 100, 80.1] if host in slow else [100.0 + number / 100, 100.1]
        for number, host in enumerate(f"n{number:02}" for number in range(16))
    }
    bios = {"bios_version: 3.1": "bios_version: 2.9"}
    run = fleet_run(tmp_path, rates, more=1, changes=dict.fromkeys(slow, bios) if known else {})
    assert lists(page_of(run, written_verdict(run)))[APART] == [
        "fake FAKE rate, 2 figures: two levels of like nodes, 20 % apart: "
        f"8 near 80.0875 MB/s, 8 near 100.088 MB/s; {fact}"
    ]


@pytest.mark.parametrize(("known", "bad"), [(True, 4), (False, 4), (False, 3)])
def test_slow_nodes_of_unknown_hardware_may_be_another_kind(
    troubled: tuple[Run, Verdict, str], known: bool, bad: int
) -> None:
    """A third of them may be. The controls are like hardware, and one slow node less."""
    run, verdict, _ = troubled
    middle = np.array([*(99 + np.arange(12 - bad) / 4), 55, 62, 70, 78][:12])
    values = middle[:, None] + np.array([0, 0.05, -0.05])
    names = [f"n{5 * number % 12:02}" for number in range(12)]
    fleet = fleet_of_nodes(values, names, known=known)
    (figure,) = fleet.figures
    given = replace(verdict, results=replace(verdict.results, fleet=fleet))
    shown = lists(page_of(run, given)).get(APART, [])
    judgements = [fleet.judge(number) for number in range(12)]
    words = [judgement.outcome for judgement in judgements if judgement]
    if known or bad < 4:
        assert shown == []
        assert {*figure.flagged} == {*names[-bad:]} and words.count("FAIL") == bad
    else:
        why = (
            "the nodes are not one population: 8 near 99.88 MB/s, 4 near 66 MB/s; state their "
            "kinds or places, so that like nodes are compared"
        )
        assert words == 12 * ["UNJUDGED"]
        assert (figure.fleet_limit.powerless, figure.fleet_limit.limit) == (why, None)
        assert shown == [f"stream triad, 1 figure: {why}"]


def test_each_step_is_a_row_and_the_example_is_one_that_ran(tmp_path: Path) -> None:
    kit = make_kit(tmp_path)
    kit.case(sweep={"size": [1, 2, 3]})
    run = carried_out(kit.run())
    first, *others = steps_of(run)
    shutil.rmtree(execution(first))
    page = page_of(run, written_verdict(run))
    (again,) = lists(page)["How to run one step again"]
    assert again.splitlines() == [
        f"proofmark rerun runs/{run.id} {others[0].name}",
        f"proofmark report runs/{run.id}",
    ]
    rows = Tables(page).named("Commands")
    for row, step in zip(rows, steps_of(run), strict=True):
        ran = step != first
        assert row["Step"] == (f"{step.name}run.sh" + (" stdout stderr" if ran else ""),)
        assert row["State"] == ("exit code 0, 0 s" if ran else "waiting",)
        (command,) = row["Command"]
        assert command.endswith(f"/programs/fake {step.name[-1]}")


@pytest.mark.parametrize(
    ("by", "who"), [("ida", "ida, the user who ran it"), ("omar", "omar; ida ran it")]
)
def test_the_page_says_who_sealed_the_evidence(
    troubled: tuple[Run, Verdict, str], by: str, who: str
) -> None:
    run, verdict, _ = troubled
    time = datetime(2026, 11, 21, 10, 18, tzinfo=UTC)
    sealed = Seal(run.folder, 2, "ab" * 32, ["cd" * 32], time, by, "ida", {})
    page = Page(page_of(replace(run, seal=sealed), verdict)).words
    assert f"sealed 2026-11-21 10:18 UTC by {who}" in page
    assert "ab" * 32 in page
