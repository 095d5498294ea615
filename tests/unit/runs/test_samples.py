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
    read_noise,
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
