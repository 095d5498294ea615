"""Single facts from the sections that ``probe.sh`` printed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from proofmark.site.node.cpu import cpu_list, cpu_mask
from proofmark.site.node.parts import ReportedCache, size
from proofmark.site.node.probe_text import ProbeStream
from proofmark.site.node.unread import Unread, finite, unread_lines


def quota(limits: Mapping[str, str], unread: Unread) -> float | None:
    """Return the processors' time that the control groups grant, None if it is not limited."""
    quotas: list[float | None] = []
    for name, value in limits.items():
        group, _, kind = name.rpartition(" ")
        if kind == "cpu.max" and not value.startswith("max"):
            quotas.append(unread.read(f"cgroup.{name}", value, _share))
        elif kind == "cpu.cfs_quota_us" and not value.startswith("-"):
            period = limits.get(f"{group} cpu.cfs_period_us", "")
            quotas.append(unread.read(f"cgroup.{name}", f"{value} {period}", _share))
    return min((each for each in quotas if each is not None), default=None)


def _share(text: str) -> float:
    granted, period = map(int, text.split())
    share = granted / period
    if share <= 0:
        raise ValueError(f"no time: {text!r}")
    return share


def memory_limits(limits: Mapping[str, str], unread: Unread) -> list[int]:
    """Return the memory limits of the control groups in bytes.

    Version 1 reports a huge number if there is no limit.
    """
    kinds = ("memory.max", "memory.limit_in_bytes")
    values = (
        unread.read(f"cgroup.{name}", value, size)
        for name, value in limits.items()
        if name.endswith(kinds) and value != "max"
    )
    return [value for value in values if value is not None]


def differing(lines: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return the fields that differ between processors, from lines ``microcode: 0x1 x 32``."""
    values: dict[str, list[str]] = {}
    for line in lines:
        key, _, value = line.partition(": ")
        values.setdefault(key, []).append(value)
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


def clock_offset(lines: Sequence[str], unread: Unread) -> float | None:
    """Return the clock's offset from NTP time in seconds, from ``chronyc tracking``.

    It is positive if the clock is fast.
    """
    for line in lines:
        if match := re.match(r"System time\s*: (\S+) seconds (slow|fast)", line):
            offset = unread.read("clock.System time", match[1], finite)
            return offset and offset * (1 if match[2] == "fast" else -1)
    if lines:
        unread.refuse("clock.System time", lines[0])
    return None


CPUS = "cpus"
"""The section with package, core and siblings of each processor."""


def read_threads(stream: ProbeStream, unread: Unread) -> dict[int, tuple[int, object]]:
    """Return the package and an identifier of the core, by processor number.

    A processor whose package cannot be read is in package 0; one of unknown core is a core.

    Raises:
        BadInput: a line does not start with the number of a processor.
    """
    threads: dict[int, tuple[int, object]] = {}
    for line in stream.lines(CPUS):
        number, *words = line.split() or [""]
        if not (number.isascii() and number.isdecimal() and len(number) < 8):
            raise stream.wrong(CPUS, repr(line), "'processor package core siblings'")
        package, core, siblings = words if len(words) == 3 else ("", number, "-")
        socket = unread.read(f"{CPUS}.cpu{number} package", package, int) or 0
        same_core: object = (
            None
            if siblings == "-"
            else unread.read(f"{CPUS}.cpu{number} siblings", siblings, cpu_list)
        )
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
    texts = {key: allowed[key] for key in ("Cpus_allowed_list", "Cpus_allowed") if key in allowed}
    for key, text in texts.items():
        reader = cpu_list if key == "Cpus_allowed_list" else cpu_mask
        cpus = unread.read(f"allowed.{key}", text, reader)
        if cpus is not None:
            return cpus & every
    if texts:
        raise stream.wrong("allowed", "; ".join(unread_lines(unread.values)), "0-3,8")
    return every


def cores_of(
    threads: Mapping[int, tuple[int, object]], usable: frozenset[int]
) -> dict[object, list[int]]:
    """Return the processors of `usable` by the identifier of their core."""
    cores: dict[object, list[int]] = {}
    for cpu in usable:
        cores.setdefault(threads[cpu][1], []).append(cpu)
    return cores
