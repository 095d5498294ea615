"""The plots of the kit: rates by BLAS kernel, and times and rates over message and file size."""

from __future__ import annotations

from collections.abc import Sequence

from proofmark.common.translation import N_, _, translated
from proofmark.judge.headline import CONTRACT, EXPECTED
from proofmark.records.columns import Record
from proofmark.report.drawing.charts import (
    LIMIT_NAMES,
    Bars,
    Drawing,
    Labels,
    draw_bars,
    draw_over_bytes,
)
from proofmark.report.drawing.series import (
    METRICS,
    Sample,
    Series,
    file_bytes,
    gigaflops,
    is_bandwidth,
    is_collective,
    is_point_to_point,
    is_time,
    lines_by_settings,
    megabytes_per_second,
    message_bytes,
    microseconds,
    parameter,
)
from proofmark.report.plots import Plot, PlotContext
from proofmark.report.words import number, sentence

HPL = ("rmax", "hpl_rmax")
DGEMM = "dgemm_star"
VARIANT = "blas_kernel"


def whole_rate(record: Record) -> float | None:
    """Return the factor from the record's rate to GFlop/s of all ranks; None for other units.

    hpcc prints the DGEMM rate of one rank, so the factor includes the number of ranks.
    """
    factor = gigaflops(record)
    if factor is None or record.metric != DGEMM:
        return factor
    ranks = parameter(record, "ranks")
    return None if ranks is None else factor * ranks


def _rates(samples: Sequence[Sample]) -> dict[str, float]:
    """Return the best rate in GFlop/s of each choice of the kernel."""
    choices = dict.fromkeys(str(sample.record.parameters[VARIANT]) for sample in samples)
    rates: dict[str, float] = {}
    for choice in choices:
        chosen = [sample for sample in samples if sample.record.parameters[VARIANT] == choice]
        lines: list[Series] = lines_by_settings(chosen, lambda _: 0.0, (), whole_rate)
        values = []
        for line in lines:
            values += [point.y for point in line.points]
        if values:
            rates[choice] = max(values)
    return rates


def _limits(samples: Sequence[Sample]) -> list[tuple[str, float]]:
    """Return the contract limits and expected values of HPL in GFlop/s, each with its name."""
    found = set()
    for sample in samples:
        if sample.record.metric in HPL and (factor := gigaflops(sample.record)):
            found |= {
                (kind, bound * factor)
                for kind, bound in sample.limits
                if kind in (CONTRACT, EXPECTED)
            }
    return [(f"{translated(LIMIT_NAMES[kind])} {number(bound)}", bound) for kind, bound in found]


class BlasKernels(Plot):
    """Bars of HPL Rmax and of DGEMM × ranks for each kernel that the BLAS used."""

    name = "blas_kernel"
    title = N_("HPL and DGEMM by BLAS kernel")
    position = 60

    def wants(self, record: Record) -> bool:
        """Return whether `record` is a rate of HPL or DGEMM with the parameter ``blas_kernel``."""
        return (
            record.metric in (*HPL, DGEMM)
            and VARIANT in record.parameters
            and gigaflops(record) is not None
        )

    def draw(self, samples: Sequence[Sample], context: PlotContext) -> list[Drawing]:
        """Draw two bars for each kernel, and a line at Rpeak if it is known."""
        hpl = _rates([sample for sample in samples if sample.record.metric in HPL])
        dgemm = _rates([sample for sample in samples if sample.record.metric == DGEMM])
        choices = list(dict.fromkeys([*hpl, *dgemm]))
        names = [context.choice_labels.get((VARIANT, choice), "") for choice in choices]
        groups = [
            f"{choice}\n{name}" if name else choice
            for choice, name in zip(choices, names, strict=True)
        ]
        series = [
            Bars(_("HPL Rmax"), [hpl.get(choice) for choice in choices]),
            Bars("DGEMM × ranks", [dgemm.get(choice) for choice in choices]),
        ]
        peak = context.peak_gflops
        levels = _limits(samples)
        if peak is not None:
            levels.append((_("Rpeak nominal {rate} (information)").format(rate=number(peak)), peak))
        text = sentence(
            f"{group.replace(chr(10), ', ')}: HPL {number(hpl.get(choice))} GFlop/s, "
            f"DGEMM × ranks {number(dgemm.get(choice))} GFlop/s"
            for group, choice in zip(groups, choices, strict=True)
        )
        figure = draw_bars(groups, series, _("rate in GFlop/s"), levels)
        title = _("HPL and DGEMM by the kernel of the BLAS")
        return [Drawing("blas-kernel", title, text, figure, samples)]


