"""The points of a sweep on one machine: axes times axes, with what follows from each."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from proofmark.cases.models import AXES, DISTANCE, FILE_SYSTEM, MEMORY, Case, SuiteUse
from proofmark.common.errors import InputError, bad_input
from proofmark.common.expressions import names_in, render
from proofmark.plan.layout import Layouts
from proofmark.plan.placement import Placement, PlacementError
from proofmark.site.inventory import Site

BOUND_BYTES = "bound_bytes"
"""Name in expressions: the memory of a node that the ranks of the point are bound to."""
COUNTS = ("nodes", "ranks", "threads")


@dataclass(frozen=True)
class Point:
    """One point.

    Attributes:
        values: of the axes, then of the case's ``let``.
        axes: the names of the swept axes.
        lets: the names of what ``let`` computed, without the axes among them.
        placement: None for a program that places its own processes.
        membind: NUMA nodes (os indexes) that its memory comes from; empty: any.
    """

    values: Mapping[str, Any]
    axes: tuple[str, ...]
    lets: tuple[str, ...]
    placement: Placement | None
    membind: tuple[int, ...]

    def count(self, axis: str) -> int:
        """Return its number of nodes, ranks or threads."""
        return int(self.values[axis])


@dataclass
class Sweep:
    """One use of a case in a suite, on one machine.

    Attributes:
        left_out: why points are not there, and how many; what is left out is never silent.
    """

    file: str
    case: Case
    use: SuiteUse
    suite: str
    symbols: Mapping[str, Any]
    layouts: Layouts
    site: Site
    left_out: dict[str, int] = field(default_factory=dict)

    def points(self) -> Iterator[Point]:
        """Yield the points that the machine can hold and that ``where`` wants.

        A point that needs memory, switch levels or, where the sweep has several placements, a
        placement that the machine lacks is left out.

        Raises:
            BadInput: an axis without a value, or an expression that cannot be computed.
        """
        axes = self._axes()
        lets = {**self.case.let, **self.use.let}
        several = len(axes.get("placement", [])) > 1
        for combination in itertools.product(*axes.values()):
            try:
                point = self._point(dict(zip(axes, combination, strict=True)), lets)
            except PlacementError as refused:
                if not (several or refused.mistakes[0].key.startswith((MEMORY, DISTANCE))):
                    raise
                wrong = refused.mistakes[0]
                why = f"{wrong.key}: {wrong.found}; there is: {wrong.accepted}"
                self.left_out[why] = self.left_out.get(why, 0) + 1
                continue
            if point is not None:
                yield point

    def _axes(self) -> dict[str, list[Any]]:
        axes = {"nodes": 1, "ranks": 1, "threads": 1, **self.case.sweep, **self.use.sweep}
        if self.case.launch != "process":
            axes.setdefault("placement", "close")
        values: dict[str, list[Any]] = {}
        for axis, given in axes.items():
            here = f"suites.{self.suite}." if axis in self.use.sweep else ""
            key = f"{here}sweep.{axis}"
            value = render(given, self.symbols, file=self.file, key=key)
            values[axis] = value if isinstance(value, list) else [value]
            if not values[axis]:
                found = f"{given!r}, which gives no point"
                raise bad_input(self.file, key, found, "at least one point")
        return values

    def _point(self, point: dict[str, Any], lets: Mapping[str, Any]) -> Point | None:
        axes = tuple(point)
        laid: tuple[Placement | None, tuple[int, ...]] | None = None
        for letter, expression in lets.items():
            key = f"let.{letter}"
            if laid is None and BOUND_BYTES in names_in(expression):
                laid = self._laid(point)
            elif laid is not None and letter in AXES:
                accepted = f"before the first that uses {BOUND_BYTES}, which follows from it"
                raise bad_input(self.file, key, f"{letter} so late", accepted)
            point[letter] = self._rendered(expression, point, key)
        placement, membind = laid or self._laid(point)
        for where in (self.case.where, self.use.where):
            if where is not None and not self._asked(where, point, "where"):
                return None
        for question, accepted in self.case.constraints.items():
            if not self._asked(question, point, "constraints"):
                found = ", ".join(f"{axis} {point[axis]}" for axis in axes)
                raise bad_input(self.file, "constraints", found, accepted)
        if DISTANCE in point and not self.site.pair_at(level := str(point[DISTANCE])):
            names = ", ".join(self.site.partition.fabric.names)
            found = f"no two hosts of {self.site.limit} have this distance"
            raise PlacementError(InputError(self.file, f"{DISTANCE} {level}", found, names))
        if placement is None:
            placement = self._placed(point)
        own = tuple(letter for letter in lets if letter not in AXES)
        return Point(point, axes, own, placement, membind)

    def _laid(self, point: dict[str, Any]) -> tuple[Placement | None, tuple[int, ...]]:
        """Resolve kind of memory and file system."""
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
        domains = self.layouts.memory(str(point[MEMORY]), placement, self.file)
        point[BOUND_BYTES] = sum(domain.bytes for domain in domains)
        return placement, tuple(domain.os_index for domain in domains)

    def _placed(self, point: dict[str, Any]) -> Placement | None:
        for axis in COUNTS:
            point[axis] = count(point[axis], self.file, f"sweep.{axis}", least=1)
        if self.case.launch == "process":
            return None
        counts = {axis: point[axis] for axis in COUNTS}
        if self.case.launch == "threads" and counts["ranks"] != 1:
            found = f"{counts['ranks']} ranks"
            accepted = "1: the case has threads, not ranks"
            raise bad_input(self.file, "sweep.ranks", found, accepted)
        return self.layouts.of(point, counts, self.file)

    def _rendered(self, expression: Any, point: Mapping[str, Any], key: str) -> Any:
        # A point's own number of nodes hides the partition's total.
        return render(expression, {**self.symbols, **point}, file=self.file, key=key)

    def _asked(self, question: str, point: Mapping[str, Any], key: str) -> bool:
        answer = self._rendered(question, point, key)
        if not isinstance(answer, bool):
            raise bad_input(self.file, key, repr(question), "a comparison in braces")
        return answer

    def wanted(self) -> bool:
        """Return whether the machine is one for this use (``when``)."""
        return self.use.when is None or self._asked(self.use.when, {}, "when")


def number(value: Any, file: object, key: str, *, least: int) -> float:
    """Return `value` as a number from `least`, or raise `BadInput`."""
    try:
        found = float(value)
    except ValueError:
        found = math.nan
    if not least <= found < math.inf:
        raise bad_input(file, key, repr(value), f"a number from {least}")
    return found


def count(value: Any, file: object, key: str, *, least: int) -> int:
    """Return `value` as a whole number from `least`, or raise `BadInput`."""
    found = number(value, file, key, least=least)
    if found != int(found):
        raise bad_input(file, key, repr(value), f"a whole number from {least}")
    return int(found)
