"""mdtest: the phases that its options select, and the items of a process (mdtest's options)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from proofmark.cases.reader.command_line import StartedCommand
from proofmark.cases.reader.program import Program
from proofmark.cases.reader.values import Parameter

_FILES = {"file_create", "file_stat", "file_read", "file_remove"}
_DIRECTORIES = {"directory_create", "directory_stat", "directory_remove"}
_PHASES: Sequence[Mapping[str, set[str]]] = (
    {"-F": _FILES, "-D": _DIRECTORIES},
    {
        "-C": {"file_create", "directory_create"},
        "-T": {"file_stat", "directory_stat"},
        "-E": {"file_read"},
        "-r": {"file_remove", "directory_remove"},
    },
)
"""Groups of option → its phases. Without an option of a group, all phases of the group run."""


class Mdtest(Program):
    """mdtest 1.9 to 4."""

    def facts(self, printed: Mapping[str, Parameter]) -> Mapping[str, Parameter]:
        """Return the items of a process: with `-I` only the sum of all processes is printed."""
        items, tasks = printed.get("all_items"), printed.get("tasks")
        if "items" in printed or not (isinstance(items, int) and isinstance(tasks, int) and tasks):
            return {}
        return {} if items % tasks else {"items": items // tasks}

    def selected_metrics(self, request: StartedCommand) -> set[str]:
        """Return the phases that both groups of options select."""
        # mdtest prints each word in quotes: single ones, or double ones (1.9.3).
        words = {word.strip("'\"") for word in request.arguments}
        selected = _FILES | _DIRECTORIES
        for group in _PHASES:
            named = [phases for option, phases in group.items() if option in words]
            selected = selected & set().union(*(named or group.values()))
        return selected
