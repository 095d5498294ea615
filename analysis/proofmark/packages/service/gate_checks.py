"""The decisions of all gates of a site: ``checks.jsonl``, and ``vendor.csv`` for the vendor.

Both files are in the state of the site and are only appended to. ``checks.jsonl`` has one line for
each node and gate. A line is on disk before the scheduler gets its reason. A drain whose whole
reason is that of the last line of the node is a drain of the kit.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from proofmark.common.errors import bad_input
from proofmark.common.files import open_to_append, regular_or_empty
from proofmark.common.nodesets import HostName
from proofmark.common.shared_models import StrictModel
from proofmark.common.text import csv_cell
from proofmark.runs.state import made

COLUMNS = ("time", "gate", "node", "serial_number", "slot", "evidence", "run")


class GateCheck(StrictModel):
    """The decision of a gate about a node.

    Attributes:
        at: the time, in ISO 8601 with the time zone UTC.
        node: the node.
        gate: the gate.
        run: the folder of its run.
        action: ``resume`` or ``keep``.
        reason: the reason of the decision.
        drain: the complete reason that the scheduler gets; empty if the node was resumed.
        fault: whether the node is for the vendor.
        serial_number, slot, evidence: the entry of the list for the vendor.
    """

    at: str
    node: HostName
    gate: str
    run: str
    action: Literal["resume", "keep"]
    reason: str
    drain: str = ""
    fault: bool = False
    serial_number: str = ""
    slot: str = ""
    evidence: str = ""


def checks_file(site: Path) -> Path:
    """Return the file of all decisions in the state folder of a site."""
    return site / "checks.jsonl"


def vendor_file(site: Path) -> Path:
    """Return the list for the vendor in the state folder of a site."""
    return site / "vendor.csv"


def read_checks(site: Path) -> list[GateCheck]:
    """Return all decisions, the oldest first. An incomplete last line is left out.

    Raises:
        BadInput: a line is damaged.
    """
    path = checks_file(site)
    lines = regular_or_empty(path).split(b"\n")[:-1]
    checks = []
    for number, line in enumerate(lines, 1):
        try:
            checks.append(GateCheck.model_validate_json(line))
        except ValidationError:
            found = repr(line[:80].decode(errors="replace"))
            raise bad_input(f"{path}:{number}", "", found, "a line of JSON of a gate") from None
    return checks


def last_checks(checks: Iterable[GateCheck]) -> dict[str, GateCheck]:
    """Return the last decision about each node; `checks` begin with the oldest."""
    return {check.node: check for check in checks}


def append_checks(site: Path, checks: Sequence[GateCheck]) -> None:
    """Append decisions to both files. A decision that a file has already is not written again.

    A command that was killed between the two files is repeated. Therefore each file is compared by
    itself.
    """
    made(site)
    known = {(check.gate, check.node) for check in read_checks(site)}
    fresh = [check for check in checks if (check.gate, check.node) not in known]
    _append(checks_file(site), "".join(f"{check.model_dump_json()}\n" for check in fresh))
    _append_vendor(vendor_file(site), [check for check in checks if check.fault])


def _append_vendor(path: Path, checks: Sequence[GateCheck]) -> None:
    text = regular_or_empty(path).decode(errors="replace")
    try:
        rows = list(csv.reader(io.StringIO(text)))
    except csv.Error as error:
        raise bad_input(path, "", f"{error}", "a file that proofmark wrote") from None
    known = {tuple(row[1:3]) for row in rows}
    added = io.StringIO()
    writer = csv.writer(added, lineterminator="\n")
    fresh = [check for check in checks if (check.gate, check.node) not in known]
    if fresh and not rows:
        writer.writerow(COLUMNS)
    for check in fresh:
        cells = (check.at, check.gate, check.node, check.serial_number, check.slot)
        writer.writerow([csv_cell(cell) for cell in (*cells, check.evidence, check.run)])
    _append(path, added.getvalue())


def _append(path: Path, text: str) -> None:
    """Append whole lines, after the end of an incomplete last line; they are on disk afterwards."""
    if not text:
        return
    with open_to_append(path) as file:
        os.fchmod(file.fileno(), 0o644)  # whatever the umask is
        size = os.fstat(file.fileno()).st_size
        if size and os.pread(file.fileno(), 1, size - 1) != b"\n":
            os.ftruncate(file.fileno(), os.pread(file.fileno(), size, 0).rfind(b"\n") + 1)
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
