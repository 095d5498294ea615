"""What packages judge beside the core: added judges, and the results of kinds of runs.

The kit works without each of them. What a package found is in the verdict by the name of its judge.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from proofmark.common.message import NOTHING, Message
from proofmark.common.plugins import Plugins
from proofmark.judge.evidence import Evidence
from proofmark.judge.fleet.fleet import Fleet
from proofmark.judge.references.judgement import Judgement
from proofmark.judge.stated_parts import NodeFaults


@dataclass(frozen=True)
class Suspect:
    """A part of the machine, no node, that explains slow figures. It is a step to do next.

    Attributes:
        problem, action: what is wrong, and what to do, in the language of the reader.
    """

    problem: str
    action: str
    nodes: str
    figures: int
    measured: Sequence[str]


class Finding:
    """What an added judge found. A method that is not replaced adds nothing."""

    def of_figures(self) -> Mapping[int, Judgement]:
        """Return a judgement of each figure that the judge decides, by figure."""
        return {}

    def of_nodes(self) -> NodeFaults:
        """Return the faults of nodes that no figure has, by host."""
        return {}

    def slow_ends(self) -> Mapping[str, str]:
        """Return the host that makes a pair slow, by pair; empty text: no host does."""
        return {}

    def unjudged(self) -> tuple[Message, ...]:
        """Return what must be judged and was not. With it the run is not accepted."""
        return ()

    def suspects(self) -> Iterator[Suspect]:
        """Yield the parts of the machine that explain slow figures, the worst first."""
        return iter(())

    def as_json(self) -> Mapping[str, Any]:
        """Return the keys of ``verdict.json`` with what was found."""
        return {}


class AddedJudge(ABC):
    """A judge of a package."""

    @abstractmethod
    def judge(self, evidence: Evidence, fleet: Fleet) -> Finding | None:
        """Return what `evidence` shows; None: it has nothing for this judge.

        Args:
            fleet: the comparison of its like nodes.

        Raises:
            BadInput: a file of the run is damaged.
        """


JUDGES = Plugins(AddedJudge, "proofmark.judge.additions", "judges")
"""The added judges: the package of this module has no plug-in of its own."""


def added_findings(evidence: Evidence, fleet: Fleet) -> dict[str, Finding]:
    """Return what the added judges found, by the name of the judge.

    Raises:
        BadInput: a file of the run is damaged.
    """
    found: dict[str, Finding] = {}
    for name in JUDGES.names():
        finding = JUDGES.get(name)().judge(evidence, fleet)
        if finding is not None:
            found[name] = finding
    return found


class KindResult(ABC):
    """The result of a run that is not a usual one.

    Attributes:
        kind: the name of the kind, and the key of this result in ``verdict.json``.
        can_repeat: whether a step of the run can be measured again alone.
    """

    kind: ClassVar[str]
    can_repeat: ClassVar[bool] = True

    @property
    @abstractmethod
    def label(self) -> Message:
        """The result in a few words, for the summary of the page."""

    @property
    def last_line(self) -> Message:
        """The same for the last lines of an acceptance; empty: nothing."""
        return self.label

    @property
    def note(self) -> Message:
        """What the page says among its exceptions; empty: nothing."""
        return NOTHING

    @property
    def failed_nodes(self) -> Mapping[str, str]:
        """The nodes that failed, each with the reason, beside the nodes of the usual rules."""
        return {}

    @abstractmethod
    def as_json(self) -> object:
        """Return the form of ``verdict.json``."""
