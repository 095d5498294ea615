"""The MPI and BLAS libraries that a system has, by the layouts of distributions and vendors.

All functions that find read below a folder `root`, which is ``/`` on a node. They start no program:
the header of an MPI has its name and version, and an OpenBLAS has its threads in its text. Only
`with_build` starts the programs of an MPI that state how it was built.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from pathlib import Path

from proofmark.common.shared_models import StrictModel
from proofmark.common.yaml_models import shipped_data
from proofmark.software import mpi

FILE_SYSTEM_HEADERS = (
    ("lustre", "usr/include/lustre/lustreapi.h"),
    ("gpfs", "usr/include/gpfs.h"),
)
"""The headers of parallel file systems; a driver is built only with them."""

MPICC = "bin/mpicc"
HEADERS = (
    *("../../include", "../../include/*", "../../include/*/*"),
    *("../../lib*/*/include", "../../lib*/*/*/include"),
)
"""Patterns of the folder with ``mpi.h`` in any prefix, relative to the wrapper.

The first is that of every ``make install``; the others are those of packages with several
processors or several MPIs.
"""


class Problem(StrEnum):
    """Why an MPI cannot be used."""

    NO_HEADERS = "no mpi.h"
    NOT_SELECTED = "not selected"


@dataclass(frozen=True)
class SitePart:
    """A library or compiler of the site, as an external of Spack.

    Attributes:
        variants: the variants that Spack is told, ``threads=none`` or ``+wrappers``.
        file: the wrapper of an MPI, the file of a library.
    """

    package: str
    version: str
    prefix: str
    variants: str = ""
    file: str = ""
    modules: tuple[str, ...] = ()
    problem: Problem | None = None

    @property
    def label(self) -> str:
        """Name and version, ``openmpi@4.1.4``."""
        return f"{self.package}@{self.version}"

    @property
    def spec(self) -> str:
        """The spec of the external."""
        return f"{self.label} {self.variants}".strip()


class MpiLayout(StrictModel):
    """One entry of `mpi` in ``data/site_layouts.yml``, which explains the fields."""

    wrapper: str
    prefix: str
    headers: tuple[str, ...]
    module: str = ""
    package: str = ""
    variants: str = ""


class BlasLayout(StrictModel):
    """One entry of `blas` in ``data/site_layouts.yml``, which explains the fields."""

    package: str
    library: str
    prefix: str
    version: str
    variants: str = ""


class SiteLayouts(StrictModel):
    """The content of ``data/site_layouts.yml``."""

    mpi: tuple[MpiLayout, ...]
    openblas: tuple[str, ...]
    blas: tuple[BlasLayout, ...]


@cache
def layouts() -> SiteLayouts:
    """Return the known layouts."""
    return shipped_data("proofmark.software", "site_layouts.yml", SiteLayouts)


def find_mpis(
    root: Path, machine: str, folders: Sequence[str] = (), modules: Sequence[str] = ()
) -> list[SitePart]:
    """Return each MPI below `root` once.

    Args:
        machine: the machine of the processor, ``x86_64``; module names of RHEL contain it.
        folders: folders of programs (``PATH``) that can contain another ``mpicc``.
    """
    found: dict[Path, SitePart] = {}
    for layout in layouts().mpi:
        for wrapper in sorted(root.glob(layout.wrapper)):
            found.setdefault(linked(root, wrapper), _mpi(root, wrapper, layout, machine, modules))
    any_prefix = MpiLayout(wrapper="", prefix="../..", headers=HEADERS)
    for folder in folders:
        wrapper = root / folder.lstrip("/") / "mpicc"
        # A prefix of links to the files of another one is a prefix of its own; /usr/bin is not.
        usual = wrapper.parent.resolve() == (root / "usr/bin").resolve()
        key = linked(root, wrapper) if usual else wrapper.parent.resolve() / wrapper.name
        if key not in found and linked(root, wrapper).exists():
            found[key] = _mpi(root, wrapper, any_prefix, machine, modules)
    return sorted(found.values(), key=lambda part: (part.package, part.version, part.prefix))


def with_build(
    root: Path, part: SitePart, environment: Mapping[str, str] | None = None
) -> SitePart:
    """Return an MPI with the variants that its own programs state.

    Args:
        environment: the variables of its modules; None: those of this process.
    """
    info = mpi.info_of(part.package, (root / part.file.lstrip("/")).parent, environment)
    contents = (file.read_bytes() for file in mpi.romio_files(info))
    drivers = next((found for each in contents if (found := mpi.romio_drivers(each))), ())
    built = mpi.built_variants(part.package, part.version, info, drivers)
    return replace(part, variants=f"{part.variants} {built}".strip())


def _mpi(
    root: Path, wrapper: Path, layout: MpiLayout, machine: str, modules: Sequence[str]
) -> SitePart:
    def beside(pattern: str) -> list[Path]:
        if pattern.startswith("../../"):  # a link to the wrapper would lead out of its prefix
            return sorted(wrapper.parent.parent.glob(pattern.removeprefix("../../")))
        return sorted(root.glob(pattern))

    prefix = wrapper.parent.parent if layout.prefix == "../.." else root / layout.prefix
    headers = [folder / "mpi.h" for pattern in layout.headers for folder in beside(pattern)]
    header = next((path for path in headers if path.is_file()), None)
    text = header.read_text(encoding="utf-8", errors="replace") if header else ""
    package, version = mpi_of_header(text)
    in_path = re.search(r"(?:mpich|mpi|hpcx-v|hpcx)[/-]?(\d+(?:\.\d+)+)", str(wrapper))
    if layout.package in ("cray-mpich", "hpcx-mpi") and in_path:
        version = in_path[1]
    problem = None if header else Problem.NO_HEADERS
    if header and layout.prefix == "usr":
        selected = linked(root, prefix / MPICC)
        problem = None if selected == linked(root, wrapper) else Problem.NOT_SELECTED
    own = [layout.module.format(machine=machine)] if layout.module else []
    return SitePart(
        package=layout.package or package or _family(wrapper),
        version=version or (in_path[1] if in_path else "unknown"),
        prefix=f"/{prefix.relative_to(root)}",
        variants=layout.variants,
        file=f"/{wrapper.relative_to(root)}",
        modules=tuple(modules or own),
        problem=problem,
    )


def _family(wrapper: Path) -> str:
    names = ("openmpi", "mvapich2", "mpich")
    return next((name for name in names if name in str(wrapper)), "mpi")


def mpi_of_header(text: str) -> tuple[str, str]:
    """Return Spack's name and the version of the MPI of an ``mpi.h``; empty if unknown."""
    defined = dict(re.findall(r'^\s*#\s*define\s+(\w+)\s+"?([\w.]+)"?', text, re.MULTILINE))
    parts = [defined.get(f"OMPI_{part}_VERSION", "") for part in ("MAJOR", "MINOR", "RELEASE")]
    if all(parts):
        return "openmpi", ".".join(parts)
    for package, macro in (
        ("intel-oneapi-mpi", "I_MPI_VERSION"),
        ("cray-mpich", "CRAY_MPICH_VERSION"),
        ("mvapich2", "MVAPICH2_VERSION"),
        ("mvapich", "MVAPICH_VERSION"),
        ("mpich", "MPICH_VERSION"),
    ):
        if macro in defined:
            return package, defined[macro]
    return "", ""


