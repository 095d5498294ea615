"""What a program is made of, from what ``probe-program.sh`` printed about it."""

from __future__ import annotations

import re
from typing import Literal

from proofmark.common.errors import BadInput, InputError
from proofmark.common.strict_model import StrictModel
from proofmark.site.node.probe_text import Stream, read_streams

Launcher = Literal["openmpi", "hydra", "plain"]
LAUNCHERS: dict[str, Launcher] = {
    "openmpi": "openmpi",
    "intel": "hydra",
    "mpich": "hydra",
    "mvapich": "hydra",
}


class Library(StrictModel):
    """A shared library as the dynamic linker finds it; `package` is name and version."""

    name: str
    path: str
    sha256: str | None
    package: str | None


class Blas(StrictModel):
    """The linear algebra that a program calls.

    Attributes:
        family: ``openblas``, ``blis``, ``mkl``, ``reference``, ….
        library: its file, or ``static``.
        chosen: the kernel it takes on the node and in the environment of the probe.
        why_unknown: why `chosen` is None.
        tried: for each kernel that was asked for, the one that the library then took.
        forced: what the environment of the probe asks for.
        built_for: the one processor it was built for, where its file name says so.
    """

    family: str
    version: str | None
    library: str
    chosen: str | None
    why_unknown: str | None
    tried: dict[str, str]
    forced: str | None
    built_for: str | None

    def accepts(self, kernel: str) -> bool:
        """Say whether the library was seen to take `kernel`; for one it lacks it takes another."""
        taken = [*self.tried.values(), self.chosen or ""]
        return kernel.casefold() in {name.casefold() for name in taken}


class Mpi(StrictModel):
    """The MPI library that a program calls, and the ``mpirun`` that belongs to it."""

    family: str | None
    version: str | None
    library: str
    mpirun: str | None


class Program(StrictModel):
    """One program: which file, which bits, which libraries.

    Attributes:
        path: absolute, symbolic links resolved.
        package: of the distribution, name and version; None where none owns it.
        missing: libraries that the dynamic linker does not find.
        absent: what could not be told, with the reason.
    """

    name: str
    path: str
    sha256: str | None
    package: str | None
    libraries: tuple[Library, ...]
    missing: tuple[str, ...]
    blas: Blas | None
    mpi: Mpi | None
    absent: dict[str, str]

    @property
    def launcher(self) -> Launcher:
        """Return how its ranks are started: by its MPI, or not at all."""
        return LAUNCHERS.get(self.mpi.family or "", "plain") if self.mpi else "plain"


def parse_programs(text: str, source: str) -> tuple[Program, ...]:
    """Read the probes of several programs.

    Raises:
        BadInput: the text is no whole probe, or a program is not there; names all that are not.
    """
    streams = read_streams(text, source)
    mistakes = []
    for stream in streams:
        if stream.kind != "program":
            mistakes.append(InputError(source, "", f"a probe of kind {stream.kind!r}", "program"))
        elif "program" in stream.absent:
            name = stream.pairs("program").get("name", "")
            mistakes.append(InputError(source, name, stream.absent["program"], "a program in PATH"))
        elif not {"name", "path"} <= stream.pairs("program").keys():
            mistakes.append(
                InputError(source, "program", "no name or path", "what the probe prints")
            )
    if mistakes:
        raise BadInput(*mistakes)
    return tuple(map(_program, streams))


def parse_program(text: str, source: str) -> Program:
    """Read the probe of one program.

    Raises:
        BadInput: as `parse_programs`, or there are several.
    """
    programs = parse_programs(text, source)
    if len(programs) != 1:
        raise BadInput(InputError(source, "", f"{len(programs)} programs", "one"))
    return programs[0]


def _program(stream: Stream) -> Program:
    told = stream.pairs("program")
    path = told["path"]
    hashes = {file: digest for digest, _, file in map(_at_blank, stream.lines("hashes"))}
    packages = stream.pairs("packages")

    def package(file: str) -> str | None:
        return packages.get(file) or packages.get(file.removeprefix("/usr"))

    libraries = [
        Library(name=name, path=file, sha256=hashes.get(file), package=package(file))
        for name, file in stream.pairs("libraries").items()
    ]
    lost = [thing for thing in stream.absent if thing.startswith("libraries.")]
    return Program(
        name=told["name"],
        path=path,
        sha256=hashes.get(path),
        package=package(path),
        libraries=tuple(sorted(libraries, key=lambda library: library.name)),
        missing=tuple(sorted(thing.removeprefix("libraries.") for thing in lost)),
        blas=_blas(stream),
        mpi=_mpi(stream, {library.path: library.package for library in libraries}),
        absent=dict(stream.absent),
    )


def _blas(stream: Stream) -> Blas | None:
    told = stream.pairs("blas")
    if "family" not in told:
        return None
    library = told.get("library", "unknown")
    tried = {key[6:]: value for key, value in told.items() if key.startswith("tried ")}
    # Libraries for one processor carry its name: libopenblas_haswellp-r0.3.26.so, p for threads.
    built = re.search(r"libopenblas_([a-z0-9]+?)[po]?-r", library)
    return Blas(
        family=told["family"],
        version=told.get("version"),
        library=library,
        chosen=told.get("chosen"),
        why_unknown=stream.absent.get("blas.chosen"),
        tried=tried,
        forced=told.get("forced"),
        built_for=built[1] if built else None,
    )


def _mpi(stream: Stream, packages: dict[str, str | None]) -> Mpi | None:
    told = stream.pairs("mpi")
    if "library" not in told:
        return None
    # mpirun knows the release; where it is missing, the package's version has to do.
    says = " ".join(line for line in stream.lines("mpi") if line.startswith("says: "))
    said = re.search(r"\d+\.\d+(\.\d+)*", says)
    package = packages.get(told["library"])
    return Mpi(
        family=told.get("family"),
        version=said[0] if said else package and package.partition(" ")[2],
        library=told["library"],
        mpirun=told.get("mpirun"),
    )


def _at_blank(line: str) -> tuple[str, str, str]:
    return line.partition(" ")
