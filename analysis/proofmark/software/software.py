"""The programs that a run uses, and their providers: ``runs/<id>/software.json``."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Self

from pydantic import Field, model_validator

from proofmark.cases.vocabulary import BLAS_KERNEL
from proofmark.common.files import exists, read_json
from proofmark.common.message import Message
from proofmark.common.shared_models import StrictModel
from proofmark.runs.run import Run
from proofmark.site.execution import LaunchSettings, doubtful
from proofmark.site.node.facts import NodeFacts
from proofmark.software.installed import DerivedPart, Provided
from proofmark.software.program import Launcher, Program, blas_variants


class _WithDigest(StrictModel):
    """A model with a digest of its identity, so that an edited file does not load."""

    environment_hash: str = ""

    @model_validator(mode="after")
    def _set_digest(self) -> Self:
        digest = hashlib.sha256(json.dumps(self.identity(), sort_keys=True).encode()).hexdigest()
        if self.environment_hash not in ("", digest):
            raise ValueError("environment_hash does not match the content beside it")
        object.__setattr__(self, "environment_hash", digest)
        return self

    def identity(self) -> object:
        """Return the values, as JSON, that are equal if two models are the same."""
        raise NotImplementedError


class Package(_WithDigest):
    """One package of a run.

    Attributes:
        origin: the provider: a value of ``partition.provision_from``.
        prefix: the folder of its MPI, which contains ``bin/mpirun``.
        target: archspec's name of the processor it was built for; empty for any processor.
        launcher: the launcher of its MPI; ``plain`` if no program calls MPI.
        run_environment: the run-time variables of the site for its launcher
            (`LaunchSettings.variables`).
        variants: environment by choice by variant (``blas_kernel``: ``as-installed``, ``right``).
        site_parts: its parts that are not the kit's; None: the kit's program, or no lock.
        environment_hash: SHA-256 of `identity`.
    """

    origin: str
    version: str
    spec: str = ""
    hash: str = ""
    prefix: str = ""
    target: str = ""
    launcher: Launcher
    environment: dict[str, str] = Field(default_factory=dict)
    run_environment: dict[str, str] = Field(default_factory=dict)
    programs: dict[str, Program]
    variants: dict[str, dict[str, dict[str, str]]] = Field(default_factory=dict)
    site_parts: tuple[DerivedPart, ...] | None = None
    findings: tuple[Message, ...] = ()
    built: dict[str, str] = Field(default={}, exclude_if=lambda given: not given)

    def identity(self) -> object:
        """Return versions, hashes of programs and libraries, and run-time variables; no path."""
        identity = {
            "version": self.version,
            "spec": self.spec,
            "hash": self.hash,
            "programs": {
                name: {
                    "sha256": of.sha256,
                    "libraries": {each.name: each.sha256 or each.package for each in of.libraries},
                    "blas": of.blas and [of.blas.family, of.blas.version],
                    "mpi": of.mpi and [of.mpi.family, of.mpi.version],
                }
                for name, of in self.programs.items()
            },
        }
        return identity | self._run_identity

    @property
    def _run_identity(self) -> dict[str, object]:
        return {"run_environment": self.run_environment} if self.run_environment else {}

    def with_variables(self, launch: LaunchSettings) -> Self:
        """Return the package with the run-time variables of its site, and what is doubtful."""
        if not (variables := launch.variables(self.launcher)):
            return self
        families = (each.mpi.family for each in self.programs.values() if each.mpi)
        doubts = tuple(doubtful(variables, set(filter(None, families))))
        changed = {"run_environment": variables, "findings": (*self.findings, *doubts)}
        return type(self)(**{**dict(self), **changed, "environment_hash": ""})

    @property
    def program_hash(self) -> str:
        """SHA-256 of version, run-time variables and the programs themselves, without libraries.

        It is `environment_hash` if the file of a program has no SHA-256.
        """
        programs = {name: program.sha256 for name, program in self.programs.items()}
        if None in programs.values():
            return self.environment_hash
        known = [self.version, programs, *self._run_identity.values()]
        text = json.dumps(known, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


class Software(_WithDigest):
    """All packages of a run, by the name that the cases use.

    Attributes:
        passed_on: the variables of the caller that reached a tool (`processes.passed_on`).
    """

    packages: dict[str, Package]
    passed_on: dict[str, str] = Field(default_factory=dict)

    def identity(self) -> object:
        """Return the digests of the packages."""
        return {name: package.environment_hash for name, package in self.packages.items()}


def package_of(
    programs: Mapping[str, Program], facts: NodeFacts, origin: str, provided: Provided
) -> Package:
    """Return a package from the probes of its programs, with the variants of their BLAS.

    The variants are those of the first program that calls a BLAS. The launcher is that of the
    first program that calls MPI.
    """
    blas = [blas_variants(program, facts) for program in programs.values()]
    variants = next((each.variants for each in blas if each.variants), {})
    findings: list[Message] = []
    for program in programs.values():
        for library in program.missing:
            findings.append(Message("library-missing", program=program.name, library=library))
    for each in blas:
        findings += each.findings
    parallel = next((program for program in programs.values() if program.mpi), None)
    mpirun = parallel.mpi.mpirun if parallel and parallel.mpi else None
    choices = {name: dict(variant.environment) for name, variant in variants.items()}
    return Package(
        origin=origin,
        version=provided.version,
        spec=provided.spec,
        hash=provided.hash,
        prefix=mpirun.removesuffix("/bin/mpirun") if mpirun else "",
        target=provided.target,
        launcher=parallel.launcher if parallel else "plain",
        environment=provided.environment,
        programs=dict(programs),
        variants={BLAS_KERNEL: choices} if choices else {},
        site_parts=provided.site_parts,
        findings=(*provided.findings, *dict.fromkeys(findings)),
        built=provided.built,
    )


def software_of(run: Run) -> Software:
    """Return the programs of `run`: none before they are built, none if only outputs are known.

    Raises:
        BadInput: the file of the run is damaged, or missing although a step was started.
    """
    built = exists(run.files.software) or exists(run.files.scripts_folder)
    if not (built and run.executed):
        return Software(packages={})
    return read_json(run.files.software, Software)
