"""The list for the vendor: node, serial number, slot, evidence."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence

from proofmark.common.text import csv_cell
from proofmark.judge.diagnosis.bad_nodes import BadNode
from proofmark.judge.diagnosis.slow_figures import SlowFigure
from proofmark.judge.results import Result
from proofmark.site.node.facts import NodeFacts

COLUMNS = ("node", "serial_number", "slot", "evidence")
_SERIALS = ("product_serial", "chassis_serial", "board_serial", "system-id", "serial-number")
_MOST = 3

Row = tuple[str, str, str, str]


def rma(nodes: Iterable[BadNode], facts: Mapping[str, NodeFacts]) -> list[Row]:
    """Return a row for each slot with error counters, and a row for each slow node.

    A node that has to be measured again first has no row.

    Args:
        nodes: the bad nodes.
        facts: the facts of each node, with the serial numbers.
    """
    rows: list[Row] = []
    for node in nodes:
        if not node.retest:
            rows += _rows(node, facts.get(node.host))
    return rows


def _rows(node: BadNode, facts: NodeFacts | None) -> Iterator[Row]:
    serial = serial_number(facts)
    by_slot: dict[str, list[str]] = {}
    for change in node.counters:
        if change.place:
            by_slot.setdefault(change.place, []).append(str(change))
    for slot, changes in by_slot.items():
        yield node.host, _dimm_serial(facts, slot) or serial, slot, "; ".join(changes)
    no_slot = [str(change) for change in node.counters if change.is_fault and not change.place]
    digits = [_digits(result) for result in node.digits[:_MOST]]
    slow = [figure for figure in node.slow if not figure.result.retest] or node.slow
    evidence = [*digits, *map(evidence_of, slow[:_MOST]), *no_slot, *node.faults]
    if len(slow) > _MOST:
        evidence.append(f"{len(slow) - _MOST} more figures")
    if evidence:
        yield node.host, serial, "", "; ".join(evidence)


def _digits(result: Result) -> str:
    record = result.record
    return f"{record.case} {record.metric}: {result.reason} (workdir/steps/{record.step})"


def evidence_of(slow: SlowFigure) -> str:
    """Return a failing figure as one phrase, with the folder of its output."""
    record = slow.result.record
    return (
        f"{slow.name} {record.value:.6g} {record.unit}, {100 * slow.deviation:+.1f} % "
        f"({len(slow.result.values)} × measured; workdir/steps/{record.step})"
    )


def serial_number(facts: NodeFacts | None) -> str:
    """Return the serial number of a node; ``not reported`` if its firmware reports none."""
    firmware = facts.firmware if facts else {}
    return next((firmware[key] for key in _SERIALS if firmware.get(key)), "not reported")


def _dimm_serial(facts: NodeFacts | None, place: str) -> str | None:
    """Return the serial number of the memory module in the slot that the firmware calls `place`."""
    dimms = facts.dimms if facts else ()
    return next((dimm.serial for dimm in dimms if dimm.locator == place), None)


def as_csv(rows: Sequence[Row]) -> str:
    """Return the list as CSV. A spreadsheet takes no cell for a formula."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows([csv_cell(cell) for cell in row] for row in rows)
    return text.getvalue()
