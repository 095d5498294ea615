"""The points of a sweep on one machine: all combinations of the values of its axes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from proofmark.cases.case import Case
from proofmark.cases.suite_use import SuiteUse
from proofmark.cases.vocabulary import AXES, DISTANCE, FILE_SYSTEM, MEMORY, PART_AXES
from proofmark.common.errors import InputError, bad_input
from proofmark.common.expressions import names_in, render
from proofmark.common.message import Message
from proofmark.plan.file_layout import FileLayout, file_layout
from proofmark.plan.layout import Layouts
from proofmark.plan.placement import LackingError, Placement, PlacementError
from proofmark.site.inventory import Site

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
    placement: Placement | None
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
    left_out: dict[Message, int] = field(default_factory=dict)

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
                self.left_out[reason] = self.left_out.get(reason, 0) + 1
                continue
            if point is not None:
                yield point

    def _axes(self) -> dict[str, list[Any]]:
        axes = {"nodes": 1, "ranks": 1, "threads": 1, **self.case.sweep, **self.use.sweep}
        if self.case.launch not in _UNPLACED:
            axes.setdefault("placement", "close")
        values: dict[str, list[Any]] = {}
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
        binding: tuple[Placement | None, tuple[int, ...]] | None = None
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

    def _binding(self, point: dict[str, Any]) -> tuple[Placement | None, tuple[int, ...]]:
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
        bound = self.layouts.several_kinds_of_memory
        domains = self.layouts.memory(str(point[MEMORY]), placement if bound else None, self.file)
        bound_bytes = sum(domain.bytes for domain in domains)
        requested = self.site.partition.queue.memory_per_node
        point[BOUND_BYTES] = min(bound_bytes, requested or bound_bytes)
        return placement, tuple(domain.os_index for domain in domains) if bound else ()

    def _placed(self, point: dict[str, Any]) -> Placement | None:
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
