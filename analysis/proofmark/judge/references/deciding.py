"""What decides the figures of programs: release, BLAS, MPI and its transport, stores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from proofmark.cases.suite import Benchmarks
from proofmark.common.message import Message
from proofmark.judge.references.typical import build_of
from proofmark.site.accepted_baseline import AcceptedPrograms
from proofmark.site.run_variables import transports
from proofmark.software.software import Package, Software


def deciding(name: str, package: Package) -> AcceptedPrograms:
    """Return what decides the figures of the package `name`.

    The BLAS and the MPI are those of the first program that calls one.
    """
    blas = next((each.blas for each in package.programs.values() if each.blas), None)
    mpi = next((each.mpi for each in package.programs.values() if each.mpi), None)
    return AcceptedPrograms(
        package=name,
        version=package.version,
        blas=_release(blas.family, blas.version) if blas else "",
        kernel=(blas.chosen or "") if blas else "",
        mpi=_release(mpi.family, mpi.version) if mpi else "",
        transport=transports({**package.environment, **package.run_environment}),
        streaming_stores=build_of(package).streaming_stores,
    )


def _release(family: str | None, version: str | None) -> str:
    return " ".join(filter(None, (family, version)))


def accepted_programs(software: Software) -> dict[str, AcceptedPrograms]:
    """Return what decides the figures of the programs of a run, by their digest."""
    return {each.program_hash: deciding(name, each) for name, each in software.packages.items()}


def programs_of_cases(software: Software, benchmarks: Benchmarks) -> dict[str, AcceptedPrograms]:
    """Return what decides the figures of each case."""
    return {
        name: deciding(case.package, package)
        for name, case in benchmarks.cases.items()
        if (package := software.packages.get(case.package))
    }


def other_programs(
    source: AcceptedPrograms, here: AcceptedPrograms, *, stores: bool, messages: bool
) -> Iterator[Message]:
    """Yield what decides figures and differs, or is not known here.

    Args:
        source: the programs of the value that a figure is compared with.
        here: the programs of the figure.
        stores: whether the figure depends on whether stores pass the caches.
        messages: whether the figure has messages between nodes.
    """
    if source.version != here.version:
        yield Message("condition-version", source=source.version, version=here.version or "?")
    if source.blas != here.blas:
        yield Message("condition-blas", source=source.blas or "?", blas=here.blas or "?")
    if source.mpi != here.mpi:
        yield Message("condition-mpi", source=source.mpi or "?", mpi=here.mpi or "?")
    if source.mpi and source.transport != here.transport:
        yield Message(
            "condition-transport", source=_shown(source.transport), transport=_shown(here.transport)
        )
    if messages and not source.mpi:
        yield Message("condition-mpi", source="?", mpi=here.mpi or "?")
    if stores and (source.streaming_stores is None or here.streaming_stores is None):
        yield Message("condition-stores-unknown")
    elif stores and source.streaming_stores != here.streaming_stores:
        code = "condition-stores" if source.streaming_stores else "condition-stores-cached"
        yield Message(code)


def _shown(transport: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in sorted(transport.items())) or "?"
