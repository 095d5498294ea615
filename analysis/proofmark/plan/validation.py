"""Finds all mistakes in a site, without access to its nodes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from proofmark.cases.models import Benchmarks
from proofmark.common.errors import BadInput, InputError, nearest
from proofmark.common.yaml_models import placed, repeated_keys
from proofmark.plan.expansion import idle_limits, limit_mistakes, make_plan
from proofmark.plan.limits_of_suites import by_suite
from proofmark.plan.plan import Plan
from proofmark.site.inventory import Site, read_sites, variable_files
from proofmark.site.machines import machines_of


class Checked(NamedTuple):
    """A checked site.

    Attributes:
        plans: the plan of every suite on every partition.
        mistakes: all mistakes.
        limits: a line for each contract limit, by partition: the suites in which it judges figures.
    """

    plans: list[Plan]
    mistakes: list[InputError]
    limits: dict[str, list[str]]


def validate(
    inventory: Path,
    limit: str,
    benchmarks: Benchmarks,
    *,
    environments: Collection[str],
    schedulers: Collection[str],
    providers: Collection[str],
    job_mistakes: Callable[[Site, Sequence[Plan]], Iterable[InputError]] = lambda *_: (),
) -> Checked:
    """Return the plan of every suite on every partition under `limit`, and all mistakes.

    Args:
        inventory: the folder of the inventory.
        limit: pattern of hosts, as in Ansible's ``-l``.
        benchmarks: all cases and suites.
        environments: the accepted names of ``partition.environment``.
        schedulers: the accepted names of ``partition.scheduler``.
        providers: the accepted names of ``partition.provision_from``.
        job_mistakes: returns what keeps the jobs of the plans of a site from running.
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
        return Checked([], [*mistakes, *error.mistakes], {})
    mistakes += site_mistakes
    if not sites and not mistakes:
        mistakes.append(InputError("-l", "", f"{limit!r}: no host", "hosts of a partition"))
    plans: list[Plan] = []
    limits: dict[str, list[str]] = {}
    for site in [*sites, *broken]:
        mistakes += _unknown_names(site, accepted)
        mistakes += _duplicates(site)
        mistakes += (_located(site, mistake) for mistake in limit_mistakes(benchmarks, site))
    for site in sites:
        plans_of_site, plan_mistakes = _plans(site, benchmarks)
        plans += plans_of_site
        plan_mistakes += job_mistakes(site, plans_of_site)
        mistakes += (_located(site, mistake) for mistake in plan_mistakes)
        if not mistakes:
            lines = by_suite(site.partition.limits, plans_of_site, benchmarks)
            limits[site.partition_name] = lines
    return Checked(plans, list(dict.fromkeys(mistakes)), limits)


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
    parts = [int(part) if part.isdecimal() else part for part in mistake.key.split(".")]
    file, _ = placed(variable_files(site.facts), parts)
    return InputError(file or str(site.facts), mistake.key, mistake.found, mistake.accepted)
