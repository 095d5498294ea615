"""The steps whose figures a limit can select, and the mistakes in limits that select none.

A trait is a parameter, the benchmark or the placement. The plan has the values of most parameters.
Only the output has the others: then the type is known, and any value of this type is possible.
From the steps follow the suites that measure each item of a contract, and the metrics of a suite
that a run must have judged.
"""

from __future__ import annotations

import math
from collections import ChainMap
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial, reduce
from typing import NamedTuple

from proofmark.cases.case import MESSAGE, MESSAGE_S, TELEMETRY, Case
from proofmark.cases.reader.reader import ParameterType
from proofmark.cases.reader.values import parameter
from proofmark.cases.reference import Against, Metric, Reference
from proofmark.cases.suite import Benchmarks, Required
from proofmark.cases.vocabulary import MEASURED, SENSOR, Parameters, Scalar
from proofmark.common.errors import BadInput, InputError, nearest
from proofmark.common.expressions import render
from proofmark.common.grouping import flat, gathered
from proofmark.common.text import measure
from proofmark.plan.plan import Plan
from proofmark.plan.step import COUNTED, Step
from proofmark.site.ceilings import Ceilings, of_nodes
from proofmark.site.contract_document import CheckItem, Contract, ContractItem, DerivedItem, Item
from proofmark.site.hardware import UNRECORDED

_TYPES: Mapping[ParameterType, str] = {
    "int": "a whole number",
    "real": "a number",
    "word": "a word",
    "lower": "a word in lower case",
    "size": "a whole number of bytes",
    "suffixed": "a whole number of bytes",
}
_MOST_LISTED = 12
LINK = "link_bandwidth"


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
            word = isinstance(wanted, str) and wanted != "" and wanted.isprintable()
            return word and (self.kind == "word" or wanted == str(wanted).lower())
        if isinstance(wanted, (str, bool)) or not 0 <= wanted < math.inf:
            return False
        return self.kind == "real" or wanted == int(wanted)

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
    metrics = {*reader.units, *TELEMETRY}
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
    if reader.prints_benchmark:
        return Trait(frozenset({reader.benchmark} if reader.benchmark else ()), "word")
    return Trait(frozenset({reader.benchmark or name}))


Condition = Callable[[StepFigures], bool]


@dataclass(frozen=True)
class Selection:
    """The steps of a plan whose figures a limit can select.

    Attributes:
        steps: the steps, in the order of the plan. Empty if the limit is not for this suite.
        comparable: those of `steps` whose reference the plan also measures, on the same nodes and
            in the same mode. They are `steps` for a limit without ``against``.
    """

    steps: tuple[str, ...]
    comparable: tuple[str, ...]


PlannedFigures = Mapping[str, Sequence[StepFigures]]
"""The figures that the steps of one suite can give, by case."""


@dataclass(frozen=True)
class Suites:
    """The figures of some cases in all suites that a partition can run.

    Attributes:
        figures: those of each suite.
        refused: the suites that the partition cannot run.
    """

    figures: Mapping[str, PlannedFigures]
    refused: Collection[str] = ()

    def of(self, case: str) -> list[StepFigures]:
        """Return the figures of a case in each suite."""
        return flat(each.get(case, ()) for each in self.figures.values())


def figures_of_plan(
    plan: Plan, benchmarks: Benchmarks, cases: Collection[str] | None = None
) -> PlannedFigures:
    """Return the figures that the steps of `plan` can give, or those of `cases`.

    If a step is counted, the others are only its load.
    """
    steps = []
    for group in plan.groups:
        steps += [(group.mode, step) for step in group.steps()]
    counted = [each for each in steps if each[1].launch == COUNTED]
    chosen = [each for each in counted or steps if cases is None or each[1].case in cases]
    return figures_of_steps(chosen, plan.system, benchmarks)


