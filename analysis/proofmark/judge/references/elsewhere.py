"""Figures that another site accepted, as expected values of the figures of this site."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import sqrt
from typing import Literal, NamedTuple, Self

from pydantic import model_validator

from proofmark.cases.reference import ELSEWHERE, Metric, Reference
from proofmark.cases.suite import Benchmarks
from proofmark.cases.vocabulary import ParameterValues
from proofmark.common.message import Message
from proofmark.common.text import factor, percent
from proofmark.judge.confidence import quantile_of_t
from proofmark.judge.references.derived import NOTHING_STATED, Nominal, as_ordered
from proofmark.judge.references.typical import X86, other_programs
from proofmark.records.columns import Record
from proofmark.site.accepted_baseline import (
    AcceptedFigure,
    AcceptedPrograms,
    BaselineElsewhere,
    NodeModel,
    Programs,
)
from proofmark.site.hardware import UNRECORDED
from proofmark.site.hardware_limits import product_name
from proofmark.site.installed_parts import parts_of
from proofmark.site.node.facts import NodeFacts

DOUBT = 0.05
"""The probability that a healthy node of the other site is not within the tolerance."""
LARGEST_TOLERANCE = 0.15
"""A figure may be worse by the least change that matters, and by no more than 15 %."""
OF_PROGRAMS = (
    *("condition-version", "condition-mpi", "condition-transport", "condition-stores-unknown"),
    "condition-network",
)
"""Conditions that only the programs of a run and its network can show."""


class KnownFigure(NamedTuple):
    """A figure of another site with what it was measured on and with."""

    figure: AcceptedFigure
    model: NodeModel
    programs: Programs


class ElsewhereReference(Reference):
    """What another site accepted for a metric of a case.

    Attributes:
        figures: those of the metric, with other settings, nodes or programs each.
        stores: whether the metric depends on whether stores pass the caches.
    """

    # No case states this kind, so that it is none of those of `Reference`.
    kind: Literal["baseline elsewhere"] = ELSEWHERE  # type: ignore[assignment]
    figures: tuple[KnownFigure, ...]
    stores: bool = False

    @model_validator(mode="after")
    def _complete(self) -> Self:
        return self


@dataclass(frozen=True)
class Measured:
    """What a figure was measured on and with.

    Attributes:
        programs: of its case; None if they are not known yet.
        network: the technology between the nodes, as the site states it; else empty.
    """

    facts: Sequence[NodeFacts]
    stated: Sequence[Nominal] = ()
    programs: AcceptedPrograms | None = None
    network: str = ""


class ElsewhereValue(NamedTuple):
    """The value of another site in the unit of a figure.

    Attributes:
        unheld: the conditions that do not hold, or are not known to hold.
    """

    value: float
    source: str
    unheld: tuple[Message, ...]


@dataclass(frozen=True)
class Settings:
    """The settings of a figure.

    Attributes:
        nodes: how many nodes measured it together.
    """

    benchmark: str
    unit: str
    nodes: int
    mode: str
    placement: str
    found: ParameterValues = field(default_factory=dict)

    @classmethod
    def of(cls, record: Record, nodes: int) -> Settings:
        """Return those of a record of `nodes` nodes."""
        about = (record.benchmark, record.unit, nodes, record.mode, record.placement)
        return cls(*about, record.parameters)

    def other(self, figure: AcceptedFigure) -> list[str]:
        """Return the names of the settings in which a figure of another site differs."""
        mode = figure.mode if self.mode == UNRECORDED else self.mode
        names = figure.other_settings(mode, self.placement, self.found)
        names += ["nodes"] if figure.nodes != self.nodes and "nodes" not in names else []
        names += ["benchmark"] if figure.benchmark != self.benchmark else []
        return names + (["unit"] if factor(figure.unit, self.unit) is None else [])


def elsewhere_references(
    files: Iterable[BaselineElsewhere], benchmarks: Benchmarks
) -> Iterator[tuple[str, ElsewhereReference]]:
    """Yield a reference for each metric of each file, with its case.

    A metric that no case of the kit has is left out (`unknown_figures`).
    """
    for content in files:
        by_metric: dict[tuple[str, str], list[KnownFigure]] = {}
        for each in content.figures:
            known = KnownFigure(each, content.models[each.model], content.programs[each.programs])
            by_metric.setdefault((each.case, each.metric), []).append(known)
        for (name, metric), figures in by_metric.items():
            case = benchmarks.cases.get(name)
            about = case.metrics.get(metric) if case else None
            if case is None or about is None:
                continue
            tolerance = tolerance_of(about)
            higher = about.better == "higher"
            yield (
                name,
                ElsewhereReference(
                    metric=metric,
                    source=content.source,
                    at_least=1 - tolerance if higher else None,
                    at_most=None if higher else 1 + tolerance,
                    figures=tuple(figures),
                    stores=any(
                        each.rule == "typical_triad"
                        or (each.metric == metric and each.rule == "memory_bandwidth")
                        for each in case.references
                    ),
                ),
            )


def unknown_figures(
    files: Iterable[BaselineElsewhere], benchmarks: Benchmarks
) -> Iterator[Message]:
    """Yield each case and metric of the files that the kit does not have."""
    found: dict[Message, None] = {}
    for content in files:
        for each in content.figures:
            case = benchmarks.cases.get(each.case)
            if case is None or each.metric not in case.metrics:
                about = {"case": each.case, "metric": each.metric, "source": content.source}
                found[Message("elsewhere-unknown", **about)] = None
    yield from found


def tolerance_of(metric: Metric) -> float:
    """Return the part by which a healthy figure may be worse than that of another site."""
    return min(metric.material_change, LARGEST_TOLERANCE)


def value_elsewhere(
    reference: ElsewhereReference, settings: Settings, measured: Measured, tolerance: float
) -> ElsewhereValue | Message:
    """Return what another site accepted for a figure, or why there is nothing to compare with.

    Of several values with its settings it takes the one with the fewest conditions that do not
    hold.
    """
    differing = [(settings.other(each.figure), each) for each in reference.figures]
    same = [each for names, each in differing if not names]
    if not same:
        names, nearest = min(differing, key=lambda pair: len(pair[0]))
        figure = nearest.figure
        own = {each: getattr(figure, each) for each in ("mode", "placement", "benchmark", "unit")}
        known: ParameterValues = {**own, "nodes": figure.nodes, **figure.settings}
        return Message(
            "elsewhere-settings",
            settings=", ".join(names),
            source=", ".join(f"{known.get(name, '–')}" for name in names),
            found=_found(settings, names),
        )
    tried = []
    for each in same:
        unheld = [*_other_nodes(each, measured)]
        if measured.programs is not None:
            unheld += other_programs(
                AcceptedPrograms(**each.programs.model_dump()),
                measured.programs,
                stores=reference.stores and X86 in (facts.machine for facts in measured.facts),
                messages=each.figure.nodes > 1,
            )
        unheld += _noise(each.figure, tolerance)
        tried.append((tuple(unheld), each))
    unheld_of_best, best = min(tried, key=lambda pair: len(pair[0]))
    times = factor(best.figure.unit, settings.unit)
    assert times is not None  # the settings have units that convert
    return ElsewhereValue(best.figure.value * times, reference.source, unheld_of_best)


def _found(settings: Settings, names: Sequence[str]) -> str:
    own = {each: getattr(settings, each) for each in ("mode", "placement", "benchmark", "unit")}
    known: ParameterValues = {**own, "nodes": settings.nodes, **settings.found}
    return ", ".join(f"{known.get(name, '–')}" for name in names)


def _other_nodes(known: KnownFigure, measured: Measured) -> Iterator[Message]:
    if not measured.facts:
        yield Message("condition-hardware", source=f"{known.model}")
        return
    several = known.figure.nodes > 1
    found: dict[Message, None] = {}
    for facts, nominal in zip(
        measured.facts, measured.stated or [NOTHING_STATED] * len(measured.facts), strict=True
    ):
        model = ordered_model(facts, nominal)
        differing = [*other_parts(known.model, model, ports=several)]
        if differing:
            about = {"source": f"{known.model}", "found": f"{model}"}
            found[Message("condition-model", parts=", ".join(differing), **about)] = None
    yield from found
    if several and known.figure.network != measured.network:
        network = measured.network or "?"
        yield Message("condition-network", source=known.figure.network or "?", network=network)


def ordered_model(facts: NodeFacts, nominal: Nominal) -> NodeModel:
    """Return the model of a node as it was ordered: a part that it lost is no other model."""
    ordered, parts = as_ordered(facts, nominal), parts_of(facts)
    sockets = nominal.sockets or facts.sockets
    rails = nominal.gbit_per_s and nominal.rails and (nominal.gbit_per_s,) * nominal.rails
    # The name of a processor that nobody sells is compared too.
    return NodeModel(
        processor=product_name(ordered.cpu_model),
        sockets=sockets,
        cores=nominal.cores or facts.cores,
        memory_gib=round(facts.memory_total_bytes / 2**30) or None,
        dimms=nominal.dimms or parts.dimms,
        dimm_mt_per_s=nominal.dimm_mt_per_s or parts.dimm_mt_per_s,
        port_gbit_per_s=rails or parts.ports or (),
        accelerators=parts.accelerators or None,
        virtual=facts.virtual or "",
    )


def other_parts(source: NodeModel, found: NodeModel, *, ports: bool) -> Iterator[str]:
    """Yield the names of the parts in which a node differs from the model of another site.

    What the other site does not know is no condition. The memory follows from the modules if both
    know them: how much of it a kernel keeps differs.

    Args:
        ports: whether the figure depends on the ports of the network.
    """
    for name in ("processor", "sockets", "cores", "virtual"):
        if getattr(source, name) != getattr(found, name):
            yield name
    for name in ("dimms", "dimm_mt_per_s"):
        if (stated := getattr(source, name)) is not None and stated != getattr(found, name):
            yield name
    if source.dimms is None and not _alike(source.memory_gib, found.memory_gib):
        yield "memory_gib"
    if ports and source.port_gbit_per_s and source.port_gbit_per_s != found.port_gbit_per_s:
        yield "port_gbit_per_s"


MEMORY_KEPT = 0.05
"""The part of the memory that kernels keep differs by less."""


def _alike(source: int | None, found: int | None) -> bool:
    if source is None:
        return True
    return found is not None and abs(source - found) <= MEMORY_KEPT * max(source, found)


def _noise(figure: AcceptedFigure, tolerance: float) -> Iterator[Message]:
    """Yield that a healthy node of the other site could miss the tolerance."""
    known = [
        (spread, count)
        for spread, count in (
            (figure.spread_nodes, figure.measured),
            (figure.spread_repeats, figure.repeats),
        )
        if spread is not None and count > 1
    ]
    if not known:
        yield Message("elsewhere-once")
        return
    spread, count = known[0]  # nodes differ, repeats of one node do not show it
    margin = float(quantile_of_t(DOUBT, count - 1.0)) * spread * sqrt(1 + 1 / count)
    if margin > tolerance:
        yield Message(
            "elsewhere-noisy",
            margin=percent(margin),
            tolerance=percent(tolerance),
            count=count,
        )
