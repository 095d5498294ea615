"""Which damaged probes of a node leave the conditions of an execution without proof."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tests.fixtures.finished import write_execution
from tests.fixtures.fleet import fleet_run

from proofmark.runs.attempts import Attempt, attempts, damage
from proofmark.runs.nodes import DamagedProbe, Node, Problem, probed_nodes

STEP = "0001-fake"
JOB = "00-0001"


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Node:
    """A node with the first attempt of a job."""
    run = fleet_run(tmp_path_factory.mktemp("node"), {"n1": 100.0, "n2": 101.0})
    found = probed_nodes(run)["n1"]
    assert [job.name for job in found.jobs] == [f"{JOB}/attempt-1"]
    return found


@pytest.fixture
def execution(tmp_path: Path) -> Attempt:
    write_execution(tmp_path, "n1", attempt=f"{JOB}/attempt-1")
    (found,) = attempts(tmp_path)
    return found


def probe(
    job: str = JOB,
    attempt: int = 1,
    code: Problem = "damaged",
    steps: Sequence[str] = (STEP,),
) -> DamagedProbe:
    return DamagedProbe(job=job, attempt=attempt, steps=tuple(steps), code=code, file="f")


@pytest.mark.parametrize(
    ("damaged", "of", "counts"),
    [
        (probe(), f"{JOB}/attempt-1", True),
        (probe(code="missing"), f"{JOB}/attempt-1", True),
        (probe(code="stopped"), f"{JOB}/attempt-1", False),
        (probe(steps=["0002-fake"]), f"{JOB}/attempt-1", False),
        (probe(attempt=2), f"{JOB}/attempt-1", False),
        (probe(attempt=2), f"{JOB}/attempt-2", True),
        (probe(attempt=3), f"{JOB}/attempt-2", False),
        (probe(job="00-0002"), f"{JOB}/attempt-1", True),
        (probe(), None, True),
        (probe(), "", True),
    ],
)
def test_a_damaged_probe_of_the_time_of_an_execution_proves_nothing(
    node: Node, execution: Attempt, damaged: DamagedProbe, of: str | None, counts: bool
) -> None:
    """So does one of a job of which it is not known whether it started the execution."""
    with_damage = node.model_copy(update={"damaged": (damaged,)})
    by = replace(execution, job_attempt=of, boot_id="another boot" if of is None else None)
    found = [*with_damage.damage(STEP, by)]
    assert found == ([damaged.reason] if counts else [])
    assert [*node.damage(STEP, by)] == []
    assert with_damage.stopped is (damaged.code == "stopped")


@pytest.mark.parametrize("name", ["rc", "when.json", "binding.json"])
def test_an_execution_with_a_damaged_file_states_nothing(tmp_path: Path, name: str) -> None:
    write_execution(tmp_path, "n1", seconds=7.5)
    path = tmp_path / "execution-1" / name
    path.unlink()
    (found,) = attempts(tmp_path)
    why = damage(name, FileNotFoundError(2, "No such file or directory"))
    assert found == Attempt(
        *(1, f"{path.parent}", -1, "", "", "", False, 0.0, b"[]"),
        *(found.steal, found.others, None, None, (), why, found.ended),
    )
    assert all(map(math.isnan, (found.start_s, found.steal, found.others, found.ended)))
