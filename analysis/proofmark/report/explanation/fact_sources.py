"""Where the parameters of a step come from: the expression of the case, and the facts in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from proofmark.cases.case import Case
from proofmark.cases.suite_use import SuiteUse
from proofmark.cases.vocabulary import AXES, FILE_SYSTEM, LOAD, MEASURED
from proofmark.common.expressions import variables_in
from proofmark.plan.step import Step
from proofmark.plan.suite_steps import DEFAULT_FACTS, modes_of
from proofmark.report.explanation.context import Context
from proofmark.report.explanation.rows import ExplainedRow

_DEFAULTS = {"nodes": 1, "ranks": 1, "threads": 1, "placement": "close"}
"""The values of the axes that no sweep names."""


@dataclass(frozen=True)
class Definition:
    """The place that gives a parameter its value, and its expression there; may be empty."""

    place: str
    expression: Any = ""

    def __str__(self) -> str:
        return f"{self.place}: {self.expression}" if self.expression != "" else self.place


def parameter_rows(context: Context) -> list[ExplainedRow]:
    """Return each parameter of the step with its value and its source."""
    step, uses = context.step, uses_of(context)
    values: dict[str, Any] = dict(step.recorded)
    values |= {"nodes": len(context.together), "ranks": step.ranks, "threads": step.threads}
    values |= {"placement": step.placement} if step.placement else {}
    searched = _searched(context)
    rows = []
    for name, value in (*values.items(), *step.derived.items()):
        found = dict.fromkeys(str(each) for each in _definitions(name, context, uses))
        source = " or ".join(found)
        if name in searched:
            source = f"{source}; {searched[name]}"
        rows.append(ExplainedRow(name, f"{value}", source))
    return rows


def fact_rows(context: Context) -> list[ExplainedRow]:
    """Return each fact that the expressions of the parameters use, with its value and source."""
    uses = uses_of(context)
    known = {*context.step.recorded, *context.step.derived, *AXES}
    pending = []
    for name in known:
        pending += [each.expression for each in _definitions(name, context, uses)]
    pending += [context.case.cost.seconds, context.case.cost.bytes, context.case.timeout]
    pending += [*context.case.arguments, *context.case.inputs.values()]
    seen: dict[str, None] = {}
    while pending:
        for text in _texts(pending.pop()):
            for name in sorted(_names(text) - seen.keys() - known):
                seen[name] = None
                pending += [each.expression for each in _definitions(name, context, uses)]
    rows = (_fact(name, context) for name in sorted(seen))
    return [row for row in rows if row]


def uses_of(context: Context) -> list[SuiteUse]:
    """Return the uses of the case in the suite that can have made the step: usually one."""
    case, step = context.case, context.step
    every = case.suites.get(context.run.plan.suite, [])
    return [use for use in every if _made_by(step, case, use, context)]


def _made_by(step: Step, case: Case, use: SuiteUse, context: Context) -> bool:
    partition = context.site.partition
    alone = step.scope == "job" and len(step.nodes) == {"each-pair": 2}.get(use.scope, 1)
    modes = modes_of(use, partition.modes, partition.current_mode)
    if context.mode not in modes or (use.scope != step.scope and not alone):
        return False
    if (use.load is not None) != (LOAD in step.parameters) or bool(use.reads) != bool(step.reads):
        return False
    if step.load and use.load and use.load.case != step.load.step.case:
        return False
    swept = {**case.sweep, **use.sweep}
    computed = {*case.let, *use.let, *AXES}
    return all(
        _has(step, axis.rstrip("_"), expression)
        for axis, expression in swept.items()
        if axis not in computed
    )


def _has(step: Step, axis: str, expression: Any) -> bool:
    """Return whether a step has the axis, with one of its values if they are constants."""
    if axis not in step.parameters:
        return isinstance(expression, str)  # an expression that gives a list is no parameter
    listed = expression if isinstance(expression, list) else [expression]
    constants = [f"{each}" for each in listed if "{" not in f"{each}"]
    return len(constants) < len(listed) or f"{step.parameters[axis]}" in constants


def _definitions(name: str, context: Context, uses: Sequence[SuiteUse]) -> Iterator[Definition]:
    """Yield what gives a parameter its value, one for each use; empty for a name without one."""
    for use in uses or [SuiteUse()]:
        if found := _definition(name, context, use):
            yield found


def _definition(name: str, context: Context, use: SuiteUse) -> Definition | None:
    case, suite = context.case, context.run.plan.suite
    places: tuple[tuple[str, Mapping[str, Any]], ...] = (
        ("label of the case", case.labels),
        (f"let of the suite {suite}", use.let),
        ("let of the case", case.let),
        (f"sweep of the suite {suite}", use.sweep),
        ("sweep of the case", case.sweep),
    )
    for place, values in places:
        for key in (name, f"{name}_"):
            if key in values:
                return Definition(place, values[key])
    if name == "fs_block_bytes":
        return Definition(f"block_bytes of the file system {context.step.file_system}")
    if name in (LOAD, MEASURED, FILE_SYSTEM):
        return Definition(f"the suite {suite}")
    if name in _DEFAULTS and name in AXES:
        return Definition("default of the kit", _DEFAULTS[name])
    return None


def _searched(context: Context) -> dict[str, str]:
    """Return the axes that a search of the plan varies among its steps, with its decision."""
    for search in context.run.plan.searches:
        if context.step.id in search.steps():
            text = f"the search {search.id} chooses among its values"
            return dict.fromkeys(search.rule.axes, text)
    return {}


def _texts(value: Any) -> list[str]:
    listed = value if isinstance(value, list) else [value]
    return [each for each in listed if isinstance(each, str)]


def _names(text: str) -> set[str]:
    try:
        return variables_in(text)
    except SyntaxError:
        return set()  # braces of a program's own syntax


def _fact(name: str, context: Context) -> ExplainedRow | None:
    """Return the value of a fact and its source; None for a name that is no fact."""
    partition = context.site.partition
    if name in partition.facts:
        sources = partition.node.sources
        source = sources.get(name) or sources.get(f"facts.{name}")
        place = f"fact of the partition {context.run.plan.partition}"
        return ExplainedRow(
            name, f"{partition.facts[name]}", f"{place}: {source}" if source else place
        )
    if name in context.case.defaults:
        return ExplainedRow(name, f"{context.case.defaults[name]}", "default of the case")
    if name in DEFAULT_FACTS:
        return ExplainedRow(name, f"{DEFAULT_FACTS[name]}", "default of the kit")
    symbols = context.machine.symbols if context.machine else {}
    if name in symbols:
        return ExplainedRow(name, f"{symbols[name]}", f"a node in mode {context.mode}")
    return None
