"""Lookup: the folder for one kind of results of the kit."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleLookupError
from ansible.plugins.lookup import LookupBase

DOCUMENTATION = """
name: result_folder
author: Proofmark authors
version_added: 0.1.0
short_description: The folder for one kind of results of the kit
description:
  - In a checkout, the results are in the checkout.
  - Outside a checkout, the results are in the folder in which C(ansible-playbook) was started.
options:
  _terms:
    description: The names of the folders, for example V(runs).
    type: list
    elements: str
    required: true
  given:
    description: The folder that the user chose; empty is none.
    type: str
    default: ""
"""

EXAMPLES = """
- ansible.builtin.debug:
    msg: "{{ lookup('proofmark.kit.result_folder', 'runs', given=proofmark_runs | default('')) }}"
"""

RETURN = """
_list:
  description: One absolute path for each name.
  type: list
"""

KIT = Path(__file__).resolve().parents[2]
"""The checkout or collection with this file."""


class LookupModule(LookupBase):  # type: ignore[misc]  # Ansible ships no types
    """The lookup `proofmark.kit.result_folder`."""

    def run(self, terms: list[Any], variables: Any = None, **kwargs: Any) -> list[str]:
        """Return the absolute path of each folder in `terms`."""
        try:
            from proofmark.api import result_folder
        except ImportError:
            message = f"{sys.executable}: found no Python package proofmark; accepted: a Python "
            message += f"with it; `pip install {KIT}`, in a checkout `make .venv`, installs it"
            raise AnsibleLookupError(message) from None
        self.set_options(var_options=variables, direct=kwargs)
        return [f"{result_folder(KIT, str(term), self.get_option('given'))}" for term in terms]
