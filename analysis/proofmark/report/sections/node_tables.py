"""Tables of one node: its parts, and its error counters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ClusterShell.RangeSet import RangeSet

from proofmark.common.sentences import localized
from proofmark.common.translation import _
from proofmark.report.page import Table, facts, numeric, table
from proofmark.report.words import number, size_4_digits
from proofmark.runs.job_on_node import JobOnNode
from proofmark.runs.nodes import Node
from proofmark.site.node.facts import NodeFacts
from proofmark.site.node.parts import Dimm

MOST_JOBS = 20
"""The largest number of jobs of a node whose counters are shown; nodes/ has all of them."""


def filled(tables: Iterable[Table]) -> tuple[Table, ...]:
    """Return the tables that have rows."""
    return tuple(item for item in tables if item.rows)


def module(dimm: Dimm) -> str:
    """Return a memory module in one line, with its speed if that differs from the rated one."""
    capacity = _("unknown size") if dimm.bytes is None else size_4_digits(dimm.bytes)
    names = (capacity, dimm.kind, dimm.manufacturer, dimm.part_number)
    speed = f"{dimm.rated} MT/s" if dimm.rated else ""
    runs = (
        _("runs at {speed} MT/s").format(speed=dimm.configured)
        if dimm.configured != dimm.rated
        else ""
    )
    return " ".join(filter(None, (*names, speed, runs)))


def details(node: NodeFacts) -> Iterable[Table]:
    """Yield NUMA domains, caches, vulnerabilities and limits."""
    domains = [
        (
            str(domain.index),
            _cpus(domain.cpus),
            size_4_digits(domain.memory_bytes),
            " ".join(map(str, domain.distances)) or "–",
        )
        for domain in node.numa
    ]
    yield table(_("NUMA domains"), (_("Domain"), "CPUs", _("Memory"), _("Distances")), domains)
    caches = [
        (f"L{cache.level}", cache.kind, size_4_digits(cache.bytes), str(cache.instances))
        for cache in node.caches
    ]
    yield table(_("Caches"), (_("Level"), _("Kind"), _("Size"), numeric(_("Number"))), caches)
    yield facts(
        _("Vulnerabilities of the processor"), sorted(node.vulnerabilities.items()), kind="dense"
    )
    yield facts(
        _("Resource limits of the shell that ran the probe"),
        sorted(node.limits.items()),
        kind="dense",
    )


def _cpus(cpus: Sequence[int]) -> str:
    return str(RangeSet.fromlist([str(cpu) for cpu in cpus])) or _("none")


def devices(node: NodeFacts) -> Iterable[Table]:
    """Yield memory modules, network, mounts and firmware."""
    modules = [
        (dimm.locator, module(dimm), dimm.serial or _("not reported")) for dimm in node.dimms
    ]
    yield table(_("Memory modules"), (_("Slot"), _("Module"), _("Serial number")), modules)
    nics = [
        (
            nic.name,
            nic.driver or "–",
            nic.firmware or _("not reported"),
            number(nic.megabits) if nic.megabits else _("not reported"),
            nic.state or "–",
            str(nic.mtu or "–"),
            nic.link or "–",
            nic.link_best or "–",
        )
        for nic in node.nics
    ]
    columns = (
        _("Name"),
        _("Driver"),
        _("Firmware"),
        "Mb/s",
        _("State"),
        "MTU",
        _("PCIe link"),
        _("Best PCIe link"),
    )
    yield table(_("Network interfaces"), columns, nics)
    ports = [
        tuple(
            str(value or _("not reported"))
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
    yield table(
        _("Fabric ports"),
        (_("Port"), _("Kind"), _("Firmware"), _("Board"), _("Rate"), _("State")),
        ports,
    )
    accelerators = [
        (
            each.slot,
            each.kind,
            each.driver or "–",
            number(each.lanes) if each.lanes else _("not reported"),
            number(each.gt_per_s) if each.gt_per_s else _("not reported"),
            {True: _("on"), False: _("off"), None: _("not reported")}[each.ecc],
        )
        for each in node.accelerators or ()
    ]
    named = (_("Slot"), _("Kind"), _("Driver"), _("PCIe lanes"), "GT/s", "ECC")
    yield table(_("Accelerators"), named, accelerators)
    mounts = [
        (
            mount.target,
            mount.kind,
            mount.source,
            "–" if mount.bytes is None else size_4_digits(mount.bytes),
            mount.options,
        )
        for mount in node.mounts
    ]
    yield table(
        _("Mounts"),
        (_("Mount point"), _("Type"), _("Source"), _("Size"), _("Options")),
        mounts,
    )
    yield facts(_("Serial numbers and firmware"), sorted(node.firmware.items()), kind="dense")


def counters(node: Node) -> Iterable[Table]:
    """Yield the error counters before and after each job."""
    return (_counters_of(job) for job in node.jobs[:MOST_JOBS])


def _counters_of(job: JobOnNode) -> Table:
    first, last = job.provenance.before, job.provenance.after
    after = last.values if last else {}
    rows = [
        (name, before, after.get(name, _("not read") if last is None else _("absent")))
        for name, before in sorted(first.values.items())
    ]
    shown = table(
        _("Error counters of job {job}, attempt {attempt}").format(
            job=job.job, attempt=job.attempt
        ),
        (_("Counter"), numeric(_("Before")), numeric(_("After"))),
        rows,
        kind="dense",
    )
    absent = "; ".join(f"{name}: {localized(why)}" for name, why in sorted(first.absent.items()))
    notes = (
        *shown.notes,
        *([_("Not read: {counters}.").format(counters=absent)] if absent else []),
    )
    return replace(shown, notes=notes)
