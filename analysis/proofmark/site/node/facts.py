"""The facts of a node, from the output of ``probe.sh facts``."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated

from pydantic import Field

from proofmark.common.errors import BadInput
from proofmark.common.files import Moment, moment_of
from proofmark.common.grouping import gathered
from proofmark.common.message import Message
from proofmark.common.shared_models import StrictModel
from proofmark.site.hardware_limits import ProcessorLimits, processor
from proofmark.site.node import parts
from proofmark.site.node.cpu import architecture, cpu_list, cpu_mask, read_cpuinfo, vector_set
from proofmark.site.node.parts import (
    Accelerator,
    Dimm,
    MountedFileSystem,
    Nic,
    Port,
    ReportedCache,
    ReportedDomain,
    size,
    smbios_devices,
)
from proofmark.site.node.probe_text import (
    Lines,
    ProbeStream,
    Unread,
    finite,
    read_stream,
    unread_lines,
)
from proofmark.site.node.topology import Topology


def cpu_quota(limits: Mapping[str, str], unread: Unread) -> float | None:
    """Return the processors' time that the control groups grant, None if it is not limited."""
    quotas = []
    for name, value in limits.items():
        group, _, kind = name.rpartition(" ")
        if kind == "cpu.max" and not value.startswith("max"):
            quotas.append(unread.read(f"cgroup.{name}", value, _share))
        elif kind == "cpu.cfs_quota_us" and not value.startswith("-"):
            period = limits.get(f"{group} cpu.cfs_period_us", "")
            quotas.append(unread.read(f"cgroup.{name}", f"{value} {period}", _share))
    return min(filter(None, quotas), default=None)


def _share(text: str) -> float:
    granted, period = map(int, text.split())
    share = granted / period
    if share <= 0:
        raise ValueError(f"no time: {text!r}")
    return share


def memory_limits(limits: Mapping[str, str], unread: Unread) -> Iterator[int]:
    """Yield the memory limits of the control groups in bytes.

    Version 1 reports a huge number if there is no limit.
    """
    for name, text in limits.items():
        if name.endswith(("memory.max", "memory.limit_in_bytes")) and text != "max":
            value = unread.read(f"cgroup.{name}", text, size)
            if value is not None:
                yield value


