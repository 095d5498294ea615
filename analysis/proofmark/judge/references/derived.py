"""Limits that are derived from the hardware of a node; a missing fact gives no limit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from proofmark.cases.models import UNIT_OF, Rule
from proofmark.site.limits import link, processor
from proofmark.site.node.facts import NodeFacts

Scalar = str | int | float

PIPES = 2
"""Vector units of a core for double precision: two with FMA, or an adder and a multiplier."""

FUSED = {"AVX-512", "VSX", "MMA", "NEON"}
"""Vector instruction sets that always have FMA; AVX and AVX2 have it if `features` has its flag."""

NO_DOUBLES = {"AltiVec"}
"""Vector instruction sets without double precision."""


@dataclass(frozen=True)
class Derived:
    """A limit with its unit and the source of its inputs."""

    value: float
    unit: str
    source: str


def rpeak_nominal(cores: int, flop_per_cycle: int, gigahertz: float) -> float:
    """Return Rpeak in GFlop/s: cores × flop per cycle × nominal GHz (P1, equations 1, 2)."""
    return cores * flop_per_cycle * gigahertz


def flop_per_cycle(facts: NodeFacts) -> int | None:
    """Return double-precision flop per cycle and core by the vector instructions; None if unknown.

    AVX-512 with two FMA units: 32 (P1). Other instruction sets by the same rule: doubles in a
    vector × 2 units, × 2 with FMA.
    """
    if facts.vector_bits is None or facts.vector_isa in NO_DOUBLES:
        return None
    fused = facts.vector_isa in FUSED or "fma" in facts.features or "fma4" in facts.features
    return facts.vector_bits // 64 * PIPES * (2 if fused else 1)


def peak(facts: NodeFacts) -> float | None:
    """Return Rpeak nominal of a node in GFlop/s; None if a fact is not known."""
    flops = flop_per_cycle(facts)
    if flops is None or facts.base_hz is None:
        return None
    return rpeak_nominal(facts.cores, flops, facts.base_hz / 1e9)


def derive(rule: Rule, facts: NodeFacts, parameters: Mapping[str, Scalar]) -> Derived | str:
    """Return the limit of one node, or the reason why there is none.

    Args:
        rule: the rule of the limit.
        facts: the facts of the node.
        parameters: of the figure; ``memory`` is the memory that was used (``ddr``, ``mcdram``).
    """
    if rule == "rpeak_nominal":
        rate = peak(facts)
        if rate is None:
            return f"Rpeak nominal of {facts.cpu_model} is not known"
        return Derived(rate, UNIT_OF[rule], f"{facts.cores} cores × flop/cycle × nominal frequency")
    if facts.virtual and rule != "link_bandwidth":
        return f"{facts.hostname} is virtual ({facts.virtual}): its physical hardware is not known"
    if rule == "link_bandwidth":
        return _link(facts, rule)
    if rule == "rpeak_avx":
        return _rpeak_avx(facts, rule)
    return _memory(facts, rule, str(parameters.get("memory", "ddr")))


def _rpeak_avx(facts: NodeFacts, rule: Rule) -> Derived | str:
    limits = processor(facts.cpu_model)
    if limits is None or limits.avx_hz is None or limits.flop_per_cycle is None:
        return f"no table has the AVX frequency of {facts.cpu_model}"
    rate = facts.cores * limits.flop_per_cycle * limits.avx_hz / 1e9
    return Derived(rate, UNIT_OF[rule], limits.source)


def _memory(facts: NodeFacts, rule: Rule, kind: str) -> Derived | str:
    limits = processor(facts.cpu_model)
    if limits is None:
        return f"no table has the memory channels of {facts.cpu_model}"
    if kind == "mcdram":
        if limits.mcdram_bytes_per_s is None:
            return f"no table has the MCDRAM of {facts.cpu_model}"
        rate = limits.mcdram_bytes_per_s * facts.sockets / 1e9
        return Derived(rate, UNIT_OF[rule], limits.source)
    if limits.channels is None or not facts.dimms:
        return f"{facts.hostname}: the memory modules are not known"
    # The rated speed, not the configured one: a module that runs slower must miss the limit.
    rated = [dimm.rated or dimm.configured for dimm in facts.dimms]
    speeds = [speed for speed in rated if speed is not None]
    if len(speeds) < len(rated) or limits.ddr is None:
        return f"{facts.hostname}: the speed of a memory module is not known"
    # Several modules can share a channel; an empty channel adds nothing.
    filled = min(limits.channels * facts.sockets, len(speeds))
    speed = min(*speeds, limits.ddr)
    source = f"{filled} channels × 8 bytes × {speed} MT/s; {limits.source}"
    return Derived(filled * speed * 8 / 1000, UNIT_OF[rule], source)


def _link(facts: NodeFacts, rule: Rule) -> Derived | str:
    active = [port for port in facts.ports if (port.state or "").endswith("ACTIVE") and port.rate]
    limits = [limit for port in active if (limit := link(port.rate or "")) is not None]
    if not active or len(limits) < len(active):
        rates = ", ".join(dict.fromkeys(port.rate or "" for port in active)) or "no active port"
        return f"no table has the link of {facts.hostname}: {rates}"
    best = max(limits, key=lambda limit: limit.bytes_per_s)
    return Derived(best.bytes_per_s / 1e9, UNIT_OF[rule], best.source)
