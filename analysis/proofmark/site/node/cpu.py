"""The processor of any node, of any architecture, from its ``/proc/cpuinfo`` and its SMBIOS tables.

Structures of SMBIOS: DMTF DSP0134, section 6.1 (header, formatted area, strings). Xeon Phi of both
generations list vendor-specific structures in a group (type 14). The general one has one bit for
the cluster mode, one for the memory mode, and for Hybrid the share of MCDRAM that is cache. Only
these tables distinguish All2All, Hemisphere and Quadrant: NUMA shows one domain in all three.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from archspec.cpu import TARGETS, Microarchitecture, generic_microarchitecture
from archspec.cpu.detect import COMPATIBILITY_CHECKS, partial_uarch
from archspec.cpu.schema import TARGETS_JSON
from ClusterShell.RangeSet import RangeSet

from proofmark.common.errors import bad_input
from proofmark.common.input_limits import MAX_CPUS
from proofmark.common.text import whole_number
from proofmark.common.yaml_models import shipped_data

POWER = ("ppc64le", "ppc64")

_SETS = tuple[tuple[str, str, int | None], ...]
VECTOR_SETS = shipped_data("proofmark.site", "vector_sets.yml", _SETS)


@dataclass(frozen=True)
class Processor:
    """One processor as ``/proc/cpuinfo`` describes it.

    Attributes:
        machine: the output of ``uname -m``.
        features: the flags. For POWER: ``altivec``, and each generation up to that of the processor
            (``power8``).
        generation: of POWER, else 0.
        part: the part number of an Arm processor, else empty.
    """

    machine: str
    vendor: str
    model_name: str
    family: int | None
    model: int | None
    stepping: int | None
    microcode: str | None
    features: frozenset[str]
    generation: int = 0
    part: str = ""


def read_cpuinfo(lines: Iterable[str], machine: str) -> Processor:
    """Return the first processor in `lines`; `machine` is the output of ``uname -m``."""
    fields: dict[str, str] = {}
    for line in lines:
        key, _, value = line.partition(":")
        fields.setdefault(key.strip().lower(), value.strip())
    family = model = stepping = None
    generation, part = 0, ""
    if machine in POWER:
        vendor, power = "IBM", fields.get("cpu", "unknown")
        name, microcode = power.partition(",")[0], fields.get("firmware")
        match = re.search(r"POWER(\d+)", power)
        generation = int(match[1]) if match else 0
        flags = [f"power{number}" for number in range(6, generation + 1)]
        flags += ["altivec"] * ("altivec supported" in power)
    else:
        family, model, stepping = (
            whole_number(fields.get(key, "")) for key in ("cpu family", "model", "stepping")
        )
        microcode = fields.get("microcode")
        if machine == "aarch64":
            code = fields.get("cpu implementer", "generic")
            vendor = TARGETS_JSON["conversions"]["arm_vendors"].get(code, code)
            part = fields.get("cpu part", "")
            name = fields.get("model name") or f"{vendor} part {part or 'unknown'}"
            flags = fields.get("features", "").split()
        else:
            vendor = fields.get("vendor_id", "generic")
            # RISC-V has its microarchitecture only.
            name = fields.get("model name") or fields.get("uarch", "unknown")
            name = " ".join(name.split())
            flags = fields.get("flags", "").split()
    return Processor(
        machine=machine,
        vendor=vendor,
        model_name=name,
        family=family,
        model=model,
        stepping=stepping,
        microcode=microcode,
        features=frozenset(flags),
        generation=generation,
        part=part,
    )


@lru_cache(maxsize=16)  # of a thousand nodes few processors differ
def architecture(processor: Processor) -> str:
    """Return the name of the microarchitecture that archspec would detect on the node.

    archspec's detection reads the local ``/proc``; its compatibility checks take any processor.
    """
    root = TARGETS.get(processor.machine, generic_microarchitecture(processor.machine))
    info = partial_uarch(
        vendor=processor.vendor,
        features=set(processor.features),
        generation=processor.generation,
        cpu_part=processor.part,
    )
    fitting = [target for target in TARGETS.values() if _fits(info, target, root)]
    plain = max(
        (target for target in fitting if target.vendor == "generic"), key=_depth, default=root
    )
    same_part = [target for target in fitting if info.cpu_part and target.cpu_part == info.cpu_part]
    # If a hypervisor hides a rare feature, the generic target must not win.
    better = [target for target in same_part or fitting if target > plain]
    return str(max(better, key=_depth, default=plain).name)


def _fits(info: Microarchitecture, target: Microarchitecture, root: Microarchitecture) -> bool:
    if root.name in POWER:  # archspec's check compares with the local machine
        descends = target == root or root in target.ancestors
        return descends and int(target.generation) <= int(info.generation)
    check = COMPATIBILITY_CHECKS.get(root.name)
    return target == root if check is None else bool(check(info, target))


def _depth(target: Microarchitecture) -> tuple[int, int]:
    return len(target.ancestors), len(target.features)


def vector_set(features: Iterable[str]) -> tuple[str, int | None]:
    """Return the strongest vector instructions and their width in bits, None if it varies (SVE)."""
    flags = frozenset(features)
    for needed, name, bits in VECTOR_SETS:
        if needed in flags:
            return name, bits
    return "scalar", 64


_CPU_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9})(?:[:/](\d{1,9}))?)?", re.ASCII)


@lru_cache(maxsize=4096)
def cpu_list(text: str) -> frozenset[int]:
    """Return the processors in a kernel's list (``0-3,8``).

    Raises:
        ValueError: the text is not a list of processors, or has more than `MAX_CPUS`.
    """
    ranges = text.strip().strip(",")
    if not ranges:
        return frozenset()
    wrong = f"{text[:80]!r} is not a list of processors"
    cpus: set[int] = set()
    total = 0
    for part in ranges.split(","):
        match = _CPU_RANGE.fullmatch(part.strip())
        if match is None:
            raise ValueError(f"{wrong}: {part[:80]!r}")
        first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
        if last < first or last >= MAX_CPUS or step < 1:
            raise ValueError(f"{wrong}: {part!r}; accepted: ranges from 0 to {MAX_CPUS - 1}")
        total += (last - first) // step + 1
        if total > MAX_CPUS:
            raise ValueError(f"{wrong}: more than {MAX_CPUS} processors")
        cpus.update(range(first, last + 1, step))
    return frozenset(cpus)


def cpu_list_text(cpus: Iterable[int]) -> str:
    """Return `cpus` as a kernel's list of processors (``0-3,8``)."""
    return str(RangeSet.fromlist(map(str, cpus)))


