"""The hardware threads of a node and its cores, from the sections ``cpus`` and ``allowed``."""

from __future__ import annotations

from collections.abc import Mapping

from proofmark.site.node.cpu import cpu_list, cpu_mask
from proofmark.site.node.probe_text import Stream
from proofmark.site.node.unread import Unread, unread_lines

CPUS = "cpus"
"""The section with package, core and siblings of each processor."""


def read_threads(stream: Stream, unread: Unread) -> dict[int, tuple[int, object]]:
    """Return the package and an identifier of the core, by processor number.

    A processor whose package cannot be read is in package 0; one of unknown core is a core.

    Raises:
        BadInput: a line does not start with the number of a processor.
    """
    threads: dict[int, tuple[int, object]] = {}
    for line in stream.lines(CPUS):
        number, *words = line.split() or [""]
        if not (number.isascii() and number.isdecimal() and len(number) < 8):
            raise stream.wrong(CPUS, repr(line), "'processor package core siblings'")
        package, core, siblings = words if len(words) == 3 else ("", number, "-")
        socket = unread.read(f"{CPUS}.cpu{number} package", package, int) or 0
        same_core: object = (
            None
            if siblings == "-"
            else unread.read(f"{CPUS}.cpu{number} siblings", siblings, cpu_list)
        )
        if not same_core and unread.read(f"{CPUS}.cpu{number} core", core, int) is None:
            core = number
        threads[int(number)] = socket, same_core or (socket, core)
    return threads


def usable_cpus(stream: Stream, unread: Unread, every: frozenset[int]) -> frozenset[int]:
    """Return the processors of `every` that are in the probe's cpuset.

    Raises:
        BadInput: the kernel printed a cpuset that cannot be read.
    """
    allowed = stream.pairs("allowed")
    texts = {key: allowed[key] for key in ("Cpus_allowed_list", "Cpus_allowed") if key in allowed}
    for key, text in texts.items():
        reader = cpu_list if key == "Cpus_allowed_list" else cpu_mask
        cpus = unread.read(f"allowed.{key}", text, reader)
        if cpus is not None:
            return cpus & every
    if texts:
        raise stream.wrong("allowed", "; ".join(unread_lines(unread.values)), "0-3,8")
    return every


def cores_of(
    threads: Mapping[int, tuple[int, object]], usable: frozenset[int]
) -> dict[object, list[int]]:
    """Return the processors of `usable` by the identifier of their core."""
    cores: dict[object, list[int]] = {}
    for cpu in usable:
        cores.setdefault(threads[cpu][1], []).append(cpu)
    return cores
