"""The fast paths for runs of thousands of nodes give the same results as the slow ones."""

from __future__ import annotations

import json
import math
import os
import signal
import tracemalloc
from collections.abc import Iterator, Sequence
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fixtures.fleet import fleet_run
from tests.fixtures.messages import said
from tests.unit.judge.test_verdict import invalid, record
from tests.unit.records.test_binding import make_plan_of

from proofmark.common.errors import BadInput
from proofmark.common.files import read_json
from proofmark.common.message import NOTHING
from proofmark.common.processes import parallel_map
from proofmark.judge import verdict as verdicts
from proofmark.judge.judging import read_and_judge
from proofmark.judge.verdict import WORDS, Verdict, result_json, write_verdict
from proofmark.plan.plan import Step
from proofmark.plan.rank_cpus import RankCpus
from proofmark.records import read as records
from proofmark.records.binding import BindingCheck
from proofmark.records.columns import (
    Execution,
    Measurand,
    Record,
    RecordBuilder,
    Records,
    intern,
)
from proofmark.records.parquet_table import table
from proofmark.runs import nodes
from proofmark.runs.evidence import seal
from proofmark.runs.nodes import Node, nodes_of
from proofmark.runs.run import Run

WORDS_OF_NODES = ["n1", "n2", 'n"<3>', "n\x01\\u", "@n4"]

HOSTS = ("n1", "n2", "n10")

entries = st.fixed_dictionaries(
    {
        "rank": st.integers(0, 2),
        "host": st.sampled_from([*HOSTS, "n1.site", "@0", "localhost"]),
        "cpus": st.sampled_from(["0", "1", "0-1"]),
        "memory": st.sampled_from(["default", "bind:0"]),
    }
)

GIVEN = (
    record(1, step="a", node="n2"),
    invalid(2, step="b", node="n1", reason=said("one"), value=None),
    record(1, step="c", repeat=2, node="n1", value=-1.0),
    invalid(2, step="d", reason=said("two")),
    invalid(1, step="e", reason=said("one")),
)


@st.composite
def some_records(draw: st.DrawFn) -> list[Record]:
    made = []
    for number in range(draw(st.integers(0, 12))):
        valid = draw(st.booleans())
        made.append(
            Record(
                "r",
                f"000{draw(st.integers(1, 3))}-fake",
                draw(st.integers(1, 2)),
                "here",
                "local",
                draw(st.sampled_from(WORDS_OF_NODES)),
                draw(st.sampled_from(["measured", "emulated"])),
                "fake",
                "FAKE",
                draw(st.sampled_from(["rate", "time"])),
                draw(st.floats(0, 1e9)) if valid or draw(st.booleans()) else None,
                "MB/s",
                1,
                "flat",
                "",
                {"size": draw(st.integers(1, 2)), "name": 'a "word"'},
                "h",
                valid,
                said("" if valid else f"reason {number}"),
            )
        )
    return made


@given(some_records())
def test_records_are_equal_after_conversion_to_columns_and_back(given: list[Record]) -> None:
    columns = Records.of(given)
    assert list(columns) == given
    assert columns[:2] == given[:2]
    assert table(columns).get_column("node").to_list() == [each.node for each in given]


def judged(folder: Path) -> tuple[Run, Records, Verdict]:
    measured = {f"n{number:02d}": [100.0 + number / 10, 100.0] for number in range(30)}
    rates: dict[str, float | Sequence[float]] = {**measured, "n07": [50.0], "n08": 99.0}
    run = fleet_run(folder, rates)
    (step,) = run.plan.steps()
    damaged = run.folder / "workdir/steps" / step.id / "n09" / "execution-1" / "stdout"
    damaged.write_text("size 1\nrate 100\n")
    return run, *read_and_judge(run)


def test_lazily_made_results_agree_with_the_counts(tmp_path: Path) -> None:
    _, _, verdict = judged(tmp_path)
    results = verdict.results
    words = [WORDS[number] for number in results.verdict]
    assert [result.verdict for result in results] == words
    assert {word: words.count(word) for word in WORDS} == verdict.counts
    assert {"UNJUDGED", "FAIL"} <= set(words)
    for word in WORDS:
        assert list(verdict.of(word)) == [each for each in results if each.verdict == word]
    assert list(verdict.about(lambda record: record.metric == "none")) == []


@pytest.mark.parametrize(("at_once", "patterns"), [(4000, 4096), (7, 1)])
def test_result_lines_from_a_template_equal_lines_made_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int, patterns: int
) -> None:
    """Several processes that write, and a full table of patterns, give the same."""
    monkeypatch.setattr(verdicts, "_AT_ONCE", at_once)
    monkeypatch.setattr(verdicts, "_PATTERNS", patterns)
    _, _, verdict = judged(tmp_path)
    assert verdict.results.plain.sum() > 20
    text = StringIO()
    write_verdict(text, verdict)
    written = json.loads(text.getvalue())
    singly = [json.loads(json.dumps(result_json(result))) for result in verdict.results]
    assert written["results"] == singly
    assert written.keys() == {*verdict.as_json()}


def test_several_processes_read_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, alone, _ = judged(tmp_path)
    monkeypatch.setattr(records, "SLICE", 7)
    together, _ = read_and_judge(run)
    assert list(together) == list(alone)


