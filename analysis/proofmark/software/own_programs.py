"""Programs of the kit itself: one C file each, which the controller compiles for every provider.

A provider does not need them: they use only the C library and OpenMP. A change of one of them needs
no new lock of Spack (docs/design/validity.md).
"""

from __future__ import annotations

import hashlib
import platform
import tempfile
from collections.abc import Collection, Iterable
from pathlib import Path

from proofmark.common.errors import bad_input
from proofmark.common.processes import run_command
from proofmark.software.installed import Installed, Provided

SOURCES = Path("common/sources")
"""In ``environments/``: a folder for each package, with the C file of its program."""
COMPILE = ("gcc", "-std=c11", "-O2", "-fopenmp")
TIMEOUT_S = 120.0


def own_packages(environments: Path) -> frozenset[str]:
    """Return the packages that the kit compiles itself, by the names of the cases."""
    return frozenset(path.name for path in (environments / SOURCES).glob("*/"))


def own_prefix(environments: Path, package: str, prefixes: Path) -> Path:
    """Return the folder of a package below `prefixes`. Other sources have another folder.

    Raises:
        BadInput: the kit has no such package.
    """
    digest = hashlib.sha256(f"{COMPILE} {platform.machine()}".encode())
    digest.update(_source(environments, package).read_bytes())
    return prefixes / f"{package}-{digest.hexdigest()[:12]}"


def build(environments: Path, package: str, prefixes: Path) -> Provided:
    """Compile the program of a package, if that is not done, and return the package.

    The program is for any processor of the architecture of this machine.

    Raises:
        BadInput: the kit has no such package, or the program cannot be compiled.
    """
    source, prefix = _source(environments, package), own_prefix(environments, package, prefixes)
    program = prefix / "bin" / source.stem
    if not program.is_file():
        program.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=prefix) as folder:
            made = Path(folder) / program.name
            _compile([*COMPILE, f"{source}", "-o", f"{made}"], source)
            made.rename(program)
    return Provided(
        version=prefix.name.rpartition("-")[2],
        spec=" ".join(COMPILE),
        target=platform.machine(),
        prefix=f"{prefix}",
        programs={source.stem: f"{program}"},
    )


def with_own(
    installed: Installed, environments: Path, packages: Collection[str], prefixes: Path
) -> Installed:
    """Return `installed` with the own `packages`, which are compiled if that is not done.

    Raises:
        BadInput: see `build`.
    """
    built = {name: build(environments, name, prefixes) for name in sorted(packages)}
    return installed.model_copy(update={"packages": {**installed.packages, **built}})


def not_built(environments: Path, packages: Iterable[str], prefixes: Path) -> list[str]:
    """Return those of the own `packages` that are not compiled."""
    return [
        name
        for name in sorted(packages)
        if not any(own_prefix(environments, name, prefixes).glob("bin/*"))
    ]


def _source(environments: Path, package: str) -> Path:
    found = sorted((environments / SOURCES / package).glob("*.c"))
    if len(found) != 1:
        known = ", ".join(sorted(own_packages(environments)))
        raise bad_input(environments / SOURCES, package, f"{len(found)} C files", f"one of {known}")
    return found[0]


def _compile(words: list[str], source: Path) -> None:
    """Raise BadInput if `words` do not compile `source`."""
    try:
        done = run_command(words, timeout_s=TIMEOUT_S)
    except FileNotFoundError:
        found, accepted = f"no {words[0]} on the controller", "a C compiler with OpenMP"
        raise bad_input(source, "", found, accepted) from None
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        found = f"{words[0]} ended with {done.returncode}: {lines[-1] if lines else 'no message'}"
        raise bad_input(
            source, "", found, "a C compiler with OpenMP and the headers of the C library"
        )
