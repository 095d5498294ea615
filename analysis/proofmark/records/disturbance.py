"""Finds executions during which the machine was disturbed, by the ``stability`` of their case.

A virtual machine shares its processors with other machines. A value that was measured while these
used CPU time is not a property of the machine: it is neither PASS nor FAIL.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from proofmark.cases.models import Case, Stability
from proofmark.records.columns import EMULATED, Records, intern


def without_disturbed(records: Records, cases: Mapping[str, Case]) -> Records:
    """Return `records`; those of disturbed executions are INVALID, each with the reason.

    Emulated nodes are left out: their speed is not judged (ADR 0041).
    """
    stabilities = {name: case.stability for name, case in cases.items() if case.stability}
    disturbed: dict[int, str] = {}
    for name, stability in stabilities.items():
        measurands = [each.case == name and each.origin != EMULATED for each in records.measurands]
        of_case = np.array(measurands, dtype=bool)[records.measurand]
        for execution, why in _disturbed(records, of_case, stability):
            disturbed.setdefault(execution, why)
    if not disturbed:
        return records
    executions = list(records.executions)
    reasons = {text: place for place, text in enumerate(records.reasons)}
    reason = records.reason.copy()
    for execution, why in disturbed.items():
        executions[execution] = executions[execution]._replace(disturbed=why)
        newly_invalid = (records.execution == execution) & records.valid
        reason[newly_invalid] = intern(reasons, why)
    return replace(records, executions=executions, reasons=list(reasons), reason=reason)


def _disturbed(
    records: Records, of_case: np.ndarray[tuple[int], np.dtype[np.bool_]], stability: Stability
) -> Iterator[tuple[int, str]]:
    """Yield the numbers of disturbed executions of a case, each with the reason.

    `of_case` is the mask of the records of the case.
    """
    for execution in np.unique(records.execution[of_case]).tolist():
        about = records.executions[execution]
        for share, limit, cause in (
            (about.steal, stability.max_steal, "a hypervisor withheld"),
            (about.others, stability.max_others, "other processes used"),
        ):
            if share > limit:
                why = f"disturbed: {cause} {share:.1%} of the CPU time, more than {limit:.0%}"
                yield execution, why
    for series in _rates(records, of_case, stability.metric).values():
        yield from changed_repeats(series, stability)


def changed_repeats(
    series: Sequence[tuple[int, int, float]], stability: Stability
) -> Iterator[tuple[int, str]]:
    """Yield the executions within which the rate of the machine changed, each with the reason.

    Args:
        series: repeat, execution and rate of each repeat. The rate of a repeat is compared with
            that of the next repeat. The last repeat is compared with the one before it.
        stability: the limits of the case.
    """
    ordered = sorted(series)
    for place, ((_, this, before), (_, following, after)) in enumerate(pairwise(ordered), start=2):
        change = abs(after - before) / max(after, before)
        if change <= stability.max_change:
            continue
        why = (
            f"disturbed: {stability.metric} changed from {before:g} to {after:g} "
            f"within the repeat, by {change:.0%}, more than {stability.max_change:.0%}"
        )
        yield this, why
        if place == len(ordered):
            yield following, why


Rates = dict[tuple[int, int, int], list[tuple[int, int, float]]]
"""Repeat, execution and value of each repeat, by attempt, measurand and node."""


def _rates(
    records: Records, of_case: np.ndarray[tuple[int], np.dtype[np.bool_]], metric: str
) -> Rates:
    rates: Rates = {}
    of_metric = np.array([each.metric == metric for each in records.measurands], dtype=bool)
    for place in np.flatnonzero(of_case & of_metric[records.measurand] & records.valid).tolist():
        execution = int(records.execution[place])
        about, value = records.executions[execution], float(records.value[place])
        if value > 0:
            key = (about.attempt, int(records.measurand[place]), int(records.node[place]))
            rates.setdefault(key, []).append((about.repeat, execution, value))
    return rates
