"""Verdicts: every figure is compared with every reference that applies; the worst outcome counts.

PASS and FAIL are outcomes of a reference. INVALID: the number does not measure what it states.
UNJUDGED: nothing says how good the figure should be. All four are counted. A floor that is met, and
agreement with like nodes, are no PASS.
"""

from __future__ import annotations

import json
import math
import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, starmap
from json.encoder import encode_basestring_ascii as quoted
from typing import Any, TextIO

import numpy as np

from proofmark.common.grouping import batched
from proofmark.common.message import Message
from proofmark.common.nodesets import folded, hosts_of_nodes
from proofmark.common.printed_command import SCRIPT, STEP, PrintedCommand, of_run
from proofmark.common.processes import parallel_map
from proofmark.judge.additions import Finding, KindResult, Suspect
from proofmark.judge.baseline import BaselineComparison
from proofmark.judge.confidence import interval
from proofmark.judge.coverage import Coverage as Coverage
from proofmark.judge.coverage import Degraded
from proofmark.judge.diagnosis.bad_nodes import BadNodes
from proofmark.judge.diagnosis.storage_faults import StorageFaults
from proofmark.judge.executions import JudgedExecutions, RunConditions
from proofmark.judge.fleet.fleet import DIGITS_ALIKE, DIGITS_WRONG, Fleet
from proofmark.judge.headline import BASELINE, CONTRACT, EXPECTED, FLOOR, Headline, Judged, headline
from proofmark.judge.headline import exit_code as exit_code
from proofmark.judge.limit_outcomes import ItemOutcome, LimitOutcome
from proofmark.judge.node_checks import CheckOutcome
from proofmark.judge.references.derived import key_of
from proofmark.judge.references.judgement import PEERS
from proofmark.judge.references.judgement import Judgement as Judgement
from proofmark.judge.results import WORDS as WORDS
from proofmark.judge.results import Result as Result
from proofmark.judge.results import Results as Results
from proofmark.judge.results import result_json as result_json
from proofmark.judge.stated_parts import NominalHardware
from proofmark.plan.step import StepInstance
from proofmark.records.columns import VIRTUAL, Record

MOST_STEPS = 8
"""The largest number of steps that a command names."""


NODES_AGAIN = "measure-nodes-again"
"""The code of the nodes whose repeats do not prove that they miss a limit."""
_OPTIONAL = {
    *("excused", "stage_faults", "disturbed", "replaced"),
    *("items_of_other_suites", "checks", "added", "crashes", "baseline"),
    "unlisted",
}
"""The keys of ``verdict.json`` that a run without them lacks."""


