"""The figures of a report: one small module each, from records to a drawing.

A new figure is a module with a `KIND`, and its line in `KINDS`.
"""

from __future__ import annotations

from proofmark.report.plots import (
    blas_kernel,
    collectives,
    file_size,
    p1_hpl,
    p1_ior,
    p1_stream,
    p2_threads,
    p3_bandwidth,
    p4_btio,
    p5_placements,
    point_to_point,
)
from proofmark.report.plots.kind import Kind

KINDS: tuple[Kind, ...] = (
    p1_hpl.KIND,
    p1_stream.KIND,
    p1_ior.KIND,
    p2_threads.KIND,
    *p3_bandwidth.KINDS,
    p4_btio.KIND,
    p5_placements.KIND,
    blas_kernel.KIND,
    file_size.KIND,
    point_to_point.KIND,
    collectives.KIND,
)
"""All kinds of figures, in the order of the report."""
