"""The plots of the kit: subclasses of `proofmark.report.plot.Plot`, by their names."""

from __future__ import annotations

PLUGINS = {
    "blas_kernel": "core_plots:BlasKernels",
    "collectives": "core_plots:Collectives",
    "file_size": "core_plots:FileSize",
    "point_to_point": "core_plots:PointToPoint",
}
