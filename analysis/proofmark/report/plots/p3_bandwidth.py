"""Bandwidth between two ranks by where they are (P3, figures 3 and 4), and of many pairs (5)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from proofmark.records.read import Record
from proofmark.report.plots.charts import Drawing
from proofmark.report.plots.kind import Context, Kind
from proofmark.report.plots.panels import Axis, Chart, Panel, panels
from proofmark.report.plots.point_to_point import is_bandwidth, message_bytes
from proofmark.report.plots.series import Point, lines_by, parameter
from proofmark.report.text import count

DISTANCES = {
    "same-tile": "same tile",
    "same-socket": "same socket",
    "other-socket": "other socket",
    "2-hop": "other socket, 2 hops",
}
LEVELS = {"chip": "same chip", "line-card": "same line card", "switch": "across the switch"}
SHOWN_PAIRS = (1, 2, 4, 8, 16, 32, 64)
"""Numbers of pairs that are drawn; the data has every one."""


def is_osu(record: Record) -> bool:
    """Tell whether the record is the bandwidth of one pair by osu_bw."""
    return record.benchmark == "Bandwidth" and is_bandwidth(record)


def _pairs(record: Record) -> float | None:
    return parameter(record, "pairs") if record.case == "osu-contention" else None


def wants_inside(record: Record) -> bool:
    """Pairs inside a node."""
    return is_osu(record) and record.placement in DISTANCES and _pairs(record) is None


def wants_between(record: Record) -> bool:
    """Pairs on two nodes, with the level of the network between them."""
    return is_osu(record) and "apart" in record.parameters and _pairs(record) is None


def wants_contention(record: Record) -> bool:
    """Pairs at the same time between two nodes."""
    return is_osu(record) and _pairs(record) is not None


def _label_level(record: Record) -> str:
    level = str(record.parameters["apart"])
    return LEVELS.get(level, level)


def _label_pairs(record: Record) -> str:
    return count(round(_pairs(record) or 0), "pair")


def _one(record: Record) -> float:
    return 1.0


def _drawn(
    name: str,
    title: str,
    label: Callable[[Record], str],
    points: Sequence[Point],
    context: Context,
    *,
    ordered: bool = False,
    y: str = "bandwidth in MB/s",
) -> list[Drawing]:
    shown = [point for point in points if not ordered or (_pairs(point.record) or 0) in SHOWN_PAIRS]
    case = "osu-contention" if ordered else "osu-bw"
    chart = Chart(
        name=name,
        title=f"{title} on {points[0].record.system}",
        x=Axis("message size", "bytes"),
        y=Axis(y, "log" if ordered else "linear"),
        unit="MB/s",
        ordered=ordered,
        cases=(case,),
    )
    return panels(chart, [Panel("", lines_by(shown, label, message_bytes, _one))], points, context)


def draw_inside(points: Sequence[Point], context: Context) -> list[Drawing]:
    """Draw a line a distance."""
    title = "P3, figure 3: bandwidth inside a node"
    points = sorted(points, key=lambda point: list(DISTANCES).index(point.record.placement))
    return _drawn("p3-inside", title, lambda r: DISTANCES[r.placement], points, context)


def draw_between(points: Sequence[Point], context: Context) -> list[Drawing]:
    """Draw a line a level of the network."""
    title = "P3, figure 4: bandwidth between two nodes"
    return _drawn("p3-between", title, _label_level, points, context)


def draw_contention(points: Sequence[Point], context: Context) -> list[Drawing]:
    """Draw what each pair gets, a line a number of pairs; the shade is from worst to best pair."""
    title = "P3, figure 5: bandwidth of each of several pairs between two nodes"
    points = sorted(points, key=lambda point: _pairs(point.record) or 0)
    y = "bandwidth of a pair in MB/s"
    return _drawn("p3-contention", title, _label_pairs, points, context, ordered=True, y=y)


KINDS = (
    Kind("P3, figure 3: bandwidth inside a node", wants_inside, draw_inside, "p3"),
    Kind("P3, figure 4: bandwidth between nodes by level", wants_between, draw_between, "p3"),
    Kind("P3, figure 5: bandwidth of simultaneous pairs", wants_contention, draw_contention, "p3"),
)
