"""Launchers: how a placement's list of CPUs per rank is spelled. One small module each.

A launcher module has ``lines(launch: Launch) -> list[str]``: the POSIX sh lines that become
the program. Adding one is adding a module here; nothing else names them.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules

from proofmark.errors import bad_input, nearest


@dataclass(frozen=True)
class Launch:
    """One command to start.

    Attributes:
        program: absolute path of the program.
        arguments: its arguments.
        environment: variables of the package, the variant and the case, in that order.
        hosts: the nodes, one name each.
        cpus: per rank its node's index in `hosts` and its ordered CPUs (operating system numbers,
            one per thread); empty where the program places its own processes.
        prefix: where the package's MPI lives.
        membind: the NUMA nodes that memory may come from; any, if empty.
    """

    program: str
    arguments: Sequence[str]
    environment: Mapping[str, str]
    hosts: Sequence[str]
    cpus: Sequence[tuple[int, Sequence[int]]]
    prefix: str
    membind: Sequence[int] = ()

    def exports(self, extra: Mapping[str, str] | None = None) -> list[str]:
        """Return the ``export`` lines of `extra`, then of the environment, which may override."""
        variables = {**(extra or {}), **self.environment}
        return [f"export {name}={shlex.quote(value)}" for name, value in variables.items()]

    def ranked(self) -> str:
        """Return the program behind the wrapper that notes where each rank is bound."""
        bound = ["numactl", f"--membind={','.join(map(str, self.membind))}"] if self.membind else []
        return 'sh "$HERE/run.sh" --rank ' + shlex.join([*bound, self.program, *self.arguments])


def names() -> list[str]:
    """Return the names of all launchers."""
    return sorted(module.name for module in iter_modules(__path__))


def lines(launcher: str, launch: Launch) -> list[str]:
    """Return the sh lines that start `launch` with `launcher`.

    Raises:
        BadInput: there is no such launcher.
    """
    if launcher not in names():
        hint = nearest(launcher, names())
        raise bad_input("launcher", "", f"{launcher!r}{hint}", ", ".join(names()))
    module = import_module(f"{__name__}.{launcher}")
    result: list[str] = module.lines(launch)
    return result
