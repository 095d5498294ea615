"""The command ``tune``: it prints the result of a search as facts of the partition."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from typing import Annotated

from pydantic import AfterValidator, Field, ValidationError

from proofmark.cases.vocabulary import Name, Slug
from proofmark.cli.command import Command, run_argument, verb_argument
from proofmark.cli.inputs import evidence_of, kit_benchmarks
from proofmark.cli.output import print_text
from proofmark.common.errors import bad_input
from proofmark.common.expressions import render
from proofmark.common.files import moment_of
from proofmark.common.shared_models import StrictModel
from proofmark.plan.plan import Step
from proofmark.plan.search import Search, available, decide
from proofmark.records.read import figures_of
from proofmark.runs.attempts import attempts, has_result
from proofmark.runs.run import Run, site_of
from proofmark.site.groups import is_template, literal_yaml
from proofmark.site.hardware import NODE
from proofmark.site.partition import PREDICTED


def _literal(text: str) -> str:
    if is_template(text) or not text.isprintable():
        raise ValueError("a template of Ansible, or a character that is not printable")
    return text


Source = Annotated[str, Field(min_length=1, max_length=1000), AfterValidator(_literal)]
Word = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]*$", max_length=100)]
"""A word without a special character of Ansible, of a shell and of a path."""


class Tuned(StrictModel):
    """Facts of a search; ``source`` has the run, its date and the figure.

    Both come from a run, which can be a copy that another person changed. A fact becomes a part of
    commands, also of commands of root: it is a number or a word.
    """

    source: Source
    facts: dict[Name, Word | int | float]


class TunedFacts(StrictModel):
    """The facts that follow from the searches of a run, by the name of the case."""

    cases: dict[Slug, Tuned]


def tuned_facts(run: Run) -> TunedFacts:
    """Return the facts that follow from the searches of `run`.

    The outputs are read again: the decisions of the controller are not used.

    Raises:
        BadInput: the run is that of a twin, no search of the run has facts, a search with facts is
            unfinished or has no valid figure, two searches of one case have facts, or a fact is
            neither a number nor a word.
    """
    if site_of(run).partition.origin == PREDICTED:
        raise bad_input(run.files.site, "partition.origin", PREDICTED, "a run on real nodes")
    facts: dict[str, Tuned] = {}
    for search in run.plan.searches:
        if not search.rule.facts:
            continue
        if search.case in facts:
            found = f"several searches of {search.case}"
            raise bad_input(run.id, "searches", found, "one search of each case, in one mode")
        facts[search.case] = _tuned(run, search)
    if not facts:
        raise bad_input(run.id, "searches", "no search with facts", "a run of the suite tune")
    return TunedFacts(cases=facts)


def _tuned(run: Run, search: Search) -> Tuned:
    open_search = available(search, run.plan.repeated)
    finished = [step for step in open_search.steps() if has_result(run.files.step(step))]
    decision = decide(open_search, figures_of(run, open_search, finished))
    if not decision.ended:
        missing = [step for step in decision.needed if step not in finished]
        found = f"an unfinished search: {len(missing)} steps are missing, the first is {missing[0]}"
        raise bad_input(run.id, search.id, found, "a search that ended; the same play continues it")
    if decision.best is None:
        raise bad_input(run.id, search.id, decision.ended, "a search with a valid best point")
    steps = {step.id: step for step in run.plan.steps()}
    best = steps[decision.best.steps[0]]
    values = {
        name: render(text, best.planned, file=f"{search.case}.yml", key=f"search.facts.{name}")
        for name, text in search.rule.facts.items()
    }
    figure = f"{search.rule.metric} {decision.value:.5g} {search.unit}"
    size = f", n {best.planned['n']}" if "n" in best.planned else ""
    source = f"run {run.id}, {_date(run, best)}, step {best.id}: {figure}{size}"
    try:
        return Tuned(source=source, facts=values)
    except ValidationError as error:
        (first, *_) = error.errors(include_url=False, include_input=False)
        found = f"{source!r}, {values!r} ({first['msg']})"
        accepted = "numbers and words, without a template of Ansible"
        raise bad_input(run.id, f"{search.id}.facts", found, accepted) from None


def _date(run: Run, step: Step) -> str:
    """Return the date of the newest execution of a step.

    Raises:
        BadInput: its file with the times is damaged.
    """
    newest = attempts(run.files.step(step.id).folder)[-1]
    try:
        return moment_of(newest.end).date().isoformat()
    except ValueError:
        raise bad_input(step.id, "when.json", repr(newest.end), "a time in ISO 8601") from None


def arguments(parser: ArgumentParser) -> None:
    """Add the arguments of ``proofmark tune`` to `parser`."""
    verb_argument(parser, VERBS)
    run_argument(parser)


def tune(options: Namespace) -> int:
    """Print the best values of a search as facts of the partition."""
    VERBS[options.verb](options)
    return 0


def _show(options: Namespace) -> None:
    """Print the best values of the searches of a run, as keys of ``partition``."""
    found = tuned_facts(evidence_of(options.folder)).cases
    _refuse_other_facts(found)
    facts: dict[str, str | int | float] = {}
    sources: dict[str, str] = {}
    for tuned in found.values():
        facts |= tuned.facts
        sources |= dict.fromkeys(tuned.facts, tuned.source)
    print_text(literal_yaml({"facts": facts, NODE: {"sources": sources}}).removesuffix("\n"))


def _refuse_other_facts(accepted: Mapping[str, Tuned]) -> None:
    """Refuse facts that no search of the kit has. A run can be a copy that another person changed.

    Raises:
        BadInput: it names the case and the facts.
    """
    cases = kit_benchmarks().cases
    for case, tuned in accepted.items():
        uses = cases[case].uses() if case in cases else ()
        known: set[str] = set()
        for use in uses:
            if use.search:
                known.update(use.search.facts)
        if others := sorted(tuned.facts.keys() - known):
            names = ", ".join(sorted(known)) or "no fact"
            raise bad_input("RUN", case, ", ".join(others), f"{names}, as the case of the kit")


VERBS = {"show": _show}

COMMANDS = {
    "tune": Command(
        tune,
        "tune show runs/latest-nurion",
        arguments,
    )
}
