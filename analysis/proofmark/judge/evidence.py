"""The evidence of a run: everything that a verdict is made from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from proofmark.cases.suite import Benchmarks
from proofmark.common.message import Message
from proofmark.judge.aggregate import Aggregates, aggregate
from proofmark.judge.baseline import BaselineOfRun
from proofmark.judge.fleet.critical_values import FAMILY_LEVEL
from proofmark.judge.fleet.populations import Distance
from proofmark.judge.references.derived import ANY_NODE, Build
from proofmark.judge.references.judgement import CaseReference, Terms, ordered_references
from proofmark.judge.stated_parts import NodeFaults
from proofmark.plan.plan import Plan
from proofmark.records.columns import Records
from proofmark.runs.attempts import FilesReport
from proofmark.runs.job_folder import Look, StoppedJob
from proofmark.runs.nodes import ProbedNodes
from proofmark.runs.run import Run, SetAside
from proofmark.runs.stage_faults import StageFault
from proofmark.site.contract_document import CheckItem, ContractItem
from proofmark.site.fabric import Fabric
from proofmark.site.hardware import StatedNode
from proofmark.site.node.facts import HostFacts
from proofmark.site.partition import JUDGE_EXPECTED, JudgeExpected


@dataclass(frozen=True)
class Doubt:
    """Why a figure may be another one than its record says.

    Attributes:
        value: what it may be instead, in its unit; None if that is not known.
    """

    value: float | None
    reason: Message


@dataclass(frozen=True)
class SiteNetwork:
    """The network between the nodes, as the site states it.

    Attributes:
        places: switches and rack, by host.
        distance: of two nodes; pairs of different distances are not compared with each other.
        fabric: its switches and links; None: the run has none.
        ports: of each node that carry messages, as far as it is stated.
        proven: whether own runs of the site prove the network between nodes (`Terms`).
    """

    places: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    distance: Distance | None = None
    fabric: Fabric | None = None
    ports: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    proven: bool = False


@dataclass(frozen=True)
class ReportedScratch:
    """The scratch directory, and what nodes reported about it, for each failure of a step."""

    path: str = ""
    looks: Sequence[Mapping[str, FilesReport]] = ()


@dataclass(frozen=True)
class Evidence:
    """What a run and its site show. No judge reads anything else.

    Attributes:
        facts: the hardware of each node, as far as it is known.
        family_level: probability that any node is flagged as an outlier on a healthy machine.
        stopped: jobs that ended before their last step.
        builds: how the program of each case was built.
        set_aside: the executions that the site sets aside, by the folder of a step.
        terms: of figures whose conditions are not proved; None: each valid figure has proofs.
        groups: the group of each host as a text, if nothing states that groups are alike.
        unjudged: what must be judged and is not, for the judge of a kind of run.
        faults: of nodes, which the judge of a kind of run finds beside the figures.
        replaced: the values of the inventory that options replaced, and their values, by option.
        doubts: of figures, by case and metric.
        looks: what the scheduler said about the nodes during the run.
        read_from: the run, for the judges of packages; None for evidence of no folder.
    """

    run: str
    plan: Plan
    records: Records
    benchmarks: Benchmarks
    limits: Sequence[ContractItem] = ()
    facts: HostFacts = field(default_factory=dict)
    probes: ProbedNodes = field(default_factory=dict)
    family_level: float = FAMILY_LEVEL
    stopped: Sequence[StoppedJob] = ()
    node: StatedNode = ANY_NODE
    judge_expected: JudgeExpected = JUDGE_EXPECTED
    builds: Mapping[str, Build] = field(default_factory=dict)
    hosts: Sequence[str] = ()
    network: SiteNetwork = SiteNetwork()
    scratch: ReportedScratch = ReportedScratch()
    baseline: BaselineOfRun | None = None
    set_aside: Mapping[str, SetAside] = field(default_factory=dict)
    terms: Terms | None = None
    groups: Mapping[str, str] = field(default_factory=dict)
    unjudged: tuple[Message, ...] = ()
    faults: Sequence[NodeFaults] = ()
    stage_faults: tuple[StageFault, ...] = ()
    replaced: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    doubts: Mapping[tuple[str, str], Doubt] = field(default_factory=dict)
    checks: Sequence[CheckItem] = ()
    looks: Sequence[Look] = ()
    read_from: Run | None = None

    @cached_property
    def figures(self) -> Aggregates:
        """The records, grouped by figure."""
        return aggregate(self.records)

    @cached_property
    def origins(self) -> set[str]:
        """The origins of the records."""
        return {measurand.origin for measurand in self.records.measurands}

    @cached_property
    def references(self) -> list[CaseReference]:
        """The references that judge."""
        return ordered_references(
            self.benchmarks,
            self.limits,
            expected=self.judge_expected.wanted,
        )
