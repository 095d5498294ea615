"""A parser of SMBIOS tables for serial numbers and the modes of a Xeon Phi.

Structures: DMTF DSP0134, section 6.1 (header, formatted area, strings). Xeon Phi of both
generations list vendor-specific structures in a group (type 14). The general one has one bit for
the cluster mode, one for the memory mode, and for Hybrid the share of MCDRAM that is cache. Only
these tables distinguish All2All, Hemisphere and Quadrant: NUMA shows one domain in all three.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from proofmark.common.errors import bad_input

SYSTEM, GROUP, END = 1, 14, 127
SERIAL_BYTE = 3
"""The byte of the system information, after the header, with the number of the serial string."""
GROUPS = ("Group: Knights Landing Information", "Group: Knights Mill Information")
GENERAL = 1  # the id of the group member
CLUSTER = {1: "Quadrant", 2: "Hemisphere", 4: "SNC-4", 8: "SNC-2", 16: "All2All"}
MEMORY = {1: "Cache", 2: "Flat", 4: "Hybrid"}
HYBRID = {1: "25", 2: "50", 4: "100"}
ACCEPTED = "a table of SMBIOS structures (DSP0134)"


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
            raise bad_input(source, f"byte {at}", "an incomplete header", ACCEPTED)
        kind, length, handle = struct.unpack_from("<BBH", table, at)
        texts = at + length
        # Two zero bytes end the strings. They are also there if a structure has no strings.
        end = table.find(b"\0\0", texts)
        if length < 4 or texts > len(table) or end < 0:
            problem = f"a structure of type {kind} with a length of {length}"
            raise bad_input(source, f"byte {at}", problem, ACCEPTED)
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
        if group.kind != GROUP or not set(group.strings) & set(GROUPS):
            continue
        # The number of the name, then the type (one byte) and the handle of each member.
        for kind, handle in struct.iter_unpack(
            "<BH", group.body[1 : 1 + _member_bytes(group.body)]
        ):
            member = by_handle.get(handle)
            if member is not None and member.kind == kind and _is_general(member):
                return _modes(member.body, source)
    return {}


def _member_bytes(body: bytes) -> int:
    return (len(body) - 1) // 3 * 3


def _is_general(member: Structure) -> bool:
    return len(member.body) >= 8 and int.from_bytes(member.body[:2], "little") == GENERAL


def _modes(body: bytes, source: str) -> dict[str, str]:
    # After id and name: supported cluster modes, the one in use, then the same for memory.
    _, cluster, _, memory, cache = body[3:8]
    try:
        hybrid = f"-{HYBRID[cache]}" if MEMORY[memory] == "Hybrid" else ""
        return {"cluster": CLUSTER[cluster], "memory": MEMORY[memory] + hybrid}
    except KeyError:
        modes = f"cluster {cluster}, memory {memory}, cache {cache}"
        raise bad_input(source, "modes of Xeon Phi", modes, "modes that are defined") from None
