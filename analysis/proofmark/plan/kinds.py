"""Kinds of runs: where the plan of a run comes from, and how the run grows.

The usual run is the expansion of a suite on a site, and has all of its jobs when it starts. An
optional package adds another kind. A plan names its kind, and has the data of the kind. Other rooms
ask `kind_of`; no module outside the package of a kind compares the name.
"""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from typing import ClassVar, TypeVar

from pydantic import ValidationError

from proofmark.cases.suite import Benchmarks
from proofmark.common.errors import InputError, bad_input, refuse
from proofmark.common.plugins import Plugins
from proofmark.common.shared_models import StrictModel, first_mistake
from proofmark.plan.expansion import make_plan
from proofmark.plan.plan import Group, Plan
from proofmark.plan.step import COUNTED
from proofmark.site.contract_document import Contract, ContractItem
from proofmark.site.inventory import Site
from proofmark.site.machines import Machine

Part = list[Group]
"""The jobs by which a plan grows."""
Data = TypeVar("Data", bound=StrictModel)


@dataclass(frozen=True)
class PlanRequest:
    """The plan that a person asks for.

    Attributes:
        options: those of the command, with the options of all kinds.
        machines: returns the machine of the site in a mode.
        shown: whether the plan is only shown. A kind then assumes what a run has to state.
    """

    options: Namespace
    benchmarks: Benchmarks
    site: Site
    machines: Callable[[str], Machine]
    shown: bool = False

    @cached_property
    def usual(self) -> Plan:
        """The usual plan of the suite.

        Raises:
            BadInput: the suite cannot run on the site.
        """
        return self.on(self.site, self.machines)

    def on(self, site: Site, machines: Callable[[str], Machine]) -> Plan:
        """Return the usual plan of the suite on `site`.

        Raises:
            BadInput: the suite cannot run there.
        """
        suite, repeats = self.options.suite, self.options.repeats
        return make_plan(self.benchmarks, suite, site, machines, repeats)


class RunKind:
    """A kind of run. What a subclass does not replace is that of the usual run.

    Attributes:
        options: the options of a plan that only this kind has, as `Namespace` names them. A
            function of ``proofmark.cli.options`` adds them; an empty value is not given.
        needs: when these options are accepted, for a message.
        grows: whether jobs join the run after its start. It is continued until it is signed.
        nodes_arrive: whether nodes join it too. Then a job waits for nodes that are down, and a
            stage works on the nodes that are up.
        has_figures: whether its outputs have the figures of the verdict. Others are only a load:
            they disturb each other, and are not read.
        executed: whether this kit starts its programs. If not, it has only their outputs: nothing
            is known of programs, nodes and times, and no step can run.
        origin: of its figures; empty: that of the partition.
    """

    options: ClassVar[tuple[str, ...]] = ()
    needs: ClassVar[str] = ""
    grows: ClassVar[bool] = False
    nodes_arrive: ClassVar[bool] = False
    has_figures: ClassVar[bool] = True
    executed: ClassVar[bool] = True
    origin: ClassVar[str] = ""

    def plan(self, request: PlanRequest) -> Plan | None:
        """Return the plan of this kind; None if the request is for another kind.

        Raises:
            BadInput: the request is for this kind, and cannot be met.
        """
        return None

    def grown(self, plan: Plan, part: Part) -> Plan:
        """Return `plan` with further jobs after its own, which stay as they are.

        Raises:
            BadInput: the plan would have too many steps.
        """
        return plan

    def joining(self, plan: Plan, asked: Plan, site: Site) -> Part | None:
        """Return what `asked` adds to the run of `plan`; None if it is the plan of another run."""
        return [] if plan.digest == asked.digest else None

    def judged(self, plan: Plan) -> Plan:
        """Return the plan with the steps from whose figures the verdict is made."""
        return plan

    def refused(self, item: ContractItem, contract: Contract) -> tuple[str, str] | None:
        """Return what `item` asks for and what can be met, if no run of this kind can meet it."""
        return None

    def notes(self, plan: Plan, items: Collection[ContractItem]) -> Iterator[str]:
        """Yield what a person should know of the plan before a run; `items` are of the contract."""
        yield from ()


KINDS = Plugins(RunKind, "proofmark.plan.kinds", "plan.json", "kind")
USUAL = RunKind()


@cache
def _kind(name: str) -> RunKind:
    return KINDS.get(name)()


def kind_of(plan: Plan) -> RunKind:
    """Return the kind of `plan`.

    Raises:
        BadInput: no installed package has this kind.
    """
    return _kind(plan.kind) if plan.kind else USUAL


def origin_of(plan: Plan, site: Site) -> str:
    """Return the origin of the figures of a run of `plan` on `site`."""
    return kind_of(plan).origin or site.partition.origin


def added_kinds() -> Iterator[RunKind]:
    """Yield the kinds of all installed packages."""
    return map(_kind, KINDS.names())


def plan_asked(request: PlanRequest) -> Plan:
    """Return the plan of the kind that `request` is for.

    Raises:
        BadInput: the plan cannot be made, an option is of another kind, or no installed package
            makes the plan of such a suite.
    """
    made = next(filter(None, (kind.plan(request) for kind in added_kinds())), None)
    if made is None:
        made = request.usual
        if any(step.launch == COUNTED for step in made.steps()):
            accepted = "another suite: no installed package counts its jobs"
            raise bad_input("suite", "", request.options.suite, accepted)
    found = f"a {made.kind} run" if made.kind else f"the suite {request.options.suite}"
    mistakes: list[InputError] = []
    for name in KINDS.names():
        kind = _kind(name)
        for option in kind.options if name != made.kind else ():
            if getattr(request.options, option) not in (None, "", "false"):
                mistakes.append(InputError(option, "", found, kind.needs))
    refuse(mistakes)
    return made


def data_of(plan: Plan, model: type[Data]) -> Data:
    """Return the data of the kind of `plan`.

    Raises:
        BadInput: they do not have the form of `model`.
    """
    try:
        return model.model_validate_json(json.dumps(plan.of_kind))
    except ValidationError as error:
        key, found = first_mistake(error)
        accepted = f"the data of a {plan.kind} run"
        raise bad_input("plan.json", f"of_kind.{key}".rstrip("."), found, accepted) from None