def test_parallel_tasks_run_in_other_processes_and_return_in_order() -> None:
    made = list(parallel_map(lambda task: (task, os.getpid()), range(50)))
    assert [task for task, _ in made] == list(range(50))
    if len(os.sched_getaffinity(0)) > 1:
        assert os.getpid() not in {process for _, process in made}


def test_one_task_is_done_by_this_process() -> None:
    assert list(parallel_map(lambda _: os.getpid(), range(1))) == [os.getpid()]
    assert list(parallel_map(lambda _: os.getpid(), ())) == []


def test_few_results_wait_for_the_caller() -> None:
    begun: list[int] = []

    def tasks() -> Iterator[int]:
        for each in range(1000):
            begun.append(each)
            yield each

    work = parallel_map(lambda each: each, tasks())
    assert [next(work), next(work)] == [0, 1]
    assert len(begun) <= 4 + 2 * len(os.sched_getaffinity(0))
    assert list(work) == list(range(2, 1000))


def test_a_worker_starts_no_workers() -> None:
    def inner(_: int) -> set[tuple[int, int]]:
        return set(parallel_map(lambda each: (os.getpid(), os.getppid()), range(3)))

    groups = list(parallel_map(inner, range(6)))
    assert all(len(group) == 1 for group in groups)


def test_a_killed_worker_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    parent = os.getpid()
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})

    def work(task: int) -> int:
        if task == 3 and os.getpid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)
        return task

    with pytest.raises(BadInput, match="a process of this command was killed"):
        list(parallel_map(work, range(50)))


def test_nodes_that_several_processes_read_are_those_in_the_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, _, _ = judged(tmp_path)
    run = seal(made.folder).run()
    paths = {host: run.files.nodes / f"{host}.json" for host in nodes_of(made)}
    written = {host: read_json(path, Node) for host, path in paths.items()}
    assert len(written) > 2
    shared = [node.newest.features for node in nodes_of(run).values()]
    assert all(features is shared[0] for features in shared)
    assert nodes_of(run) == written
    monkeypatch.setattr(nodes, "_SLICE", 1)
    nodes._nodes.cache_clear()
    assert list(nodes_of(run).items()) == list(written.items())


def two_ranks() -> Step:
    """Return a step of a rank on CPU 0 of the first node, and one on CPU 1 of the second."""
    (step,) = make_plan_of("mpi").steps()
    return step.model_copy(update={"cpus": [RankCpus(0, (0,)), RankCpus(1, (1,))]})


@given(st.lists(st.tuples(st.lists(entries, max_size=3), st.booleans()), min_size=1, max_size=8))
def test_a_cached_binding_check_equals_a_fresh_one(
    reports: list[tuple[list[dict[str, object]], bool]],
) -> None:
    """Bindings are cached without host names; the result is that of a check without a cache."""
    step = two_ranks()
    check = BindingCheck(step, None)
    for number, (lines, plain) in enumerate(reports * 2):
        hosts = [HOSTS[number % 3], HOSTS[(number + 1) % 3]]
        body = "\n,".join(json.dumps(line) for line in lines)
        text = f"[\n{body}\n]\n" if plain else json.dumps(lines)
        fresh = BindingCheck(step, None).invalid_reason(hosts, text.encode())
        assert check.invalid_reason(hosts, text.encode()) == fresh


def test_a_truncated_binding_is_damaged_even_if_the_whole_one_is_cached() -> None:
    check = BindingCheck(two_ranks(), None)
    good = '{"rank": 0, "host": "n1", "cpus": "0"}', '{"rank": 1, "host": "n2", "cpus": "1"}'
    for text, right in (
        (f"[\n{good[0]}\n,{good[1]}\n]\n", True),
        (f"[\n{good[1]}\n,{good[0]}\n]\n", True),
        (f"[\n{good[0]}\n,{good[1]}\n", False),
        (f"[\n{good[0]}\n{good[1]}\n]\n", False),
    ):
        assert (check.invalid_reason(["n1", "n2"], text.encode()) == "") is right


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
        batches += [builder.records(), RecordBuilder().records()]
    return Records.joined("r", batches)


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


def test_joined_records_keep_the_words_of_a_batch_once() -> None:
    """The batches of a fleet have the same measurands: all of them would fill the memory."""

    def batches() -> Iterator[Records]:
        for number in range(200):
            builder = RecordBuilder()
            words = (f"{place:05}" * 500 for place in range(20))  # equal, and no word of before
            for place, word in enumerate(words):
                measurand = Measurand._make([*["x"] * 10, word])
                builder.measurand.append(intern(builder.measurands, measurand))
                builder.execution.append(intern(builder.nodes, "n1"))
                builder.node.append(0)
                builder.value.append(float(place))
                builder.reason.append(-1)
            builder.executions.append(Execution(f"step-{number}", 1, 1))
            yield builder.records()

    tracemalloc.start()
    try:
        joined = Records.joined("run", batches())
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    words = sum(len(each.parameters) for each in joined.measurands)
    assert (len(joined), len(joined.measurands)) == (4000, 20)
    assert peak < 50 * words
