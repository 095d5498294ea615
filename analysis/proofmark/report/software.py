"""The programs of a run: which bits ran, and where they came from."""

from __future__ import annotations

from collections.abc import Iterator

from proofmark.report.page import TITLED, Block, Cell, Fold, Table, table
from proofmark.report.run_data import RunData
from proofmark.software.program import Program
from proofmark.software.software import Package


def blocks(material: RunData) -> Iterator[Block]:
    """Yield the programs, their libraries and their environment."""
    if material.software is None:
        yield Block(titles=("Programs",), paragraphs=("No program has been provided yet.",))
        return
    packages = material.software.packages
    rows = [
        (
            Cell(program.name, "strong"),
            _version(name, package),
            Cell(program.path, "code"),
            Cell(program.sha256 or "not told", "code"),
            _mpi(program),
            _blas(program),
        )
        for name, package in packages.items()
        for program in package.programs.values()
    ]
    columns = ("Program", "Package", "File", "SHA-256", "MPI", "BLAS")
    yield Block(
        titles=("Programs",),
        tables=(table("Programs that ran", columns, rows, kind=TITLED),),
        folds=tuple(_folds(material)),
    )


def _version(name: str, package: Package) -> str:
    spec = f", {package.spec}" if package.spec else ""
    build = f", hash {package.hash}" if package.hash else ""
    return f"{name} {package.version}, {package.origin}{spec}{build}"


def _mpi(program: Program) -> str:
    mpi = program.mpi
    return f"{mpi.family or 'unknown'} {mpi.version or ''}".strip() if mpi else "none"


def _blas(program: Program) -> str:
    blas = program.blas
    if blas is None:
        return "none"
    chosen = blas.chosen or blas.built_for
    kernel = f"by itself {chosen}" if chosen else f"kernel not known: {blas.why_unknown}"
    return f"{blas.family} {blas.version or 'of unknown version'}, {kernel}"


def _folds(material: RunData) -> Iterator[Fold]:
    packages = material.software.packages if material.software else {}
    for name, package in packages.items():
        for program in package.programs.values():
            yield Fold(f"Libraries of {program.name}", Block(tables=(_libraries(program),)))
        yield Fold(f"Environment of {name}", Block(tables=(_environment(package),)))


def _libraries(program: Program) -> Table:
    rows: list[tuple[Cell | str, ...]] = [
        (
            Cell(library.name, "code"),
            library.package or "–",
            Cell(library.path, "code"),
            Cell(library.sha256 or "not told", "code"),
        )
        for library in program.libraries
    ]
    rows += [(Cell(lost, "code"), "–", "not found", "–") for lost in program.missing]
    columns = ("Library", "Package", "File", "SHA-256")
    return table(f"Libraries that {program.name} is linked with", columns, rows, kind="dense")


def _environment(package: Package) -> Table:
    rows = [
        ("always", Cell(f"{key}={value}", "code")) for key, value in package.environment.items()
    ]
    for variant, choices in package.variants.items():
        for choice, environment in choices.items():
            values = " ".join(f"{key}={value}" for key, value in environment.items())
            rows.append((f"{variant} {choice}", Cell(values or "nothing", "code")))
    rows.append(("digest", Cell(package.environment_hash, "code")))
    return table("What its programs find in their environment", ("When", "Setting"), rows)
