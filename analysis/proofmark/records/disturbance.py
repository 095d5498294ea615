"""Makes the records of disturbed executions INVALID, by the ``stability`` of their case.

A virtual machine shares its processors with other machines. A value that was measured while these
used CPU time is not a property of the machine: it is neither PASS nor FAIL.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from proofmark.cases.case import Case, Stability
from proofmark.common.message import NOTHING, Message
from proofmark.records.columns import VIRTUAL, Records, intern
from proofmark.site.adopted_site import IMPORTED

DISTURBED, RATE_CHANGED = "disturbed", "rate-changed"
"""The codes of the reasons of disturbed and of unsteady executions."""


def tick_reason(steal: float, others: float, stability: Stability) -> Message:
    """Return why an execution without samples was disturbed, by the CPU time of the whole node.

    Only the thresholds that the case itself states apply: a program that is not meant to use all
    CPUs leaves them to others.

    Args:
        steal: the share of CPU time that a hypervisor withheld; NaN if it is not known.
        others: the share of the used CPU time that other processes had; NaN if it is not known.
        stability: the thresholds of the case.
    """
    for key, share, code in (
        ("max_steal", steal, "stolen-ticks"),
        ("max_others", others, "others-ticks"),
    ):
        limit: float = getattr(stability, key)
        if key in stability.model_fields_set and share > limit:
            cause = Message(code, share=f"{share:.1%}", limit=f"{limit:.0%}")
            return Message(DISTURBED, text=(cause,))
    return NOTHING


def without_disturbed(records: Records, cases: Mapping[str, Case]) -> Records:
    """Return `records`; those of disturbed and unsteady executions are INVALID, with the reason.

    The records of emulated nodes stay valid: their speed is not judged (docs/design/twin.md).
    Those of imported outputs stay valid too: the order and the times of their repeats are not
    known. Other processes cannot disturb the time of a model.
    """
    unjudged = (*VIRTUAL, IMPORTED)
    judged = np.array([each.origin not in unjudged for each in records.measurands], dtype=bool)
    judged = judged[records.measurand]
    executions = list(records.executions)
    steady = {
        name: case.stability for name, case in cases.items() if case.stability.metric is not None
    }
    for name, stability in steady.items():
        of_case = np.array([each.case == name for each in records.measurands], dtype=bool)
        for series in _rates(records, of_case[records.measurand] & judged, stability).values():
            for execution, why in changed_repeats(series, stability):
                if not executions[execution].unsteady:
                    executions[execution] = executions[execution]._replace(unsteady=why)
    reasons = {text: place for place, text in enumerate(records.reasons)}
    reason = records.reason.copy()
    for number, about in enumerate(executions):
        why = about.disturbed or about.unsteady
        newly_invalid = (records.execution == number) & records.valid & judged if why else None
        if newly_invalid is not None and newly_invalid.any():
            reason[newly_invalid] = intern(reasons, why)
    return replace(records, executions=executions, reasons=list(reasons), reason=reason)


def changed_repeats(
    series: Sequence[tuple[int, int, float]], stability: Stability
) -> Iterator[tuple[int, Message]]:
    """Yield the executions within which the rate of the machine changed, each with the reason.

    Args:
        series: repeat, execution and rate of each repeat. The rate of a repeat is compared with
            that of the next repeat. The last repeat is compared with the one before it.
        stability: the limits of the case.
    """
    ordered = sorted(series)
    pairs = enumerate(pairwise(ordered), start=2)
    for place, ((number, this, before), (next_number, following, after)) in pairs:
        if next_number != number + 1:
            continue  # the repeat between them was disturbed
        change = abs(after - before) / max(after, before)
        if change <= stability.max_change:
            continue
        why = Message(
            RATE_CHANGED,
            metric=str(stability.metric),
            before=f"{before:g}",
            after=f"{after:g}",
            change=f"{change:.0%}",
            limit=f"{stability.max_change:.0%}",
        )
        yield this, why
        if place == len(ordered):
            yield following, why


Rates = dict[tuple[int, int, int], list[tuple[int, int, float]]]
"""Repeat, execution and value of each repeat, by attempt, measurand and node."""


def _rates(
    records: Records, of_case: np.ndarray[tuple[int], np.dtype[np.bool_]], stability: Stability
) -> Rates:
    """Return the rates of the undisturbed executions of a case; `of_case` masks its records."""
    rates: Rates = {}
    metric = stability.metric
    of_metric = np.array([each.metric == metric for each in records.measurands], dtype=bool)
    for place in np.flatnonzero(of_case & of_metric[records.measurand] & records.valid).tolist():
        execution = int(records.execution[place])
        about, value = records.executions[execution], float(records.value[place])
        if value > 0 and not about.disturbed:
            key = (about.attempt, int(records.measurand[place]), int(records.node[place]))
            rates.setdefault(key, []).append((about.repeat, execution, value))
    return rates
