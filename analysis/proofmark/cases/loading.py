"""Reads ``benchmarks/`` and checks the references between cases and suites."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from proofmark.cases.case import OWN_NAMES, Case, Load, SuiteUse, metrics_of
from proofmark.cases.reader.own_rules import FormerRules, OwnRules, SameAs
from proofmark.cases.reference import UNIT_OF, Reference
from proofmark.cases.suite import Benchmarks, Suite
from proofmark.cases.vocabulary import (
    AXES,
    LAYOUT_AXES,
    NAMING_AXES,
    PART_AXES,
    RESOLVED_AXES,
    SUITES_FILE,
    Slug,
)
from proofmark.common.errors import BadInput, InputError, nearest, refuse
from proofmark.common.expressions import FUNCTIONS, UNITS, flaws, names_in, variables_in
from proofmark.common.files import paths_in
from proofmark.common.shared_models import StrictModel
from proofmark.common.text import factor
from proofmark.common.yaml_models import load, placed


class SuitesFile(StrictModel):
    """The file `benchmarks/suites.yml`."""

    suites: dict[Slug, Suite]


Cases = Mapping[str, Case]
"""All cases, by their names."""
_FILE = re.compile(r"[a-z0-9][a-z0-9-]*\.yml")


def load_benchmarks(folder: Path, *, former: bool = False) -> Benchmarks:
    """Return all cases and suites of `folder`.

    Args:
        folder: of a checkout, or of a run.
        former: whether a case may have the rules of a program, as in a run of an earlier release.

    Raises:
        BadInput: a file has mistakes. It holds all mistakes of all files.
    """
    mistakes: list[InputError] = []
    suites = {}
    cases = {}
    try:
        suites.update(load(folder / SUITES_FILE, SuitesFile).suites)
    except BadInput as error:
        mistakes += error.mistakes
    for path in paths_in(folder, "*.y*ml"):
        if not _FILE.fullmatch(path.name):
            accepted = "a name of a-z, 0-9 and -, and .yml"
            mistakes.append(InputError(f"{path}", "", f"the name {path.name!r}", accepted))
            continue
        if path.name == SUITES_FILE:
            continue
        try:
            cases[path.stem] = load(path, Case)
        except BadInput as error:
            mistakes += error.mistakes
    # A name of a file that could not be read would be reported as unknown.
    for name, case in cases.items() if not mistakes else ():
        path = folder / f"{name}.yml"
        mistakes += _cross_checks(path, case, cases, suites)
        lacking = case.read.lacking() if isinstance(case.read, OwnRules) else ()
        mistakes += [InputError(f"{path}", key, "nothing", accepted) for key, accepted in lacking]
        if isinstance(case.read, FormerRules) and not former:
            accepted = "program, same_as, or the keys of docs/case-keys.md"
            mistakes.append(InputError(f"{path}", "read", "rules of a program", accepted))
    for name, suite in suites.items() if not mistakes else ():
        mistakes += _suite_mistakes(folder / SUITES_FILE, f"suites.{name}", suite, cases)
    refuse(map(with_line, mistakes))
    resolved = {name: _resolve_reader(case, cases) for name, case in cases.items()}
    alike = {name: case.read for name, case in cases.items() if isinstance(case.read, SameAs)}
    own_lines = {name: read.own_line.pattern for name, read in alike.items() if read.own_line}
    unnamed = frozenset(alike.keys() - own_lines.keys())
    alone = {}
    for name, case in resolved.items():
        if case.suites and name not in suites:
            listed = (each for each in case.suites if suites[each].listed)
            first = next(listed, next(iter(case.suites)))
            alone[name] = suites[first].model_copy(
                update={"title": case.title, "required_metrics": [], "alternatives": []}
            )
            uses = {**case.suites, name: case.suites[first]}
            resolved[name] = case.model_copy(update={"suites": uses})
    return Benchmarks(
        folder=folder,
        cases=resolved,
        suites=suites,
        own_lines=own_lines,
        unnamed=unnamed,
        alone=alone,
    )


def with_line(mistake: InputError) -> InputError:
    """Return a mistake in a key of a file with the line of the key."""
    parts = [int(part) if part.isdigit() else part for part in mistake.key.split(".")]
    path = Path(mistake.file)
    return replace(mistake, file=placed([path] if path.exists() else (), parts)[0] or mistake.file)


def _cross_checks(
    path: Path, case: Case, cases: Cases, suites: Mapping[str, Suite]
) -> Iterator[InputError]:
    """Yield the mistakes that a check of one file alone cannot find: unknown names."""
    wrong = list(_flaws(path, "", case.model_dump(exclude={"read"}, exclude_unset=True)))
    yield from wrong
    if wrong:
        return
    common = {*AXES, *RESOLVED_AXES, *PART_AXES, *LAYOUT_AXES, *NAMING_AXES}
    axes = sorted({*common, *case.used_names()})
    for axis in case.sweep:
        yield from _unknown(path, f"sweep.{axis}", axis, axes, "an axis that nothing uses:")
    for name in case.defaults:
        known = sorted(case.used_names())
        yield from _unknown(path, f"defaults.{name}", name, known, "a default that nothing uses:")
    for suite, uses in case.suites.items():
        yield from _unknown(path, f"suites.{suite}", suite, suites, "unknown suite")
        for use in uses:
            for axis in use.sweep:
                key = f"suites.{suite}.sweep.{axis}"
                yield from _unknown(path, key, axis, axes, "an axis that nothing uses:")
        for use in uses:
            yield from _load_mistakes(path, f"suites.{suite}.load", use.load, cases)
        yield from _reading_mistakes(path, f"suites.{suite}", uses)
    if isinstance(case.read, SameAs):
        readers = [name for name, other in cases.items() if not isinstance(other.read, SameAs)]
        problem = "a case without rules in its key read:"
        yield from _unknown(path, "read.same_as", case.read.same_as, readers, problem)
        if case.read.same_as not in readers:
            return
    for metric, unit in _resolve_reader(case, cases).reader().units.items():
        yield from _unknown(
            path, "metrics", metric, case.metrics, "no key for a metric that is read:"
        )
        if metric in case.metrics and case.metrics[metric].unit != unit:
            key = f"metrics.{metric}.unit"
            yield InputError(
                str(path), key, case.metrics[metric].unit, f"{unit}, the unit in the key read"
            )
    words = {*_resolve_reader(case, cases).bound_names(), *OWN_NAMES}
    for metric, definition in case.metrics.items():
        yield from _bound_mistakes(path, f"metrics.{metric}.bound", definition.bound, words)
    if case.undisturbed.metric is not None:
        metric, key = case.undisturbed.metric, "undisturbed.metric"
        yield from _unknown(path, key, metric, case.metrics, "unknown metric")
    for index, reference in enumerate(case.references):
        yield from reference_mistakes(path, f"references.{index}", reference, path.stem, cases)


def _flaws(path: Path, key: str, value: Any) -> Iterator[InputError]:
    """Yield the wrong expressions in a value of a case, and in the keys below it."""
    items: Iterable[tuple[Any, Any]] = value.items() if isinstance(value, dict) else ()
    if isinstance(value, list | tuple):
        items = enumerate(value)
    for name, inner in items:
        below = f"{key}.{name}".strip(".")
        yield from _flaws(path, below, inner)
        yield from _flaws(path, below, name)
    if isinstance(value, str):
        yield from (InputError(f"{path}", key, *each) for each in flaws(value))


def _load_mistakes(path: Path, key: str, load: Load | None, cases: Cases) -> Iterator[InputError]:
    """Yield the unknown names in the load of a use."""
    if load is None:
        return
    yield from _unknown(path, f"{key}.case", load.case, cases, "unknown case")
    if load.case in cases:
        names = {*AXES, *RESOLVED_AXES, *cases[load.case].used_names()}
        for axis in load.sweep:
            problem = f"an axis that {load.case} does not use:"
            yield from _unknown(path, f"{key}.sweep.{axis}", axis, names, problem)


def _suite_mistakes(path: Path, key: str, suite: Suite, cases: Cases) -> Iterator[InputError]:
    """Yield the names in the alternatives and the required metrics of a suite that it lacks."""
    name = key.removeprefix("suites.")
    members = [case for case in cases if name in cases[case].suites]
    problem = "no case of the suite:"
    for index, each in enumerate(suite.alternatives):
        for place, named in enumerate(each.cases):
            at = f"{key}.alternatives.{index}.cases.{place}"
            yield from _unknown(path, at, named, members, problem)
    for index, required in enumerate(suite.required_metrics):
        at = f"{key}.required_metrics.{index}"
        yield from _unknown(path, f"{at}.case", required.case, members, problem)
        if required.case in members:
            case = _resolve_reader(cases[required.case], cases)
            known = metrics_of(case)
            for metric in required.metrics:
                yield from _unknown(path, f"{at}.metrics", metric, known, "unknown metric")
            names = case.parameter_names()
            for parameter in required.where:
                yield from _unknown(path, f"{at}.where", parameter, names, "unknown parameter")


def _bound_mistakes(
    file: Path, key: str, bound: float | str, words: Iterable[str]
) -> Iterator[InputError]:
    """Yield the unknown names in a bound; with them the bound of its unit would apply."""
    for name in sorted(variables_in(bound)):
        yield from _unknown(file, key, name, words, "unknown name")


def reference_mistakes(
    file: Path, key: str, reference: Reference, case: str, cases: Cases
) -> Iterator[InputError]:
    """Yield the unknown names in a reference of `case`; with them it would judge no result."""
    sides = [(key, case, reference.metric, reference.where)]
    yield from _unit_mistakes(file, key, reference, case, cases)
    yield from _side_mistakes(file, key, reference, case, cases)
    if against := reference.against:
        sides.append((f"{key}.against", against.case or case, against.metric, against.where))
        for name in names_in(against.times) - {*FUNCTIONS, *UNITS}:
            known = {name}
            if case in cases:
                known = _resolve_reader(cases[case], cases).parameter_names()
            yield from _unknown(file, f"{key}.against.times", name, known, "unknown parameter")
    for side, name, metric, where in sides:
        yield from _unknown(file, f"{side}.case", name, cases, "unknown case")
        if name in cases:
            yield from _unknown(
                file, f"{side}.metric", metric, metrics_of(cases[name]), "unknown metric"
            )
            known = _resolve_reader(cases[name], cases).parameter_names()
            for parameter in where:
                yield from _unknown(file, f"{side}.where", parameter, known, "unknown parameter")


def _unit_mistakes(
    file: Path, key: str, reference: Reference, case: str, cases: Cases
) -> Iterator[InputError]:
    """Yield a mistake if the unit of a reference does not convert to that of its metric."""

    def unit_of(name: str, metric: str) -> str | None:
        definition = metrics_of(cases[name]).get(metric) if name in cases else None
        return definition.unit if definition else None

    wanted, against = unit_of(case, reference.metric), reference.against
    given, where = reference.unit, "unit"
    if against is not None:
        given, where = unit_of(against.case or case, against.metric), "against.metric"
    elif reference.rule is not None:
        given, where = UNIT_OF[reference.rule], "rule"
    if reference.kind == "contract" and reference.value is not None and given is None and wanted:
        accepted = f"a unit that converts to {wanted}"
        yield InputError(str(file), f"{key}.unit", "no unit of the value", accepted)
    if given is not None and wanted is not None and factor(given, wanted) is None:
        yield InputError(str(file), f"{key}.{where}", given, f"a unit that converts to {wanted}")


def _side_mistakes(
    file: Path, key: str, reference: Reference, case: str, cases: Cases
) -> Iterator[InputError]:
    """Yield a mistake if every bad figure would pass: the only bound is on the good side."""
    metric = metrics_of(cases[case]).get(reference.metric) if case in cases else None
    if metric is None:
        return
    needed, other = (
        ("at_least", "at_most") if metric.better == "higher" else ("at_most", "at_least")
    )
    if getattr(reference, needed) is None and getattr(reference, other) is not None:
        found = f"only {other}, and {metric.better} values of {reference.metric} are better"
        yield InputError(str(file), key, found, needed)


def _unknown(
    file: Path, key: str, word: str, words: Iterable[str], problem: str
) -> Iterator[InputError]:
    """Yield a mistake if `word` is not one of `words`."""
    names = sorted(words)
    if word in names:
        return
    found = f"{problem} {word!r}{nearest(word, names)}"
    yield InputError(str(file), key, found, ", ".join(names))


def _resolve_reader(case: Case, cases: Cases) -> Case:
    if isinstance(case.read, SameAs):
        return case.model_copy(update={"read": cases[case.read.same_as].read})
    return case


def schema() -> dict[str, Any]:
    """Return the JSON Schema of a case file, for editors and for `benchmarks/case.schema.json`."""
    draft = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": draft, **Case.model_json_schema()}


def _reading_mistakes(file: Path, key: str, uses: Sequence[SuiteUse]) -> Iterator[InputError]:
    """Yield why a use that reads files cannot read those of the use before it."""
    for number, use in enumerate(uses):
        if not use.reads:
            continue
        writer, at = uses[max(0, number - 1)], f"{key}.{number}"
        if writer.reads:  # the first use has none before it
            accepted = "a use that writes the files"
            yield InputError(f"{file}", f"{at}.reads", "no use before it", accepted)
            continue
        for same in ("repeats", "modes"):
            own, other = getattr(use, same), getattr(writer, same)
            if own != other:
                accepted = f"{other!r}, as the use before it has"
                yield InputError(f"{file}", f"{at}.{same}", f"{own!r}", accepted)
