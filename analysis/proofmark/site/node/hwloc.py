"""The XML of hwloc 2 as plain objects, and the lstopo command that writes it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import product
from xml.etree import ElementTree

from proofmark.common.command import run_command
from proofmark.common.errors import bad_input

WRITTEN_BY = "the XML of hwloc 2, as 'lstopo --of xml' writes it"
LSTOPO = ("lstopo-no-graphics", "--no-io", "--of", "xml")
MEANS_LATENCY = 4  # a bit of a distance matrix's kind (hwloc/distances.h)


@dataclass(frozen=True, slots=True, eq=False)
class Item:
    """One object of the topology.

    Attributes:
        type: hwloc's name: Package, NUMANode, L2Cache, Core, PU, …
        index: logical index among those of its type (of a Group: among those of its depth).
        os_index: the operating system's number, or -1.
        cpus: the hardware threads in it, bit n standing for os index n.
        size: bytes of a cache or a memory, else 0.
        subtype: what it is more closely (a NUMANode may be DRAM, MCDRAM, …), or empty.
        above: what it is in, the nearest first.
    """

    type: str
    index: int
    os_index: int
    cpus: int
    size: int
    subtype: str
    above: tuple[Item, ...]

    def over(self, type_: str) -> Item | None:
        """The nearest object of this type that it is in, if any."""
        return next((item for item in self.above if item.type == type_), None)


@dataclass(frozen=True, slots=True)
class Document:
    """What one XML file says.

    Attributes:
        items: every object in document order, which is hwloc's logical order within a type.
        allowed_cpus: hardware threads that may be used, as bits.
        allowed_nodes: NUMA nodes that may be used, as bits.
        latencies: relative latency between two NUMA nodes, by their os indexes.
    """

    items: tuple[Item, ...]
    allowed_cpus: int
    allowed_nodes: int
    latencies: dict[tuple[int, int], int]

    def of(self, *types: str) -> list[Item]:
        """The objects of these types."""
        return [item for item in self.items if item.type in types]


def lstopo(synthetic: str | None = None) -> str:
    """Let lstopo describe this machine, or one made up by hwloc's synthetic notation, as XML.

    Raises:
        BadInput: lstopo is missing or refuses the description.
    """
    made_up = () if synthetic is None else ("--input-format", "synthetic", "--input", synthetic)
    command = " ".join(LSTOPO)
    try:
        done = run_command([*LSTOPO, *made_up])
    except FileNotFoundError:
        raise bad_input(command, "", "no such program", "hwloc 2, package hwloc") from None
    if done.returncode:
        complaint = done.stderr.strip() or f"exit code {done.returncode}"
        raise bad_input(command, synthetic or "this machine", complaint, "a topology of hwloc 2")
    return done.stdout


def parse(text: str, file: str) -> Document:
    """Read the XML of hwloc 2; `file` is its name in messages.

    Raises:
        BadInput: it is not XML, not hwloc's, of hwloc 1, or has a broken number in it.
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
        raise bad_input(file, "", f"a topology with a bad number: {error}", WRITTEN_BY) from None


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
    """Read a mask of 32-bit words, the highest first: ``0x00000001,0x80000000`` is 2^32 + 2^31."""
    number = 0
    for word in mask.split(","):
        number = number << 32 | int(word or "0", 16)
    return number


def _latencies(root: ElementTree.Element) -> dict[tuple[int, int], int]:
    """Read the NUMA latencies; of several matrices the last stands: a site's own is added last."""
    found: dict[tuple[int, int], int] = {}
    for matrix in root.findall("distances2"):
        if matrix.get("type") != "NUMANode" or not int(matrix.attrib["kind"]) & MEANS_LATENCY:
            continue
        nodes, values = (
            [int(word) for part in matrix.findall(tag) for word in (part.text or "").split()]
            for tag in ("indexes", "u64values")
        )
        found |= dict(zip(product(nodes, nodes), values, strict=True))
    return found
