"""The command ``explain``: what a step runs, where, and what its verdict depends on.

The verdict depends on its metrics, their references, and the conditions.
"""

from __future__ import annotations

from argparse import Action, ArgumentError, ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from proofmark.cases.case import TELEMETRY, metrics_of
from proofmark.cases.reference import Reference
from proofmark.cli import completion
from proofmark.cli.command import Command, complete, take_newest
from proofmark.cli.output import print_json, print_line, print_table
from proofmark.common.errors import BadInput
from proofmark.common.files import is_folder
from proofmark.common.message import Message
from proofmark.judge.fleet.critical_values import LEAST_NODES
from proofmark.judge.references.derived import Derived
from proofmark.judge.references.judgement import judging_bounds, ordered_references
from proofmark.judge.references.typical import (
    UNKNOWN_BUILD,
    Setting,
    TypicalValue,
    builds,
    value_of_rule,
)
from proofmark.packages.tools.planned_step import (
    Context,
    ExplainedRow,
    Explanation,
    ExplanationSection,
    command_rows,
    context_of,
    fact_rows,
    input_rows,
    need_rows,
    where_rows,
)
from proofmark.packages.tools.requirements import requirements
from proofmark.packages.tools.step_results import again_rows, result_rows
from proofmark.plan.plan import instance_named
from proofmark.plan.selection import required_metrics, selection, selects
from proofmark.plan.step import Step
from proofmark.records.columns import EMULATED
from proofmark.report.words import accepted_text, count, open_bounds_text, reference_text
from proofmark.runs.evidence import open_newest
from proofmark.runs.run import Run
from proofmark.site.accepted_baseline import read_baseline
from proofmark.software.software import software_of


def metric_rows(context: Context) -> list[ExplainedRow]:
    """Return the metrics that the step can give, and those of sensors."""
    known = metrics_of(context.case)
    rows = []
    for name in sorted(context.figures.metrics - TELEMETRY.keys()):
        metric = known.get(name)
        if metric is None:
            rows.append(ExplainedRow(name, "the difference between the copies"))
            continue
        rows.append(ExplainedRow(name, f"{metric.unit}, {metric.better} is better", metric.what))
    sensors = ", ".join(f"{name} ({metric.unit})" for name, metric in TELEMETRY.items())
    return [*rows, ExplainedRow("sensors", sensors, "if a node or its BMC has them")]


def reference_rows(context: Context) -> list[ExplainedRow]:
    """Return each reference that can judge a figure of the step, and what judges the others."""
    applying = list(_applying(context))
    rows = [_reference_row(reference, context) for reference in applying]
    if context.site.partition.origin == EMULATED:
        rows.append(ExplainedRow("origin", EMULATED, "a missed reference is UNJUDGED, and no FAIL"))
    rows += _baseline_rows(context)
    rows += _peer_rows(context)
    items = context.site.items.values()
    for required in required_metrics(context.run.plan, context.benchmarks, items):
        if required.case == context.step.case and _can_have(required.where, context):
            names = ", ".join(required.metrics)
            text = "must be PASS or FAIL on each class of nodes, else exit code 4"
            rows.append(ExplainedRow("required metric", f"{names}{_where(required.where)}", text))
    judged = {reference.metric for reference in applying}
    rest = sorted(context.figures.metrics - judged - TELEMETRY.keys())
    if rest:
        text = "UNJUDGED, unless a baseline or the fleet judges them"
        rows.append(ExplainedRow("without a reference", ", ".join(rest), text))
    return rows


def _applying(context: Context) -> Iterator[Reference]:
    limits = [*context.site.items.values()]
    expected = context.site.partition.expected.wanted
    elsewhere = context.site.elsewhere
    for each in ordered_references(
        context.benchmarks, limits, expected=expected, elsewhere=elsewhere
    ):
        case, reference = each.case, each.reference
        if case == context.step.case and selects(reference, context.figures):
            yield reference


