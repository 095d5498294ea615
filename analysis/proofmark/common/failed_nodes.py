"""The nodes that failed in a command, each with its reason.

A command collects them while it runs. The option ``--failed-nodes-fd`` writes them as JSON, and the
playbooks mark these hosts as failed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from proofmark.common.errors import InputError

_reasons: dict[str, str] = {}


def note_failed_nodes(reasons: Mapping[str, str]) -> None:
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
        note_failed_nodes(dict.fromkeys(nodes, f"{error.file}: {error.found}"))


def take_failed_nodes() -> dict[str, str]:
    """Return the collected reasons by node, and forget them."""
    taken = dict(_reasons)
    _reasons.clear()
    return taken


def failed_nodes_json() -> bytes:
    """Return the collected reasons by node as JSON, and forget them."""
    return json.dumps(take_failed_nodes()).encode()
