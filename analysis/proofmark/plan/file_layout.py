"""The layout of the files of a step: its stripes, their size, and the storage target."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from proofmark.cases.vocabulary import FILE_SYSTEM, LAYOUT_AXES, STORAGE_TARGET, UNSET
from proofmark.common.errors import InputError, bad_input
from proofmark.common.shared_models import StrictModel
from proofmark.plan.placement import LackingError
from proofmark.site.file_systems import layout_axes
from proofmark.site.partition import Partition


class FileLayout(StrictModel):
    """The layout that the scratch folder of a step gets before its program starts.

    Attributes:
        kind: the type of the file system, a key of ``file_systems.yml``.
        values: the requested values by axis (`LAYOUT_AXES`).
    """

    kind: str
    values: dict[str, int]


def file_layout(point: Mapping[str, Any], partition: Partition, file: str) -> FileLayout | None:
    """Return the layout that a point of a sweep requests; None if it keeps that of the scratch.

    Raises:
        LackingError: the file system cannot set an axis.
        BadInput: a value is no whole number, or no storage target of the site.
    """
    wanted = {axis: point[axis] for axis in LAYOUT_AXES if point.get(axis, UNSET) != UNSET}
    if not wanted:
        return None
    kind = _kind(point, partition)
    possible = layout_axes(kind)
    for axis, value in wanted.items():
        if axis not in possible:
            found = f"{kind or 'the type of the scratch is not declared'}"
            accepted = ", ".join(possible) or "no layout that a step can set"
            raise LackingError(InputError(file, f"{axis} {value}", found, accepted))
        least = 0 if axis == STORAGE_TARGET else 1
        if not isinstance(value, int) or value < least:
            accepted = f"{UNSET}, or a whole number from {least}"
            raise bad_input(file, f"sweep.{axis}", repr(value), accepted)
    return FileLayout(kind=kind, values=wanted)


def _kind(point: Mapping[str, Any], partition: Partition) -> str:
    """Return the type of the file system of a point; empty if it is not declared."""
    declared = {each.name: each.type for each in partition.file_systems}
    return declared.get(point.get(FILE_SYSTEM, "")) or partition.scratch.type or ""


API, MPI_IO = "api", "MPIIO"
"""The sweep axis of the interface to files, and its value for MPI-IO: both are those of IOR."""

BT_IO = ("full", "simple")
"""The kinds of BT-IO that write by MPI-IO (NPB, README of BT-IO)."""

PRINTS_DRIVER = {"ROMIO_PRINT_HINTS": "1"}
"""With it, the first rank prints the hints of each file that it opens, and the driver."""


def driver_environment(point: Mapping[str, Any]) -> dict[str, str]:
    """Return the variables by which ROMIO prints its driver; empty without the API of MPI-IO."""
    return {**PRINTS_DRIVER} if point.get(API) == MPI_IO else {}


def writes_by_mpi_io(environment: Mapping[str, str], parameters: Mapping[str, Any]) -> bool:
    """Return whether a step with these variables and parameters writes by MPI-IO.

    IOR does by its API, BT-IO by its kind.
    """
    prints = not PRINTS_DRIVER.keys().isdisjoint(environment)
    return prints or parameters.get("subtype") in BT_IO
