"""Filters: what the package knows of environments, processors and plans."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from ansible.errors import AnsibleFilterError

from proofmark.api import (
    BadInput,
    called,
    candidate_kernels,
    duration,
    parse_probe,
    size,
    step_programs,
    system_needs,
    unfold,
)

P = ParamSpec("P")
R = TypeVar("R")


def _plainly(function: Callable[P, R]) -> Callable[P, R]:
    """Let a mistake in an input end the task with its message alone."""

    @wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except BadInput as error:
            raise AnsibleFilterError(str(error)) from None

    return wrapped


def packages(plan: Mapping[str, Any]) -> list[str]:
    """Return the packages that the steps of `plan` need, sorted."""
    jobs = (job for group in plan["groups"] for job in group["jobs"])
    return sorted({str(step["package"]) for job in jobs for step in job["steps"]})


@_plainly
def step_packages(plan: Mapping[str, Any]) -> list[str]:
    """Return the Debian packages that the steps of `plan` need on a node beside its own, sorted."""
    jobs = (job for group in plan["groups"] for job in group["jobs"])
    bound = any(step.get("membind") for job in jobs for step in job["steps"])
    return sorted({each.debian for each in step_programs(called(), bound=bound).values()} - {""})


def nodes(plan: Mapping[str, Any]) -> int:
    """Return how many nodes `plan` uses."""
    return len(
        {n for group in plan["groups"] for job in group["jobs"] for n in unfold(job["nodes"])}
    )


def cost(plan: Mapping[str, Any]) -> str:
    """Return what `plan` will cost, in one line."""
    totals = plan["totals"]
    return (
        f"suite: {plan['suite']}, partition: {plan['partition']}, "
        f"steps: {totals['steps']}, jobs: {totals['jobs']}, "
        f"time: about {duration(totals['wall_s'])}, node-hours: {totals['node_hours']:.2f}, "
        f"scratch: up to {size(totals['scratch_peak_bytes'])} at one time"
    )


@_plainly
def needs(names: Iterable[str], file: str, prefixes: str) -> list[dict[str, Any]]:
    """Return what the packages `names` need, by a ``system.yml``; pip installs under `prefixes`."""
    found = system_needs(Path(file), [str(name) for name in names], Path(prefixes))
    return [need.model_dump(mode="json") for need in found]


def provided(found: Iterable[Mapping[str, Any]], probes: str, origin: str) -> dict[str, Any]:
    """Return the options of ``proofmark record-software`` for what `origin` needs."""
    each = list(found)
    return {
        "probe": [f"{probes}/{need['package']}.probe" for need in each],
        "node": f"{probes}/node.facts",
        "prefix": [f"{need['package']}={need['prefix']}" for need in each if need.get("prefix")],
        "installed": origin != "system",
    }


def loaded(packages: Iterable[str], folder: str) -> list[str]:
    """Return, as ``proofmark install`` wants it, where the answers of `modules.sh` lie."""
    return [f"{package}={folder}/{package}.modules" for package in packages]


@_plainly
def blas_kernels(probe: str) -> str:
    """Return the BLAS kernels that suit a node, by what ``probe.sh`` printed there."""
    return " ".join(candidate_kernels(parse_probe(probe, "probe of the node")))


class FilterModule:
    """Tells Ansible the filters' names."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return {
            "packages": packages,
            "step_packages": step_packages,
            "nodes": nodes,
            "cost": cost,
            "needs": needs,
            "provided": provided,
            "loaded": loaded,
            "blas_kernels": blas_kernels,
        }
