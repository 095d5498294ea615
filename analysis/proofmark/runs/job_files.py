"""The names of the files of a job of a run. No other room has them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from proofmark.common.files import names_in

_NUMBER = re.compile(r"[1-9]\d{0,8}", re.ASCII)


def numbered(names: Iterable[str], prefix: str) -> dict[int, str]:
    """Return the names that are `prefix` and a number, by this number."""
    return {
        int(name.removeprefix(prefix)): name
        for name in names
        if name.startswith(prefix) and _NUMBER.fullmatch(name, len(prefix))
    }


@dataclass(frozen=True)
class JobFiles:
    """``jobs/<id>/``."""

    folder: Path
    REWRITTEN: ClassVar = frozenset({"busy", "busy.new", "fail-fast", "repeats"})
    """The notes of an attempt that its job script changes while it runs."""

    @property
    def script(self) -> Path:
        """The job script."""
        return self.folder / "job.sh"

    @property
    def hosts(self) -> Path:
        """The nodes of the job, if its scheduler reads them from a file."""
        return self.folder / "hosts"

    @property
    def messages(self) -> Path:
        """The output of the job script."""
        return self.folder / "messages"

    @property
    def needs(self) -> Path:
        """The processor features that the programs of the job need."""
        return self.folder / "needs"

    @property
    def ticket(self) -> Path:
        """The submission of the job. It is removed at the end of the job."""
        return self.folder / "ticket.json"

    @property
    def history(self) -> Path:
        """One line for each change of the state of the job."""
        return self.folder / "history.jsonl"

    def repeats(self) -> list[Path]:
        """Return the repetitions of disturbed steps by each attempt, in order; some are missing."""
        return [attempt / "repeats" for attempt in self.attempts()]

    def attempts(self) -> list[Path]:
        """Return the folders of the attempts, in order."""
        found = numbered(names_in(self.folder), "attempt-")
        return [self.folder / name for _, name in sorted(found.items())]
