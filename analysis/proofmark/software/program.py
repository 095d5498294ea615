"""The file, libraries, MPI and BLAS of a program, read from output of ``probe-program.sh``."""

from __future__ import annotations

import re
from typing import Literal

from proofmark.common.errors import BadInput, InputError
from proofmark.common.message import Message
from proofmark.common.strict_model import StrictModel
from proofmark.site.node.probe_text import ProbeStream, read_streams
from proofmark.software.mpi import file_drivers

Launcher = Literal["openmpi", "hydra", "plain"]
LAUNCHERS: dict[str, Launcher] = {
    "openmpi": "openmpi",
    "intel": "hydra",
    "mpich": "hydra",
    "mvapich": "hydra",
}


class Library(StrictModel):
    """A shared library that the dynamic linker loads; `package` is name and version, or None."""

    name: str
    path: str
    sha256: str | None
    package: str | None


class Blas(StrictModel):
    """The BLAS that a program calls.

    Attributes:
        family: ``openblas``, ``blis``, ``mkl``, ``reference``, ….
        version: the release, None if the library does not contain it.
        library: its file, or ``static``.
        chosen: the kernel that it uses on the node and in the environment of the probe.
        why_unknown: the reason if `chosen` is None.
        tried: by requested kernel, the kernel that the library then used.
        forced: the kernel that the environment of the probe requests.
        built_for: the only processor that it was built for, if the name of its file contains one.
    """

    family: str
    version: str | None
    library: str
    chosen: str | None
    why_unknown: Message | None
    tried: dict[str, str]
    forced: str | None
    built_for: str | None

    def accepts(self, kernel: str) -> bool:
        """Return whether the probe saw the library use `kernel`.

        In place of a kernel that it lacks, OpenBLAS uses another one.
        """
        used = [*self.tried.values(), self.chosen or ""]
        return kernel.casefold() in {name.casefold() for name in used}


class Mpi(StrictModel):
    """The MPI library that a program calls, and the ``mpirun`` of the same installation.

    `drivers` are its drivers of files, ``romio:ufs`` or ``ompio:lustre``; empty if unknown.
    """

    family: str | None
    version: str | None
    library: str
    mpirun: str | None
    drivers: tuple[str, ...] = ()


class Program(StrictModel):
    """One program: its file, the hash of this file, and its libraries.

    Attributes:
        path: the absolute path, with symbolic links resolved.
        package: name and version of the distribution's package that owns the file, or None.
        missing: libraries that the dynamic linker does not find.
        absent: by property that could not be probed, the reason.
    """

    name: str
    path: str
    sha256: str | None
    package: str | None
    libraries: tuple[Library, ...]
    missing: tuple[str, ...]
    blas: Blas | None
    mpi: Mpi | None
    absent: dict[str, Message]

    @property
    def launcher(self) -> Launcher:
        """Return the launcher of its MPI; ``plain`` if the program calls no MPI."""
        return LAUNCHERS.get(self.mpi.family or "", "plain") if self.mpi else "plain"


def unprobed(name: str, path: str, mpi: str) -> Program:
    """Return a program of which only its path and the family of its MPI, or "", are known."""
    return Program(
        name=name,
        path=path,
        sha256=None,
        package=None,
        libraries=(),
        missing=(),
        blas=None,
        mpi=Mpi(family=mpi, version=None, library="", mpirun=None) if mpi else None,
        absent={},
    )


def parse_programs(text: str, source: str) -> tuple[Program, ...]:
    """Return the programs in an output of ``probe-program.sh``; `source` is its name in messages.

    Raises:
        BadInput: the text is not a complete probe, or programs are missing; names all of them.
    """
    streams = read_streams(text, source)
    mistakes = []
    for stream in streams:
        if stream.kind != "program":
            mistakes.append(InputError(source, "", f"kind {stream.kind!r}", "kind 'program'"))
        elif "program" in stream.absent:
            name = stream.pairs("program").get("name", "")
            mistakes.append(InputError(source, name, stream.absent["program"], "a program in PATH"))
        elif not {"name", "path"} <= stream.pairs("program").keys():
            mistakes.append(InputError(source, "program", "no name or path", "both"))
    if mistakes:
        raise BadInput(*mistakes)
    return tuple(map(_program, streams))


def parse_program(text: str, source: str) -> Program:
    """Return the program of a probe of one program.

    Raises:
        BadInput: see `parse_programs`; or the probe has several programs.
    """
    programs = parse_programs(text, source)
    if len(programs) != 1:
        raise BadInput(InputError(source, "", f"{len(programs)} programs", "one program"))
    return programs[0]


def _program(stream: ProbeStream) -> Program:
    facts = stream.pairs("program")
    path = facts["path"]
    hash_lines = (line.partition(" ") for line in stream.lines("hashes"))
    hashes = {file: digest for digest, _, file in hash_lines}
    packages = stream.pairs("packages")

    def package(file: str) -> str | None:
        return packages.get(file) or packages.get(file.removeprefix("/usr"))

    libraries = [
        Library(name=name, path=file, sha256=hashes.get(file), package=package(file))
        for name, file in stream.pairs("libraries").items()
    ]
    missing = [key for key in stream.absent if key.startswith("libraries.")]
    return Program(
        name=facts["name"],
        path=path,
        sha256=hashes.get(path),
        package=package(path),
        libraries=tuple(sorted(libraries, key=lambda library: library.name)),
        missing=tuple(sorted(key.removeprefix("libraries.") for key in missing)),
        blas=_blas(stream),
        mpi=_mpi(stream, {library.path: library.package for library in libraries}),
        absent=dict(stream.absent),
    )


def _blas(stream: ProbeStream) -> Blas | None:
    facts = stream.pairs("blas")
    if "family" not in facts:
        return None
    library = facts.get("library", "unknown")
    tried = {key[6:]: value for key, value in facts.items() if key.startswith("tried ")}
    # The file name of a library for one processor contains the processor's name, and p for
    # threads: libopenblas_haswellp-r0.3.26.so.
    built = re.search(r"libopenblas_([a-z0-9]+?)[po]?-r", library)
    return Blas(
        family=facts["family"],
        version=facts.get("version"),
        library=library,
        chosen=facts.get("chosen"),
        why_unknown=stream.absent.get("blas.chosen"),
        tried=tried,
        forced=facts.get("forced"),
        built_for=built[1] if built else None,
    )


def _mpi(stream: ProbeStream, packages: dict[str, str | None]) -> Mpi | None:
    facts = stream.pairs("mpi")
    if "library" not in facts:
        return None
    # mpirun prints the release. Without mpirun, the version of the package is used.
    output = " ".join(line for line in stream.lines("mpi") if line.startswith("says: "))
    release = re.search(r"\d+\.\d+(\.\d+)*", output)
    if ("Open MPI" in output) != (facts.get("family") == "openmpi"):
        release = None  # the mpirun in the prefix is that of another MPI
    package = packages.get(facts["library"])
    return Mpi(
        family=facts.get("family"),
        version=release[0] if release else package and package.partition(" ")[2],
        library=facts["library"],
        mpirun=facts.get("mpirun"),
        drivers=file_drivers(facts.get("io", "")),
    )
