"""Decides whether a node was disturbed while a step ran, by the samples of the step.

``noise.sh`` has the same rule, because the job script repeats a disturbed step. A low share of CPU
time alone is no disturbance: a program may wait for I/O.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from proofmark.cases.case import Stability
from proofmark.common.files import read_bytes
from proofmark.common.input_limits import MAX_BINDING_BYTES
from proofmark.common.json_text import parse_json
from proofmark.common.message import NOTHING, Message
from proofmark.plan.step import StepLoad
from proofmark.records.binding import binding_error
from proofmark.records.hosts import HostNames
from proofmark.runs.attempts import Attempt
from proofmark.runs.binding_file import UNREADABLE, damage, read_binding
from proofmark.runs.noise_file import NodeNoise, disturbers
from proofmark.site.execution import HostCpuMap

EXPLAINS = 0.5
"""The least part of a delay that other processes or a hypervisor must explain. The delay of ranks
that share a CPU is caused by the ranks."""
BUSY = 0.5
"""The least share of the time of their CPUs that ranks use if other processes can disturb them.
Ranks that wait for I/O use less."""
_NAMED = 3
"""The largest number of processes and nodes that a reason names."""


def noise_reason(nodes: Sequence[NodeNoise], stability: Stability) -> Message:
    """Return why an execution on `nodes` was disturbed, or `NOTHING`.

    One disturbed node, and on it one disturbed rank, disturbs the execution.
    """
    disturbed = [(node, causes) for node in nodes if (causes := [*_causes(node, stability)])]
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


def _causes(node: NodeNoise, stability: Stability) -> Iterator[Message]:
    if node.seconds < stability.least_seconds:
        return
    if node.worst_steal_s > stability.max_steal * node.seconds:
        share = _percent(node.worst_steal_s, node.seconds)
        yield Message("stolen", share=share, limit=_percent(stability.max_steal))
    busy = node.ranks_s >= BUSY * node.rank_seconds * node.cpus
    if busy and node.others_s > stability.max_others * node.seconds * node.cpus:
        share = _percent(node.others_s, node.seconds * node.cpus)
        yield Message("others-used", share=share, limit=_percent(stability.max_others))
    lost = node.others_s + node.steal_s
    delay, limit = node.worst_delay_s, stability.max_delay * node.rank_seconds
    if delay > limit and lost >= EXPLAINS * delay:
        share = _percent(delay, node.rank_seconds)
        yield Message("thread-waited", share=share, limit=_percent(stability.max_delay))
    burst = node.burst
    if burst > stability.max_burst and node.burst_others >= EXPLAINS * burst:
        most = _percent(stability.max_burst)
        yield Message("thread-burst", share=_percent(burst), limit=most)


def _percent(part: float, whole: float = 1.0) -> str:
    """Return a share in words; a part of a time of 0 s is all of it."""
    return f"{100 * part / whole:.0f} %" if whole else "100 %"


def load_error(
    load: StepLoad,
    attempt: Attempt,
    hosts: Sequence[str],
    host_cpus: HostCpuMap | None,
    names: HostNames,
) -> Message:
    """Return why the load did not run beside the whole execution, or `NOTHING`.

    Args:
        load: the load of the step.
        attempt: one execution of the step.
        hosts: the nodes of the instance; empty for a step without instances.
        host_cpus: the CPUs of the machine below virtual nodes.
        names: the names that nodes report.
    """
    path = attempt.files.load_report
    case = load.step.case
    try:
        report = parse_json(read_bytes(path, MAX_BINDING_BYTES))
        ranks, running = int(report["ranks"]), _flag(report["running"])
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


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"running: found {value!r}; accepted: true or false")
    return value
