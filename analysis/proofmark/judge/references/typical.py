"""What healthy hardware of the same kind reaches elsewhere, and whether its conditions hold.

Release, BLAS, MPI and its transport, and the kind of stores decide the figures of a program.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from proofmark.cases.reference import TYPICAL, UNIT_OF, HardwareRule, Rule
from proofmark.cases.suite import Benchmarks
from proofmark.cases.vocabulary import ParameterValues
from proofmark.common.message import Message, Term
from proofmark.common.translation import N_
from proofmark.judge.references.derived import (
    ANY_NODE,
    DDR,
    NOTHING_STATED,
    OF_SEVERAL,
    Derived,
    Nominal,
    active_ports,
    as_ordered,
    derive,
    memory_used,
    stated_links,
)
from proofmark.site.ceilings import side_cache
from proofmark.site.hardware import StatedNode
from proofmark.site.hardware_limits import (
    ETHERNET,
    SLINGSHOT,
    TypicalConditions,
    processor,
    typical_shares,
)
from proofmark.site.node.facts import NodeFacts
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
X86 = "x86_64"
ONLY_SLOWER = ("condition-tcp", "condition-nodes")
"""Conditions without which a figure can only be worse: one that meets the value is as good."""
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
        stated: the stated parts of each node; empty if nothing is stated.
    """

    nodes: Sequence[NodeFacts]
    node: StatedNode = ANY_NODE
    build: Build = UNKNOWN_BUILD
    stated: Sequence[Nominal] = ()


def builds(software: Software, benchmarks: Benchmarks) -> dict[str, Build]:
    """Return how the program of each case was built."""
    return {
        name: build_of(package)
        for name, case in benchmarks.cases.items()
        if (package := software.packages.get(case.package))
    }


def build_of(package: Package) -> Build:
    """Return how the programs of a package were built."""
    families = {program.blas.family for program in package.programs.values() if program.blas}
    known = package.origin in STREAMING_RECIPES and package.programs
    return Build(
        families.pop() if len(families) == 1 else None,
        NO_STREAMING not in package.spec if known else None,
    )


def value_of_rule(rule: Rule, setting: Setting, parameters: ParameterValues) -> Derived | Message:
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
    rule: Rule, setting: Setting, parameters: ParameterValues
) -> TypicalValue | Message:
    """Return the value that healthy nodes of this kind reach together, or why it is not known.

    Of several shares it takes the first one with the fewest conditions that do not hold.
    """
    values: list[float] = []
    shares: list[_Share] = []
    unheld: list[Message] = []
    stated = setting.stated or [NOTHING_STATED] * len(setting.nodes)
    for facts, nominal in zip(setting.nodes, stated, strict=True):
        peak = derive(PEAK[rule], [facts], parameters, setting.node, [nominal])
        if isinstance(peak, Message):
            return peak
        known = _shares(rule, as_ordered(facts, nominal), nominal, parameters)
        if isinstance(known, Message):
            return known
        tried = []
        for each in known:
            tried.append((each, [*_unheld(rule, each.conditions, setting, facts)]))
            if rule != "typical_bandwidth":
                tried[-1][1].extend(_other_threads(each.conditions, parameters, facts))
        share, of_share = min(tried, key=lambda pair: len(pair[1]))
        values.append(share.ratio * peak.value)
        shares.append(share)
        unheld += of_share
    first = shares[0]
    return TypicalValue(
        value=OF_SEVERAL.get(PEAK[rule], sum)(values),
        unit=UNIT_OF[rule],
        source=f"{first.ratio:.3g} × {PEAK[rule]}: {first.conditions.system}; {first.source}",
        tolerance=max(share.tolerance for share in shares),
        unheld=tuple(dict.fromkeys(unheld)),
    )


def _shares(
    rule: Rule, facts: NodeFacts, nominal: Nominal, parameters: ParameterValues
) -> Sequence[_Share] | Message:
    if rule == "typical_bandwidth":
        best = max(stated_links(facts, nominal), key=lambda each: each.bytes_per_s, default=None)
        if best is None or best.mpi is None or best.mpi.bytes_per_s is None:
            return Message("typical-link", node=facts.hostname)
        mpi, ratio = best.mpi, best.mpi.bytes_per_s / best.bytes_per_s
        conditions = TypicalConditions(system=mpi.system, bare_metal=mpi.bare_metal, tcp=False)
        return [_Share(ratio, mpi.tolerance / ratio, mpi.source, conditions)]
    row = processor(facts.cpu_model)
    found = typical_shares(row, "hpl" if rule == "typical_hpl" else "triad") if row else ()
    if not found or memory_used(facts, parameters) != DDR or side_cache(facts):
        return Message("typical-processor", processor=facts.cpu_model)
    return [
        _Share(each.ratio, each.tolerance / each.ratio, each.source, each.conditions)
        for each in found
    ]


def _unheld(
    rule: Rule, conditions: TypicalConditions, setting: Setting, facts: NodeFacts
) -> Iterator[Message]:
    """Yield the conditions of a source that do not hold, or are not known to hold."""
    build, nodes = setting.build, len(setting.nodes)
    if facts.virtual and conditions.bare_metal is not False:
        yield Message("condition-virtual", machine=facts.virtual)
    if nodes > 1 and conditions.tcp is not True and _may_pass_tcp(facts, setting.node):
        yield Message("condition-tcp")
    if rule == "typical_hpl" and nodes > 1 and nodes > (conditions.nodes or nodes):
        yield Message("condition-nodes", nodes=nodes, source=conditions.nodes or nodes)
    if rule == "typical_hpl" and (
        build.blas in SLOW_BLAS or (conditions.blas and build.blas not in conditions.blas)
    ):
        of_source = ", ".join(conditions.blas) or ANY_BLAS
        yield Message("condition-blas", blas=build.blas or "?", source=of_source)
    if rule == "typical_triad" and facts.machine == X86:
        bypass = conditions.streaming_stores is not False
        if build.streaming_stores is not bypass:
            yield Message("condition-stores" if bypass else "condition-stores-cached")


def _may_pass_tcp(facts: NodeFacts, node: StatedNode) -> bool:
    """Return whether messages can pass TCP.

    They can if no active port is of another layer than Ethernet, and no adapter is stated. An
    adapter that the inventory names as a rail has verbs, or is that of Slingshot.
    """
    only = all(port.layer in (ETHERNET, SLINGSHOT) for port in active_ports(facts))
    return only and not node.rails.adapters


def _other_threads(
    conditions: TypicalConditions, parameters: ParameterValues, facts: NodeFacts
) -> Iterator[Message]:
    """Yield that the source had another number of threads on a node than the recorded ranks have.

    A source that does not state its threads counts as one with a thread on each core.
    """
    wanted = facts.cores if conditions.threads in (None, "cores") else conditions.threads
    ranks, threads, nodes = (parameters.get(name, 1) for name in ("ranks", "threads", "nodes"))
    numbers = [each for each in (ranks, threads, nodes) if isinstance(each, int)]
    if len(numbers) < 3 or numbers[0] * numbers[1] != wanted * numbers[2]:
        found = f"{numbers[0] * numbers[1] / numbers[2]:g}" if len(numbers) == 3 else "?"
        yield Message("condition-threads", source=wanted, cores=facts.cores, threads=found)
