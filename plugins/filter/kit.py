"""Filters on plans, packages of an environment, and probes of nodes."""

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


def _input_errors(function: Callable[P, R]) -> Callable[P, R]:
    """Turn `BadInput` into an error of Ansible with the same message and no traceback."""

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


@_input_errors
def step_packages(plan: Mapping[str, Any]) -> list[str]:
    """Return the Debian packages that the scripts of the steps need on a node, sorted."""
    jobs = (job for group in plan["groups"] for job in group["jobs"])
    bound = any(step.get("membind") for job in jobs for step in job["steps"])
    programs = step_programs(called(), bound=bound).values()
    return sorted({program.debian for program in programs} - {""})


def nodes(plan: Mapping[str, Any]) -> int:
    """Return the number of different nodes that `plan` uses."""
    jobs = (job for group in plan["groups"] for job in group["jobs"])
    return len({node for job in jobs for node in unfold(job["nodes"])})


def cost(plan: Mapping[str, Any]) -> str:
    """Return one line with the cost of `plan`: steps, jobs, time, node-hours, scratch."""
    totals = plan["totals"]
    return (
        f"suite: {plan['suite']}, partition: {plan['partition']}, "
        f"steps: {totals['steps']}, jobs: {totals['jobs']}, "
        f"time: about {duration(totals['wall_s'])}, node-hours: {totals['node_hours']:.2f}, "
        f"scratch: up to {size(totals['scratch_peak_bytes'])} at one time"
    )


@_input_errors
def system_packages(names: Iterable[str], file: str, prefixes: str) -> list[dict[str, Any]]:
    """Return the entries of the packages `names` in a ``system.yml``.

    Args:
        names: the packages, as the cases name them.
        file: the ``system.yml`` of the environment.
        prefixes: the folder under which pip installs.
    """
    entries = system_needs(Path(file), [str(name) for name in names], Path(prefixes))
    return [entry.model_dump(mode="json") for entry in entries]


def provide_options(
    entries: Iterable[Mapping[str, Any]], probes: str, provider: str
) -> dict[str, Any]:
    """Return the options of ``proofmark record-software``.

    Args:
        entries: the packages that were probed; `prefix` is set if pip installed the package.
        probes: the folder with the probes of the programs and of the node.
        provider: the value of ``provision_from``.
    """
    packages = list(entries)
    return {
        "probe": [f"{probes}/{entry['package']}.probe" for entry in packages],
        "node": f"{probes}/node.facts",
        "prefix": [
            f"{entry['package']}={entry['prefix']}" for entry in packages if entry.get("prefix")
        ],
        "installed": provider != "system",
    }


def module_files(packages: Iterable[str], folder: str) -> list[str]:
    """Return the values of ``proofmark install --loaded``: the output of modules.sh by package."""
    return [f"{package}={folder}/{package}.modules" for package in packages]


@_input_errors
def blas_kernels(probe: str) -> str:
    """Return the BLAS kernels that run on a node; `probe` is the output of ``probe.sh`` there."""
    return " ".join(candidate_kernels(parse_probe(probe, "probe of the node")))


class FilterModule:
    """The filters of this file, as Ansible loads them."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return {
            "packages": packages,
            "step_packages": step_packages,
            "nodes": nodes,
            "cost": cost,
            "system_packages": system_packages,
            "provide_options": provide_options,
            "module_files": module_files,
            "blas_kernels": blas_kernels,
        }
