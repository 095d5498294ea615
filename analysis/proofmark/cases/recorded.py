"""The cases of an earlier run, whose files may have former keys.

What a former key stated is in the code now: the program of a case (`reader.programs`), and the
thresholds of a comparison.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import model_validator

from proofmark.cases.case import Case

_OF_PROGRAM = ("doubling", "operations", "phases", "exact")
"""The former keys of `command` that its program states."""


class RecordedCase(Case):
    """A case as it was at the start of a run."""

    @model_validator(mode="before")
    @classmethod
    def _former(cls, given: Any) -> Any:
        if not isinstance(given, Mapping):
            return given
        read = given.get("read")
        return {**given, "read": _read(read, given)} if isinstance(read, Mapping) else given


def _read(block: Mapping[str, Any], case: Mapping[str, Any]) -> dict[str, Any]:
    """Return the block `read` of a case without its former keys."""
    text = block.get("text")
    command = text.get("command") if isinstance(text, Mapping) else None
    named = "json" in block
    if isinstance(command, Mapping):
        named = named or any(key in command for key in _OF_PROGRAM)
        block = {**block, "text": {**block["text"], "command": command.get("match")}}
    if named:
        block = {key: value for key, value in block.items() if key != "json"}
        block["program"] = _program(f"{case.get('program')}")
    return {**block}


def _program(name: str) -> str:
    """Return the module of the program that a case started: `osu` for `osu_{collective}`."""
    return "osu" if "osu_" in name else name