def _reference_row(reference: Reference, context: Context) -> ExplainedRow:
    metric = metrics_of(context.case).get(reference.metric)
    of = reference_text(reference, context.step.case, metric.unit if metric else "")
    found = _value_of_rule(reference, context)
    if found is not None:
        of = f"{of} ({found if isinstance(found, str) else f'{found.value:.6g} {found.unit}'})"
    elif reference.rule is not None:
        of = f"{of} (computed from the reports of the nodes)"
    elif reference.against is not None:
        of = f"{of}, measured in this run"
    expected = context.site.partition.expected
    of_source = found.tolerance if isinstance(found, TypicalValue) else None
    bounds = judging_bounds(reference, expected.tolerance, of_source)
    text = accepted_text(bounds, of) if bounds.known else open_bounds_text(of)
    conditions = [
        f"{name} {value}"
        for name, value in reference.where.items()
        if not _is_planned(name, context)
    ]
    only = f", for figures with {', '.join(conditions)}" if conditions else ""
    notes = [reference.source, *_notes(reference, context)]
    return ExplainedRow(f"{reference.kind}: {reference.metric}", f"{text}{only}", "; ".join(notes))


def _value_of_rule(reference: Reference, context: Context) -> Derived | Message | None:
    """Return the value of a rule; None without a rule, or if the hardware is not known yet."""
    if reference.rule is None or context.facts is None:
        return None
    of_case = builds(software_of(context.run), context.benchmarks)
    setting = Setting(
        [context.facts] * len(context.together),
        context.site.partition.node,
        of_case.get(context.step.case, UNKNOWN_BUILD),
    )
    return value_of_rule(reference.rule, setting, context.step.recorded)


def _notes(reference: Reference, context: Context) -> Iterator[str]:
    if reference.kind == "floor":
        yield "a figure below it is FAIL, and one above it is UNJUDGED"
    if reference.all_cores:
        cores = context.machine.symbols.get("cores") if context.machine else None
        same = cores is None or cores == context.step.threads
        state = "" if same else f"; the step has {context.step.threads} of {cores}"
        yield f"only with one thread on each core{state}"
    if reference.against:
        plan, case = context.run.plan, context.step.case
        measured = selection(reference, case, plan, context.benchmarks).comparable
        if context.step.id not in measured:
            yield "UNJUDGED: the plan does not measure the other figure"


def _baseline_rows(context: Context) -> list[ExplainedRow]:
    folder = context.run.files.baseline
    if not is_folder(folder):
        return []
    try:
        found, _ = read_baseline(folder)
    except BadInput:
        return [ExplainedRow("baseline", "damaged", context.run.files.link(folder))]
    runs = ", ".join(each.run for each in found.runs)
    text = "each figure with a like figure there: PASS or FAIL"
    return [ExplainedRow(f"baseline {found.name}", text, f"accepted runs: {runs}")]


def _peer_rows(context: Context) -> Iterator[ExplainedRow]:
    metrics = metrics_of(context.case)
    given = [name for name in sorted(context.figures.metrics) if name in metrics]
    alike = [name for name in given if metrics[name].peers and name not in TELEMETRY]
    like = _like_measurements(context)
    if alike and like >= LEAST_NODES:
        text = "an outlier is FAIL; agreement alone is UNJUDGED"
        yield ExplainedRow("peers", f"compared with the like figures of {like} measurements", text)
    elif alike:
        text = f"{count(like, 'like measurement')}: {LEAST_NODES} are needed"
        yield ExplainedRow("peers", "not compared with other nodes", text)
    digits = [name for name in given if metrics[name].same_digits]
    if digits:
        text = "repeats and like nodes must print the same digits, else FAIL"
        yield ExplainedRow("digits", ", ".join(digits), text)


def _like_measurements(context: Context) -> int:
    """Return on how many nodes, or sets of nodes, the plan measures the same as the step."""
    wanted = _like(context.step)
    measured: dict[tuple[str, ...], int] = {}
    for group in context.run.plan.needed():
        if group.mode == context.mode:
            measured |= {
                tuple(step.nodes): step.measurements
                for step in group.steps()
                if step.case == context.step.case and _like(step) == wanted
            }
    return sum(measured.values())


def _like(step: Step) -> tuple[object, ...]:
    return (
        step.recorded,
        step.placement,
        step.scope,
        len(step.nodes) if step.scope == "job" else 0,
    )


def condition_rows(context: Context) -> list[ExplainedRow]:
    """Return the conditions without which the figures of the step are INVALID."""
    found = requirements(
        context.step,
        context.case,
        context.site.partition,
        context.mode,
        executed=context.run.executed,
    )
    return [ExplainedRow(each.about, each.text) for each in found]


def _is_planned(name: str, context: Context) -> bool:
    """Return whether the plan fixes the value of a trait: all figures of the step have it."""
    trait = context.figures.traits.get(name)
    return trait is not None and trait.kind is None and len(trait.values) == 1


