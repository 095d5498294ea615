"""The table of the valid figures of the systems of the papers."""

from __future__ import annotations

from tests.unit.judge.test_verdict import invalid, record

from proofmark.judge.aggregate import aggregate
from proofmark.packages.papers.claims_of_runs import figures_table
from proofmark.records.columns import Records


def test_a_table_has_the_records_of_each_valid_figure() -> None:
    made = [
        invalid(1, step="a"),
        record(2, step="b", value=1.0, node="n2"),
        record(2, step="c", repeat=2, value=3.0, node="n2"),
        record(3, step="d", value=7.0),
    ]
    found = aggregate(Records.of(made))
    systems = {each.system for each in found.records.measurands}
    names = ("step", "node", "parameters", "value", "valid")
    rows = figures_table(found, systems).select(*names).rows()
    assert rows == [
        ("b", "n2", '{"size": 2}', 1.0, True),
        ("c", "n2", '{"size": 2}', 3.0, True),
        ("d", "n1", '{"size": 3}', 7.0, True),
    ]
    # Of a system without a claim one record of each measurand is enough.
    assert figures_table(found, ()).select(*names).rows() == [rows[0], rows[2]]
    assert figures_table(aggregate(Records.of([])), ()).height == 0