def figures_of_steps(
    steps: Iterable[tuple[str, Step]], system: str, benchmarks: Benchmarks
) -> PlannedFigures:
    """Return the figures that `steps`, each with its mode, can give on `system`."""
    return gathered(
        (step.case, figures_of(step, benchmarks.cases[step.case], system, mode))
        for mode, step in steps
    )


def selection(reference: Reference, case: str, figures: PlannedFigures) -> Selection:
    """Return the steps of a plan whose `figures` `reference` can select."""
    chosen = [each for each in figures.get(case, ()) if selects(reference, each)]
    against = reference.against
    others = figures.get(against.case or case, ()) if against else ()
    comparable = [each for each in chosen if against is None or has_partner(against, each, others)]
    return Selection(
        tuple(each.step.id for each in chosen), tuple(each.step.id for each in comparable)
    )


def possible_steps(
    reference: Reference, case: str, plan: Plan, figures: PlannedFigures
) -> frozenset[str]:
    """Return the steps of `plan` that can have figures for `reference` of `case`.

    The figures of an output that nobody planned are not known before it is read: a contract limit
    can have figures in each such step of its case.
    """
    if reference.kind == "contract":
        of_case = [step for step in plan.steps_to_run() if step.case == case]
        if not any(step.ranks for step in of_case):
            return frozenset(step.id for step in of_case)
    return frozenset(selection(reference, case, figures).steps)


def selecting_suites(reference: Reference, case: str, suites: Suites) -> list[str]:
    """Return the suites with a figure that `reference` can select."""
    return [
        suite
        for suite, figures in suites.figures.items()
        if any(selects(reference, each) for each in figures.get(case, ()))
    ]


def selection_mistakes(
    file: str, key: str, reference: Reference, case: str, suites: Suites, benchmarks: Benchmarks
) -> Iterator[InputError]:
    """Yield the mistakes in a reference that selects no figure of any suite.

    Its names must be known, see `proofmark.cases.loading.reference_mistakes`.
    """
    figures = suites.of(case)
    check = _Check(file, key, suites.refused)
    if not figures:
        yield check.no_step(case, benchmarks, suites)
        return
    if not any(selects(reference, each) for each in figures):
        yield from check.unselected(reference, figures)
        return
    if (against := reference.against) is None:
        return
    name = against.case or case
    check = _Check(file, f"{key}.against", suites.refused)
    others = suites.of(name)
    if not others:
        yield check.no_step(name, benchmarks, suites)
        return
    mistakes = [*check.metric(against.metric, others), *check.where(against.where, others)]
    yield from mistakes
    selected = (selection(reference, case, each) for each in suites.figures.values())
    if not mistakes and not any(each.comparable for each in selected):
        found = f"{name} {against.metric}, which no suite measures with a figure of the limit"
        yield check.mistake("", found, "a figure of the same suite, mode and nodes")


class Agreed(NamedTuple):
    """The value of a limit with its unit, the bound of its figures in it, and the better side.

    The bound is NaN if it is not known.
    """

    value: float | None
    unit: str
    bound: float
    lower: bool


UNKNOWN = Agreed(None, "", math.nan, lower=False)


