"""The figures of papers P1 and P2: HPL, STREAM and IOR."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from proofmark.cases.vocabulary import Scalar
from proofmark.common.expressions import GRID_RATIO
from proofmark.common.translation import N_, _, translated
from proofmark.packages.papers.charts import Drawing, Labels, draw_over_bytes
from proofmark.packages.papers.panels import (
    Axis,
    Chart,
    Panel,
    draw_panels,
    layout_name,
    lines_by_label,
    machine_of,
    memory_name,
    mode_name,
    scaled,
    with_fit,
)
from proofmark.packages.papers.plot import Plot, PlotContext
from proofmark.packages.papers.series import (
    Sample,
    Series,
    gigaflops,
    lines_by_settings,
    megabytes_per_second,
    parameter,
)
from proofmark.records.columns import Record
from proofmark.report.words import count

METRICS = {
    "write": N_("Writing files: bandwidth over file size"),
    "read": N_("Reading files: bandwidth over file size"),
}


def file_bytes(record: Record) -> float | None:
    """Return the bytes of all files together: block × tasks (P1.ior, with one segment).

    None if the parameters lack one of them.
    """
    block, tasks = parameter(record, "block_bytes"), parameter(record, "tasks")
    return None if block is None or tasks is None else block * tasks


def threads_of(record: Record) -> float | None:
    """Return the number of threads; None if the parameters lack it."""
    return parameter(record, "threads")


def is_stream(record: Record) -> bool:
    """Return whether `record` is a bandwidth of the case stream on a known number of threads."""
    known = threads_of(record) is not None and megabytes_per_second(record) is not None
    return record.case == "stream" and known


def nodes_of(record: Record) -> float | None:
    """Return the number of nodes of the HPL run; None if the parameters lack it."""
    return parameter(record, "nodes")


def _mode_label(record: Record) -> str:
    """Return the label of the line: the mode, and ``not fitted`` if that is the placement."""
    return with_fit(mode_name(record.mode), record.placement)


def _best(samples: Sequence[Sample]) -> list[Sample]:
    """Return the best sample of each mode, placement and number of nodes: that is Rmax."""
    best: dict[tuple[str, str, float | None], Sample] = {}
    for sample in samples:
        key = (sample.record.mode, sample.record.placement, nodes_of(sample.record))
        if key not in best or sample.value > best[key].value:
            best[key] = sample
    return list(best.values())


def flat_grids(samples: Sequence[Sample]) -> Mapping[float, str]:
    """Return the grid P × Q by the number of nodes, where Q is more than `GRID_RATIO` × P.

    A prime number of processes has only one row, on which HPL itself is slower (HPL, TUNING).
    """
    flat: dict[float, str] = {}
    for sample in samples:
        p, q, nodes = (parameter(sample.record, name) for name in ("p", "q", "nodes"))
        if p and q and nodes is not None and q > GRID_RATIO * p:
            flat[nodes] = f"{p:g} × {q:g}"
    return dict(sorted(flat.items()))


def _order(line: Series) -> str:
    """Return the sort key that puts jobs that are not fitted last."""
    return ("b" if _("not fitted") in line.label else "a") + line.label


class HplOverNodes(Plot):
    """HPL over nodes (P1, figures 6 and 7): Rmax and Rmax ÷ Rpeak, by cluster mode."""

    title = N_("P1, figures 6 and 7: HPL over nodes")
    suite = "p1"
    position = 10

    def wants(self, record: Record) -> bool:
        """Return whether `record` is Rmax of HPL on a known number of nodes."""
        known = nodes_of(record) is not None and gigaflops(record) is not None
        return record.case == "hpl" and record.metric == "rmax" and known

    def draw(self, samples: Sequence[Sample], context: PlotContext) -> list[Drawing]:
        """Draw a panel of Rmax, and one of Rmax ÷ Rpeak if Rpeak is known."""
        knl = any(sample.record.system == "knl" for sample in samples)
        best = _best(samples)
        lines = sorted(lines_by_label(best, _mode_label, nodes_of, gigaflops), key=_order)
        machine = machine_of(samples, context)
        peak = machine.peak_gflops if machine else None
        flat = flat_grids(best)
        content = [Panel("Rmax", scaled(lines, lambda _: 1e-3), "TFlop/s", marks=flat)]
        if peak:
            percent = scaled(lines, lambda nodes: 100 / (peak * nodes))
            content.append(Panel(_("Rmax ÷ Rpeak"), percent, "%", marks=flat))
        name, number = ("p1-hpl-knl", 6) if knl else ("p1-hpl", 7)
        chart = Chart(
            name=name,
            title=_("P1, figure {figure}: HPL over nodes on {system}").format(
                figure=number, system=samples[0].record.system
            ),
            x=Axis(_("number of nodes"), counted=lambda x: count(x, "node")),
            y=Axis("TFlop/s"),
            unit="",
            cases=("hpl",),
        )
        drawings = draw_panels(chart, content, samples, context)
        if not flat:
            return drawings
        marked = _(
            "Marked are grids of processes with more than {ratio} columns for each row: {grids}."
        ).format(ratio=GRID_RATIO, grids=", ".join(flat.values()))
        return [replace(each, text=f"{each.text} {marked}") for each in drawings]


def _by_memory(samples: Sequence[Sample]) -> dict[Scalar, list[Sample]]:
    """Return the samples by the kind of memory that their processes were bound to."""
    by_memory: dict[Scalar, list[Sample]] = {}
    for sample in samples:
        by_memory.setdefault(sample.record.parameters.get("memory", ""), []).append(sample)
    return by_memory


def _file_label(record: Record) -> str:
    """Return the label of the line: metric (write or read) and file layout."""
    return f"{record.metric}, {layout_name(record.parameters.get('layout'))}"


class IorOverFileSize(Plot):
    """IOR bandwidth over the size of all files together (P1, figures 10 and 11)."""

    title = N_("P1, figures 10 and 11: IOR over file size")
    suite = "p1"
    position = 12

    def wants(self, record: Record) -> bool:
        """Return whether `record` is a bandwidth of IOR with the page cache in use, as in P1."""
        as_paper = record.parameters.get("cache") == "as-the-paper"
        known = bool(file_bytes(record)) and megabytes_per_second(record) is not None
        return record.case == "ior" and record.metric in METRICS and as_paper and known

    def draw(self, samples: Sequence[Sample], context: PlotContext) -> list[Drawing]:
        """Draw a panel for each kind of memory that the processes were bound to."""
        knl = samples[0].record.system == "knl"
        by_memory = _by_memory(samples)
        content = []
        for letter, (memory, members) in zip("abcdef", by_memory.items(), strict=False):
            name = f"({letter}) {memory_name(memory)}" if len(by_memory) > 1 else ""
            content.append(
                Panel(name, lines_by_label(members, _file_label, file_bytes, megabytes_per_second))
            )
        system = samples[0].record.system
        chart = Chart(
            name="p1-ior-knl" if knl else "p1-ior",
            title=_("P1, figure {figure}: IOR over file size on {system}").format(
                figure=10 if knl else 11, system=system
            ),
            x=Axis(_("size of all files together"), "bytes"),
            y=Axis(_("bandwidth in MB/s"), "log"),
            unit="MB/s",
            cases=("ior",),
        )
        return draw_panels(chart, content, samples, context)


KERNEL = "triad"


def _memory_label(record: Record) -> str:
    """Return the label of the line: kind of memory and cluster mode."""
    parts = (memory_name(record.parameters.get("memory")), mode_name(record.mode))
    return ", ".join(filter(None, parts))


class StreamOverThreads(Plot):
    """STREAM Triad over threads, by memory and cluster mode (P1, figures 8 and 9)."""

    title = N_("P1, figures 8 and 9: STREAM over threads")
    suite = "p1"
    position = 11

    def wants(self, record: Record) -> bool:
        """Return whether `record` is the Triad bandwidth of STREAM on a known number of threads."""
        return is_stream(record) and record.metric == KERNEL

    def draw(self, samples: Sequence[Sample], context: PlotContext) -> list[Drawing]:
        """Draw the bandwidth with spread threads, a line for each memory and mode.

        Nothing is drawn if every mode was also measured with close threads: these are the runs of
        P2, and `PlacementOfThreads` draws them.
        """
        close = {sample.record.mode for sample in samples if sample.record.placement == "close"}
        samples = [sample for sample in samples if sample.record.placement == "spread"]
        if {sample.record.mode for sample in samples} <= close:
            return []
        lines = scaled(
            lines_by_label(samples, _memory_label, threads_of, megabytes_per_second), lambda _: 1e-3
        )
        knl = samples[0].record.system == "knl"
        chart = Chart(
            name="p1-stream-knl" if knl else "p1-stream",
            title=_("P1, figure {figure}: STREAM Triad over threads on {system}").format(
                figure=8 if knl else 9, system=samples[0].record.system
            ),
            x=Axis(_("number of threads"), counted=lambda x: count(x, "thread")),
            y=Axis(_("bandwidth in GB/s")),
            unit="GB/s",
            cases=("stream",),
        )
        return draw_panels(chart, [Panel("", lines)], samples, context)


KERNELS = ("copy", "scale", "add", "triad")
PLACEMENTS = ("close", "spread")


def _chart(name: str, title: str) -> Chart:
    return Chart(
        name=name,
        title=title,
        x=Axis(_("number of threads"), counted=lambda x: count(x, "thread")),
        y=Axis(_("bandwidth in GB/s")),
        unit="GB/s",
        cases=("stream",),
    )


def _panels(
    samples: Sequence[Sample], label: Callable[[Record], str], level: tuple[str, float] | None
) -> list[Panel]:
    content = []
    for memory, members in _by_memory(samples).items():
        members.sort(key=lambda sample: KERNELS.index(sample.record.metric))
        lines = scaled(
            lines_by_label(members, label, threads_of, megabytes_per_second), lambda _: 1e-3
        )
        content.append(Panel(memory_name(memory), lines, level=level))
    return content


class PlacementOfThreads(Plot):
    """STREAM over threads, close compared with spread (P2, figures 1 to 5)."""

    title = N_("P2, figures 1 to 5: STREAM by placement of threads")
    suite = "p2"
    position = 20

    def wants(self, record: Record) -> bool:
        """Return whether `record` is a STREAM kernel with close or spread threads."""
        return is_stream(record) and record.metric in KERNELS and record.placement in PLACEMENTS

    def draw(self, samples: Sequence[Sample], context: PlotContext) -> list[Drawing]:
        """Draw a plot for each kernel up to one thread per core, and one up to two per core.

        Only modes with close threads are drawn. The second plot has close threads only.
        """
        close = [sample for sample in samples if sample.record.placement == "close"]
        machine = machine_of(samples, context)
        cores = machine.cores if machine else None
        tiles = machine.tiles if machine else 0
        modes = {sample.record.mode for sample in close}
        samples = [sample for sample in samples if sample.record.mode in modes]
        drawings: list[Drawing] = []
        for number, kernel in enumerate(KERNELS, start=1):
            of_kernel = [
                sample
                for sample in samples
                if sample.record.metric == kernel
                and (cores is None or (threads_of(sample.record) or 0) <= cores)
            ]
            if {sample.record.placement for sample in of_kernel} != set(PLACEMENTS):
                continue
            level = (_("{tiles} tiles").format(tiles=tiles), tiles + 0.5) if tiles else None
            title = _("P2, figure {figure}: STREAM {kernel}, close compared with spread").format(
                figure=number, kernel=kernel.title()
            )
            chart = _chart(f"p2-{kernel}", title)
            drawings += draw_panels(
                chart, _panels(of_kernel, lambda r: r.placement, level), of_kernel, context
            )
        if cores and any((threads_of(sample.record) or 0) > cores for sample in close):
            level = (_("{cores} cores").format(cores=cores), cores + 0.5)
            chart = _chart(
                "p2-threads", _("P2, figure 5: STREAM with up to two threads per core, close")
            )
            content = _panels(close, lambda r: r.metric.title(), level)
            drawings += draw_panels(chart, content, close, context)
        return drawings


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
