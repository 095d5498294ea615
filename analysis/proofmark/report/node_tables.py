"""The tables of one node: its parts, and its error counters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ClusterShell.RangeSet import RangeSet

from proofmark.report.page import Column, Table, facts, table
from proofmark.report.text import number, size
from proofmark.runs.nodes import JobOnNode, Node
from proofmark.site.node.facts import NodeFacts
from proofmark.site.node.parts import Dimm

MOST_JOBS = 20
"""Jobs of a node whose counters are shown; the others stand in nodes/."""


def filled(tables: Iterable[Table]) -> tuple[Table, ...]:
    """Return those that have rows."""
    return tuple(each for each in tables if each.rows)


def module(dimm: Dimm) -> str:
    """Return what a memory module is, and how fast it runs if that is not how it was made."""
    names = (size(dimm.bytes), dimm.kind, dimm.manufacturer, dimm.part_number)
    speed = f"{dimm.rated} MT/s" if dimm.rated else ""
    runs = f"runs at {dimm.configured} MT/s" if dimm.configured != dimm.rated else ""
    return " ".join(filter(None, (*names, speed, runs)))


def details(node: NodeFacts) -> Iterable[Table]:
    """Yield NUMA domains, caches, vulnerabilities and limits."""
    domains = [
        (
            str(domain.index),
            _cpus(domain.cpus),
            size(domain.memory_bytes),
            " ".join(map(str, domain.distances)) or "–",
        )
        for domain in node.numa
    ]
    yield table("NUMA domains", ("Domain", "CPUs", "Memory", "Distances"), domains)
    caches = [
        (f"L{cache.level}", cache.kind, size(cache.bytes), str(cache.instances))
        for cache in node.caches
    ]
    yield table("Caches", ("Level", "Kind", "Each", Column("Number", "number")), caches)
    yield facts(
        "Vulnerabilities of the processor", sorted(node.vulnerabilities.items()), kind="dense"
    )
    yield facts("Limits of the shell that probed", sorted(node.limits.items()), kind="dense")


def _cpus(cpus: Sequence[int]) -> str:
    return str(RangeSet.fromlist([str(cpu) for cpu in cpus])) or "none"


def devices(node: NodeFacts) -> Iterable[Table]:
    """Yield memory modules, network, mounts and firmware."""
    modules = [(dimm.locator, module(dimm), dimm.serial or "not told") for dimm in node.dimms]
    yield table("Memory modules", ("Slot", "Module", "Serial number"), modules)
    nics = [
        (
            nic.name,
            nic.driver or "–",
            nic.firmware or "not told",
            number(nic.megabits) if nic.megabits else "not told",
            nic.state or "–",
            str(nic.mtu or "–"),
            nic.link or "–",
            nic.link_best or "–",
        )
        for nic in node.nics
    ]
    columns = (
        "Name",
        "Driver",
        "Firmware",
        "Mb/s",
        "State",
        "MTU",
        "PCIe link",
        "PCIe link at best",
    )
    yield table("Network interfaces", columns, nics)
    ports = [
        tuple(
            str(value or "not told")
            for value in (
                f"{port.adapter}/{port.port}",
                port.kind,
                port.firmware,
                port.board,
                port.rate,
                port.state,
            )
        )
        for port in node.ports
    ]
    yield table("Fabric ports", ("Port", "Kind", "Firmware", "Board", "Rate", "State"), ports)
    mounts = [(each.target, each.kind, each.source, each.options) for each in node.mounts]
    yield table("Mounts", ("Where", "Type", "Source", "Options"), mounts)
    yield facts("Serial numbers and firmware", sorted(node.firmware.items()), kind="dense")


def counters(node: Node) -> Iterable[Table]:
    """Return the error counters before and after each job."""
    return (_counters_of(job) for job in node.jobs[:MOST_JOBS])


def _counters_of(job: JobOnNode) -> Table:
    first, last = job.provenance.before, job.provenance.after
    after = last.values if last else {}
    rows = [
        (name, before, after.get(name, "not read" if last is None else "absent"))
        for name, before in sorted(first.values.items())
    ]
    watched = table(
        f"Error counters of job {job.job}, attempt {job.attempt}",
        ("Counter", Column("Before", "number"), Column("After", "number")),
        rows,
        kind="dense",
    )
    absent = "; ".join(f"{name}: {why}" for name, why in sorted(first.absent.items()))
    notes = (*watched.notes, *([f"Not watched: {absent}."] if absent else []))
    return replace(watched, notes=notes)
