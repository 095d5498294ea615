"""A program with its libraries, MPI and BLAS, read from output of ``probe-program.sh``.

The kernel that its BLAS chose is compared with the best one for the processor.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Literal

from proofmark.common.errors import InputError, refuse
from proofmark.common.message import Message
from proofmark.common.shared_models import StrictModel
from proofmark.common.yaml_models import shipped_data
from proofmark.site.node.facts import NodeFacts
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
        version: the release, None if the library does not contain it.
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
    refuse(mistakes)
    return tuple(map(_program, streams))


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


AS_INSTALLED = "as-installed"
RIGHT = "right"


class Kernel(StrictModel):
    """A kernel of a BLAS; ``data/blas_kernels.yml`` explains the fields."""

    name: str
    rank: int
    isa: str
    bits: int | None = None
    fma: bool = False
    needs: frozenset[str]
    vendor: str | None = None
    since: str | None = None
    force: bool = True

    def runs_on(self, facts: NodeFacts) -> bool:
        """Return whether the processor has all instructions that the kernel needs."""
        return self.needs <= set(facts.features)

    @property
    def relative_flops(self) -> int | None:
        """Vector width in bits, doubled with FMA: proportional to flop per cycle; None: unknown."""
        return self.bits and self.bits * (1 + self.fma)


class BlasFamily(StrictModel):
    """One BLAS; `variable` selects its kernel, None if the kit must not select one.

    `report` matches the line in which it prints the name of its kernel.
    """

    variable: str | None = None
    report: str
    kernels: dict[str, tuple[Kernel, ...]]


class Variant(StrictModel):
    """One choice of kernel for a program; `kernel` is None if it is not known."""

    kernel: str | None
    environment: dict[str, str]


class BlasVariants(StrictModel):
    """The choices of kernel for a program; empty if the program calls no BLAS.

    Attributes:
        variants: ``as-installed`` and ``right``; equal if the installed choice is right.
    """

    variants: dict[str, Variant]
    findings: tuple[Message, ...]


@lru_cache(maxsize=1)
def families() -> dict[str, BlasFamily]:
    """Return the content of ``data/blas_kernels.yml``, by family."""
    return shipped_data("proofmark.software", "blas_kernels.yml", dict[str, BlasFamily])


def candidate_kernels(facts: NodeFacts) -> tuple[str, ...]:
    """Return the OpenBLAS kernels for ``probe-program.sh -k`` to try, strongest first."""
    known = families()["openblas"].kernels.get(facts.machine, ())
    return tuple(kernel.name for kernel in reversed(_fitting(known, facts)))


def blas_variants(program: Program, facts: NodeFacts) -> BlasVariants:
    """Compare the kernel that the program's BLAS chose with the best one for the processor.

    Only for OpenBLAS is a kernel set, and only one that the probe saw it use.
    """
    blas = program.blas
    if blas is None:
        return BlasVariants(variants={}, findings=())
    family = families().get(blas.family)
    known = family.kernels.get(facts.machine, ()) if family else ()
    chosen = _named(known, blas.chosen or blas.built_for)
    if chosen is None:
        unknown = Variant(kernel=blas.chosen or blas.built_for, environment={})
        return BlasVariants(
            variants={AS_INSTALLED: unknown, RIGHT: unknown},
            findings=(_unknown_kernel(program, blas),),
        )
    right = _right(known, chosen, blas, facts)
    variable = family.variable if family else None
    forced = {variable: right.name} if variable and right != chosen else {}
    return BlasVariants(
        variants={
            AS_INSTALLED: Variant(kernel=chosen.name, environment={}),
            RIGHT: Variant(kernel=right.name, environment=forced),
        },
        findings=_findings(known, chosen, forced, blas, facts),
    )


def reported_kernels(family: str, output: str) -> tuple[str, ...]:
    """Return the kernels that a BLAS reported in a program's output, each once and sorted."""
    known = families().get(family)
    kernels = re.findall(known.report, output, re.MULTILINE) if known else []
    return tuple(sorted(set(kernels)))


