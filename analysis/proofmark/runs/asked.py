"""``asked.json``: the extra variables of a run, and the command that repeats its acceptance."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from pydantic import RootModel

from proofmark.common.files import exists, read_json, write_whole
from proofmark.runs.run import Run
from proofmark.runs.run_files import RunFiles
from proofmark.site.inventory import Site
from proofmark.site.limit import pattern_of


class _Variables(RootModel[dict[str, str]]):
    """The extra variables, by name."""


def write_asked(run: Run, variables: Mapping[str, str]) -> None:
    """Keep the extra variables with which `run` was planned, except the suite and the run id."""
    if variables:
        write_whole(run.files.asked, _Variables(dict(variables)).model_dump_json(indent=1) + "\n")


def acceptance_command(run: Run, site: Site, **more: str) -> str:
    """Return the command of the acceptance of a run on `site`, which any shell takes.

    It has the inventory, the limit and the extra variables of the plan. It has ``run_id``, so that
    this run is continued, unless `more` starts a new one. It confirms the reboots if the run may
    enter a mode that is not the current one.

    Args:
        run: the run.
        site: the site of the run.
        more: further extra variables by name.
    """
    variables = {"suite": run.plan.suite, **_read(run.files)}
    if "fresh" not in more:
        variables["run_id"] = run.id
    if any(mode != run.plan.current_mode for mode in run.plan.allowed_modes):
        variables["confirm_reboot"] = "true"
    return _play("acceptance.yml", site, {**variables, **more})


def restore_command(run: Run, site: Site) -> str:
    """Return the command that restores what `run` has changed on the nodes of `site`."""
    return _play("playbooks/restore.yml", site, {"run_id": run.id, "confirm_reboot": "true"})


def inventory_of(site: Site) -> str:
    """Return the inventory of `site` as commands in the checkout name it."""
    usual = site.inventory.parent.name == "inventory"
    return f"inventory/{site.name}" if usual else f"{site.inventory}"


def _play(playbook: str, site: Site, variables: Mapping[str, str]) -> str:
    limit = pattern_of(site.hosts, site.partition_name, site.partition_hosts or site.hosts)
    words = ["ansible-playbook", playbook, "-i", inventory_of(site), "-l", limit]
    for name, value in variables.items():
        words += ["-e", f"{name}={shlex.quote(value)}"]  # Ansible splits the value like a shell
    return shlex.join(words)


def _read(files: RunFiles) -> dict[str, str]:
    return read_json(files.asked, _Variables).root if exists(files.asked) else {}
