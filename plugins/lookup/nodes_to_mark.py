"""Lookup: the hosts of the play that marks the nodes that failed."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from ansible.plugins.lookup import LookupBase

DOCUMENTATION = """
name: nodes_to_mark
author: Proofmark authors
version_added: 0.1.0
short_description: The hosts of the play that marks the nodes that failed
description:
  - Without a failed node, the play has no host.
  - A play has a cost for each host. Therefore the nodes that did not fail are hosts of the play
    only if few nodes are selected.
  - If only the representative failed, the other nodes are no hosts of the play, because the failure
    may be that of the whole partition.
options:
  _terms:
    description: The failed nodes, as a dictionary of reasons by node.
    type: list
    required: true
  representative:
    description: The node that stands for the partition.
    type: str
    required: true
  selected:
    description: The number of nodes that the limit of the playbook selects.
    type: int
    default: 0
  most:
    description: The largest number of selected nodes of which all are hosts of the play.
    type: int
    required: true
"""

EXAMPLES = """
- name: Mark the nodes
  hosts: "{{ query('proofmark.kit.nodes_to_mark', {'n2': 'refused'}, representative='n1',
                       selected=3, most=256) }}"
"""

RETURN = """
_list:
  description: The patterns of the key C(hosts) of a play.
  type: list
"""

ALL_NODES = "compute"
"""The group of all nodes; the limit of the playbook selects from it."""
NO_HOST = "!all"
"""The pattern of a play without hosts; Ansible refuses an empty list."""


class LookupModule(LookupBase):  # type: ignore[misc]  # Ansible ships no types
    """The lookup `proofmark.kit.nodes_to_mark`."""

    def run(self, terms: list[Any], variables: Any = None, **kwargs: Any) -> list[str]:
        """Return the patterns of the hosts of the play."""
        self.set_options(var_options=variables, direct=kwargs)
        failed = [str(node) for reasons in terms for node in reasons]
        options = (self.get_option(name) for name in ("representative", "selected", "most"))
        return patterns(failed, *options)


def patterns(failed: Collection[str], representative: str, selected: int, most: int) -> list[str]:
    """Return the patterns of the play: no host, all nodes, or the failed ones.

    Args:
        failed: the names of the nodes that failed.
        representative: the node that stands for the partition.
        selected: the number of selected nodes.
        most: the largest number of them of which all are hosts of the play.
    """
    if not failed:
        return [NO_HOST]
    alone = set(failed) == {representative}
    return list(failed) if alone or selected > most else [ALL_NODES]
