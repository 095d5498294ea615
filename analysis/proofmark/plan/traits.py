"""The traits that the figures of a step can have, as far as they are known before its run.

A trait is a parameter, the benchmark or the placement. The plan has the values of most parameters.
Only the output has the others: then the type is known, and any value of this type is possible.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property

from proofmark.cases.case import Case
from proofmark.cases.reader.spec import ParameterType
from proofmark.cases.reader.values import parameter
from proofmark.cases.telemetry import TELEMETRY
from proofmark.cases.vocabulary import SENSOR, Parameters, Scalar
from proofmark.plan.step import Step

_TYPES: Mapping[ParameterType, str] = {
    "int": "a whole number",
    "real": "a number",
    "word": "a word",
    "lower": "a word in lower case",
    "size": "a whole number of bytes",
    "suffixed": "a whole number of bytes",
}
_MOST_LISTED = 12


@dataclass(frozen=True)
class Trait:
    """The possible values of a trait: `values`, and with `kind` every value of this type."""

    values: frozenset[Scalar] = frozenset()
    kind: ParameterType | None = None

    def allows(self, wanted: Scalar) -> bool:
        """Return whether a figure can have the value `wanted`; a text is not a number."""
        if wanted in self.values:
            return True
        if self.kind is None:
            return False
        if self.kind in ("word", "lower"):
            return _is_word(wanted, lower=self.kind == "lower")
        return _is_number(wanted, whole=self.kind != "real")

    def meets(self, other: Trait) -> bool:
        """Return whether two figures with these traits can have the same value."""
        if self.kind is not None and other.kind is not None:
            return (self.kind in ("word", "lower")) == (other.kind in ("word", "lower"))
        return any(map(other.allows, self.values)) or any(map(self.allows, other.values))

    def joined(self, other: Trait) -> Trait:
        """Return the trait of a figure that has one of these traits."""
        return Trait(self.values | other.values, self.kind or other.kind)

    def accepted(self) -> str:
        """Return the possible values in words."""
        ordered = sorted(self.values, key=lambda value: (isinstance(value, str), value))
        listed = [repr(value) for value in ordered[:_MOST_LISTED]]
        more = len(ordered) - len(listed)
        words = [", ".join(listed) + (f" and {more} more" if more else "")] if listed else []
        return " or ".join([*words, *([_TYPES[self.kind]] if self.kind else [])])

    def hint(self, wanted: Scalar) -> str:
        """Return ``", did you mean x?"`` with the value nearest to `wanted`, or an empty text."""
        near = self._nearest(wanted)
        if near is None:
            return ""
        of = "" if isinstance(near, str) == isinstance(wanted, str) else f", {_type_of(near)}"
        return f", did you mean {near!r}{of}?"

    def _nearest(self, wanted: Scalar) -> Scalar | None:
        by_text = {str(value): value for value in sorted(self.values, key=str)}
        if str(wanted) in by_text:
            return by_text[str(wanted)]
        if self.kind is not None:
            try:
                converted = parameter(self.kind, str(wanted))
            except ValueError:
                converted = wanted
            if converted != wanted:
                return converted
        numbers = [value for value in self.values if not isinstance(value, str)]
        if not isinstance(wanted, str) and numbers:
            return min(numbers, key=lambda value: (abs(value - wanted), value))
        close = get_close_matches(str(wanted), by_text, n=1, cutoff=0.5)
        return by_text[close[0]] if close else None


def _type_of(value: Scalar) -> str:
    return "a text" if isinstance(value, str) else "a number"


def _is_word(value: Scalar, *, lower: bool) -> bool:
    if not isinstance(value, str) or not value or not value.isprintable():
        return False
    return value == value.lower() if lower else True


def _is_number(value: Scalar, *, whole: bool) -> bool:
    if isinstance(value, (str, bool)) or not 0 <= value < math.inf:
        return False
    return value == int(value) if whole else True


@dataclass(frozen=True, eq=False)
class StepFigures:
    """The figures that one step can give.

    Attributes:
        metrics: the metrics that the reader of the case can read.
        traits: the traits of a figure, by name. A figure has no other trait.
        judged_with: that of each metric of the case.
    """

    step: Step
    system: str
    mode: str
    metrics: frozenset[str]
    traits: Mapping[str, Trait]
    judged_with: Mapping[str, Parameters] = field(default_factory=dict)

    @cached_property
    def nodes(self) -> frozenset[tuple[str, ...]]:
        """The sets of nodes that measure a figure together, each sorted."""
        return frozenset(tuple(sorted(each)) for each in self.step.instances().values())


def figures_of(step: Step, case: Case, system: str, mode: str) -> StepFigures:
    """Return the figures that `step` of `case` can give on `system` in `mode`."""
    reader = case.reader()
    metrics = {*reader.metrics, *TELEMETRY}
    if case.concurrent and step.copies > 1:
        metrics |= {f"{metric}_spread" for metric in metrics} & {*case.metrics}
    traits = {name: Trait(frozenset({value})) for name, value in step.recorded.items()}
    planned = step.planned
    for name, kind in reader.parameters.items():
        # An output with another value than planned is INVALID: no limit judges it.
        printed = Trait(_as_printed(planned[name], kind)) if name in planned else Trait(kind=kind)
        traits[name] = traits.get(name, Trait()).joined(printed)
    traits[SENSOR] = Trait(kind="word")
    traits["benchmark"] = _benchmark(case, step.case)
    traits["placement"] = Trait(frozenset({step.placement}))
    judged_with = {name: metric.judged_with for name, metric in case.metrics.items()}
    return StepFigures(step, system, mode, frozenset(metrics), traits, judged_with)


def _as_printed(planned: Scalar, kind: ParameterType) -> frozenset[Scalar]:
    """Return the value that the reader makes of a planned value; nothing if it is not possible."""
    try:
        printed = parameter(kind, str(planned))
    except ValueError:
        return frozenset()
    same = printed == planned if not isinstance(planned, str) else str(printed) == planned
    return frozenset({printed}) if same else frozenset()


def _benchmark(case: Case, name: str) -> Trait:
    """Return the benchmark of a figure of the case `name`."""
    reader = case.reader()
    if reader.text and any("benchmark" in names for _, names in reader.text.groups()):
        return Trait(frozenset({reader.benchmark} if reader.benchmark else ()), "word")
    return Trait(frozenset({reader.benchmark or name}))
