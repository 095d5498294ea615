"""Which kernel a BLAS chose, which one the processor deserves, and how to get it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from importlib.resources import files

import yaml

from proofmark.common.strict_model import StrictModel
from proofmark.site.node.facts import NodeFacts
from proofmark.software.program import Blas, Program

AS_INSTALLED = "as-installed"
RIGHT = "right"


class Kernel(StrictModel):
    """A kernel of a BLAS; what the fields mean stands in ``data/blas_kernels.yml``."""

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
        """Say whether the processor has every instruction that the kernel needs."""
        return self.needs <= set(facts.features)

    @property
    def work(self) -> int | None:
        """Return the vector width times two with FMA: proportional to flop per cycle."""
        return self.bits and self.bits * (1 + self.fma)


class Report(StrictModel):
    """How a BLAS says in a program's output what it chose: in `environment`, by `pattern`."""

    environment: dict[str, str]
    pattern: str


class Family(StrictModel):
    """What is known of one BLAS; `variable` chooses its kernel, None where none should."""

    variable: str | None = None
    report: Report
    kernels: dict[str, tuple[Kernel, ...]]


class Variant(StrictModel):
    """One way to run a program; `kernel` is None where it cannot be told."""

    kernel: str | None
    environment: dict[str, str]


class BlasVariants(StrictModel):
    """The ways to run a program as to its BLAS; none for one that calls no BLAS.

    Attributes:
        variants: ``as-installed`` and ``right``; equal where nothing has to be set right.
        report: environment in which the BLAS says in the program's output what it chose.
        findings: what the site should know, in whole sentences.
    """

    variants: dict[str, Variant]
    report: dict[str, str]
    findings: tuple[str, ...]


@lru_cache(maxsize=1)
def families() -> dict[str, Family]:
    """Return what is known of each BLAS, by family."""
    text = (files("proofmark.software") / "data" / "blas_kernels.yml").read_text(encoding="utf-8")
    return {name: Family.model_validate(entry) for name, entry in yaml.safe_load(text).items()}


def candidate_kernels(facts: NodeFacts) -> tuple[str, ...]:
    """Return the OpenBLAS kernels for ``probe-program.sh -k`` to try, strongest first."""
    known = families()["openblas"].kernels.get(facts.machine, ())
    return tuple(kernel.name for kernel in reversed(_fitting(known, facts)))


def blas_variants(program: Program, facts: NodeFacts) -> BlasVariants:
    """Compare the kernel that the program's BLAS chose with the one that the processor deserves.

    Only OpenBLAS is ever told what to choose, and only what it was seen to accept.
    """
    blas = program.blas
    if blas is None:
        return BlasVariants(variants={}, report={}, findings=())
    family = families().get(blas.family)
    known = family.kernels.get(facts.machine, ()) if family else ()
    report = family.report.environment if family else {}
    chosen = _named(known, blas.chosen or blas.built_for)
    if chosen is None:
        unknown = Variant(kernel=blas.chosen or blas.built_for, environment={})
        return BlasVariants(
            variants={AS_INSTALLED: unknown, RIGHT: unknown},
            report=report,
            findings=_cannot_tell(program, blas),
        )
    right = _right(known, chosen, blas, facts)
    variable = family.variable if family else None
    forced = {variable: right.name} if variable and right != chosen else {}
    return BlasVariants(
        variants={
            AS_INSTALLED: Variant(kernel=chosen.name, environment={}),
            RIGHT: Variant(kernel=right.name, environment=forced),
        },
        report=report,
        findings=_findings(known, chosen, forced, blas, facts),
    )


def reported_kernels(family: str, output: str) -> tuple[str, ...]:
    """Return the kernels that a BLAS said it chose in a program's output, each once."""
    known = families().get(family)
    found = re.findall(known.report.pattern, output, re.MULTILINE) if known else []
    return tuple(sorted(set(found)))


def _fitting(kernels: Iterable[Kernel], facts: NodeFacts) -> list[Kernel]:
    """Return the kernels that may be proposed, from weakest to strongest, the vendor's own last."""
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
    offered = [kernel for kernel in _fitting(known, facts) if blas.accepts(kernel.name)]
    best = offered[-1] if offered else chosen
    return best if best.rank > chosen.rank or not chosen.runs_on(facts) else chosen


def _findings(
    known: Iterable[Kernel],
    chosen: Kernel,
    forced: dict[str, str],
    blas: Blas,
    facts: NodeFacts,
) -> tuple[str, ...]:
    library = f"{_title(blas.family)} {blas.version or 'of unknown version'}"
    because = f" because the environment asks for {blas.forced}" if blas.forced else ""
    cures = [f"set {variable}={value}" for variable, value in forced.items()]
    if not chosen.runs_on(facts):
        lacks = ", ".join(sorted(chosen.needs - set(facts.features)))
        return (
            f"{library} takes {chosen.name}{because}, which needs {lacks}: this processor "
            f"({facts.cpu_model}) lacks it, and the program will die of an illegal instruction"
            f"{_joined(cures)}.",
        )
    fitting = _fitting(known, facts)
    deserved = fitting[-1] if fitting else chosen
    if deserved.rank > chosen.rank:
        if deserved.name not in forced.values():
            cures.append(_why_not(deserved, blas))
        return (
            f"{library} chose {chosen.name} ({chosen.isa}){because} on a CPU with "
            f"{facts.vector_isa} ({facts.cpu_model}): expect {_loss(chosen, deserved)}"
            f"{_joined(cures)}.",
        )
    if facts.vector_bits and chosen.bits and chosen.bits < facts.vector_bits:
        return (
            f"{library} has no kernel for the {facts.vector_isa} of this processor "
            f"({facts.cpu_model}, {facts.architecture}): {chosen.name} ({chosen.isa}) uses "
            f"{chosen.bits} of {facts.vector_bits} bits. Another BLAS may do better.",
        )
    return ()


def _why_not(deserved: Kernel, blas: Blas) -> str:
    since = f" (in release {deserved.since} and later)" if deserved.since else ""
    if blas.built_for:
        why = "but this library was built for one processor"
    elif deserved.name in blas.tried:
        why = "but this library lacks it"
    else:
        why = "but this library was not asked for it"
    return f"the kernel for it is {deserved.name}{since}, {why}"


def _joined(cures: Iterable[str]) -> str:
    return "".join(f"; {cure}" for cure in cures)


def _loss(chosen: Kernel, deserved: Kernel) -> str:
    if not chosen.work or not deserved.work or deserved.work < 2 * chosen.work:
        return "some loss in HPL and DGEMM"
    several = deserved.work >= 4 * chosen.work
    return f"a {'several' if several else 'two'}-fold loss in HPL and DGEMM"


def _cannot_tell(program: Program, blas: Blas) -> tuple[str, ...]:
    if blas.family == "reference":
        return (
            f"{program.name} is linked with the reference BLAS ({blas.library}), which is not made "
            "for speed: expect a many-fold loss in HPL and DGEMM; install an optimised BLAS.",
        )
    if blas.chosen:
        chose = f"{_title(blas.family)} chose {blas.chosen}"
        return (f"{program.name}: {chose}, which is not known here.",)
    why = blas.why_unknown or "the probe does not say"
    return (f"{program.name}: which kernel its {_title(blas.family)} takes is not known: {why}.",)


def _title(family: str) -> str:
    return {"openblas": "OpenBLAS", "blis": "BLIS", "mkl": "MKL"}.get(family, family)