def _fitting(kernels: Iterable[Kernel], facts: NodeFacts) -> list[Kernel]:
    """Return the kernels that may be proposed, from weakest to strongest.

    Kernels of equal rank stay in the order of the file.
    """
    fitting = [
        kernel
        for kernel in kernels
        if kernel.force and kernel.vendor in (None, facts.vendor) and kernel.runs_on(facts)
    ]
    return sorted(fitting, key=lambda kernel: kernel.rank)


def _named(kernels: Iterable[Kernel], name: str | None) -> Kernel | None:
    wanted = (name or "").casefold()
    return next((kernel for kernel in kernels if kernel.name.casefold() == wanted), None)


def _right(known: Iterable[Kernel], chosen: Kernel, blas: Blas, facts: NodeFacts) -> Kernel:
    accepted = [kernel for kernel in _fitting(known, facts) if blas.accepts(kernel.name)]
    best = [chosen, *accepted][-1]
    return best if best.rank > chosen.rank or not chosen.runs_on(facts) else chosen


def _findings(
    known: Iterable[Kernel],
    chosen: Kernel,
    forced: dict[str, str],
    blas: Blas,
    facts: NodeFacts,
) -> tuple[Message, ...]:
    title = _title(blas.family)
    library = f"{title} {blas.version}" if blas.version else ""
    about = {"library": library or Message("library-unversioned", library=title)}
    remedies = [Message("set", setting=f"{name}={value}") for name, value in forced.items()]
    if not chosen.runs_on(facts):
        return (_lacking(chosen, blas, facts, about, remedies),)
    best = [chosen, *_fitting(known, facts)][-1]
    about |= {"kernel": chosen.name, "isa": chosen.isa, "vector": facts.vector_isa}
    if best.rank > chosen.rank:
        if best.name not in forced.values():
            remedies.append(_why_not(best, blas))
        about |= {"processor": facts.cpu_model, "text": _loss(chosen, best)}
        if blas.forced:
            about["forced"] = blas.forced
        code = "kernel-slow-requested" if blas.forced else "kernel-slow"
        return (Message(code, remedy=tuple(remedies), **about),)
    if facts.vector_bits and chosen.bits and chosen.bits < facts.vector_bits:
        about["processor"] = f"{facts.cpu_model}, {facts.architecture}"
        bits = {"bits": chosen.bits, "all": facts.vector_bits}
        return (Message("kernel-narrow", **about, **bits),)
    return ()


def _lacking(
    chosen: Kernel,
    blas: Blas,
    facts: NodeFacts,
    about: Mapping[str, str],
    remedies: Sequence[Message],
) -> Message:
    """Return the finding about a kernel whose instructions the processor lacks."""
    kernel = chosen.name
    if blas.forced:
        kernel = Message("kernel-requested", kernel=kernel, forced=blas.forced)
    features = ", ".join(sorted(chosen.needs - set(facts.features)))
    fields = {**about, "kernel": kernel, "features": features, "processor": facts.cpu_model}
    if remedies:
        return Message("kernel-lacks-set", remedy=tuple(remedies), **fields)
    return Message("kernel-lacks", **fields)


def _why_not(best: Kernel, blas: Blas) -> Message:
    if blas.built_for:
        why = Message("best-one-processor")
    elif best.name in blas.tried:
        why = Message("best-lacking")
    else:
        why = Message("best-untried")
    if best.since:
        return Message("kernel-best-since", kernel=best.name, since=best.since, why=why)
    return Message("kernel-best", kernel=best.name, why=why)


def _loss(chosen: Kernel, best: Kernel) -> Message:
    slow, fast = chosen.relative_flops, best.relative_flops
    if not slow or not fast or fast < 2 * slow:
        return Message("loss-some")
    return Message("loss-several" if fast >= 4 * slow else "loss-two")


def _unknown_kernel(program: Program, blas: Blas) -> Message:
    about = {"program": program.name, "library": _title(blas.family)}
    if blas.family == "reference":
        return Message("blas-reference", program=program.name, library=blas.library)
    if blas.chosen:
        return Message("kernel-unlisted", kernel=blas.chosen, **about)
    why = blas.why_unknown or Message("absent-kernel-unknown")
    return Message("kernel-unknown", reason=why, **about)


def _title(family: str) -> str:
    return {"openblas": "OpenBLAS", "blis": "BLIS", "mkl": "MKL"}.get(family, family)
