"""Lookup: the options of ansible-playbook that leave out tasks."""

from __future__ import annotations

from typing import Any

from ansible import context
from ansible.plugins.lookup import LookupBase

DOCUMENTATION = """
name: left_out_tasks
author: Proofmark authors
version_added: 0.1.0
short_description: Options of ansible-playbook that leave out tasks
description:
  - With C(--tags), C(--skip-tags) or C(--start-at-task), a play that does nothing ends with exit
    code 0.
  - Options that only list or check the syntax of a play are not listed.
options: {}
"""

EXAMPLES = """
- ansible.builtin.assert:
    that: query('proofmark.kit.left_out_tasks') | length == 0
"""

RETURN = """
_list:
  description: Each option with its value.
  type: list
"""


class LookupModule(LookupBase):  # type: ignore[misc]  # Ansible ships no types
    """The lookup `proofmark.kit.left_out_tasks`."""

    def run(self, terms: list[Any], variables: Any = None, **kwargs: Any) -> list[str]:
        """Return the options of the command line that leave out tasks, each with its value."""
        given = context.CLIARGS
        options = {
            "--tags": sorted(tag for tag in given.get("tags") or () if tag != "all"),
            "--skip-tags": sorted(given.get("skip_tags") or ()),
            "--start-at-task": list(filter(None, [given.get("start_at_task")])),
        }
        return [f"{option} {','.join(values)}" for option, values in options.items() if values]
