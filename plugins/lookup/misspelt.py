"""Lookup: extra variables whose names are nearly, but not quite, those that the playbooks know."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

from ansible.plugins.lookup import LookupBase
from ansible.utils.vars import load_extra_vars

DOCUMENTATION = """
name: misspelt
author: Proofmark authors
version_added: 0.1.0
short_description: Extra variables that are probably misspelt
description:
  - Ansible accepts any extra variable, also one that nobody reads.
  - Variables of the site's own are let through; only near misses are named, one line each.
options:
  _terms:
    description: The variables that the playbooks know.
    type: list
    elements: str
    required: true
"""

EXAMPLES = """
- ansible.builtin.assert:
    that: query('proofmark.kit.misspelt', 'suite', 'fresh') | length == 0
"""

RETURN = """
_list:
  description: One line for each such variable.
  type: list
"""

NEAR = 0.75


class LookupModule(LookupBase):  # type: ignore[misc]  # Ansible ships no types
    """The lookup `proofmark.kit.misspelt`."""

    def run(self, terms: list[Any], variables: Any = None, **kwargs: Any) -> list[str]:
        """Compare the names given by ``-e`` with the known ones, `terms`."""
        known = [str(term) for term in terms]
        given = sorted(str(name) for name in load_extra_vars(self._loader))
        return [
            f"-e {name}: found an unknown variable, did you mean {close[0]!r}?; "
            f"accepted: {', '.join(known)}"
            for name in given
            if name not in known and (close := get_close_matches(name, known, n=1, cutoff=NEAR))
        ]
