"""A suite whose programs the origin lacks is refused before anything is built."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from tests.fixtures.kit import SYMBOLS, Kit, make_kit, topology

from proofmark.cases.suite import alternative, members_from
from proofmark.common.errors import BadInput
from proofmark.plan.expansion import make_plan, members_at
from proofmark.plan.lacking import (
    Lacked,
    lacking,
    refuse_lacking,
)
from proofmark.plan.plan import Plan
from proofmark.site.machines import Machine

MACHINE = Machine(SYMBOLS, topology())
OF_TWO = {
    "title": "Quick",
    "alternatives": [
        {"title": "of one", "origins": ["system"], "cases": ["alpha"]},
        {"title": "of others", "cases": ["beta"]},
    ],
}


@pytest.fixture
def kit(tmp_path_factory: pytest.TempPathFactory) -> Kit:
    """Return a kit with a suite of two alternatives, and a suite that has a case of each."""
    made = make_kit(tmp_path_factory.mktemp("kit"))
    made.suites(quick=OF_TWO, both={"title": "Both"}, apart={"title": "Apart"})
    (made.folder / "benchmarks/fake.yml").unlink()
    both: dict[str, Any] = {"quick": {}, "both": {}}
    made.case("alpha", package="one", program="a", suites=both)
    made.case("beta", package="two", program="b", suites=both)
    made.case("gamma", package="three", program="c", suites={"quick": {}, "apart": {}})
    return made


def plan_of(kit: Kit, suite: str, origin: str = "spack") -> Plan:
    return make_plan(kit.benchmarks(), suite, kit.site(provision_from=origin), MACHINE)


@pytest.mark.parametrize(
    ("origin", "case"), [("system", "alpha"), ("spack", "beta"), ("of-a-site", "beta")]
)
def test_an_origin_has_its_alternative_and_the_common_cases(
    kit: Kit, origin: str, case: str
) -> None:
    assert {step.case for step in plan_of(kit, "quick", origin).steps()} == {case, "gamma"}
    assert members_from(kit.benchmarks(), "both", origin).keys() == {"alpha", "beta"}
    assert alternative(kit.benchmarks(), "both", origin) is None


@pytest.mark.parametrize(
    ("named", "case"),
    [
        (["one", "two"], "beta"),  # both suffice: that of the origin
        (["one"], "alpha"),
        (["two", "three"], "beta"),
        (["three"], "beta"),  # none suffices: that of the origin
    ],
)
def test_what_the_inventory_names_chooses(kit: Kit, named: list[str], case: str) -> None:
    packages = {name: {"prefix": "/apps", "version": "1"} for name in named}
    site = kit.site(provision_from="preinstalled", preinstalled=packages)
    assert members_at(kit.benchmarks(), "quick", site).keys() == {case, "gamma"}


@pytest.mark.parametrize(
    ("alternatives", "complaint"),
    [
        ([{"title": "x", "cases": ["alpha"]}], "at least two"),
        ([{"title": "x", "cases": ["alpha"]}] * 2, "each but the last has origins"),
        ([{"title": "x", "origins": ["system"], "cases": ["alpha"]}] * 2, "at least two; each"),
        (
            [
                *[{"title": "x", "origins": ["system"], "cases": ["alpha"]}] * 2,
                {"title": "y", "cases": ["beta"]},
            ],
            "each origin once: system",
        ),
        (
            [
                {"title": "x", "origins": ["system"], "cases": ["alhpa"]},
                {"title": "y", "cases": ["beta"]},
            ],
            "no case of the suite: 'alhpa', did you mean 'alpha'?",
        ),
    ],
)
def test_wrong_alternatives_are_refused(
    kit: Kit, alternatives: list[dict[str, Any]], complaint: str
) -> None:
    kit.suites(
        quick={"title": "Quick", "alternatives": alternatives},
        both={"title": "Both"},
        apart={"title": "Apart"},
    )
    with pytest.raises(BadInput, match="alternatives") as raised:
        kit.benchmarks()
    assert complaint in str(raised.value)


@pytest.mark.parametrize(
    ("available", "lacks"),
    [
        (None, ()),
        ({"one": None, "two": ["b"], "x": None}, ()),
        ({"two": None}, (Lacked("one"),)),
        ({"one": ["z"], "two": None}, (Lacked("one", ("a",)),)),
        ({}, (Lacked("one"), Lacked("two"))),
    ],
)
def test_packages_and_programs_that_lack(
    kit: Kit, available: Mapping[str, list[str] | None] | None, lacks: tuple[Lacked, ...]
) -> None:
    assert lacking(plan_of(kit, "both").packages(), available) == lacks


@pytest.mark.fault("origin-without-programs-of-the-suite")
@pytest.mark.parametrize("injected", [False, True], ids=["control", "fault"])
def test_a_plan_is_refused_with_code_programs_origin_and_suite(kit: Kit, injected: bool) -> None:
    site = kit.site(provision_from="spack")
    has: dict[str, list[str] | None] = {"two": None, "three": None}
    made = plan_of(kit, "both" if injected else "quick")
    if not injected:
        refuse_lacking("quick", made.packages(), site, lambda _: has)
        return
    with pytest.raises(BadInput) as raised:
        refuse_lacking("both", made.packages(), site, lambda _: has)
    assert str(raised.value) == (
        f"{site.facts}: partition.provision_from: SUITE_LACKS_PROGRAMS: found 'spack', which has "
        "three, two: both lacks one; accepted: the packages of the suite (`proofmark check` lists "
        "the suites that work)"
    )
