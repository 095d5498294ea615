"""Lookup: fails unless the verdict of a run was written and accepts the machine."""

from __future__ import annotations

import sys
from typing import Any

from ansible import context
from ansible.plugins.lookup import LookupBase
from ansible.utils.display import Display

DOCUMENTATION = """
name: required_verdict
author: Proofmark authors
version_added: 0.1.0
short_description: Fails unless the verdict of a run accepts the machine
description:
  - It is the value of the key C(hosts) of the last play of a report. No option of Ansible leaves
    out the value of a keyword, and no task can be skipped or ignored instead.
  - A play without the stage report, a check and a listing need no verdict.
options:
  _terms:
    description: The result of the task that wrote the verdict; empty if there is none.
    type: list
    required: true
"""

EXAMPLES = """
- name: Require the verdict
  hosts: "{{ query('proofmark.kit.required_verdict', report_written | default({})) }}"
"""

RETURN = """
_list:
  description: The pattern of no host.
  type: list
"""

STAGE = "report"
NOT_ACCEPTED = 2
"""The exit code of ansible-playbook if a host failed."""
NO_HOST = "!all"
"""The pattern of a play without hosts; Ansible refuses an empty list."""


class LookupModule(LookupBase):  # type: ignore[misc]  # Ansible ships no types
    """The lookup `proofmark.kit.required_verdict`."""

    def run(self, terms: list[Any], variables: Any = None, **kwargs: Any) -> list[str]:
        """Return the pattern of no host; fail without a verdict that accepts the machine."""
        if _is_judged() and (problem := not_accepted(terms[0])):
            Display().error(problem, wrap_text=False)
            sys.exit(NOT_ACCEPTED)
        return [NO_HOST]


def _is_judged() -> bool:
    """Return whether the command line has the stage report, and does not only list or check."""
    given = context.CLIARGS
    if any(given.get(name) for name in ("check", "listhosts", "listtags", "listtasks", "syntax")):
        return False
    tags, skipped = given.get("tags") or ("all",), given.get("skip_tags") or ()
    return ("all" in tags or STAGE in tags) and STAGE not in skipped


def not_accepted(written: Any) -> str:
    """Return why the result of the task that wrote the verdict does not accept the machine."""
    verdict = written.get("json") if isinstance(written, dict) else None
    if not isinstance(verdict, dict) or "exit_code" not in verdict:
        return "found no verdict; accepted: PASS"
    if verdict["exit_code"] != 0:
        return f"found {verdict.get('meaning') or verdict['exit_code']}; accepted: PASS"
    return ""
