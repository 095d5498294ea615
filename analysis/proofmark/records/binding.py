"""Compares the planned binding of ranks, threads and memory with the reported one.

A planned node may report its own name, and the names that the site declares for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set

from proofmark.cases.vocabulary import MEMORY
from proofmark.common.files import parse_json
from proofmark.common.host_names import (
    HostTable,
    ReportedNames,
    canonical,
    domain_of,
    same_host,
    short_name,
)
from proofmark.common.message import NOTHING, Message
from proofmark.common.nodesets import folded
from proofmark.plan.plan import Step, host_numa_domains, host_rank_cpus
from proofmark.runs.attempts import UNREADABLE, BindingReport, damage, read_binding
from proofmark.site.execution import HostCpus
from proofmark.site.node.cpu import cpu_list, cpu_list_text


class HostNames:
    """The names that nodes may report.

    Args:
        aliases: further names of nodes, by node. Several nodes of one machine may share its name.
        hosts: all hosts of the site: a name that several of them may report proves none of them.
        domain: the domain that the hosts of the run share; None: it is not known.
    """

    def __init__(
        self,
        aliases: Mapping[str, Iterable[str]] | None = None,
        hosts: Iterable[str] = (),
        domain: str | None = None,
    ) -> None:
        self._domain = domain
        self._aliases = {node: tuple(names) for node, names in (aliases or {}).items()}
        self._table = HostTable({**{host: () for host in hosts}, **self._aliases})
        self._planned: dict[tuple[str, ...], ReportedNames] = {}

    def accepts(self, node: str, reported: str) -> bool:
        """Return whether `node` of the plan may report the name `reported`."""
        if node == reported:
            return True
        known = self._table.find(node)
        aliases = self._aliases.get(known or node, ())
        names = map(canonical, (node, *aliases))
        domain = domain_of(reported)
        if domain and self._domain not in (None, domain) and canonical(reported) not in names:
            return False
        if known is None:
            return same_host(node, reported)
        aliased = any(same_host(alias, reported) for alias in aliases)
        return aliased or self._table.find(reported) == known

    def node(self, planned: Sequence[str], reported: str) -> str:
        """Return the node of `planned` that reports a name; `reported` if none or several may."""
        nodes = tuple(planned)
        if nodes not in self._planned:
            self._planned[nodes] = ReportedNames({node: self._names_of(node) for node in nodes})
        return self._planned[nodes].node(reported)

    def wrong_host(self, nodes: Sequence[str], reported: Iterable[str]) -> Message:
        """Return which of the `reported` names is not one of the planned `nodes`, or `NOTHING`."""
        names = list(dict.fromkeys(reported))
        if len(nodes) * len(names) <= 4:  # the usual case; the table costs more
            wrong = [name for name in names if not any(self.accepts(node, name) for node in nodes)]
        else:
            planned = HostTable({node: self._names_of(node) for node in nodes})
            found = {name: planned.find(name) for name in names}
            wrong = [
                name for name, node in found.items() if not node or not self.accepts(node, name)
            ]
        return Message("wrong-host", node=wrong[0], nodes=folded(nodes)) if wrong else NOTHING

    def _names_of(self, node: str) -> tuple[str, ...]:
        return self._aliases.get(self._table.find(node) or node, ())


class BindingCheck:
    """Checks whether ranks and threads of one step were bound as planned, node by node.

    Most nodes report the same binding except for host names. A binding that passed is cached with
    host names removed; one that failed is always checked again.
    """

    def __init__(
        self, step: Step, host_cpus: HostCpus | None, names: HostNames | None = None
    ) -> None:
        self._step, self._host_cpus = step, host_cpus
        self.names = names or HostNames()
        self._passed: set[bytes | tuple[bytes, ...] | None] = set()

    def invalid_reason(self, hosts: Sequence[str], binding: bytes) -> Message:
        """Return how `binding`, reported from `hosts`, differs from the plan, or `NOTHING`.

        Args:
            binding: the content of ``binding.json``.
        """
        accepts = self.names.accepts
        names = [name if accepts(host, name := short_name(host)) else host for host in hosts]
        anonymous = _anonymous(names, binding)
        if anonymous in self._passed:
            return NOTHING
        key = None if anonymous is None else tuple(sorted(_entries(anonymous)))
        if key in self._passed:
            return NOTHING
        try:
            report = read_binding(parse_json(binding))
        except UNREADABLE as error:
            return damage("binding.json", error)
        reason = binding_error(self._step, hosts, report, self._host_cpus, self.names)
        own_names = {*names} >= {*report.all_hosts}
        if not reason and own_names and anonymous is not None and len(self._passed) < _CACHE_SIZE:
            self._passed |= {anonymous, key}
        return reason


_CACHE_SIZE = 1000


def _entries(content: bytes) -> list[bytes]:
    """Return the number of hosts and each entry as step.sh writes it; other content undivided."""
    head, tail = b"[\n{", b"}\n]\n"
    hosts, content = content[:1], content[1:]
    between = content.count(b"\n") - 3
    plain = content.startswith(head) and content.endswith(tail) and b"[" not in content[1:]
    if not plain or content.count(b"}\n,{") != between:
        return [hosts, content]
    return [hosts, *content[len(head) : -len(tail)].split(b"}\n,{")]


def _anonymous(hosts: Sequence[str], binding: bytes) -> bytes | None:
    if b"@" in binding or len(hosts) > 2:
        return None
    names = [host.encode() for host in hosts]
    for number, name in enumerate(names):
        binding = binding.replace(b'"%s"' % name, b'"@%d"' % number)
    if any(name in binding for name in names):
        return None
    return b"%d%s" % (len(hosts), binding)


def binding_error(
    step: Step,
    hosts: Sequence[str],
    report: BindingReport,
    host_cpus: HostCpus | None = None,
    names: HostNames | None = None,
) -> Message:
    """Return the first difference between the planned and the reported binding, or `NOTHING`.

    Args:
        hosts: the nodes of the measurement: those of the step, or of one instance.
        host_cpus: the CPUs of the machine below virtual nodes.
    """
    names = names or HostNames()
    counts = Counter(entry.rank for entry in report.ranks)
    if repeated := [rank for rank, count in sorted(counts.items()) if count > 1]:
        return Message("rank-twice", rank=repeated[0], times=counts[repeated[0]])
    if wrong := names.wrong_host(hosts, report.all_hosts):
        return wrong
    if not step.cpus:
        return NOTHING
    if len(report.ranks) != len(step.cpus):
        return Message("ranks-silent", reported=len(report.ranks), ranks=len(step.cpus))
    planned_ranks = host_rank_cpus(step, host_cpus)
    domains = set(host_numa_domains(step, host_cpus))
    for entry in sorted(report.ranks, key=lambda entry: entry.rank):
        rank, memory = entry.rank, entry.memory
        if not 0 <= rank < len(planned_ranks):
            return Message("rank-unplanned", rank=rank, ranks=len(planned_ranks))
        planned = planned_ranks[rank]
        if entry.cpus.cpus != planned.as_reported().cpus:
            found, wanted = cpu_list_text(entry.cpus.cpus), _listed(planned.cpus)
            return Message("rank-cpus", rank=rank, found=found, planned=wanted)
        host = report.hosts[entry.cpus.node]
        if not names.accepts(hosts[planned.node], host):
            return Message("rank-host", rank=rank, node=host, planned=hosts[planned.node])
        if domains and not _is_bound(memory, domains):
            wanted = f"bind:{_listed(domains)}"
            return Message("rank-memory", rank=rank, found=memory or "unknown", planned=wanted)
        if memory.startswith("bind:") and not domains and MEMORY in step.parameters:
            wanted = "memory of all domains"
            return Message("rank-memory", rank=rank, found=memory, planned=wanted)
        if step.bind_threads and (wrong := _own_cpus_error(rank, planned.cpus, report)):
            return wrong
    return _thread_error(planned_ranks[0].cpus, report) if step.launch == "threads" else NOTHING


def _own_cpus_error(rank: int, cpus: Sequence[int], report: BindingReport) -> Message:
    """Compare the CPUs that threads of an MPI rank have for themselves with its planned CPUs."""
    found = report.own_cpus.get(rank, frozenset())
    planned = _listed(cpus)
    if missing := set(cpus) - found:
        return Message("rank-threads-missing", rank=rank, missing=_listed(missing), planned=planned)
    if others := found - set(cpus):
        return Message("rank-threads", rank=rank, found=_listed(others), planned=planned)
    return NOTHING


def _is_bound(memory: str, domains: Set[int]) -> bool:
    """Return whether a reported memory policy takes memory from exactly these NUMA domains."""
    policy, _, reported = memory.partition(":")
    try:
        return policy == "bind" and cpu_list(reported) == domains
    except ValueError:
        return False


def _thread_error(cpus: Sequence[int], report: BindingReport) -> Message:
    """Return the first difference between the planned CPU of a thread and its report.

    OpenMP reports nothing if there is one thread only.
    A runtime before OpenMP 5.0 (GCC 8) reports no thread. Then the report of the kernel counts.
    """
    if len(cpus) < 2:
        return NOTHING
    if not report.threads and report.own_cpus:
        return _own_cpus_error(0, cpus, report)
    reported: dict[int, set[str]] = {number: set() for number in range(len(cpus))}
    for entry in report.threads:
        if not 0 <= entry.thread < len(cpus):
            return Message("thread-unplanned", thread=entry.thread, threads=len(cpus))
        reported[entry.thread].add(entry.cpus)
    if missing := [number for number, texts in reported.items() if not texts]:
        seen = len(cpus) - len(missing)
        return Message("threads-silent", reported=seen, threads=len(cpus))
    for number, texts in reported.items():
        for text in sorted(texts):
            if cpu_list(text) != {cpus[number]}:
                return Message("thread-cpus", thread=number, found=text, planned=cpus[number])
    return NOTHING


def _listed(numbers: Iterable[int]) -> str:
    return ",".join(map(str, sorted(set(numbers))))
