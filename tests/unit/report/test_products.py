"""The files of a report: their time, their plots, and what other versions wrote."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import pytest
from tests.fixtures.finished import written_verdict
from tests.fixtures.fleet import fleet_run

from proofmark.common.errors import BadInput
from proofmark.common.files import read_json
from proofmark.common.message import Message
from proofmark.judge.acceptance import Part
from proofmark.report import products, statement
from proofmark.report.products import Made, made_of, write_plot_files, write_products
from proofmark.report.run_data import gather
from proofmark.report.sections import issues
from proofmark.report.statement import Predicate, SignedRun, made_again
from proofmark.runs.run import Run, Seal

FIRST, SECOND = 1_795_000_000, 1_795_003_600
"""Times of two reports, an hour between."""


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return fleet_run(tmp_path, {"n1": 100.0, "n2": 101.0})


def written(run: Run, patch: pytest.MonkeyPatch, time: int) -> float:
    """Write the report at `time`; return the time that it has."""
    patch.setenv("SOURCE_DATE_EPOCH", f"{time}")
    found = write_products(run)
    assert read_json(run.products.made, Made).written == found.run_data.written
    return found.run_data.written.timestamp()


def other(change: Callable[[Made], Made]) -> Callable[[Run], None]:
    def changed(run: Run) -> None:
        made = change(read_json(run.products.made, Made))
        run.products.made.write_text(made.model_dump_json(), encoding="utf-8")

    return changed


CHANGES: dict[str, Callable[[Run], object]] = {
    "verdict": lambda run: run.products.verdict.write_text("{}\n", encoding="utf-8"),
    "no verdict": lambda run: run.products.verdict.unlink(),
    "no report": lambda run: run.products.made.unlink(),
    "language": other(lambda made: made.model_copy(update={"language": "ko"})),
    "version": other(lambda made: made.model_copy(update={"versions": {"numpy": "1"}})),
}


@pytest.mark.parametrize("change", [None, *CHANGES])
@pytest.mark.parametrize("arrive", [True, False])
def test_a_run_that_nodes_join_keeps_the_time_of_a_verdict(
    run: Run, monkeypatch: pytest.MonkeyPatch, change: str | None, arrive: bool
) -> None:
    """Until anything of the report differs. The report of another run has its own time."""
    kind = SimpleNamespace(nodes_arrive=arrive)
    monkeypatch.setattr(products, "kind_of", lambda plan: kind)
    assert written(run, monkeypatch, FIRST) == FIRST
    if change:
        CHANGES[change](run)
    kept = arrive and not change
    assert written(run, monkeypatch, SECOND) == (FIRST if kept else SECOND)


def test_plots_of_an_earlier_report_are_removed(tmp_path: Path) -> None:
    folder = tmp_path / "figures"
    write_plot_files(folder, {"a.svg": b"1", "b.csv": b"2"})
    for name in ("old.svg", "old.png", "old.csv", "mine.txt"):
        (folder / name).touch()
    write_plot_files(folder, {"a.svg": b"3"})
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
        "a.svg": b"3",
        "mine.txt": b"",
    }


def test_a_run_without_a_report_says_how_to_make_one(run: Run) -> None:
    with pytest.raises(BadInput, match="no such file; accepted: a run with a report"):
        made_of(run.products)


def test_a_run_whose_outputs_have_no_figures_links_the_states_of_its_nodes(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control links what the execution printed."""
    data = gather(run, written_verdict(run))
    record = data.verdict.results[0].record
    links = issues.output_links(data, record)
    names = [(link.path.rpartition("/")[0], link.text) for link in links]
    place = "workdir/steps/0001-fake/n1/execution-1"
    assert names == [(place, "stdout"), (place, "stderr")]
    monkeypatch.setattr(issues, "kind_of", lambda plan: SimpleNamespace(has_figures=False))
    (link,) = issues.output_links(data, record)
    assert (link.path, link.text) == ("node-states.jsonl",) * 2


def test_an_acceptance_is_made_of_runs_with_a_contract(run: Run, tmp_path: Path) -> None:
    asked = Predicate(
        kind="acceptance",
        id="acceptance-here-local",
        site="here",
        partitions={"local": Part(hosts=["n1"], mode="current")},
        made=Made(written=datetime(2031, 2, 3, tzinfo=UTC), language="en", versions={}),
    )
    for name, found in (
        ("acceptance-here-local", "no contract"),
        ("acceptance-here", "no contract"),
        ("acceptance-local", "acceptance-here or acceptance-here-local"),
    ):
        with pytest.raises(BadInput, match=found):
            made_again([run], asked.model_copy(update={"id": name}), tmp_path)


@pytest.mark.parametrize("kind", ["run", "acceptance"])
@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("same", [True, False])
def test_of_what_other_versions_made_the_evidence_is_compared(
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
    kind: Literal["run", "acceptance"],
    named: bool,
    same: bool,
) -> None:
    """The runs, and the name of a run. An acceptance has a name of its own."""
    monkeypatch.setattr(statement, "other_versions", lambda made: "numpy 1")
    time = datetime(2031, 2, 3, tzinfo=UTC)
    sealed = replace(run, seal=Seal(run.folder, 1, "ab" * 32, [], time, "ida", "ida", {}))
    monkeypatch.setattr(statement, "runs_in", lambda folder, kind: [sealed])
    stated = SignedRun.of(sealed)
    predicate = Predicate(
        kind=kind,
        id=run.id if named else "another",
        site="here",
        partitions={},
        runs=[stated if same else stated.model_copy(update={"sealed_by": "omar"})],
        made=Made(written=time, language="en", versions={}),
    )
    files: Any = None  # they are not compared
    found = statement.against_evidence(run.folder, files, predicate)
    good = same and (named or kind == "acceptance")
    assert found == ([] if good else [Message("predicate-other", name="runs")])
