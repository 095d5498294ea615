"""The predictions of a twin beside measured figures: they are shown, and judge nothing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fixtures.finished import written_verdict
from tests.fixtures.fleet import fleet_run
from tests.fixtures.kit import examples, make_kit
from tests.fixtures.report_run import page_of
from tests.unit.judge.test_baseline import accept, keys, rates, run_of, site  # noqa: F401
from tests.unit.judge.test_verdict import invalid, record, reference

from proofmark.cli.main import main
from proofmark.common.errors import BadInput
from proofmark.common.files import read_json
from proofmark.common.message import Message
from proofmark.common.rights import this_user
from proofmark.judge.aggregate import aggregate
from proofmark.judge.baseline_files import Acceptance, accepted_baseline, judged_figures
from proofmark.judge.evidence import Evidence
from proofmark.judge.judging import judge, judge_run
from proofmark.judge.verdict import Verdict
from proofmark.packages.history.trend_command import compare
from proofmark.packages.twin.predictions import FigurePredictions, Prediction
from proofmark.packages.twin.twin_error import figures_of, model_error_of, predictions_of
from proofmark.packages.twin.twin_files import (
    Assumption,
    ErrorRow,
    MeasuredFigures,
    PredictedFigure,
    Predictions,
    SimulatedRun,
    TwinFacts,
    TwinFiles,
)
from proofmark.records.columns import Record, Records
from proofmark.report.products import write_products
from proofmark.runs.evidence import seal
from proofmark.runs.identity import write_identity
from proofmark.runs.run import Run, open_run, site_of
from proofmark.site.accepted_baseline import STATE, chosen_baseline, copy_baseline
from proofmark.site.inventory import Site

HOSTS = ("n00", "n01", "n02", "n03", "n04", "n05")
RATES = {host: [100.0 + number, 102.0 + number, 101.0] for number, host in enumerate(HOSTS)}
ASSUMED = (
    Assumption(
        what=Message("model-link"),
        value=Message("model-value", value="1 GB/s"),
        why=Message("model-source", source="a data sheet"),
        sourced=True,
    ),
    Assumption(
        what=Message("model-switch"),
        value=Message("model-value", value="100 ns"),
        why=Message("model-switch-why"),
        sourced=False,
    ),
)
FACTS = TwinFacts(selector="mpich", selectors=("mpich", "ompi"), settings={}, assumptions=ASSUMED)
ERROR = ErrorRow(case="fake", metric="rate", figures=9, median=1.0, smallest=0.8, largest=1.25)


def predicted(value: float = 50.0, **changes: Any) -> PredictedFigure:
    """Return the prediction for the figure of `record`."""
    fields: dict[str, Any] = {
        **{"case": "fake", "benchmark": "FAKE", "metric": "rate", "unit": "MB/s"},
        **{"mode": "current", "placement": "", "parameters": {"size": 1}, "nodes": "n1"},
        "value": value,
    }
    return PredictedFigure(**{**fields, **changes})


def expectations(*figures: PredictedFigure, errors: Sequence[ErrorRow] = ()) -> Predictions:
    return Predictions(
        **{"run": "model", "site": "here", "partition": "local", "selector": "mpich"},
        figures=figures,
        assumptions=ASSUMED,
        errors=tuple(errors),
    )


def of(
    measured: Record, *figures: PredictedFigure, errors: Sequence[ErrorRow] = ()
) -> Prediction | None:
    """Return the prediction for one measured figure."""
    found = FigurePredictions(
        expectations(*figures, errors=errors), aggregate(Records.of([measured]))
    )
    return found.of(measured)


class TestCounterparts:
    def test_a_figure_has_the_prediction_of_its_nodes(self) -> None:
        others = (predicted(70.0, nodes="n2"), predicted(80.0, nodes="n3"))
        assert of(record(), predicted(), *others) == Prediction(50.0, 2.0, None, None)

    def test_a_figure_of_other_nodes_has_the_median(self) -> None:
        figures = [predicted(value, nodes=f"n{value:g}") for value in (70.0, 80.0, 90.0)]
        assert of(record(), *figures) == Prediction(80.0, 1.25, None, None)

    def test_the_error_of_the_model_gives_a_range(self) -> None:
        found = of(record(), predicted(), errors=[ERROR])
        assert found is not None and (found.low, found.high) == pytest.approx((40.0, 62.5))
        other = ERROR.model_copy(update={"metric": "time"})
        assert of(record(), predicted(), errors=[other]) == Prediction(50.0, 2.0, None, None)

    def test_a_prediction_of_0_has_no_ratio(self) -> None:
        assert of(record(), predicted(0.0)) == Prediction(0.0, None, None, None)

    @pytest.mark.parametrize(
        "changes",
        [
            *({"case": "other"}, {"benchmark": "OTHER"}, {"metric": "time"}, {"unit": "GB/s"}),
            *({"mode": "snc4"}, {"placement": "BD"}, {"parameters": {"size": 2}}),
            *({"parameters": {"size": 1, "ranks": 4}}, {"nodes": "n[1-2]"}),
        ],
    )
    def test_another_figure_is_no_counterpart(self, changes: dict[str, Any]) -> None:
        assert of(record(), predicted(**changes)) is None

    def test_the_nodes_of_the_step_do_not_matter(self) -> None:
        """Ranks that fill one node are the same figure in a step of 2 and of 16 nodes."""
        measured = record(parameters={"size": 1, "nodes": 16})
        assert of(measured, predicted(parameters={"size": 1, "nodes": 2})) is not None

    @pytest.mark.parametrize("origin", ["emulated", "predicted"])
    def test_virtual_nodes_have_no_expected_figures(self, origin: str) -> None:
        assert of(record(origin=origin), predicted()) is None

    def test_an_invalid_figure_has_none(self) -> None:
        assert of(invalid(), predicted()) is None

    def test_pairs_have_the_prediction_of_their_distance(self) -> None:
        near, far = predicted(10.0, nodes="n[1-2]"), predicted(20.0, nodes="n[1,9]")
        measured = record(node="n[3,8]")
        figures = aggregate(Records.of([measured]))

        def distance(hosts: Sequence[str]) -> str:
            return "rack" if set(hosts) == {"n1", "n2"} else "system"

        found = FigurePredictions(expectations(near, far), figures, distance).of(measured)
        assert found is not None and found.value == 20.0


values = st.floats(1, 1e6)
outcomes = st.lists(st.tuples(values, st.booleans(), values), min_size=1, max_size=6)
"""Measured value, whether it is valid, and the predicted value of some nodes."""


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Any:
    kit = make_kit(tmp_path_factory.mktemp("kit"))
    rate = {"unit": "MB/s", "better": "higher", "bound": 1e9, "what": "how fast"}
    kit.case(
        metrics={"rate": rate}, references=[reference().model_dump(mode="json", exclude_none=True)]
    )
    return kit.plan(), kit.benchmarks()


def expected_file(run: Run) -> Path:
    return TwinFiles(run.files.inputs).expected


def predictions_in(run: Run) -> FigurePredictions:
    """Return the predictions in the verdict of a run."""
    found = judge_run(run).added["twin"]
    assert isinstance(found, FigurePredictions)
    return found


def stripped(verdict: Verdict) -> dict[str, Any]:
    """Return the form of ``verdict.json`` without the predictions."""
    written: dict[str, Any] = json.loads(json.dumps(verdict.as_json(), default=str))
    written.pop("expected", None)
    return written


@examples(0.5)
@given(outcomes)
def test_predictions_judge_nothing(known: Any, given: Any) -> None:
    """Whatever is predicted: the verdict is the one without predictions."""
    plan, benchmarks = known
    records = [
        record(node=f"n{n}", value=value) if valid else invalid(node=f"n{n}")
        for n, (value, valid, _) in enumerate(given)
    ]
    figures = [predicted(value, nodes=f"n{n}") for n, (_, _, value) in enumerate(given)]
    measured = Records.of(records)
    evidence = Evidence("r", plan, measured, benchmarks)
    found = FigurePredictions(expectations(*figures, errors=[ERROR]), evidence.figures)
    without = judge(evidence)
    shown = replace(without, added={"twin": found})
    assert stripped(shown) == stripped(without)
    assert not (found.of_figures() or found.of_nodes() or found.slow_ends() or found.unjudged())
    assert len(found.by_figure) == sum(valid for _, valid, _ in given)


# A finished run with predictions.


def twin_run(folder: Path, name: str = "model", **more: Any) -> Run:
    """Return a finished run of a twin of the partition of `fleet_run`."""
    partition = {"origin": "predicted", **more.pop("partition", {})}
    twin = SimulatedRun("<platform/>", FACTS)
    rates = more.pop("measured", RATES)
    run = fleet_run(folder / name, rates, run_id=name, partition=partition, twin=twin, **more)
    (step,) = run.plan.steps()
    run.files.step(step.id).exit_code.write_text("0\n")
    return run


@pytest.fixture
def twin(tmp_path: Path) -> Run:
    return twin_run(tmp_path)


@pytest.fixture
def measured(tmp_path: Path, twin: Run) -> Run:
    """A measured run with the predictions of a twin, of which one is half the measured value."""
    plain = fleet_run(tmp_path / "plain", RATES, run_id="plain")
    expected = predictions_of(twin.folder, site_of(plain))
    return fleet_run(
        tmp_path / "shown", {**RATES, "n05": [208.0] * 3}, run_id="shown", expected=expected
    )


@pytest.mark.core("the package works")
def test_the_run_of_a_twin_is_copied(twin: Run, measured: Run) -> None:
    expected = read_json(expected_file(measured), Predictions)
    assert (expected.run, expected.selector, expected.errors) == ("model", "mpich", ())
    assert expected.assumptions == ASSUMED
    assert {each.nodes: each.value for each in expected.figures} == {
        host: sorted(values)[1] for host, values in RATES.items()
    }
    inputs = json.loads(measured.files.identity.read_text())["inputs"]
    assert "inputs/expected/expected.json" in inputs
    changed = expected_file(measured).read_text().replace("mpich", "ompi")
    expected_file(measured).write_text(changed)
    with pytest.raises(BadInput, match="changed after the start of the run"):
        open_run(measured.folder)


@pytest.mark.core("the control")
def test_a_verdict_is_the_same_with_predictions(tmp_path: Path, measured: Run) -> None:
    same = fleet_run(tmp_path / "same", {**RATES, "n05": [208.0] * 3}, run_id="shown")
    without, shown = judge_run(same), judge_run(measured)
    assert stripped(shown) == stripped(without)
    assert "twin" not in without.added
    found = predictions_in(measured)
    ratios = {shown.results[at].record.node: each.ratio for at, each in found.by_figure.items()}
    assert ratios["n05"] == pytest.approx(208 / 105) and ratios["n01"] == pytest.approx(1)


def test_the_files_and_the_page_have_the_predictions(measured: Run) -> None:
    verdict = written_verdict(measured)
    written = json.loads(measured.files.verdict.read_text())
    assert written["expected"]["run"] == "model" and written["expected"]["figures"] == len(HOSTS)
    assert written["expected"]["errors"] == []
    of_node = {each["node"]: each["expected"] for each in written["results"]}
    assert of_node["n05"] == {"value": 105, "ratio": 208 / 105, "low": None, "high": None}
    assert [of_node[host]["value"] for host in HOSTS] == [101, 101, 102, 103, 104, 105]
    page = page_of(measured, verdict)
    for words in ("Expected figures", "Measured ÷ expected", "a switch", "not known"):
        assert words in page
    assert "105" in page and "1.98" in page


def test_like_nodes_have_their_own_predictions(tmp_path: Path) -> None:
    """The lines of nodes that are like their peers are otherwise made from one of them."""
    alike = {f"n{number:02}": 100 + 0.01 * (number % 5) for number in range(12)}
    plain = fleet_run(tmp_path / "plain", alike, run_id="plain")
    assert judge_run(plain).results.plain.all()
    figures = [predicted(50.0 + n, nodes=host) for n, host in enumerate(alike)]
    run = fleet_run(tmp_path / "shown", alike, run_id="shown", expected=expectations(*figures))
    written_verdict(run)
    written = json.loads(run.files.verdict.read_text())
    of_node = {each["node"]: each["expected"]["value"] for each in written["results"]}
    assert of_node == {host: 50.0 + n for n, host in enumerate(alike)}


def test_a_page_in_korean_has_the_same_verdict(measured: Run) -> None:
    written_verdict(measured)
    before = measured.files.verdict.read_bytes()
    assert main(["report", f"{measured.folder}", "--language", "ko"]) == 0
    page = measured.files.report.read_text()
    assert "측정값 ÷ 예상값" in page and "Measured ÷ expected" not in page
    assert measured.files.verdict.read_bytes() == before


def test_a_page_states_the_error_of_the_model(tmp_path: Path, twin: Run) -> None:
    """The twin was given a real run, whose figures are 0.9 of the predictions."""
    plain = fleet_run(tmp_path / "plain", RATES, run_id="plain")
    real = [
        figure.model_copy(update={"value": 0.9 * figure.value})
        for figure in figures_of(judge_run(twin).results)
    ]
    measured = MeasuredFigures(run="real", figures=tuple(real))
    TwinFiles(twin.files.inputs).measured.write_text(measured.model_dump_json())
    write_identity(twin.folder, this_user().name)
    error = model_error_of(twin.folder)
    assert error is not None
    expected = predictions_of(twin.folder, site_of(plain)).model_copy(update={"errors": error.rows})
    run = fleet_run(tmp_path / "shown", RATES, run_id="shown", expected=expected)
    page = page_of(run, judge_run(run))
    assert "fake rate: median 1.11, from 1.11 to 1.11" in page


class TestRefused:
    @pytest.fixture
    def real(self, tmp_path: Path) -> Site:
        return site_of(fleet_run(tmp_path / "plain", RATES, run_id="plain"))

    def test_a_folder_that_is_no_run(self, tmp_path: Path, real: Site) -> None:
        with pytest.raises(BadInput, match=r"expected: found .*: not a run; accepted: the folder"):
            predictions_of(tmp_path, real)

    def test_a_measured_run(self, tmp_path: Path, real: Site) -> None:
        folder = tmp_path / "plain/runs/plain"
        with pytest.raises(BadInput, match="origin: found measured; accepted: predicted"):
            predictions_of(folder, real)

    @pytest.mark.parametrize(("key", "field"), [("site", "name"), ("partition", "partition_name")])
    def test_a_twin_of_another_partition(self, twin: Run, real: Site, key: str, field: str) -> None:
        other = real.model_copy(update={field: "other"})
        with pytest.raises(BadInput, match=rf"plan.json: {key}: found .*; accepted: other"):
            predictions_of(twin.folder, other)

    def test_an_unfinished_twin(self, twin: Run, real: Site) -> None:
        (step,) = twin.plan.steps()
        twin.files.step(step.id).exit_code.unlink()
        with pytest.raises(BadInput, match="unfinished: 1 of 1 steps have no result"):
            predictions_of(twin.folder, real)

    def test_a_twin_without_a_valid_figure(self, tmp_path: Path, real: Site) -> None:
        broken = twin_run(tmp_path, "broken", outputs={host: ["nothing"] for host in HOSTS})
        with pytest.raises(BadInput, match="figures: found no valid figure"):
            predictions_of(broken.folder, real)

    def test_predictions_of_virtual_nodes(self, twin: Run) -> None:
        with pytest.raises(BadInput, match="a partition of the origin predicted"):
            predictions_of(twin.folder, site_of(twin))


# Predicted and measured records are never judged together.


class TestNeverTogether:
    def test_they_are_never_averaged(self) -> None:
        mixed = [record(value=100.0), record(value=1.0, origin="predicted", repeat=2)]
        figures = aggregate(Records.of(mixed))
        assert figures.median.tolist() == [100.0, 1.0] and len({*figures.identity.tolist()}) == 2

    @pytest.mark.core("a verdict of the package")
    @pytest.mark.fault("mixed-origins")
    def test_a_run_of_both_is_refused(self, known: Any) -> None:
        plan, benchmarks = known
        mixed = Records.of([record(), record(origin="predicted")])
        with pytest.raises(BadInput, match="origin: found measured, predicted"):
            judge(Evidence("r", plan, mixed, benchmarks))

    def test_a_comparison_of_both_is_refused(self, twin: Run, measured: Run) -> None:
        runs = {run.id: judge_run(run).results for run in (twin, measured)}
        with pytest.raises(BadInput, match="runs of one origin"):
            compare(runs)

    @pytest.mark.core("a verdict of the package")
    @pytest.mark.fault("predicted-baseline")
    def test_a_twin_is_no_baseline(
        self,
        site: Path,  # noqa: F811
        keys: Path,  # noqa: F811
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        run = twin_run(site, measured=rates(1))
        write_products(seal(run.folder).run())
        assert accept(run, keys, "--reason", "a model") == 3
        message = capsys.readouterr().err
        assert "origin: found predicted; accepted: measured figures" in message
        assert not (site / "inventory/here/baselines").exists()

    def test_predicted_figures_are_not_accepted(self, twin: Run) -> None:
        """Also if the inventory states another origin than the figures have."""
        stated = Acceptance("accepted", None, "s", "c", "why")  # type: ignore[arg-type]
        judged = judged_figures(twin).model_copy(update={"origin": "measured"})
        with pytest.raises(BadInput, match="origin: found predicted"):
            accepted_baseline("twin", judged, None, stated)  # type: ignore[arg-type]

    @pytest.fixture
    def baseline(
        self,
        site: Path,  # noqa: F811
        keys: Path,  # noqa: F811
    ) -> Path:
        """The folder of the accepted baseline of a measured run."""
        assert accept(run_of(site, "first", rates(1)), keys) == 0
        return site / "inventory/here/baselines/local/accepted"

    def test_a_predicted_baseline_is_not_taken(
        self,
        site: Path,  # noqa: F811
        baseline: Path,
    ) -> None:
        """A version of the kit that accepted runs of twins wrote it."""
        text = (baseline / STATE).read_text().replace('"measured"', '"predicted"')
        (baseline / STATE).write_text(text)
        with pytest.raises(BadInput, match=r"baseline.json: origin: found predicted; accepted: "):
            copy_baseline(baseline, site / "copy")
        with pytest.raises(BadInput, match="origin: found predicted"):
            run_of(site, "second", rates(2), baseline)

    def test_a_baseline_has_a_name_and_no_folder(self, twin: Run) -> None:
        with pytest.raises(BadInput, match="accepted: the name of a baseline, not a folder: none"):
            chosen_baseline(Path("inventory/here"), "local", f"{twin.folder}")

    def test_figures_of_a_baseline_with_another_origin_are_not_compared(
        self,
        site: Path,  # noqa: F811
        baseline: Path,
    ) -> None:
        """The run of a twin has a measured baseline, because somebody changed its files."""
        slow = {host: [value / 2 for value in values] for host, values in rates(2).items()}
        verdict = judge_run(twin_run(site, measured=slow, baseline=baseline))
        assert verdict.baseline and verdict.baseline.judgements == 0
        assert verdict.counts["FAIL"] == 0
