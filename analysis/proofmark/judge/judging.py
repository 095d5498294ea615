"""From the folder of a run to its verdict and the files of the verdict.

Each judge looks at the evidence, and the worst outcome of a figure counts. A kind of run can be
judged in another way (`proofmark.plan.kinds`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import NamedTuple, TypeVar

from proofmark.common.archive import Change
from proofmark.common.errors import bad_input
from proofmark.common.files import is_folder, replacing, write_atomic, write_atomic_bytes
from proofmark.common.nodesets import folded, hosts_of_nodes
from proofmark.common.plugins import Plugins
from proofmark.common.processes import gc_paused
from proofmark.common.text import one_line
from proofmark.judge.additions import added_findings
from proofmark.judge.baseline import BaselineOfRun, Circumstances
from proofmark.judge.coverage import coverage, degraded
from proofmark.judge.diagnosis.bad_nodes import Suspects, as_csv, bad_nodes, rma
from proofmark.judge.diagnosis.node_faults import narrow_slots, node_faults
from proofmark.judge.diagnosis.storage_faults import looks_after_failures, storage_faults
from proofmark.judge.evidence import Evidence, ReportedScratch, SiteNetwork
from proofmark.judge.executions import judged_executions, run_conditions
from proofmark.judge.fleet.fleet import judge_digits, measure_fleet
from proofmark.judge.fleet.populations import Kinds
from proofmark.judge.headline import unjudged
from proofmark.judge.limit_outcomes import limit_outcomes
from proofmark.judge.node_checks import check_outcomes
from proofmark.judge.reference_judge import judge_by_references
from proofmark.judge.references.derived import active_ports, builds
from proofmark.judge.results import WORDS, Results, verdicts_of
from proofmark.judge.stated_parts import (
    NodeFaults,
    NominalHardware,
    configuration,
    empty_channels,
    nominal_parts,
    ordered_hardware,
    shown_basis,
    statements,
    traits_of,
    unknown_orders,
    unread_parts,
)
from proofmark.judge.verdict import Verdict, write_verdict
from proofmark.plan.kinds import kind_of
from proofmark.plan.plan import Plan
from proofmark.plan.selection import required_metrics
from proofmark.plan.step import StepInstance
from proofmark.records.columns import Records
from proofmark.records.network import adapters_that_moved
from proofmark.records.parquet_table import parquet_of
from proofmark.records.read import read_parts
from proofmark.records.run_facts import RunParts, names_of_hosts
from proofmark.runs.job_folder import looks_at, stopped_jobs
from proofmark.runs.journal import journals
from proofmark.runs.nodes import ProbedNodes, some_nodes
from proofmark.runs.run import Run, read_decisions
from proofmark.runs.run_files import RunFiles
from proofmark.runs.stage_faults import NOT_PROBED, RESTORE, StageFault, read_stage_faults
from proofmark.site.installed_parts import declared_parts
from proofmark.site.inventory import Site
from proofmark.site.node.facts import HostFacts
from proofmark.site.partition import PREDICTED
from proofmark.site.rails import message_ports

K = TypeVar("K")
V = TypeVar("V")


def judge(evidence: Evidence) -> Verdict:
    """Return the verdict on a run.

    Records that are equal in all but step, repeat and attempt become one result with their median.

    Raises:
        BadInput: some of the records are predicted and some not. They are never judged together.
    """
    if PREDICTED in evidence.origins and len(evidence.origins) > 1:
        found = ", ".join(sorted(evidence.origins))
        raise bad_input(evidence.run, "origin", found, "records of one origin")
    figures, plan, benchmarks = evidence.figures, evidence.plan, evidence.benchmarks
    level, facts, network = evidence.family_level, evidence.facts, evidence.network
    accepted_of = evidence.baseline.parts() if evidence.baseline else {}
    stated = statements(facts, declared_parts(evidence.node), accepted_of)
    nominal = nominal_parts(facts, stated, network.ports)
    hardware = ordered_hardware(facts, stated)
    kinds = Kinds(hardware, groups=evidence.groups)
    of_place = Kinds(hardware, network.distance, evidence.groups)
    settings = {host: configuration(of_host) for host, of_host in facts.items()}
    traits = traits_of(settings, network.places)
    fleet = measure_fleet(figures, benchmarks, of_place, level, traits)
    accepted = evidence.baseline.compare(figures, benchmarks, level) if evidence.baseline else None
    referred = judge_by_references(evidence, nominal, fleet, accepted)
    added = added_findings(evidence, fleet)
    answers = _joined(
        referred.of_figure,
        {figure: (one,) for figure, one in judge_digits(figures, benchmarks, kinds)},
        *({figure: (one,) for figure, one in each.of_figures().items()} for each in added.values()),
    )
    results = Results(
        figures,
        verdicts_of(len(figures), answers, fleet, accepted, ~figures.valid),
        answers,
        fleet,
        baseline=accepted,
    )
    seen = {execution.step for execution in evidence.records.executions}
    planned = plan.nodes()
    left_out = max(0, len(evidence.hosts) - len(planned))
    covered = coverage(plan, seen, figures.duplicates, evidence.stopped)
    conditions = run_conditions(evidence, fleet)
    required = required_metrics(plan, benchmarks, evidence.limits)
    verdict = Verdict(
        evidence.run,
        {word: int((results.verdict == at).sum()) for at, word in enumerate(WORDS)},
        covered,
        results,
        added=added,
        limits=limit_outcomes(evidence, covered, referred.by_reference),
        checks=check_outcomes(evidence.checks, planned, facts, evidence.looks, left_out),
        required=(
            *unjudged(required, figures, results, kinds, conditions.sanity),
            *unread_parts(facts, stated),
            *unknown_orders(facts, stated),
            *evidence.unjudged,
            *empty_channels(facts, stated),
            *(() if evidence.node.rails.rate else narrow_slots(facts)),
            *chain.from_iterable(each.unjudged() for each in added.values()),
        ),
        hardware=NominalHardware(
            nominal, shown_basis(referred.rules(figures), nominal, evidence.node)
        ),
        executions=judged_executions(evidence),
        conditions=conditions,
    )
    faults = node_faults(evidence, stated, fleet, referred.by_reference)
    of_checks = ({node: (why,) for node, why in each.faults.items()} for each in verdict.checks)
    of_added = (each.of_nodes() for each in added.values())
    return _diagnosed(evidence, verdict, _joined(*faults, *of_checks, *of_added))


def _diagnosed(evidence: Evidence, verdict: Verdict, faults: NodeFaults) -> Verdict:
    """Return the verdict with the bad nodes and the faults of storage that explain it."""
    slow_ends: dict[str, str] = {}
    for finding in verdict.added.values():
        slow_ends |= finding.slow_ends()
    storage = storage_faults(evidence, verdict.results)
    of_nodes = [each for each in verdict.of("FAIL") if not storage.is_of_storage(each)]
    measured = verdict.measured()
    suspects = Suspects(
        measured=measured, judged=verdict.judged(), slow_ends=slow_ends, faults=faults
    )
    unmeasured = {each.step for each in verdict.coverage.missing}
    lacking = degraded(evidence.plan, evidence.hosts, measured, unmeasured)
    labels = lacking.steps if lacking else {}
    return replace(
        verdict,
        bad=bad_nodes(of_nodes, evidence.probes, evidence.network.places, suspects),
        storage=storage,
        degraded=lacking,
        results=replace(verdict.results, degraded=labels),
    )


def _joined(*parts: Mapping[K, Sequence[V]]) -> dict[K, tuple[V, ...]]:
    """Return what all judges found, by figure or node."""
    joined: dict[K, tuple[V, ...]] = {}
    for part in parts:
        for key, found in part.items():
            joined[key] = (*joined.get(key, ()), *found)
    return joined


class KindJudge:
    """Judges the runs of a kind."""

    def judge(self, run: Run, evidence: Evidence) -> Verdict:
        """Return the verdict of `run`, with the `KindResult` of its kind.

        Raises:
            BadInput: a file of the run is damaged.
        """
        return judge(evidence)


KIND_JUDGES = Plugins(KindJudge, "proofmark.judge.judging", "plan.json", "kind")
"""The judges of kinds of runs; a kind without one has the usual verdict."""


Read = Callable[[Run, Collection[str] | None], tuple[RunParts, Records]]
"""How a run is read: `read_parts`, or `stored_or_read`."""


class Judged(NamedTuple):
    """The records, the verdict and the nodes of a run."""

    records: Records
    verdict: Verdict
    nodes: ProbedNodes


def judge_run(run: Run, read: Read = read_parts) -> Verdict:
    """Return the verdict of `run`. Writes nothing."""
    return judged(run, read).verdict


@gc_paused()
def write_results(
    run: Run, records: Records, verdict: Verdict, target: RunFiles | None = None
) -> None:
    """Write records.parquet, verdict.json and rma.csv.

    They are written into the folder of `target`; None: where the products of the run are.
    """
    target = target or run.products
    with replacing(target.verdict) as file:
        write_verdict(file, verdict, all_figures=False)
    write_atomic_bytes(target.records, parquet_of(records))
    bad = some_nodes(run, {each.host for each in verdict.bad.nodes})
    facts = {host: node.newest for host, node in bad.items() if node.jobs}
    write_atomic(target.vendor_list, as_csv(rma(verdict.bad.nodes, facts)))


def read_and_judge(run: Run, read: Read = read_parts) -> tuple[Records, Verdict]:
    """Return the records and the verdict of `run`, as `judged`."""
    return judged(run, read)[:2]


def judged(run: Run, read: Read = read_parts) -> Judged:
    """Return `run` with its verdict. Writes nothing.

    What is signed, checked or accepted is read with `read_parts`: `stored_or_read` uses a cache.
    """
    with gc_paused():
        evidence = evidence_of(run, read)
        kind = run.plan.kind
        judge_of_kind = KIND_JUDGES.get(kind)() if kind in KIND_JUDGES.names() else KindJudge()
        verdict = judge_of_kind.judge(run, evidence)
        return Judged(evidence.records, verdict, evidence.probes)


def evidence_of(run: Run, read: Read = read_parts) -> Evidence:
    """Read the evidence in the folder of `run`.

    Raises:
        BadInput: a file of the run is damaged.
    """
    has_figures = kind_of(run.plan).has_figures
    parts, records = read(run, None if has_figures else ())
    _, benchmarks, site, software, probes = parts
    files, partition = run.files, site.partition
    facts = {host: node.newest for host, node in probes.items() if node.jobs}
    hosts = site.partition_hosts or site.hosts
    circumstances = Circumstances(site, facts, software)
    accepted = is_folder(files.baseline)
    baseline = BaselineOfRun(files.baseline, circumstances) if accepted else None
    return Evidence(
        run=run.id,
        read_from=run,
        plan=run.plan,
        records=records,
        benchmarks=benchmarks,
        limits=[*site.items.values()],
        checks=site.checks,
        looks=looks_at(files),
        facts=facts,
        probes=probes,
        family_level=partition.family_level,
        stopped=stopped_jobs(run) if has_figures else (),
        node=partition.node,
        judge_expected=partition.expected,
        builds=builds(software, benchmarks),
        hosts=hosts,
        network=SiteNetwork(
            places={host: site.location(host) for host in site.hosts},
            distance=site.distance,
            fabric=partition.fabric,
            ports=_ports(run, site, probes, facts),
            proven=partition.fabric.network is not None,
        ),
        scratch=ReportedScratch(
            partition.scratch.path,
            tuple(looks_after_failures(files, run.plan)) if has_figures else (),
        ),
        baseline=baseline,
        set_aside=read_decisions(files).set_aside,
        stage_faults=(*_stage_faults(run), *_not_probed(probes), *_changes(run)),
        replaced=site.replaced,
    )


def _ports(
    run: Run, site: Site, probes: ProbedNodes, facts: HostFacts
) -> dict[str, tuple[str, ...]]:
    """Return the ports of each node that carry messages, as far as they are known.

    The counters are read only if a node has active ports of several rates or networks.
    """
    partition, moved = site.partition, {}
    kinds = [{(port.rate, port.layer) for port in active_ports(of)} for of in facts.values()]
    if [each for each in kinds if len(each) > 1]:
        names = names_of_hosts(run, site, probes)
        moved = adapters_that_moved(run.files, run.plan.steps(), names)
    network, variables = partition.fabric.network, partition.launch.every
    return {
        host: message_ports(of_host, partition.node, network, variables, moved.get(host, ()))
        for host, of_host in facts.items()
    }


def _stage_faults(run: Run) -> Iterator[StageFault]:
    """Yield the faults of stages, and the nodes whose restore never ended, by their journals."""
    noted = read_stage_faults(run)
    yield from noted
    known = set(hosts_of_nodes(each.nodes for each in noted if each.stage == RESTORE))
    waiting = [each.node for each in journals(run.folder) if each.waits]
    if left := [node for node in waiting if node not in known]:
        text = "the run changed the nodes, and their journals have no restore"
        yield StageFault(stage=RESTORE, nodes=folded(left), code="NOT_RESTORED", text=text)


def _not_probed(probes: ProbedNodes) -> Iterator[StageFault]:
    """Yield the nodes whose error counters after their steps nobody read."""
    if left := [host for host, node in probes.items() if node.stopped]:
        text = "their job was stopped, or still runs, before a probe after their steps: it is not "
        text += "known whether their hardware counted errors, or was slowed by heat, during the job"
        yield StageFault(stage="run", nodes=folded(left), code=NOT_PROBED, text=text)


def _changes(run: Run) -> Iterator[StageFault]:
    """Yield a fault for each sealed file that was changed later, on the nodes of its step."""
    for path, change in (run.seal.changes if run.seal else {}).items():
        what = f"{change} after it was sealed; the sealed content counts"
        what = "not the script of the run" if change is Change.SCRIPT else what
        text = f"{one_line(path)}: {what}"
        nodes = folded(_nodes_of_file(run.plan, path))
        yield StageFault(stage="collect", nodes=nodes, code="CHANGED", text=text)


def _nodes_of_file(plan: Plan, path: str) -> Sequence[str]:
    _, *names = path.split("/")
    for step in plan.steps() if path.startswith(f"{RunFiles.work_folder.path}/steps/") else ():
        if step.id == names[1]:
            return step.instances().get(StepInstance(*names[1:3]), step.nodes)
    return plan.nodes()
