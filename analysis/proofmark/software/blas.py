"""Compares the kernel that a BLAS chose with the best one for the processor."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from proofmark.common.message import Message
from proofmark.common.strict_model import StrictModel
from proofmark.common.yaml_models import shipped_data
from proofmark.site.node.facts import NodeFacts
from proofmark.software.program import Blas, Program

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


class KernelReport(StrictModel):
    """With `environment`, a BLAS prints the name of its kernel; `pattern` matches it."""

    environment: dict[str, str]
    pattern: str


class BlasFamily(StrictModel):
    """One BLAS; `variable` selects its kernel, None if the kit must not select one."""

    variable: str | None = None
    report: KernelReport
    kernels: dict[str, tuple[Kernel, ...]]


class Variant(StrictModel):
    """One choice of kernel for a program; `kernel` is None if it is not known."""

    kernel: str | None
    environment: dict[str, str]


class BlasVariants(StrictModel):
    """The choices of kernel for a program; empty if the program calls no BLAS.

    Attributes:
        variants: ``as-installed`` and ``right``; equal if the installed choice is right.
        report: the environment in which the BLAS prints its kernel to the program's output.
        findings: what the site should know.
    """

    variants: dict[str, Variant]
    report: dict[str, str]
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
        report=report,
        findings=_findings(known, chosen, forced, blas, facts),
    )


def reported_kernels(family: str, output: str) -> tuple[str, ...]:
    """Return the kernels that a BLAS reported in a program's output, each once and sorted."""
    known = families().get(family)
    kernels = re.findall(known.report.pattern, output, re.MULTILINE) if known else []
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
    best = accepted[-1] if accepted else chosen
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
    fitting = _fitting(known, facts)
    best = fitting[-1] if fitting else chosen
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
