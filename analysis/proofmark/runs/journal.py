"""The journal of a node: each action of a mode change, before it begins and after it ends.

``journal/<node>.jsonl`` of the run's state has one line of JSON per entry. A line is on disk before
the next action. An interrupted mode change is resumed or restored from the journal alone. The
folder of the run has a copy, from which the run is judged.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from proofmark.common.errors import BadInput, bad_input
from proofmark.common.files import parse_json, paths_in, regular_or_empty
from proofmark.runs.run_files import RunFiles
from proofmark.site.firmware import Scalar

INTENT, RESULT = "intent", "result"


@dataclass(frozen=True)
class NodeHistory:
    """The state of a node, from its journal.

    Attributes:
        original: the firmware attributes before the first change; None if they were not read.
        original_seen: the observation of the operating system at that time.
        serials: the serial numbers of the node before the first change, by their source.
        staged: every attribute and value that the kit has staged. Other pending values are foreign.
        staged_in: the boot id of the node when the kit last staged a change. In this boot the
            values that the firmware shows prove no mode.
        unsettled: whether the BMC may still work on a change that was sent to it.
        task: the name of that work; empty if it is not known.
        proven: the mode that the node was proven to be in, by boot id.
        drained: whether the kit drained the node, or began to drain it.
        reasons: every complete reason with which the run drained the node, or was about to.
        in_flight: the boot id before a reset that was requested, or began to be, and has no
            observed end; empty if there is no such reset.
        mode: the verified mode; ``RESTORED`` after the restore; else empty.
        mode_attributes: the firmware attributes of that mode; empty if they are not known.
        mode_seen: the observation of the operating system that verified it.
        boot_id: the boot in which a mode was verified last.
        failed: the failure at the end of the journal, or empty.
        no_scratch: the reason why its scratch directory failed its check, or empty.
    """

    address: str = ""
    original: Mapping[str, Scalar] | None = None
    original_seen: Mapping[str, Any] = field(default_factory=dict)
    serials: Mapping[str, str] = field(default_factory=dict)
    staged: tuple[tuple[str, Scalar], ...] = ()
    staged_in: str = ""
    unsettled: bool = False
    task: str = ""
    proven: Mapping[str, str] = field(default_factory=dict)
    drained: bool = False
    reasons: tuple[str, ...] = ()
    in_flight: str = ""
    mode: str = ""
    mode_attributes: Mapping[str, Scalar] = field(default_factory=dict)
    mode_seen: Mapping[str, Any] = field(default_factory=dict)
    boot_id: str = ""
    failed: str = ""
    no_scratch: str = ""

    @property
    def to_restore(self) -> bool:
        """Whether the kit changed the node and has not restored it."""
        return self.drained or (self.original is not None and self.mode != RESTORED)

    def awaits_boot(self, boot_id: str, mode: str) -> bool:
        """Return whether no boot since the last change can have brought the node into `mode`.

        Args:
            mode: the mode whose values the firmware shows.
        """
        return bool(boot_id) and self.staged_in == boot_id and self.proven.get(boot_id) != mode


RESTORED = "original"


class Journal:
    """The journal of `node` in the folder `run`, which is that of a run or of its state.

    The first line creates it.
    """

    def __init__(self, run: Path, node: str) -> None:
        self.node = node
        self.path = RunFiles(run).journal / f"{node}.jsonl"

    def intent(self, state: str, **facts: Any) -> None:
        """Write the next action. The line is on disk when this returns."""
        self._append(state, INTENT, facts)

    def result(self, state: str, **facts: Any) -> None:
        """Write the result of an action, or an observation."""
        self._append(state, RESULT, facts)

    def history(self) -> NodeHistory:
        """Return the state of the node, from all lines.

        Raises:
            BadInput: a line is damaged.
        """
        try:
            return history(self.lines())
        except (AttributeError, KeyError, TypeError) as error:
            raise bad_input(self.path, "", f"a damaged line ({error!r})", "its own lines") from None

    @property
    def waits(self) -> bool:
        """Whether the node waits for its restore; also if its history is damaged."""
        try:
            return self.history().to_restore
        except BadInput:
            return True

    def lines(self) -> list[dict[str, Any]]:
        """Return the lines, without an incomplete last line (the process was killed).

        Raises:
            BadInput: another line is damaged.
        """
        texts, lines = regular_or_empty(self.path).split(b"\n"), []
        for number, text in enumerate(texts[:-1], 1):
            try:
                line = parse_json(text)
                line["state"], line["event"]
            except (ValueError, LookupError, TypeError):
                found, accepted = repr(text[:80].decode(errors="replace")), "a line of JSON"
                raise bad_input(f"{self.path}:{number}", "", found, accepted) from None
            lines.append(line)
        return lines

    def _append(self, state: str, kind: str, facts: Mapping[str, Any]) -> None:
        self.path.parent.mkdir(exist_ok=True)
        line = {"at": datetime.now(UTC).isoformat(timespec="milliseconds")}
        line |= {"node": self.node, "state": state, "event": kind, **facts}
        raw = json.dumps(line).encode() + b"\n"
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
        file = os.open(self.path, flags, 0o644)
        try:
            _drop_cut_line(file)
            os.write(file, raw)
            os.fsync(file)
        finally:
            os.close(file)
        if kind == INTENT:
            _sync_folder(self.path.parent)  # the entry of a new file is in its folder


def _drop_cut_line(file: int) -> None:
    """Remove an incomplete last line. The next line would be appended to it."""
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


def history(lines: Iterable[Mapping[str, Any]]) -> NodeHistory:
    """Return the state of the node after `lines`."""
    facts: dict[str, Any] = {}
    staged: list[tuple[str, Scalar]] = []
    reasons: list[str] = []
    proven: dict[str, str] = {}
    before = ""
    for line in lines:
        state, done = line["state"], line["event"] == RESULT
        if state not in ("fail", "scratch"):
            facts["failed"] = ""
        reasons += line.get("reasons", [])
        match state:
            case "drain":
                facts["drained"] = True
                facts["address"] = line["address"]
            case "original":
                facts["original"] = line["attributes"]
                facts["original_seen"] = line["seen"]
                proven[line["seen"].get("boot_id", "")] = RESTORED
                facts["serials"] = line.get("serials", {})
                facts["address"] = line["address"]
            case "stage":
                staged += line.get("attributes", {}).items()
                facts["mode"] = ""
                facts["task"] = line.get("task", "")
                facts["unsettled"] = not done or bool(facts["task"])
                now = facts.get("staged_in", "")
                # Nothing of a void change is pending.
                facts["staged_in"] = before if line.get("void") else line.get("boot_id") or now
                before = now if line.get("boot_id") else before
            case "reset" if not done:
                facts["in_flight"] = line["boot_id"]
                facts["mode"] = ""
            case "reset" | "up" if state == "up" or line.get("void"):
                facts["in_flight"] = ""
            case "verified":
                if facts.get("mode") != line["mode"]:
                    facts["mode_attributes"] = {}
                facts["mode"] = line["mode"]
                facts["mode_attributes"] = line.get("attributes", facts["mode_attributes"])
                facts["mode_seen"] = line["seen"]
                facts["boot_id"] = line["seen"].get("boot_id", "")
                proven[facts["boot_id"]] = line["mode"]
            case "open" | "resume" if done:
                facts["drained"] = False
            case "scratch":
                facts["no_scratch"] = line.get("missing", "")
            case "fail":
                facts["failed"] = f"{line['outcome']}: {line['text']}"
    facts |= {"staged": tuple(staged), "proven": proven}
    return NodeHistory(reasons=tuple(dict.fromkeys(reasons)), **facts)


def journals(run: Path) -> list[Journal]:
    """Return the journals of a run, by node."""
    return [Journal(run, path.stem) for path in paths_in(RunFiles(run).journal, "*.jsonl")]


def unverified(run: Path, nodes: Iterable[str], mode: str) -> dict[str, str]:
    """Return the nodes that are not verified in `mode`, with the reason from their journal."""
    reasons = {}
    for node in nodes:
        try:
            past = Journal(run, node).history()
        except BadInput as error:
            reasons[node] = str(error)
            continue
        if past.mode != mode or past.failed or past.in_flight or past.no_scratch:
            why = past.failed or (f"no scratch: {past.no_scratch}" if past.no_scratch else "")
            reasons[node] = why or (f"in mode {past.mode}" if past.mode else "not verified")
    return reasons
