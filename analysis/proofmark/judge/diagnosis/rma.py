"""The list for the vendor: node, serial number, slot, evidence."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence

from proofmark.judge.diagnosis.bad_nodes import BadNode, Slow
from proofmark.site.node.facts import NodeFacts

COLUMNS = ("node", "serial_number", "slot", "evidence")
_SERIALS = ("product_serial", "chassis_serial", "board_serial", "system-id", "serial-number")
_MOST = 3

Row = tuple[str, str, str, str]


def rma(nodes: Iterable[BadNode], facts: Mapping[str, NodeFacts]) -> list[Row]:
    """Return one row for each part that speaks against itself, and one for each slow node.

    A node that has to be measured again first is no case for the vendor.

    Args:
        nodes: the bad ones.
        facts: of each node, for the serial numbers.
    """
    return [row for node in nodes if not node.retest for row in _rows(node, facts.get(node.host))]


def _rows(node: BadNode, facts: NodeFacts | None) -> Iterator[Row]:
    serial = _serial(facts)
    placed: dict[str, list[str]] = {}
    for change in node.counters:
        if change.place:
            placed.setdefault(change.place, []).append(str(change))
    for slot, said in placed.items():
        yield node.host, _dimm_serial(facts, slot) or serial, slot, "; ".join(said)
    loose = [str(change) for change in node.counters if change.invalid and not change.place]
    evidence = [*map(evidence_of, node.slow[:_MOST]), *loose]
    if len(node.slow) > _MOST:
        evidence.append(f"{len(node.slow) - _MOST} more figures")
    if evidence:
        yield node.host, serial, "", "; ".join(evidence)


def evidence_of(slow: Slow) -> str:
    """Return one failing figure as a sentence that names where its output stands."""
    record = slow.result.record
    return (
        f"{slow.name} {record.value:.6g} {record.unit}, {100 * slow.deviation:+.1f} % "
        f"({len(slow.result.values)} × measured; steps/{record.step})"
    )


def _serial(facts: NodeFacts | None) -> str:
    firmware = facts.firmware if facts else {}
    return next((firmware[key] for key in _SERIALS if firmware.get(key)), "not told")


def _dimm_serial(facts: NodeFacts | None, place: str) -> str | None:
    """Return the serial number of the module in the slot that the firmware calls `place`."""
    dimms = facts.dimms if facts else ()
    return next((dimm.serial for dimm in dimms if dimm.locator == place), None)


def as_csv(rows: Sequence[Row]) -> str:
    """Return the list as CSV; no cell can be taken for a formula by a spreadsheet."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows([_plain(cell) for cell in row] for row in rows)
    return text.getvalue()


def _plain(cell: str) -> str:
    return f"'{cell}" if cell[:1] in ("=", "+", "-", "@", "\t") else cell
