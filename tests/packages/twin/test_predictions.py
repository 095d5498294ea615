"""Predicted and measured records are never judged together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.fixtures.fleet import fleet_run
from tests.fixtures.kit import known_case
from tests.unit.judge.test_baseline import accept, keys, rates, run_of, site  # noqa: F401
from tests.unit.judge.test_verdict import record, reference

from proofmark.common.errors import BadInput
from proofmark.common.message import Message
from proofmark.judge.aggregate import aggregate
from proofmark.judge.baseline_files import Acceptance, accepted_baseline, judged_figures
from proofmark.judge.evidence import Evidence
from proofmark.judge.judging import judge, judge_run
from proofmark.packages.history.trend_command import compare
from proofmark.packages.twin.twin_files import (
    Assumption,
    SimulatedRun,
    TwinFacts,
)
from proofmark.records.columns import Records
from proofmark.report.products import write_products
from proofmark.runs.evidence import seal
from proofmark.runs.run import Run
from proofmark.site.accepted_baseline import STATE, chosen_baseline, copy_baseline

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


known = known_case(
    metrics={"rate": {"unit": "MB/s", "better": "higher", "bound": 1e9, "what": "how fast"}},
    references=[reference().model_dump(mode="json", exclude_none=True)],
)


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

    @pytest.mark.core("the control")
    def test_a_comparison_of_both_is_refused(self, tmp_path: Path, twin: Run) -> None:
        measured = fleet_run(tmp_path / "plain", RATES, run_id="plain")
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
