"""Schedulers that drain nodes: the status of a node, drain, resume, and the permission."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.emulators.bmc.rollouts import FileSlurm, path_with

from proofmark.common.errors import BadInput
from proofmark.machine.scheduler import draining
from proofmark.machine.schedulers import slurm
from proofmark.machine.schedulers.pbs import Pbs
from proofmark.machine.schedulers.slurm import Slurm


@pytest.mark.parametrize(
    ("line", "out", "idle", "reason"),
    [
        ("NodeName=n1 State=IDLE CfgTRES=cpu=4", False, True, ""),
        ("NodeName=n1 State=ALLOCATED+DRAIN Reason=bad DIMM [root@x]", True, False, "bad DIMM"),
        (
            "NodeName=n1 State=DOWN*+DRAIN Reason=proofmark:r NO_RETURN [a@b]",
            True,
            True,
            "proofmark:r NO_RETURN",
        ),
        ("NodeName=n1 State=MIXED", False, False, ""),
    ],
)
def test_lines_of_scontrol_are_read(line: str, out: bool, idle: bool, reason: str) -> None:
    name, status = slurm._node_status(line)
    assert (name, status.out, status.idle, status.reason) == ("n1", out, idle, reason)


def test_slurm_drains_and_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    emulated = FileSlurm(tmp_path)
    monkeypatch.setenv("PATH", path_with(tmp_path))
    Slurm().drain(["n1"], "proofmark:r x")
    assert emulated.drained == {"n1": "proofmark:r x"}
    assert Slurm().node_status(["n1"])["n1"].reason == "proofmark:r x"
    assert Slurm().missing_permission("n1") == ""
    Slurm().resume(["n1"])
    assert emulated.drained == {}


def test_pbs_reads_the_status_and_drains(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output = '{"nodes": {"n1": {"state": "offline,job-busy", "comment": "x", "jobs": ["1"]}}}'
    (tmp_path / "pbsnodes").write_text(f'#!/bin/sh\necho "$@" >>"$0.calls"\necho \'{output}\'\n')
    (tmp_path / "pbsnodes").chmod(0o755)
    monkeypatch.setenv("PATH", path_with(tmp_path))
    status = Pbs().node_status(["n1"])["n1"]
    assert (status.out, status.idle, status.reason) == (True, False, "x")
    Pbs().drain(["n1"], "proofmark:r")
    assert "-o -C proofmark:r n1" in (tmp_path / "pbsnodes.calls").read_text()


def test_a_scheduler_that_cannot_drain_is_refused() -> None:
    message = "'loadleveler', whose nodes the kit cannot drain; accepted: none, pbs, slurm"
    with pytest.raises(BadInput, match=message):
        draining("loadleveler")