@dataclass(frozen=True)
class Reach:
    """What the figures of limits can be on the hardware of a site.

    Attributes:
        node: what a node cannot exceed.
        rate: what the rule ``link_bandwidth`` gives, byte/s; None if the site does not state it.
    """

    suites: Suites
    benchmarks: Benchmarks
    node: Ceilings
    rate: float | None

    def of_item(self, item: ContractItem) -> Agreed:
        """Return the value and the bound of a limit; a figure without a bound is left out."""
        if (metric := self.benchmarks.cases[item.case].metrics.get(item.metric)) is None:
            return UNKNOWN
        figures = (each for each in self.suites.of(item.case) if selects(item, each))
        bounds = [_bound(metric, each.step, self.node) for each in figures]
        lower, unit = metric.better == "lower", item.unit or metric.unit
        size, value = measure(unit)[1], item.value
        if item.rule == LINK and self.rate:
            value = self.rate / size
        known = [bound / size for bound in bounds if math.isfinite(bound)]
        return Agreed(value, unit, (max if lower else min)(known, default=math.nan), lower)

    def of_derived(self, item: DerivedItem, parts: Sequence[ContractItem]) -> Agreed:
        """Return the value of a derived item, and the bound that follows from those of `parts`."""
        agreed = [each for each in map(self.of_item, parts) if each.bound > 0]
        of_time = item.derived == "throughput"
        sides = {each.lower for each in agreed}
        alike = {measure(each.unit)[0] for each in agreed} == {item.of_unit}
        if len(agreed) < len(parts) or len(sides) > 1 or (of_time and False in sides) or not alike:
            return UNKNOWN
        bound = item.of_values([each.bound * measure(each.unit)[1] for each in agreed])
        return Agreed(item.value, item.unit, bound, not of_time and True in sides)


def unreachable(
    file: str, key: str, item: ContractItem | DerivedItem, agreed: Agreed
) -> Iterator[InputError]:
    """Yield the mistake of a limit that a figure of this hardware cannot meet."""
    value, unit, bound, lower = agreed
    side, share = ("at_most", item.at_most) if lower else ("at_least", item.at_least)
    if value is None or share is None:
        return
    limit = value * share
    if limit < bound if lower else limit > bound:
        found = f"{value:g} × {share:g} = {limit:.6g} {unit}"
        above = "at least" if lower else "at most"
        accepted = f"{above} {bound:.6g} {unit}, the bound of {item.metric} here"
        yield InputError(file, f"{key}.{side}", found, accepted)


def _bound(metric: Metric, step: Step, node: Ceilings) -> float:
    """Return the bound of `metric` in `step` in base units; infinite if it cannot be computed."""
    count = step.nodes_each
    together = vars(of_nodes([node] * count))
    ceilings = {name: ceiling.value for name, ceiling in together.items()}
    values = {**step.parameters, **step.derived, **step.counts, **ceilings, "nodes": count}
    values[MESSAGE] = MESSAGE_S[count > 1]
    try:
        value = render(metric.bound, {"placement": step.placement, **values}, file="", key="")
    except BadInput:
        return math.inf
    return float(value) if isinstance(value, (int, float)) else math.inf


def cases_of(reference: Reference, case: str) -> set[str]:
    """Return the cases of the figures and of the reference results of `reference` of `case`."""
    return {case, reference.against.case or case} if reference.against else {case}


def _has(name: str, value: Scalar, figures: StepFigures) -> bool:
    return name in figures.traits and figures.traits[name].allows(value)


def _conditions(reference: Reference) -> dict[str, Condition]:
    """Return each condition of `reference` for its figures, by the key of the file."""
    conditions: dict[str, Condition] = {
        "metric": lambda figures: reference.metric in figures.metrics,
        **{f"where.{key}": partial(_has, key, value) for key, value in reference.where.items()},
    }
    conditions[_COMPARED] = lambda figures: reference.accepts(
        figures.step.recorded, figures.judged_with.get(reference.metric, {})
    )
    if reference.system is not None:
        conditions["system"] = lambda figures: reference.system == figures.system
    if reference.mode is not None:
        conditions["mode"] = lambda figures: figures.mode in (reference.mode, UNRECORDED)
    return conditions


def selects(reference: Reference, figures: StepFigures) -> bool:
    """Return whether `reference` can judge one of `figures`, as far as the plan shows it."""
    return all(holds(figures) for holds in _conditions(reference).values())


def has_partner(against: Against, figures: StepFigures, others: Iterable[StepFigures]) -> bool:
    """Return whether one of `others` can be the reference of a figure of `figures`.

    A trait that only one of the two has is not compared.
    """
    return any(_comparable(against, figures, other) for other in others)


