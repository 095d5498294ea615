"""All that is wrong with a site, in one go, before any node is touched."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

from proofmark.cases.models import Benchmarks
from proofmark.common.errors import BadInput, InputError, nearest
from proofmark.common.yaml_models import placed, repeated_keys
from proofmark.plan.expansion import limit_mistakes, make_plan
from proofmark.plan.plan import Plan
from proofmark.site.inventory import Site, read_sites, variable_files
from proofmark.site.machines import machines_of


def validate(
    inventory: Path,
    limit: str,
    benchmarks: Benchmarks,
    *,
    environments: Collection[str],
    schedulers: Collection[str],
) -> tuple[list[Plan], list[InputError]]:
    """Return the plan of every suite on every partition under `limit`, and every mistake found.

    `environments` and `schedulers` are the names that a partition may have there.
    """
    mistakes = [
        mistake for file in sorted(inventory.rglob("*.yml")) for mistake in repeated_keys(file)
    ]
    broken: list[Site] = []
    try:
        sites, wrong = read_sites(inventory, limit, broken=broken)
    except BadInput as error:
        return [], [*mistakes, *error.mistakes]
    mistakes += wrong
    if not sites and not mistakes:
        mistakes.append(InputError("-l", "", f"{limit!r}: no host", "hosts of a partition"))
    plans: list[Plan] = []
    for site in [*sites, *broken]:
        mistakes += _unknown_names(site, environments, schedulers)
        mistakes += _given_twice(site)
        mistakes += (_located(site, mistake) for mistake in limit_mistakes(benchmarks, site))
    for site in map(_without_limits, sites):  # those that judge nothing are told; go on
        planned, wrong = _planned(site, benchmarks)
        plans += planned
        mistakes += (_located(site, mistake) for mistake in wrong)
    return plans, list(dict.fromkeys(mistakes))


def _without_limits(site: Site) -> Site:
    partition = site.partition.model_copy(update={"limits": []})
    return site.model_copy(update={"partition": partition})


def _unknown_names(
    site: Site, environments: Collection[str], schedulers: Collection[str]
) -> Iterator[InputError]:
    known = {"environment": environments, "scheduler": schedulers}
    for key, words in known.items():
        if (word := getattr(site.partition, key)) not in words:
            found = f"{word!r}{nearest(word, words)}"
            yield _located(
                site, InputError("", f"partition.{key}", found, ", ".join(sorted(words)))
            )


def _given_twice(site: Site) -> Iterator[InputError]:
    """Find two file systems of one name or path: a step would write where it should not."""
    for what in ("name", "path"):
        values = [str(getattr(each, what)) for each in site.partition.file_systems]
        if twice := sorted({value for value in values if values.count(value) > 1}):
            found = f"{what} {', '.join(twice)} twice"
            yield _located(site, InputError("", "partition.file_systems", found, "each once"))


def _planned(site: Site, benchmarks: Benchmarks) -> tuple[list[Plan], list[InputError]]:
    mistakes: list[InputError] = []
    plans: list[Plan] = []
    try:
        machines, _ = machines_of(site)
    except BadInput as error:
        return [], list(error.mistakes)
    for mode in site.partition.modes:
        try:
            machines(mode)
        except BadInput as error:
            mistakes += error.mistakes
    for suite in benchmarks.suites if not mistakes else ():
        try:
            if benchmarks.members(suite):
                plans.append(make_plan(benchmarks, suite, site, machines))
        except BadInput as error:
            mistakes += error.mistakes
    return plans, mistakes


def _located(site: Site, mistake: InputError) -> InputError:
    """Give a mistake in the partition's facts the line on which it stands."""
    if mistake.file not in ("", str(site.facts)):
        return mistake
    file, _ = placed(variable_files(site.facts), mistake.key.split("."))
    return InputError(file or str(site.facts), mistake.key, mistake.found, mistake.accepted)
