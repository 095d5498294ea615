"""The former keys of a partition: what replaced each, and how sealed evidence with them is read.

The reader of an inventory refuses a former key and names the new one. Only the evidence of an
earlier version is converted: it cannot be written again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from proofmark.site.hardware import JUDGES, bytes_per_s
from proofmark.site.hardware_limits import LANES, lanes, link, link_of_gbit

OF_NODE: Mapping[str, str] = {
    **{
        f"hardware.{key}": key
        for key in (
            *("cpu_model", "architecture", "topology", "clock_hz", "flop_per_cycle", "llc_bytes"),
            *("operating_system", "sources", "assumed"),
        )
    },
    "hardware.memory_bytes": "memory.bytes",
    "rated.clock_hz": "clock_hz",
    "rated.avx_hz": "avx_hz",
    "rated.flop_per_cycle": "flop_per_cycle",
    "rated.dimms.channels": "memory.channels",
    "rated.dimms.mt_per_s": "memory.mt_per_s",
    "rated.fast_memory_bytes_per_s": "memory.fast_bytes_per_s",
    "rated.mcdram_bytes_per_s": "memory.fast_bytes_per_s",
    "rated.link_bytes_per_s": "rails.rate",
    "rated.link_latency_s": "rails.latency_s",
    "parts.sockets": "sockets",
    "parts.cores": "cores",
    "parts.memory_bytes": "memory.bytes",
    "parts.dimms.count": "memory.modules",
    "parts.dimms.bytes": "memory.module_bytes",
    "parts.dimms.mt_per_s": "memory.mt_per_s",
    "parts.rails.count": "rails.count",
    "parts.rails.gbit_per_s": "rails.rate",
    "parts.rails.adapters": "rails.adapters",
}
"""The keys below ``partition.node`` of facts that had another key, a later one before others."""
SECTIONS = ("hardware", "rated", "parts")
"""The former sections of a partition about its nodes."""
OTHERS: Mapping[str, str] = {
    "limits": "items of contract.yml (docs/verdict.md)",
    "hardware.fast_memory": "partition.node.topology: a file of hwloc names the kind of a memory",
    "rated.source": "partition.node.sources, by key",
    "parts.source": "partition.node.sources, by key",
    "queue.slots_per_node": "partition.queue.cpus_per_node",
    "queue.alloc_flags": "a line of partition.queue.options: -alloc_flags FLAGS",
    "queue.network": "a line of partition.queue.options: network.MPI = VALUE",
    "queue.resource_set": "a line of partition.queue.options: rset = VALUE",
    "queue.mcm_affinity_options": (
        "a line of partition.queue.options: mcm_affinity_options = VALUE"
    ),
    "launch.pmi_library": "partition.launch.environment_of: {srun: {I_MPI_PMI_LIBRARY: PATH}}",
}
"""What replaced the other former keys."""


def replaced_by(place: str, given: Any) -> Iterator[tuple[str, str]]:
    """Yield each former key of an inventory at or below `place`, and what replaced it.

    Args:
        place: the key below ``partition``, with dots.
        given: its value.
    """
    if place in OF_NODE:
        yield place, f"partition.node.{OF_NODE[place]}"
    elif place in OTHERS:
        yield place, OTHERS[place]
    elif place.startswith("modes.") and place.endswith(".memory_bytes"):
        yield place, f"partition.{place.removesuffix('.memory_bytes')}.topology with its memory"
    elif place.split(".")[0] not in SECTIONS:
        return
    elif isinstance(given, dict) and given:
        for key, value in given.items():
            yield from replaced_by(f"{place}.{key}", value)
    elif place == "hardware":
        yield place, "partition.node: without a topology the node is discovered"
    else:
        yield place, "partition.node"


def with_new_keys(sealed: Any) -> Any:
    """Return the content of ``site.json`` with the keys of today in its partition.

    Only the evidence of an earlier version has the former keys; `Partition` refuses them in an
    inventory. Where two of them state one fact, the value that judged it counts.

    Args:
        sealed: the content. Anything that is no site is returned as it is, and refused later.
    """
    facts = sealed.get("partition") if isinstance(sealed, dict) else None
    if not isinstance(facts, dict):
        return sealed
    facts = _with_options(facts)
    if facts.keys() & {*SECTIONS} and all(_is_known(key, facts.get(key)) for key in SECTIONS):
        facts = _with_node(facts)
    return {**sealed, "partition": facts}


def _with_options(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts of a partition without the former keys of its queue and launcher.

    The scripts of the jobs are sealed too, and nothing is judged by these keys.
    """
    former = [place.split(".") for place in OTHERS if place.startswith(("queue.", "launch."))]
    sections = {"queue": facts.get("queue"), "launch": facts.get("launch")}
    for name, section in sections.items():
        if isinstance(section, dict):
            gone = {key for owner, key in former if owner == name}
            sections[name] = {key: value for key, value in section.items() if key not in gone}
    return {**facts, **{name: given for name, given in sections.items() if name in facts}}


def _with_node(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts of a partition with the section ``node`` in place of the former ones."""
    rest = {key: value for key, value in facts.items() if key not in SECTIONS}
    if isinstance(rest.get("modes"), dict):
        rest["modes"] = {name: _without_memory(mode) for name, mode in rest["modes"].items()}
    node = _node(facts)
    rate, other = node.get("rails", {}).get("rate"), rest.get("fabric") or {}
    if rate and bytes_per_s(other.get("rate")) != bytes_per_s(rate):
        rest["fabric"] = {key: value for key, value in other.items() if key != "rate"}
    return {**rest, "node": node}


def _is_known(place: str, given: Any) -> bool:
    """Return whether all keys below a former section are ones that a partition had."""
    if place in OF_NODE or place in OTHERS or given in (None, {}, "discovered"):
        return True
    return isinstance(given, dict) and all(_is_known(f"{place}.{k}", v) for k, v in given.items())


def _without_memory(mode: Any) -> Any:
    if not isinstance(mode, dict):
        return mode
    return {key: value for key, value in mode.items() if key != "memory_bytes"}


def _node(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the section ``node`` of a partition with former sections."""
    node: dict[str, Any] = {}
    for former, key in OF_NODE.items():
        value = _at(facts, former)
        if value in (None, {}):
            continue
        if former == "parts.rails.gbit_per_s":
            value = _rate_of_gbit(value)
        section, _, name = key.rpartition(".")
        (node.setdefault(section, {}) if section else node)[name] = value
    memory, rails = node.get("memory", {}), node.get("rails", {})
    if "module_bytes" in memory:
        memory.pop("bytes", None)
    if "adapters" in rails:
        rails.pop("count", None)
    stated = _at(facts, "rated.source") or _at(facts, "parts.source") or "partition.hardware"
    known = {**node.get("sources", {}), **node.get("assumed", {})}
    lacking = {key: stated for key in JUDGES if key in node and key not in known}
    return {**node, "sources": {**node.get("sources", {}), **lacking}}


def _at(facts: Any, place: str) -> Any:
    for key in place.split("."):
        facts = facts.get(key) if isinstance(facts, dict) else None
    return facts


def _rate_of_gbit(gbit: float) -> float | str:
    """Return the text of sysfs for a port of this rate; bytes/s if no table has one."""
    limit = link_of_gbit(gbit)
    for row in lanes():
        for count in LANES:
            text = f"{gbit:g} Gb/sec ({count}X {row.speed})"
            if limit is not None and link(text) == limit:
                return text
    return gbit * 1e9 / 8
