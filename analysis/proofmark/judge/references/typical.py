"""What healthy hardware of the same kind reaches elsewhere, and whether its conditions hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from proofmark.cases.reference import TYPICAL, UNIT_OF, HardwareRule, Rule
from proofmark.cases.suite import Benchmarks
from proofmark.cases.vocabulary import Scalar
from proofmark.common.message import Message, Term
from proofmark.common.translation import N_
from proofmark.judge.references.derived import (
    ANY_NODE,
    NOTHING_STATED,
    OF_SEVERAL,
    Derived,
    Nominal,
    active_ports,
    as_ordered,
    derive,
    stated_links,
)
from proofmark.site.hardware import StatedNode
from proofmark.site.hardware_limits import ETHERNET, TypicalConditions, processor
from proofmark.site.node.facts import NodeFacts
from proofmark.site.side_cache import side_cache
from proofmark.software.software import Package, Software

PEAK: Mapping[Rule, HardwareRule] = {
    "typical_hpl": "rpeak_nominal",
    "typical_triad": "memory_bandwidth",
    "typical_bandwidth": "link_bandwidth",
}
"""The rule of the peak of which a typical value is a part."""
SLOW_BLAS = (None, "reference")
"""Families of a BLAS that no typical value is for: an unknown one, and that without kernels."""
STREAMING_RECIPES = ("spack", "easybuild")
"""Origins whose recipe of STREAM is the kit's: on x86 it checks that stores pass the caches."""
NO_STREAMING = "~nontemporal"
X86, DDR = "x86_64", "ddr"
ANY_BLAS = Term(N_("a tuned one"))


@dataclass(frozen=True)
class Build:
    """How the program of a case was built, as far as it changes its rate.

    Attributes:
        blas: the family of its BLAS; None if it has none, or an unknown one.
        streaming_stores: whether its stores pass the caches on x86; None if it is not known.
    """

    blas: str | None = None
    streaming_stores: bool | None = None


UNKNOWN_BUILD = Build()


@dataclass(frozen=True)
class TypicalValue(Derived):
    """What healthy hardware reaches.

    Attributes:
        tolerance: the part by which a healthy figure can be less.
        unheld: the conditions of the source that do not hold, or are not known to hold.
    """

    tolerance: float
    unheld: tuple[Message, ...]


@dataclass(frozen=True)
class Setting:
    """What a figure was measured with.

    Attributes:
        nodes: the facts of each node, at least one.
        node: what the inventory states about each node.
        build: of the program.
        stated: the stated parts of each node; empty if nothing is stated.
    """

    nodes: Sequence[NodeFacts]
    node: StatedNode = ANY_NODE
    build: Build = UNKNOWN_BUILD
    stated: Sequence[Nominal] = ()


def builds(software: Software, benchmarks: Benchmarks) -> dict[str, Build]:
    """Return how the program of each case was built."""
    return {
        name: _build(package)
        for name, case in benchmarks.cases.items()
        if (package := software.packages.get(case.package))
    }


def _build(package: Package) -> Build:
    families = {program.blas.family for program in package.programs.values() if program.blas}
    known = package.origin in STREAMING_RECIPES and package.programs
    return Build(
        families.pop() if len(families) == 1 else None,
        NO_STREAMING not in package.spec if known else None,
    )


def value_of_rule(
    rule: Rule, setting: Setting, parameters: Mapping[str, Scalar]
) -> Derived | Message:
    """Return the value of a rule of either kind for a figure, or why it is not known."""
    if rule in TYPICAL:
        return typical_value(rule, setting, parameters)
    return derive(rule, setting.nodes, parameters, setting.node, setting.stated)


class _Share(NamedTuple):
    """The part of a peak that is typical, the relative tolerance, and where it comes from."""

    ratio: float
    tolerance: float
    source: str
    conditions: TypicalConditions