@dataclass(frozen=True)
class Verdict:
    """The verdict of a run.

    Attributes:
        coverage: the planned steps, and which were measured.
        checks: what the nodes report for each functional item.
        required: the required metrics that were not judged, each with the class of nodes and the
            reason.
        storage: slow storage targets, and the faults of file systems.
        executions: what they show beside the values of their figures.
    """

    run: str
    counts: Mapping[str, int]
    coverage: Coverage
    results: Results
    bad: BadNodes = field(default_factory=BadNodes)
    added: Mapping[str, Finding] = field(default_factory=dict)
    limits: tuple[LimitOutcome, ...] = ()
    checks: tuple[CheckOutcome, ...] = ()
    required: tuple[Message, ...] = ()
    degraded: Degraded | None = None
    storage: StorageFaults = field(default_factory=StorageFaults)
    hardware: NominalHardware = field(default_factory=NominalHardware)
    executions: JudgedExecutions = field(default_factory=JudgedExecutions)
    conditions: RunConditions = field(default_factory=RunConditions)
    of_kind: KindResult | None = None

    @property
    def fleet(self) -> Fleet:
        """The comparison of like nodes."""
        return self.results.fleet

    def suspects(self) -> Iterator[Suspect]:
        """Yield the parts of the machine, no nodes, that explain slow figures."""
        return chain.from_iterable(each.suspects() for each in self.added.values())

    @property
    def faults(self) -> tuple[NodeFault, ...]:
        """The faults of nodes that no figure has. With them the verdict is never PASS."""
        faults: list[NodeFault] = []
        for node in self.bad.nodes:
            faults += [NodeFault(node.host, reason) for reason in node.faults]
        crashed = (each for each in self.executions.crashes if not each.set_aside)
        faults += [NodeFault(each.node, each.message) for each in crashed]
        for check in self.checks:
            faults += starmap(NodeFault, check.of_all.items())
        disturbed = (each for each in self.executions.disturbed if each.is_fault)
        faults += [NodeFault(each.node, each.message) for each in disturbed]
        return tuple(faults)

    @property
    def faulty_hosts(self) -> frozenset[str]:
        """The hosts of `faults`; a host can have several."""
        return frozenset(hosts_of_nodes(each.node for each in self.faults))

    @property
    def baseline(self) -> BaselineComparison | None:
        """The comparison with the accepted runs; None if there are none."""
        return self.results.baseline

    @property
    def contract(self) -> tuple[LimitOutcome, ...]:
        """The limits of the contract that a planned step can have figures for."""
        return tuple(each for each in self.limits if each.of_contract and each.steps)

    @property
    def unmet(self) -> tuple[Message, ...]:
        """What was planned and must be judged, but was not. With it the exit code is never 0."""
        every: tuple[ItemOutcome, ...] = (*self.checks, *self.contract)
        left = (each.messages for each in every if each.binding)
        where = folded(hosts_of_nodes(each.record.node for each in self.again))
        again = [Message(NODES_AGAIN, nodes=where, count=len(self.again))] if self.again else []
        return (*chain.from_iterable(left), *self.required, *again)

    @cached_property
    def again(self) -> Sequence[Result]:
        """The results that miss a limit, and whose repeats do not show it."""
        return [self.results[figure] for figure in self.results.again]

    @property
    def excused(self) -> tuple[Message, ...]:
        """What missed a limit or crashed, and fails no acceptance; each with its node."""
        missed = chain.from_iterable(limit.excuses for limit in self.contract)
        crashed = (each.excused for each in self.executions.crashes if each.set_aside)
        return (*missed, *crashed)

    @property
    def missing_keys(self) -> tuple[str, ...]:
        """The keys of the inventory that would enable the judgements in `unmet`."""
        parts = chain.from_iterable(message.nested() for message in self.unmet)
        return tuple(dict.fromkeys(filter(None, map(key_of, parts))))

    def exit_code(self, *, strict: bool = False) -> int:
        """Return the exit code of ``proofmark verdict``: `exit_code`.

        With `strict`, it is 4 instead of 0 if not everything was judged, or not on all nodes.
        """
        enough = self.conditions.rehearsed or (self.conditions.sanity and self._checked)
        left = (*self.unmet, *self.conditions.open_stages)
        code = exit_code(self.counts, self.coverage, left, bool(enough), self.faults)
        more = self.counts["UNJUDGED"] or self.coverage.not_run or self.degraded
        return 4 if strict and more and not code else code

    def headline(self, *, strict: bool = False) -> Headline:
        """Return the first words of the verdict."""
        faulty = bool(self.conditions.open_stages or self.again)
        figures = self.results.aggregates.records.measurands
        virtual = any(each.origin in VIRTUAL for each in figures)
        return headline(self.exit_code(strict=strict), self.kinds, faulty=faulty, virtual=virtual)

    @cached_property
    def kinds(self) -> Mapping[str, Judged]:
        """What each kind of limits judged."""
        found = {CONTRACT: self._of_limits(CONTRACT)}
        outcomes = [each.outcomes for each in self.limits if each.kind == EXPECTED]
        alike, off = (sum(each.get(word, 0) for each in outcomes) for word in ("PASS", "FAIL"))
        found[EXPECTED] = Judged(alike + off, alike, off)
        if self.baseline:
            passed, worse = (self.baseline.outcome(each) for each in ("passed", "worse"))
            met = np.setdiff1d(passed, worse)
            found[BASELINE] = Judged(len(self.baseline.compared), len(met), len(worse))
        every = chain.from_iterable(self.results.answers.values())
        digits = Counter(each.reason.main_code for each in every if each.kind == PEERS)
        same, wrong = digits[DIGITS_ALIKE], digits[DIGITS_WRONG]
        alike, failed = len(self.fleet.alike) + same, len(self.fleet.failed) + wrong
        peers = {PEERS: Judged(alike + failed, self.fleet.shown_alike + same, failed)}
        return found | {FLOOR: self._of_limits(FLOOR)} | peers

    def _of_limits(self, kind: str) -> Judged:
        of_kind = [each for each in self.limits if each.kind == kind]
        used = [each for each in of_kind if each.judged or (each.of_contract and each.steps)]
        failed = sum(each.outcome == "FAIL" and each.binding for each in used)
        met = len(used) - failed if kind == FLOOR else sum(each.outcome == "PASS" for each in used)
        minor = sum(not each.binding and each.outcome != "PASS" for each in used)
        return Judged(total=len(used), met=met, failed=failed, minor=minor)

    @property
    def _checked(self) -> bool:
        """Whether a floor or peers would have shown a fault of any figure."""
        return any(self.kinds[kind].met + self.kinds[kind].failed for kind in (FLOOR, PEERS))

    def of(self, *words: str) -> Iterator[Result]:
        """Yield the results with these verdicts."""
        return self.results.of(words)

    def about(self, wanted: Callable[[Record], bool]) -> Iterator[Result]:
        """Yield the results for which `wanted` is true.

        `wanted` gets a record without node, execution and value.
        """
        return self.results.about(wanted)

    def measured(self) -> set[str]:
        """Return the nodes and pairs of nodes with a result, as records name them."""
        aggregates = self.results.aggregates
        return {aggregates.records.nodes[node] for node in set(aggregates.node.tolist())}

    def judged(self) -> set[str]:
        """Return the nodes and pairs of nodes with a result that a reference or peers judged."""
        aggregates, answers = self.results.aggregates, self.results.answers
        accepted = self.baseline.compared.tolist() if self.baseline else ()
        places = {*np.flatnonzero(self.fleet.of >= 0).tolist(), *answers, *accepted}
        return {aggregates.node_of(place) for place in places}

    def compared(self) -> int:
        """Return the number of nodes with a figure that was judged, or with a fault."""
        return len({*hosts_of_nodes(self.judged()), *(node.host for node in self.bad.nodes)})

    def judgements(self) -> int:
        """Return the number of judgements of all figures."""
        return self.results.judgements()

    def retest(self) -> tuple[str, ...]:
        """Return the steps of the figures to be measured again.

        Too few repeats show that they fail, or they are off at single message sizes.

        Steps whose planned executions alone fail are left out: further ones change nothing.
        """
        missed = chain(self.of("FAIL"), self.again)
        again = [each for each in missed if each.retest and each.rerun_helps]
        again += (self.results[place] for place in self.fleet.spiked.tolist())
        return self._can_run(chain.from_iterable(result.steps for result in again))

    def rerun(self, steps: Iterable[str]) -> tuple[str, ...]:
        """Return what a command names to run `steps` again; nothing if it cannot name them.

        If there are too many steps of single nodes, the whole steps are named: all nodes of them
        measure again.
        """
        named = self._can_run(steps)
        if len(named) > MOST_STEPS:
            named = tuple(dict.fromkeys(StepInstance.parse(each).step for each in named))
        return named if len(named) <= MOST_STEPS else ()

    def _can_run(self, steps: Iterable[str]) -> tuple[str, ...]:
        """Return those of `steps` that can run again, without repetition."""
        if self.of_kind and not self.of_kind.can_repeat:
            return ()
        folders = dict.fromkeys(steps)
        return tuple(
            each for each in folders if StepInstance.parse(each).step not in self.conditions.fixed
        )

    def retest_command(self) -> str:
        """Return the command that runs these steps again; empty if there are none."""
        steps = [of_run(step, STEP, "STEP") for step in self.retest()]
        run = of_run(f"runs/{self.run}", SCRIPT, "RUN")
        return PrintedCommand("proofmark", "rerun", run, *steps) if steps else ""

    def as_json(self) -> dict[str, Any]:
        """Return the form of ``verdict.json``."""
        return {**self.head(), "results": [result_json(result) for result in self.results]}

    @cached_property
    def of_added(self) -> Mapping[str, Any]:
        """The keys of ``verdict.json`` with what the judges of other packages found."""
        found: dict[str, Any] = {}
        for finding in self.added.values():
            found |= finding.as_json()
        return found

    def head(self, *, unlisted: int = 0) -> dict[str, Any]:
        """Return the part of ``verdict.json`` before the results."""
        basis = self.hardware.basis.as_json("basis") if self.hardware.basis else {}
        head = {
            "run": self.run,
            "headline": self.headline().as_json(),
            "counts": dict(self.counts),
            "single_runs": self.results.single_runs,
            "coverage": self.coverage.as_json(),
            "degraded": self.degraded and self.degraded.as_json(),
            **({self.of_kind.kind: self.of_kind.as_json()} if self.of_kind else {}),
            "unmet": list(self.unmet),
            "faults": [fault.message for fault in self.faults],
            "excused": list(self.excused),
            "stage_faults": [fault.model_dump() for fault in self.conditions.stage_faults],
            "disturbed": [each.as_json() for each in self.executions.disturbed],
            "replaced": [each.as_json("text") for each in self.conditions.replaced],
            "items_of_other_suites": [
                each.item.number for each in self.limits if each.item and not each.steps
            ],
            "added": [vars(each) for each in self.executions.added],
            "crashes": [each.as_json() for each in self.executions.crashes],
            **basis,
            "rehearsed": self.conditions.rehearsed,
            "limits": [limit.as_json() for limit in self.contract],
            "checks": [check.as_json() for check in self.checks],
            "retest": {"steps": list(self.retest()), "command": self.retest_command()},
            "file_systems": [fault.as_json() for fault in self.storage.file_systems],
            "fleet": {**self.fleet.as_json(), **self.bad.as_json()},
            "storage_targets": [target.as_json() for target in self.storage.targets],
            "baseline": self.baseline and self.baseline.as_json(),
        }
        head |= {"unlisted": unlisted, **self.of_added}
        return {key: value for key, value in head.items() if value or key not in _OPTIONAL}


