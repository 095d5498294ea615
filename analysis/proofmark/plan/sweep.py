"""The points of a sweep on one machine: all combinations of the values of its axes.

A point has a placement, memory and a layout of its files. Expressions may use the facts of the
scratch file system, and measured rates.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from proofmark.cases.case import Case, SuiteUse
from proofmark.cases.vocabulary import AXES, DISTANCE, DOMAIN, FILE_SYSTEM, MEMORY, PART_AXES, RAIL
from proofmark.common.errors import InputError, bad_input
from proofmark.common.expressions import names_in, render
from proofmark.common.message import Message
from proofmark.plan.file_layout import FileLayout, file_layout
from proofmark.plan.placement import LackingError, PlacementError, PlacementRequest, place
from proofmark.plan.rank_cpus import PlacedRanks
from proofmark.site.file_systems import layout_axes
from proofmark.site.inventory import Site
from proofmark.site.machines import CORE_FLOPS, LIKELY_FLOPS, LIKELY_SHARE
from proofmark.site.node.topology import NumaDomain, Topology
from proofmark.site.partition import Partition


class Layouts:
    """The placements on one topology; points with the same request share one computation."""

    def __init__(self, topology: Topology, rails: Mapping[str, int | None] | None = None) -> None:
        self.topology, self.rails = topology, rails or {}
        self._placements: dict[tuple[object, ...], PlacedRanks] = {}

    @property
    def parts(self) -> list[str]:
        """The NUMA domains with cores, and the sockets if they are other parts.

        It is empty for a node of one domain and one socket.
        """
        domains = [each.os_index for each in self.topology.numa_domains if each.cores]
        sockets = sorted({core.socket for core in self.topology.cores})
        parts = [f"numa-{number}" for number in domains] if len(domains) > 1 else []
        if len(sockets) > 1 and len(sockets) != len(domains):
            parts += [f"socket-{number}" for number in sockets]
        return parts

    def of_part(self, point: Mapping[str, Any]) -> Topology:
        """Return the part of the node that a point uses: a domain, a socket, or that of its rail.

        The whole node is returned if the point has no part, or if the domain of a rail is not known
        or has no cores.
        """
        part = str(point.get(DOMAIN, ""))
        if (near := self.rails.get(str(point.get(RAIL)))) is not None:
            part = f"numa-{near}"
        unused = set[int]().union(
            *(
                core.pus
                for core in self.topology.cores
                if part not in (f"numa-{core.numa}", f"socket-{core.socket}")
            )
        )
        left = self.topology.without(unused) if part else self.topology
        return left if left.cores else self.topology

    def _adapter(self, point: Mapping[str, Any]) -> int | None:
        """Return the domain of the rail of a point, or of the first rail whose domain is known."""
        known = [each for each in self.rails.values() if each is not None]
        of_rail = self.rails.get(str(point.get(RAIL)))
        return of_rail if of_rail is not None else next(iter(known), None)

    def of(self, point: Mapping[str, Any], counts: Mapping[str, int], file: str) -> PlacedRanks:
        """Return the placement of `point`.

        Raises:
            BadInput: there is no such placement, or a count is not possible.
            PlacementError: the nodes cannot hold the ranks.
        """
        part = (point.get(DOMAIN), point.get(RAIL))
        key = (point["placement"], *counts.values(), point.get("pus_per_core", 1), *part, file)
        if key not in self._placements:
            request = PlacementRequest(
                self.of_part(point),
                str(point["placement"]),
                counts["ranks"],
                nodes=counts["nodes"],
                threads=counts["threads"],
                pus_per_core=int(point.get("pus_per_core", 1)),
                adapter=self._adapter(point),
                asked_in=file,
            )
            self._placements[key] = place(request)
        return self._placements[key]

    def memory(self, kind: str, placement: PlacedRanks | None, file: str) -> list[NumaDomain]:
        """Return the NUMA domains with memory of `kind` next to the cores of `placement`.

        All domains of the kind are returned if none of them is next to these cores, or if
        `placement` is None.

        Raises:
            LackingError: the node has no such memory.
        """
        domains = [domain for domain in self.topology.numa_domains if domain.kind == kind]
        if not domains:
            kinds = ", ".join(sorted({domain.kind for domain in self.topology.numa_domains}))
            raise LackingError(InputError(file, f"memory {kind}", "none in the node", kinds))
        if placement is None:
            return domains
        used = set()
        for nodes in placement.ranges:
            for cpus in nodes.cpus:
                used |= {self.topology.core_of[cpu].index for cpu in cpus}
        return [domain for domain in domains if not used.isdisjoint(domain.near)] or domains


SERVER_CACHES = "server_cache_bytes"
"""The name of the memory of all storage servers together in expressions; 0 means unknown."""
UNKNOWN_RATE = 200e6
"""The rate in byte/s at which a node is expected to write: a disk of a small virtual machine."""
UNKNOWN_CLIENT_PEAK, UNKNOWN_PEAK = 5e9, 1e12
"""The rates in byte/s that a node, and all servers together, are assumed not to exceed. Where they
do, a file has its size before the end of the time, and the rate is still that of the file."""
RATE_MARGIN = 1.5
"""The factor by which nodes and servers may write faster than the rate that is stated for them."""


def storage_rates(partition: Partition) -> dict[str, float]:
    """Return the rates of the scratch in byte/s, by their name in expressions.

    ``client_bytes_per_s`` is what one node is expected to write. ``client_peak`` is the most that
    one node writes, ``servers_peak`` the most that all nodes write together.
    """
    client, servers = partition.scratch.client_bytes_per_s, partition.scratch.bytes_per_s
    peak = RATE_MARGIN * client if client else UNKNOWN_CLIENT_PEAK
    return {
        "client_bytes_per_s": client or UNKNOWN_RATE,
        "client_peak": min(partition.fabric.link_bytes_per_s, peak),
        "servers_peak": RATE_MARGIN * servers if servers else UNKNOWN_PEAK,
    }


HPL_RATE = "likely_flops"
"""Name in expressions: HPL of a node in flop/s, before the first measurement."""


def rate_symbols(partition: Partition, machine: Mapping[str, Any]) -> dict[str, Any]:
    """Return the rates by which the times of steps are estimated, by their name in expressions."""
    measured, cores = partition.facts.get(CORE_FLOPS), machine["cores"]
    rated = machine.get(HPL_RATE, LIKELY_FLOPS * cores)
    return {HPL_RATE: LIKELY_SHARE * float(measured) * cores if measured else rated}


def assumed_rates(partition: Partition, cases: Iterable[Case]) -> dict[str, str]:
    """Return the assumptions on rates by which the times of `cases` are estimated."""
    if CORE_FLOPS in partition.facts or not any(HPL_RATE in each.used_names() for each in cases):
        return {}
    node, of_core = partition.node, f"{LIKELY_FLOPS / 1e9:g} GFlop/s"
    if node.topology and node.clock_hz and node.flop_per_cycle:
        of_core = f"{LIKELY_SHARE:g} of the nominal peak"
    return {f"facts.{CORE_FLOPS}": f"not measured; {of_core} of a core"}


def storage_symbols(partition: Partition) -> dict[str, Any]:
    """Return the facts of the scratch by their name in expressions.

    ``layout_axes`` are the axes of a layout that its file system can set, ``storage_targets`` the
    indexes of its targets; both are empty if they are not known.
    """
    scratch = partition.scratch
    return {
        "layout_axes": list(layout_axes(scratch.type)),
        "storage_targets": scratch.targets,
        SERVER_CACHES: scratch.server_cache_bytes or 0,
        **storage_rates(partition),
    }


def assumed_storage(partition: Partition, cases: Iterable[Case]) -> dict[str, str]:
    """Return the assumptions on the scratch on which the expressions of `cases` depend."""
    used = set().union(*(case.used_names() for case in cases))
    return {
        f"scratch.{key}": f"not declared; {text}"
        for (name, key), text in _ASSUMED.items()
        if name in used and getattr(partition.scratch, key) is None
    }


_ASSUMED = {
    (SERVER_CACHES, SERVER_CACHES): "files of twice the memory of the clients, or what they write "
    "within the time of a measurement, are assumed to exceed the caches of the servers",
    ("client_bytes_per_s", "client_bytes_per_s"): "run times are estimated with "
    f"{UNKNOWN_RATE / 1e6:g} MB/s for each node",
    ("servers_peak", "bytes_per_s"): f"the space is what {UNKNOWN_PEAK / 1e12:g} TB/s write within "
    "the time of a measurement",
}
"""What is assumed, by the name in expressions and the key of the scratch."""

BOUND_BYTES = "bound_bytes"
"""Name in expressions: the bytes of memory of a node that the ranks of the point are bound to."""
COUNTS = ("nodes", "ranks", "threads")
_UNPLACED = ("process", "counted")
"""The values of ``launch`` of programs that the kit does not place."""


@dataclass(frozen=True)
class Point:
    """One point of a sweep.

    Attributes:
        values: the values of the axes and of ``let``, by name.
        lets: the names that ``let`` computes, without axes.
        placement: None if the program binds its own processes.
        membind: NUMA domains (os indexes) that its memory must come from; empty: any.
        layout: the layout of its files; None: that of the scratch.
    """

    values: Mapping[str, Any]
    axes: tuple[str, ...]
    lets: tuple[str, ...]
    placement: PlacedRanks | None
    membind: tuple[int, ...]
    layout: FileLayout | None = None

    def count(self, axis: str) -> int:
        """Return the number of nodes, ranks or threads."""
        return int(self.values[axis])


@dataclass
class Sweep:
    """One use of a case in a suite, on one machine.

    Attributes:
        left_out: the number of points that are left out, by reason.
    """

    file: str
    case: Case
    use: SuiteUse
    suite: str
    symbols: Mapping[str, Any]
    layouts: Layouts
    site: Site
    left_out: Counter[Message] = field(default_factory=Counter)

    def points(self) -> Iterator[Point]:
        """Yield the points that the machine can hold and that satisfy ``where``.

        A point is left out if the machine lacks its memory or its distance of nodes, or the file
        system cannot set its layout. If the sweep has several placements, a point is left out if
        the machine lacks its placement.

        Raises:
            BadInput: an axis without a value, or an expression that cannot be computed.
        """
        axes = self._axes()
        # A number of ranks that a use computes is known before the letters of the case.
        counts = {axis: self.use.let[axis] for axis in AXES if axis in self.use.let}
        lets = {**counts, **self.case.let, **self.use.let}
        several = len(axes.get("placement", [])) > 1
        for combination in itertools.product(*axes.values()):
            try:
                point = self._point(dict(zip(axes, combination, strict=True)), lets)
            except PlacementError as error:
                mistake = error.mistakes[0]
                if not (several or isinstance(error, LackingError)):
                    raise
                there_is = {"found": mistake.found, "there_is": mistake.accepted}
                reason = Message("left-lacking", asked=mistake.key, **there_is)
                self.left_out[reason] += 1
                continue
            if point is not None:
                yield point

    def _axes(self) -> dict[str, list[Any]]:
        axes = {"nodes": 1, "ranks": 1, "threads": 1, **self.case.sweep, **self.use.sweep}
        if self.case.launch not in _UNPLACED:
            axes.setdefault("placement", "close")
        values = {}
        for axis, expression in axes.items():
            prefix = f"suites.{self.suite}." if axis in self.use.sweep else ""
            key = f"{prefix}sweep.{axis}"
            value = render(expression, self.symbols, file=self.file, key=key)
            values[axis] = value if isinstance(value, list) else [value]
            if not values[axis]:
                found = f"{expression!r}, which gives no point"
                raise bad_input(self.file, key, found, "at least one point")
        return values

    def _point(self, point: dict[str, Any], lets: Mapping[str, Any]) -> Point | None:
        axes = tuple(point)
        if not point.keys().isdisjoint(PART_AXES):
            point["part_cores"] = len(self.layouts.of_part(point).cores)
        binding: tuple[PlacedRanks | None, tuple[int, ...]] | None = None
        for letter, expression in lets.items():
            key = f"let.{letter}"
            if binding is None and BOUND_BYTES in names_in(expression):
                binding = self._binding(point)
            elif binding is not None and letter in AXES:
                accepted = (
                    f"{letter} before the first expression with {BOUND_BYTES}, which needs it"
                )
                raise bad_input(self.file, key, f"{letter} after {BOUND_BYTES}", accepted)
            point[letter] = self._rendered(expression, point, key)
        placement, membind = binding or self._binding(point)
        for where in (self.case.where, self.use.where):
            if where is not None and not self._holds(where, point, "where"):
                return None
        for condition, accepted in self.case.constraints.items():
            if not self._holds(condition, point, "constraints"):
                found = ", ".join(f"{axis} {point[axis]}" for axis in axes)
                raise bad_input(self.file, "constraints", found, accepted)
        if DISTANCE in point and not self.site.pair_at(level := str(point[DISTANCE])):
            names = ", ".join(self.site.partition.fabric.names)
            found = f"no two hosts of {self.site.limit} have this distance"
            raise LackingError(InputError(self.file, f"{DISTANCE} {level}", found, names))
        if placement is None:
            placement = self._placed(point)
        derived = tuple(letter for letter in lets if letter not in AXES)
        layout = file_layout(point, self.site.partition, self.file)
        return Point(point, axes, derived, placement, membind, layout)

    def _binding(self, point: dict[str, Any]) -> tuple[PlacedRanks | None, tuple[int, ...]]:
        """Return the placement and the NUMA domains of `point`, if it has a kind of memory.

        The sizes that follow from its memory and its file system are added to `point`. On a node
        with one kind of memory nothing is bound: a process may use the memory of all sockets.
        """
        if FILE_SYSTEM in point:
            known = self.site.partition.scratches
            if (name := point[FILE_SYSTEM]) not in known:
                raise bad_input(self.file, FILE_SYSTEM, repr(name), ", ".join(known))
            point["fs_block_bytes"] = known[name].block_bytes or 0
        whole = self.symbols.get("memory_bytes")
        if MEMORY not in point:
            if whole is not None:
                point[BOUND_BYTES] = whole
            return None, ()
        placement = self._placed(point)
        bound = len({each.kind for each in self.layouts.topology.numa_domains}) > 1
        domains = self.layouts.memory(str(point[MEMORY]), placement if bound else None, self.file)
        bound_bytes = sum(domain.bytes for domain in domains)
        requested = self.site.partition.queue.memory_per_node
        point[BOUND_BYTES] = min(bound_bytes, requested or bound_bytes)
        return placement, tuple(domain.os_index for domain in domains) if bound else ()

    def _placed(self, point: dict[str, Any]) -> PlacedRanks | None:
        for axis in COUNTS:
            point[axis] = count(point[axis], self.file, f"sweep.{axis}", least=1)
        if self.case.launch in _UNPLACED:
            return None
        counts = {axis: point[axis] for axis in COUNTS}
        if self.case.launch == "threads" and counts["ranks"] != 1:
            found = f"{counts['ranks']} ranks"
            accepted = "1: the case has threads, not ranks"
            raise bad_input(self.file, "sweep.ranks", found, accepted)
        return self.layouts.of(point, counts, self.file)

    def _rendered(self, expression: Any, point: Mapping[str, Any], key: str) -> Any:
        # The number of nodes of a point overrides that of the partition.
        return render(expression, {**self.symbols, **point}, file=self.file, key=key)

    def _holds(self, condition: str, point: Mapping[str, Any], key: str) -> bool:
        value = self._rendered(condition, point, key)
        if not isinstance(value, bool):
            raise bad_input(self.file, key, repr(condition), "a comparison in braces")
        return value

    def applies(self) -> bool:
        """Return whether the condition ``when`` of the use holds on this machine."""
        return self.use.when is None or self._holds(self.use.when, {}, "when")


def number(value: Any, file: object, key: str, *, least: int) -> float:
    """Return `value` as a number.

    Raises:
        BadInput: it is no number, less than `least`, or infinite.
    """
    try:
        converted = float(value)
    except ValueError:
        converted = math.nan
    if not least <= converted < math.inf:
        raise bad_input(file, key, repr(value), f"a number from {least}")
    return converted


def count(value: Any, file: object, key: str, *, least: int) -> int:
    """Return `value` as a whole number.

    Raises:
        BadInput: it is no whole number, or less than `least`.
    """
    converted = number(value, file, key, least=least)
    if converted != int(converted):
        raise bad_input(file, key, repr(value), f"a whole number from {least}")
    return int(converted)
