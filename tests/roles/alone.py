"""Plays one role alone, from a folder and with an ansible.cfg that are not those of the kit."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from tests.fixtures.place import open_kit
from tests.folders import ROOT
from tests.forks import tool, tools
from tests.role_pages import example
from tests.roles.kit import Kit, Played

SETTINGS = """
[defaults]
collections_path = {kit}/.ansible/collections
inventory = /nonexistent
roles_path = roles
gathering = explicit
hash_behaviour = merge
inject_facts_as_vars = True
forks = 2
"""
"""An ansible.cfg that has nothing of the kit but the path of the collections."""


def planned(kit: Kit, *options: str, command: tuple[str, ...] = ()) -> Path:
    """Create a run of the site `local`; return its folder."""
    words = ["plan", "--create", "-i", "inventory/local", "-l", "local", "--run-id", "r1", *options]
    program = open_kit()[1] / "proofmark" if command else tool("proofmark")
    subprocess.run(
        [*command, f"{program}", *words],
        cwd=kit.folder,
        env={**os.environ, **kit.environment},
        check=True,
        capture_output=True,
    )
    return kit.folder / "runs/r1"


def play_alone(
    kit: Kit,
    role: str,
    variables: Mapping[str, Any],
    *arguments: str,
    settings: str = "",
    command: tuple[str, ...] = (),
) -> Played:
    """Run the play of the role's README on the group `local`.

    Args:
        kit: the kit, whose site `local` is used.
        role: the name of the role.
        variables: replace those of the README.
        arguments: of ansible-playbook.
        settings: further lines of ansible.cfg.
        command: words before ansible-playbook.
    """
    (play,) = yaml.safe_load(example(ROOT / "roles" / role))
    play.pop("vars_files", None)
    play |= {"hosts": "local", "roles": [{"role": f"proofmark.kit.{role}", "vars": {**variables}}]}
    folder = kit.folder.parent / "elsewhere"
    folder.mkdir(exist_ok=True)
    folder.chmod(0o755)
    (folder / "play.yml").write_text(yaml.safe_dump([play]))
    (folder / "ansible.cfg").write_text(SETTINGS.format(kit=kit.folder) + settings)
    site = f"{kit.folder / 'inventory/local'}"
    environment = {**kit.environment, "COLUMNS": "200"}
    words = ("play.yml", "-i", site, *arguments)
    return started(*words, folder=folder, environment=environment, command=command)


def started(
    *arguments: str,
    folder: Path,
    environment: Mapping[str, str] | None = None,
    command: Sequence[str] = (),
) -> Played:
    """Run ansible-playbook in `folder`; its environment names no settings of Ansible.

    Args:
        arguments: of ansible-playbook.
        folder: the working directory.
        environment: variables that are added.
        command: the words before ansible-playbook.
    """
    programs = open_kit()[1] if command else tools()
    usual = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
    done = subprocess.run(
        [*command, f"{programs / 'ansible-playbook'}", *arguments],
        cwd=folder,
        env={
            **usual,
            "PATH": f"{programs}:{os.environ['PATH']}",
            "LC_ALL": "C.UTF-8",
            "COLUMNS": "200",
            **(environment or {}),
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    return Played(done.returncode, done.stdout + done.stderr)
