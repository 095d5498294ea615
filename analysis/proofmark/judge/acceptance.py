"""An acceptance: a contract and the sealed runs of its site, with one word for the whole.

An item is decided by the newest figures that measured it: a run of other nodes, or of another
suite, takes nothing from it. A figure that nothing judged replaces no figure that was judged. What
an earlier run missed stays listed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from itertools import chain
from operator import attrgetter
from typing import Any, get_args

from proofmark.cases.vocabulary import MEASURED
from proofmark.common.grouping import gathered
from proofmark.common.host_names import HostTable
from proofmark.common.message import NOTHING, Message, joined
from proofmark.common.nodesets import HostName, folded, hosts_of
from proofmark.common.shared_models import StrictModel
from proofmark.common.text import measure
from proofmark.judge.diagnosis.node_faults import serial_of
from proofmark.judge.judging import judged
from proofmark.judge.limit_outcomes import WORST, ItemOutcome, nodes_met
from proofmark.judge.references.judgement import (
    Bounds,
    FigureScope,
    JudgedFigure,
    Judgement,
    compared,
)
from proofmark.judge.results import InvalidCause, invalid_cause
from proofmark.judge.stated_parts import configuration
from proofmark.judge.verdict import Verdict
from proofmark.plan.kinds import origin_of
from proofmark.plan.plan import Plan
from proofmark.plan.step import StepInstance
from proofmark.runs.nodes import ProbedNodes
from proofmark.runs.run import Run, site_of
from proofmark.runs.sealed_runs import SealedRun, Sighting, Waiver, digest_of, sealed_of
from proofmark.site.contract_document import (
    CheckItem,
    Contract,
    DerivedItem,
    Item,
    Phase,
    WitnessedItem,
)
from proofmark.software.software import software_of

PHASES: tuple[Phase, ...] = get_args(Phase)
CODES = {"PASS": 0, "FAIL": 1, "INVALID": 2, "UNJUDGED": 4}
"""The exit code of each word of an acceptance."""
MOST_REASONS = 3
"""The number of reasons of an item that are stated: each node can have its own."""


Configuration = Mapping[tuple[str, str], str]
"""The values by host and trait; without a host: of a program, and of the environment."""
PROCESSOR = "processor"
OWN_TRAITS = ("kernel command line",)
"""What each node has of its own."""
MACHINE = "board serial number"
"""The trait of a node that is another machine if it differs: no other node has it."""


def configuration_of(run: Run, nodes: ProbedNodes) -> Configuration:
    """Return the software and the settings of a run from the reports of its nodes."""
    launch = site_of(run).partition.launch
    stated = launch.model_dump(exclude={"environment", "environment_of"}, exclude_defaults=True)
    pairs = (f"{name}={value}" for name, value in {**stated, **launch.every}.items())
    found = {("", "environment"): " ".join(pairs) or "–"}
    for package in software_of(run).packages.values():
        for name, program in package.programs.items():
            mpi = f"{program.mpi.family} {program.mpi.version}" if program.mpi else ""
            digest = f"SHA-256 {program.sha256}" if program.sha256 else package.hash
            found["", name] = ", ".join(filter(None, (package.version, mpi, digest)))
    # A node of a run that changed its mode has the settings of one of its modes.
    for host, node in nodes.items():
        if not node.jobs or run.plan.allowed_modes:
            continue
        traits = configuration(facts := node.newest)
        found |= {(host, each): of for each, of in traits.items() if each not in OWN_TRAITS}
        if (serial := serial_of(facts)) and not facts.virtual:
            found[host, MACHINE] = serial
    return found


def newest_configuration(runs: Sequence[JudgedRun]) -> Configuration:
    """Return what each program and each node has in the newest of `runs` that has it."""
    found: dict[tuple[str, str], str] = {}
    for run in reversed(runs):
        found |= run.configuration
    return found


def nodes_by_value(configuration: Configuration) -> dict[str, dict[str, str]]:
    """Return the nodes of each value of each trait; software has none."""
    hosts: dict[str, dict[str, list[str]]] = {}
    for (host, name), value in configuration.items():
        hosts.setdefault(name, {}).setdefault(value, []).extend(filter(None, [host]))
    return {
        name: {value: folded(of_value) for value, of_value in values.items()}
        for name, values in hosts.items()
        if name != MACHINE
    }


Difference = tuple[str, Sequence[str], str, str, str]
"""A run, its nodes (software has none), the name of what they have, that, and what is now."""


def differences(runs: Sequence[JudgedRun]) -> Iterator[Difference]:
    """Yield in what a run differs from the newest one.

    A program that a run did not have was then that of the newest run before it. A node that the
    newest run does not have is compared with those of it that have the same processor.
    """
    newest, latest = newest_configuration(runs), runs[0].configuration if runs else {}
    usual: dict[tuple[str, str], set[str]] = {}
    for (host, name), value in latest.items():
        usual.setdefault((latest.get((host, PROCESSOR), ""), name), set()).add(value)
    software: dict[tuple[str, str], str] = {}
    for run in reversed(runs):
        own = run.configuration
        software |= {key: value for key, value in own.items() if not key[0]}
        groups: dict[tuple[str, str, str], list[str]] = {}
        for (host, name), value in {**own, **software}.items():
            alike = usual.get((own.get((host, PROCESSOR), ""), name)) if host else None
            now = newest[host, name]
            if now == value and alike and value not in alike and name != MACHINE:
                now = min(alike)
            if now != value:
                groups.setdefault((name, value, now), []).extend(filter(None, [host]))
        for about, hosts in groups.items():
            yield run.id, hosts, *about


def differences_of(item: AcceptedItem, changes: Sequence[Difference]) -> Iterator[Message]:
    """Yield in what the nodes about which a run decides, and its software, are not as now."""
    decided: dict[str, set[str]] = {}
    for each in item.deciding:
        decided.setdefault(each.run.id, set()).update(each.figure.scope.nodes)
    scopes = [each.figure.scope for each in item.deciding]
    together = any(scope.together and len(scope.nodes) > 1 for scope in scopes)
    for run, hosts, name, then, now in changes:
        if name == MACHINE and together:  # a spare node does not change what many nodes reach
            continue
        own = [host for host in hosts if host in decided.get(run, ())]
        of_software = not hosts and run in decided and not isinstance(item.item, CheckItem)
        if own or of_software:
            named = f"{name} of {folded(own)}" if own else name
            yield Message("acceptance-differs", run=run, name=named, then=then, now=now)


@dataclass(frozen=True)
class JudgedRun:
    """A sealed run of the site, judged.

    Attributes:
        evidence: the SHA-256 of its newest archive.
        earlier: the SHA-256 of the archives before the newest one.
    """

    plan: Plan
    sealed: datetime
    evidence: str
    verdict: Verdict
    mode_now: str
    kept: SealedRun | None = None
    earlier: tuple[str, ...] = ()
    configuration: Configuration = field(default_factory=dict)

    @property
    def word(self) -> str:
        """The word of its verdict."""
        return self.verdict.headline().word

    @property
    def id(self) -> str:
        """The id of the run."""
        return self.verdict.run

    @property
    def date(self) -> str:
        """The day on which it was sealed, UTC."""
        return f"{self.sealed:%Y-%m-%d}"

    def decides(self, item: Item, figure: JudgedFigure) -> bool:
        """Return whether a figure counts: its mode and its number of nodes are those agreed.

        A run that lacks nodes measured what all nodes do together at another scale.
        """
        other_mode = item.mode is None and self.plan.current_mode != self.mode_now
        fewer = (
            figure.scope.together
            and len(figure.scope.nodes) > 1
            and self.verdict.degraded is not None
        )
        return not other_mode and not fewer


class Part(StrictModel):
    """A partition of an acceptance: its nodes, and its mode now."""

    hosts: list[HostName]
    mode: str


@dataclass(frozen=True)
class Terms:
    """What an acceptance needs besides its runs."""

    site: str
    contract: Contract
    partitions: Mapping[str, Part]
    waivers: Sequence[Waiver] = ()
    seen: Sequence[Sighting] = ()

    def refuses(self, run: Run) -> Message:
        """Return why a sealed run decides nothing here; `NOTHING` if it can decide.

        Raises:
            BadInput: its inputs are damaged.
        """
        site = site_of(run)
        if site.name != self.site:
            return Message("acceptance-site", site=site.name)
        if run.plan.partition not in self.partitions:
            return Message("acceptance-partition", partition=run.plan.partition)
        if site.contract is None or digest_of(site.contract) != digest_of(self.contract):
            return Message("acceptance-contract")
        return other_state(origin_of(run.plan, site))

    def judged(self, run: Run) -> JudgedRun:
        """Return a sealed run that can decide, judged.

        Raises:
            BadInput: a file of the run is damaged.
        """
        assert run.seal is not None
        mode = self.partitions[run.plan.partition].mode
        _, verdict, nodes = judged(run)
        return JudgedRun(
            plan=run.plan,
            sealed=run.seal.time,
            evidence=run.seal.digest,
            verdict=verdict,
            mode_now=mode,
            kept=sealed_of(run, run.seal.folder, verdict.headline().word),
            earlier=tuple(run.seal.earlier),
            configuration=configuration_of(run, nodes),
        )

    def acceptance(
        self, runs: Sequence[JudgedRun], left_out: Sequence[RunLeftOut] = ()
    ) -> Acceptance:
        """Return the acceptance by `runs`."""
        hosts = {name: part.hosts for name, part in self.partitions.items()}
        found = acceptance(self.site, self.contract, hosts, runs, left_out, self.seen)
        items = (each.with_waivers(self.waivers, self.contract) for each in found.items)
        return replace(found, items=tuple(items))


@dataclass(frozen=True)
class RunLeftOut:
    """A run that decides nothing, or not every item that it measures, and why.

    Attributes:
        open: whether evidence of it is missing that would decide: the word cannot be PASS.
    """

    run: str
    reason: Message
    open: bool = False

    def as_json(self) -> dict[str, Any]:
        """Return the form of ``acceptance.json``."""
        return {"run": self.run, **self.reason.as_json("reason"), "open": self.open}


@dataclass(frozen=True)
class Deciding:
    """A figure that decides about an item, and its run; or what a party saw."""

    run: JudgedRun | Sighting
    figure: JudgedFigure


NO_FIGURE = JudgedFigure("", (), "", NOTHING)
"""Stands for the figure of an item that nothing measured."""


@dataclass(frozen=True)
class OtherOutcome:
    """What a run found about an item that another run decides.

    Attributes:
        later: whether this run is newer: it measured the item again, and nothing judged that.
    """

    run: str
    date: str
    outcome: str
    nodes: str
    later: bool


@dataclass(frozen=True)
class RunEvidence:
    """The part of a run by which an item is decided."""

    run: str
    date: str
    steps: tuple[str, ...]
    nodes: str


@dataclass(frozen=True)
class AcceptedItem(ItemOutcome):
    """An item of the contract on one partition, by the runs that decide about it.

    Attributes:
        unmeasured: the nodes of the partition that no run measured, of an item for each node.
        unsigned: the signers without whom these waive nothing.
        differs: in what the runs that decide differ from the newest configuration.
    """

    item: Item
    partition: str
    deciding: tuple[Deciding, ...] = ()
    others: tuple[OtherOutcome, ...] = ()
    unmeasured: tuple[str, ...] = ()
    waivers: tuple[Waiver, ...] = ()
    unsigned: tuple[str, ...] = ()
    differs: tuple[Message, ...] = ()

    @property
    def nodes(self) -> tuple[int, int]:
        """The number of nodes, or pairs, whose figures all meet the item, and of all of them."""
        figures = (each.figure for each in self.deciding)
        met, measured = nodes_met((each.node, each.outcome) for each in figures)
        return met, measured + len(self.unmeasured)

    @property
    def words(self) -> Collection[str]:
        """The outcomes of its figures; UNJUDGED stands for what is missing too."""
        missing = ["UNJUDGED"] if self.unmeasured or self.differs else []
        return {*missing, *(each.figure.outcome for each in self.deciding)}

    @property
    def can_be_waived(self) -> bool:
        """Whether parties can accept what was measured: it is not met, and nothing is INVALID."""
        figures = [each.figure for each in self.deciding]
        known = isinstance(self.item, CheckItem) or all(
            each.value is not None or each.outcome == "FAIL" for each in figures
        )
        measured = figures and known and not self.unmeasured
        return bool(measured) and self.outcome in ("FAIL", "UNJUDGED")

    def waiver(self, contract: Contract, by: str, reason: str) -> Waiver:
        """Return the waiver of what the item is now, without a signature."""
        return Waiver(
            item=self.item.number,
            partition=self.partition,
            contract=digest_of(contract),
            evidence={each.run.id: each.run.evidence for each in self.deciding},
            outcome="FAIL" if self.outcome == "FAIL" else "UNJUDGED",
            worst=self.shown.value,
            differs=[{name: f"{of}" for name, of in each.fields.items()} for each in self.differs],
            by=by,
            date=datetime.now(UTC).date(),
            reason=reason,
        )

    def with_waivers(self, waivers: Sequence[Waiver], contract: Contract) -> AcceptedItem:
        """Return the item with those of `waivers` that are for it as it is now."""
        if not self.can_be_waived:
            return self
        now = self.waiver(contract, "-", "-")
        signed = {"by", "date", "reason", "signature"}
        found = {
            each.by: each
            for each in waivers
            if each.model_dump(exclude=signed) == now.model_dump(exclude=signed)
        }
        if not found:
            return self
        groups = contract.who_waives(both=bool(self.differs))
        lacking = [" or ".join(sorted(each)) for each in groups if not each & found.keys()]
        return replace(self, waivers=tuple(found.values()), unsigned=tuple(lacking))

    @property
    def measurable(self) -> bool:
        """Whether it is open, and a further measurement can decide it.

        Another report of the same nodes has no part more, and another run no other hardware.
        """
        if self.waived or isinstance(self.item, WitnessedItem | DerivedItem):
            return False
        lacking = not self.deciding or self.unmeasured or self.differs
        again = (
            each.outcome == "INVALID"
            or each.reason.code in ("check-no-report", "item-runs")
            or (each.repeats_needed or (each.value is None and each.steps))
            for each in (one.figure for one in self.deciding)
            if each.outcome != "PASS"
        )
        return self.outcome in ("UNJUDGED", "INVALID") and bool(lacking or any(again))

    @property
    def waived(self) -> bool:
        """Whether each signer whom that needs waived it."""
        return bool(self.waivers) and not self.unsigned

    @property
    def binding(self) -> bool:
        """Whether the acceptance needs it: an item that is minor or waived is only stated."""
        return super().binding and not self.waived

    @property
    def repeats_needed(self) -> int:
        """The repeats with which it can be decided: those of its rule, or those of its noise."""
        wanted = (each.figure.repeats_needed for each in self.deciding)
        return max(self.item.runs_needed, *wanted, 1)

    @property
    def shown(self) -> JudgedFigure:
        """The figure of the worst outcome that is furthest beyond the limit, or nearest to it.

        Without a figure it is an empty one.
        """
        return min((each.figure for each in self.deciding), key=_rank, default=NO_FIGURE)

    @property
    def visible(self) -> float | None:
        """The largest change that would not be seen, as a part of the limit; None: not known."""
        known = [each.figure.visible for each in self.deciding if each.figure.outcome == "PASS"]
        return max((change for change in known if change is not None), default=None)

    @cached_property
    def evidence(self) -> tuple[RunEvidence, ...]:
        """The runs that decide, the newest first."""
        found = gathered((each.run.id, each) for each in self.deciding)
        return tuple(
            RunEvidence(run, of[0].run.date, _steps(of), _nodes(each.figure for each in of))
            for run, of in found.items()
        )

    @property
    def reasons(self) -> tuple[Message, ...]:
        """Why it has its outcome, each with the nodes, the worst first; empty for PASS."""
        if (word := self.outcome) == "PASS":
            return ()
        ordered = sorted((each.figure for each in self.deciding), key=_rank)
        found = gathered(
            (each.reason.without_nodes([each.node]), each)
            for each in ordered
            if each.outcome == word
        )
        groups = [(why, figures) for why, figures in found.items() if why]
        stated = [
            Message("limit-open-on", text=why, nodes=_nodes(figures))
            for why, figures in groups[:MOST_REASONS]
        ]
        if rest := [figure for _, figures in groups[MOST_REASONS:] for figure in figures]:
            stated.append(Message("acceptance-more", nodes=_nodes(rest)))
        if word == "UNJUDGED" and self.unmeasured:
            stated.append(Message("acceptance-no-node", nodes=folded(self.unmeasured)))
        if word == "UNJUDGED":
            stated += self.differs[:MOST_REASONS]
            if (more := len(self.differs) - MOST_REASONS) > 0:
                stated.append(Message("acceptance-differs-more", count=more))
        if not self.deciding:
            seen = isinstance(self.item, WitnessedItem)
            stated.append(Message("acceptance-not-seen" if seen else "acceptance-no-run"))
        return tuple(stated)

    @property
    def advice(self) -> tuple[str, ...]:
        """What to do before the next measurement of an INVALID item, for `translated`."""
        invalid = (each.figure for each in self.deciding if each.figure.outcome == "INVALID")
        causes = dict.fromkeys(invalid_cause(figure.reason) for figure in invalid)
        return tuple(each.text for each in causes if each is not InvalidCause.DISTURBED)

    def as_json(self) -> dict[str, Any]:
        """Return the form of ``acceptance.json``."""
        met, total = self.nodes
        about = {"number", "text", "case", "metric", "check", "phase", "severity"}
        about |= {"witnessed", "derived", "items"}
        figure = self.shown
        return {
            **self.item.model_dump(include=about),
            "partition": self.partition,
            "outcome": self.outcome,
            "binding": self.binding,
            "value": figure.value,
            "found": figure.found,
            "unit": figure.unit,
            "at_least": figure.accepted.at_least,
            "at_most": figure.accepted.at_most,
            "visible": self.visible,
            "nodes_met": met,
            "nodes": total,
            "unmeasured": folded(self.unmeasured),
            "reasons": list(self.reasons),
            "evidence": [{**vars(each), "steps": list(each.steps)} for each in self.evidence],
            "other_runs": [vars(each) for each in self.others],
            "waivers": [each.model_dump(mode="json") for each in self.waivers],
            "unsigned": list(self.unsigned),
            "differs": list(self.differs),
        }


@dataclass(frozen=True)
class AcceptedPhase:
    """A phase of the acceptance.

    Attributes:
        date: of the newest run that decides about it; empty if none does.
    """

    phase: str
    word: str
    date: str
    met: int
    waived: int
    total: int


@dataclass(frozen=True)
class RunFault:
    """A fault of nodes that no figure has: a lost memory module, or a mode that was not restored.

    Attributes:
        word: of the acceptance while it stands: FAIL, or UNJUDGED if a stage failed.
    """

    run: str
    date: str
    word: str
    hosts: tuple[str, ...]
    reason: Message
    stands: bool

    @property
    def nodes(self) -> str:
        """The nodes as a node set."""
        return folded(self.hosts)

    def as_json(self) -> dict[str, Any]:
        """Return the form of ``acceptance.json``."""
        about = {"run": self.run, "date": self.date, "word": self.word, "nodes": self.nodes}
        return {**about, "stands": self.stands, **self.reason.as_json("reason")}


@dataclass(frozen=True)
class Acceptance:
    """An acceptance.

    Attributes:
        runs: the runs that could decide, the newest first.
        limited: those of `runs` that decide only some of the items that they measure.
    """

    site: str
    items: tuple[AcceptedItem, ...]
    runs: tuple[JudgedRun, ...]
    limited: tuple[RunLeftOut, ...]
    left_out: tuple[RunLeftOut, ...]
    faults: tuple[RunFault, ...]
    configurations: Mapping[str, Configuration]

    @property
    def word(self) -> str:
        """The word for the whole: the worst of the items that bind and of the faults that stand.

        Without evidence of a run that was sealed it is not PASS.
        """
        words = {word_of(self.items), *(each.word for each in self.faults if each.stands)}
        words |= {"UNJUDGED" for each in self.left_out if each.open}
        return next(word for word in WORST if word in words)

    @property
    def phases(self) -> tuple[AcceptedPhase, ...]:
        """The phases that have items, in their order."""
        found = []
        for phase in PHASES:
            items = [each for each in self.items if each.item.phase == phase]
            dates = [part.date for each in items for part in each.evidence]
            met = sum(each.outcome == "PASS" for each in items)
            if items:
                date, waived = max(dates, default=""), sum(each.waived for each in items)
                about = {"met": met, "waived": waived, "total": len(items)}
                found.append(AcceptedPhase(phase, word_of(items), date, **about))
        return tuple(found)

    @property
    def open_items(self) -> tuple[AcceptedItem, ...]:
        """The items that a measurement can still decide."""
        return tuple(each for each in self.items if each.measurable)

    @property
    def missed_items(self) -> tuple[AcceptedItem, ...]:
        """The items that bind and are FAIL: after a repair they are measured again."""
        return tuple(each for each in self.items if each.binding and each.outcome == "FAIL")

    def misses(self, runs: Collection[str]) -> bool:
        """Return whether one of `runs` misses an item that binds, or found a fault that stands."""
        if any(fault.stands and fault.run in runs for fault in self.faults):
            return True
        return any(
            each.run.id in runs and each.figure.outcome == "FAIL"
            for item in self.missed_items
            for each in item.deciding
        )

    @property
    def counts(self) -> dict[str, int]:
        """The numbers of items (all, met, waived, minor), of bad nodes and of missing evidence."""
        hosts = set[str]().union(*(fault.hosts for fault in self.faults if fault.stands))
        return {
            "total": len(self.items),
            "met": sum(each.outcome == "PASS" for each in self.items),
            "waived": sum(each.waived for each in self.items),
            "minor": sum(
                each.item.severity == "minor" and not each.waived and each.outcome != "PASS"
                for each in self.items
            ),
            "faults": len(hosts),
            "open": sum(each.open for each in self.left_out),
        }

    @property
    def text(self) -> Message:
        """What the word stands for, in numbers."""
        return text_of(self.counts)

    def as_json(self) -> dict[str, Any]:
        """Return the form of ``acceptance.json``."""
        return {
            "site": self.site,
            "word": self.word,
            **self.text.as_json("text"),
            "phases": [vars(each) for each in self.phases],
            "items": [each.as_json() for each in self.items],
            "configurations": {
                name: nodes_by_value(now) for name, now in self.configurations.items()
            },
            "faults": [each.as_json() for each in self.faults],
            "runs": [
                {
                    "run": each.id,
                    "suite": each.plan.suite,
                    "partition": each.plan.partition,
                    "sealed": each.sealed.isoformat(),
                    "evidence": each.evidence,
                    "word": each.word,
                }
                for each in self.runs
            ],
            "limited": [each.as_json() for each in self.limited],
            "left_out": [each.as_json() for each in self.left_out],
        }


def text_of(counts: Mapping[str, int]) -> Message:
    """Return the `Acceptance.counts` as a text."""
    met = Message("acceptance-met", met=counts.get("met", 0), total=counts.get("total", 0))
    others = ((code, counts.get(name)) for name, code in _COUNTED.items())
    return joined([met, *(Message(code, count=count) for code, count in others if count)])


_COUNTED = {
    "waived": "items-waived",
    "minor": "items-minor",
    "faults": "acceptance-faults",
    "open": "acceptance-open",
}


def word_of(items: Sequence[AcceptedItem]) -> str:
    """Return the worst outcome of the items that bind.

    Without one it is PASS only if an item is met or waived: who waives names what was measured.
    """
    words = {each.outcome for each in items if each.binding}
    words = words or {"PASS" for each in items if each.waived or each.outcome == "PASS"}
    return next((word for word in WORST if word in words), "UNJUDGED")


def other_state(origin: str) -> Message:
    """Return why figures of `origin` are no measurement of the machine; `NOTHING` if they are."""
    return NOTHING if origin == MEASURED else Message("acceptance-origin", origin=origin)


def acceptance(
    site: str,
    contract: Contract,
    partitions: Mapping[str, Sequence[str]],
    runs: Sequence[JudgedRun],
    left_out: Sequence[RunLeftOut] = (),
    seen: Sequence[Sighting] = (),
) -> Acceptance:
    """Return the acceptance of a site.

    Args:
        runs: its sealed runs with this contract, in any order.
        left_out: further runs, which decide nothing.
        seen: what its parties saw, in any order.
    """
    newest = sorted(runs, key=lambda each: (each.sealed, each.id), reverse=True)
    items, configurations = list[AcceptedItem](), {}
    for partition, nodes in partitions.items():
        of_partition = [run for run in newest if run.plan.partition == partition]
        changes = [*differences(of_partition)]
        configurations[partition] = newest_configuration(of_partition)
        own = [item for item in contract.items if item.system in (None, partition)]
        limits = dict[str, AcceptedItem]()
        for item in own:
            if not isinstance(item, WitnessedItem | DerivedItem):
                found = _item(item, partition, nodes, of_partition)
                limits[item.number] = replace(found, differs=tuple(differences_of(found, changes)))
        for item in own:
            if isinstance(item, WitnessedItem):
                items.append(_witnessed(item, partition, seen, contract.who_sees))
            elif isinstance(item, DerivedItem):
                items.append(_derived(item, partition, limits))
            else:
                items.append(limits[item.number])
    other_modes = (
        RunLeftOut(run.id, Message("acceptance-mode", mode=run.plan.current_mode, now=run.mode_now))
        for run in newest
        if run.plan.current_mode != run.mode_now
    )
    scales = (
        RunLeftOut(run.id, Message("acceptance-degraded", text=run.verdict.degraded.label))
        for run in newest
        if run.verdict.degraded
    )
    return Acceptance(
        site=site,
        items=tuple(items),
        runs=tuple(newest),
        limited=(*other_modes, *scales),
        left_out=tuple(left_out),
        faults=tuple(_faults(newest)),
        configurations=configurations,
    )


def _item(
    item: Item, partition: str, nodes: Sequence[str], runs: Sequence[JudgedRun]
) -> AcceptedItem:
    found: list[list[JudgedFigure]] = []
    for run in runs:
        of_run = _figures(item, run.verdict)
        found.append([each for each in of_run if run.decides(item, each)])
    judged = [_Judged.of(figures) for figures in found]
    deciding: list[Deciding] = []
    replaced: list[tuple[Deciding, bool]] = []
    for place, (run, figures) in enumerate(zip(runs, found, strict=True)):
        for figure in figures:
            each, older = Deciding(run, figure), judged[place + 1 :]
            if any(newer.replaces(figure) for newer in judged[:place]):
                replaced.append((each, False))
            elif figure.outcome == "UNJUDGED" and any(of.replaces(figure) for of in older):
                replaced.append((each, True))
            else:
                deciding.append(each)
    return AcceptedItem(
        item,
        partition,
        tuple(deciding),
        tuple(_others(replaced)),
        unmeasured=_unmeasured(deciding, nodes),
    )


def _witnessed(
    item: WitnessedItem, partition: str, seen: Sequence[Sighting], groups: Sequence[set[str]]
) -> AcceptedItem:
    """Return a witnessed item by the newest word of each signer.

    It is met if each of `groups` has one who saw it, and nobody saw the contrary.
    """
    in_order = sorted(seen, key=attrgetter("time"))
    newest = {each.by: each for each in in_order if each.item == item.number}
    lacking = [sorted(each) for each in groups if each.isdisjoint(newest)]
    met = bool(groups) and not lacking
    deciding = []
    for each in newest.values():
        outcome = each.outcome if met or each.outcome == "FAIL" else "UNJUDGED"
        names = ", ".join(" or ".join(group) for group in lacking)
        why = Message("seen-missed" if outcome == "FAIL" else "seen-lacking", names=names or "–")
        figure = JudgedFigure(each.by, (), outcome, why, found=each.text)
        deciding.append(Deciding(each, figure))
    return AcceptedItem(item, partition, tuple(deciding))


def _derived(item: DerivedItem, partition: str, limits: Mapping[str, AcceptedItem]) -> AcceptedItem:
    """Return a derived item by the worst value of each of its items, if all of them are judged."""
    runs, parts = dict[str, JudgedRun | Sighting](), list[JudgedFigure]()
    open_items, hosts = list[str](), set[str]()
    for number in item.items:
        found = limits.get(number, AcceptedItem(item, partition))
        judged = {each.figure.outcome for each in found.deciding} <= {"PASS", "FAIL"}
        for each in found.deciding:
            runs[each.run.id] = each.run
            hosts |= each.figure.scope.nodes
        if not judged or found.shown is NO_FIGURE or found.unmeasured or found.differs:
            open_items.append(number)
        else:
            parts.append(found.shown)
    value = None if open_items else derived_value(item, parts)
    outcome, judgement = "UNJUDGED", None
    if open_items:
        why = Message("derived-open", items=", ".join(open_items))
    elif value is None:
        why = Message("derived-units", unit=item.unit)
    else:
        ratio, bounds = value / item.value, Bounds(item.at_least, item.at_most)
        outcome = "FAIL" if bounds.missed_by(ratio) else "PASS"
        name = Message("figure-contract")
        why = compared(ratio, bounds, name, f"{item.value:g} {item.unit}")
        judgement = Judgement("contract", item.number, outcome, why, item.value, ratio, *bounds)
    scope = FigureScope(frozenset(hosts), together=True)
    figure = JudgedFigure(
        item.number, (), outcome, why, scope, value, unit=item.unit, judgement=judgement
    )
    return AcceptedItem(item, partition, tuple(Deciding(run, figure) for run in runs.values()))


def derived_value(item: DerivedItem, parts: Sequence[JudgedFigure]) -> float | None:
    """Return what follows from the values of `parts`, in the unit of `item`.

    None if a value is of another kind, or none.
    """
    values = []
    for part in parts:
        base, size = measure(part.unit)
        if base != item.of_unit or not part.value or part.value < 0:
            return None
        values.append(part.value * size)
    return item.of_values(values)


def _figures(item: Item, verdict: Verdict) -> list[JudgedFigure]:
    if isinstance(item, CheckItem):
        return [figure for each in verdict.checks if each.item == item for figure in each.figures]
    return [*chain.from_iterable(each.figures() for each in verdict.contract if each.item == item)]


@dataclass(frozen=True)
class _Judged:
    """What one run judged of an item: with it, figures of other runs decide no longer.

    A node with a figure that nothing judged is left out: another run can have judged that figure.

    Attributes:
        together: the largest number of nodes that measured one figure together; 0 if none did, or
            if nothing judged one of these figures.
    """

    hosts: frozenset[str]
    together: int

    @classmethod
    def of(cls, figures: Sequence[JudgedFigure]) -> _Judged:
        judged, not_judged = set[str](), set[str]()
        sizes = [0]
        for each in figures:
            if each.scope.together:
                sizes.append(len(each.scope.nodes) if each.outcome != "UNJUDGED" else 0)
            else:
                (not_judged if each.outcome == "UNJUDGED" else judged).update(each.scope.nodes)
        whole = all(sizes[1:])
        return cls(frozenset(judged - not_judged), max(sizes) if whole else 0)

    def replaces(self, figure: JudgedFigure) -> bool:
        """Return whether the run judged what `figure` of another run measured.

        Nodes that measured together must be at least as many.
        """
        if figure.scope.together:
            return self.together >= len(figure.scope.nodes)
        return figure.scope.nodes <= self.hosts


def _others(replaced: Sequence[tuple[Deciding, bool]]) -> Iterator[OtherOutcome]:
    """Yield what was found and no longer decides, by run and outcome. A PASS is not listed."""
    groups = gathered(
        ((each.run.id, each.run.date, each.figure.outcome, later), each.figure)
        for each, later in replaced
        if later or each.figure.outcome in ("FAIL", "INVALID")
    )
    for (run, date, outcome, later), figures in groups.items():
        yield OtherOutcome(run, date, outcome, _nodes(figures), later=later)


def _unmeasured(deciding: Sequence[Deciding], nodes: Sequence[str]) -> tuple[str, ...]:
    """Return the nodes of the partition without a figure, if each node needs one."""
    if not any(each.figure.scope.every_node for each in deciding):
        return ()
    measured = (host for each in deciding for host in each.figure.scope.nodes)
    seen = HostTable.of(nodes).found(measured)
    return tuple(node for node in nodes if node not in seen)


def _faults(runs: Sequence[JudgedRun]) -> Iterator[RunFault]:
    """Yield the faults of nodes in runs, the newest first; like nodes have one."""
    newer = set[tuple[str, str]]()
    for run in runs:
        partition = run.plan.partition
        groups: dict[tuple[str, Message, bool], dict[str, None]] = {}
        verdict = run.verdict
        faults = [("FAIL", each.node, each.reason) for each in verdict.faults]
        stages = verdict.conditions.open_stages
        faults += [("UNJUDGED", each.nodes, each.reason) for each in stages]
        for word, nodes, why in faults:
            hosts = hosts_of(nodes)
            stands = not all((partition, host) in newer for host in hosts)
            reason = why.without_nodes([nodes])
            groups.setdefault((word, reason, stands), {}).update(dict.fromkeys(hosts))
        for (word, reason, stands), found in groups.items():
            yield RunFault(run.id, run.date, word, tuple(found), reason=reason, stands=stands)
        for name in run.verdict.measured():
            newer |= {(partition, host) for host in hosts_of(name)}


def _rank(figure: JudgedFigure) -> tuple[int, float]:
    return WORST.index(figure.outcome), figure.margin


def _steps(deciding: Sequence[Deciding]) -> tuple[str, ...]:
    """Return the steps of figures, without the names of nodes."""
    steps = chain.from_iterable(each.figure.steps for each in deciding)
    return tuple(dict.fromkeys(StepInstance.parse(step).step for step in steps))


def _nodes(figures: Iterator[JudgedFigure] | Sequence[JudgedFigure]) -> str:
    return _folded(frozenset(host for each in figures for host in each.scope.nodes))


@lru_cache(maxsize=256)
def _folded(hosts: frozenset[str]) -> str:
    """Return hosts as one node set: the items of a contract have the same nodes."""
    return folded(hosts)
