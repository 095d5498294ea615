"""Repeats the verdict below the recap of a play that failed: its lines are the last ones."""

from __future__ import annotations

from typing import Any

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: last_lines
type: aggregate
author: Proofmark authors
version_added: 0.1.0
short_description: The verdict below the recap
description:
  - Prints the last lines of the newest verdict of a play again, below the recap, if a host failed.
    Ansible prints a part of the playbook and the recap below the verdict.
requirements:
  - C(callbacks_enabled = proofmark.kit.last_lines), as the C(ansible.cfg) of the kit has it
"""


class CallbackModule(CallbackBase):  # type: ignore[misc]  # Ansible ships no types
    """The callback plug-in of the playbooks of the kit."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "proofmark.kit.last_lines"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self) -> None:
        """Begin without a verdict."""
        super().__init__()
        self._lines: list[str] = []

    def v2_runner_on_ok(self, result: Any) -> None:
        """Keep the lines of a command of the kit that states its last lines."""
        answer = result.result.get("json") if result.task.action == "proofmark.kit.cli" else None
        if isinstance(answer, dict):
            self._lines = answer.get("lines", self._lines)

    def v2_playbook_on_stats(self, stats: Any) -> None:
        """Print them if a host failed."""
        for line in self._lines if stats.failures or stats.dark else ():
            self._display.display(line)
