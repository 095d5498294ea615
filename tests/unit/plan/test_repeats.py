"""The repeats of a suite: replaced by an option, smaller for a use."""

from __future__ import annotations

import pytest
from tests.fixtures.kit import SYMBOLS, Kit, topology
from tests.folders import ROOT

from proofmark.cli.main import main
from proofmark.common.errors import BadInput
from proofmark.plan.expansion import make_plan
from proofmark.plan.plan import Plan
from proofmark.site.machines import Machine


def planned(kit: Kit, repeats: int | None) -> Plan:
    machine = Machine(SYMBOLS, topology())
    return make_plan(kit.benchmarks(), "quick", kit.site(), machine, repeats)


def numbers(made: Plan) -> list[int]:
    return [step.repeat for step in made.steps() if step.parameters["size"] == 1]


@pytest.mark.parametrize(("repeats", "expected"), [(None, [1, 2]), (1, [1]), (3, [1, 2, 3])])
def test_an_option_replaces_the_repeats_of_the_suite(
    kit: Kit, repeats: int | None, expected: list[int]
) -> None:
    kit.suites(quick={"title": "Quick", "repeats": 2})
    made = planned(kit, repeats)
    assert numbers(made) == expected
    assert (made.digest == planned(kit, None).digest) is (repeats is None)


def test_a_use_runs_several_times_in_each_repeat_of_its_suite(kit: Kit) -> None:
    kit.suites(quick={"title": "Quick", "repeats": 3})
    kit.case(suites={"quick": {"repeats": 2}})
    assert numbers(planned(kit, None)) == [*range(1, 7)]


def test_less_than_one_repeat_is_refused(kit: Kit) -> None:
    with pytest.raises(BadInput, match="repeats: found 0; accepted: a whole number from 1"):
        planned(kit, 0)


@pytest.mark.parametrize(("option", "steps"), [([], 2313), (["--repeats", "1"], 771)])
def test_the_command_takes_repeats(
    option: list[str], steps: int, capsys: pytest.CaptureFixture[str]
) -> None:
    inventory = str(ROOT / "inventory" / "p595")
    assert main(["plan", "-i", inventory, "-l", "p595", "--suite", "p3", *option]) == 0
    assert f"steps: {steps}," in capsys.readouterr().out
    with pytest.raises(SystemExit, match="3"):
        main(["plan", "-i", inventory, "-l", "p595", "--repeats", "0"])
