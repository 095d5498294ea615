"""Prints the stages, their progress and the verdict of an acceptance, and every failure."""

from __future__ import annotations

from typing import Any

from ansible.constants import _ACTION_DEBUG
from ansible.plugins.callback.default import CallbackModule as Default

DOCUMENTATION = """
name: progress
type: stdout
author: Proofmark authors
version_added: 0.1.0
short_description: Progress of an acceptance, and every failure
description:
  - Prints the name of each play that has a task, the lines of C(proofmark), the messages of
    C(ansible.builtin.debug), warnings and failures.
  - Tasks that were skipped or changed nothing have no line. The recap is printed after a failure.
extends_documentation_fragment:
  - default_callback
  - result_format_callback
"""


class CallbackModule(Default):  # type: ignore[misc]  # Ansible ships no types
    """The callback plug-in of `make acceptance`."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "stdout"
    CALLBACK_NAME = "proofmark.kit.progress"

    def __init__(self) -> None:
        """Begin with no play."""
        super().__init__()
        self._printed: set[str] = set()

    def v2_playbook_on_play_start(self, play: Any) -> None:
        """Keep the play; its name is printed with its first task."""
        self._play = play

    def v2_playbook_on_no_hosts_matched(self) -> None:
        """Print nothing: a play without hosts does nothing."""

    def v2_playbook_on_task_start(self, task: Any, is_conditional: bool) -> None:
        """Print the name of the play, once in an acceptance."""
        self._last_task_name = task.get_name().strip()
        name = self._play.get_name().strip()
        if name not in self._printed:
            self._printed.add(name)
            self._display.display(name)

    def v2_playbook_on_include(self, included_file: Any) -> None:
        """Print nothing: the tasks of the file are printed."""

    def v2_runner_on_skipped(self, result: Any) -> None:
        """Print nothing."""

    def v2_runner_item_on_skipped(self, result: Any) -> None:
        """Print nothing."""

    def v2_runner_item_on_ok(self, result: Any) -> None:
        """Print nothing."""

    def v2_runner_on_ok(self, result: Any) -> None:
        """Print the lines of a message; nothing of another task."""
        if result.task.action not in _ACTION_DEBUG:
            self._handle_warnings_and_exception(result)
            return
        text = result.result.get("msg", "")
        for line in text if isinstance(text, list) else f"{text}".splitlines():
            self._display.display(f"    {line}")

    def _handle_exception(self, result: Any, use_stderr: bool = False) -> None:
        """Print no part of the playbook: the line of the failure has its message."""
        if self._display.verbosity:
            super()._handle_exception(result, use_stderr)
        result.pop("exception", None)

    def v2_playbook_on_stats(self, stats: Any) -> None:
        """Print the recap after a failure: the last lines else are those of the verdict."""
        if stats.failures or stats.dark:
            super().v2_playbook_on_stats(stats)