def differing(lines: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return the fields that differ between processors, from lines ``microcode: 0x1 x 32``."""
    parted = (line.partition(": ") for line in lines)
    values = gathered((key, value) for key, _, value in parted)
    return {key: tuple(counts) for key, counts in values.items() if len(counts) > 1}


def last_level(caches: Iterable[ReportedCache]) -> int | None:
    """Return the bytes of all caches of the last level together, None if no cache is reported."""
    data = [cache for cache in caches if cache.kind != "Instruction"]
    last = max((cache.level for cache in data), default=0)
    return sum(cache.bytes * cache.instances for cache in data if cache.level == last) or None


def hypervisor(stream: ProbeStream, features: frozenset[str]) -> str | None:
    """Return the hypervisor from the first source that has it: systemd, Xen, lscpu, POWER."""
    virtual = stream.pairs("virtual")
    if virtual.get("machine"):
        return unless_none(virtual["machine"])
    by_lscpu = re.search(r'"Hypervisor vendor:",\s*"data":\s*"([^"]+)"', stream.text("lscpu"))
    if "hypervisor" in virtual or by_lscpu:
        return virtual.get("hypervisor") or (by_lscpu[1].lower() if by_lscpu else None)
    if re.search(r"^platform\s*: pSeries", stream.text("cpuinfo"), re.MULTILINE):
        return "kvm" if "qemu" in stream.text("cpuinfo") else "powervm"
    return "unknown" if "hypervisor" in features else None


def unless_none(text: str | None) -> str | None:
    """Return `text`, or None if it is empty or ``none``."""
    return None if text in (None, "", "none") else text


def os_name(stream: ProbeStream) -> str:
    """Return the name of the operating system, from its release file."""
    pretty = re.search(r'^PRETTY_NAME="?([^"\n]*)', stream.text("os"), re.MULTILINE)
    return pretty[1] if pretty else stream.text("os").partition("\n")[0]


def bracketed(text: str | None) -> str | None:
    """Return the choice in brackets of ``always [madvise] never``, or a text without brackets."""
    choice = re.search(r"\[(\S+)\]", text or "")
    return choice[1] if choice else text


def turbo(frequency: Mapping[str, str], unread: Unread) -> bool | None:
    """Return whether the processor may exceed its base frequency, None if it is not reported."""
    for key, values in (("no_turbo", {"0": True, "1": False}), ("boost", {"1": True, "0": False})):
        if key in frequency:
            return unread.read(f"frequency.{key}", frequency[key], values.__getitem__)
    return None


def loads(text: str, unread: Unread) -> tuple[float, ...]:
    """Return the load averages of 1, 5 and 15 minutes; empty if they cannot be read."""
    words = text.split()[:3]
    return unread.read("load", " ".join(words), lambda _: tuple(map(finite, words))) or ()


_REFERENCE_TIME = "%a %b %d %H:%M:%S %Y"
_LOST = 8
"""chrony takes a server for lost after so many intervals without an answer (chronyc(1), Reach)."""
_LONGEST_INTERVAL_S = 1024.0
"""The longest interval of a server by default (chrony.conf(5), maxpoll)."""


def read_clock(
    lines: Sequence[str], now: str, unread: Unread
) -> tuple[float | None, dict[str, Message]]:
    """Return the clock's offset from NTP time in seconds, or why ``chronyc tracking`` states none.

    It is positive if the clock is fast. `now` is the time of the node, UTC in ISO 8601.
    """
    said = dict(re.findall(r"(\w[\w ()]*?) *: (.*)", "\n".join(lines)))
    if state := _runs_free(said, now):
        return None, {"clock": Message("clock-free", state=state)}
    if match := re.match(r"(\S+) seconds (slow|fast)", said.get("System time", "")):
        offset = unread.read("clock.System time", match[1], finite)
        return offset and offset * (1 if match[2] == "fast" else -1), {}
    if lines:
        unread.refuse("clock.System time", lines[0])
    return None, {}


def _runs_free(said: Mapping[str, str], now: str) -> str:
    """Return why a clock has no server, whose offset is then 0 s; empty if it has one.

    If chrony loses its servers, it keeps its status and the offset of the last answer.
    """
    interval, last = (said.get(name, "").strip() for name in ("Update interval", "Ref time (UTC)"))
    with suppress(ValueError):
        heard = datetime.strptime(last, _REFERENCE_TIME).replace(tzinfo=UTC)
        silent_s = (moment_of(now) - heard).total_seconds()
        every_s = max(_LONGEST_INTERVAL_S, float(interval.partition(" ")[0] or 0))
        if abs(silent_s) > _LOST * every_s:  # or the clock was set back
            return f"its last update was at {last} UTC"
    leap, stratum, server = map(said.get, ("Leap status", "Stratum", "Reference ID"))
    local = (server or "").startswith(("7F7F", "127.127."))  # its own clock; chrony 2
    if leap != "Not synchronised" and stratum not in ("0", "16") and not local:
        return ""
    return f"leap status {leap}, stratum {stratum}, reference {server}"


CPUS = "cpus"
"""The section with package, core and siblings of each processor."""


def read_threads(lines: Lines, unread: Unread) -> Mapping[int, tuple[int, object]]:
    """Return the package and an identifier of the core, by processor number.

    A processor whose package cannot be read is in package 0; one of unknown core is a core.

    Raises:
        ValueError: a line does not start with the number of a processor.
    """
    threads: dict[int, tuple[int, object]] = {}
    for line in lines:
        number, *words = line.split() or [""]
        if not (number.isascii() and number.isdecimal() and len(number) < 8):
            raise ValueError(repr(line))
        package, core, siblings = words if len(words) == 3 else ("", number, "-")
        socket = unread.read(f"{CPUS}.cpu{number} package", package, int) or 0
        of_core = None if siblings == "-" else siblings
        same_core: object = unread.read(f"{CPUS}.cpu{number} siblings", of_core, cpu_list)
        if not same_core and unread.read(f"{CPUS}.cpu{number} core", core, int) is None:
            core = number
        threads[int(number)] = socket, same_core or (socket, core)
    return threads


def usable_cpus(stream: ProbeStream, unread: Unread, every: frozenset[int]) -> frozenset[int]:
    """Return the processors of `every` that are in the probe's cpuset.

    Raises:
        BadInput: the kernel printed a cpuset that cannot be read.
    """
    allowed = stream.pairs("allowed")
    for key, reader in (("Cpus_allowed_list", cpu_list), ("Cpus_allowed", cpu_mask)):
        cpus = unread.read(f"allowed.{key}", allowed.get(key), reader)
        if cpus is not None:
            return cpus & every
    if not allowed.keys().isdisjoint(("Cpus_allowed_list", "Cpus_allowed")):
        raise stream.wrong("allowed", "; ".join(unread_lines(unread.values)), "0-3,8")
    return every


def read_cores(lines: Lines, unread: Unread, usable: frozenset[int]) -> Mapping[object, list[int]]:
    """Return the processors of `usable` by the identifier of their core, as `read_threads`."""
    threads = read_threads(lines, unread)
    return gathered((threads[cpu][1], cpu) for cpu in usable)


SAME_FREQUENCY = 0.01
"""Two statements of a frequency with a smaller relative difference are the same one."""
MEGA = 1_000_000


@dataclass(frozen=True)
class Clock:
    """A nominal frequency in Hz and what states it; None and an empty text if nothing does.

    `listed` is whether it is that of the table of processors: the node does not state it.
    """

    hertz: int | None
    source: str
    listed: bool = False


def khz(frequency: Mapping[str, str], key: str, unread: Unread) -> int | None:
    """Return a number of kHz in Hz; None if it is not reported, or 0."""
    value = unread.read(f"frequency.{key}", frequency.get(key), int)
    return value * 1000 if value else None


def nominal_clock(stream: ProbeStream, model_name: str, unread: Unread, *, virtual: bool) -> Clock:
    """Return the nominal frequency of the processor.

    The sources in their order: ``base_frequency`` of cpufreq, the name of the processor,
    ``nominal_freq`` of ACPI CPPC, the speed at boot in SMBIOS if it is the nominal one, and the
    table of processors. A hypervisor can invent the last three: they do not count for a virtual
    node.
    """
    frequency = stream.pairs("frequency")
    if hertz := khz(frequency, "base_khz", unread):
        return Clock(hertz, "cpufreq")
    if stated := re.search(r"@ (\d{1,2}(?:\.\d{1,6})?) ?GHz", model_name, re.ASCII):
        return Clock(round(float(stated[1]) * 1e9), "the name of the processor")
    if virtual:
        return Clock(None, "")
    # In MHz; 0 if the firmware leaves it out (Documentation/ABI: sysfs-devices-system-cpu).
    nominal = unread.read("frequency.nominal_mhz", frequency.get("nominal_mhz"), int)
    if nominal and nominal > 0:
        return Clock(nominal * MEGA, "ACPI CPPC")
    row = processor(model_name)
    if hertz := _at_boot(stream, row):
        return Clock(hertz, "SMBIOS")
    if row is not None and row.base_hz is not None:
        return Clock(round(row.base_hz), f"the table of processors: {row.source}", listed=True)
    return Clock(None, "")


def _at_boot(stream: ProbeStream, row: ProcessorLimits | None) -> int | None:
    """Return the speed of all sockets at boot in Hz; None if it is not the nominal frequency.

    SMBIOS does not say which frequency it is. It is the nominal one if it is that of the table. If
    the table has no frequency, it is below the largest one, which the turbo needs.
    """
    speeds = {
        (_megahertz(device.get("Current Speed")), _megahertz(device.get("Max Speed")))
        for device in smbios_devices(stream.lines("sockets"), "Processor Information")
        if device.get("Status", "").startswith("Populated")
    }
    if len(speeds) != 1:
        return None
    current, largest = speeds.pop()
    if not current:
        return None
    if row is not None and row.base_hz is not None:
        nominal = abs(current * MEGA / row.base_hz - 1) < SAME_FREQUENCY
    else:
        nominal = largest is not None and current < largest
    return current * MEGA if nominal else None


def _megahertz(text: str | None) -> int | None:
    match = re.fullmatch(r"(\d{1,6}) MHz", text or "", re.ASCII)
    return int(match[1]) if match else None


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
    boot_id: str | None = None
    root: bool | None = None
    kernel: str = ""
    kernel_version: str = ""
    machine: str
    cmdline: str = ""
    os: str = ""
    virtual: str | None = None
    container: str | None = None
    vendor: str = ""
    cpu_model: str
    family: int | None = None
    model: int | None = None
    stepping: int | None = None
    microcode: str | None = None
    features: tuple[str, ...]
    architecture: str
    vector_isa: str
    vector_bits: int | None
    differing: dict[str, tuple[str, ...]] = {}
    sockets: _Count
    cores: _Count
    threads_per_core: _Count
    cpus: tuple[int, ...]
    cores_online: _Count
    cpus_online: _Count
    cpu_quota: float | None = None
    smt: str | None = None
    numa: tuple[ReportedDomain, ...] = ()
    memory_bytes: _Bytes
    memory_total_bytes: _Bytes
    swap_bytes: _Bytes | None = None
    caches: tuple[ReportedCache, ...] = ()
    last_level_bytes: int | None = None
    topology_xml: str = ""
    governor: str | None = None
    frequency_driver: str | None = None
    base_hz: int | None
    base_source: str = ""
    base_listed: bool = False
    max_hz: int | None = None
    turbo: bool | None = None
    thp: str | None = None
    thp_defrag: str | None = None
    settings: dict[str, str] = {}
    firmware: dict[str, str] = {}
    dimms: tuple[Dimm, ...]
    dimm_slots_empty: int | None = None
    nics: tuple[Nic, ...] = ()
    ports: tuple[Port, ...]
    mounts: tuple[MountedFileSystem, ...] = ()
    automounts: tuple[str, ...] = ()
    limits: dict[str, str] = {}
    modules: tuple[str, ...] = ()
    drivers: dict[str, str] | None = None
    accelerators: tuple[Accelerator, ...] | None = None
    vulnerabilities: dict[str, str] = {}
    load: tuple[float, ...] = ()
    clock_offset_s: float | None = None
    absent: dict[str, Message] = {}
    unread: dict[str, str] = {}
    reported: str = ""

    @property
    def dram(self) -> tuple[Dimm, ...]:
        """The memory modules in the channels of the processors, without other kinds of memory."""
        return tuple(dimm for dimm in self.dimms if dimm.memory == "ddr")

    def memory_of_domains(self, *, cpus: bool) -> int:
        """Return the bytes of the NUMA domains with processors, or of those without."""
        return sum(each.memory_bytes for each in self.numa if bool(each.cpus) is cpus)

    @property
    def cores_known(self) -> bool:
        """Whether package, core and siblings of each processor could be read."""
        return not any(name.startswith(f"{CPUS}.") for name in self.unread)


HostFacts = Mapping[str, NodeFacts]
"""The facts of each host."""


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
    try:
        threads = unread.read_lines(stream.lines(CPUS), read_threads)
    except ValueError as error:
        raise stream.wrong(CPUS, str(error), "'processor package core siblings'") from None
    usable = usable_cpus(stream, unread, frozenset(threads))
    if not usable:
        raise stream.wrong(CPUS, "no processor that may be used", "one or more")
    cores = unread.read_lines(stream.lines(CPUS), read_cores, usable)
    quota = cpu_quota(stream.pairs("cgroup"), unread)
    numa = parts.read_numa(stream.tables("numa"), unread)
    memory = _memory(stream, numa or (), unread)
    limits = [*memory_limits(stream.pairs("cgroup"), unread)]
    if numa == ():
        whole = parts.ReportedDomain(
            index=0, cpus=tuple(sorted(threads)), memory_bytes=memory["MemTotal"]
        )
        numa = (whole,)
    caches = unread.read_lines(stream.lines("caches"), parts.read_caches, usable)
    dimms, slots_empty = unread.read_lines(stream.lines("dimms"), parts.read_dimms)
    mounts = parts.read_mounts(stream.lines("mounts"), _sizes(stream, unread))
    virtual = hypervisor(stream, processor.features)
    clock = nominal_clock(stream, processor.model_name, unread, virtual=virtual is not None)
    date = stream.moment("host", "date")
    offset_s, free = read_clock(stream.lines("clock"), date, unread)
    return NodeFacts(
        hostname=host["hostname"],
        date=date,
        boot_id=host.get("boot_id"),
        root=host.get("user") == "0",
        kernel=system["kernel"],
        kernel_version=system.get("version", ""),
        machine=system["machine"],
        cmdline=stream.text("cmdline"),
        os=os_name(stream),
        virtual=virtual,
        container=unless_none(stream.pairs("virtual").get("container")),
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
        differing=differing(stream.lines("cpuinfo_counts")),
        sockets=len({threads[cpu][0] for cpu in usable}),
        cores=len(cores) if quota is None else min(len(cores), max(1, math.floor(quota))),
        threads_per_core=max(map(len, cores.values())),
        cpus=tuple(sorted(usable)),
        cores_online=len(unread.read_lines(stream.lines(CPUS), read_cores, frozenset(threads))),
        cpus_online=len(threads),
        cpu_quota=quota,
        smt=smt.get("control"),
        numa=numa or (),
        memory_bytes=min([memory["MemTotal"], *limits]),
        memory_total_bytes=memory["MemTotal"],
        swap_bytes=memory.get("SwapTotal"),
        caches=caches,
        last_level_bytes=last_level(caches),
        topology_xml=stream.text("topology"),
        governor=frequency.get("governor"),
        frequency_driver=frequency.get("driver"),
        base_hz=clock.hertz,
        base_source=clock.source,
        base_listed=clock.listed,
        max_hz=khz(frequency, "hardware_max_khz", unread),
        turbo=turbo(frequency, unread),
        thp=bracketed(settings.pop("thp", None)),
        thp_defrag=bracketed(settings.pop("thp_defrag", None)),
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
        load=loads(stream.text("load"), unread),
        clock_offset_s=offset_s,
        absent={**stream.absent, **free},
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
