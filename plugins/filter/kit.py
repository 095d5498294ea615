"""Filters on the packages of an environment and on the probes of nodes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from ansible.errors import AnsibleFilterError

from proofmark.api import (
    BadInput,
    candidate_kernels,
    known_packages,
    parse_probe,
    system_needs,
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


@_input_errors
def system_packages(
    names: Iterable[str], environments: str, environment: str, prefixes: str
) -> list[dict[str, Any]]:
    """Return the entries of the packages `names` in the ``system.yml`` of an environment.

    Args:
        names: the packages, as the cases name them.
        environments: the folder of all environments.
        prefixes: the folder under which pip installs.
    """
    wanted = [str(name) for name in names]
    entries = system_needs(Path(environments), str(environment), wanted, Path(prefixes))
    return [entry.model_dump(mode="json") for entry in entries]


@_input_errors
def step_packages(names: Iterable[str]) -> list[str]:
    """Return `names`, Debian packages that steps need, sorted.

    The run user can have changed `names`. A name that the kit does not have is an error.
    """
    return known_packages(f"{name}" for name in names)


def probes(results: Iterable[Mapping[str, Any]], node: str) -> str:
    """Return the standard input of ``proofmark stage record-software``, as JSON.

    Args:
        results: the outputs of ``probe-program.sh``, one per package, as a task registers them;
            `prefix` of an item is set if pip installed the package.
        node: the output of ``probe.sh`` on the probed node.
    """
    packages = {
        str(result["item"]["package"]): {
            "output": f"{result['stdout']}\n",
            "prefix": result["item"].get("prefix", ""),
        }
        for result in results
    }
    return json.dumps({"node": f"{node}\n", "packages": packages})


def module_outputs(results: Iterable[Mapping[str, Any]]) -> str:
    """Return the standard input of ``proofmark install``: the outputs of modules.sh by package."""
    return json.dumps({str(result["item"]["key"]): f"{result['stdout']}\n" for result in results})


@_input_errors
def blas_kernels(probe: str) -> str:
    """Return the BLAS kernels that run on a node; `probe` is the output of ``probe.sh`` there."""
    return " ".join(candidate_kernels(parse_probe(probe, "probe of the node")))


class FilterModule:
    """The filters of this file, as Ansible loads them."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return {
            "system_packages": system_packages,
            "step_packages": step_packages,
            "probes": probes,
            "module_outputs": module_outputs,
            "blas_kernels": blas_kernels,
        }
