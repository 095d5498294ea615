"""Lookup: the host of the play that selects the representative of a partition."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from ansible.plugins.lookup import LookupBase
from ansible.utils.display import Display

DOCUMENTATION = """
name: selected_hosts
author: Proofmark authors
version_added: 0.1.0
short_description: The host of the play that selects the representative of a partition
description:
  - A play has a cost for each host. So this play has one host of the limit.
  - Reads a subscript of C(-l) that reads as names of hosts as these hosts. Ansible takes its
    numbers as positions in a group.
  - Fails if the inventory was not read completely, or sets a variable that the playbooks use.
  - Returns no host in a stage after the first one, which has the representative of the first one.
options:
  _terms:
    description:
      - Names of groups. The lookup then returns the hosts of these groups in the limit. It checks
        nothing.
      - Without a name it returns the host of the play.
    type: list
    elements: str
"""

EXAMPLES = """
- name: Selection
  hosts: "{{ query('proofmark.kit.selected_hosts') }}"
  vars:
    nodes: "{{ query('proofmark.kit.selected_hosts', 'compute') }}"
"""

RETURN = """
_list:
  description: The pattern of the key C(hosts) of a play, or the hosts of the groups.
  type: list
"""

KIT = Path(__file__).resolve().parents[2]
"""The checkout or collection with this file."""
REFUSED = 3
"""The exit code of bad input, as that of the command."""
REPRESENTATIVE = "representative"
"""The group that the first stage makes."""


class LookupModule(LookupBase):  # type: ignore[misc]  # Ansible ships no types
    """The lookup `proofmark.kit.selected_hosts`."""

    checked = False
    """Whether the inventory was checked, before the first stage."""

    def run(self, terms: list[Any], variables: Any = None, **kwargs: Any) -> list[str]:
        """Return the host of the play. With `terms`, return the hosts of these groups."""
        if terms:
            groups = [str(name) for name in terms if name in variables["groups"]]
            return _names(variables["hostvars"]._inventory, groups) if groups else []
        limit = variables.get("ansible_limit")
        hostvars = variables.get("hostvars")
        if hostvars is None:  # a command that only lists
            _refuse_node_sets(limit or "", variables["groups"])
        elif not LookupModule.checked:
            _check(hostvars, limit)
            LookupModule.checked = True
        elif REPRESENTATIVE in variables["groups"]:
            return []
        if not limit and not variables["groups"].get("compute"):
            return ["localhost"]
        pattern = "all" if limit else "compute"
        return [pattern] if hostvars is None else first_of(hostvars._inventory, pattern)


def first_of(manager: Any, pattern: str) -> list[str]:
    """Return the name of the first host of `pattern`.

    Return `pattern` itself if Ansible does not select this host by its name.
    """
    first = _names(manager, pattern)[:1]
    return first if first and _names(manager, first[0]) == first else [pattern]


def _names(manager: Any, pattern: str | list[str]) -> list[str]:
    """Return the hosts of `pattern` in the limit. They need not be hosts of the play."""
    return [host.name for host in manager.get_hosts(pattern, ignore_restrictions=True)]


def _check(hostvars: Any, limit: str | None) -> None:
    """Limit the inventory to the hosts of `limit`; check its files and variables."""
    from proofmark.api import BadInput, apply_limit, refuse_unread, refused_of_inventory

    manager = hostvars._inventory
    try:
        refuse_unread(manager)
        if REPRESENTATIVE in manager.groups:
            _refuse(
                f"the inventory: found a group {REPRESENTATIVE}; accepted: another name; the "
                "playbooks make this group"
            )
        if limit:
            apply_limit(manager, limit)
    except BadInput as error:
        _refuse(str(error))
    names = {
        name
        for host in manager.get_hosts()[:1]
        for name in hostvars._variable_manager.get_vars(host=host)
    }
    if refused := [str(mistake) for mistake in refused_of_inventory(names, KIT)]:
        _refuse("; ".join(refused))


def _refuse_node_sets(limit: str, groups: Mapping[str, list[str]]) -> None:
    """Refuse a limit in which Ansible, which lists the hosts now, would select others."""
    from proofmark.api import BadInput, limit_of_names

    hosts = {host for members in groups.values() for host in members}
    try:
        if names := limit_of_names(limit, groups, hosts):
            _refuse(f"-l: found {limit!r}; accepted by a listing: {names}")
    except BadInput as error:
        _refuse(str(error))


def _refuse(message: str) -> NoReturn:
    """End Ansible with `message` alone; an exception of a keyword would have its own text first."""
    Display().error(message, wrap_text=False)
    sys.exit(REFUSED)
