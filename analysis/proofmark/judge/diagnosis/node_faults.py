"""The judges of nodes: each yields the faults of nodes that no figure has."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from proofmark.common.host_names import canonical
from proofmark.common.message import Message
from proofmark.common.moments import moment_of
from proofmark.common.nodesets import folded
from proofmark.judge.diagnosis.edited_copies import edited_copies
from proofmark.judge.diagnosis.implausible import (
    CHANCE,
    Faults,
    above_nominal,
    copied_outputs,
    same_machines,
    too_good,
)
from proofmark.judge.diagnosis.rail_faults import rail_faults
from proofmark.judge.diagnosis.unlike_parts import unlike_parts
from proofmark.judge.evidence import Evidence
from proofmark.judge.fleet.fleet import Fleet
from proofmark.judge.references.judgement import Judgement, OfCase
from proofmark.judge.stated_parts import Statements, ordered_hardware, part_faults
from proofmark.plan.plan import Plan
from proofmark.plan.step import StepInstance
from proofmark.runs.adopted import AdoptedFile
from proofmark.runs.nodes import Node
from proofmark.site.installed_parts import declared_parts
from proofmark.site.node.counters import CounterChange, meaning_of
from proofmark.site.node.error_rules import ErrorRule, bits_per_s, rule_of
from proofmark.site.node.provenance import NodeProvenance


def error_faults(nodes: Mapping[str, Node]) -> dict[str, tuple[Message, ...]]:
    """Return the errors of each node that are more than its rules accept, in all of its jobs."""
    found = {host: (*_before(node), *_during(node)) for host, node in nodes.items()}
    return {host: messages for host, messages in found.items() if messages}


def _during(node: Node) -> Iterator[Message]:
    """Yield the counters that rose too much while jobs ran."""
    jobs = [job.provenance for job in node.jobs]
    first: dict[str, tuple[CounterChange, NodeProvenance]] = {}
    events: dict[str, int] = {}
    for job in jobs:
        for change in job.changes:
            rule = rule_of(change.name)
            if rule is not None and (rise := _events(rule, change)) > 0:
                first.setdefault(change.name, (change, job))
                events[change.name] = events.get(change.name, 0) + rise
    hours = sum(map(_hours, jobs)) if first else 0.0
    for name, (change, job) in first.items():
        rule = rule_of(name)
        assert rule is not None
        limit = rule.limit(hours, bits_per_s(name, job.facts, job.before.values))
        if events[name] > limit:
            total = change if rule.falls else change.model_copy(update={"difference": events[name]})
            yield Message(
                "errors-judged",
                text=total.message,
                hours=f"{hours:.2g}",
                allowed=f"{limit:.0f}",
                source=rule.source,
            )


def _events(rule: ErrorRule, change: CounterChange) -> int:
    """Return the number of errors; 0 if the counter was reset or is gone."""
    if not rule.falls:
        return change.difference or 0
    numbers = change.before.isdecimal() and change.after.isdecimal()
    return int(change.before) - int(change.after) if numbers else 0


def _hours(job: NodeProvenance) -> float:
    """Return the time between the two readings of a job."""
    if job.after is None:
        return 0.0
    start, end = (moment_of(each.date) for each in (job.before, job.after))
    return max(0.0, (end - start).total_seconds() / 3600)


def _before(node: Node) -> Iterator[Message]:
    """Yield the counters that were too high before the first job, since the node started."""
    if not node.jobs:
        return
    reading = node.jobs[0].provenance.before
    for name, value in reading.values.items():
        rule = rule_of(name)
        if rule is None or not rule.before or not value.isdecimal():
            continue
        if reading.uptime_s is None and rule.hours:
            continue  # a number without a time is no rate
        hours = (reading.uptime_s or 0.0) / 3600
        if int(value) > (limit := rule.limit(hours, 0.0)):
            place = reading.places.get(name.rpartition("/")[0], "")
            yield Message(
                "errors-before",
                text=meaning_of(name),
                counter=f"{name} {place}".strip(),
                found=int(value),
                hours=f"{hours:.2g}" if reading.uptime_s else "?",
                allowed=f"{limit:.0f}",
                source=rule.source,
            )


EQUAL = 1e-4
"""The probability that two outputs of like nodes are equal by chance if they print times of day.

