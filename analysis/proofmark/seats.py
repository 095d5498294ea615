"""Where ranks and threads should sit, and whether they did, as the nodes themselves noted it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from proofmark.declared import StandIns
from proofmark.layout import Cpus
from proofmark.node.cpu import cpu_list
from proofmark.plan import Step


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


def real_seats(step: Step, stand_ins: StandIns | None) -> list[Cpus]:
    """Return each rank's node and CPUs of the machine; they are the plan's on real nodes."""
    if stand_ins is None:
        return list(step.cpus)
    return [
        (node, tuple(stand_ins.cpu(virtual, node) for virtual in cpus)) for node, cpus in step.cpus
    ]


def real_domains(step: Step, stand_ins: StandIns | None) -> list[int]:
    """Return the NUMA nodes of the machine from which memory is to come; empty: any."""
    if stand_ins is None:
        return step.membind
    return sorted({stand_ins.domain(virtual) for virtual in step.membind})


def seat_trouble(
    step: Step,
    hosts: Sequence[str],
    ranks: Sequence[Bound],
    threads: Sequence[Thread],
    stand_ins: StandIns | None = None,
) -> str:
    """Return what sat elsewhere than asked, or an empty string.

    `hosts` are the nodes of the measurement: the step's, or those of one instance.
    """
    if not step.cpus:
        return ""
    if len(ranks) != len(step.cpus):
        return f"{len(ranks)} of {len(step.cpus)} ranks said where they ran"
    seats = real_seats(step, stand_ins)
    asked_memory = set(real_domains(step, stand_ins))
    seen: dict[int, str] = {}
    for entry in sorted(ranks, key=lambda bound: bound.rank):
        node, cpus = seats[entry.rank] if entry.rank < len(seats) else (-1, ())
        if cpu_list(entry.cpus) != set(cpus):
            return f"rank {entry.rank} ran on CPUs {entry.cpus}, asked for {_listed(cpus)}"
        if wrong := _host_trouble(entry, node, hosts, seen):
            return wrong
        policy, _, domains = entry.memory.partition(":")
        if asked_memory and (policy != "bind" or cpu_list(domains) != asked_memory):
            found = entry.memory or "an unknown policy"
            return (
                f"rank {entry.rank} had memory by {found}, asked for bind:{_listed(asked_memory)}"
            )
    return _thread_trouble(seats[0][1], threads) if step.launch == "threads" else ""


def _host_trouble(entry: Bound, node: int, hosts: Sequence[str], seen: dict[int, str]) -> str:
    """Compare a rank's host with the plan's.

    A host of another name than any of the plan's (an alias, localhost) has to be one node all the
    same: of all ranks of that node, and of no other's.
    """
    names = [host.partition(".")[0] for host in hosts]
    found = entry.host.partition(".")[0]
    asked = names[node] if 0 <= node < len(names) else "no node"
    expected = seen.setdefault(node, found)
    twice = any(other == found for index, other in seen.items() if index != node)
    if (found in names and found != asked) or found != expected or twice:
        return f"rank {entry.rank} ran on {found}, asked for {asked}"
    return ""


def _thread_trouble(cpus: Sequence[int], threads: Sequence[Thread]) -> str:
    """Compare what OpenMP told; of a single thread it tells nothing, that is the rank's."""
    if len(cpus) < 2:
        return ""
    told: Mapping[int, set[str]] = {number: set() for number in range(len(cpus))}
    for entry in threads:
        if entry.thread >= len(cpus):
            return f"thread {entry.thread} of {len(cpus)} was not asked for"
        told[entry.thread].add(entry.cpus)
    if silent := [number for number, found in told.items() if not found]:
        return f"{len(cpus) - len(silent)} of {len(cpus)} threads said where they ran"
    for number, found in told.items():
        for text in sorted(found):
            if cpu_list(text) != {cpus[number]}:
                return f"thread {number} ran on CPUs {text}, asked for {cpus[number]}"
    return ""


def _listed(numbers: Sequence[int] | set[int]) -> str:
    return ",".join(map(str, sorted(set(numbers))))
