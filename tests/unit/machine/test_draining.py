"""Schedulers that drain nodes: the status of a node, drain, resume, and the permission."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.emulators.bmc.rollouts import FileSlurm, path_with

from proofmark.common.errors import BadInput
from proofmark.machine.outcome import NodeError
from proofmark.machine.scheduler import draining
from proofmark.machine.schedulers import slurm
from proofmark.machine.schedulers.pbs import Pbs
from proofmark.machine.schedulers.slurm import Slurm

MARK = "4f1d"


@pytest.mark.parametrize(
    ("text", "reasons"),
    [
        (f"{MARK} n1 none\n", {"n1": ""}),
        (f"{MARK} n1 bad DIMM\n{MARK} n2 none\n", {"n1": "bad DIMM", "n2": ""}),
        (f"{MARK} n1 a  b \n{MARK} n1 a  b \n", {"n1": "a  b "}),
        (f"{MARK} n1 first\nn2 none\n\n{MARK} n2 none\n", {"n1": "first\nn2 none", "n2": ""}),
    ],
)
def test_reasons_of_sinfo_are_read_whole(text: str, reasons: dict[str, str]) -> None:
    assert slurm.read_reasons(text, MARK) == reasons


@given(st.dictionaries(st.sampled_from(["n1", "n2", "n3"]), st.text(min_size=1), min_size=1))
def test_no_reason_changes_that_of_another_node(given: dict[str, str]) -> None:
    kept = {node: text.replace(f"\n{MARK}", "") for node, text in given.items()}
    text = "".join(f"{MARK} {node} {reason}\n" for node, reason in kept.items())
    read = slurm.read_reasons(text, MARK)
    assert read == {
        node: "" if (whole := reason.rstrip("\n")) == "none" else whole
        for node, reason in kept.items()
    }


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


@pytest.mark.parametrize("output", ["{", "[]", '{"nodes": []}', "", "[" * 100_000])
def test_damaged_json_of_pbsnodes_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: str
) -> None:
    (tmp_path / "output").write_text(output)
    (tmp_path / "pbsnodes").write_text(f"#!/bin/sh\ncat {tmp_path}/output\n")
    (tmp_path / "pbsnodes").chmod(0o755)
    monkeypatch.setenv("PATH", path_with(tmp_path))
    with pytest.raises(NodeError, match="not JSON of nodes"):
        Pbs().node_status(["n1"])


def test_a_node_that_the_scheduler_does_not_list_is_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does not change the status of the others."""
    FileSlurm(tmp_path)
    (tmp_path / "sinfo").rename(tmp_path / "real")
    (tmp_path / "sinfo").write_text(f'#!/bin/sh\n{tmp_path}/real "$@" | grep -v n2\n')
    (tmp_path / "sinfo").chmod(0o755)
    (tmp_path / "pbsnodes").write_text('#!/bin/sh\necho \'{"nodes": {"n1": {}}}\'\n')
    (tmp_path / "pbsnodes").chmod(0o755)
    monkeypatch.setenv("PATH", path_with(tmp_path))
    monkeypatch.setattr(slurm, "folded", ",".join)
    for scheduler, program in ((Slurm(), "sinfo"), (Pbs(), "pbsnodes")):
        statuses = scheduler.node_status(["n1", "n2"])
        assert not statuses["n1"].out
        assert (statuses["n2"].out, statuses["n2"].idle) == (True, False)
        assert statuses["n2"].reason == f"{program} does not list the node"


def test_a_scheduler_that_cannot_drain_is_refused() -> None:
    message = "'loadleveler', whose nodes the kit cannot drain; accepted: none, pbs, slurm"
    with pytest.raises(BadInput, match=message):
        draining("loadleveler")
