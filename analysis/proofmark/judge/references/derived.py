"""Limits that are derived from the hardware of a node, and what healthy hardware like it reaches.

A missing fact gives no limit. Release, BLAS, MPI and its transport, and the kind of stores decide
the figures of a program: a typical value has these conditions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import NamedTuple

from proofmark.cases.reference import TYPICAL, HardwareRule, Rule
from proofmark.cases.suite import Benchmarks
from proofmark.cases.vocabulary import ALL_RAILS, RAIL, ParameterValues
from proofmark.common.grouping import gathered
from proofmark.common.message import Message, Term
from proofmark.common.translation import N_
from proofmark.site.ceilings import SideCache, only_in_package, side_cache
from proofmark.site.hardware import MEMORY, NODE, RAILS, StatedNode
from proofmark.site.hardware_limits import (
    ETHERNET,
    LOWEST_TRIAD,
    SLINGSHOT,
    LinkLimit,
    ProcessorLimits,
    TypicalConditions,
    link,
    link_of_gbit,
    microarchitectures,
    processor,
    shown_gbit,
    typical_shares,
)
from proofmark.site.node.facts import NodeFacts
from proofmark.site.node.parts import Port
from proofmark.site.node.topology import FAST
from proofmark.site.rails import PathPart, name_of, parts_after, ports_of, rails_of
from proofmark.software.software import Package, Software

DDR, FAST_MEMORY = "ddr", "hbm"
SATURATING = 7 / 8
"""The part of the processors of each NUMA domain with which a run reaches the whole bandwidth."""
ARRAY, BYTES_OF_ARRAYS = "array", 3 * 8
"""The parameter with the elements of an array; the bytes of one element of three arrays of doubles:
the data of STREAM."""
ANY_NODE = StatedNode()
"""The node of a site that states nothing."""

OF_SEVERAL: Mapping[Rule, Callable[[Iterable[float]], float]] = {
    "link_bandwidth": min,
    "link_latency": max,
}
"""The value of several nodes from those of each; the values of other rules add up."""


@dataclass(frozen=True)
class Derived:
    """A limit in the unit of its rule (`UNIT_OF`), and the source of its inputs.

    `reach` is the part of it that the cores can use, ÷ the part of DDR: floors take it.
    """

    value: float
    source: str
    reach: float = field(default=1.0, kw_only=True)


@dataclass(frozen=True)
class Nominal:
    """The stated parts of a node, where they are more than it shows; None: those that it shows.

    Attributes:
        dimm_mt_per_s: the speed of the memory modules.
        ports: the names of the ports that carry messages; empty if nothing states them.
        sources: who states each part: ``declared``, ``accepted`` or ``usual``.
    """

    processor: str | None = None
    cores: int | None = None
    sockets: int | None = None
    dimms: int | None = None
    dimm_mt_per_s: int | None = None
    gbit_per_s: float | None = None
    rails: int | None = None
    ports: tuple[str, ...] = ()
    sources: Mapping[str, str] = field(default_factory=dict)

    def note(self, *names: str) -> str:
        """Return who states the parts `names` that replace those of the node, as an addition."""
        by = {self.sources[name] for name in names if getattr(self, name) is not None}
        words = {"declared": "declared", "accepted": "accepted before", "usual": "as most nodes"}
        return "".join(f", {word}" for who, word in words.items() if who in by)


NOTHING_STATED = Nominal()


def flop_per_cycle(facts: NodeFacts, node: StatedNode = ANY_NODE) -> tuple[int, str] | None:
    """Return the double-precision flop per cycle of a core, and the source; None if not certain.

    The data sheet of the site comes first, then the table of processors, then the table of
    microarchitectures. Flags say nothing about the number and the width of the units.
    """
    if node.flop_per_cycle is not None:
        return node.flop_per_cycle, node.source("flop_per_cycle")
    row = processor(facts.cpu_model)
    if row is not None and row.flop_per_cycle is not None:
        return row.flop_per_cycle, row.source
    core = microarchitectures().get((facts.vendor, facts.family, facts.model))
    if facts.virtual or core is None or core.needs not in ("", *facts.features):
        return None
    return core.flop_per_cycle, f"{core.name}; {core.source}"


def peak(facts: NodeFacts, node: StatedNode = ANY_NODE) -> float | None:
    """Return Rpeak nominal of a node in GFlop/s, as `derive` does; None if a fact is not known."""
    limit = _of_node("rpeak_nominal", facts, DDR, node, NOTHING_STATED)
    return limit.value if isinstance(limit, Derived) else None


def derive(
    rule: Rule,
    nodes: Sequence[NodeFacts],
    parameters: ParameterValues,
    node: StatedNode = ANY_NODE,
    stated: Sequence[Nominal] = (),
) -> Derived | Message:
    """Return the limit of the nodes of a figure together, or the reason why there is none.

    The reason names the key of the inventory that gives the missing fact.

    Args:
        parameters: of the figure; ``memory`` is the memory that was used (``ddr``, ``mcdram``).
        stated: the stated parts of each node; empty if nothing is stated.
    """
    each: list[Derived] = []
    for facts, nominal in zip(nodes, stated or [NOTHING_STATED] * len(nodes), strict=True):
        memory = memory_used(facts, parameters)
        rail = str(parameters.get(RAIL))
        if rail in map(name_of, active_ports(facts)):
            nominal = replace(nominal, ports=(rail,))
        limit = _of_node(rule, facts, memory, node, nominal)
        cache = side_cache(facts) if rule == "memory_bandwidth" and memory == DDR else None
        if cache is not None:
            limit = _cached(limit, facts, cache, parameters, node)
        if isinstance(limit, Message):
            return limit
        if rule == "link_bandwidth" and parameters.get(RAIL) == ALL_RAILS:
            limit = _of_all_rails(limit, facts, nominal)
        each.append(limit)
    value = OF_SEVERAL.get(rule, sum)(limit.value for limit in each)
    several = f"{len(each)} nodes, each: " if len(each) > 1 else ""
    source = f"{several}{each[0].source}"
    return Derived(value, source, reach=each[0].reach)


def memory_used(facts: NodeFacts, parameters: ParameterValues) -> str:
    """Return the kind of the memory of a figure. Without a label it is the main memory."""
    kind = str(parameters.get("memory", DDR))
    return FAST_MEMORY if kind == DDR and only_in_package(facts) else kind


def as_ordered(facts: NodeFacts, nominal: Nominal) -> NodeFacts:
    """Return the facts of a node with the processor that was ordered, from which limits follow."""
    if nominal.processor is None:
        return facts
    row = processor(nominal.processor)
    hertz = row.base_hz if row else None
    return facts.model_copy(
        update={
            "cpu_model": nominal.processor,
            "base_hz": hertz and round(hertz),
            "base_source": row.source if row else "",
            "base_listed": True,
        }
    )


def _of_node(
    rule: Rule, facts: NodeFacts, memory: str, node: StatedNode, nominal: Nominal
) -> Derived | Message:
    facts = as_ordered(facts, nominal)
    if rule == "rpeak_nominal":
        hertz = node.clock_hz or _unless_virtual(facts, facts.base_hz)
        return _rpeak(facts, node, hertz, nominal, avx=False)
    if rule == "rpeak_avx":
        row = processor(facts.cpu_model)
        hertz = _unless_virtual(facts, row.avx_hz if row else None)
        return _rpeak(facts, node, node.avx_hz or hertz, nominal, avx=True)
    if rule == "memory_bandwidth":
        return _memory(facts, memory, node, nominal)
    return _link(facts, node, nominal, latency=rule == "link_latency")


def _of_all_rails(limit: Derived, facts: NodeFacts, nominal: Nominal) -> Derived:
    """Return the limit of all rails of a node together: of each card no more than it carries.

    The rails are the stated ones, or the active ones of the fastest rate.
    """
    rates = [rail.gbit_per_s for rail in rails_of(facts).values() if rail.active]
    count = nominal.rails or rates.count(max(rates, default=0.0)) or 1
    cards = gathered(
        ((port.slot or name_of(port)).partition(".")[0], port)
        for port in active_ports(facts, nominal)
    )
    part, source = 1.0, ""
    for ports in cards.values():
        least = min(parts_after(ports[0]), default=None)
        if least and least.bytes_per_s < 1e9 * limit.value * len(ports):
            share = len(ports) / len([*chain(*cards.values())])
            part -= share * (1 - least.bytes_per_s / (1e9 * limit.value * len(ports)))
            source = f", of {len(ports)} on a card no more than {least.source}"
    text = f"{count} rails × {limit.source}{source}"
    return replace(limit, value=count * limit.value * part, source=text)


def _unless_virtual(facts: NodeFacts, value: float | None) -> float | None:
    """Return a fact of the physical hardware, which a virtual node can hide."""
    return None if facts.virtual else value


def key_of(reason: Message) -> str:
    """Return the key of the inventory that gives a missing fact; empty if no fact is missing."""
    return str(reason.fields["key"]) if "key" in reason.fields else ""


def _unknown(facts: NodeFacts, what: Message, key: str) -> Message:
    key = f"partition.{NODE}.{key}"
    if not facts.virtual:
        return Message("fact-unknown", key=key, text=what)
    about = {"node": facts.hostname, "machine": facts.virtual}
    return Message("fact-hidden", key=key, text=what, **about)


def _rpeak(
    facts: NodeFacts, node: StatedNode, hertz: float | None, nominal: Nominal, *, avx: bool
) -> Derived | Message:
    code, key = ("fact-clock-avx", "avx_hz") if avx else ("fact-clock", "clock_hz")
    if hertz is None:
        return _unknown(facts, Message(code, processor=facts.cpu_model), key)
    known = flop_per_cycle(facts, node)
    if known is None:
        what = Message("fact-vector-units", processor=facts.cpu_model)
        return _unknown(facts, what, "flop_per_cycle")
    flops, source = known
    cores = nominal.cores or facts.cores
    parts = f"{cores} cores{nominal.note('cores')} × {flops} flop/cycle × {hertz / 1e9:g} GHz"
    if not avx and not node.clock_hz and facts.base_listed:
        parts += f" ({facts.base_source})"
    value = cores * flops * hertz / 1e9  # P1, equations 1, 2
    return Derived(value, f"{parts}; {source}")


def _memory(facts: NodeFacts, kind: str, node: StatedNode, nominal: Nominal) -> Derived | Message:
    few = any(
        len({*facts.cpus}.intersection(own.cpus)) < SATURATING * len(own.cpus) for own in facts.numa
    )
    if few or len(facts.cpus) < SATURATING * facts.cpus_online or facts.cpu_quota is not None:
        return Message("part-of-node", node=facts.hostname)
    limits = None if facts.virtual else processor(facts.cpu_model)
    if kind in FAST:
        reach = limits.fast_memory_triad / LOWEST_TRIAD if limits else 1.0
        if (fast := node.memory.fast_bytes_per_s) is not None:
            return Derived(fast / 1e9, node.source(MEMORY), reach=reach)
        if limits is None or limits.fast_memory_bytes_per_s is None:
            what = Message("fact-fast-memory", processor=facts.cpu_model)
            return _unknown(facts, what, f"{MEMORY}.fast_bytes_per_s")
        rate = limits.fast_memory_bytes_per_s * facts.sockets / 1e9
        return Derived(rate, limits.source, reach=reach)
    if kind != DDR:
        return Message("fact-other-memory", kind=kind, node=facts.hostname)
    if (filled_speed := node.memory.channel_speed) is not None:
        return _channels(*filled_speed, node.source(MEMORY))
    if limits and (soldered := _soldered(facts, limits)):
        rate = facts.sockets * soldered / 1e9
        return Derived(rate, f"{facts.sockets} processors; {limits.source}")
    if limits is None or limits.channels is None or limits.ddr is None:
        if node.memory.channels:
            what = Message("fact-speed-any", node=facts.hostname)
            return _unknown(facts, what, f"{MEMORY}.mt_per_s")
        what = Message("fact-channels", processor=facts.cpu_model)
        return _unknown(facts, what, f"{MEMORY}.channels")
    # The rated speed, not the configured one: a module that runs slower must miss the limit. Two
    # modules on a channel run slower by design.
    several = len(facts.dram) > limits.channels * facts.sockets
    each = (
        dimm.configured or dimm.rated if several else dimm.rated or dimm.configured
        for dimm in facts.dram
    )
    speeds = [speed for speed in each if speed]
    if (own := node.memory.mt_per_s) is not None:
        speeds = [own] * max(1, len(facts.dram))
    elif (stated := nominal.dimm_mt_per_s) is not None:
        speeds = [max(stated, min(speeds, default=0))] * max(1, len(facts.dram))
    if not speeds or len(speeds) < len(facts.dram):
        what = Message("fact-speed" if facts.dram else "fact-speed-any", node=facts.hostname)
        return _unknown(facts, what, f"{MEMORY}.mt_per_s")
    # Several modules can share a channel; an empty channel adds nothing.
    sockets, modules = nominal.sockets or facts.sockets, nominal.dimms or len(speeds)
    filled = node.memory.channels or min(limits.channels * sockets, modules)
    note = nominal.note("sockets", "dimms", "dimm_mt_per_s")
    return _channels(filled, min(*speeds, limits.ddr), f"{limits.source}{note}")


def _soldered(facts: NodeFacts, limits: ProcessorLimits) -> float | None:
    """Return the rate of the soldered memory of a socket in bytes/s; None if it has none."""
    memory = facts.memory_of_domains(cpus=True) or facts.memory_total_bytes
    size, cores = memory / facts.sockets, facts.cores_online // facts.sockets
    rates = (at.bytes_per_s for at in limits.soldered if at.cores == cores and size <= at.bytes)
    return next(rates, None)


def _cached(
    modules: Derived | Message,
    facts: NodeFacts,
    cache: SideCache,
    parameters: ParameterValues,
    node: StatedNode,
) -> Derived | Message:
    """Return the bandwidth of memory behind a memory-side cache: that of the cache.

    It is not known for data beyond the cache: a part of them is in it.
    """
    array, rate = parameters.get(ARRAY), node.memory.fast_bytes_per_s or cache.bytes_per_s
    sizes = {"node": facts.hostname, "cache": f"{cache.bytes / 2**30:.3g}"}
    if not isinstance(array, int) or BYTES_OF_ARRAYS * array > cache.bytes:
        return Message("fact-beyond-cache", **sizes)
    if cache.of_modules:
        return modules
    if rate is None:
        key = f"{MEMORY}.fast_bytes_per_s"
        return _unknown(facts, Message("fact-cache-rate", **sizes), key)
    source = node.source(MEMORY) if node.memory.fast_bytes_per_s else cache.source
    text = f"memory-side cache of {sizes['cache']} GiB; {source}"
    return Derived(rate / 1e9, text)


def active_ports(facts: NodeFacts, nominal: Nominal = NOTHING_STATED) -> list[Port]:
    """Return the active ports that carry messages; all active ones if nothing states these."""
    ports = ports_of(facts)
    active = [port for port in ports if port.rate and (port.state or "").endswith("ACTIVE")]
    return [port for port in active if not nominal.ports or name_of(port) in nominal.ports]


def stated_links(facts: NodeFacts, nominal: Nominal) -> list[LinkLimit]:
    """Return the limits of the active ports of a node, or that of a faster stated port.

    A port that no table has is left out.
    """
    active = active_ports(facts, nominal)
    shown = max((shown_gbit(port.rate or "") or 0 for port in active), default=0)
    if nominal.gbit_per_s and shown < nominal.gbit_per_s:
        layer = next((port.layer for port in active), None)
        stated = link_of_gbit(nominal.gbit_per_s, layer)
        return [stated] if stated else []
    found = [link(port.rate or "", port.layer) for port in active]
    return [limit for limit in found if limit is not None]


def _channels(channels: int, speed: int, source: str) -> Derived:
    text = f"{channels} channels × 8 bytes × {speed} MT/s; {source}"
    return Derived(channels * speed * 8 / 1000, text)


def _link(
    facts: NodeFacts, node: StatedNode, nominal: Nominal, *, latency: bool
) -> Derived | Message:
    stated = node.rails.latency_s if latency else node.rails.bytes_per_s
    if stated is not None:
        return Derived(stated * (1e6 if latency else 1e-9), node.source(RAILS))
    active, limits = active_ports(facts, nominal), stated_links(facts, nominal)
    kinds = {(port.rate, port.layer): f"{name_of(port)} {port.rate}" for port in active}
    if len(kinds) > 1 and nominal.gbit_per_s is None:
        # No port is assumed: the fastest one may be that of the storage.
        fields = {"node": facts.hostname, "ports": ", ".join(kinds.values())}
        return Message("fact-port", key="partition.fabric.network.interfaces", **fields)
    note = nominal.note("gbit_per_s")
    best = max(limits, key=lambda limit: limit.bytes_per_s, default=None)
    replaced = nominal.gbit_per_s is not None and len(limits) == 1
    unknown = len(limits) < len(active) and not replaced
    if best is None or unknown or (latency and best.latency_s is None):
        rates = ", ".join(dict.fromkeys(port.rate or "" for port in active)) or "no active port"
        key = f"{RAILS}.latency_s" if latency else f"{RAILS}.rate"
        return _unknown(facts, Message("fact-link", node=facts.hostname, rates=rates), key)
    if latency and best.latency_s is not None:
        return Derived(best.latency_s * 1e6, f"{best.latency_source}{note}")
    # The fastest path counts: the slot of one port may be the fault that must be seen.
    path = [min([*parts_after(port), PathPart(best.bytes_per_s, best.source)]) for port in active]
    least = max(path, default=PathPart(best.bytes_per_s, best.source))
    return Derived(least.bytes_per_s / 1e9, f"{least.source}{note}")


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
