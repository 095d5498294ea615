"""The state of a gate: which nodes it holds, and how each of them was before.

``gates/<gate>/`` in the state of a site has the identity of the gate and one journal per node. Each
action is in the journal before it begins. An interrupted gate is continued or released from the
journals alone. The gate holds its nodes by the same records as a run (`proofmark.runs.claims`).
"""

from __future__ import annotations

import platform
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from proofmark.common.errors import bad_input
from proofmark.common.files import read_json, write_whole
from proofmark.common.nodesets import Nodes
from proofmark.common.strict_model import StrictModel
from proofmark.runs.claims import NODES, Claims, reserve_for
from proofmark.runs.journal import RESULT, Journal, journals
from proofmark.runs.run_files import RunFiles
from proofmark.runs.state import made, site_folder, state_lock, word

PREFIX = "gate-"
_SLUG = re.compile(r"[^A-Za-z0-9._-]+")
_SLUG_LENGTH = 40

State = Literal["", "held", "left", "released", "kept", "resumed"]


class Gate(StrictModel):
    """The identity of a gate.

    Attributes:
        id: its name, which is that of its run.
        partition: the partition of its nodes.
        run: the folder of its run, which need not exist.
        user: the user of its jobs.
        nodes: the nodes that it was asked for.
        since: the time of its begin, in ISO 8601.
        controller: the host that began it.
    """

    id: str
    partition: str
    run: str
    user: str
    nodes: Nodes
    since: str
    controller: str


@dataclass(frozen=True)
class GateNode:
    """The state of a node, from its journal.

    Attributes:
        state: ``held``: the gate holds it, or began to; ``left``: it was given back without a
            measurement; ``released``: as ``left``, by ``proofmark gate release``; ``kept`` and
            ``resumed``: it was measured; empty: nothing was begun.
        out: whether it was out of service before.
        reason: the reason in the scheduler before.
        reasons: the reasons with which the gate drained it, or was about to.
        text: why it is in this state.
    """

    state: State = ""
    out: bool = False
    reason: str = ""
    reasons: tuple[str, ...] = ()
    text: str = ""


@dataclass(frozen=True)
class GateState:
    """The state of one gate.

    Attributes:
        folder: ``gates/<gate>/``.
        site: the folder of the state of the site.
    """

    folder: Path
    site: Path
    gate: Gate

    @property
    def id(self) -> str:
        """The name of the gate."""
        return self.gate.id

    @property
    def reservation(self) -> str:
        """The name of its reservation in the scheduler."""
        return f"proofmark-{self.id}"

    @property
    def claims(self) -> Claims:
        """The nodes that the gate holds."""
        return Claims(self.site / NODES, self.id, Path(self.gate.run), self.gate.controller)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock of the gate for the block.

        Raises:
            BadInput: another process holds it.
        """
        with state_lock(RunFiles(self.folder).lock, self.id):
            yield

    def journal(self, node: str) -> Journal:
        """Return the journal of a node."""
        return Journal(self.folder, node)

    def nodes(self) -> dict[str, GateNode]:
        """Return the state of each node with a journal.

        Raises:
            BadInput: a journal is damaged.
        """
        return {each.node: self.node(each.node) for each in journals(self.folder)}

    def node(self, name: str) -> GateNode:
        """Return the state of one node.

        Raises:
            BadInput: its journal is damaged.
        """
        journal = self.journal(name)
        try:
            return gate_node(journal.lines())
        except (AttributeError, KeyError, TypeError) as error:
            found = f"a damaged line ({error!r})"
            raise bad_input(journal.path, "", found, "its own lines") from None

    def held(self) -> dict[str, GateNode]:
        """Return the nodes that the gate holds."""
        return {node: state for node, state in self.nodes().items() if state.state == "held"}


def gate_node(lines: Iterable[Mapping[str, Any]]) -> GateNode:
    """Return the state of a node after the lines of its journal."""
    facts: dict[str, Any] = {}
    reasons: list[str] = []
    for line in lines:
        reasons += line.get("reasons", [])
        state, done = line["state"], line["event"] == RESULT
        if state == "held" and not done:
            facts |= {"state": "held", "out": line["out"], "reason": line["reason"]}
        elif state in ("left", "released", "kept", "resumed") and done:
            facts |= {"state": state, "text": line["text"]}
    return GateNode(reasons=tuple(dict.fromkeys(reasons)), **facts)


def begin_gate(
    site: str, partition: str, runs: Path, user: str, limit: str, nodes: Iterable[str]
) -> GateState:
    """Create and return a gate of `nodes`; `limit` is a part of its name.

    Args:
        limit: the host pattern that selected the nodes.
    """
    folder = made(site_folder(site) / "gates")
    now = datetime.now(UTC)
    slug = _SLUG.sub("_", limit).strip("_")[:_SLUG_LENGTH]
    first = f"{PREFIX}{now:%Y%m%dT%H%M%SZ}-{slug}"
    names = (first, *(f"{first}-{number}" for number in range(2, 100)))
    for name in names:
        try:
            (folder / name).mkdir(mode=0o755)
        except FileExistsError:
            continue  # another gate of the same second
        break
    else:
        raise bad_input(folder, first, "a hundred gates of this second", "one gate after another")
    gate = Gate(
        id=name,
        partition=partition,
        run=f"{runs / name}",
        user=user,
        nodes=list(nodes),
        since=now.isoformat(timespec="seconds"),
        controller=platform.node(),
    )
    state = GateState(folder / name, folder.parent, gate)
    reserve_for(site, Path(gate.run), state.reservation)
    made(RunFiles(folder / name).journal)
    write_whole(RunFiles(folder / name).identity, gate.model_dump_json() + "\n")
    return state


def unnamed_gate(site: str, partition: str, user: str) -> GateState:
    """Return a gate that does not exist, for checks that change nothing."""
    base = site_folder(site)
    unnamed = Gate(
        id="none", partition=partition, run="/", user=user, nodes=[], since="", controller=""
    )
    return GateState(base / "gates" / unnamed.id, base, unnamed)


def open_gate(site: str, name: str) -> GateState:
    """Return the gate `name` of a site.

    Raises:
        BadInput: there is no such gate, or its file is damaged.
    """
    base = site_folder(site)
    folder = base / "gates" / word(name, "the gate")
    if not RunFiles(folder).identity.exists():
        known = ", ".join(each.id for each in gates(site) if each.held()) or "none"
        raise bad_input("gate", "", f"no gate {name!r}", f"a gate that holds nodes: {known}")
    return GateState(folder, base, read_json(RunFiles(folder).identity, Gate))


def gates(site: str) -> list[GateState]:
    """Return all gates of a site, the oldest first. A gate without its file did not begin."""
    base = site_folder(site)
    return [
        GateState(path, base, read_json(RunFiles(path).identity, Gate))
        for path in sorted((base / "gates").glob(f"{PREFIX}*"))
        if RunFiles(path).identity.exists()
    ]
