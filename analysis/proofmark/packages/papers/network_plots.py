"""The figures of papers P3, P4 and P5: pairs of ranks, BT-IO and collectives."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median

from proofmark.common.translation import N_, _, translated
from proofmark.packages.papers.charts import Drawing
from proofmark.packages.papers.claim import Values
from proofmark.packages.papers.p5 import COLLECTIVES, PLACEMENTS, RATIOS, relative_differences
from proofmark.packages.papers.panels import (
    Axis,
    Chart,
    Panel,
    block_name,
    draw_panels,
    lines_by_label,
    machine_of,
)
from proofmark.packages.papers.plot import Plot, PlotContext, PlotTable
from proofmark.packages.papers.series import (
    PlotPoint,
    Sample,
    Series,
    byte_label,
    is_bandwidth,
    message_bytes,
    microseconds,
    parameter,
)
from proofmark.records.columns import Record
from proofmark.report.page import Cell, numeric
from proofmark.report.words import count

DISTANCES = {
    "same-tile": N_("same tile"),
    "same-socket": N_("same socket"),
    "other-socket": N_("other socket"),
    "2-hop": N_("other socket, 2 hops"),
}
LEVELS = {
    "chip": N_("same chip"),
    "line-card": N_("same line card"),
    "switch": N_("across the switch"),
}
SHOWN_PAIRS = (1, 2, 4, 8, 16, 32, 64)
"""Numbers of pairs that are drawn; the CSV file has all of them."""


def is_osu(record: Record) -> bool:
    """Return whether `record` is a bandwidth of pairs, measured by osu_bw."""
    return record.benchmark == "Bandwidth" and is_bandwidth(record)


def pairs_of(record: Record) -> float | None:
    """Return the number of simultaneous pairs; None for other cases than osu-contention."""
    return parameter(record, "pairs") if record.case == "osu-contention" else None


def _one(record: Record) -> float:
    return 1.0


@dataclass(frozen=True)
class PairPlot:
    """A plot of bandwidth over message size, with a line for each label.

    Attributes:
        name: stem of the file names.
        title: the system is added to it.
        label: returns the label of a record's line.
        ordered: the lines are numbers of pairs, of which `SHOWN_PAIRS` are drawn.
        y: quantity and unit of the y axis; empty for the bandwidth.
    """

    name: str
    title: str
    label: Callable[[Record], str]
    ordered: bool = False
    y: str = ""


def draw_pairs(plot: PairPlot, samples: Sequence[Sample], context: PlotContext) -> list[Drawing]:
    """Draw `samples` as `plot`."""
    shown = [
        sample
        for sample in samples
        if not plot.ordered or (pairs_of(sample.record) or 0) in SHOWN_PAIRS
    ]
    case = "osu-contention" if plot.ordered else "osu-bw"
    chart = Chart(
        name=plot.name,
        title=_("{title} on {system}").format(title=plot.title, system=samples[0].record.system),
        x=Axis(_("message size"), "bytes"),
        y=Axis(plot.y or _("bandwidth in MB/s"), "log" if plot.ordered else "linear"),
        unit="MB/s",
        ordered=plot.ordered,
        cases=(case,),
    )
    return draw_panels(
        chart, [Panel("", lines_by_label(shown, plot.label, message_bytes, _one))], samples, context
    )


def _distance_label(record: Record) -> str:
    level = str(record.parameters["distance"])
    return translated(LEVELS.get(level, level))


class PairsBetween(Plot):
    """Bandwidth between two nodes, by network distance (P3, figure 4)."""

    title = N_("P3, figure 4: bandwidth between nodes by network distance")
    suite = "p3"
    position = 31

    def wants(self, record: Record) -> bool:
        """Return whether `record` is the bandwidth of one pair of ranks on two nodes."""
        return is_osu(record) and "distance" in record.parameters and pairs_of(record) is None

    def draw(self, samples: Sequence[Sample], context: PlotContext) -> list[Drawing]:
        """Draw a line for each distance between the nodes in the network."""
        title = _("P3, figure 4: bandwidth between two nodes")
        return draw_pairs(PairPlot("p3-between", title, _distance_label), samples, context)


def _pairs_label(record: Record) -> str:
    return count(round(pairs_of(record) or 0), "pair")


class SimultaneousPairs(Plot):
    """Bandwidth of each of several simultaneous pairs between two nodes (P3, figure 5)."""

    title = N_("P3, figure 5: bandwidth of simultaneous pairs")
    suite = "p3"
    position = 32

    def wants(self, record: Record) -> bool:
        """Return whether `record` is the bandwidth of simultaneous pairs between two nodes."""
        return is_osu(record) and pairs_of(record) is not None

    def draw(self, samples: Sequence[Sample], context: PlotContext) -> list[Drawing]:
        """Draw a line for each number of pairs; the band shows the range over the pairs."""
        title = _("P3, figure 5: bandwidth of each of several pairs between two nodes")
        samples = sorted(samples, key=lambda sample: pairs_of(sample.record) or 0)
        y = _("bandwidth of a pair in MB/s")
        plot = PairPlot("p3-contention", title, _pairs_label, ordered=True, y=y)
        return draw_pairs(plot, samples, context)


class PairsInside(Plot):
    """Bandwidth between two ranks on one node, by their distance (P3, figure 3)."""

    title = N_("P3, figure 3: bandwidth inside a node")
    suite = "p3"
    position = 30

    def wants(self, record: Record) -> bool:
        """Return whether `record` is the bandwidth of one pair of ranks on one node."""
        return is_osu(record) and record.placement in DISTANCES and pairs_of(record) is None

    def draw(self, samples: Sequence[Sample], context: PlotContext) -> list[Drawing]:
        """Draw a line for each distance of the two ranks: same tile, same socket, other socket."""
        title = _("P3, figure 3: bandwidth inside a node")
        samples = sorted(samples, key=lambda sample: list(DISTANCES).index(sample.record.placement))
        plot = PairPlot("p3-inside", title, lambda r: translated(DISTANCES[r.placement]))
        return draw_pairs(plot, samples, context)


CLASSES = ("A", "B", "C")


def ranks_of(record: Record) -> float | None:
    """Return the number of processes; None if the parameters lack it."""
    return parameter(record, "ranks")


class BtIo(Plot):
    """I/O time of BT-IO over processes (P4, figures 1 to 3), a plot for each problem class."""

    title = N_("P4, figures 1 to 3: I/O time of BT-IO")
    suite = "p4"
    position = 40

    def wants(self, record: Record) -> bool:
        """Return whether `record` is the I/O time of BT-IO in s with known ranks and block size."""
        known = ranks_of(record) is not None and "fs_block_bytes" in record.parameters
        timed = record.metric == "io_time" and record.unit == "s"
        return record.case == "npb-btio" and timed and known

    def draw(self, samples: Sequence[Sample], context: PlotContext) -> list[Drawing]:
        """Draw a plot for each class, a panel for each block size, a line for each placement."""
        drawings: list[Drawing] = []
        for number, problem in enumerate(CLASSES, start=1):
            of_class = [s for s in samples if s.record.parameters.get("class") == problem]
            sizes = sorted({parameter(s.record, "fs_block_bytes") or 0 for s in of_class})
            content = [
                Panel(
                    block_name(round(size)),
                    lines_by_label(
                        [s for s in of_class if parameter(s.record, "fs_block_bytes") == size],
                        lambda record: record.placement,
                        ranks_of,
                        _one,
                    ),
                )
                for size in sizes
            ]
            chart = Chart(
                name=f"p4-class-{problem.lower()}",
                title=_(
                    "P4, figure {figure}: BT-IO class {problem}, I/O time over processes"
                ).format(figure=number, problem=problem),
                x=Axis(
                    _("number of processes"),
                    "doubling",
                    counted=lambda x: count(x, "process", "processes"),
                ),
                y=Axis(_("I/O time in s")),
                unit="s",
                cases=("npb-btio",),
            )
            drawings += draw_panels(chart, content, of_class, context)
        return drawings


SYSTEM = "Power 595"

PUBLISHED: Mapping[tuple[str, str], tuple[float, float, float, float]] = {
    ("Bcast", "mean"): (0.0785, 0.2381, 1.1605, 0.6587),
    ("Bcast", "min"): (-0.3558, -0.6596, -0.7358, -0.6994),
    ("Bcast", "max"): (0.9495, 2.1457, 15.5963, 11.3582),
    ("Allreduce", "mean"): (0.0686, 0.5217, 1.2899, 0.7402),
    ("Allreduce", "min"): (-0.9331, -0.1187, -0.3235, -0.9434),
    ("Allreduce", "max"): (1.0072, 26.0308, 17.2411, 4.0272),
    ("Allgather", "mean"): (0.0926, 0.3418, 0.5693, 0.2917),
    ("Allgather", "min"): (-0.2186, -0.2919, -0.8535, -0.8615),
    ("Allgather", "max"): (1.4230, 1.9600, 3.8398, 1.8427),
    ("Alltoall", "mean"): (0.0173, 0.1331, 0.6129, 0.3545),
    ("Alltoall", "min"): (-0.3025, -0.3804, -0.7603, -0.7612),
    ("Alltoall", "max"): (0.5278, 0.8137, 3.6256, 2.7137),
    ("Alltoallv", "mean"): (-0.0038, 0.0804, 0.3958, 0.2533),
    ("Alltoallv", "min"): (-0.2612, -0.4005, -0.6926, -0.6888),
    ("Alltoallv", "max"): (0.2995, 0.6594, 3.6855, 2.7707),
}
"""The relative differences of times by collective and statistic, for each of ``p5.RATIOS``."""


TIME = "t_avg"
FIGURE_1 = "Alltoall"
FIGURE_2 = ("Bcast", "Alltoall")


def _label(record: Record) -> str:
    return count(round(parameter(record, "ranks") or 0), "process", "processes")


def _figure_1(samples: Sequence[Sample], context: PlotContext) -> list[Drawing]:
    alltoall = [s for s in samples if s.record.benchmark == FIGURE_1 and message_bytes(s.record)]
    alltoall.sort(key=lambda sample: parameter(sample.record, "ranks") or 0)
    content = [
        Panel(
            placement,
            lines_by_label(
                [sample for sample in alltoall if sample.record.placement == placement],
                _label,
                message_bytes,
                microseconds,
            ),
        )
        for placement in PLACEMENTS
    ]
    chart = Chart(
        name="p5-alltoall",
        title=_("P5, figure 1: time of Alltoall over message size and processes"),
        x=Axis(_("message size"), "bytes"),
        y=Axis(_("time in µs"), "log"),
        unit="µs",
        ordered=True,
        own_x=True,
        cases=("imb-collectives",),
    )
    drawings = draw_panels(chart, content, alltoall, context)
    once = _once(alltoall, context)
    return [replace(each, text=" ".join(filter(None, (each.text, once)))) for each in drawings]


def _once(samples: Sequence[Sample], context: PlotContext) -> str:
    """Return which messages IMB measured by a single operation, for each number of processes."""
    first: dict[int, float] = {}
    for record in (sample.record for sample in samples):
        once_from = context.derived.get(record.step, {}).get("once_from")
        size, ranks = message_bytes(record), round(parameter(record, "ranks") or 0)
        if size and isinstance(once_from, int) and size >= once_from:
            first[ranks] = min(size, first.get(ranks, size))
    if not first:
        return ""
    listed = ", ".join(
        _("{processes} from {size}").format(
            processes=count(ranks, "process", "processes"), size=byte_label(size)
        )
        for ranks, size in sorted(first.items())
    )
    return _("Measured by a single operation: {listed}.").format(listed=listed)


def times_of(samples: Sequence[Sample], collective: str) -> Values:
    """Return the median time of `collective` by placement, ranks and message bytes."""
    times: dict[tuple[str | int | float, ...], list[float]] = {}
    for sample in samples:
        record = sample.record
        if record.benchmark == collective:
            key = (record.placement, record.parameters["ranks"], record.parameters["bytes"])
            times.setdefault(key, []).append(sample.value)
    return {key: median(values) for key, values in times.items()}


def ratio_name(pair: tuple[str, str]) -> str:
    """Return the title of a column of table 2: ``(BD−BA)/BA``."""
    return f"({pair[0]}−{pair[1]})/{pair[1]}"


def _figure_2(samples: Sequence[Sample], context: PlotContext) -> list[Drawing]:
    compared = [sample for sample in samples if sample.record.benchmark in FIGURE_2]
    machine = machine_of(samples, context)
    cores = machine.cores if machine else 0
    content = [
        Panel(
            name,
            list(_ratio_lines(times_of(compared, name))),
            level=(_("{cores} cores of a node").format(cores=cores), cores * 2**0.5)
            if cores
            else None,
        )
        for name in FIGURE_2
    ]
    chart = Chart(
        name="p5-differences",
        title=_("P5, figure 2: mean relative difference of time over processes"),
        x=Axis(
            _("number of processes"), "doubling", counted=lambda x: count(x, "process", "processes")
        ),
        y=Axis(_("relative difference")),
        unit="",
        signed=True,
        cases=("imb-collectives",),
    )
    return draw_panels(chart, content, compared, context)


def _ratio_lines(times: Values) -> Iterator[Series]:
    """Yield for each of `RATIOS` the mean relative difference over the number of ranks."""
    for pair in RATIOS:
        by_ranks: dict[int, list[float]] = {}
        for (ranks, _bytes), difference in relative_differences(times, *pair).items():
            by_ranks.setdefault(ranks, []).append(difference)
        means = [(ranks, fmean(values)) for ranks, values in sorted(by_ranks.items())]
        yield Series(ratio_name(pair), tuple(PlotPoint(ranks, y, y, y) for ranks, y in means))


def table_2(samples: Sequence[Sample]) -> list[tuple[str, str, list[float]]]:
    """Return the rows of table 2: collective, statistic, and its value for each of `RATIOS`.

    A collective without times for all `RATIOS` has no row.
    """
    rows: list[tuple[str, str, list[float]]] = []
    for name in COLLECTIVES:
        times = times_of(samples, name)
        columns = [list(relative_differences(times, *pair).values()) for pair in RATIOS]
        if all(columns):
            for statistic, function in (("mean", fmean), ("min", min), ("max", max)):
                rows.append((name, statistic, [function(column) for column in columns]))
    return rows


class CollectivesByPlacement(Plot):
    """Time of collective operations by placement (P5, figures 1 and 2, and table 2)."""

    title = N_("P5, figures 1 and 2: collectives by placement")
    suite = "p5"
    position = 50
    exclusive = True

    def wants(self, record: Record) -> bool:
        """Return whether `record` is an average time of a collective and placement of P5."""
        known = message_bytes(record) is not None and parameter(record, "ranks") is not None
        of_p5 = record.benchmark in COLLECTIVES and record.placement in PLACEMENTS
        return of_p5 and known and record.metric == TIME and microseconds(record) is not None

    def draw(self, samples: Sequence[Sample], context: PlotContext) -> list[Drawing]:
        """Draw the time of Alltoall, and the relative differences of Bcast and Alltoall."""
        return [*_figure_1(samples, context), *_figure_2(samples, context)]

    def table(self, samples: Sequence[Sample]) -> PlotTable | None:
        """Return table 2 beside that of the paper; None without times of all placements."""
        rows = table_2(samples)
        if not rows:
            return None
        heads = [ratio_name(pair) for pair in RATIOS]
        published = [f"{SYSTEM}, P5: {head}" for head in heads]
        return PlotTable(
            name="p5-table-2",
            title=_("P5, table 2: relative difference of times between placements"),
            about=_("Small figures: the table of the paper, for {system}.").format(system=SYSTEM),
            columns=[_("Collective"), _("Statistic"), *(numeric(head) for head in heads)],
            rows=[
                (
                    name,
                    translated(statistic),
                    *map(_beside_the_paper, values, PUBLISHED[name, statistic]),
                )
                for name, statistic, values in rows
            ],
            csv=[
                ["collective", "statistic", *heads, *published],
                *([name, word, *values, *PUBLISHED[name, word]] for name, word, values in rows),
            ],
        )


def _beside_the_paper(value: float, published: float) -> Cell:
    return Cell(f"{value:.4f}", "number", details=(f"{published:.4f}",))