They begin and end in the same second, and have the same figure, of which three digits differ."""
FEW_FIGURES, MORE = 3, 0.1
"""An output prints three figures that are equal anyway, or follow from each other. Each further one
makes chance less likely by this factor."""
LEAST_MOMENTS = 2


def copied_files(adopted: Mapping[str, AdoptedFile], plan: Plan) -> Faults:
    """Return the nodes that have one output with other nodes: all its numbers and times are equal.

    The words can differ: a copy is edited to have the name of another host. The more outputs are
    equal, the less likely is chance: nodes that start together can print equal times. An output
    without two times of day proves nothing: its figures can have few digits.

    Args:
        adopted: the files, by the folder of their step.
        plan: of the run.
    """
    of_steps = {step.id: tuple(step.nodes) for step in plan.steps()}
    cases = {step.id: step.case for step in plan.steps()}
    owners: dict[tuple[str, str, int], set[tuple[str, ...]]] = {}
    files: dict[str, int] = {}
    for folder, file in adopted.items():
        step = StepInstance.parse(folder)
        case = cases.get(step.step, "")
        files[case] = files.get(case, 0) + 1
        if file.numbers and file.moments >= LEAST_MOMENTS and case:
            nodes = (step.name,) if step.name else of_steps[step.step]
            owners.setdefault((case, file.numbers, file.figures), set()).add(nodes)
    found: dict[str, list[Message]] = {}
    for (case, _, figures), of_nodes in owners.items():
        alike = len(of_nodes)
        if alike < 2 or not _proven(files[case], alike, figures):
            continue
        hosts = sorted(set(map(canonical, chain.from_iterable(of_nodes))))
        message = Message("same-file", case=case, nodes=folded(hosts))
        for nodes in of_nodes:
            for host in nodes:
                found.setdefault(host, []).append(message)
    return {host: tuple(messages) for host, messages in found.items()}


def _proven(files: int, alike: int, figures: int) -> bool:
    """Return whether chance hardly ever makes `alike` of `files` equal."""
    groups = math.log10(math.comb(files, alike))
    equal = math.log10(EQUAL) + max(0, figures - FEW_FIGURES) * math.log10(MORE)
    return groups + (alike - 1) * equal < math.log10(CHANCE)


NodeFaults = Mapping[str, tuple[Message, ...]]
"""The faults of each node that no figure has."""


def node_faults(
    evidence: Evidence,
    stated: Mapping[str, Statements],
    fleet: Fleet,
    judged: Mapping[OfCase, Sequence[tuple[int, Judgement]]],
) -> Iterator[NodeFaults]:
    """Yield what each judge finds.

    Args:
        evidence: of the run.
        stated: what is stated about the parts of each node.
        fleet: the comparison of like nodes.
        judged: the figures that each reference judged.
    """
    figures, benchmarks, facts = evidence.figures, evidence.benchmarks, evidence.facts
    yield part_faults(facts, stated)
    yield rail_faults(facts, declared_parts(evidence.node), ordered_hardware(facts, stated))
    yield unlike_parts(figures, benchmarks)
    yield error_faults(evidence.probes)
    yield same_machines(facts, min(evidence.origins, default=""))
    yield copied_outputs(evidence.records, benchmarks)
    yield copied_files(evidence.adopted, evidence.plan)
    yield edited_copies(evidence.records, benchmarks) if evidence.adopted else {}
    yield too_good(figures, benchmarks, fleet, judged)
    yield above_nominal(figures, judged)
