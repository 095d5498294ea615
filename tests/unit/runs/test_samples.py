"""Samples of a node: what is no amount of time, and the limits of what is named."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from proofmark.runs.attempts import ReadOnce
from proofmark.runs.run_files import StepFiles
from proofmark.runs.samples import (
    ENDED,
    HYPERVISOR,
    OUTSIDE,
    NodeNoise,
    Other,
    disturbers,
    mean_shares,
    read_noise,
    read_samples,
    shares_of,
)

NODE: dict[str, Any] = {
    **dict.fromkeys(("rank_seconds", "ranks_s", "others_s", "steal_s", "worst_steal_s"), 0),
    **dict.fromkeys(("worst_delay_s", "burst", "burst_others"), 0),
    **{"host": "n1", "seconds": 10, "cpus": 2, "others": []},
}


def read(folder: Path, **changes: Any) -> NodeNoise:
    path = StepFiles(folder).noise
    path.write_text(json.dumps([{**NODE, **changes}]))
    (node,) = read_noise(ReadOnce(f"{folder}"))
    return node


def test_a_node_whose_ranks_had_no_time_has_no_share(tmp_path: Path) -> None:
    assert math.isnan(read(tmp_path).share)
    assert read(tmp_path, rank_seconds=10, ranks_s=5).share == 0.25
    assert read(tmp_path, rank_seconds=0.25, ranks_s=5).share == 1.0


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -1, "x", None])
def test_what_is_no_amount_of_time_is_refused(tmp_path: Path, value: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        read(tmp_path, ranks_s=value)


@pytest.mark.parametrize("cpus", [0, -1, 1 << 40])
def test_a_number_of_cpus_that_no_node_has_is_refused(tmp_path: Path, cpus: int) -> None:
    with pytest.raises(ValueError, match="CPUs"):
        read(tmp_path, cpus=cpus)


@pytest.mark.parametrize(("outside", "name"), [(True, OUTSIDE), (False, ENDED)])
def test_time_of_no_process_is_named_above_one_percent(
    tmp_path: Path, outside: bool, name: str
) -> None:
    sshd = {"name": "sshd", "seconds": 0.5}
    for unnamed, others in ((0.1, ["sshd"]), (0.2, ["sshd", name]), (0.6, [name, "sshd"])):
        node = read(tmp_path, unnamed_s=unnamed, outside=outside, others=[sshd])
        assert [each.name for each in node.others] == others


def test_the_share_of_a_name_is_that_of_all_nodes(tmp_path: Path) -> None:
    """One percent of a CPU is named, less is not; a run without time has no share."""
    first = read(tmp_path, worst_steal_s=2)._replace(others=(Other("a", 1.0), Other("b", 0.2)))
    second = read(tmp_path, host="n2")._replace(others=(Other("a", 4.0), Other("c", 0.19)))
    assert shares_of([first, second]) == (("a", 0.25), (HYPERVISOR, 0.1), ("b", 0.01))
    assert shares_of([read(tmp_path, seconds=0, others=[{"name": "a", "seconds": 1}])]) == ()


def test_the_mean_share_counts_the_executions_without_a_name() -> None:
    assert mean_shares([(("a", 0.3), ("b", 0.02)), (("a", 0.1),)]) == (("a", 0.2), ("b", 0.01))
    many = tuple((f"p{number}", 0.01 * number) for number in range(8))
    assert [name for name, _ in mean_shares([many])] == ["p7", "p6", "p5", "p4", "p3"]
    assert mean_shares([]) == ()


def test_the_first_three_of_what_took_time_are_named() -> None:
    shares = (("a", 1.234), (HYPERVISOR, 0.5), ("b", 0.016), ("c", 0.01))
    named = [(each.code, dict(each.fields)) for each in disturbers(shares)]
    assert named == [
        ("disturber", {"name": "a", "percent": "123"}),
        (HYPERVISOR, {"percent": "50"}),
        ("disturber", {"name": "b", "percent": "2"}),
    ]
    assert [each.code for each in disturbers(())] == ["disturbers-unknown"]


def test_foreign_texts_of_a_process_are_short_lines(tmp_path: Path) -> None:
    """Of a node, the first few names are kept, the busiest first."""
    long = {"name": "n\n" * 99, "user": "u" * 99, "command": "c\x1b" * 99, "seconds": 1, "pid": 7}
    others = [{"name": f"p{number}", "seconds": 2 + number} for number in range(5)]
    (*busiest, least) = read(tmp_path, others=[long, *others]).others
    assert busiest == [Other(f"p{number}", 2.0 + number) for number in (3, 2, 1, 0)]
    assert (least.seconds, least.pid) == (1, 7)
    texts = least.name, least.user, least.command
    assert [len(each) for each in texts] == [64, 80, 80]
    assert all(each.isprintable() for each in texts)


def test_of_a_running_execution_few_nodes_are_read(tmp_path: Path) -> None:
    execution = StepFiles(tmp_path)
    assert read_samples(execution) == []
    for number in range(10):
        sums = execution.samples / f"n{number}" / "sums"
        sums.parent.mkdir(parents=True)
        sums.write_text(json.dumps({**NODE, "host": f"n{number}"}) if number else "{")
    assert [each.host for each in read_samples(execution)] == [f"n{n}" for n in range(1, 8)]
