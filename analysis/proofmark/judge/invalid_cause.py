"""The cause of an INVALID figure, as a code: the next step depends on it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import Enum

from proofmark.records.columns import Execution


class InvalidCause(Enum):
    """Why a figure is INVALID."""

    DISTURBED = "disturbed"
    NO_SPACE = "no-space"
    ERROR_COUNTERS = "error-counters"
    NO_PROGRAM = "no-program"
    NO_END = "no-end"
    FILE_SYSTEM = "file-system"
    MODE = "mode"
    BINDING = "binding"
    IMPOSSIBLE = "impossible"
    NETWORK = "network"
    OTHER = "other"


def invalid_cause(reason: str, executions: Iterable[Execution]) -> InvalidCause:
    """Return the cause of a figure with this reason, which `executions` measured."""
    if reason and any(reason in (each.disturbed, each.unsteady) for each in executions):
        return InvalidCause.DISTURBED
    return next(
        (cause for pattern, cause in _REASONS if pattern.search(reason)), InvalidCause.OTHER
    )


_REASONS: tuple[tuple[re.Pattern[str], InvalidCause], ...] = (
    (re.compile(r"No space left on device|Disk quota exceeded"), InvalidCause.NO_SPACE),
    (re.compile(r": \S+/\S+ (?:\+\d+|\S+ → \S+)"), InvalidCause.ERROR_COUNTERS),
    (re.compile(r"\(.* (?:cannot be executed|not found)\)"), InvalidCause.NO_PROGRAM),
    (
        re.compile(r"^timed out after|^killed by|left processes behind|^exit code"),
        InvalidCause.NO_END,
    ),
    (
        re.compile(r"^file system of|scratch folder|^the files |on another than /"),
        InvalidCause.FILE_SYSTEM,
    ),
    (re.compile(r"mode \S+ is not proven|was in mode|; mode \S+ has"), InvalidCause.MODE),
    (
        re.compile(r"^rank |ranks? reported|threads? (?:reported|ran)|memory policy"),
        InvalidCause.BINDING,
    ),
    (re.compile(r"physical bound"), InvalidCause.IMPOSSIBLE),
    (re.compile(r"counters of (?:the|its) networks|carried .* MB"), InvalidCause.NETWORK),
)
"""The first pattern that matches counts."""
