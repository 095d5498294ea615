"""Lookup: the nodes that failed in a stage, each with its reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible.plugins.lookup import LookupBase

DOCUMENTATION = """
name: failed_nodes
author: Proofmark authors
version_added: 0.1.0
short_description: The nodes that failed in a stage, each with its reason
description:
  - A failed task of M(proofmark.kit.cli) names the nodes that failed.
  - A stage that ends with a verdict has no such task. The nodes are then those of the verdict, and
    those that earlier stages left out. A stage without a verdict has a failure of its own.
  - A failure of more nodes than O(most) is a failure of the partition, because a play has a cost
    for each host. So is a failure that is not that of single nodes. The representative of the
    partition is then the node that failed.
options:
  _terms:
    description: >-
      The result of the failed task, the result of the task that wrote a verdict (empty if there is
      none), the nodes that earlier stages left out, and the representative with the reason of the
      failure.
    type: list
    required: true
  most:
    description: The largest number of nodes that are returned.
    type: int
    required: true
"""

EXAMPLES = """
- ansible.builtin.set_fact:
    failed: >-
      {{ lookup('proofmark.kit.failed_nodes', ansible_failed_result, {}, {}, {'n1': 'no answer'},
                most=256) }}
"""

RETURN = """
_list:
  description: One dictionary of reasons by node.
  type: list
"""


class LookupModule(LookupBase):  # type: ignore[misc]  # Ansible ships no types
    """The lookup `proofmark.kit.failed_nodes`."""

    def run(self, terms: list[Any], variables: Any = None, **kwargs: Any) -> list[dict[str, str]]:
        """Return one dictionary of reasons by node."""
        self.set_options(var_options=variables, direct=kwargs)
        *stage, partition = terms
        return [few_or(failed_nodes(*stage), self.get_option("most"), partition)]


def failed_nodes(
    failed: Mapping[str, Any], written: Mapping[str, Any], left_out: Mapping[str, str]
) -> dict[str, str]:
    """Return the nodes that failed in a stage, each with its reason.

    Args:
        failed: the result of the task that ended the stage.
        written: the result of the task that wrote a verdict; empty if there is none. It has
            ``json`` if the verdict was written.
        left_out: the nodes that earlier stages left out, each with its reason.
    """
    if nodes := failed.get("failed_nodes"):
        return dict(nodes)
    if "json" in written:
        return {**left_out, **written.get("failed_nodes", {})}
    return {}


def few_or(nodes: Mapping[str, str], most: int, partition: Mapping[str, str]) -> dict[str, str]:
    """Return `nodes` if there are 1 to `most` of them, otherwise `partition`."""
    return dict(nodes if 0 < len(nodes) <= most else partition)
