"""HPL beside the DGEMM that bounds it, by the kernel that the BLAS used."""

from __future__ import annotations

from collections.abc import Sequence

from proofmark.records.read import Record
from proofmark.report.drawing.charts import Bars, Drawing, bars
from proofmark.report.drawing.series import Sample, Series, lines_of, parameter
from proofmark.report.drawing.ticks import gigaflops
from proofmark.report.plot import Context, Plot
from proofmark.report.text import number, sentence

HPL = ("rmax", "hpl_rmax")
DGEMM = "dgemm_star"
VARIANT = "blas_kernel"


def whole_rate(record: Record) -> float | None:
    """Return the factor to GFlop/s of all ranks: DGEMM is printed per rank."""
    factor = gigaflops(record)
    if factor is None or record.metric != DGEMM:
        return factor
    ranks = parameter(record, "ranks")
    return None if ranks is None else factor * ranks


def _rates(points: Sequence[Sample]) -> dict[str, float]:
    """Return GFlop/s by choice; of several settings of one choice the best stands."""
    choices = dict.fromkeys(str(point.record.parameters[VARIANT]) for point in points)
    rates: dict[str, float] = {}
    for choice in choices:
        chosen = [point for point in points if point.record.parameters[VARIANT] == choice]
        lines: list[Series] = lines_of(chosen, lambda _: 0.0, (), whole_rate)
        found = [spot.y for line in lines for spot in line.spots]
        if found:
            rates[choice] = max(found)
    return rates


class BlasKernels(Plot):
    """HPL beside the DGEMM that bounds it, by the kernel that the BLAS used."""

    title = "HPL and DGEMM by BLAS kernel"
    position = 60

    def wants(self, record: Record) -> bool:
        """Rates of HPL and of DGEMM on all ranks, where the kernel was a choice of the run."""
        return (
            record.metric in (*HPL, DGEMM)
            and VARIANT in record.parameters
            and gigaflops(record) is not None
        )

    def draw(self, points: Sequence[Sample], context: Context) -> list[Drawing]:
        """Draw two bars a kernel, and Rpeak as a line where it is known."""
        hpl = _rates([point for point in points if point.record.metric in HPL])
        dgemm = _rates([point for point in points if point.record.metric == DGEMM])
        choices = list(dict.fromkeys([*hpl, *dgemm]))
        names = [context.chosen.get((VARIANT, choice), "") for choice in choices]
        groups = [
            f"{choice}\n{name}" if name else choice
            for choice, name in zip(choices, names, strict=True)
        ]
        series = [
            Bars("HPL Rmax", [hpl.get(choice) for choice in choices]),
            Bars("DGEMM × ranks", [dgemm.get(choice) for choice in choices]),
        ]
        peak = context.peak_gflops
        level = None if peak is None else (f"Rpeak nominal {number(peak)} (information)", peak)
        text = sentence(
            f"{group.replace(chr(10), ', ')}: HPL {number(hpl.get(choice))} GFlop/s, "
            f"DGEMM × ranks {number(dgemm.get(choice))} GFlop/s"
            for group, choice in zip(groups, choices, strict=True)
        )
        figure = bars(groups, series, "rate in GFlop/s", level)
        title = "HPL and DGEMM by the kernel of the BLAS"
        return [Drawing("blas-kernel", title, text, figure, points)]