class Collectives(Plot):
    """Average time of collective operations over message size, a line for each operation."""

    name = "collectives"
    title = N_("Time of collective operations over message size")
    position = 63

    def wants(self, record: Record) -> bool:
        """Return whether `record` is an average time of a collective with a known message size."""
        timed = is_time(record) and message_bytes(record) is not None
        return is_collective(record.benchmark) and timed

    def draw(self, samples: Sequence[Sample], context: PlotContext) -> list[Drawing]:
        """Draw one plot with a line for each collective operation and setting."""
        lines = lines_by_settings(samples, message_bytes, {"bytes"}, microseconds)
        title = _("Collective operations: time over message size")
        labels = Labels(title, _("message size"), _("average time of one operation in µs"))
        return draw_over_bytes("collectives-time", labels, lines, samples)


class FileSize(Plot):
    """File system bandwidth over file size, a plot for writing and one for reading.

    The runs of P1 are excluded: `IorOverFileSize` draws them (P1, figures 10 and 11).
    """

    name = "file_size"
    title = N_("File system bandwidth over file size")
    position = 61

    def wants(self, record: Record) -> bool:
        """Return whether `record` is a bandwidth of files whose size is known."""
        return (
            record.metric in METRICS
            and record.parameters.get("cache") != "as-the-paper"  # drawn by IorOverFileSize
            and bool(file_bytes(record))
            and megabytes_per_second(record) is not None
        )

    def draw(self, samples: Sequence[Sample], context: PlotContext) -> list[Drawing]:
        """Draw a plot for writing and one for reading, each with a line for each layout."""
        drawings: list[Drawing] = []
        for metric, title in METRICS.items():
            chosen = [sample for sample in samples if sample.record.metric == metric]
            lines = lines_by_settings(chosen, file_bytes, {"block_bytes"}, megabytes_per_second)
            labels = Labels(
                translated(title), _("size of all files together"), _("bandwidth in MB/s")
            )
            drawings += draw_over_bytes(f"file-size-{metric}", labels, lines, chosen)
        return drawings


class PointToPoint(Plot):
    """Time and bandwidth of point-to-point messages over message size.

    Records of osu cases with the parameter ``pairs`` or ``distance`` are excluded: `PairsBetween`
    and `SimultaneousPairs` draw them (P3, figures 4 and 5).
    """

    name = "point_to_point"
    title = N_("Point-to-point messages: time and bandwidth over message size")
    position = 62

    def wants(self, record: Record) -> bool:
        """Return whether `record` is a time or bandwidth of point-to-point messages."""
        sized = is_point_to_point(record.benchmark) and message_bytes(record) is not None
        of_p3 = {"pairs", "distance"} & record.parameters.keys() and record.case.startswith("osu")
        return sized and not of_p3 and (is_time(record) or is_bandwidth(record))

    def draw(self, samples: Sequence[Sample], context: PlotContext) -> list[Drawing]:
        """Draw a plot of time and one of bandwidth, a line for each benchmark and setting."""
        quantities = (
            (
                "time",
                _("Point-to-point messages: time over message size"),
                _("time in µs"),
                is_time,
                microseconds,
            ),
            (
                "bandwidth",
                _("Point-to-point messages: bandwidth over message size"),
                _("bandwidth in MB/s"),
                is_bandwidth,
                megabytes_per_second,
            ),
        )
        drawings: list[Drawing] = []
        for name, title, y_label, is_quantity, factor in quantities:
            chosen = [sample for sample in samples if is_quantity(sample.record)]
            lines = lines_by_settings(chosen, message_bytes, {"bytes"}, factor)
            labels = Labels(title, _("message size"), y_label)
            drawings += draw_over_bytes(f"point-to-point-{name}", labels, lines, chosen)
        return drawings
