"""The nodes that failed in a command, each with its reason.

A command collects them while it runs. The option ``--failed-nodes-fd`` writes them as JSON, and the
playbooks mark these hosts as failed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from proofmark.common.errors import InputError


@dataclass(frozen=True)
class NodeFailure:
    """Why a node failed.

    Attributes:
        text: the reason, for persons.
        code: one word in capital letters; empty if the command has none.
    """

    text: str
    code: str = ""

    def __str__(self) -> str:
        """Return one line, with the code if there is one."""
        return f"{self.code}: {self.text}" if self.code else self.text


_reasons: dict[str, NodeFailure] = {}


def note_failed_nodes(reasons: Mapping[str, NodeFailure]) -> None:
    """Collect the nodes in `reasons`. A node keeps its first reason."""
    for node, reason in reasons.items():
        _reasons.setdefault(node, reason)


def note_input_errors(errors: Iterable[InputError]) -> None:
    """Collect the nodes that `errors` name."""
    from proofmark.common.nodesets import unfold  # its library costs time; few commands fail

    for error in errors:
        try:
            nodes = unfold([error.nodes]) if error.nodes else []
        except ValueError:
            continue  # a node may report any text as its name
        failure = NodeFailure(f"{error.file}: {error.found}", error.code)
        note_failed_nodes(dict.fromkeys(nodes, failure))


def take_failed_nodes() -> dict[str, NodeFailure]:
    """Return the collected reasons by node, and forget them."""
    taken = dict(_reasons)
    _reasons.clear()
    return taken


def failed_nodes_json() -> bytes:
    """Return the collected reasons by node as JSON, and forget them."""
    return json.dumps({node: f"{why}" for node, why in take_failed_nodes().items()}).encode()
