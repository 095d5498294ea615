"""The figures with which report and summary begin: what the machine reaches, and what judges it.

The first section of the report also states what was not covered.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

import numpy as np

from proofmark.cases.case import metrics_of
from proofmark.cases.reference import UNIT_OF, HardwareRule
from proofmark.cases.suite import Benchmarks
from proofmark.cases.vocabulary import MEASURED, RESOLVED_AXES, KeyFigure
from proofmark.common.message import Message, localized
from proofmark.common.nodesets import hosts_of
from proofmark.common.text import factor, percent
from proofmark.common.translation import N_, _, translated
from proofmark.judge.headline import BASELINE, CONTRACT, EXPECTED, FLOOR
from proofmark.judge.references.derived import NOTHING_STATED, derive, key_of
from proofmark.judge.references.judgement import PEERS, JudgedFigure, Judgement
from proofmark.judge.results import WORDS, Result
from proofmark.judge.verdict import Verdict
from proofmark.records.columns import Record
from proofmark.report.page import Block, Cell, Section, listed, numeric, titled
from proofmark.report.run_data import RunData
from proofmark.report.sections.figure_tables import verdict_cell
from proofmark.report.words import accepted_text, count, number, pairs
from proofmark.site.hardware import CURRENT
from proofmark.site.hardware_limits import processor, typical_shares
from proofmark.site.inventory import Site
from proofmark.site.node.facts import NodeFacts

Nominal = Callable[[Record], float | None]
"""Returns the peak of the hardware in the unit of a record; None if it is not known."""
TITLES: Mapping[str, str] = {
    "hpl": N_("HPL"),
    "dgemm": N_("DGEMM of one core"),
    "triad": N_("Triad"),
    "latency": N_("Latency between ranks"),
    "bandwidth": N_("Bandwidth between ranks"),
    "message_rate": N_("Message rate"),
    "write": N_("Write"),
    "read": N_("Read"),
    "cached_write": N_("Write into the page cache"),
    "cached_read": N_("Read from the page cache"),
    "metadata": N_("Files created"),
}
BETWEEN_NODES: Mapping[str, str] = {
    "latency": N_("Latency between nodes"),
    "bandwidth": N_("Bandwidth between nodes"),
}
"""The titles of figures whose ranks are on several nodes."""
OPTIONAL = ("cached_write", "cached_read", "dgemm")
"""Figures that a run without them does not lack."""
UNITS: Mapping[str, str] = {
    **dict.fromkeys(("hpl", "dgemm"), "GFlop/s"),
    **dict.fromkeys(("triad", "bandwidth", "write", "read"), "GB/s"),
    **dict.fromkeys(("cached_write", "cached_read"), "GB/s"),
    "latency": "µs",
    "message_rate": "M/s",
    "metadata": "files/s",
}
"""The units of key figures; a program prints others."""
PEAKS: Mapping[str, HardwareRule] = {
    "hpl": "rpeak_nominal",
    "triad": "memory_bandwidth",
    "bandwidth": "link_bandwidth",
}
"""The hardware limit of which a key figure is stated as a share."""
_KINDS = (CONTRACT, EXPECTED, BASELINE, FLOOR, PEERS)
"""The kinds of limits, the first one of which is shown."""
_WORST = ("INVALID", "FAIL", "UNJUDGED", "PASS")


@dataclass(frozen=True)
class KeyRow:
    """A key figure of a case in one mode: the best point of its sweep.

    Attributes:
        middle: the median of all nodes; None if no figure is valid.
        nodes: the number of nodes or pairs that measured it.
        share: of the hardware limit, for the worst node; None if that is not known.
        figure: that of the worst node, with its judgement by the first of the kinds of limits that
            has one. Its outcome is the worst verdict of all nodes.
        answers: all judgements of that node.
    """

    key: str
    figure: JudgedFigure
    middle: float | None
    nodes: int
    share: float | None
    answers: Sequence[Judgement] = ()


def title(key: str, record: Record) -> str:
    """Return the title of a key figure: of messages it says whether they left the node."""
    between = BETWEEN_NODES.get(key, "")
    return translated(between if between and len(_hosts(record.node)) > 1 else TITLES[key])


def unit_of(key: str, unit: str) -> tuple[str, float]:
    """Return the unit in which a key figure is shown, and its value in it of one `unit`.

    A unit of a case of a site that measures something else stays.
    """
    if key == "metadata" and unit in ("ops/s", "op/s"):
        return UNITS[key], 1.0
    wanted = _NAMES.get(UNITS[key], UNITS[key])
    times = factor(unit, wanted)
    return (unit, 1.0) if times is None else (UNITS[key], 1.0 if unit == UNITS[key] else times)


_NAMES = {"µs": "us", "M/s": "MMessages/s"}
"""The names of units of `UNITS` in `proofmark.common.text`."""


def key_rows(run_data: RunData) -> list[KeyRow]:
    """Return the key figures of a run, in the order of `KeyFigure`."""
    points: dict[tuple[str, ...], list[int]] = {}
    records = run_data.verdict.results.aggregates.records
    for place in range(len(records.measurands)):
        about = records.of_measurand(place)
        case = run_data.benchmarks.cases.get(about.case)
        for key, metric in case.key_figures.items() if case else ():
            if metric == about.metric:
                points.setdefault(_group(key, about), []).append(place)
    order = get_args(KeyFigure)
    groups = sorted(points.items(), key=lambda item: (order.index(item[0][0]), item[0]))
    rows = (_best(group[0], numbers, run_data) for group, numbers in groups)
    return [row for row in rows if row]


def not_measured(rows: list[KeyRow]) -> list[str]:
    """Return the titles of the key figures that the run did not measure."""
    found = {row.key for row in rows}
    wanted = (key for key in get_args(KeyFigure) if key not in OPTIONAL)
    return [translated(TITLES[key]) for key in wanted if key not in found]


def _group(key: str, about: Record) -> tuple[str, ...]:
    """Return what the points of one sweep share."""
    part = [f"{about.parameters[axis]}" for axis in RESOLVED_AXES if axis in about.parameters]
    return (key, about.case, about.mode, about.placement, *part)


def _best(key: str, numbers: list[int], run_data: RunData) -> KeyRow | None:
    """Return the point of a sweep that the first kind of limits judges, and of several the best."""
    figures = run_data.verdict.results.aggregates
    ranks = {place: _rank(place, run_data) for place in numbers}
    numbers = [place for place in numbers if ranks[place] == min(ranks.values())]
    about = figures.records.of_measurand(numbers[0])
    lower = metrics_of(run_data.benchmarks.case(about.case))[about.metric].better == "lower"
    medians: dict[int, float] = {}
    for place in numbers:
        values = figures.median[(figures.measurand == place) & figures.valid]
        if len(values):
            medians[place] = float(np.median(values))
    if not medians:
        return _invalid(key, numbers, run_data)
    chosen = (min if lower else max)(medians, key=medians.__getitem__)
    places = np.flatnonzero(figures.measurand == chosen)
    valid = places[figures.valid[places]]
    words = {WORDS[each] for each in run_data.verdict.results.verdict[places].tolist()}
    word = next(word for word in _WORST if word in words)
    # The row shows the node that decides, and its limit: another one would not explain the word.
    deciding = valid[run_data.verdict.results.verdict[valid] == WORDS.index(word)]
    shown = deciding if len(deciding) else valid
    at = (np.argmax if lower else np.argmin)(figures.median[shown])
    worst = run_data.verdict.results[int(shown[at])]
    return KeyRow(
        key,
        _figure(worst, word, _deciding(worst) if len(deciding) else None),
        medians[chosen],
        len(places),
        _share(
            key,
            worst.record,
            nominal(run_data.verdict, run_data.site, run_data.benchmarks, run_data.facts),
        ),
        worst.references,
    )


def _rank(measurand: int, run_data: RunData) -> int:
    """Return the number of the first kind of limits of references that judges a point."""
    results = run_data.verdict.results
    places = np.flatnonzero(results.aggregates.measurand == measurand).tolist()
    kinds = set()
    for place in places:
        kinds |= {answer.kind for answer in results.answers.get(place, ()) if answer.ratio}
    return min((_KINDS.index(kind) for kind in kinds if kind in _KINDS), default=len(_KINDS))


def _invalid(key: str, numbers: list[int], run_data: RunData) -> KeyRow | None:
    figures = run_data.verdict.results.aggregates
    places = np.flatnonzero(np.isin(figures.measurand, numbers))
    if not len(places):
        return None
    worst = run_data.verdict.results[int(places[0])]
    return KeyRow(key, _figure(worst, "INVALID", None), None, len(places), None)


def _figure(of: Result, word: str, judgement: Judgement | None) -> JudgedFigure:
    record = of.record
    return JudgedFigure(
        record.node,
        of.steps,
        word,
        of.reason,
        value=record.value,
        unit=record.unit,
        record=record,
        judgement=judgement,
    )


def _share(key: str, record: Record, peak: Nominal) -> float | None:
    """Return the value of a record over the hardware limit of its nodes."""
    limit = peak(record) if key in PEAKS else None
    return record.value / limit if record.value is not None and limit else None


def nominal(
    verdict: Verdict, site: Site, benchmarks: Benchmarks, nodes: Sequence[NodeFacts]
) -> Nominal:
    """Return the function that gives the hardware limit of a record in its unit."""
    facts = {each.hostname: each for each in nodes}
    node, cases = site.partition.node, benchmarks.cases

    def of(record: Record) -> float | None:
        keys = cases[record.case].key_figures if record.case in cases else {}
        of_metric = (key for key, metric in keys.items() if metric == record.metric)
        rules = [PEAKS[key] for key in of_metric if key in PEAKS]
        hosts = _hosts(record.node) if rules else ()
        if not hosts or not facts.keys() >= set(hosts):
            return None
        stated = [verdict.hardware.of_node.get(host, NOTHING_STATED) for host in hosts]
        nodes = [facts[host] for host in hosts]
        limit = derive(rules[0], nodes, record.parameters, node, stated)
        if isinstance(limit, Message):
            return None
        times = factor(UNIT_OF[rules[0]], record.unit)
        return times and limit.value * times

    return of


def _deciding(result: Result) -> Judgement | None:
    """Return the judgement that gives a figure its verdict; of several that of the first kind.

    A figure that several limits fail has the one of the first kind too. An UNJUDGED figure has the
    first one that compared it.
    """
    answers = [each for each in result.references if each.evaluated]
    same = [each for each in answers if each.outcome == result.verdict] or answers
    order = {kind: place for place, kind in enumerate(_KINDS)}
    return min(same, key=lambda each: order.get(each.kind, len(order)), default=None)


def _hosts(node: str) -> tuple[str, ...]:
    """Return the hosts of a name in a record; nothing for one that is no node set."""
    try:
        return hosts_of(node)
    except ValueError:
        return ()


NUMBER = "number"

MAIN_FIGURES = "key-figures"
"""The id of the section, which each page has."""


def section(run_data: RunData) -> Section:
    """Return the key figures with their limits, then what the run does not cover."""
    measured = key_rows(run_data)
    # A limit of the contract is an item, which is shown above.
    of_figure = ((row, row.figure.judgement) for row in measured)
    rows = [row for row, judged in of_figure if judged is None or judged.kind != CONTRACT]
    caption = _("Key figures")
    columns = (
        _("Figure"),
        numeric(_("Worst node")),
        numeric(_("Of the peak")),
        numeric(_("Limit")),
        numeric(_("Visible change")),
        _("Verdict"),
    )
    shown = titled(caption, columns, map(cells_of, rows))
    note = _(
        "Each sweep has one row: the point that a limit judges, else the best point, on its worst "
        "node. The peak is that of the hardware: nominal Rpeak, memory, link. A limit states its "
        "kind. With 95 % confidence the true level is beyond the limit by the visible change at "
        "most."
    )
    sanity = _(
        "A sanity check: nothing here accepts this machine. A site of its own accepts it, by a "
        "contract or an accepted run: docs/tutorial.md."
    )
    plain = () if run_data.verdict.contract else (sanity,)
    figures = Block(paragraphs=(*plain, note), tables=(shown,)) if rows else Block(paragraphs=plain)
    scope = listed(_("Not covered"), not_covered(run_data, measured))
    blocks = (figures, *_usual_figures(rows, run_data.facts), *((scope,) if scope.items else ()))
    return Section(MAIN_FIGURES, caption, blocks)


def _usual_figures(rows: Sequence[KeyRow], nodes: Sequence[NodeFacts]) -> Iterator[Block]:
    """Yield the table of what UNJUDGED figures usually are, and what would judge each of them."""
    facts, cells = {each.hostname: each for each in nodes}, []
    for row in rows:
        record = row.figure.record
        if row.figure.outcome != "UNJUDGED" or record is None or record.origin != MEASURED:
            continue
        name, value, *_rest = cells_of(row)
        hosts = _hosts(record.node)
        usual, source = _known_value(row, record)
        if not usual and len(hosts) == 1 and hosts[0] in facts:
            usual, source = _of_processor(row.key, facts[hosts[0]])
        step = _("an item of contract.yml: case {case}, metric {metric}").format(
            case=record.case, metric=record.metric
        )
        if lacking := next(filter(None, (key_of(each.reason) for each in row.answers)), ""):
            step = _("state {key}").format(key=lacking)
        cells.append((name, value, Cell(usual or "–", NUMBER), source or _("none is known"), step))
    if cells:
        columns = (_("Figure"), numeric(_("Worst node")), numeric(_("Usual")), _("Source"))
        title = _("What these figures usually are")
        note = _("This table judges nothing: the conditions of its sources are not all those here.")
        shown = titled(title, (*columns, _("Next step")), cells)
        yield Block(titles=(title,), paragraphs=(note,), tables=(shown,))


def _known_value(row: KeyRow, record: Record) -> tuple[str, str]:
    """Return the accepted or expected value of a figure and its source; empty if none is known."""
    unit, times = unit_of(row.key, record.unit)
    for kind in (BASELINE, EXPECTED):
        for each in row.answers:
            if each.kind == kind and each.value:
                return f"{number(each.value * times)} {unit}", localized(each.source)
    return "", ""


def _of_processor(key: str, facts: NodeFacts) -> tuple[str, str]:
    """Return what a whole node with this processor reaches by the table, and whose value it is.

    A virtual machine has a part of the cores of such a node: the source states which part.
    """
    row = processor(facts.cpu_model)
    known = typical_shares(row, "hpl" if key == "hpl" else "triad") if row else ()
    if row is None or row.cores is None or not known or key not in ("hpl", "triad"):
        return "", ""
    of_cores = (row.cores, row.flop_per_cycle, row.base_hz, 1e-9)
    factors = (row.channels, row.ddr, 8e-3) if key == "triad" else of_cores
    peak = math.prod(each or 0 for each in factors)
    value = f"{number(known[0].ratio * peak)} {UNITS[key]}" if peak else ""
    source = _("a socket of {processor} ({cores} cores): {system}").format(
        processor=row.name, cores=row.cores, system=known[0].conditions.system
    )
    if facts.virtual:
        source += "; " + _("this virtual machine has {cores} of them").format(cores=facts.cores)
    return value, source


def cells_of(row: KeyRow) -> tuple[Cell, ...]:
    """Return the cells of a key figure, in the unit of `UNITS`."""
    record, judgement, seen = row.figure.record, row.figure.judgement, row.figure.visible
    assert record is not None  # a row is made from a figure of the run
    unit, times = unit_of(row.key, record.unit)
    mode = _("mode {mode}").format(mode=record.mode) if record.mode != CURRENT else ""
    case = ", ".join(filter(None, (record.case, mode, record.placement)))
    value, limit, details = "–", "–", [record.node] if row.nodes > 1 else []
    if row.middle is not None and record.value is not None:
        value = f"{number(record.value * times)} {unit}"
        if row.nodes > 1:
            middle = f"{number(row.middle * times)} {unit}"
            details.append(_("median {value}").format(value=middle))
        details += [f"{number(record.value)} {record.unit}"] if times != 1 else []
    if judgement:
        limit = accepted_text(row.figure.accepted.times(times), unit=unit) or _("none")
    return (
        Cell(title(row.key, record), "strong", (case, *filter(None, [pairs(record.parameters)]))),
        Cell(value, NUMBER, tuple(details)),
        Cell("–" if row.share is None else f"{percent(row.share)} %", NUMBER),
        Cell(limit, NUMBER, (translated(judgement.kind),) if judgement else ()),
        Cell("–" if seen is None or not math.isfinite(seen) else f"{percent(seen)} %", NUMBER),
        verdict_cell(row.figure.outcome),
    )


def not_covered(run_data: RunData, rows: list[KeyRow]) -> Iterator[str]:
    """Yield what the run says nothing about: figures, modes, nodes, missing proofs."""
    verdict = run_data.verdict
    if missing := not_measured(rows):
        yield _("Not measured: {figures}.").format(figures=", ".join(missing))
    if left := len(verdict.coverage.not_run):
        yield _("Other modes: {steps} not run.").format(steps=count(left, "step"))
    if verdict.degraded:
        yield localized(verdict.degraded.label)
    if not verdict.conditions.executed:
        yield _("Others produced the outputs. Modes, binding and disturbance are not proved.")
