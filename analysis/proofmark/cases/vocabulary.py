"""The names of axes and parameters that the kit knows, and the forms of names in case files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

SUITES_FILE = "suites.yml"
AXES = ("nodes", "ranks", "threads", "placement", "pus_per_core")
"""Sweep axes that every case may use, also if no template of the case contains them."""
Measured = Literal["together", "alone"]
MEASURED = "measured"
"""A parameter of the figures of rounds of pairs. Its values are `TOGETHER` and `ALONE`."""
TOGETHER: Measured = "together"
"""All pairs of a round measured at the same time. They may share links."""
ALONE: Measured = "alone"
"""No two pairs that measured at the same time share a switch of the nearest level."""
MemoryKind = Literal["ddr", "mcdram", "hbm", "cxl", "nvm", "gpu", "other"]
MEMORY, DISTANCE, FILE_SYSTEM = "memory", "distance", "file_system"
RESOLVED_AXES = (MEMORY, DISTANCE, FILE_SYSTEM)
"""Sweep axes that every case may use, and parameters of the step. The plan replaces a kind of
memory by NUMA nodes, a switch level by two nodes at this distance, and the name of a file system by
its scratch directory."""
STORAGE_TARGET = "storage_target"
DOMAIN, RAIL = "domain", "rail"
PART_AXES = (DOMAIN, RAIL)
"""Sweep axes that every case may use: the part of a node that a step uses, a NUMA domain
(``numa-3``), a socket (``socket-1``) or a rail of the network (``mlx5_0:1``). The ranks are on the
cores of this part, or of the NUMA domain of the rail."""
ALL_RAILS = "all"
"""The value of `RAIL` of a step that uses all rails: its ranks are on all NUMA domains."""
LAYOUT_AXES = ("stripe_count", "stripe_bytes", STORAGE_TARGET)
"""Sweep axes that every case may use: the layout of the files in the scratch folder of the step. A
file system that cannot set one leaves out the point. The value `UNSET` keeps the layout."""
BLAS_KERNEL = "blas_kernel"
"""Sweep axis that every case may use: the kernel that the BLAS of the programs uses."""
NAMING_AXES = ("test", "clients")
"""Sweep axes that every case may use, and that are only parameters of the figures: the name of a
use in a suite, and the number of nodes that run the step at the same time, each for itself. Figures
in which they differ are never compared."""
DATE = "date"
"""The label of outputs with the day of a measurement. Figures of other days are no repeats."""
UNSET = "default"
"""The value of a layout axis that changes nothing."""
MESSAGE_SIZE = "bytes"
"""The parameter of a figure that is the size of its messages."""
LOAD, SENSOR = "load", "sensor"
"""The parameter of a figure that was measured beside a load: the case of the load. The parameter of
a figure of a sensor: what measured it."""
PRINTED = frozenset({"stdout", "stderr"})
STEP_FILES = frozenset(
    {"run.sh", "rc", "rc.new", "started", "timed_out", "when.json", "binding", "binding.json"}
    | {"hostfile", "copies.json", "outputs.sha256", "scratch.json"}
    | {"scratch.seen", "scratch.seen.new", "scratch.json.new", "scratch.made"}
    | {"layout.txt"}
    | {"noise", "noise.json", "disturbed", "telemetry.jsonl"}
    | {"load", "load.json", "load.messages", "load.failed"}
)
"""Files that the kit itself writes into the folder of a step, besides the output of the program."""

Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
Slug = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$")]
FileName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
Braces = Annotated[str, Field(pattern=r"^\{[^{}]+\}$")]
Variable = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
Text = Annotated[str, Field(min_length=1)]
Scalar = str | int | float
ParameterValues = Mapping[str, Scalar]
Axis = Scalar | list[Scalar]
Sweep = dict[Name, Axis]
Parameters = dict[str, Scalar]
"""Values by the name of an axis or of another parameter."""

KeyFigure = Literal[
    "hpl",
    "dgemm",
    "triad",
    "latency",
    "bandwidth",
    "message_rate",
    "write",
    "read",
    "cached_write",
    "cached_read",
    "metadata",
]
"""The figures with which a report begins. Of a sweep it is the best point, on the worst node.

The cached ones are of files that the memory of a node holds.
"""
