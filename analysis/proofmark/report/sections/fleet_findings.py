"""What the comparison of like nodes found besides slow nodes: populations, and single values."""

from __future__ import annotations

from collections.abc import Iterator

from proofmark.common.sentences import localized
from proofmark.common.translation import _
from proofmark.judge.fleet.fleet import FleetFigure
from proofmark.judge.results import Result
from proofmark.records.columns import Record
from proofmark.report.page import Block, listed
from proofmark.report.run_data import RunData
from proofmark.report.words import count, number, pairs

_POPULATIONS = ("pairs-populations", "nodes-populations")


def blocks(run_data: RunData) -> Iterator[Block]:
    """Yield one line for the populations of a case, and one for each node with single values."""
    fleet = run_data.verdict.fleet
    apart: dict[tuple[str, ...], list[FleetFigure]] = {}
    for figure in fleet.figures:
        if figure.fleet_limit.powerless.code in _POPULATIONS:
            apart.setdefault(_what(figure.record), []).append(figure)
    if apart:
        lines = (
            f"{' '.join(what)}, {count(len(figures), 'figure')}: "
            f"{localized(figures[0].fleet_limit.powerless)}"
            for what, figures in apart.items()
        )
        yield listed(_("Like nodes that are not one population"), lines)
    single: dict[tuple[str, ...], list[Result]] = {}
    for place in fleet.spiked.tolist():
        result = run_data.verdict.results[place]
        single.setdefault((result.record.node, *_what(result.record)), []).append(result)
    if single:
        yield listed(
            _("Values to measure again: off at single message sizes"),
            (
                f"{' '.join(what)}: {'; '.join(_value(each) for each in of)}"
                for what, of in single.items()
            ),
        )


def _what(record: Record) -> tuple[str, ...]:
    words = (record.case, record.benchmark, record.metric)
    return tuple(dict.fromkeys(filter(None, words)))


def _value(result: Result) -> str:
    record = result.record
    return f"{number(record.value)} {record.unit} ({pairs(record.parameters)})"
