"""Finds all mistakes in a site, without access to its nodes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from proofmark.cases.models import Benchmarks
from proofmark.common.errors import BadInput, InputError, nearest
from proofmark.common.yaml_models import placed, repeated_keys
from proofmark.plan.expansion import idle_limits, limit_mistakes, make_plan
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
    providers: Collection[str],
) -> tuple[list[Plan], list[InputError]]:
    """Return the plan of every suite on every partition under `limit`, and all mistakes.

    Args:
        inventory: the folder of the inventory.
        limit: pattern of hosts, as in Ansible's ``-l``.
        benchmarks: all cases and suites.
        environments: the accepted names of ``partition.environment``.
        schedulers: the accepted names of ``partition.scheduler``.
        providers: the accepted names of ``partition.provision_from``.
    """
    accepted = {
        "environment": environments,
        "scheduler": schedulers,
        "provision_from": providers,
    }
    mistakes = [
        mistake for file in sorted(inventory.rglob("*.yml")) for mistake in repeated_keys(file)
    ]
    broken: list[Site] = []
    try:
        sites, site_mistakes = read_sites(inventory, limit, broken=broken)
    except BadInput as error:
        return [], [*mistakes, *error.mistakes]
    mistakes += site_mistakes
    if not sites and not mistakes:
        mistakes.append(InputError("-l", "", f"{limit!r}: no host", "hosts of a partition"))
    plans: list[Plan] = []
    for site in [*sites, *broken]:
        mistakes += _unknown_names(site, accepted)
        mistakes += _duplicates(site)
        mistakes += (_located(site, mistake) for mistake in limit_mistakes(benchmarks, site))
    for site in sites:
        plans_of_site, plan_mistakes = _plans(site, benchmarks)
        plans += plans_of_site
        mistakes += (_located(site, mistake) for mistake in plan_mistakes)
    return plans, list(dict.fromkeys(mistakes))


def _without_limits(site: Site) -> Site:
    partition = site.partition.model_copy(update={"limits": []})
    return site.model_copy(update={"partition": partition})


def _unknown_names(site: Site, accepted: Mapping[str, Collection[str]]) -> Iterator[InputError]:
    for key, names in accepted.items():
        if (name := getattr(site.partition, key)) not in names:
            found = f"{name!r}{nearest(name, names)}"
            yield _located(
                site, InputError("", f"partition.{key}", found, ", ".join(sorted(names)))
            )


def _duplicates(site: Site) -> Iterator[InputError]:
    """Yield a mistake for file systems with the same name or path.

    A step would write to the wrong file system.
    """
    for key in ("name", "path"):
        values = [str(getattr(each, key)) for each in site.partition.file_systems]
        if twice := sorted({value for value in values if values.count(value) > 1}):
            found = f"{key} {', '.join(twice)} twice"
            yield _located(site, InputError("", "partition.file_systems", found, "each once"))


def _plans(site: Site, benchmarks: Benchmarks) -> tuple[list[Plan], list[InputError]]:
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
    if mistakes:
        return [], mistakes
    unlimited = _without_limits(site)  # each plan would check the limits again
    for suite in benchmarks.suites:
        try:
            if benchmarks.members(suite):
                plans.append(make_plan(benchmarks, suite, unlimited, machines))
        except BadInput as error:
            mistakes += error.mistakes
    return plans, [*mistakes, *idle_limits(benchmarks, site, machines)]


def _located(site: Site, mistake: InputError) -> InputError:
    """Return a mistake in the facts of the partition with its file and line."""
    if mistake.file not in ("", str(site.facts)):
        return mistake
    file, _ = placed(variable_files(site.facts), mistake.key.split("."))
    return InputError(file or str(site.facts), mistake.key, mistake.found, mistake.accepted)
