"""The programs of a run: files with SHA-256, libraries, environment and origin."""

from __future__ import annotations

from collections.abc import Iterator

from proofmark.common.message import NOTHING
from proofmark.common.sentences import localized
from proofmark.common.translation import _
from proofmark.report.page import Block, Cell, Fold, Table, table, titled
from proofmark.report.run_data import RunData
from proofmark.software.program import Program
from proofmark.software.software import Package


def blocks(run_data: RunData) -> Iterator[Block]:
    """Yield the programs of a run, with their libraries and their environment."""
    if run_data.software is None:
        yield Block(titles=(_("Programs"),), paragraphs=(_("No program has been recorded yet."),))
        return
    packages = run_data.software.packages
    rows = []
    for name, package in packages.items():
        rows += [
            (
                Cell(program.name, "strong"),
                _version(name, package),
                Cell(program.path, "code"),
                Cell(program.sha256 or _("not reported"), "code"),
                _mpi(program),
                _blas(program),
            )
            for program in package.programs.values()
        ]
    columns = (_("Program"), _("Package"), _("File"), "SHA-256", "MPI", "BLAS")
    yield Block(
        titles=(_("Programs"),),
        tables=(titled(_("Programs that ran"), columns, rows),),
        folds=tuple(_folds(run_data)),
    )


def _version(name: str, package: Package) -> str:
    spec = f", {package.spec}" if package.spec else ""
    build = _(", hash {hash}").format(hash=package.hash) if package.hash else ""
    return f"{name} {package.version}, {package.origin}{spec}{build}"


def _mpi(program: Program) -> str:
    mpi = program.mpi
    return f"{mpi.family or _('unknown')} {mpi.version or ''}".strip() if mpi else _("none")


def _blas(program: Program) -> str:
    blas = program.blas
    if blas is None:
        return _("none")
    chosen = blas.chosen or blas.built_for
    kernel = (
        _("default kernel {kernel}").format(kernel=chosen)
        if chosen
        else _("kernel unknown: {reason}").format(reason=localized(blas.why_unknown or NOTHING))
    )
    return f"{blas.family} {blas.version or _('of unknown version')}, {kernel}"


def _folds(run_data: RunData) -> Iterator[Fold]:
    packages = run_data.software.packages if run_data.software else {}
    for name, package in packages.items():
        for program in package.programs.values():
            yield Fold(
                _("Libraries of {program}").format(program=program.name),
                Block(tables=(_libraries(program),)),
            )
        yield Fold(
            _("Environment of {package}").format(package=name),
            Block(tables=(_environment(package),)),
        )


def _libraries(program: Program) -> Table:
    rows: list[tuple[Cell | str, ...]] = [
        (
            Cell(library.name, "code"),
            library.package or "–",
            Cell(library.path, "code"),
            Cell(library.sha256 or _("not reported"), "code"),
        )
        for library in program.libraries
    ]
    rows += [(Cell(missing, "code"), "–", _("not found"), "–") for missing in program.missing]
    columns = (_("Library"), _("Package"), _("File"), "SHA-256")
    return table(
        _("Libraries that {program} is linked with").format(program=program.name),
        columns,
        rows,
        kind="dense",
    )


def _environment(package: Package) -> Table:
    rows = [
        (_("always"), Cell(f"{key}={value}", "code")) for key, value in package.environment.items()
    ]
    for key, value in package.run_environment.items():
        rows.append((_("run-time variable of the site"), Cell(f"{key}={value}", "code")))
    for variant, choices in package.variants.items():
        for choice, environment in choices.items():
            values = " ".join(f"{key}={value}" for key, value in environment.items())
            rows.append((f"{variant} {choice}", Cell(values or _("nothing"), "code")))
    rows.append((_("digest"), Cell(package.environment_hash, "code")))
    return table(_("Environment variables of the programs"), (_("When"), _("Setting")), rows)
