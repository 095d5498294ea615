"""Records in columns: several batches, missing values, and names of runs."""

from __future__ import annotations

import math
from dataclasses import replace

from tests.fixtures.messages import said
from tests.unit.judge.test_verdict import invalid, record

from proofmark.common.message import NOTHING
from proofmark.records.columns import Execution, Record, RecordBuilder, Records
from proofmark.records.parquet_table import table


def one_by_one(*records: Record) -> Records:
    """Return the records, joined from one batch for each."""
    batches = []
    for each in records:
        columns = Records.of([each])
        builder = RecordBuilder(
            executions=[*columns.executions],
            measurands={measurand: n for n, measurand in enumerate(columns.measurands)},
            nodes={node: n for n, node in enumerate(columns.nodes)},
            reasons={reason: n for n, reason in enumerate(columns.reasons)},
            execution=columns.execution.tolist(),
            measurand=columns.measurand.tolist(),
            node=columns.node.tolist(),
            value=columns.value.tolist(),
            reason=columns.reason.tolist(),
        )
        batches += [builder.batch(), RecordBuilder().batch()]
    return Records.joined("r", batches)


GIVEN = (
    record(1, step="a", node="n2"),
    invalid(2, step="b", node="n1", reason=said("one"), value=None),
    record(1, step="c", repeat=2, node="n1", value=-1.0),
    invalid(2, step="d", reason=said("two")),
    invalid(1, step="e", reason=said("one")),
)


def test_joined_batches_equal_the_records() -> None:
    joined = one_by_one(*GIVEN)
    assert list(joined) == list(GIVEN)
    assert joined.reason.tolist() == [-1, 0, -1, 1, 0]
    assert joined.execution.tolist() == [0, 1, 2, 3, 4]
    assert joined.measurand.tolist() == [0, 1, 0, 1, 0]
    assert joined.valid.tolist() == [True, False, True, False, False]
    assert (list(joined.nodes), list(joined.reasons)) == (["n2", "n1"], ["one", "two"])


def test_a_table_has_no_value_and_no_reason_where_a_record_has_none() -> None:
    rows = table(one_by_one(*GIVEN)).select("value", "reason", "valid", "step", "repeat").rows()
    assert rows == [(each.value, each.reason, each.valid, each.step, each.repeat) for each in GIVEN]


def test_the_run_is_that_of_the_records_unless_it_is_given() -> None:
    assert Records.of([record(run="first"), record(run="second")]).run == "first"
    assert Records.of([record(run="first")], "other").run == "other"
    assert (Records.of([]).run, Records.of([], "other").run) == ("", "other")


def test_the_order_of_parameters_is_irrelevant() -> None:
    """The values of the same parameters are one measurand."""
    columns = Records.of(
        [record(parameters={"size": 1, "kind": "a"}), record(parameters={"kind": "a", "size": 1})]
    )
    assert len(columns.measurands) == 1
    assert columns.measurands[0].parameters == '{"kind": "a", "size": 1}'


def test_an_execution_without_facts_is_undisturbed() -> None:
    execution = Execution("a", 1, 1)
    assert math.isnan(execution.steal) and math.isnan(execution.others)
    assert execution.disturbed == ""


def test_a_record_is_made_valid_and_without_a_reason() -> None:
    made = Records.of([invalid(reason=said("one"))]).record(0, "n7", Execution("x", 3, 2), 5.0)
    assert (made.valid, made.reason, made.value) == (True, "", 5.0)
    assert (made.step, made.attempt, made.repeat, made.node) == ("x", 3, 2, "n7")


def test_a_record_of_a_measurand_has_no_node_step_and_value() -> None:
    one = record(node="n2", attempt=3, repeat=4, value=5.0, valid=False, reason=said("broken"))
    wanted = replace(
        one, node="", step="", attempt=1, repeat=1, value=None, valid=True, reason=NOTHING
    )
    assert Records.of([record(2), one]).of_measurand(1) == wanted
