"""What the back ends of the kit ran with (``data/tried.yml``), and what a site uses without it."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

from proofmark.cases.vocabulary import Text
from proofmark.common.strict_model import StrictModel
from proofmark.common.yaml_models import shipped_data
from proofmark.site.partition import Partition

Key = Literal["scheduler", "launch.launcher", "firmware.back_end", "scratch.type"]


class Tried(StrictModel):
    """A back end of the kit that ran with the real thing.

    Attributes:
        key: the key of the partition that names the back end.
        name: its value.
        ran: the real scheduler, MPI or file system, with its version if it is known.
        test: what ran it, a file below ``tests/`` or ``docs/tested.md``.
    """

    key: Key
    name: Text
    ran: Text
    test: Text


@lru_cache(maxsize=1)
def tried() -> tuple[Tried, ...]:
    """Return the table."""
    return shipped_data("proofmark.site", "tried.yml", tuple[Tried, ...])


def untried(partition: Partition) -> dict[str, str]:
    """Return the back ends of `partition` that never ran with the real thing: name by key.

    A launcher that the MPI of the programs selects has been tried. A file system that others mount
    needs no back end.
    """
    used: dict[Key, str] = {"scheduler": partition.scheduler}
    if partition.launch.launcher:
        used["launch.launcher"] = partition.launch.launcher
    if partition.firmware:
        used["firmware.back_end"] = partition.firmware.back_end
    if partition.scratch.mount and partition.scratch.type:
        used["scratch.type"] = partition.scratch.type
    ran = {(each.key, each.name) for each in tried()}
    return {key: name for key, name in used.items() if (key, name) not in ran}