def _can_have(where: dict[str, str | int | float], context: Context) -> bool:
    traits = context.figures.traits
    return all(name in traits and traits[name].allows(value) for name, value in where.items())


def _where(where: dict[str, str | int | float]) -> str:
    return "".join(f" at {key} {value}" for key, value in where.items())


def explain(run: Run, name: str, unwritten: Callable[[Step], str] = lambda _: "") -> Explanation:
    """Return what is known of the step `name`: from its plan, and from its results if it has any.

    Args:
        run: the run, finished or not.
        name: the id, the number or the beginning of the id of a step, or ``<step>/<node>``.
        unwritten: returns the script that a step will have.

    Raises:
        BadInput: there is no such step or node, or an input of the run is damaged.
    """
    step, instance = instance_named(name, run.plan.steps(), run.id)
    context = context_of(run, step, instance, unwritten(step))
    sections = (
        ExplanationSection("command", "What it runs", command_rows(context)),
        ExplanationSection("where", "Where", where_rows(context)),
        ExplanationSection("inputs", "Inputs", input_rows(context)),
        ExplanationSection("facts", "Facts in the expressions", fact_rows(context)),
        ExplanationSection("needs", "What it needs", need_rows(context)),
        ExplanationSection("outputs", "Metrics that it can give", metric_rows(context)),
        ExplanationSection("references", "What judges the metrics", reference_rows(context)),
        ExplanationSection("conditions", "INVALID unless", condition_rows(context)),
        ExplanationSection("results", "Result so far", result_rows(context)),
        ExplanationSection("again", "How to run it again", again_rows(context)),
    )
    return Explanation(run.id, instance, sections)


RUNS = Path("runs")
STEPS = ("workdir", "steps")
"""The folder of the steps in a run. A path with it names the run and the step."""


class _Step(Action):
    """Reads ``STEP``, ``RUN STEP`` or ``RUN/workdir/steps/STEP``."""

    def __call__(
        self,
        parser: ArgumentParser,
        namespace: Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        words = [values] if isinstance(values, str) else list(values or ())
        if len(words) > 2:
            raise ArgumentError(self, f"found {len(words)} words; accepted: STEP, or RUN STEP")
        if len(words) == 2:
            _take(self, namespace, Path(words[0]))
        parts = Path(words[-1]).parts
        pairs = [*pairwise(parts[1:])]
        if STEPS in pairs:
            place = pairs.index(STEPS) + 1
            _take(self, namespace, Path(*parts[:place]))
            words = ["/".join(parts[place + 2 :])]
        namespace.step = words[-1]


class _Run(Action):
    """Reads the value of ``--run``."""

    def __call__(
        self,
        parser: ArgumentParser,
        namespace: Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        _take(self, namespace, Path(f"{values}"))


def _take(action: Action, namespace: Namespace, run: Path) -> None:
    """Take the run of the command line, which has three places for it.

    Raises:
        ArgumentError: another place names another run.
    """
    if namespace.folder not in (None, run):
        raise ArgumentError(action, f"found {namespace.folder} and {run}; accepted: one run")
    namespace.folder = run


def _arguments(parser: ArgumentParser) -> None:
    step = parser.add_argument(
        "step",
        metavar="STEP",
        nargs="+",
        action=_Step,
        help="the id of a step, its number or its beginning; <step>/<node> for one node; RUN STEP "
        "and RUN/workdir/steps/STEP name the run too",
    )
    complete(step, completion.runs)
    note = "default: the only runs/latest-<site>"
    complete(parser.add_argument("--run", dest="folder", action=_Run, help=note), completion.runs)
    parser.add_argument("--json", action="store_true", help="print the same as JSON")


def print_explanation(options: Namespace) -> int:
    """Print what a step runs, where, with which inputs, and what its verdict depends on."""
    from proofmark.cli.plan import unwritten  # it imports all plug-ins

    run = open_newest(options.folder or take_newest(RUNS))
    found = explain(run, options.step, partial(unwritten, run))
    if options.json:
        print_json(found.as_json())
        return 0
    print_line(f"{found.instance} of run {found.run}")
    for section in found.sections:
        if section.rows:
            print_line("")
            headers = (section.title, "", "")
            print_table(headers, [(row.name, row.value, row.source) for row in section.rows])
    return 0


COMMANDS = {
    "explain": Command(print_explanation, "explain 0004 --run runs/latest-local", _arguments)
}
