"""The functional items of a contract: what nodes report about themselves, compared.

The item ``states`` compares what their scheduler said about them while the run ran.
A node whose probe does not report what an item compares is UNJUDGED.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import isclose
from typing import Any

from proofmark.common.host_names import short_name
from proofmark.common.message import NOTHING, Message
from proofmark.common.nodesets import folded
from proofmark.judge.limit_outcomes import ItemOutcome, nodes_met, on_nodes
from proofmark.judge.references.judgement import Bounds, FigureScope, JudgedFigure, Judgement
from proofmark.judge.stated_parts import configuration
from proofmark.runs.job_folder import Look
from proofmark.site.contract_document import CheckItem, CheckName
from proofmark.site.file_systems import network_kinds
from proofmark.site.installed_parts import parts_of
from proofmark.site.node.facts import HostFacts, NodeFacts
from proofmark.site.node.parts import MountedFileSystem, is_below


class Size(float):
    """A size in GiB. Sizes of one file system differ while it is used: ZFS counts what is free."""

    TOLERANCE = 0.02

    def is_like(self, other: object) -> bool:
        """Return whether `other` is the size of the same file system."""
        return isinstance(other, Size) and isclose(self, other, rel_tol=self.TOLERANCE)


Reading = str | float
Readings = Mapping[str, Reading | None]
"""The values that a check compares, by their names; None for one that a node does not report."""
GIB = 2**30


def _traits(*names: str) -> Callable[[NodeFacts], Readings]:
    """Return the function with these names of `configuration`."""

    def readings(facts: NodeFacts) -> Readings:
        known = configuration(facts)
        return {name: known.get(name) for name in names}

    return readings


def _settings(facts: NodeFacts) -> Readings:
    # The command line of the kernel names the disk of a node: it differs on purpose.
    names = ("governor", "turbo", "SMT", "transparent huge pages")
    known = configuration(facts)
    return {**{name: known[name] for name in names if name in known}, **facts.settings}


def _number(name: str, of: Callable[[NodeFacts], float | None]) -> Callable[[NodeFacts], Readings]:
    def readings(facts: NodeFacts) -> Readings:
        value = of(facts)
        return {name: None if value is None else float(abs(value))}

    return readings


def _ecc(facts: NodeFacts) -> Readings:
    """Return whether the memory modules store check bits: `on`, `off`, or on a part of them."""
    bits = [dimm.check_bits for dimm in facts.dimms]
    if not bits or None in bits:
        return {"ECC": None}
    with_ecc = sum(bool(each) for each in bits)
    part = f"on {with_ecc} of {len(bits)} modules"
    return {"ECC": "on" if with_ecc == len(bits) else part if with_ecc else "off"}


NOT_MOUNTED, NOT_LOADED, NO_VERSION = "not mounted", "not loaded", "without a version"
IN_SERVICE = "in service"
"""What ``states`` has of a node that was never down when the controller asked the scheduler."""


MEANT = {"ro", "sync", "flock", "localflock", "nolock"} | {
    *("local_lock=all", "local_lock=flock", "local_lock=posix")
}
"""Options of a mount with which programs write and lock in another way; nfs(5), mount.lustre(8)."""


def _mounts(facts: NodeFacts) -> Readings:
    """Return the file systems of the network with `MEANT` options, and their sizes.

    What differs on purpose is left out: local ones, those that an automounter mounts on demand, and
    the name of the node in a source.
    """
    shared = {
        mount.target: mount
        for mount in facts.mounts
        if mount.kind in network_kinds()
        and not any(is_below(mount.target, each) for each in facts.automounts)
    }
    texts = []
    for at, mount in sorted(shared.items()):
        source = f"{mount.source}/".replace(f"/{short_name(facts.hostname)}/", "/NODE/")[:-1]
        meant = (each for each in mount.options.split(",") if each in MEANT)
        texts.append(" ".join((at, mount.kind, source, *meant)))
    none = "none" if facts.mounts else None
    sizes = {at: _size(mount) for at, mount in shared.items()}
    return {"mounts": ", ".join(texts) or none, **sizes}


def _size(mount: MountedFileSystem) -> Size | None:
    return None if mount.bytes is None else Size(mount.bytes / GIB)


def _one_mount(facts: NodeFacts, target: str) -> Reading | None:
    """Return the size of one file system, also of a local one."""
    found = [mount for mount in facts.mounts if mount.target == target]
    return _size(found[-1]) if found else NOT_MOUNTED if facts.mounts else None


def _ports(facts: NodeFacts) -> float | None:
    active = parts_of(facts).ports
    return None if active is None or "ports" in facts.absent else len(active)


def _drivers(facts: NodeFacts) -> Readings:
    drivers = sorted({nic.driver for nic in facts.nics if nic.driver})
    loaded = {name: _one_driver(facts, name) for name in (*drivers, *facts.modules)}
    names = {"NIC driver": ", ".join(drivers) or None, "modules": ", ".join(facts.modules) or None}
    return {**names, "OFED": (facts.drivers or {}).get("OFED"), **loaded}


def _one_driver(facts: NodeFacts, name: str) -> Reading | None:
    """Return the version of one driver; None if the probe did not look for versions."""
    if facts.drivers is None or "drivers" in facts.absent:
        return None
    loaded = {*facts.modules, *(nic.driver for nic in facts.nics)}
    return facts.drivers.get(name) or (NO_VERSION if name in loaded else NOT_LOADED)


CHECKS: Mapping[CheckName, Callable[[NodeFacts], Readings]] = {
    "processor": _traits("processor"),
    "sockets": _number("sockets", lambda facts: facts.sockets),
    "cores": _number("cores", lambda facts: facts.cores_online),
    "memory": _number("memory, GiB", lambda facts: facts.memory_total_bytes / GIB),
    "modules": _number("memory modules", lambda facts: parts_of(facts).dimms),
    "module-speed": _traits("DIMM speed"),
    "ecc": _ecc,
    "bios": _traits("BIOS"),
    "firmware": _traits(
        *("BIOS", "BIOS date", "board", "microcode", "adapter firmware", "NIC firmware")
    ),
    "microcode": _traits("microcode"),
    "kernel": _traits("kernel"),
    "os": _traits("operating system"),
    "drivers": _drivers,
    "settings": _settings,
    "links": _traits("fabric rate", "PCIe link"),
    "ports": _number("active ports", _ports),
    "clock": _number("clock offset, s", lambda facts: facts.clock_offset_s),
    "mounts": _mounts,
    "accelerators": _number("accelerators", lambda facts: parts_of(facts).accelerators),
}
"""What each check compares. A trait is a word of `configuration`."""
ONE: Mapping[CheckName, Callable[[NodeFacts, str], Reading | None]] = {
    "mounts": _one_mount,
    "drivers": _one_driver,
}
"""How one value of a check is found whose name another node need not have."""
OPTIONAL = ("firmware", "links", "settings", "drivers", "mounts")
"""Checks of several values: a part that no node has is not compared."""


@dataclass(frozen=True)
class CheckOutcome(ItemOutcome):
    """What the nodes report for a functional item."""

    item: CheckItem
    figures: tuple[JudgedFigure, ...]

    @property
    def nodes(self) -> tuple[int, int]:
        """The number of nodes that meet it, and of all nodes."""
        return nodes_met((each.node, each.outcome) for each in self.figures)

    @property
    def words(self) -> Collection[str]:
        """The outcomes of its figures."""
        return {each.outcome for each in self.figures}

    @property
    def not_evaluated(self) -> tuple[Message, ...]:
        """Why nodes are not judged, each reason with its nodes."""
        left = (each for each in self.figures if each.outcome == "UNJUDGED")
        return on_nodes((each.reason, each.node) for each in left)

    @property
    def missed(self) -> Mapping[str, Message]:
        """The reason of each node that misses the item."""
        return {each.node: each.reason for each in self.figures if each.outcome == "FAIL"}

    @property
    def faults(self) -> Mapping[str, Message]:
        """The reason of each node that misses a binding item."""
        return {} if self.item.check == "nodes" else self._missed

    @property
    def of_all(self) -> Mapping[str, Message]:
        """The reason for which all nodes together miss a binding item, by their node set."""
        return self._missed if self.item.check == "nodes" else {}

    @property
    def _missed(self) -> Mapping[str, Message]:
        if not self.binding or self.outcome != "FAIL":
            return {}
        number = self.item.number
        missed = self.missed.items()
        return {node: Message("check-missed", number=number, text=why) for node, why in missed}

    def as_json(self) -> dict[str, Any]:
        """Return the form of ``verdict.json``."""
        met, total = self.nodes
        return {
            **self.item.model_dump(mode="json"),
            "outcome": self.outcome,
            "nodes_met": met,
            "nodes_of": total,
            "missed": dict(self.missed),
            "not_evaluated": list(self.not_evaluated),
        }


def check_outcomes(
    items: Sequence[CheckItem],
    nodes: Sequence[str],
    facts: HostFacts,
    looks: Sequence[Look] = (),
    left_out: int = 0,
) -> tuple[CheckOutcome, ...]:
    """Return what the nodes of a run report for each functional item.

    Args:
        looks: what the scheduler said about the nodes, each time that the controller asked.
        left_out: the number of nodes of the partition that were not to be measured.
    """
    return tuple(
        CheckOutcome(
            item,
            (_number_of_nodes(item, nodes, facts, left_out),)
            if item.check == "nodes"
            else tuple(_of_nodes(item, nodes, _readings(item, nodes, facts, looks))),
        )
        for item in items
    )


def _number_of_nodes(
    item: CheckItem, nodes: Sequence[str], facts: HostFacts, left_out: int
) -> JudgedFigure:
    known = [node for node in nodes if node in facts]
    scope, count = FigureScope(frozenset(known), together=True), float(len(known))
    why = _wrong(item, "nodes", count, None)
    outcome, bounds = "FAIL" if why else "PASS", Bounds(item.at_least, item.at_most)
    if bool(_wrong(item, "nodes", count + left_out, None)) != bool(why):
        outcome, why = "UNJUDGED", Message("check-nodes-left", found=f"{count:g}", number=left_out)
    judgement = Judgement("contract", item.number, outcome, why, 1.0, count, *bounds)
    return JudgedFigure(
        folded(known), (), outcome, why, scope=scope, value=count, unit="nodes", judgement=judgement
    )


def _readings(
    item: CheckItem, nodes: Sequence[str], facts: HostFacts, looks: Sequence[Look]
) -> dict[str, Readings]:
    """Return what each node shows of an item; a node without a report has no entry."""
    if item.check == "states":
        return {node: {"state of the scheduler": _state(node, looks)} for node in nodes}

    def readings(of_node: NodeFacts) -> Readings:
        name, every, one = item.only, CHECKS[item.check], ONE.get(item.check)
        if name is None:
            return every(of_node)
        return {name: one(of_node, name) if one else every(of_node).get(name)}

    return {node: readings(facts[node]) for node in nodes if node in facts}


def _state(node: str, looks: Sequence[Look]) -> Reading | None:
    """Return what a scheduler said of a node: why it was first down, if it ever was."""
    known = [look for look in looks if node not in look.unknown]
    down = (look.down[node] for look in known if node in look.down)
    return next(down, IN_SERVICE if known else None)


def _of_nodes(
    item: CheckItem, nodes: Sequence[str], readings: Mapping[str, Readings]
) -> Iterator[JudgedFigure]:
    optional = item.check in OPTIONAL and item.only is None
    names: dict[str, None] = {}
    for of_node in readings.values():
        names |= dict.fromkeys(
            name for name, value in of_node.items() if value is not None or not optional
        )
    usual = {name: _most(readings.values(), name) for name in names}
    for node in nodes:
        scope = FigureScope(frozenset((node,)), together=False, every_node=True)
        if node not in readings:
            yield JudgedFigure(node, (), "UNJUDGED", Message("check-no-report"), scope=scope)
            continue
        of_node = readings[node]
        unknown = [name for name in names if of_node.get(name) is None]
        wrong = [
            why
            for name in names
            if (value := of_node.get(name)) is not None
            and (why := _wrong(item, name, value, usual[name]))
        ]
        values = (each for each in of_node.values() if isinstance(each, float))
        value = next(values, None) if item.is_number else None
        known = {name: _shown(one) for name, one in of_node.items() if one is not None}
        listed = (f"{name} {one}" for name, one in known.items())
        found = "; ".join(listed if optional else known.values())
        shown = partial(JudgedFigure, node, (), scope=scope, value=value, found=found)
        if wrong:
            yield shown("FAIL", wrong[0])
        elif unknown or not names:
            missing = ", ".join(unknown) or item.check
            why = Message("check-unknown", name=missing)
            yield shown("UNJUDGED", why)
        else:
            yield shown("PASS", NOTHING)


def _most(readings: Iterator[Readings] | Any, name: str) -> Reading | None:
    values = [each[name] for each in readings if each.get(name) is not None]
    sizes = sorted(each for each in values if isinstance(each, Size))
    middle = sizes[len(sizes) // 2] if 2 * len(sizes) > len(values) else None
    if middle is not None:
        return middle if 2 * sum(map(middle.is_like, sizes)) > len(values) else None
    counted = Counter(values).most_common(1)
    return counted[0][0] if counted and 2 * counted[0][1] > len(values) else None


def _wrong(item: CheckItem, name: str, value: Reading, usual: Reading | None) -> Message:
    """Return why a value misses an item; `NOTHING` if it meets it."""
    found = {"name": name, "found": _shown(value)}
    if item.equal and not _same(value, usual):
        if usual is None:
            return Message("check-no-most", **found)
        return Message("check-unlike", most=_shown(usual), **found)
    wanted = Size(item.value) if isinstance(value, Size) and item.value is not None else item.value
    if wanted is not None and not _same(value, wanted):
        return Message("check-other", wanted=_shown(wanted), **found)
    bounds = Bounds(item.at_least, item.at_most)
    if isinstance(value, str):
        # A mount that a node does not have has no size.
        bound = next((each for each in bounds if each is not None), None)
        return NOTHING if bound is None else Message("check-no-size", bound=_shown(bound), **found)
    if not bounds.missed_by(value):
        return NOTHING
    if item.at_least is not None and value < item.at_least:
        return Message("check-low", least=_shown(item.at_least), **found)
    return Message("check-high", most=_shown(item.at_most or 0), **found)


def _same(value: Reading, other: Reading | None) -> bool:
    return value.is_like(other) if isinstance(value, Size) else value == other


def _shown(value: Reading) -> str:
    return value if isinstance(value, str) else f"{value:.6g}{' GiB' * isinstance(value, Size)}"
