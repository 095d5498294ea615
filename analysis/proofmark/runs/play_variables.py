"""``asked.json``: the extra variables of a run, and the commands that repeat its plays.

A run can be a copy that another person changed. A printed command has only the variables in
`play_variable_names`, with values that Ansible reads as they are
(`proofmark.site.extra_vars.literal_variable`).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pydantic import RootModel

from proofmark.common.files import exists, read_json, write_atomic
from proofmark.common.kit import kit_folder
from proofmark.common.message import NOTHING, Message
from proofmark.common.printed_command import (
    LIMIT,
    NAME,
    Part,
    PrintedCommand,
    of_person,
    of_run,
    without,
)
from proofmark.runs.run import Run
from proofmark.site.choice import pattern_of
from proofmark.site.extra_vars import call_variables, literal_variable
from proofmark.site.inventory import Site


def play_variable_names() -> tuple[str, ...]:
    """Return the options of a plan that are extra variables of the playbooks of the same name."""
    return tuple(name for name, variable in call_variables().items() if variable.of_plan)


class _Variables(RootModel[dict[str, str]]):
    """The extra variables, by name."""


def write_play_variables(run: Run, variables: Mapping[str, str]) -> None:
    """Keep the extra variables with which `run` was planned, except the suite and the run id."""
    if variables:
        write_atomic(run.files.asked, _Variables(dict(variables)).model_dump_json(indent=1) + "\n")


def acceptance_command(run: Run, site: Site, *, inventory: str = "", **more: str) -> PrintedCommand:
    """Return the command of the acceptance of a run on `site`, which any shell takes.

    It has the inventory, the limit and the extra variables of the plan. It has ``run_id``, so that
    this run is continued, unless `more` starts a new one. It confirms the reboots if the run may
    enter a mode that is not the current one.

    Args:
        inventory: the inventory that the person named; empty: that of `inventory_part`.
    """
    asked = read_json(run.files.asked, _Variables).root if exists(run.files.asked) else {}
    names = play_variable_names()
    variables = {"suite": run.plan.suite, **{name: asked[name] for name in names if name in asked}}
    if "fresh" not in more:
        variables["run_id"] = run.id
    if any(mode != run.plan.current_mode for mode in run.plan.allowed_modes):
        variables["confirm_reboot"] = "true"
    unknown = [without("-e", name) for name in asked if name not in names]
    return _play("acceptance.yml", site, {**variables, **more}, inventory, unknown)


def restore_command(run: Run, site: Site) -> PrintedCommand:
    """Return the command that restores what `run` has changed on the nodes of `site`."""
    variables = {"run_id": run.id, "confirm_reboot": "true"}
    return _play("playbooks/restore.yml", site, variables)


def not_in(command: PrintedCommand) -> Message:
    """Return which texts of a run are not in `command`; nothing if all of them are."""
    return Message("not-in-command", names=command.left_out) if command.left_out else NOTHING


def inventory_part(site: Site, given: str = "") -> Part:
    """Return the inventory of a command in the checkout.

    It is the one that the person gave. The folder that the run remembers is never named, because
    Ansible executes what an inventory states: without `given` it is the site of this name in
    ``inventory/``, or a placeholder if the run was planned with another folder.
    """
    if given:
        path, kit = Path(given), kit_folder()
        if path.parent == kit and path.is_symlink():  # the link of the chosen site, which may move
            path = kit / path.readlink()
        return of_person(path.relative_to(kit) if path.is_relative_to(kit) else path, "INVENTORY")
    if site.inventory.parent.name != "inventory" or not NAME.fullmatch(site.name):
        return Part("INVENTORY")
    return Part(f"inventory/{site.name}")


def _play(
    playbook: str,
    site: Site,
    variables: Mapping[str, str],
    inventory: str = "",
    unknown: list[Part] | None = None,
) -> PrintedCommand:
    limit = pattern_of(site.hosts, site.partition_name, site.partition_hosts or site.hosts)
    return PrintedCommand(
        "ansible-playbook",
        playbook,
        *("-i", inventory_part(site, inventory)),
        *("-l", of_run(limit, LIMIT, "LIMIT")),
        *(literal_variable(name, value) for name, value in variables.items()),
        *(unknown or ()),
    )
