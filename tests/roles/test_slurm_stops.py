"""What is left of a job of several nodes that a real Slurm ends: the proofs of all its nodes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fixtures.kit import steps_of, until
from tests.roles.test_slurm import Site, finish, slurm_site, stopped

from proofmark.judge.judging import judge_run

pytestmark = pytest.mark.root

FIRST_WAITS = (
    'echo "size $1"; read -r host </proc/sys/kernel/hostname; : >"$GO.$1"; '
    'while [ "$1:$host" = 2:knl0001 ] && [ ! -e "$GO" ]; do sleep 0.05; done; '
    'echo "rate 100"; echo END'
)
"""In the step of size 2 only the first node waits, until the file $GO exists."""


@pytest.fixture
def stopping_site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    usual = {"KillWait": 30}  # the default of Slurm
    with slurm_site(tmp_path, monkeypatch, 3, FIRST_WAITS, settings=usual) as made:
        yield made


@pytest.mark.parametrize(
    ("scope", "how"),
    [
        ("each-node", "scancel"),
        ("job", "scancel"),
        pytest.param("each-node", "time limit", marks=pytest.mark.soak),
    ],
)
def test_what_ended_before_a_stop_is_proven_on_every_node(
    stopping_site: Site, scope: str, how: str
) -> None:
    """Slurm starts no process in a job that it ends: nothing can be asked to probe the nodes."""
    run = stopping_site.run(nodes=3, scope=scope)
    with stopping_site.begun(run) as process:
        if scope == "each-node":
            until(lambda: len(list(steps_of(run)[1].glob("*/execution-1/rc"))) == 2)
        (job,) = stopping_site.jobs()
        if how == "time limit":
            stopping_site.slurm.call("scontrol", "update", f"JobId={job}", "EndTime=now+1")
            until(lambda: len(stopping_site.jobs()) == 2, 600)  # it is submitted again
        stopping_site.slurm.call("scancel", *stopping_site.jobs())
        assert finish(process)[0] == 0
    assert "cancelled by another user" in stopped(run)
    first = {path.name for path in (run.folder / "workdir/jobs").glob("*/attempt-1/*.after")}
    assert first == {f"{name}.after" for name in stopping_site.cluster.names}
    results = [result.record for result in judge_run(run).results]
    assert [each.reason for each in results if not each.valid] == []
    ended = {"each-node": 3 + 2, "job": 1}  # the second step of two nodes
    assert len(results) == ended[scope]
