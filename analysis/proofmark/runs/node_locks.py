"""Which run holds which node of a site: one record per node, ``nodes/<node>.json``.

A run holds a node from before its first change until the node is restored. Another run that wants
the node is refused. For other controllers the name of the run is on the node itself
(`proofmark.machine.modes.drains`): the records of this folder are those of one controller.
"""

from __future__ import annotations

import os
import platform
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from proofmark.common.errors import BadInput, bad_input
from proofmark.common.files import exists, read_json
from proofmark.common.nodesets import ACCEPTED, is_name
from proofmark.common.shared_models import StrictModel
from proofmark.common.text import one_line
from proofmark.runs.run import Run
from proofmark.runs.state import RunState, made, site_folder

NODES = "nodes"
"""The folder of the records in the state of a site."""


class Holder(StrictModel):
    """The run that holds a node, since a time in ISO 8601; `controller` changes the node."""

    run: str
    folder: str
    controller: str
    since: str

    def __str__(self) -> str:
        """Return one line for messages."""
        return f"held by run {self.run} in {self.folder} since {self.since}"


@dataclass(frozen=True)
class NodeLocks:
    """The nodes that a run holds, among those of all runs of its site.

    Attributes:
        take_over: whether the run also takes nodes that other runs hold.
    """

    folder: Path
    run: str
    run_folder: Path
    controller: str
    take_over: bool = False

    @property
    def name(self) -> str:
        """The run and its controller: the beginning of each reason of a drain."""
        return f"proofmark:{self.run} on {self.controller}"

    @property
    def mark(self) -> str:
        """The run with its two folders: the text that a node keeps.

        Two controllers may have the same name, and two runs the same id.
        """
        return one_line(f"{self.name}, run folder {self.run_folder}, state {self.folder.parent}")

    def reason(self, why: str) -> str:
        """Return the complete reason of a drain, with one space between words."""
        return " ".join(f"{self.name} {why}".split())

    def holder(self, node: str) -> Holder | None:
        """Return the run that holds `node`; None if none does.

        Raises:
            BadInput: the record is damaged.
        """
        path = self._path(node)
        return read_json(path, Holder) if os.path.lexists(path) else None

    def other(self, node: str) -> str:
        """Return which other run holds `node`, or why that is not known; empty if none does.

        It is also empty if the run takes nodes over.
        """
        if self.take_over:
            return ""
        try:
            holder = self.holder(node)
        except BadInput as error:
            return str(error)
        return "" if holder is None or self._is_own(holder) else str(holder)

    def claim(self, node: str) -> str:
        """Hold `node` from now on; return which other run holds it, or an empty text.

        The record appears whole, and only if there is none.
        """
        now = datetime.now(UTC).isoformat(timespec="seconds")
        holder = Holder(
            run=self.run, folder=f"{self.run_folder}", controller=self.controller, since=now
        )
        made(self.folder)
        fresh = self.folder / f".{node}.{secrets.token_hex(8)}"
        try:
            fresh.write_text(holder.model_dump_json() + "\n")
            if self.take_over and not self.holds(node):
                fresh.replace(self._path(node))
            else:
                os.link(fresh, self._path(node))
        except FileExistsError:
            return self.other(node)
        finally:
            fresh.unlink(missing_ok=True)
        return ""

    def holds(self, node: str) -> bool:
        """Return whether this run holds `node`; False if the record is damaged."""
        try:
            holder = self.holder(node)
        except BadInput:
            return False  # whose record it is is not known
        return holder is not None and self._is_own(holder)

    def release(self, node: str) -> None:
        """No longer hold `node`, if this run does."""
        if self.holds(node):
            self._path(node).unlink()

    def nodes(self) -> Iterator[str]:
        """Yield the nodes that this run holds."""
        for path in sorted(self.folder.glob("[!.]*.json")):
            if is_name(path.stem) and self.holds(path.stem):
                yield path.stem

    def _is_own(self, holder: Holder) -> bool:
        return (holder.run, holder.folder) == (self.run, f"{self.run_folder}")

    def _path(self, node: str) -> Path:
        if not is_name(node):
            raise bad_input("node", "", repr(node), ACCEPTED)
        return self.folder / f"{node}.json"


def node_locks_of(state: RunState, *, take_over: bool = False) -> NodeLocks:
    """Return the locks of the run with this state; `take_over` as in `NodeLocks`."""
    return NodeLocks(state.site / NODES, state.id, state.run, platform.node(), take_over)


class Reservation(StrictModel):
    """The reservation of the scheduler for one run: its name, and the folder of the run."""

    name: str
    run: str


def reservation_of(run: Run) -> str:
    """Return the reservation of the nodes of `run`; empty if it has none of its own.

    Anybody can give a run its name. The note names the folder too.
    """
    path = site_folder(run.plan.site) / "reservations" / f"{run.id}.json"
    if exists(path):
        noted = read_json(path, Reservation)
        if Path(noted.run).resolve() == run.folder.resolve():
            return noted.name
    return ""
