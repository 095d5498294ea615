"""Exports the accepted state of the nodes as a configuration of LBNL Node Health Check."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import wrap

import numpy as np

from proofmark.common.files import write_whole
from proofmark.common.nodesets import folded, hosts_of, is_name
from proofmark.judge.ending import counts_line
from proofmark.judge.verdict import Verdict
from proofmark.packages.exports.nhc_checks import (
    MOUNTS,
    TOPICS,
    MemorySizes,
    NhcCheck,
    checks_of,
    match_expressions,
)
from proofmark.records.columns import Records
from proofmark.report.export import Export
from proofmark.runs.nodes import Node, nodes_of
from proofmark.runs.run import Run, reported_names, site_of

USUAL_MOUNT = 0.5
"""A mount that fewer nodes have is not checked: an automounter may mount it on demand."""
CHANGED = "differs between the jobs of the run"


@dataclass
class AcceptedState:
    """The checks of the accepted nodes.

    Attributes:
        checks: the nodes that pass each check, by their host names.
        unchecked: the nodes for which a fact has no check, by topic and reason.
        left_out: the nodes without an accepted state, by reason.
    """

    checks: dict[NhcCheck, set[str]] = field(default_factory=dict)
    unchecked: dict[tuple[str, str], set[str]] = field(default_factory=dict)
    left_out: dict[str, set[str]] = field(default_factory=dict)


class NodeHealthCheck(Export):
    """Writes the accepted state of the nodes as checks of LBNL Node Health Check."""

    content = "the accepted state of the nodes as checks of LBNL Node Health Check"

    def write(self, run: Run, records: Records, verdict: Verdict, folder: Path) -> list[Path]:
        """Write ``nhc.conf``; return no file if the run has no accepted state of a node."""
        state = accepted_state(run, verdict)
        if not state.checks:
            return []
        path = folder / "nhc.conf"
        write_whole(path, "".join(f"{line}\n" for line in _lines(run, verdict, state)))
        return [path]


def accepted_state(run: Run, verdict: Verdict) -> AcceptedState:
    """Return the checks that the accepted nodes of `run` pass.

    A node is accepted if it is not bad and has a valid figure. A check is part of its state if its
    facts at the start of each job of the run pass it.
    """
    state, site = AcceptedState(), site_of(run)
    nodes = nodes_of(run)
    aliases = reported_names(run, site)
    for name in run.plan.nodes():
        if not {name, *aliases.get(name, ())} & nodes.keys():
            state.left_out.setdefault("they reported no facts", set()).add(name)
    bad, sound = {node.host for node in verdict.bad.nodes}, _nodes_with_figures(verdict)
    accepted = {}
    for name, node in nodes.items():
        if reason := _refused(node, bad=name in bad, sound=name in sound):
            state.left_out.setdefault(reason, set()).add(name)
        else:
            accepted[node.newest.reported or name] = node  # NHC compares it with `hostname`
    scratch = site.partition.scratch
    temporary = scratch.mount.point if scratch.mount else ""
    facts = []
    for node in accepted.values():
        facts += [job.provenance.facts for job in node.jobs]
    sizes = MemorySizes.of(each.memory_total_bytes for each in facts)
    for host, node in accepted.items():
        by_job = [
            checks_of(job.provenance.facts, sizes, scratch.path, temporary) for job in node.jobs
        ]
        _add(state, host, by_job)
    _leave_out_rare_mounts(state)
    return state


def _refused(node: Node, *, bad: bool, sound: bool) -> str:
    """Return why a node has no accepted state; empty if it has one."""
    if not node.jobs:
        return "their facts are damaged"
    if not is_name(node.newest.reported or node.host):
        return "their host name is not one word"
    if bad:
        return "the run found a fault"
    return "" if sound else "they have no valid figure"


def _nodes_with_figures(verdict: Verdict) -> set[str]:
    """Return the nodes with a valid figure, alone or with others."""
    aggregates = verdict.results.aggregates
    numbers = np.unique(aggregates.node[aggregates.valid]).tolist()
    hosts: set[str] = set()
    for number in numbers:
        hosts.update(hosts_of(aggregates.records.nodes[number]))
    return hosts


def _add(state: AcceptedState, host: str, by_job: list[list[NhcCheck]]) -> None:
    """Add the checks that `host` passes in each of its jobs."""
    always = set(by_job[0]).intersection(*by_job[1:])
    found = set()
    for checks in by_job:
        found.update(checks)
    for check in sorted(found):
        if check.unchecked:
            state.unchecked.setdefault((check.topic, check.unchecked), set()).add(host)
        elif check in always:
            state.checks.setdefault(check, set()).add(host)
        else:
            reason = f"{check.words[0]}: {CHANGED}"
            state.unchecked.setdefault((check.topic, reason), set()).add(host)


def _leave_out_rare_mounts(state: AcceptedState) -> None:
    """Remove the checks of mounts that fewer than `USUAL_MOUNT` of the nodes have."""
    hosts = set()
    for each in state.checks.values():
        hosts.update(each)
    mounts = [check for check in state.checks if check.topic == MOUNTS]
    found = []
    for check in mounts:
        found += [check.mount for _ in state.checks[check]]
    having = Counter(found)
    for check in mounts:
        if having[check.mount] < USUAL_MOUNT * len(hosts):
            reason = "a file system that fewer than half of the nodes have"
            state.unchecked.setdefault((MOUNTS, reason), set()).update(state.checks.pop(check))


def _lines(run: Run, verdict: Verdict, state: AcceptedState) -> Iterator[str]:
    plan = run.plan
    yield from _comment("LBNL Node Health Check: the accepted state of nodes. Made by proofmark.")
    yield from _comment(
        f"run {run.id}, site {plan.site}, partition {plan.partition}, suite {plan.suite}: "
        f"{verdict.headline().word}: {counts_line(verdict.counts)}"
    )
    hosts = set()
    for each in state.checks.values():
        hosts.update(each)
    yield from _comment(f"nodes with checks: {_count(hosts)}")
    for reason, names in sorted(state.left_out.items()):
        yield from _comment(f"nodes without checks, because {reason}: {_count(names)}")
    for topic in TOPICS:
        yield ""
        yield from _comment(topic)
        for (of, reason), names in sorted(state.unchecked.items()):
            if of == topic:
                yield from _comment(f"not checked: {reason}: {_count(names)}")
        yield from _checks(state.checks, topic)


def _checks(checks: Mapping[NhcCheck, set[str]], topic: str) -> Iterator[str]:
    for check in sorted(each for each in checks if each.topic == topic):
        for target in match_expressions(checks[check]):
            yield f"{target} || {check}"


def _comment(text: str) -> Iterator[str]:
    """Yield comment lines. NHC would join a line that ends with a backslash to the next one."""
    for line in wrap(re.sub(r"[^ -~]|\\", "?", text), 98):
        yield f"# {line}"


def _count(names: Iterable[str]) -> str:
    given = list(names)
    return f"{len(given)} ({folded(given)})"
