"""The instruction sets that programs need if they were built for a target of archspec.

A processor ends a program by SIGILL at the first instruction that it lacks, in the middle of a
step. A job therefore compares its nodes with the target before its first step: the script
``shell/fit.awk`` does so on the cluster, from the probes of the nodes.
"""

from __future__ import annotations

import shutil
from contextlib import suppress
from dataclasses import dataclass

from archspec.cpu import TARGETS, UnsupportedMicroarchitecture

from proofmark.common.errors import bad_input, nearest
from proofmark.common.processes import run_command
from proofmark.site.node.cpu import POWER

_LINUX_NAMES = {"sse3": "pni"}
"""Names in ``/proc/cpuinfo`` of the instruction sets for which archspec uses another name."""


@dataclass(frozen=True)
class TargetRequirements:
    """The properties that a processor needs to run programs built for a target.

    Attributes:
        machine: the output of ``uname -m``.
        generation: the generation of POWER (9 for POWER9), else 0.
        flags: flags of ``/proc/cpuinfo``, sorted; empty for POWER, which the generation describes.
    """

    target: str
    machine: str
    generation: int
    flags: tuple[str, ...]

    def line(self) -> str:
        """Return the line that ``fit.awk`` reads."""
        return " ".join([self.target, self.machine, str(self.generation), *self.flags])


def target_requirements(target: str) -> TargetRequirements:
    """Return the properties that programs built for `target` need.

    Raises:
        BadInput: archspec has no such target.
    """
    if target not in TARGETS:
        hint = nearest(target, TARGETS)
        raise bad_input("software.json", "target", f"{target!r}{hint}", "an archspec name")
    known = TARGETS[target]
    machine = known.family.name
    flags = (
        () if machine in POWER else sorted(_LINUX_NAMES.get(word, word) for word in known.features)
    )
    return TargetRequirements(target, machine, known.generation, tuple(flags))


def gcc_flags(target: str, version: str) -> str:
    """Return the options of gcc `version` for the processor `target`, ``-march=knl -mtune=knl``.

    Raises:
        BadInput: archspec has no such target, or this gcc does not know it.
    """
    known = TARGETS[target_requirements(target).target]
    # The range 10.3:12.2 of archspec has 12.2, and by its own order not 12.2.0.
    for release in (version, ".".join(version.split(".")[:2])):
        with suppress(UnsupportedMicroarchitecture):
            return str(known.optimization_flags("gcc", release))
    accepted = ", ".join(str(entry["versions"]) for entry in known.compilers["gcc"])
    raise bad_input("gcc", target, version, f"gcc {accepted}")


def controller_gcc() -> str:
    """Return the version of the ``gcc`` in PATH, ``12.2.0``; empty if there is none."""
    gcc = shutil.which("gcc")
    done = gcc and run_command([gcc, "-dumpfullversion"])
    return done.stdout.strip() if done and done.returncode == 0 else ""