def cpu_mask(text: str) -> frozenset[int]:
    """Return the processors in a mask that old kernels print (``00000000,0000ffff``).

    Raises:
        ValueError: the text is not hexadecimal, or has more than `MAX_CPUS` bits.
    """
    if len(text) > MAX_CPUS // 3:  # a comma for each 8 digits
        raise ValueError(f"a mask of {len(text)} characters, more than {MAX_CPUS} processors")
    mask = int(text.replace(",", ""), 16)
    return frozenset(bit for bit in range(mask.bit_length()) if mask >> bit & 1)


SYSTEM, GROUP, END = 1, 14, 127
SERIAL_BYTE = 3
"""The byte of the system information, after the header, with the number of the serial string."""
PHI_GROUPS = ("Group: Knights Landing Information", "Group: Knights Mill Information")
PHI_GENERAL = 1  # the id of the group member
PHI_CLUSTER = {1: "Quadrant", 2: "Hemisphere", 4: "SNC-4", 8: "SNC-2", 16: "All2All"}
PHI_MEMORY = {1: "Cache", 2: "Flat", 4: "Hybrid"}
PHI_HYBRID = {1: "25", 2: "50", 4: "100"}
SMBIOS_TABLE = "a table of SMBIOS structures (DSP0134)"


@dataclass(frozen=True)
class Structure:
    """One structure: its type, its handle, the bytes after the header, and its strings."""

    kind: int
    handle: int
    body: bytes
    strings: tuple[str, ...]


def structures(table: bytes, source: str) -> Iterator[Structure]:
    """Yield the structures of `table` up to the one of type `END`.

    Raises:
        BadInput: a structure is longer than the table, or shorter than its header.
    """
    at = 0
    while at < len(table):
        if at + 4 > len(table):
            raise bad_input(source, f"byte {at}", "an incomplete header", SMBIOS_TABLE)
        kind, length, handle = struct.unpack_from("<BBH", table, at)
        texts = at + length
        # Two zero bytes end the strings. They are also there if a structure has no strings.
        end = table.find(b"\0\0", texts)
        if length < 4 or texts > len(table) or end < 0:
            problem = f"a structure of type {kind} with a length of {length}"
            raise bad_input(source, f"byte {at}", problem, SMBIOS_TABLE)
        strings = table[texts:end].split(b"\0") if end > texts else []
        decoded = tuple(text.decode("latin-1") for text in strings)
        yield Structure(kind, handle, table[at + 4 : texts], decoded)
        if kind == END:
            return
        at = end + 2


def system_serial(table: bytes, source: str) -> str:
    """Return the serial number of the system information (type 1); empty if there is none.

    Raises:
        BadInput: the table is damaged before the system information.
    """
    for structure in structures(table, source):
        if structure.kind == SYSTEM and len(structure.body) > SERIAL_BYTE:
            number = structure.body[SERIAL_BYTE]
            has_serial = 0 < number <= len(structure.strings)
            return structure.strings[number - 1].strip() if has_serial else ""
    return ""


def knl_mode(table: bytes, source: str) -> dict[str, str]:
    """Return the settings ``cluster`` and ``memory`` of a Xeon Phi; empty if no table has them.

    ``memory`` of a Hybrid mode has the percentage of MCDRAM that is cache: ``Hybrid-25``.

    Raises:
        BadInput: the table is damaged, or has a mode that is not defined.
    """
    by_handle = {structure.handle: structure for structure in structures(table, source)}
    for group in by_handle.values():
        if group.kind != GROUP or not set(group.strings) & set(PHI_GROUPS):
            continue
        # The number of the name, then the type (one byte) and the handle of each member.
        for kind, handle in struct.iter_unpack(
            "<BH", group.body[1 : 1 + (len(group.body) - 1) // 3 * 3]
        ):
            member = by_handle.get(handle)
            if member is None or member.kind != kind or len(member.body) < 8:
                continue
            if int.from_bytes(member.body[:2], "little") == PHI_GENERAL:
                return _modes(member.body, source)
    return {}


def _modes(body: bytes, source: str) -> dict[str, str]:
    # After id and name: supported cluster modes, the one in use, then the same for memory.
    _, cluster, _, memory, cache = body[3:8]
    try:
        hybrid = f"-{PHI_HYBRID[cache]}" if PHI_MEMORY[memory] == "Hybrid" else ""
        return {"cluster": PHI_CLUSTER[cluster], "memory": PHI_MEMORY[memory] + hybrid}
    except KeyError:
        modes = f"cluster {cluster}, memory {memory}, cache {cache}"
        raise bad_input(source, "modes of Xeon Phi", modes, "modes that are defined") from None
