"""What will stay unjudged: known from a plan and the facts of the site, before any run.

The references, limits and rules are those by which a run is judged later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from proofmark.cases.reference import TYPICAL, Reference
from proofmark.cases.suite import Benchmarks, Required
from proofmark.cases.vocabulary import PART_AXES, RESOLVED_AXES
from proofmark.common.errors import InputError
from proofmark.common.message import NOTHING, Message, joined
from proofmark.common.printed_command import setting
from proofmark.judge.references.derived import (
    ONLY_SLOWER,
    UNKNOWN_BUILD,
    Setting,
    TypicalValue,
    key_of,
    value_of_rule,
)
from proofmark.judge.stated_parts import nominal_parts, statements
from proofmark.plan.kinds import kind_of
from proofmark.plan.plan import Plan
from proofmark.plan.selection import (
    StepFigures,
    figures_of_plan,
    has_partner,
    required_metrics,
    selects,
)
from proofmark.plan.step import Step
from proofmark.plan.validation import described
from proofmark.site.accepted_baseline import chosen_baseline
from proofmark.site.contract_document import CONTRACT
from proofmark.site.installed_parts import declared_parts
from proofmark.site.inventory import Site
from proofmark.site.machines import Machine, declared_node
from proofmark.site.node.facts import HostFacts, parse_probe

Kind = Literal["required", "limit", "reference"]
"""A required metric, a limit of the contract, or a reference of a case, which only informs."""
ITEMS = f"{CONTRACT}.items"
"""The key that enables a judgement of every figure."""
ACCEPT = "accept_unjudged"
"""The extra variable of a run that starts although something cannot be judged."""
OF_PROGRAMS = ("condition-blas", "condition-stores", "condition-stores-cached")
"""Conditions that only the programs of the run can show."""


@dataclass(frozen=True)
class Unjudged:
    """A figure that will stay unjudged.

    Attributes:
        limit: the limit or reference in words; empty for a required metric.
        reason: why it cannot be judged.
        key: of the inventory that enables the judgement.
    """

    kind: Kind
    figure: str
    limit: str
    reason: Message
    key: str

    @property
    def message(self) -> Message:
        """The whole line."""
        what = f"{self.figure}: {self.limit}" if self.limit else self.figure
        words = {"kind": self.kind, "figure": what, "text": self.reason}
        if self.key != ITEMS:
            return Message("foreseen", **words)
        return Message("foreseen-item", file=CONTRACT, **words)

    def as_json(self) -> dict[str, Any]:
        """Return the form for programs."""
        of_figure = {"kind": self.kind, "figure": self.figure, "limit": self.limit}
        return {**of_figure, **self.reason.as_json("reason"), "key": self.key}


def refusing(found: Sequence[Unjudged]) -> list[Unjudged]:
    """Return the figures that refuse a run: all but those of references of cases."""
    return [each for each in found if each.kind != "reference"]


def refusals(found: Sequence[Unjudged], site: Site) -> list[InputError]:
    """Return a mistake of the site for each figure that refuses a run."""
    accepted = f"a fact or an item that enables it, another suite, or {setting(ACCEPT)}"
    mistakes = []
    for each in refusing(found):
        of_contract = each.key == ITEMS
        file, key = (site.contract_file, "items") if of_contract else (site.facts, each.key)
        what = f"figures that cannot be judged: {each.message}"
        mistakes.append(InputError(f"{file}", key, what, accepted))
    return mistakes


def unjudged_of(
    plan: Plan,
    benchmarks: Benchmarks,
    site: Site,
    machines: Callable[[str], Machine],
    probe: str = "",
    baseline: str | None = None,
) -> list[Unjudged]:
    """Return what will stay unjudged in a run of `plan`, each figure once.

    Figures of virtual and of predicted nodes only have to be valid.

    Args:
        probe: the output of the probe of a node; empty if the hardware is declared.
        baseline: as `chosen_baseline` takes it. Accepted runs judge the required metrics.

    Raises:
        BadInput: there is no such baseline.
    """
    plan = kind_of(plan).judged(plan)
    if site.partition.origin != "measured":
        return []
    here = None if site.partition.node.topology else parse_probe(probe, "probe of this machine")
    facts = {each.mode: here or declared_node(site, machines(each.mode)) for each in plan.groups}
    outlook = PlannedJudgements(plan, benchmarks, site, facts)
    found: list[Unjudged] = []
    if chosen_baseline(site.inventory, site.partition_name, baseline) is None:
        sanity = plan.suite in benchmarks.suites and benchmarks.suites[plan.suite].kind == "sanity"
        for each in required_metrics(plan, benchmarks, site.items.values()):
            found += outlook.of_required(each, sanity=sanity)
    for case in outlook.figures:
        found += outlook.of_references(case)
    return list(dict.fromkeys(found))


@dataclass(frozen=True)
class PlannedJudgements:
    """What is known of a run before it starts; `facts` are those of a node in each mode."""

    plan: Plan
    benchmarks: Benchmarks
    site: Site
    facts: HostFacts

    @cached_property
    def figures(self) -> dict[str, list[StepFigures]]:
        """The figures of each case of the plan; those of several repeats once."""
        found = {}
        for case, figures in figures_of_plan(self.plan, self.benchmarks).items():
            once: dict[object, StepFigures] = {}
            for each in figures:
                step = each.step
                known = (each.mode, _nodes(step), step.placement, *step.recorded.items())
                once.setdefault(known, each)
            found[case] = [*once.values()]
        return found

    def of_required(self, required: Required, *, sanity: bool) -> Iterator[Unjudged]:
        """Yield the metrics of `required` that are not judged on a class of nodes, by reason."""
        classes: dict[str, list[StepFigures]] = {}
        for each in self.figures.get(required.case, ()):
            where = required.where.items()
            if not each.traits.keys().isdisjoint(PART_AXES):
                continue  # a part of a node is compared with its other parts
            if all(each.traits[key].allows(value) for key, value in where if key in each.traits):
                several = ["several nodes"] if _nodes(each.step) > 1 else []
                mode = [f"mode {each.mode}"] if len(self.plan.groups) > 1 else []
                known = each.step.recorded
                parts = [f"{axis} {known[axis]}" for axis in RESOLVED_AXES if axis in known]
                members = classes.setdefault(", ".join([*several, *mode, *parts]), [])
                members += [each] if required.where.keys() <= each.traits.keys() else []
        found: dict[tuple[Message, str], tuple[dict[str, None], dict[str, None]]] = {}
        for metric in required.metrics:
            for name, members in classes.items():
                answers = [self._open(required.case, metric, each, sanity) for each in members]
                if all(why for why, _ in answers):
                    named = (each for each in answers if each[0].code != "no-reference")
                    first = answers[0] if answers else (Message("no-row"), ITEMS)
                    metrics, names = found.setdefault(next(named, first), ({}, {}))
                    metrics[metric], names[name] = None, None
        for (reason, key), (metrics, names) in found.items():
            on = "; ".join(filter(None, names))
            figure = f"{required.case} {', '.join(metrics)}" + (f" ({on})" if on else "")
            yield Unjudged("required", figure, "", reason, key=key)

    def of_references(self, case: str) -> Iterator[Unjudged]:
        """Yield each limit, and each reference by a rule, that cannot judge a figure."""
        for each in self._references(case):
            limit, rule = each.kind == "contract", each.rule or ""
            if not limit and (not rule or rule in TYPICAL):
                continue
            for figures in self.figures[case]:
                if self.applies(each, figures) and (why := self.why_not(each, figures)):
                    kind: Kind = "limit" if limit else "reference"
                    yield Unjudged(kind, described(each, case), rule, why, key=key_of(why) or ITEMS)

    def _references(self, case: str) -> Iterator[Reference]:
        for each in self.benchmarks.cases[case].references:
            if each.kind != "expected" or self.site.partition.expected.wanted:
                yield each
        yield from (item for item in self.site.items.values() if item.case == case)

    def _open(
        self, case: str, metric: str, figures: StepFigures, sanity: bool
    ) -> tuple[Message, str]:
        """Return why `metric` will be neither PASS nor FAIL; with `sanity` a floor suffices.

        The second text is the key that enables the judgement.
        """
        named = (each for each in self._references(case) if each.metric == metric)
        applying = [each for each in named if self.applies(each, figures)]
        judging = [each for each in applying if each.kind != "floor" or sanity]
        reasons: list[Message] = []
        for each in judging:
            why = self.why_not(each, figures)
            if not why:
                return NOTHING, ""
            # No table has the hardware: there is nothing to compare with, nor to say.
            if each.rule not in TYPICAL or why.code == "conditions-open":
                reasons.append(why)
        code = "floor-only" if len(judging) < len(applying) else "no-reference"
        keys = filter(None, map(key_of, reasons))
        return joined(reasons) or Message(code), next(keys, ITEMS)

    def applies(self, reference: Reference, figures: StepFigures) -> bool:
        """Return whether `reference` is for `figures`."""
        threads = figures.step.recorded.get("threads")
        part = threads is not None and threads != self.facts[figures.mode].cores
        return selects(reference, figures) and not (reference.all_cores and part)

    def why_not(self, reference: Reference, figures: StepFigures) -> Message:
        """Return why `reference` cannot judge `figures`; `NOTHING` if it can."""
        if (against := reference.against) is not None:
            others = self.figures.get(against.case or figures.step.case, [])
            name = f"{against.case or figures.step.case} {against.metric}"
            known = has_partner(against, figures, others)
            return NOTHING if known else Message("not-measured", name=name)
        node, count = self.site.partition.node, _nodes(figures.step)
        facts = {"node": self.facts[figures.mode]}
        stated = nominal_parts(facts, statements(facts, declared_parts(node), {}))
        if reference.rule is None:
            return NOTHING
        # The planned nodes are alike: what is not known of all of them is not known of one.
        setting = Setting([*facts.values()], node, UNKNOWN_BUILD, [*stated.values()])
        parameters = {"nodes": count, **figures.step.counts, **figures.step.recorded}
        found = value_of_rule(reference.rule, setting, parameters)
        if isinstance(found, Message):
            return found
        unheld = found.unheld if isinstance(found, TypicalValue) else ()
        open_ = joined(each for each in unheld if each.code not in OF_PROGRAMS + ONLY_SLOWER)
        text = Message("figure-expected")
        return Message("conditions-open", text=text, conditions=open_) if open_ else NOTHING


def _nodes(step: Step) -> int:
    """Return how many nodes measure a figure together; a load on other nodes is not among them."""
    load = step.load
    others = len(load.step.nodes) if load and load.place == "other-nodes" else 0
    return step.nodes_each - others
