"""The environments of the kit, as far as the choice for a node needs them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from archspec.cpu import TARGETS

from proofmark.common.files import text_or_empty
from proofmark.common.input_limits import MAX_YAML_BYTES

_TARGET = re.compile(r"target=([a-z0-9_]+)")
_ARRAY = re.compile(r"stream_array_size=(\d{1,12})")
_THREADED = re.compile(r"threads=(openmp|pthreads)")


@dataclass(frozen=True)
class Environment:
    """One folder of ``environments/``.

    Attributes:
        target: archspec's name of the microarchitecture that its programs are built for.
        stream_array_size: elements of an array of STREAM, compiled in.
        threaded_blas: whether the BLAS runs threads.
        system: whether packages of the distribution can provide its programs.
        locks: the operating systems that have a lock of Spack (``debian12``).
    """

    target: str
    stream_array_size: int
    threaded_blas: bool
    system: bool
    locks: tuple[str, ...] = ()

    def fits(self, architecture: str) -> bool:
        """Return whether programs of the environment run on `architecture` and are made for it.

        A specific target fits only itself: another processor has another optimum.
        """
        node, target = TARGETS.get(architecture), TARGETS.get(self.target)
        if node is None or target is None:
            return False
        generic = target.vendor == "generic" and target in node.ancestors
        return self.target == architecture or generic

    def has_lock(self, system: str) -> bool:
        """Return whether a lock is for an operating system, by its name in os-release(5).

        The name is that for people (``PRETTY_NAME``): ``Debian GNU/Linux 12 (bookworm)``.
        """
        words = re.findall(r"[a-z]+|\d+", system.lower())
        return any(set(re.findall(r"[a-z]+|\d+", lock)) <= set(words) for lock in self.locks)

    def rank(self, architecture: str) -> tuple[bool, int]:
        """Return the order of fitting environments: the exact one last, then the most features."""
        return self.target == architecture, len(TARGETS[self.target].ancestors)


def environments_in(folder: Path) -> dict[str, Environment]:
    """Return the environments in `folder`, ``environments/`` of a checkout, by name.

    A folder whose ``spack.yaml`` names no target, or no size of the arrays, is left out.
    """
    found: dict[str, Environment] = {}
    for path in sorted(folder.glob("*/spack.yaml")):
        text = text_or_empty(path, MAX_YAML_BYTES)
        target, array = _TARGET.search(text), _ARRAY.search(text)
        if target and array:
            found[path.parent.name] = Environment(
                target=target[1],
                stream_array_size=int(array[1]),
                threaded_blas=bool(_THREADED.search(text)),
                system=(path.parent / "system.yml").is_file(),
                locks=tuple(sorted(lock.parent.name for lock in path.parent.glob("*/spack.lock"))),
            )
    return found
