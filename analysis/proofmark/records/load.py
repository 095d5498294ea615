"""Checks that the load of a step ran during the whole program, on the planned CPUs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from proofmark.common.files import read_bytes
from proofmark.common.json_text import parse_json
from proofmark.common.limits import MAX_BINDING_BYTES
from proofmark.common.message import NOTHING, Message
from proofmark.plan.step import StepLoad
from proofmark.records.binding import binding_error
from proofmark.records.hosts import HostNames
from proofmark.runs.attempts import Attempt
from proofmark.runs.binding_file import UNREADABLE, damage, read_binding
from proofmark.site.execution import HostCpuMap


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
