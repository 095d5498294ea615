"""The journal of one node: what we are about to do, and what came of it, on disk before we go on.

One line of JSON each, in ``runs/<id>/journal/<node>.jsonl``. It alone tells how to go on, or back.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from proofmark.common.errors import bad_input
from proofmark.runs.files import RunFiles
from proofmark.site.firmware import Scalar

INTENT, RESULT = "intent", "result"


@dataclass(frozen=True)
class History:
    """What a journal says of its node.

    Attributes:
        address: of its BMC.
        original: attributes as they were before anything was changed; None before they are known.
        original_seen: what its operating system showed then.
        staged: every value that we ever asked for: when it is pending, it is ours.
        drained: whether we have taken it out of service, or were about to.
        in_flight: the boot id before a reset that was, or was about to be, asked for and whose end
            nobody has seen.
        mode: the mode that is proven, or empty; ``RESTORED`` when it is back.
        failed: the last failure that nothing followed, or empty.
        no_scratch: why its scratch directory could not be proven, or empty.
    """

    address: str = ""
    original: Mapping[str, Scalar] | None = None
    original_seen: Mapping[str, Any] = field(default_factory=dict)
    staged: tuple[tuple[str, Scalar], ...] = ()
    drained: bool = False
    in_flight: str = ""
    mode: str = ""
    failed: str = ""
    no_scratch: str = ""

    @property
    def to_restore(self) -> bool:
        """Whether we did something to it that has not been taken back."""
        return self.drained or (self.original is not None and self.mode != RESTORED)


RESTORED = "original"


class Journal:
    """The journal of `node` in the run's folder; it is made with the first line."""

    def __init__(self, run: Path, node: str) -> None:
        self.node = node
        self.path = RunFiles(run).journal / f"{node}.jsonl"

    def intent(self, state: str, **facts: Any) -> None:
        """Write what will be done next; it is on disk when this returns."""
        self._append(state, INTENT, facts)

    def result(self, state: str, **facts: Any) -> None:
        """Write what has been done or seen."""
        self._append(state, RESULT, facts)

    def history(self) -> History:
        """Read it from its beginning."""
        return history(self.lines())

    def lines(self) -> list[dict[str, Any]]:
        """Return its lines; the last one, if a kill cut it short, is not one.

        Raises:
            BadInput: another line is damaged.
        """
        try:
            texts = self.path.read_text(encoding="utf-8").split("\n")
        except FileNotFoundError:
            return []
        found = []
        for number, text in enumerate(texts[:-1], 1):
            try:
                found.append(json.loads(text))
            except ValueError:
                accepted = "a line of JSON"
                raise bad_input(f"{self.path}:{number}", "", repr(text[:80]), accepted) from None
        return found

    def _append(self, state: str, kind: str, facts: Mapping[str, Any]) -> None:
        self.path.parent.mkdir(exist_ok=True)
        line = {"at": datetime.now(UTC).isoformat(timespec="milliseconds")}
        line |= {"node": self.node, "state": state, "event": kind, **facts}
        raw = json.dumps(line).encode() + b"\n"
        file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            _drop_cut_line(file)
            os.write(file, raw)
            os.fsync(file)
        finally:
            os.close(file)
        if kind == INTENT:
            _sync_folder(self.path.parent)  # a new file is only there when its folder says so


def _drop_cut_line(file: int) -> None:
    """Remove what a kill left of a line: the next one would be glued to it."""
    size = os.fstat(file).st_size
    if size and os.pread(file, 1, size - 1) != b"\n":
        whole = os.pread(file, size, 0)
        os.ftruncate(file, whole.rfind(b"\n") + 1)


def _sync_folder(path: Path) -> None:
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def history(lines: Iterable[Mapping[str, Any]]) -> History:
    """Fold the lines of a journal into what they mean. Pure."""
    told: dict[str, Any] = {}
    staged: list[tuple[str, Scalar]] = []
    for line in lines:
        state, done = line["state"], line["event"] == RESULT
        if state not in ("fail", "scratch"):
            told["failed"] = ""
        match state:
            case "drain":
                told["drained"] = True
                told["address"] = line["address"]
            case "original":
                told["original"] = line["attributes"]
                told["original_seen"] = line["seen"]
                told["address"] = line["address"]
            case "stage":
                staged += line.get("attributes", {}).items()
                told["mode"] = ""
            case "reset" if not done:
                told["in_flight"] = line["boot_id"]
                told["mode"] = ""
            case "reset" if line.get("void"):
                told["in_flight"] = ""
            case "up":
                told["in_flight"] = ""
            case "verified":
                told["mode"] = line["mode"]
            case "open" | "resume" if done:
                told["drained"] = False
            case "scratch":
                told["no_scratch"] = line.get("missing", "")
            case "fail":
                told["failed"] = f"{line['outcome']}: {line['text']}"
    return History(staged=tuple(staged), **told)


def journals(run: Path) -> list[Journal]:
    """Return the journals of a run, by node."""
    return [Journal(run, path.stem) for path in sorted(RunFiles(run).journal.glob("*.jsonl"))]


def proven(run: Path, nodes: Iterable[str], mode: str) -> dict[str, str]:
    """Return those of `nodes` whose journal does not prove `mode`, and what it says instead."""
    missing = {}
    for node in nodes:
        past = Journal(run, node).history()
        if past.mode != mode or past.failed or past.in_flight or past.no_scratch:
            why = past.failed or (f"no scratch: {past.no_scratch}" if past.no_scratch else "")
            missing[node] = why or (f"in mode {past.mode}" if past.mode else "not proven")
    return missing