@dataclass(frozen=True)
class NodeFault:
    """A fault of a node that no figure has."""

    node: str
    reason: Message

    @property
    def message(self) -> Message:
        """The fault with the node."""
        return Message("node-fault", node=self.node, text=self.reason)


SINGLE_RUN = "single run"
"""Label of a figure that was measured once."""
_MARK = f"@{secrets.token_hex(8)}@"  # random: in no name and in no output
_OF_RESULT = ("step", "attempt", "node", "value", "repeat", "values", "interval")
"""The keys of `result_json` that differ between plain results with one pattern, in order."""
_OF_JUDGEMENT = ("value", "ratio", "ratios", "visible")
"""The keys of `judgement_json` that differ between nodes with one reason, in order."""
_AT_ONCE = 4000
"""The results that a process writes at a time."""
_PATTERNS = 4096
"""The patterns in memory, at most."""


def write_verdict(file: TextIO, verdict: Verdict, *, all_figures: bool = True) -> None:
    """Write ``verdict.json``.

    Args:
        all_figures: whether figures without a finding are listed if this kit did not execute the
            run. Else ``unlisted`` has their number: ``records.parquet`` has them.
    """
    results, left = verdict.results, np.zeros(len(verdict.results), dtype=bool)
    if not (verdict.conditions.executed or all_figures):
        left = results.without_finding
    head = verdict.head(unlisted=int(left.sum()))
    file.write(json.dumps(head, indent=1, default=str).removesuffix("\n}") + ',\n "results": [')
    between, lines = "\n  ", PlainLines(results)
    for written in parallel_map(lines.of, batched(np.flatnonzero(~left).tolist(), _AT_ONCE)):
        file.write(f"{between}{written}")
        between = _BETWEEN
    file.write("\n ]\n}\n")


