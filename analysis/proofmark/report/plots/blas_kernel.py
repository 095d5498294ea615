"""HPL Rmax and the DGEMM rate, its upper bound, for each kernel that the BLAS used."""

from __future__ import annotations

from collections.abc import Sequence

from proofmark.common.translation import N_, _, translated
from proofmark.judge.headline import CONTRACT, EXPECTED
from proofmark.records.read import Record
from proofmark.report.drawing.charts import LIMIT_NAMES, Bars, Drawing, draw_bars
from proofmark.report.drawing.series import Sample, Series, gigaflops, lines_by_settings, parameter
from proofmark.report.plot import Plot, PlotContext
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
