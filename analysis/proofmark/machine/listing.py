"""The base class of listings, which ask a scheduler for its nodes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar

from proofmark.machine.outcome import NodeError, Outcome
from proofmark.site.survey.listed import GroupLimits, ListedNode

Ask = Callable[..., str]
"""Runs a command where the scheduler is installed, and returns what it prints.

Raises:
    NodeError: it did not start, gave no answer in time, or its exit code is not 0.
"""


class NodeListing(ABC):
    """Base class of listings. A listing only reads.

    Attributes:
        program: the command that lists the nodes; without it the scheduler is not installed.
        source: the command with its arguments, as the source of the facts.
        groups_are_queues: whether jobs are submitted to the groups of a node.
    """

    program: ClassVar[str]
    source: ClassVar[str]
    groups_are_queues: ClassVar[bool]

    @abstractmethod
    def nodes(self, ask: Ask) -> list[ListedNode]:
        """Return all nodes.

        Raises:
            NodeError: as `ask`; or the output cannot be read.
        """

    def limits(self, ask: Ask) -> dict[str, GroupLimits]:
        """Return the limits of the groups of the nodes; empty if there is no such command.

        Raises:
            NodeError: as `ask`.
        """
        return {}

    def fabric(self, ask: Ask) -> str:
        """Return the switches, as `fabric_levels` reads them; empty if there is no such command.

        Raises:
            NodeError: as `ask`.
        """
        return ""


def no_listing(program: str, found: str) -> NodeError:
    """Return the failure of a program whose output has another form."""
    return NodeError(Outcome.UNEXPECTED, f"{program}: {found[:200]}")
