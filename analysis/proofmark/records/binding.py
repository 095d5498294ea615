"""Where ranks and threads should sit, and whether they did, as the nodes themselves noted it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from proofmark.common.nodesets import short_name
from proofmark.plan.host_cpus import host_numa_domains, host_rank_cpus
from proofmark.plan.plan import Step
from proofmark.runs.binding_file import DAMAGED, UNREADABLE, Bound, Thread, read_binding
from proofmark.site.execution import HostCpuMap
from proofmark.site.node.cpu import cpu_list


class BindingCheck:
    """Checks whether ranks and threads of one step were bound as planned, node by node.

    Most nodes report the same binding except for host names. A binding that passed is cached with
    host names removed; one that failed is always checked again.
    """

    def __init__(self, step: Step, host_cpus: HostCpuMap | None) -> None:
        self._step, self._stand_ins = step, host_cpus
        self._right: set[bytes | tuple[bytes, ...] | None] = set()

    def trouble(self, hosts: Sequence[str], binding: bytes) -> str:
        """Return what sat elsewhere than asked on `hosts`, or an empty string."""
        plain = _anonymous(hosts, binding)
        if plain in self._right:
            return ""
        key = None if plain is None else tuple(sorted(_entries(plain)))
        if key in self._right:
            return ""
        try:
            found = read_binding(json.loads(binding))
        except UNREADABLE:
            return DAMAGED
        trouble = binding_error(self._step, hosts, *found, self._stand_ins)
        if not trouble and plain is not None and len(self._right) < _REMEMBERED:
            self._right |= {plain, key}
        return trouble


_REMEMBERED = 1000


def _entries(content: bytes) -> list[bytes]:
    """Return how many hosts, and the entries as step.sh writes them; else all of it as one."""
    head, tail = b"[\n{", b"}\n]\n"
    hosts, content = content[:1], content[1:]
    between = content.count(b"\n") - 3
    plain = content.startswith(head) and content.endswith(tail) and b"[" not in content[1:]
    if not plain or content.count(b"}\n,{") != between:
        return [hosts, content]
    return [hosts, *content[len(head) : -len(tail)].split(b"}\n,{")]


def _anonymous(hosts: Sequence[str], binding: bytes) -> bytes | None:
    """Return a binding with hosts by number; None where a name stands elsewhere as well."""
    if b"@" in binding or len(hosts) > 2:
        return None
    names = [short_name(host).encode() for host in hosts]
    for number, name in enumerate(names):
        binding = binding.replace(b'"%s"' % name, b'"@%d"' % number)
    if any(name in binding for name in names):
        return None
    return b"%d%s" % (len(hosts), binding)


def binding_error(
    step: Step,
    hosts: Sequence[str],
    ranks: Sequence[Bound],
    threads: Sequence[Thread],
    host_cpus: HostCpuMap | None = None,
) -> str:
    """Return what sat elsewhere than asked, or an empty string.

    `hosts` are the nodes of the measurement: the step's, or those of one instance.
    """
    if not step.cpus:
        return ""
    if len(ranks) != len(step.cpus):
        return f"{len(ranks)} of {len(step.cpus)} ranks said where they ran"
    seats = host_rank_cpus(step, host_cpus)
    asked_memory = set(host_numa_domains(step, host_cpus))
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
    names = [short_name(host) for host in hosts]
    found = short_name(entry.host)
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
