"""The fast paths for runs of thousands of nodes give the same results as the slow ones."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fixtures.fleet import fleet_run
from tests.fixtures.messages import said
from tests.unit.records.test_binding import make_plan_of

from proofmark.common.files import read_json
from proofmark.common.parallel import parallel_map
from proofmark.judge.judging import read_and_judge
from proofmark.judge.verdict import WORDS, Verdict, result_json
from proofmark.judge.verdict_files import _testcase, write_junit, write_verdict
from proofmark.plan.plan import Step
from proofmark.plan.rank_cpus import RankCpus
from proofmark.records import read as records
from proofmark.records.binding import BindingCheck
from proofmark.records.columns import Record, Records
from proofmark.records.parquet_table import table
from proofmark.runs import nodes
from proofmark.runs.evidence import seal
from proofmark.runs.nodes import Node, nodes_of
from proofmark.runs.run import Run

WORDS_OF_NODES = ["n1", "n2", 'n"<3>', "n\x01\\u", "@n4"]
HOSTS = ("n1", "n2", "n10")


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
    damaged = run.folder / "steps" / step.id / "n09" / "execution-1" / "stdout"
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


def test_result_lines_from_a_template_equal_lines_made_one_by_one(tmp_path: Path) -> None:
    _, _, verdict = judged(tmp_path)
    assert verdict.results.plain.sum() > 20
    text = StringIO()
    write_verdict(text, verdict, [])
    written = json.loads(text.getvalue())
    singly = [json.loads(json.dumps(result_json(result))) for result in verdict.results]
    assert written["results"] == singly
    assert written.keys() == {*verdict.as_json(), "claims"}


def test_junit_from_a_template_equals_test_cases_made_one_by_one(tmp_path: Path) -> None:
    _, _, verdict = judged(tmp_path)
    one = StringIO()
    write_junit(one, verdict)
    written = one.getvalue().splitlines(keepends=True)
    singly = [_testcase(result) for result in verdict.results]
    faults = len(verdict.faults)
    assert "".join(written[2 + faults : -1]) == "".join(singly)
    assert len(ElementTree.fromstring(one.getvalue().encode())) == 30 + faults


def test_several_processes_read_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, alone, _ = judged(tmp_path)
    monkeypatch.setattr(records, "ONE_PROCESS", 0)
    monkeypatch.setattr(records, "SLICE", 7)
    together, _ = read_and_judge(run)
    assert list(together) == list(alone)


def test_parallel_tasks_run_in_other_processes_and_return_in_order() -> None:
    made = list(parallel_map(lambda task: (task, os.getpid()), range(50), large=True))
    assert [task for task, _ in made] == list(range(50))
    if len(os.sched_getaffinity(0)) > 1:
        assert os.getpid() not in {process for _, process in made}


def test_a_worker_starts_no_workers() -> None:
    def inner(_: int) -> set[tuple[int, int]]:
        return set(parallel_map(lambda each: (os.getpid(), os.getppid()), range(3), large=True))

    groups = list(parallel_map(inner, range(6), large=True))
    assert all(len(group) == 1 for group in groups)


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


entries = st.fixed_dictionaries(
    {
        "rank": st.integers(0, 2),
        "host": st.sampled_from([*HOSTS, "n1.site", "@0", "localhost"]),
        "cpus": st.sampled_from(["0", "1", "0-1"]),
        "memory": st.sampled_from(["default", "bind:0"]),
    }
)


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