def _comparable(against: Against, figures: StepFigures, other: StepFigures) -> bool:
    if against.metric not in other.metrics or figures.mode != other.mode:
        return False
    if figures.step is not other.step and not figures.nodes & other.nodes:
        return False
    traits, where = other.traits, against.where
    if not all(_has(name, value, other) for name, value in where.items() if name in traits):
        return False
    if figures.step.case != other.step.case:
        return True
    common = (figures.traits.keys() & traits.keys()) - where.keys()
    return all(figures.traits[name].meets(traits[name]) for name in common)


@dataclass(frozen=True)
class _Check:
    """Makes the mistakes of one reference, or of the reference result that it names.

    Attributes:
        refused: the suites that the partition cannot run.
    """

    file: str
    key: str
    refused: Collection[str]

    def mistake(self, key: str, found: str, accepted: str) -> InputError:
        """Return a mistake at `key` below the place of the reference."""
        if self.refused:
            accepted += f" (not run here: {', '.join(self.refused)})"
        return InputError(self.file, f"{self.key}.{key}" if key else self.key, found, accepted)

    def no_step(self, case: str, benchmarks: Benchmarks, suites: Suites) -> InputError:
        """Return the mistake of a case without a step in any suite of the partition."""
        suites_of_case = [each for each in benchmarks.cases[case].suites if each != case]
        joined = ", ".join(suites_of_case) or "no suite"
        found = f"{case!r} of {joined}, which no suite runs on this partition"
        runs = ", ".join(sorted(suites.figures)) or "none"
        return self.mistake("case", found, f"a case of a suite that runs: {runs}")

    def unselected(self, reference: Reference, figures: Sequence[StepFigures]) -> list[InputError]:
        """Return the mistakes of a reference that selects none of `figures`."""
        mistakes = [*self.metric(reference.metric, figures), *self.where(reference.where, figures)]
        for key in ("system", "mode"):
            value, known = getattr(reference, key), {getattr(each, key) for each in figures}
            if value is not None and value not in known:
                found = f"{value!r}{nearest(value, known)}"
                mistakes.append(self.mistake(key, found, ", ".join(sorted(known))))
        return mistakes or [self._combination(reference, figures)]

    def metric(self, metric: str, figures: Iterable[StepFigures]) -> Iterator[InputError]:
        """Yield a mistake if none of `figures` has `metric`."""
        known = set[str]().union(*(each.metrics for each in figures))
        if metric not in known:
            found = f"{metric!r}, which no step of the case gives{nearest(metric, known)}"
            yield self.mistake("metric", found, ", ".join(sorted(known)))

    def where(self, where: Parameters, figures: Sequence[StepFigures]) -> Iterator[InputError]:
        """Yield a mistake for each parameter and each value that none of `figures` has."""
        for name, value in where.items():
            traits = [each.traits[name] for each in figures if name in each.traits]
            if not traits:
                known = set[str]().union(*(each.traits for each in figures))
                found = f"{name!r}, which no figure has{nearest(name, known)}"
                yield self.mistake(f"where.{name}", found, ", ".join(sorted(known)))
            elif not any(trait.allows(value) for trait in traits):
                every = reduce(Trait.joined, traits)
                texts = (each for each in every.values if isinstance(each, str))
                found = f"{value!r}{nearest(value, texts) if isinstance(value, str) else ''}"
                yield self.mistake(f"where.{name}", found, every.accepted())

    def _combination(self, reference: Reference, figures: Sequence[StepFigures]) -> InputError:
        """Return the mistake of a reference whose conditions no figure meets together."""
        conditions = _conditions(reference)
        missed = [
            tuple(key for key, holds in conditions.items() if not holds(each)) for each in figures
        ]
        fewest = min(map(len, missed))
        nearest_ones = dict.fromkeys(
            ", ".join(_trait_text(each, key, reference.metric) for key in keys)
            for each, keys in zip(figures, missed, strict=True)
            if len(keys) == fewest
        )
        offered = "; or ".join([*nearest_ones][:_MOST_NEAREST])
        if all(keys == (_COMPARED,) for keys in missed):
            every = ChainMap(*(dict(of.judged_with.get(reference.metric, {})) for of in figures))
            wanted = " and ".join(f"{name} {value!r}" for name, value in every.items())
            found = f"{reference.metric}, which is judged only with {wanted or 'one node'}"
            accepted = f"{wanted or 'where'}; the suites of this site plan {offered}"
            return self.mistake("metric", found, accepted)
        names = [key.removeprefix("where.") for key in conditions if key != _COMPARED]
        found = f"{', '.join(names)} together, which no figure has"
        return self.mistake("where" if reference.where else "metric", found, offered)


