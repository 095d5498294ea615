"""The programs that a run uses and where they came from: ``runs/<id>/software.json``."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Literal, Self

from pydantic import Field, model_validator

from proofmark.common.strict_model import StrictModel
from proofmark.site.node.facts import NodeFacts
from proofmark.software.blas import blas_variants
from proofmark.software.program import Launcher, Program

Origin = Literal["system", "spack", "easybuild", "preinstalled"]

BLAS_KERNEL = "blas_kernel"
"""The variant that says which kernel the BLAS is made to take."""


class _Stamped(StrictModel):
    """A part that carries the digest of what it says; an edited file does not load."""

    environment_hash: str = ""

    @model_validator(mode="after")
    def _stamp(self) -> Self:
        digest = hashlib.sha256(json.dumps(self.identity(), sort_keys=True).encode()).hexdigest()
        if self.environment_hash not in ("", digest):
            raise ValueError("environment_hash does not belong to what is listed beside it")
        object.__setattr__(self, "environment_hash", digest)
        return self

    def identity(self) -> object:
        """Return, as plain JSON, what makes two of them the same."""
        raise NotImplementedError


class Package(_Stamped):
    """One package of a run.

    Attributes:
        spec: what was asked for, in the words of `origin`; empty where it has none.
        hash: Spack's or EasyBuild's own, empty where there is none.
        prefix: where its MPI lives: the directory above ``bin/mpirun``.
        target: archspec's name of the processor it was built for; empty where any does.
        environment: what every program of it needs.
        variants: environment by choice by variant (``blas_kernel``: ``as-installed``, ``right``).
        findings: what the site should know, in whole sentences.
        environment_hash: digest of `identity`.
    """

    origin: Origin
    version: str
    spec: str = ""
    hash: str = ""
    prefix: str = ""
    target: str = ""
    launcher: Launcher
    environment: dict[str, str] = Field(default_factory=dict)
    programs: dict[str, Program]
    variants: dict[str, dict[str, dict[str, str]]] = Field(default_factory=dict)
    findings: tuple[str, ...] = ()

    def identity(self) -> object:
        """Return what was built: versions, bits of programs and libraries; no path."""
        return {
            "version": self.version,
            "spec": self.spec,
            "hash": self.hash,
            "programs": {name: _bits(program) for name, program in self.programs.items()},
        }


class Software(_Stamped):
    """Every package of a run, by the name that the cases use."""

    packages: dict[str, Package]

    def identity(self) -> object:
        """Return the packages' digests."""
        return {name: package.environment_hash for name, package in self.packages.items()}


def package_of(
    programs: Mapping[str, Program],
    facts: NodeFacts,
    origin: Origin,
    version: str,
    *,
    spec: str = "",
    build_hash: str = "",
    environment: Mapping[str, str] | None = None,
) -> Package:
    """Describe a package from the probes of its programs, with the variants of their BLAS.

    The first program that calls a BLAS decides the variants, the first that calls MPI the launcher.
    """
    judged = [blas_variants(program, facts) for program in programs.values()]
    variants = next((each.variants for each in judged if each.variants), {})
    lost = [
        f"{program.name} cannot start: {library} is not found by the dynamic linker."
        for program in programs.values()
        for library in program.missing
    ]
    found = [finding for each in judged for finding in each.findings]
    parallel = next((program for program in programs.values() if program.mpi), None)
    mpirun = parallel.mpi.mpirun if parallel and parallel.mpi else None
    choices = {name: dict(variant.environment) for name, variant in variants.items()}
    return Package(
        origin=origin,
        version=version,
        spec=spec,
        hash=build_hash,
        prefix=mpirun.removesuffix("/bin/mpirun") if mpirun else "",
        launcher=parallel.launcher if parallel else "plain",
        environment=dict(environment or {}),
        programs=dict(programs),
        variants={BLAS_KERNEL: choices} if choices else {},
        findings=tuple(dict.fromkeys(lost + found)),
    )


def _bits(program: Program) -> object:
    return {
        "sha256": program.sha256,
        "libraries": {each.name: each.sha256 or each.package for each in program.libraries},
        "blas": program.blas and [program.blas.family, program.blas.version],
        "mpi": program.mpi and [program.mpi.family, program.mpi.version],
    }
