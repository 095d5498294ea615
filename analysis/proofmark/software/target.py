"""Which processors run what was built for one: the instruction sets of archspec's targets.

A program started on a processor that lacks what its compiler was told to use dies by SIGILL in the
middle of a step. So the job holds its nodes against the target before anything is started on them:
``shell/fit.awk`` does it on the cluster, from the nodes' own probes.
"""

from __future__ import annotations

from dataclasses import dataclass

from archspec.cpu import TARGETS

from proofmark.common.errors import bad_input, nearest
from proofmark.site.node.cpu import POWER

_SPELT = {"sse3": "pni"}
"""Instruction sets that Linux lists in ``/proc/cpuinfo`` under another name than archspec's."""


@dataclass(frozen=True)
class Needs:
    """What a processor must have to run programs built for a target.

    Attributes:
        target: archspec's name.
        machine: what ``uname -m`` says on such a processor.
        generation: of POWER (9 for POWER9), else 0.
        flags: words of ``/proc/cpuinfo``, sorted; none on POWER, where the generation says it all.
    """

    target: str
    machine: str
    generation: int
    flags: tuple[str, ...]

    def line(self) -> str:
        """Return the line that ``fit.awk`` reads."""
        return " ".join([self.target, self.machine, str(self.generation), *self.flags])


def needs(target: str) -> Needs:
    """Return what programs built for `target` need.

    Raises:
        BadInput: archspec knows no such target.
    """
    if target not in TARGETS:
        hint = nearest(target, TARGETS)
        raise bad_input("software.json", "target", f"{target!r}{hint}", "an archspec name")
    known = TARGETS[target]
    machine = known.family.name
    flags = () if machine in POWER else sorted(_SPELT.get(word, word) for word in known.features)
    return Needs(target, machine, known.generation, tuple(flags))
