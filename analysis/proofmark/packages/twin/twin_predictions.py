"""The predictions of a finished run of a twin, for a run of the same partition."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from proofmark.common.errors import bad_input
from proofmark.common.files import read_json
from proofmark.judge.aggregate import Aggregates, aggregate
from proofmark.judge.predictions import fields_of
from proofmark.packages.twin.twin_files import TwinFacts, TwinFiles
from proofmark.records.columns import VIRTUAL
from proofmark.records.read import read_run
from proofmark.records.run_facts import run_parts
from proofmark.runs.attempts import has_result
from proofmark.runs.evidence import open_newest
from proofmark.runs.predictions import PredictedFigure, Predictions
from proofmark.runs.run import Run, site_of
from proofmark.runs.run_files import RunFiles
from proofmark.site.inventory import Site
from proofmark.site.partition import PREDICTED

KEY = "expected"
"""The option with the folder of the run."""
TWIN_RUN = "the folder of a finished run of `proofmark twin`"


def predictions_of(folder: Path, site: Site) -> Predictions:
    """Return the predictions of the run of a twin in `folder`, without the errors of its model.

    Args:
        folder: of the run of the twin.
        site: the partition whose figures will be compared with the predictions.

    Raises:
        BadInput: `folder` is not a run, its figures are not predicted, it is a run of another
            partition, it is unfinished, or it has no valid figure; or the nodes of `site` are
            virtual.
    """
    if site.partition.origin in VIRTUAL:
        found = f"a partition of the origin {site.partition.origin}"
        raise bad_input(KEY, "", found, "a partition of the origin measured")
    if not RunFiles(folder).plan.is_file():
        raise bad_input(KEY, "", f"{folder}: not a run", TWIN_RUN)
    run = open_newest(folder)
    simulated = site_of(run)
    if run.plan.imported or simulated.partition.origin != PREDICTED:
        found = "imported" if run.plan.imported else simulated.partition.origin
        accepted = f"{PREDICTED}: {TWIN_RUN}"
        raise bad_input(run.files.site, "partition.origin", found, accepted)
    for key, found, accepted in (
        ("site", run.plan.site, site.name),
        ("partition", run.plan.partition, site.partition_name),
    ):
        if found != accepted:
            raise bad_input(run.files.plan, key, found, f"{accepted}, a twin of this partition")
    _check_finished(run)
    twin = read_json(TwinFiles(run.files.inputs).facts, TwinFacts)
    records = read_run(run_parts(run))
    figures = tuple(_predicted(aggregate(records)))
    if not figures:
        raise bad_input(run.folder, "figures", "no valid figure", TWIN_RUN)
    return Predictions(
        run=run.id,
        site=run.plan.site,
        partition=run.plan.partition,
        selector=twin.selector,
        figures=figures,
        assumptions=twin.assumptions,
    )


def _check_finished(run: Run) -> None:
    steps = list(run.plan.steps_to_run())
    missing = [each.id for each in steps if not has_result(run.files.step(each.id))]
    if missing:
        found = f"unfinished: {len(missing)} of {len(steps)} steps have no result"
        raise bad_input(run.folder, "steps", found, TWIN_RUN)


def _predicted(figures: Aggregates) -> Iterator[PredictedFigure]:
    """Yield the valid figures of the run of a twin."""
    for figure in np.flatnonzero(figures.valid).tolist():
        record = figures.record(figure)
        if record.value is not None and record.origin == PREDICTED:
            yield PredictedFigure(**fields_of(record), nodes=record.node)
