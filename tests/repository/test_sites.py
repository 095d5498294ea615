"""Each suite of each shipped site can be built from its origin, or it is refused with a reason."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.fixtures.controllers import SYSTEMS, on_system
from tests.fixtures.shipped import shipped_benchmarks
from tests.folders import ROOT
from tests.sites import (
    NAMES,
    SMALL,
    Entry,
    available_packages,
    entries,
    machines,
    matrix,
    of_origin,
    plans,
    sites,
)

from proofmark.cli.inputs import packages_of_kit
from proofmark.common.errors import BadInput, InputError
from proofmark.plan.expansion import make_plan
from proofmark.plan.lacking import (
    Available,
    Code,
    available_at,
    in_words,
    lacking,
    lacking_mistakes,
    refuse_lacking,
)
from proofmark.plan.plan import Plan
from proofmark.site.inventory import Site
from proofmark.software.installed import ProvisionRequest
from proofmark.software.providers.spack import Spack
from proofmark.software.spack.installation import this_system

ENVIRONMENTS = ROOT / "environments"
ORIGINS = ("system", "spack", "easybuild", "preinstalled", "twin")
ARCHITECTURES = sorted(path.parent.name for path in ENVIRONMENTS.glob("*/spack.yaml"))
LACKING_ON_P595 = "ior, osu-micro-benchmarks, stream"
"""The paper names no such program of this machine."""
OWN = {path.name for path in (ENVIRONMENTS / "common/sources").glob("*/")}
"""The packages that the kit compiles itself, with every origin."""


def _yaml(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


@cache
def roots(architecture: str) -> dict[str, str]:
    """Return the specs that an environment requests of Spack, by package."""
    spack = _yaml(ENVIRONMENTS / architecture / "spack.yaml")["spack"]
    definitions = [*spack["definitions"], *_yaml(ENVIRONMENTS / "common/suite.yaml")["definitions"]]
    specs = [
        spec for each in definitions for name in ("suite", "sized") for spec in each.get(name, [])
    ]
    return {re.split("[@ ]", spec)[0]: spec for spec in specs}


def built(site: Site) -> dict[str, set[str] | None] | None:
    """Return the programs by package, read from the files of the origin; None without a file.

    This reads the files by itself: it does not use what the kit says about them.
    """
    partition = site.partition
    folder, origin = ENVIRONMENTS / partition.environment, partition.provision_from
    if origin == "preinstalled":
        return dict.fromkeys([*partition.preinstalled, *OWN])
    if origin == "twin":
        packages = _yaml(ENVIRONMENTS / "twin/sources.yml")["packages"]
    elif origin == "system":
        packages = _yaml(ENVIRONMENTS / "local/system.yml")["packages"]
    else:
        return dict.fromkeys(
            [*(_easystack() if origin == "easybuild" else roots(folder.name)), *OWN]
        )
    own = dict.fromkeys(OWN) if origin == "twin" else {}
    return {**own, **{name: set(each["programs"]) for name, each in packages.items()}}


def _easystack() -> Iterator[str]:
    names = _yaml(ENVIRONMENTS / "common/programs.yml")["easybuild"]
    files = _yaml(ENVIRONMENTS / "common/easystack.yml")["easyconfigs"]
    for package, spelling in names.items():
        if any(re.match(rf"{re.escape(spelling['name'])}-\d", file) for file in files):
            yield package


def buildable(plan: Plan, site: Site) -> bool:
    """Return whether the files of the origin have all programs of a plan."""
    known = built(site)
    for package, programs in plan.packages().items():
        if known is None or package not in known:
            return False
        some = known[package]
        if some is not None and not some.issuperset(programs):
            return False
        if package == "npb" and site.partition.provision_from == "spack":
            assert all(_built_by_npb(program, site) for program in programs)
    return True


def _built_by_npb(program: str, site: Site) -> bool:
    """Return whether the variants of NPB have a program such as ``bt.A.x.mpi_io_full``."""
    spec = roots(site.partition.environment)["npb"]
    variants = dict(re.findall(r"(\w+)=(\S+)", spec))
    name, class_, io = program.split(".")[0], program.split(".")[1], program.rpartition(".")[2]
    kind = {"ep_io": "epio", "fortran_io": "fortran"}.get(io, io.removeprefix("mpi_io_"))
    wanted = {"names": name, "classes": class_, "btio": kind}
    return all(value in variants[key].split(",") for key, value in wanted.items())


@cache
def of_site(name: str, origin: str) -> list[Entry]:
    """Return the suites of a partition with the programs of an origin."""
    site = of_origin(sites()[name], origin)
    available = available_packages(site)
    assert available is not None
    return list(entries(site, available))


def test_all_partitions_are_tested() -> None:
    assert sorted(sites()) == NAMES


OTHERS = [(name, ORIGINS[place % 5]) for place, name in enumerate(SMALL)]
"""Each small partition with an origin that may be another; each origin has a few of them."""


@pytest.mark.parametrize(
    ("name", "origin"),
    [
        *((name, "") for name in SMALL),
        *(pytest.param(*each, marks=pytest.mark.rest("other origins")) for each in OTHERS),
        *(pytest.param(*each, marks=pytest.mark.soak) for each in product(NAMES, ORIGINS)),
    ],
)
def test_each_suite_can_be_built_or_is_refused(name: str, origin: str) -> None:
    origin = origin or sites()[name].partition.provision_from
    site = of_origin(sites()[name], origin)
    if built(site) is None:
        _, (mistake,) = available_at(site, available_packages)
        assert mistake.code == Code.ORIGIN_HAS_NO_PROGRAMS
        return
    found = of_site(name, origin)
    assert [each.suite for each in found] == list(shipped_benchmarks().suites)
    for each in found:
        if each.plan is None:
            continue
        assert buildable(each.plan, site) is (each.lacks == ""), (each.suite, each.lacks)


@pytest.mark.parametrize("name", NAMES)
def test_the_default_suite_runs_on_each_shipped_site_but_one(name: str) -> None:
    site = sites()[name]
    quick = make_plan(shipped_benchmarks(), "quick", site, machines(site), digest=False)
    lacks = in_words(lacking(quick.packages(), available_packages(site)))
    assert lacks == (LACKING_ON_P595 if name == "p595/p595" else "")


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("origin", ["spack", "easybuild"])
def test_the_default_suite_can_be_built_on_each_architecture(
    architecture: str, origin: str
) -> None:
    site = of_origin(sites()["template/cluster"], origin)
    partition = site.partition.model_copy(update={"environment": architecture})
    site = site.model_copy(update={"partition": partition})
    made = make_plan(shipped_benchmarks(), "quick", site, machines(site), digest=False)
    assert lacking(made.packages(), available_packages(site)) == ()
    assert buildable(made, site)


def answer(mistakes: Iterable[InputError]) -> set[tuple[str, str]]:
    """Return the codes of a refusal with their commands; a suite that lacks programs is one."""
    return {(each.code, each.command) for each in mistakes}


def refused_by(ask: Callable[[], object]) -> set[tuple[str, str]]:
    """Return the codes with which `ask` refuses; empty if it does not."""
    try:
        ask()
    except BadInput as error:
        return answer(error.mistakes)
    return set()


@pytest.mark.fault("no-lock-of-the-controller")
@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("name", SMALL)
def test_check_plan_and_install_agree_on_each_controller(
    name: str, system: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert_agreement(name, system, monkeypatch)


@pytest.mark.soak
@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("name", sorted(set(NAMES) - set(SMALL)))
def test_check_plan_and_install_agree_for_each_large_partition(
    name: str, system: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert_agreement(name, system, monkeypatch)


def assert_agreement(name: str, system: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each suite of each site. The origin is that of the site, and the systems are stand-ins.

    What the provider itself answers when it looks for missing programs is the measure.
    """
    site = sites()[name]
    origin = site.partition.provision_from
    with on_system(system):
        known, why = available_at(site, packages_of_kit)
        for suite, plan in plans(site).items():
            if plan is None:
                continue

            def packages(asked: Site) -> Available | None:
                """Return what `packages_of_kit` has returned or raised above."""
                if why:
                    raise BadInput(*why)
                return known

            needed = {package: [*names] for package, names in plan.packages().items()}
            planned = [plan]
            checked = [*why, *lacking_mistakes(site, planned, known, suite)]
            installed = refused_by(partial(refuse_lacking, suite, needed, site, packages))
            assert answer(checked) == installed, (suite, system)
            if origin == "spack" and not lacking(needed, known):
                assert own_answer(site, needed.keys() - OWN) == installed, (suite, system)


@cache
def _own_answer(site: str, system: str, needed: frozenset[str]) -> frozenset[tuple[str, str]]:
    of_site = sites()[site]
    request = ProvisionRequest(
        kit=ROOT,
        arch=of_site.partition.environment,
        programs={package: () for package in needed},
        prefixes=Path("/nowhere"),
        site_locks=of_site.inventory / "locks",
    )
    return frozenset(refused_by(Spack(request).missing))


def own_answer(site: Site, needed: Iterable[str]) -> set[tuple[str, str]]:
    """Return the codes with which Spack's provider refuses to look for missing programs."""
    system = this_system().name
    return {*_own_answer(f"{site.name}/{site.partition_name}", system, frozenset(needed))}


@pytest.mark.parametrize("names", [SMALL, pytest.param(NAMES, marks=pytest.mark.soak)])
def test_the_printed_table_has_each_suite_and_each_partition(names: list[str]) -> None:
    """It is the last test of this file: the plans are made."""
    head, _, *rows = matrix(names)
    assert [row.split("|")[1].strip(" `") for row in rows] == [*shipped_benchmarks().suites]
    assert all(f" {name} (" in head for name in names)
    assert {row.count("|") for row in [head, *rows]} == {len(names) + 2}
