"""Reads ``binding.json``: the CPUs that each rank and thread of a step was bound to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from proofmark.site.node.cpu import cpu_list


@dataclass(frozen=True)
class Bound:
    """What a rank noted before it became the program; CPUs and memory as the kernel tells.

    ``memory`` is the policy as in ``numa_maps``: ``default``, ``bind:1``; empty if not told.
    """

    rank: int
    host: str
    cpus: str
    memory: str = ""


@dataclass(frozen=True)
class Thread:
    """What the OpenMP runtime told of one thread when a team started."""

    thread: int
    host: str
    cpus: str


UNREADABLE = (ValueError, KeyError, TypeError, AttributeError)
"""What reading a damaged file of a step raises."""


DAMAGED = "when.json, binding.json or rc is damaged"


def read_binding(entries: Any) -> tuple[list[Bound], list[Thread]]:
    """Check the content of a ``binding.json``.

    Raises:
        ValueError, KeyError or TypeError: it is damaged.
    """
    ranks: list[Bound] = []
    threads: list[Thread] = []
    for entry in entries:
        host, cpus = str(entry["host"]), str(entry["cpus"])
        cpu_list(cpus)
        if "thread" in entry:
            threads.append(Thread(int(entry["thread"]), host, cpus))
        else:
            ranks.append(Bound(int(entry["rank"]), host, cpus, str(entry.get("memory", ""))))
    return ranks, threads