def typical_value(
    rule: Rule, setting: Setting, parameters: Mapping[str, Scalar]
) -> TypicalValue | Message:
    """Return the value that healthy nodes of this kind reach together, or why it is not known.

    Args:
        rule: a key of `PEAK`.
        setting: what the figure was measured with.
        parameters: of the figure.
    """
    values: list[float] = []
    shares: list[_Share] = []
    unheld: list[Message] = []
    stated = setting.stated or [NOTHING_STATED] * len(setting.nodes)
    for facts, nominal in zip(setting.nodes, stated, strict=True):
        peak = derive(PEAK[rule], [facts], parameters, setting.node, [nominal])
        if isinstance(peak, Message):
            return peak
        share = _share(rule, as_ordered(facts, nominal), nominal, parameters)
        if isinstance(share, Message):
            return share
        values.append(share.ratio * peak.value)
        shares.append(share)
        unheld += _unheld(rule, share.conditions, setting, facts)
        if rule != "typical_bandwidth" and not _all_cores(share.conditions, parameters, facts):
            unheld.append(Message("condition-threads"))
    first = shares[0]
    return TypicalValue(
        OF_SEVERAL.get(PEAK[rule], sum)(values),
        UNIT_OF[rule],
        f"{first.ratio:.3g} × {PEAK[rule]}: {first.conditions.system}; {first.source}",
        max(share.tolerance for share in shares),
        tuple(dict.fromkeys(unheld)),
    )


def _share(
    rule: Rule, facts: NodeFacts, nominal: Nominal, parameters: Mapping[str, Scalar]
) -> _Share | Message:
    if rule == "typical_bandwidth":
        best = max(stated_links(facts, nominal), key=lambda each: each.bytes_per_s, default=None)
        if best is None or best.mpi is None or best.mpi.bytes_per_s is None:
            return Message("typical-link", node=facts.hostname)
        mpi, ratio = best.mpi, best.mpi.bytes_per_s / best.bytes_per_s
        conditions = TypicalConditions(system=mpi.system, bare_metal=mpi.bare_metal, tcp=False)
        return _Share(ratio, mpi.tolerance / ratio, mpi.source, conditions)
    row = processor(facts.cpu_model)
    found = None if row is None else row.hpl if rule == "typical_hpl" else row.triad
    if found is None or parameters.get("memory", DDR) != DDR or side_cache(facts):
        return Message("typical-processor", processor=facts.cpu_model)
    return _Share(found.ratio, found.tolerance / found.ratio, found.source, found.conditions)


def _unheld(
    rule: Rule, conditions: TypicalConditions, setting: Setting, facts: NodeFacts
) -> Iterator[Message]:
    """Yield the conditions of a source that do not hold, or are not known to hold."""
    build, nodes = setting.build, len(setting.nodes)
    if facts.virtual and conditions.bare_metal is not False:
        yield Message("condition-virtual", machine=facts.virtual)
    if nodes > 1 and conditions.tcp is not True and _only_ethernet(facts):
        yield Message("condition-tcp")
    if rule == "typical_hpl" and nodes > 1 and nodes > (conditions.nodes or nodes):
        yield Message("condition-nodes", nodes=nodes, source=conditions.nodes or nodes)
    if rule == "typical_hpl" and (
        build.blas in SLOW_BLAS or (conditions.blas and build.blas not in conditions.blas)
    ):
        of_source = ", ".join(conditions.blas) or ANY_BLAS
        yield Message("condition-blas", blas=build.blas or "?", source=of_source)
    if (
        rule == "typical_triad"
        and facts.machine == X86
        and conditions.streaming_stores is not False
        and not build.streaming_stores
    ):
        yield Message("condition-stores")


def _only_ethernet(facts: NodeFacts) -> bool:
    """Return whether messages can pass TCP: no active port is of another layer than Ethernet."""
    return all(port.layer == ETHERNET for port in active_ports(facts))


def _all_cores(
    conditions: TypicalConditions, parameters: Mapping[str, Scalar], facts: NodeFacts
) -> bool:
    """Return whether each core had a thread, here by the recorded ranks and at the source."""
    if conditions.threads == "part":
        return False
    ranks, threads, nodes = (parameters.get(name, 1) for name in ("ranks", "threads", "nodes"))
    if not all(isinstance(each, int) for each in (ranks, threads, nodes)):
        return False
    return int(ranks) * int(threads) == facts.cores * int(nodes)
