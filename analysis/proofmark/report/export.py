"""The base class of the formats of ``proofmark export``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import ClassVar

from proofmark.common.files import new_folder
from proofmark.common.plugins import Plugins
from proofmark.judge.verdict import Verdict
from proofmark.records.columns import Records
from proofmark.runs.run import Run


class Export(ABC):
    """A format of ``proofmark export``.

    Attributes:
        content: what its files have, for the help of the command.
    """

    content: ClassVar[str]

    @abstractmethod
    def write(self, run: Run, records: Records, verdict: Verdict, folder: Path) -> list[Path]:
        """Write the run into `folder`, and return the files; none without results of the format.

        Raises:
            BadInput: the format cannot represent the run.
        """


EXPORTS = Plugins(Export, "proofmark.report.exports", "--format")
"""All formats: those of the kit, and those of other packages by entry points of this group."""


def export(name: str, run: Run, records: Records, verdict: Verdict, folder: Path) -> list[Path]:
    """Write the run in the format `name` into `folder`; return the files.

    An export that fails, or that writes no file, leaves no new folder.

    Raises:
        BadInput: there is no such format, a file cannot be written, or the format cannot represent
            the run.
    """
    format_of_name = EXPORTS.get(name)()
    with new_folder(folder):
        return format_of_name.write(run, records, verdict, folder)
