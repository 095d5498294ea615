"""What the judge of a kind of runs adds to a verdict."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from proofmark.common.message import Message


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
    def failed_nodes(self) -> Mapping[str, str]:
        """The nodes that failed, each with the reason, beside the nodes of the usual rules."""
        return {}

    @abstractmethod
    def as_json(self) -> dict[str, Any]:
        """Return the form of ``verdict.json``."""
