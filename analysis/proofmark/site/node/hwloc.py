"""A parser of the XML of hwloc 2, and the lstopo command that writes it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import product
from xml.etree import ElementTree

from proofmark.common.command import run_command
from proofmark.common.errors import bad_input

WRITTEN_BY = "the XML of hwloc 2, as 'lstopo --of xml' writes it"
LSTOPO = ("lstopo-no-graphics", "--no-io", "--of", "xml")
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
    """

    items: tuple[Item, ...]
    allowed_cpus: int
    allowed_nodes: int
    latencies: dict[tuple[int, int], int]

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
        raise bad_input(command, "", "no such program", "hwloc 2, package hwloc") from None
    if done.returncode:
        problem = done.stderr.strip() or f"exit code {done.returncode}"
        raise bad_input(command, synthetic or "this machine", problem, "a topology of hwloc 2")
    return done.stdout


def parse(text: str, file: str) -> Document:
    """Return the content of hwloc's XML; `file` is its name in messages.

    Raises:
        BadInput: it is not XML, not of hwloc, of hwloc 1, or a number in it cannot be read.
    """
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise bad_input(file, f"line {error.position[0]}", str(error), WRITTEN_BY) from None
    machine = root.find("object")
    if root.tag != "topology" or machine is None:
        raise bad_input(file, "", f"XML whose root is {root.tag!r}", WRITTEN_BY)
    if "version" not in root.attrib:
        accepted = f"{WRITTEN_BY}; 'lstopo -i old.xml new.xml' of hwloc 2 converts it"
        raise bad_input(file, "", "the XML of hwloc 1", accepted)
    items: list[Item] = []
    try:
        _walk(machine, (), Counter(), items)
        return Document(
            items=tuple(items),
            allowed_cpus=_bits(machine.get("allowed_cpuset", machine.attrib["cpuset"])),
            allowed_nodes=_bits(machine.get("allowed_nodeset", machine.attrib["nodeset"])),
            latencies=_latencies(root),
        )
    except (KeyError, ValueError) as error:
        raise bad_input(file, "", f"a number that cannot be read: {error}", WRITTEN_BY) from None


def _walk(
    element: ElementTree.Element,
    above: tuple[Item, ...],
    seen: Counter[tuple[str, int]],
    items: list[Item],
) -> None:
    type_ = element.attrib["type"]
    level = (type_, len(above) if type_ == "Group" else 0)
    item = Item(
        type=type_,
        index=seen[level],
        os_index=int(element.get("os_index", -1)),
        cpus=_bits(element.get("cpuset", "0x0")),
        size=int(element.get("cache_size") or element.get("local_memory") or 0),
        subtype=element.get("subtype", ""),
        above=above,
    )
    seen[level] += 1
    items.append(item)
    for child in element.findall("object"):
        _walk(child, (item, *above), seen, items)


def _bits(mask: str) -> int:
    """Return a mask of 32-bit words, highest first: ``0x00000001,0x80000000`` is 2^32 + 2^31."""
    number = 0
    for word in mask.split(","):
        number = number << 32 | int(word or "0", 16)
    return number


def _latencies(root: ElementTree.Element) -> dict[tuple[int, int], int]:
    """Return the NUMA latencies. A later matrix replaces an earlier one: a site's is added last."""
    latencies: dict[tuple[int, int], int] = {}
    for matrix in root.findall("distances2"):
        if matrix.get("type") != "NUMANode" or not int(matrix.attrib["kind"]) & MEANS_LATENCY:
            continue
        nodes, values = (
            [int(word) for part in matrix.findall(tag) for word in (part.text or "").split()]
            for tag in ("indexes", "u64values")
        )
        latencies |= dict(zip(product(nodes, nodes), values, strict=True))
    return latencies