_COMPARED = "compared"
"""The condition of `Reference.accepts`, which is no key of the file."""
_MOST_NEAREST = 3
"""The largest number of figures that a mistake offers instead."""


def _trait_text(figures: StepFigures, key: str, metric: str) -> str:
    """Return what `figures` have at the key of a condition for `metric`, in words."""
    if key == _COMPARED:
        named = {MEASURED, *figures.judged_with.get(metric, {})} & figures.step.recorded.keys()
        return ", ".join(f"{name} {figures.traits[name].accepted()}" for name in sorted(named))
    name = key.removeprefix("where.")
    if key == "metric":
        return f"{name} {', '.join(sorted(figures.metrics))}"
    if key in ("system", "mode"):
        return f"{name} {getattr(figures, key)}"
    trait = figures.traits.get(name)
    return f"{name} {trait.accepted()}" if trait else f"no {name}"


@dataclass(frozen=True)
class PlannedItem:
    """An item of a contract on one partition.

    Attributes:
        repeats: the number of planned repeats of its figures, by suite.
    """

    partition: str
    item: Item
    repeats: Mapping[str, int]

    @property
    def too_few(self) -> bool:
        """Whether no suite plans the repeats that the item needs."""
        return max(self.repeats.values(), default=0) < self.item.runs_needed


def planned_items(
    contract: Contract, plans: Sequence[Plan], benchmarks: Benchmarks
) -> Iterator[PlannedItem]:
    """Yield each item of `contract` for each partition of `plans` that it is for."""
    for partition in dict.fromkeys(plan.partition for plan in plans):
        of_partition = [
            (plan, figures_of_plan(plan, benchmarks))
            for plan in plans
            if plan.partition == partition
        ]
        for item in contract.items:
            if item.system in (None, partition):
                repeats = {
                    plan.suite: planned
                    for plan, figures in of_partition
                    if (planned := _repeats(item, plan, figures))
                }
                yield PlannedItem(partition, item, repeats)


def _repeats(item: Item, plan: Plan, figures: PlannedFigures) -> int:
    if not isinstance(item, ContractItem):
        return int(isinstance(item, CheckItem))  # each run has the reports of its nodes
    chosen = set(selection(item, item.case, figures).comparable)
    return max((step.repeat for step in plan.steps() if step.id in chosen), default=0)


def required_metrics(
    plan: Plan, benchmarks: Benchmarks, items: Iterable[ContractItem]
) -> Sequence[Required]:
    """Return the metrics that must be judged besides the items of the contract.

    They are those of the suite. There are none if `plan` measures a mandatory one of `items`; a
    suite that only looks for faults has its own all the same.

    Args:
        items: of the contract, for the partition.
    """
    suite = benchmarks.suites.get(plan.suite)
    if suite is None:
        return ()
    mandatory = [each for each in items if each.severity == "mandatory"]
    if mandatory and suite.kind != "sanity":
        figures = figures_of_plan(plan, benchmarks)
        if any(possible_steps(each, each.case, plan, figures) for each in mandatory):
            return ()
    return suite.required_metrics
