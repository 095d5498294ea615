"""Limits that follow from what a node is made of. What no table knows is not guessed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from proofmark.cases.models import UNIT_OF, Rule
from proofmark.judge.references.tables import link, processor
from proofmark.site.node.facts import NodeFacts

Scalar = str | int | float

PIPES = 2
"""Vector units of a core that work on double precision at once: two with FMA, or one that adds
beside one that multiplies."""

FUSED = {"AVX-512", "VSX", "MMA", "NEON"}
"""Vector sets that always have FMA; AVX2 and AVX have it if the processor says so."""

NO_DOUBLES = {"AltiVec"}


@dataclass(frozen=True)
class Derived:
    """A limit with its unit, and what it was computed from."""

    value: float
    unit: str
    source: str


def rpeak_nominal(cores: int, flop_per_cycle: int, gigahertz: float) -> float:
    """Return Rpeak in GFlop/s: cores × flop per cycle × nominal GHz (P1, equations 1, 2)."""
    return cores * flop_per_cycle * gigahertz


def flop_per_cycle(facts: NodeFacts) -> int | None:
    """Return double-precision flop per cycle and core by the vector instructions; None if unknown.

    AVX-512 with two FMA units: 32 (P1). The others by the same rule: numbers in a vector × 2 units
    × 2 with FMA.
    """
    if facts.vector_bits is None or facts.vector_isa in NO_DOUBLES:
        return None
    fused = facts.vector_isa in FUSED or "fma" in facts.features or "fma4" in facts.features
    return facts.vector_bits // 64 * PIPES * (2 if fused else 1)


def peak(facts: NodeFacts) -> float | None:
    """Return Rpeak nominal of a node in GFlop/s; None where something in it is not known."""
    flops = flop_per_cycle(facts)
    if flops is None or facts.base_hz is None:
        return None
    return rpeak_nominal(facts.cores, flops, facts.base_hz / 1e9)


def derive(rule: Rule, facts: NodeFacts, parameters: Mapping[str, Scalar]) -> Derived | str:
    """Return the limit of one node, or why there is none.

    Args:
        rule: which limit.
        facts: of the node.
        parameters: of the figure; ``memory`` says which of a node's memories was used.
    """
    if rule == "rpeak_nominal":
        rate = peak(facts)
        if rate is None:
            return f"Rpeak nominal of {facts.cpu_model} is not known"
        return Derived(rate, UNIT_OF[rule], f"{facts.cores} cores × flop/cycle × nominal frequency")
    if facts.virtual and rule != "link_bandwidth":
        return f"{facts.hostname} is virtual ({facts.virtual}): what it runs on cannot be told"
    if rule == "link_bandwidth":
        return _link(facts, rule)
    if rule == "rpeak_avx":
        return _rpeak_avx(facts, rule)
    return _memory(facts, rule, str(parameters.get("memory", "ddr")))


def _rpeak_avx(facts: NodeFacts, rule: Rule) -> Derived | str:
    known = processor(facts.cpu_model)
    if known is None or known.avx_hz is None or known.flop_per_cycle is None:
        return f"no table has the AVX frequency of {facts.cpu_model}"
    rate = facts.cores * known.flop_per_cycle * known.avx_hz / 1e9
    return Derived(rate, UNIT_OF[rule], known.source)


def _memory(facts: NodeFacts, rule: Rule, kind: str) -> Derived | str:
    known = processor(facts.cpu_model)
    if known is None:
        return f"no table has the memory channels of {facts.cpu_model}"
    if kind == "mcdram":
        if known.mcdram_bytes_per_s is None:
            return f"no table has the MCDRAM of {facts.cpu_model}"
        return Derived(known.mcdram_bytes_per_s * facts.sockets / 1e9, UNIT_OF[rule], known.source)
    if known.channels is None or not facts.dimms:
        return f"{facts.hostname}: the memory modules are not told"
    # What they were made for, not how they run: one that was clocked down must show.
    rated = [dimm.rated or dimm.configured for dimm in facts.dimms]
    told = [speed for speed in rated if speed is not None]
    if len(told) < len(rated) or known.ddr is None:
        return f"{facts.hostname}: the speed of a memory module is not told"
    # Several modules share a channel; a channel without one gives nothing.
    filled = min(known.channels * facts.sockets, len(told))
    speed = min(*told, known.ddr)
    said = f"{filled} channels × 8 bytes × {speed} MT/s; {known.source}"
    return Derived(filled * speed * 8 / 1000, UNIT_OF[rule], said)


def _link(facts: NodeFacts, rule: Rule) -> Derived | str:
    active = [port for port in facts.ports if (port.state or "").endswith("ACTIVE") and port.rate]
    found = [known for port in active if (known := link(port.rate or "")) is not None]
    if not active or len(found) < len(active):
        rates = ", ".join(dict.fromkeys(port.rate or "" for port in active)) or "no active port"
        return f"no table has the link of {facts.hostname}: {rates}"
    best = max(found, key=lambda each: each.bytes_per_s)
    return Derived(best.bytes_per_s / 1e9, UNIT_OF[rule], best.source)