_BETWEEN = ",\n  "


class PlainLines:
    """The lines of results. Plain ones (`Results.plain`) are made from patterns that many share."""

    def __init__(self, results: Results) -> None:
        aggregates = results.aggregates
        self._results, self._executions = results, aggregates.records.executions
        # An item of a memoryview is a Python number. A list of all of them takes more memory.
        self._values = aggregates.records.value[aggregates.order].data
        self._execution = aggregates.records.execution[aggregates.order[aggregates.first]].data
        self._places, self._counts = aggregates.first.data, aggregates.count.data
        self._measurand, self._medians = aggregates.measurand.data, aggregates.median.data
        self._plain, self._verdicts = results.plain.data, results.verdict.data
        self._patterns: dict[object, str] = {}

    def of(self, figures: Iterable[int]) -> str:
        """Return the lines of results."""
        return _BETWEEN.join(
            (self._plain[each] and self._line(each)) or json.dumps(result_json(self._results[each]))
            for each in figures
        )

    def _line(self, figure: int) -> str:
        """Return the line of a plain result; "" if it has a value that is not finite."""
        results, first, median = self._results, self._places[figure], self._medians[figure]
        values = self._values[first : first + self._counts[figure]].tolist()
        if not math.isfinite(median + sum(values)):
            return ""
        execution = self._executions[self._execution[figure]]
        judgements, bounds = results.references(figure), interval(values)
        fewer = results.degraded.get(execution.step)
        key: list[object] = [self._measurand[figure], self._verdicts[figure], len(values), fewer]
        numbers: list[str] = []
        for of in judgements:
            code, limits = of.reason.main_code, (of.at_least, of.at_most)
            key.append((of.kind, of.source, of.outcome, of.reason, code, limits))
            ratios = json.dumps(of.ratios) if of.ratios else "[]"
            numbers += _number(of.value), _number(of.ratio), ratios, _number(of.visible)
        if (shared := tuple(key)) not in self._patterns:
            if len(self._patterns) == _PATTERNS:
                self._patterns.clear()
            self._patterns[shared] = _pattern(result_json(results[figure]))
        return self._patterns[shared] % (
            quoted(execution.step),
            execution.attempt,
            quoted(results.aggregates.node_of(figure)),
            median,
            execution.repeat,
            values,
            f"[{bounds.low}, {bounds.high}]" if bounds else "null",
            *numbers,
        )


def _pattern(fields: dict[str, Any]) -> str:
    """Return a result as JSON. The value of each key that differs is ``%s``."""
    references = [{**each, **dict.fromkeys(_OF_JUDGEMENT, _MARK)} for each in fields["references"]]
    marked = {**fields, **dict.fromkeys(_OF_RESULT, _MARK), "references": references}
    return json.dumps(marked).replace("%", "%%").replace(f'"{_MARK}"', "%s")


def _number(value: float | None) -> str:
    if value is None:
        return "null"
    return f"{value}" if math.isfinite(value) else json.dumps(value)
