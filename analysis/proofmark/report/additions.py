"""What other packages add to a run and to its page, by entry points of this group.

The kit works without each of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from proofmark.common.plugins import Plugins
from proofmark.judge.verdict import Result, Verdict
from proofmark.report.page import Block, Column, Section
from proofmark.runs.run import Run

BEGINNING = ""
"""The place of a section before all sections of the core."""


@dataclass(frozen=True)
class AddedSection:
    """A section of a package.

    Attributes:
        after: the id of the section of the core that it follows, as in `proofmark.report.render`;
            `BEGINNING`: it is the first. The page of a run need not have that section.
        files: contents of its files in the folder of the plots, by name.
    """

    section: Section
    after: str = BEGINNING
    files: Mapping[str, bytes] = field(default_factory=dict)


class RunAddition:
    """What is added to the page of one run. A method that is not replaced adds nothing."""

    def sections(self) -> Iterable[AddedSection]:
        """Return sections of the page, in their order."""
        return ()

    def summary(self) -> Iterable[tuple[str, str]]:
        """Return lines of the summary: name and text."""
        return ()

    def issues(self) -> Iterable[Block]:
        """Return blocks of the section of issues."""
        return ()

    def columns(self) -> tuple[Column, ...]:
        """Return further columns of the tables of figures."""
        return ()

    def cells(self, result: Result) -> tuple[str, ...]:
        """Return one text for each of the `columns`, about the figure in `result`."""
        return ()

    def note(self) -> str:
        """Return a few words beside predicted figures in plots; empty: none."""
        return ""


class Addition:
    """What a package adds. A method that is not replaced adds nothing."""

    def of_run(self, run: Run, verdict: Verdict) -> RunAddition | None:
        """Return what is added to the page of `run`; None: nothing.

        Raises:
            BadInput: a file of the run is damaged.
        """
        return None


ADDITIONS = Plugins(Addition, "proofmark.report.additions", "additions")
"""What is added: the package of this module has no plug-in of its own."""


def additions_of(run: Run, verdict: Verdict) -> tuple[RunAddition, ...]:
    """Return what is added to the page of `run`.

    Raises:
        BadInput: a file of the run is damaged.
    """
    found = (ADDITIONS.get(name)().of_run(run, verdict) for name in ADDITIONS.names())
    return tuple(each for each in found if each is not None)
