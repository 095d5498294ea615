"""Collective operations over placements (P5, figures 1 and 2, and table 2)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean, median

from proofmark.judge.claims.model import Values
from proofmark.judge.claims.p5 import COLLECTIVES, PLACEMENTS, relative_differences
from proofmark.judge.claims.p5 import RATIOS as RATIOS
from proofmark.records.read import Record
from proofmark.report.drawing.charts import Drawing
from proofmark.report.drawing.messages import message_bytes
from proofmark.report.drawing.panels import Axis, Chart, Panel, panels
from proofmark.report.drawing.series import PlotPoint, Sample, Series, lines_by, parameter
from proofmark.report.drawing.ticks import microseconds
from proofmark.report.plot import Context, Plot
from proofmark.report.text import count

TIME = "t_avg"
FIGURE_1 = "Alltoall"
FIGURE_2 = ("Bcast", "Alltoall")


def _label(record: Record) -> str:
    return count(round(parameter(record, "ranks") or 0), "process", "processes")


def _figure_1(points: Sequence[Sample], context: Context) -> list[Drawing]:
    own = [p for p in points if p.record.benchmark == FIGURE_1 and message_bytes(p.record)]
    own.sort(key=lambda point: parameter(point.record, "ranks") or 0)
    content = [
        Panel(
            placement,
            lines_by(
                [point for point in own if point.record.placement == placement],
                _label,
                message_bytes,
                microseconds,
            ),
        )
        for placement in PLACEMENTS
    ]
    chart = Chart(
        name="p5-alltoall",
        title="P5, figure 1: time of Alltoall over message size and processes",
        x=Axis("message size", "bytes"),
        y=Axis("time in µs", "log"),
        unit="µs",
        ordered=True,
        cases=("imb-collectives",),
    )
    return panels(chart, content, own, context)


def times_of(points: Sequence[Sample], collective: str) -> Values:
    """Return times by placement, ranks and bytes, the median over what else there is."""
    found: dict[tuple[str | int | float, ...], list[float]] = {}
    for point in points:
        record = point.record
        if record.benchmark == collective:
            place = (record.placement, record.parameters["ranks"], record.parameters["bytes"])
            found.setdefault(place, []).append(point.value)
    return {place: median(values) for place, values in found.items()}


def named(pair: tuple[str, str]) -> str:
    """Return the title of a column of table 2."""
    return f"({pair[0]}−{pair[1]})/{pair[1]}"


def _figure_2(points: Sequence[Sample], context: Context) -> list[Drawing]:
    own = [point for point in points if point.record.benchmark in FIGURE_2]
    node = context.machine.cores if context.machine else 0
    content = [
        Panel(
            name,
            list(_ratio_lines(times_of(own, name))),
            level=(f"{node} cores of a node", node * 2**0.5) if node else None,
        )
        for name in FIGURE_2
    ]
    chart = Chart(
        name="p5-differences",
        title="P5, figure 2: mean relative difference of time over processes",
        x=Axis("number of processes", "doubling"),
        y=Axis("relative difference"),
        unit="",
        signed=True,
        cases=("imb-collectives",),
    )
    return panels(chart, content, own, context)


def _ratio_lines(times: Values) -> Iterator[Series]:
    for pair in RATIOS:
        by_ranks: dict[int, list[float]] = {}
        for (ranks, _), difference in relative_differences(times, *pair).items():
            by_ranks.setdefault(ranks, []).append(difference)
        means = [(ranks, fmean(each)) for ranks, each in sorted(by_ranks.items())]
        yield Series(named(pair), tuple(PlotPoint(ranks, y, y, y) for ranks, y in means))


def table_2(points: Sequence[Sample]) -> list[tuple[str, str, list[float]]]:
    """Return collective, statistic and a value for each of `RATIOS`, where all are known."""
    rows: list[tuple[str, str, list[float]]] = []
    for name in COLLECTIVES:
        times = times_of(points, name)
        columns = [list(relative_differences(times, *pair).values()) for pair in RATIOS]
        if all(columns):
            for word, of in (("mean", fmean), ("min", min), ("max", max)):
                rows.append((name, word, [of(column) for column in columns]))
    return rows


class CollectivesByPlacement(Plot):
    """Collective operations over placements (P5, figures 1 and 2, and table 2)."""

    title = "P5, figures 1 and 2: collectives by placement"
    suite = "p5"
    position = 50

    def wants(self, record: Record) -> bool:
        """Average times of the collectives in a placement that the paper compares."""
        known = message_bytes(record) is not None and parameter(record, "ranks") is not None
        named = record.benchmark in COLLECTIVES and record.placement in PLACEMENTS
        return named and known and record.metric == TIME and microseconds(record) is not None

    def draw(self, points: Sequence[Sample], context: Context) -> list[Drawing]:
        """Draw the time of Alltoall, and the relative differences of Bcast and Alltoall."""
        return [*_figure_1(points, context), *_figure_2(points, context)]
