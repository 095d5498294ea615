"""Lookup: extra variables whose names are close to a name that the playbooks accept."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

from ansible.plugins.lookup import LookupBase
from ansible.utils.vars import load_extra_vars

DOCUMENTATION = """
name: unknown_extra_vars
author: Proofmark authors
version_added: 0.1.0
short_description: Extra variables that are probably misspelt
description:
  - Ansible accepts any extra variable, also one that no playbook reads.
  - Only a name that is close to an accepted name is listed. Other variables of a site are allowed.
options:
  _terms:
    description: The names that the playbooks accept.
    type: list
    elements: str
    required: true
"""

EXAMPLES = """
- ansible.builtin.assert:
    that: query('proofmark.kit.unknown_extra_vars', 'suite', 'fresh') | length == 0
"""

RETURN = """
_list:
  description: One message for each listed variable.
  type: list
"""

NEAR = 0.75
"""Smallest ratio of `difflib.get_close_matches` that counts as close."""


class LookupModule(LookupBase):  # type: ignore[misc]  # Ansible ships no types
    """The lookup `proofmark.kit.unknown_extra_vars`."""

    def run(self, terms: list[Any], variables: Any = None, **kwargs: Any) -> list[str]:
        """Return a message for each name of ``-e`` that is close to a name in `terms`."""
        accepted = [str(term) for term in terms]
        given = sorted(str(name) for name in load_extra_vars(self._loader))
        return [
            f"-e {name}: found an unknown variable, did you mean {close[0]!r}?; "
            f"accepted: {', '.join(accepted)}"
            for name in given
            if name not in accepted
            and (close := get_close_matches(name, accepted, n=1, cutoff=NEAR))
        ]
