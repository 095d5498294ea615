"""Checks that the load of a step ran during the whole program, on the planned CPUs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from proofmark.common.files import read_bytes
from proofmark.common.json_text import parse_json
from proofmark.common.limits import MAX_BINDING_BYTES
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
) -> str:
    """Return why the load did not run beside the whole execution, or an empty string.

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
        return f"the load {case} was not started"
    except (OSError, *UNREADABLE) as error:
        return damage(path.name, error)
    if ranks < load.step.ranks:
        return f"the load {case} did not start: {ranks} of {load.step.ranks} ranks began"
    if not running:
        return f"the load {case} ended before the program"
    wrong = binding_error(load.step, hosts or load.step.nodes, binding, host_cpus, names)
    return f"the load {case}: {wrong}" if wrong else ""


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"running: found {value!r}; accepted: true or false")
    return value