def linked(root: Path, path: Path) -> Path:
    """Return the file behind the links of the system below `root`; at most 40 links.

    The last link of a wrapper that is named by its MPI is not followed: it is the program of all
    wrappers.
    """
    for _ in range(40):
        if not path.is_symlink() or path.name.startswith("mpicc."):
            break
        link = path.readlink()
        path = root / link.relative_to("/") if link.is_absolute() else path.parent / link
    return path.parent.resolve() / path.name


def find_file_systems(root: Path) -> list[SitePart]:
    """Return the parallel file systems below `root` whose headers an MPI needs for its driver."""
    found = []
    for package, pattern in FILE_SYSTEM_HEADERS:
        for header in sorted(root.glob(pattern)):
            stated = header.with_name("lustre_ver.h")
            text = stated.read_text(encoding="utf-8", errors="replace") if stated.is_file() else ""
            version = re.search(r'LUSTRE_VERSION_STRING\s+"(\d[\w.]*)', text)
            number = version[1] if version else "unknown"
            found.append(SitePart(package, number, "/usr", file=f"/{header.relative_to(root)}"))
    return found


def find_blas(root: Path) -> list[SitePart]:
    """Return each OpenBLAS below `root` once, and the libraries of vendors.

    The threads of an OpenBLAS are those that its file has. A library of a vendor has all kinds
    unless its layout names one.
    """
    found: dict[Path, SitePart] = {}
    for pattern in layouts().openblas:
        for link in sorted(root.glob(pattern)):
            target = link.resolve()
            if target in found or not target.is_file():
                continue
            version, threads = openblas_of(target.read_bytes())
            folder = link.parent if link.parent.name.startswith("openblas") else link.parent.parent
            found[target] = SitePart(
                package="openblas",
                version=version,
                prefix=f"/{folder.relative_to(root)}",
                variants=f"threads={threads}",
                file=f"/{link.relative_to(root)}",
            )
    return [*found.values(), *_of_vendors(root)]


def _of_vendors(root: Path) -> Iterator[SitePart]:
    for layout in layouts().blas:
        for library in sorted(root.glob(layout.library)):
            version = re.search(layout.version, f"{library.resolve()}")
            prefix = Path(os.path.normpath(library.parent / layout.prefix))
            yield SitePart(
                package=layout.package,
                version=version[1].strip(".") if version else "unknown",
                prefix=f"/{prefix.relative_to(root)}",
                variants=layout.variants,
                file=f"/{library.relative_to(root)}",
            )


def openblas_of(content: bytes) -> tuple[str, str]:
    """Return version and threads (none, openmp, pthreads) of the file of an OpenBLAS.

    The library contains the text of ``openblas_get_config``. A library with threads of its own has
    the function ``exec_blas_async``.
    """
    config = re.search(rb"OpenBLAS (\d+\.\d+[.\d]*)([ A-Z_]*)", content)
    version = config[1].decode() if config else "unknown"
    if config and b"USE_OPENMP" in config[2]:
        return version, "openmp"
    return version, "pthreads" if b"exec_blas_async" in content else "none"
