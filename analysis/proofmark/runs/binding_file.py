"""Reads ``binding.json``: the binding that each rank and thread of a step reported."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from proofmark.common.message import Message
from proofmark.common.nodesets import check_name
from proofmark.common.text import one_line
from proofmark.plan.rank_cpus import RankCpus
from proofmark.site.node.cpu import cpu_list


@dataclass(frozen=True)
class RankReport:
    """The binding that a rank read from its kernel before it became the program.

    Attributes:
        rank: number of the rank, from 0.
        cpus: its CPUs, on a node of `BindingReport.hosts`.
        memory: the memory policy as in ``numa_maps``: ``default``, ``bind:1``; empty if the rank
            did not report it.
    """

    rank: int
    cpus: RankCpus
    memory: str = ""


@dataclass(frozen=True)
class ThreadReport:
    """The CPUs of one thread, as the OpenMP runtime printed them when a team started."""

    thread: int
    host: str
    cpus: str


@dataclass(frozen=True)
class BindingReport:
    """The content of ``binding.json``.

    Attributes:
        hosts: the hosts of the ranks, each once.
        own_cpus: the CPUs that a thread is bound to alone, as the kernel reports them, by rank.
    """

    hosts: list[str]
    ranks: list[RankReport]
    threads: list[ThreadReport]
    own_cpus: dict[int, frozenset[int]] = field(default_factory=dict)

    @property
    def all_hosts(self) -> list[str]:
        """The hosts of the ranks and threads, each once."""
        return list(dict.fromkeys([*self.hosts, *(thread.host for thread in self.threads)]))


UNREADABLE = (ArithmeticError, AttributeError, KeyError, TypeError, ValueError)
"""The exceptions of reading a damaged file of a step."""


def damage(name: str, error: Exception) -> Message:
    """Return the reason why an execution with the unreadable file `name` is INVALID."""
    problem = error.strerror if isinstance(error, OSError) else str(error)
    if isinstance(error, KeyError):
        problem = f"no key {problem}"
    shown = one_line((problem or type(error).__name__)[:200])
    return Message("file-damaged", file=name, problem=shown)


def read_binding(entries: Any) -> BindingReport:
    """Return the content of a ``binding.json``.

    Raises:
        ValueError, KeyError or TypeError: it is damaged.
    """
    hosts: dict[str, int] = {}
    ranks: list[RankReport] = []
    threads: list[ThreadReport] = []
    own_cpus: dict[int, frozenset[int]] = {}
    for entry in entries:
        host, text = check_name(str(entry["host"])), str(entry["cpus"])
        cpus = cpu_list(text)
        if "thread" in entry:
            threads.append(ThreadReport(int(entry["thread"]), host, text))
        elif "threads_of" in entry:
            own_cpus[int(entry["threads_of"])] = frozenset(cpus)
        else:
            node = hosts.setdefault(host, len(hosts))
            rank_cpus = RankCpus(node, tuple(sorted(cpus)))
            ranks.append(RankReport(int(entry["rank"]), rank_cpus, str(entry.get("memory", ""))))
    return BindingReport(list(hosts), ranks, threads, own_cpus)
