"""Makes the records of disturbed executions INVALID, by the ``undisturbed`` of their case.

A virtual machine shares its processors with other machines. A value that was measured while these
used CPU time is not a property of the machine: it is neither PASS nor FAIL. The samples of a step
show whether its node was disturbed; ``noise.sh`` has the same rule, because the job script repeats
a disturbed step. A low share of CPU time alone is no disturbance: a program may wait for I/O.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from proofmark.cases.case import Case, Undisturbed
from proofmark.cases.vocabulary import MEASURED
from proofmark.common.files import parse_json, read_bytes
from proofmark.common.input_limits import MAX_BINDING_BYTES
from proofmark.common.message import NOTHING, Message
from proofmark.plan.step import StepLoad
from proofmark.records.binding import HostNames, binding_error
from proofmark.records.columns import Mask, Records, intern
from proofmark.runs.attempts import UNREADABLE, Attempt, damage, read_binding
from proofmark.runs.samples import NodeNoise, disturbers
from proofmark.site.execution import HostCpus

DISTURBED, RATE_CHANGED = "disturbed", "rate-changed"
"""The codes of the reasons of disturbed and of unsteady executions."""


def tick_reason(attempt: Attempt, undisturbed: Undisturbed) -> Message:
    """Return why an execution without samples was disturbed, by the CPU time of the whole node.

    Only a case that states the metric of its rate is judged by them: a program that is not meant to
    use all CPUs leaves them to others.
    """
    if undisturbed.metric is None or attempt.seconds < undisturbed.least_seconds:
        return NOTHING
    for key, share, code in (
        ("max_steal", attempt.steal, "stolen-ticks"),
        ("max_others", attempt.others, "others-ticks"),
    ):
        limit: float = getattr(undisturbed, key)
        if share > limit:
            cause = Message(code, share=f"{share:.1%}", limit=f"{limit:.0%}")
            return Message(DISTURBED, text=(cause,))
    return NOTHING


def without_disturbed(records: Records, cases: Mapping[str, Case]) -> Records:
    """Return `records`; those of disturbed and unsteady executions are INVALID, with the reason.

    Only measured records are judged so. The speed of emulated nodes is not judged, nothing disturbs
    the time of a model, and the order and times of outputs that this kit did not make are unknown.
    """
    judged = np.array([each.origin == MEASURED for each in records.measurands], dtype=bool)
    judged = judged[records.measurand]
    executions = list(records.executions)
    for name, case in cases.items():
        for series in _rates(records, name, judged, case.undisturbed.metric).values():
            for execution, why in changed_repeats(series, case.undisturbed):
                if not executions[execution].unsteady:
                    executions[execution] = executions[execution]._replace(unsteady=why)
    reasons = {text: place for place, text in enumerate(records.reasons)}
    reason = records.reason.copy()
    for number, about in enumerate(executions):
        why = about.disturbed or about.unsteady
        if why and (bad := (records.execution == number) & records.valid & judged).any():
            reason[bad] = intern(reasons, why)
    return replace(records, executions=executions, reasons=list(reasons), reason=reason)


def changed_repeats(
    series: Sequence[tuple[int, int, float]], undisturbed: Undisturbed
) -> Iterator[tuple[int, Message]]:
    """Yield the executions within which the rate of the machine changed, each with the reason.

    Args:
        series: repeat, execution and rate of each repeat. The rate of a repeat is compared with
            that of the next repeat. The last repeat is compared with the one before it.
    """
    ordered = sorted(series)
    pairs = enumerate(pairwise(ordered), start=2)
    for place, ((number, this, before), (next_number, following, after)) in pairs:
        if next_number != number + 1:
            continue  # the repeat between them was disturbed
        change = abs(after - before) / max(after, before)
        if change <= undisturbed.max_change:
            continue
        why = Message(
            RATE_CHANGED,
            metric=str(undisturbed.metric),
            before=f"{before:g}",
            after=f"{after:g}",
            change=f"{change:.0%}",
            limit=f"{undisturbed.max_change:.0%}",
        )
        yield this, why
        if place == len(ordered):
            yield following, why


Rates = dict[tuple[int, int, int], list[tuple[int, int, float]]]
"""Repeat, execution and value of each repeat, by attempt, measurand and node."""


def _rates(records: Records, case: str, judged: Mask, metric: str | None) -> Rates:
    rates: Rates = {}
    names = [(each.case, each.metric) == (case, metric) for each in records.measurands]
    chosen = np.array(names, dtype=bool)[records.measurand] & judged & records.valid
    for place in np.flatnonzero(chosen).tolist():
        execution = int(records.execution[place])
        about, value = records.executions[execution], float(records.value[place])
        if value > 0 and not about.disturbed:
            key = (about.attempt, int(records.measurand[place]), int(records.node[place]))
            rates.setdefault(key, []).append((about.repeat, execution, value))
    return rates


EXPLAINS = 0.5
"""The least part of a delay that other processes or a hypervisor must explain. The delay of ranks
that share a CPU is caused by the ranks."""
BUSY = 0.5
"""The least share of the time of their CPUs that ranks use if other processes can disturb them.
Ranks that wait for I/O use less."""
_NAMED = 3
"""The largest number of processes and nodes that a reason names."""


def noise_reason(nodes: Sequence[NodeNoise], undisturbed: Undisturbed) -> Message:
    """Return why an execution on `nodes` was disturbed, or `NOTHING`.

    One disturbed node, and on it one disturbed rank, disturbs the execution.
    """
    disturbed = [(node, causes) for node in nodes if (causes := [*_causes(node, undisturbed)])]
    if not disturbed:
        return NOTHING
    if len(nodes) == 1:
        return Message("disturbed", text=_disturbance(*disturbed[0]))
    shown = [
        Message("disturbed-node", node=node.host, text=_disturbance(node, causes))
        for node, causes in disturbed[:_NAMED]
    ]
    if len(disturbed) > _NAMED:
        shown.append(Message("disturbed-more", nodes=len(disturbed) - _NAMED))
    return Message("disturbed", text=tuple(shown))


def _disturbance(node: NodeNoise, causes: Iterable[Message]) -> tuple[Message, ...]:
    time = node.seconds
    shares = tuple((each.name, each.seconds / time if time else 1.0) for each in node.others)
    others = [Message("other-processes", names=disturbers(shares))] if shares else []
    return Message("ranks-got", share=_percent(node.share)), *causes, *others


def _causes(node: NodeNoise, undisturbed: Undisturbed) -> Iterator[Message]:
    if node.seconds < undisturbed.least_seconds:
        return
    if node.worst_steal_s > undisturbed.max_steal * node.seconds:
        share = _percent(node.worst_steal_s, node.seconds)
        yield Message("stolen", share=share, limit=_percent(undisturbed.max_steal))
    busy = node.ranks_s >= BUSY * node.rank_seconds * node.cpus
    if busy and node.others_s > undisturbed.max_others * node.seconds * node.cpus:
        share = _percent(node.others_s, node.seconds * node.cpus)
        yield Message("others-used", share=share, limit=_percent(undisturbed.max_others))
    lost = node.others_s + node.steal_s
    delay, limit = node.worst_delay_s, undisturbed.max_delay * node.rank_seconds
    if delay > limit and lost >= EXPLAINS * delay:
        share = _percent(delay, node.rank_seconds)
        yield Message("thread-waited", share=share, limit=_percent(undisturbed.max_delay))
    burst = node.burst
    if burst > undisturbed.max_burst and node.burst_others >= EXPLAINS * burst:
        most = _percent(undisturbed.max_burst)
        yield Message("thread-burst", share=_percent(burst), limit=most)


def _percent(part: float, whole: float = 1.0) -> str:
    """Return a share in words; a part of a time of 0 s is all of it."""
    return f"{100 * part / whole:.0f} %" if whole else "100 %"


def load_error(
    load: StepLoad,
    attempt: Attempt,
    hosts: Sequence[str],
    host_cpus: HostCpus | None,
    names: HostNames,
) -> Message:
    """Return why the load did not run beside the whole execution, or `NOTHING`.

    Args:
        hosts: the nodes of the instance; empty for a step without instances.
        host_cpus: the CPUs of the machine below virtual nodes.
    """
    path = attempt.files.load_report
    case = load.step.case
    try:
        report = parse_json(read_bytes(path, MAX_BINDING_BYTES))
        value = report["running"]
        if not isinstance(value, bool):
            raise TypeError(f"running: found {value!r}; accepted: true or false")
        ranks, running = int(report["ranks"]), value
        binding = read_binding(report["binding"])
    except FileNotFoundError:
        return Message("load-not-started", case=case)
    except (OSError, *UNREADABLE) as error:
        return damage(path.name, error)
    if ranks < load.step.ranks:
        return Message("load-incomplete", case=case, began=ranks, ranks=load.step.ranks)
    if not running:
        return Message("load-ended", case=case)
    wrong = binding_error(load.step, hosts or load.step.nodes, binding, host_cpus, names)
    return Message("load-binding", case=case, problem=wrong) if wrong else NOTHING
