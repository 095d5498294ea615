"""The facts of a node, from the output of ``probe.sh facts``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from proofmark.common.strict_model import StrictModel
from proofmark.site.node import parts, probe_values
from proofmark.site.node.cpu import architecture, cpu_list, cpu_mask, read_cpuinfo, vector_set
from proofmark.site.node.parts import Cache, Dimm, Mount, Nic, NumaDomain, Port
from proofmark.site.node.probe_text import Stream, read_stream

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
        topology_xml: the XML of hwloc, empty if ``lstopo`` is not installed.
        mounts: the mounted file systems that can store data.
        automounts: the folders at or below which an automounter mounts file systems on demand.
        firmware: BIOS, board and serial numbers, by the names of SMBIOS or of the device tree.
        absent: the reason for each fact that is unknown.
    """

    hostname: str
    date: str
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
    numa: tuple[NumaDomain, ...]
    memory_bytes: _Bytes
    memory_total_bytes: _Bytes
    swap_bytes: _Bytes
    caches: tuple[Cache, ...]
    last_level_bytes: int | None
    topology_xml: str
    governor: str | None
    frequency_driver: str | None
    base_hz: int | None
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
    mounts: tuple[Mount, ...]
    automounts: tuple[str, ...] = ()
    limits: dict[str, str]
    modules: tuple[str, ...]
    vulnerabilities: dict[str, str]
    load: tuple[float, ...]
    clock_offset_s: float | None
    absent: dict[str, str]


def parse_probe(text: str, source: str) -> NodeFacts:
    """Return the facts of a node from the output of a probe; `source` is its name in messages.

    Raises:
        BadInput: `text` is not one complete probe of kind ``facts``, or has no processor or memory.
    """
    stream = read_stream(text, source, "facts")
    try:
        return _facts(stream)
    except (ArithmeticError, LookupError, ValueError) as error:
        found = f"a value that cannot be read ({error})"
        raise stream.wrong("", found, "the output of probe.sh") from error


def _facts(stream: Stream) -> NodeFacts:
    host, system, smt = stream.pairs("host"), stream.pairs("system"), stream.pairs("smt")
    frequency, settings = stream.pairs("frequency"), stream.pairs("settings")
    processor = read_cpuinfo(stream.lines("cpuinfo"), system["machine"])
    isa, bits = vector_set(processor.features)
    threads = _threads(stream)
    usable = frozenset(threads) & _allowed(stream)
    if not usable:
        raise stream.wrong("cpus", "no processor that may be used", "one or more")
    cores = _cores(threads, usable)
    quota = probe_values.quota(stream.pairs("cgroup"))
    memory = {key: parts.size(value) for key, value in stream.pairs("meminfo").items()}
    numa = parts.read_numa(stream.tables("numa")) or (
        NumaDomain(index=0, cpus=tuple(sorted(threads)), memory_bytes=memory["MemTotal"]),
    )
    caches = parts.read_caches(stream.lines("caches"), usable)
    dimms, slots_empty = parts.read_dimms(stream.lines("dimms"))
    mounts = parts.read_mounts(stream.lines("mounts"))
    return NodeFacts(
        hostname=host["hostname"],
        date=host["date"],
        boot_id=host.get("boot_id"),
        root=host.get("user") == "0",
        kernel=system["kernel"],
        kernel_version=system.get("version", ""),
        machine=system["machine"],
        cmdline=stream.text("cmdline"),
        os=probe_values.os_name(stream),
        virtual=probe_values.hypervisor(stream, processor.features),
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
        cores_online=len(_cores(threads, frozenset(threads))),
        cpus_online=len(threads),
        cpu_quota=quota,
        smt=smt.get("control"),
        numa=numa,
        memory_bytes=min([memory["MemTotal"], *probe_values.memory_limits(stream.pairs("cgroup"))]),
        memory_total_bytes=memory["MemTotal"],
        swap_bytes=memory.get("SwapTotal", 0),
        caches=caches,
        last_level_bytes=probe_values.last_level(caches),
        topology_xml=stream.text("topology"),
        governor=frequency.get("governor"),
        frequency_driver=frequency.get("driver"),
        base_hz=probe_values.base_hz(frequency, processor.model_name),
        max_hz=probe_values.khz(frequency.get("hardware_max_khz")),
        turbo=probe_values.turbo(frequency),
        thp=probe_values.bracketed(settings.pop("thp", None)),
        thp_defrag=probe_values.bracketed(settings.pop("thp_defrag", None)),
        settings=settings,
        firmware=stream.pairs("dmi") | stream.pairs("devicetree"),
        dimms=dimms,
        dimm_slots_empty=slots_empty,
        nics=parts.read_nics(stream.tables("nics")),
        ports=parts.read_ports(stream.tables("fabric")),
        mounts=tuple(mount for mount in mounts if mount.kind != parts.AUTOFS),
        automounts=tuple(mount.target for mount in mounts if mount.kind == parts.AUTOFS),
        limits=stream.pairs("limits"),
        modules=tuple(sorted(line.split()[0] for line in stream.lines("modules"))),
        vulnerabilities=stream.pairs("vulnerabilities"),
        load=tuple(float(word) for word in stream.text("load").split()[:3]),
        clock_offset_s=probe_values.clock_offset(stream.lines("clock")),
        absent=dict(stream.absent),
    )


def _threads(stream: Stream) -> dict[int, tuple[int, object]]:
    """Return the package and an identifier of the core, by processor number."""
    threads: dict[int, tuple[int, object]] = {}
    for line in stream.lines("cpus"):
        cpu, package, core, siblings = line.split()
        same_core: object = (int(package), core) if siblings == "-" else cpu_list(siblings)
        threads[int(cpu)] = int(package), same_core
    return threads


def _allowed(stream: Stream) -> frozenset[int]:
    allowed = stream.pairs("allowed")
    if "Cpus_allowed_list" in allowed:
        return cpu_list(allowed["Cpus_allowed_list"])
    if "Cpus_allowed" in allowed:
        return cpu_mask(allowed["Cpus_allowed"])
    return frozenset(_threads(stream))


def _cores(
    threads: Mapping[int, tuple[int, object]], usable: frozenset[int]
) -> dict[object, list[int]]:
    cores: dict[object, list[int]] = {}
    for cpu in usable:
        cores.setdefault(threads[cpu][1], []).append(cpu)
    return cores
