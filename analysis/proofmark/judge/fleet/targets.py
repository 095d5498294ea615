"""Like storage targets: figures that differ only in the target, measured by the same nodes."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np

from proofmark.cases.models import STORAGE_TARGET
from proofmark.judge.aggregate import Aggregates
from proofmark.records.columns import Measurand, Numbers


def like_targets(figures: Aggregates) -> Iterator[Numbers]:
    """Yield the numbers of the valid figures of each group of two or more like targets."""
    keys = [_without_target(each) for each in figures.records.measurands]
    groups: dict[tuple[object, ...], list[int]] = {}
    for figure in np.flatnonzero(figures.valid).tolist():
        key = keys[figures.measurand[figure]]
        if key is not None:
            groups.setdefault((key, int(figures.node[figure])), []).append(figure)
    for members in groups.values():
        if len(members) > 1:
            yield np.array(members, dtype=np.int64)


def _without_target(measurand: Measurand) -> Measurand | None:
    """Return `measurand` without its storage target; None if it has none."""
    if f'"{STORAGE_TARGET}"' not in measurand.parameters:
        return None
    parameters = json.loads(measurand.parameters)
    if parameters.pop(STORAGE_TARGET, None) is None:
        return None
    return measurand._replace(parameters=json.dumps(parameters, sort_keys=True))
