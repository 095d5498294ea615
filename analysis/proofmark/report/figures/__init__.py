"""The figures of a report: one small module each, from records to a drawing.

A new figure is a module with a `KIND`, and its line in `KINDS`.
"""

from __future__ import annotations

from proofmark.report.figures import blas_kernel, collectives, file_size, point_to_point
from proofmark.report.figures.kind import Kind

KINDS: tuple[Kind, ...] = (
    blas_kernel.KIND,
    file_size.KIND,
    point_to_point.KIND,
    collectives.KIND,
)
"""All kinds of figures, in the order of the report."""
