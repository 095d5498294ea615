"""A parser of the XML of hwloc 2, and the lstopo command that writes it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import product
from xml.etree import ElementTree

from proofmark.common.errors import bad_input
from proofmark.common.grouping import flat
from proofmark.common.input_limits import MAX_DEPTH
from proofmark.common.processes import run_command
from proofmark.site.node.probe_text import Unread

WRITTEN_BY = "the XML of hwloc 2, as 'lstopo --of xml' writes it"
LSTOPO = ("lstopo-no-graphics", "--no-io", "--of", "xml")
NEEDED = ("Machine", "NUMANode", "Core", "PU")
"""The types of objects without whose numbers no rank can be placed."""
MEANS_LATENCY = 4  # a bit in the kind of a distance matrix (hwloc/distances.h)


@dataclass(frozen=True, slots=True, eq=False)
class Item:
    """One object of the topology.

    Attributes:
        type: hwloc's name: Package, NUMANode, L2Cache, Core, PU, …
        index: logical index among the objects of its type (of a Group: of its depth).
        os_index: the operating system's number, or -1.
        cpus: the hardware threads in it, as a mask: bit n is os index n.
        size: bytes of a cache or a memory, else 0.
        subtype: for example DRAM or MCDRAM of a NUMANode; may be empty.
        above: the objects that contain it, the nearest first.
    """

    type: str
    index: int
    os_index: int
    cpus: int
    size: int
    subtype: str
    above: tuple[Item, ...]

    def over(self, type_: str) -> Item | None:
        """Return the nearest object of this type that contains it, or None."""
        return next((item for item in self.above if item.type == type_), None)


@dataclass(frozen=True, slots=True)
class Document:
    """The content of one XML file.

    Attributes:
        items: all objects in document order, which is hwloc's logical order within a type.
        allowed_cpus: the hardware threads that may be used, as a mask.
        allowed_nodes: the NUMA nodes that may be used, as a mask.
        latencies: relative latency between two NUMA nodes, by their os indexes.
        unread: the texts of optional numbers that cannot be read, by the name of the number.
    """

    items: tuple[Item, ...]
    allowed_cpus: int
    allowed_nodes: int
    latencies: dict[tuple[int, int], int]
    unread: dict[str, str]

    def of(self, *types: str) -> list[Item]:
        """Return the objects of these types."""
        return [item for item in self.items if item.type in types]


def lstopo(synthetic: str | None = None) -> str:
    """Return the XML of this machine, or of a machine in hwloc's synthetic notation.

    Raises:
        BadInput: lstopo is not installed, or it refuses the notation.
    """
    input_options = (
        () if synthetic is None else ("--input-format", "synthetic", "--input", synthetic)
    )
    command = " ".join(LSTOPO)
    try:
        done = run_command([*LSTOPO, *input_options])
    except FileNotFoundError:
        raise bad_input(command, "", f"no program {LSTOPO[0]}", "hwloc 2, package hwloc") from None
    if done.returncode:
        problem = done.stderr.strip() or f"exit code {done.returncode}"
        raise bad_input(command, synthetic or "this machine", problem, "a topology of hwloc 2")
    return done.stdout


def parse(text: str, file: str) -> Document:
    """Return the content of hwloc's XML; `file` is its name in messages.

    Raises:
        BadInput: it is not XML, not of hwloc, of hwloc 1, or a number of a hardware thread, core
            or NUMA node in it cannot be read.
    """
    try:
        root = ElementTree.fromstring(text)
        _check_depth(root)
    except ElementTree.ParseError as error:
        raise bad_input(file, f"line {error.position[0]}", str(error), WRITTEN_BY) from None
    except ValueError as error:
        raise bad_input(file, "", f"{error}", WRITTEN_BY) from None
    machine = root.find("object")
    if root.tag != "topology" or machine is None:
        raise bad_input(file, "", f"XML whose root is {root.tag!r}", WRITTEN_BY)
    if "version" not in root.attrib:
        accepted = f"{WRITTEN_BY}; 'lstopo -i old.xml new.xml' of hwloc 2 converts it"
        raise bad_input(file, "", "the XML of hwloc 1", accepted)
    items: list[Item] = []
    unread = Unread()
    try:
        _walk(machine, (), Counter(), (items, unread))
        return Document(
            items=tuple(items),
            allowed_cpus=_bits(machine.get("allowed_cpuset", machine.attrib["cpuset"])),
            allowed_nodes=_bits(machine.get("allowed_nodeset", machine.attrib["nodeset"])),
            latencies=_latencies(root, unread),
            unread=unread.values,
        )
    except (KeyError, ValueError) as error:
        raise bad_input(file, "", f"a number that cannot be read: {error}", WRITTEN_BY) from None


def _check_depth(root: ElementTree.Element) -> None:
    """Refuse XML of too many levels. Python's own functions call themselves for each level.

    Raises:
        ValueError: it has more than `MAX_DEPTH`.
    """
    level = [root]
    for _ in range(MAX_DEPTH):
        level = [child for element in level for child in element]
    if level:
        raise ValueError(f"nested more than {MAX_DEPTH} levels deep")


def _walk(
    element: ElementTree.Element,
    above: tuple[Item, ...],
    seen: Counter[tuple[str, int]],
    found: tuple[list[Item], Unread],
) -> None:
    """Append `element` and the objects in it to the list in `found`."""
    items, unread = found
    type_ = element.attrib["type"]
    level = (type_, len(above) if type_ == "Group" else 0)
    name = f"topology.{type_} {seen[level]}"
    size = element.get("cache_size") or element.get("local_memory")
    index, cpus = element.get("os_index"), element.get("cpuset")
    if type_ in NEEDED:
        os_index, mask = int(index or -1), _bits(cpus or "0x0")
    else:
        os_index = unread.read(f"{name} os_index", index, int) or -1
        mask = unread.read(f"{name} cpuset", cpus, _bits) or 0
    item = Item(
        type=type_,
        index=seen[level],
        os_index=os_index,
        cpus=mask,
        size=unread.read(f"{name} size", size, _natural) or 0,
        subtype=element.get("subtype", ""),
        above=above,
    )
    seen[level] += 1
    items.append(item)
    for child in element.findall("object"):
        _walk(child, (item, *above), seen, found)


def _natural(text: str) -> int:
    number = int(text)
    if number < 0:
        raise ValueError(f"a negative size: {text!r}")
    return number


def _bits(mask: str) -> int:
    """Return a mask of 32-bit words, highest first: ``0x00000001,0x80000000`` is 2^32 + 2^31."""
    number = 0
    for word in mask.split(","):
        number = number << 32 | int(word or "0", 16)
    return number


def _latencies(root: ElementTree.Element, unread: Unread) -> dict[tuple[int, int], int]:
    """Return the NUMA latencies. A later matrix replaces an earlier one: a site's is added last.

    A matrix counts only if it has a kind, and a number for each pair of nodes.
    """
    latencies: dict[tuple[int, int], int] = {}

    def read(text: str) -> None:
        if int(matrix.attrib["kind"]) & MEANS_LATENCY:
            nodes, values = _numbers(matrix, "indexes"), _numbers(matrix, "u64values")
            latencies.update(dict(zip(product(nodes, nodes), values, strict=True)))

    for matrix in root.findall("distances2[@type='NUMANode']"):
        unread.read("topology.distances2", "".join(matrix.itertext()), read)
    return latencies


def _numbers(matrix: ElementTree.Element, tag: str) -> list[int]:
    """Return the numbers in all elements `tag` of `matrix`."""
    return flat(map(int, (part.text or "").split()) for part in matrix.findall(tag))
