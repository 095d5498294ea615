"""The duration of a rehearsal, and the faults that its options make impossible."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.rehearsal.faults import Fault, Need
from tests.rehearsal.play import INVENTORY
from tests.rehearsal.shapes import SHAPES

from proofmark.cases.loading import load_benchmarks
from proofmark.common.errors import BadInput, InputError
from proofmark.common.text import duration
from proofmark.plan.expansion import make_plan
from proofmark.plan.plan import Group, Plan
from proofmark.plan.totals import nodes_to_reset, resets_s
from proofmark.site.firmware import Firmware
from proofmark.site.inventory import load_site
from proofmark.site.machines import machines_of

LEAST_LINKS = 7
"""In a ring, a node with a bad link and its two peers must be less than half of the nodes."""
START_S = 60
"""The cluster takes 10 s to start and end. The playbooks take the rest, without the steps."""
MODE_S = 15
"""The playbooks verify the mode and the scratch directory again after each reset."""
RESERVED = {
    "-e suite": r"(?s).*\bsuite\b[\"']?\s*[=:].*",
    "-e confirm_reboot": r"(?s).*\bconfirm_reboot\b[\"']?\s*[=:].*",
    "-l": r"-l.*|--limit(=.*)?|--subset(=.*)?",
    "-i": r"-i.*|--inventory(-file)?(=.*)?",
}
"""Arguments of ansible-playbook that the options of a rehearsal set."""
INSTEAD = {
    "-e suite": "--suite (make: SUITE=)",
    "-e confirm_reboot": "--one-mode, or nothing",
    "-l": "--limit and --nodes (make: LIMIT=)",
    "-i": f"nothing: a rehearsal has the inventory {INVENTORY}",
}
PARTIAL = re.compile(
    r"-C|--check|--syntax-check|--list-.*|-t.*|--tags.*|--skip-tags.*|--start-at-task.*|--step"
)
"""Arguments of ansible-playbook that leave out tasks of the playbooks."""


@dataclass(frozen=True)
class Ahead:
    """A rehearsal by its options.

    Attributes:
        limit, suite, nodes, one_mode, more: the options.
        victim: the node that has the fault.
        plan: the plan that the playbooks will make.
        firmware: the firmware settings of the partition.
    """

    limit: str
    suite: str
    nodes: int
    one_mode: bool
    more: Sequence[str]
    victim: str
    plan: Plan
    firmware: Firmware | None

    def groups(self) -> list[Group]:
        """Return the groups of the plan that will run."""
        return self.plan.to_run() if self.one_mode else self.plan.groups

    def on_victim(self) -> list[Group]:
        """Return the groups that will run and have a step on the node with the fault."""
        return [
            group for group in self.groups() if any(self.victim in job.nodes for job in group.jobs)
        ]


def look_ahead(
    checkout: Path,
    limit: str,
    suite: str,
    nodes: int,
    *,
    one_mode: bool,
    more: Sequence[str],
    names: Sequence[str],
    selected: str,
) -> Ahead:
    """Return the plan that the playbooks of `checkout` will make for the nodes `names`.

    Raises:
        BadInput: the suite is unknown, or `more` sets a value that another option sets.
    """
    if mistakes := list(_overrides(more)):
        raise BadInput(*mistakes)
    site = load_site(checkout / INVENTORY, selected)
    plan = make_plan(load_benchmarks(checkout / "benchmarks"), suite, site, machines_of(site)[0])
    firmware = site.partition.firmware
    return Ahead(limit, suite, nodes, one_mode, more, names[1], plan, firmware)


def duration_line(ahead: Ahead) -> str:
    """Return the expected duration of the healthy rehearsal, and its parts."""
    shown = ahead.plan.model_copy(update={"groups": ahead.groups()})
    every = [*shown.steps()]
    steps, shown_s = len(every), sum(step.wall_s for step in every)
    entered = [group for group in shown.groups if group.mode != shown.current_mode]
    changes = resets_s(nodes_to_reset(shown), ahead.firmware) + MODE_S * (
        len(entered) + bool(entered)
    )
    return (
        f"expected duration without a fault: about {duration(START_S + changes + shown_s)}"
        f" ({steps} steps {duration(shown_s)}; {len(entered)} mode changes and the"
        f" way back {duration(changes)}; start and playbooks {duration(START_S)})"
    )


def refuse(name: str, faults: Mapping[str, Fault], ahead: Ahead) -> None:
    """Refuse options with which the fault `name` is not injected.

    Raises:
        BadInput: an option makes the fault impossible. The message names it and what is accepted.
    """
    if mistakes := [*_of_confirmation(name, faults, ahead), *_of_plan(name, faults[name], ahead)]:
        raise BadInput(*mistakes)


def _overrides(more: Sequence[str]) -> list[InputError]:
    overrides = {
        word: text for text in more for word, form in RESERVED.items() if re.fullmatch(form, text)
    }
    return [
        InputError("ARGS", "", f"{text!r}, which another option sets", INSTEAD[word])
        for word, text in overrides.items()
    ]


def _of_confirmation(name: str, faults: Mapping[str, Fault], ahead: Ahead) -> list[InputError]:
    needs, mistakes = faults[name].needs, []
    if ahead.one_mode and Need.CONFIRMATION in needs:
        others = [each for each, fault in faults.items() if Need.CONFIRMATION not in fault.needs]
        found = f"fault {name}, which needs {Need.CONFIRMATION.value}"
        accepted = f"no --one-mode, or one of the faults {', '.join(sorted(others))}"
        mistakes.append(InputError("--one-mode", "", found, accepted))
    partial = [word for word in ahead.more if PARTIAL.fullmatch(word)]
    only_checks = all(word in ("-C", "--check") for word in partial)
    if partial and (Need.CHANGE in needs or not only_checks):
        found = f"{' '.join(partial)} with fault {name}, which needs {Need.CHANGE.value}"
        mistakes.append(InputError("ARGS", "", found, "arguments that leave out no task"))
    return mistakes


def _of_plan(name: str, fault: Fault, ahead: Ahead) -> list[InputError]:
    option, mistakes = f"--suite={ahead.suite} --limit={ahead.limit}", []
    groups = ahead.on_victim()
    if not groups:
        found = f"a plan without a step on {ahead.victim}, the node of fault {name}"
        accepted = f"a suite with steps on {ahead.victim}, such as rehearsal"
        return [InputError(option, "", found, accepted)]
    resets = any(group.mode != ahead.plan.current_mode for group in groups)
    if Need.RESET in fault.needs and not resets and not ahead.one_mode:
        found = f"a plan in mode {ahead.plan.current_mode} alone; fault {name} needs a reset"
        accepted = "a plan of several modes, such as --suite=rehearsal --limit=knl"
        mistakes.append(InputError(option, "", found, accepted))
    steps = [step for group in groups for job in group.jobs for step in job.steps]
    scopes = {step.scope for step in steps}
    if Need.LINKS in fault.needs and ahead.nodes < LEAST_LINKS:
        found = f"fault {name}: its node would have half of the links, and none would be usual"
        mistakes.append(InputError(f"--nodes={ahead.nodes}", "", found, f"{LEAST_LINKS} or more"))
    elif Need.LINKS in fault.needs and "each-pair" not in scopes:
        found = f"a plan that measures no links; fault {name} needs {Need.LINKS.value}"
        accepted = "a suite with a step of scope each-pair, such as rehearsal"
        mistakes.append(InputError(option, "", found, accepted))
    if Need.UPLINKS in fault.needs and not SHAPES[ahead.limit].switches.hosts_per_leaf:
        found = f"one switch; fault {name} needs {Need.UPLINKS.value}"
        mistakes.append(InputError(f"--limit={ahead.limit}", "", found, "--limit=fabric"))
    alone = [step for step in steps if step.scope == "each-node"]
    for need, missing in (
        (Need.FILES, not any(step.uses_scratch for step in alone)),
        (Need.SPEED, not any(step.launch == "mpi" for step in alone)),
    ):
        if need in fault.needs and missing:
            found = f"a plan without it; fault {name} needs {need.value}"
            mistakes.append(InputError(option, "", found, "--suite=rehearsal-short"))
    return mistakes
