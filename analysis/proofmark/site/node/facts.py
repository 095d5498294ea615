"""The facts of a node, from the output of ``probe.sh facts``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from proofmark.common.errors import BadInput
from proofmark.common.files import Moment
from proofmark.common.message import Message
from proofmark.common.strict_model import StrictModel
from proofmark.site.node import parts, probe_values
from proofmark.site.node.clock import khz, nominal_clock
from proofmark.site.node.cpu import architecture, read_cpuinfo, vector_set
from proofmark.site.node.parts import (
    Accelerator,
    Dimm,
    MountedFileSystem,
    Nic,
    Port,
    ReportedCache,
    ReportedDomain,
)
from proofmark.site.node.probe_text import ProbeStream, read_stream
from proofmark.site.node.probe_values import CPUS, cores_of, read_threads, usable_cpus
from proofmark.site.node.topology import Topology
from proofmark.site.node.unread import Unread

REQUIRED = (("host", "hostname"), ("host", "date"), ("system", "kernel"), ("system", "machine"))
"""The texts that each complete probe has, by section and key."""

_Count = Annotated[int, Field(ge=1)]
_Bytes = Annotated[int, Field(ge=0)]


class NodeFacts(StrictModel):
    """The state of one node when it was probed.

    `cores`, `sockets`, `threads_per_core`, `caches` and `memory_bytes` count what a run may use:
    processors that are online and in the probe's cpuset, at most as many cores as the quota of
    processor time, and at most the memory that the control groups allow. Sizes are in bytes,
    frequencies in Hz. An unknown fact is None or empty, and `absent` has the reason.

    Attributes:
        date: UTC, ISO 8601.
        root: whether the probe ran as root.
        virtual: the hypervisor, None on bare metal.
        architecture: archspec's name of the microarchitecture.
        vector_isa: the strongest vector instructions.
        vector_bits: their width, None if it varies.
        differing: the fields of ``/proc/cpuinfo`` that differ between processors, each with its
            values and the number of processors.
        cpus: the processors that a run may use.
        base_hz: the nominal frequency, and `base_source` what states it; `base_listed` whether that
            is the table of processors, because the node does not.
        topology_xml: the XML of hwloc, empty if ``lstopo`` is not installed.
        mounts: the mounted file systems that can store data.
        automounts: the folders at or below which an automounter mounts file systems on demand.
        drivers: the version of each driver that has one, and ``source`` with the checksum of its
            source; None if the probe did not look.
        accelerators: GPUs and others; None if the probe did not look.
        firmware: BIOS, board and serial numbers, by the names of SMBIOS or of the device tree.
        absent: the reason for each fact that is unknown.
        reported: the name that the node reports, if the inventory has another one.
        unread: the text of each value that the probe printed and that cannot be read, by its name.
            Such a fact is unknown. Only processors, memory and topology are needed for a plan.
    """

    hostname: str
    date: Moment
    boot_id: str | None
    root: bool
    kernel: str
    kernel_version: str
    machine: str
    cmdline: str
    os: str
    virtual: str | None
    container: str | None
    vendor: str
    cpu_model: str
    family: int | None
    model: int | None
    stepping: int | None
    microcode: str | None
    features: tuple[str, ...]
    architecture: str
    vector_isa: str
    vector_bits: int | None
    differing: dict[str, tuple[str, ...]]
    sockets: _Count
    cores: _Count
    threads_per_core: _Count
    cpus: tuple[int, ...]
    cores_online: _Count
    cpus_online: _Count
    cpu_quota: float | None
    smt: str | None
    numa: tuple[ReportedDomain, ...]
    memory_bytes: _Bytes
    memory_total_bytes: _Bytes
    swap_bytes: _Bytes
    caches: tuple[ReportedCache, ...]
    last_level_bytes: int | None
    topology_xml: str
    governor: str | None
    frequency_driver: str | None
    base_hz: int | None
    base_source: str = ""
    base_listed: bool = False
    max_hz: int | None
    turbo: bool | None
    thp: str | None
    thp_defrag: str | None
    settings: dict[str, str]
    firmware: dict[str, str]
    dimms: tuple[Dimm, ...]
    dimm_slots_empty: int
    nics: tuple[Nic, ...]
    ports: tuple[Port, ...]
    mounts: tuple[MountedFileSystem, ...]
    automounts: tuple[str, ...] = ()
    limits: dict[str, str]
    modules: tuple[str, ...]
    drivers: dict[str, str] | None = None
    accelerators: tuple[Accelerator, ...] | None = None
    vulnerabilities: dict[str, str]
    load: tuple[float, ...]
    clock_offset_s: float | None
    absent: dict[str, Message]
    unread: dict[str, str] = {}
    reported: str = ""

    @property
    def dram(self) -> tuple[Dimm, ...]:
        """The memory modules without those of persistent memory, which share their channels."""
        return tuple(dimm for dimm in self.dimms if not dimm.persistent)

    @property
    def cores_known(self) -> bool:
        """Whether package, core and siblings of each processor could be read."""
        return not any(name.startswith(f"{CPUS}.") for name in self.unread)


def parse_probe(text: str, source: str) -> NodeFacts:
    """Return the facts of a node from the output of a probe; `source` is its name in messages.

    A value that cannot be read is unknown (`NodeFacts.unread`), unless nothing can replace it.

    Raises:
        BadInput: `text` is not one complete probe of kind ``facts``, or has no host name, processor
            or memory.
    """
    stream = read_stream(text, source, "facts")
    return facts_of(stream, Unread())


def facts_of(stream: ProbeStream, unread: Unread) -> NodeFacts:
    """Return the facts of a probe of kind ``facts``; `unread` keeps what cannot be read.

    Raises:
        BadInput: there is no host name, processor or memory.
    """
    for section, key in REQUIRED:
        if not stream.pairs(section).get(key):
            raise stream.wrong(f"{section}.{key}", "nothing", "the output of probe.sh")
    host, system, smt = stream.pairs("host"), stream.pairs("system"), stream.pairs("smt")
    frequency, settings = stream.pairs("frequency"), stream.pairs("settings")
    processor = read_cpuinfo(stream.lines("cpuinfo"), system["machine"])
    isa, bits = vector_set(processor.features)
    threads = read_threads(stream, unread)
    usable = usable_cpus(stream, unread, frozenset(threads))
    if not usable:
        raise stream.wrong(CPUS, "no processor that may be used", "one or more")
    cores = cores_of(threads, usable)
    quota = probe_values.quota(stream.pairs("cgroup"), unread)
    numa = parts.read_numa(stream.tables("numa"), unread)
    memory = _memory(stream, numa or (), unread)
    limits = probe_values.memory_limits(stream.pairs("cgroup"), unread)
    if numa == ():
        whole = parts.ReportedDomain(
            index=0, cpus=tuple(sorted(threads)), memory_bytes=memory["MemTotal"]
        )
        numa = (whole,)
    caches = parts.read_caches(stream.lines("caches"), usable, unread)
    dimms, slots_empty = parts.read_dimms(stream.lines("dimms"), unread)
    mounts = parts.read_mounts(stream.lines("mounts"), _sizes(stream, unread))
    virtual = probe_values.hypervisor(stream, processor.features)
    clock = nominal_clock(stream, processor.model_name, unread, virtual=virtual is not None)
    return NodeFacts(
        hostname=host["hostname"],
        date=stream.moment("host", "date"),
        boot_id=host.get("boot_id"),
        root=host.get("user") == "0",
        kernel=system["kernel"],
        kernel_version=system.get("version", ""),
        machine=system["machine"],
        cmdline=stream.text("cmdline"),
        os=probe_values.os_name(stream),
        virtual=virtual,
        container=probe_values.unless_none(stream.pairs("virtual").get("container")),
        vendor=processor.vendor,
        cpu_model=processor.model_name,
        family=processor.family,
        model=processor.model,
        stepping=processor.stepping,
        microcode=processor.microcode,
        features=tuple(sorted(processor.features)),
        architecture=architecture(processor),
        vector_isa=isa,
        vector_bits=bits,
        differing=probe_values.differing(stream.lines("cpuinfo_counts")),
        sockets=len({threads[cpu][0] for cpu in usable}),
        cores=len(cores) if quota is None else min(len(cores), max(1, math.floor(quota))),
        threads_per_core=max(map(len, cores.values())),
        cpus=tuple(sorted(usable)),
        cores_online=len(cores_of(threads, frozenset(threads))),
        cpus_online=len(threads),
        cpu_quota=quota,
        smt=smt.get("control"),
        numa=numa or (),
        memory_bytes=min([memory["MemTotal"], *limits]),
        memory_total_bytes=memory["MemTotal"],
        swap_bytes=memory.get("SwapTotal", 0),
        caches=caches,
        last_level_bytes=probe_values.last_level(caches),
        topology_xml=stream.text("topology"),
        governor=frequency.get("governor"),
        frequency_driver=frequency.get("driver"),
        base_hz=clock.hertz,
        base_source=clock.source,
        base_listed=clock.listed,
        max_hz=khz(frequency, "hardware_max_khz", unread),
        turbo=probe_values.turbo(frequency, unread),
        thp=probe_values.bracketed(settings.pop("thp", None)),
        thp_defrag=probe_values.bracketed(settings.pop("thp_defrag", None)),
        settings=settings,
        firmware=stream.pairs("dmi") | stream.pairs("devicetree"),
        dimms=dimms,
        dimm_slots_empty=slots_empty,
        nics=parts.read_nics(stream.tables("nics"), unread),
        ports=parts.read_ports(stream.tables("fabric")),
        mounts=tuple(mount for mount in mounts if mount.kind != parts.AUTOFS),
        automounts=tuple(mount.target for mount in mounts if mount.kind == parts.AUTOFS),
        limits=stream.pairs("limits"),
        modules=tuple(
            sorted(words[0] for line in stream.lines("modules") if (words := line.split()))
        ),
        drivers=stream.pairs("drivers") if "drivers" in stream.sections else None,
        accelerators=parts.read_accelerators(stream.tables("accelerators"), unread)
        if "accelerators" in stream.sections
        else None,
        vulnerabilities=stream.pairs("vulnerabilities"),
        load=probe_values.loads(stream.text("load"), unread),
        clock_offset_s=probe_values.clock_offset(stream.lines("clock"), unread),
        absent=dict(stream.absent),
        unread=unread.values,
    )


def _sizes(stream: ProbeStream, unread: Unread) -> dict[str, int]:
    """Return the sizes of mounted file systems in bytes, by the folder of the mount."""
    kib = {
        target: unread.read(f"sizes.{target}", text, int)
        for target, text in stream.pairs("sizes").items()
    }
    return {target: 1024 * size for target, size in kib.items() if size is not None}


def _memory(stream: ProbeStream, numa: Sequence[ReportedDomain], unread: Unread) -> dict[str, int]:
    """Return the values of ``/proc/meminfo`` in bytes, at least ``MemTotal``.

    Raises:
        BadInput: neither ``/proc/meminfo`` nor the NUMA domains nor the topology has the memory.
    """
    memory = {}
    for key, text in stream.pairs("meminfo").items():
        value = unread.read(f"meminfo.{key}", text, parts.size)
        if value is not None:
            memory[key] = value
    if "MemTotal" not in memory:
        known = sum(domain.memory_bytes for domain in numa) or _memory_of_topology(stream)
        if not known:
            raise stream.wrong("meminfo.MemTotal", "no size", "MemTotal:  16384 kB")
        memory["MemTotal"] = known
    return memory


def _memory_of_topology(stream: ProbeStream) -> int:
    try:
        return Topology.from_xml(stream.text("topology"), stream.source).memory_bytes
    except BadInput:
        return 0
