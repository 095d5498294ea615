"""A reader of SMBIOS tables, as far as they tell the modes of a Xeon Phi.

Structures: DMTF DSP0134, section 6.1 (header, formatted area, strings). Xeon Phi of both
generations name structures of the maker's own in a group (type 14); the general one holds one bit
for the cluster mode, one for the memory mode, and for Hybrid the share of MCDRAM that is cache.
Nothing but these tables tells All2All, Hemisphere and Quadrant apart: NUMA shows one domain in all.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from proofmark.common.errors import bad_input

GROUP, END = 14, 127
GROUPS = ("Group: Knights Landing Information", "Group: Knights Mill Information")
GENERAL = 1  # the member's id
CLUSTER = {1: "Quadrant", 2: "Hemisphere", 4: "SNC-4", 8: "SNC-2", 16: "All2All"}
MEMORY = {1: "Cache", 2: "Flat", 4: "Hybrid"}
HYBRID = {1: "25", 2: "50", 4: "100"}
ACCEPTED = "a table of SMBIOS structures (DSP0134)"


@dataclass(frozen=True)
class Structure:
    """One structure: its type, its handle, what follows the header, and its strings."""

    kind: int
    handle: int
    body: bytes
    strings: tuple[str, ...]


def structures(table: bytes, source: str) -> Iterator[Structure]:
    """Yield the structures of `table`, up to the one that ends it.

    Raises:
        BadInput: a structure is longer than the table, or shorter than its header.
    """
    at = 0
    while at < len(table):
        if at + 4 > len(table):
            raise bad_input(source, f"byte {at}", "half a header", ACCEPTED)
        kind, length, handle = struct.unpack_from("<BBH", table, at)
        texts = at + length
        # Two zero bytes end the strings; there are at least these two.
        end = table.find(b"\0\0", texts)
        if length < 4 or texts > len(table) or end < 0:
            found = f"a structure of type {kind} with a length of {length}"
            raise bad_input(source, f"byte {at}", found, ACCEPTED)
        strings = table[texts:end].split(b"\0") if end > texts else []
        decoded = tuple(text.decode("latin-1") for text in strings)
        yield Structure(kind, handle, table[at + 4 : texts], decoded)
        if kind == END:
            return
        at = end + 2


def knl_mode(table: bytes, source: str) -> dict[str, str]:
    """Return the settings ``cluster`` and ``memory`` of a Xeon Phi; empty where no table has them.

    Hybrid carries its share of cache: ``Hybrid-25``.

    Raises:
        BadInput: the table is damaged, or holds a mode that nobody has defined.
    """
    found = {each.handle: each for each in structures(table, source)}
    for group in found.values():
        if group.kind != GROUP or not set(group.strings) & set(GROUPS):
            continue
        # Of each member its type (one byte) and its handle; before them the name's number.
        for kind, handle in struct.iter_unpack("<BH", group.body[1 : 1 + _whole(group.body)]):
            member = found.get(handle)
            if member is not None and member.kind == kind and _is_general(member):
                return _modes(member.body, source)
    return {}


def _whole(body: bytes) -> int:
    return (len(body) - 1) // 3 * 3


def _is_general(member: Structure) -> bool:
    return len(member.body) >= 8 and int.from_bytes(member.body[:2], "little") == GENERAL


def _modes(body: bytes, source: str) -> dict[str, str]:
    # After the member's id and name: supported cluster modes, that in use, the same of memory.
    _, cluster, _, memory, cache = body[3:8]
    try:
        hybrid = f"-{HYBRID[cache]}" if MEMORY[memory] == "Hybrid" else ""
        return {"cluster": CLUSTER[cluster], "memory": MEMORY[memory] + hybrid}
    except KeyError:
        told = f"cluster {cluster}, memory {memory}, cache {cache}"
        raise bad_input(source, "Xeon Phi's modes", told, "modes that are defined") from None
