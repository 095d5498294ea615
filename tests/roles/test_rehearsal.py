"""The rehearsal: the playbooks on a virtual cluster, which leaves nothing behind."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from tests.fixtures.kit import until
from tests.folders import ROOT
from tests.processes import running
from tests.rehearsal import kept
from tests.rehearsal.room import Room
from tests.roles.kit import NAP, Kit

from proofmark.runs.evidence import open_evidence
from proofmark.runs.nodes import nodes_of

pytestmark = [pytest.mark.slow, pytest.mark.root]

MODES = ["quadrant-flat", "quadrant-cache"]


@pytest.fixture
def rehearsal(kit: Kit) -> Iterator[Kit]:
    """Yield a kit with the site of the rehearsal and two modes; nothing may be left afterwards."""
    shutil.copytree(ROOT / "inventory/rehearsal", kit.folder / "inventory/rehearsal")
    (kit.folder / "inventory/rehearsal/contract.yml").unlink()  # of cases that this kit lacks
    case = yaml.safe_load(NAP)
    case["suites"] = {"rehearsal": {"modes": MODES, "scope": "each-node"}}
    (kit.folder / "benchmarks/nap.yml").write_text(yaml.safe_dump(case, sort_keys=False))
    (kit.folder / "benchmarks/suites.yml").write_text("suites: {rehearsal: {title: naps}}\n")
    links = interfaces()
    yield kit
    assert left_behind(kit.folder.parent) == []
    assert interfaces() == links


def interfaces() -> list[str]:
    return sorted(os.listdir("/sys/class/net"))  # noqa: PTH208


def left_behind(top: Path) -> list[str]:
    """Return the folders that a rehearsal in `top` left, and processes or mounts that name one."""
    word = re.compile(rb"proofmark-rehearsal-\w+")
    left = [str(path) for path in top.glob("proofmark-rehearsal-*")]
    for process in Path("/proc").glob("[0-9]*"):
        for name in ("cmdline", "environ", "mountinfo"):
            try:
                content = (process / name).read_bytes()
            except OSError:
                continue  # it has just ended
            if f"{top}".encode() in content and word.search(content):
                left.append(f"{process.name} {name}")
    return left


def start(kit: Kit, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.rehearsal", f"--checkout={kit.folder}", *arguments],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": f"{kit.folder.parent}", "COLUMNS": "200"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def finish(process: subprocess.Popen[str]) -> str:
    with running(process):
        output, _ = process.communicate(timeout=1800)
    return " ".join(output.split())


def test_a_rehearsal_that_ctrl_c_stops_leaves_nothing(rehearsal: Kit) -> None:
    process = start(rehearsal, "--nodes=2", "--one-mode")
    with running(process):
        begun = rehearsal.folder.glob
        until(
            lambda: process.poll() is not None or any(begun("runs/*/workdir/steps/*/*/*/started")),
            600,
            pause_s=0.3,
        )
        assert process.poll() is None, finish(process)
        os.killpg(process.pid, signal.SIGINT)
        output = finish(process)
    assert process.returncode == 130, output


def test_preflight_of_the_virtual_cluster_is_clean_and_changes_no_comment(rehearsal: Kit) -> None:
    comment = "bad DIMM in slot 3"
    folder = rehearsal.folder.parent / "room"
    folder.mkdir()
    with Room(folder, "knl", 2, shared=[rehearsal.folder]) as room:
        environment = room.environment()
        environment["PATH"] = f"{room.cluster.bin}:{os.environ['PATH']}"
        kit = replace(rehearsal, environment=environment)
        for node in room.names:
            room.slurm.call("scontrol", "update", f"NodeName={node}", f"Comment={comment}")
        site = ("-i", "inventory/rehearsal", "-l", ",".join(room.names))
        played = kit.play("playbooks/preflight.yml", *site, "-e", "suite=rehearsal")
        states = [room.slurm.call("scontrol", "show", "node", node) for node in room.names]
    assert played.code == 0, played.output
    assert played.printed("OK: scheduler: permission to drain: slurm")
    assert played.printed("OK: BMCs: certificate, log-in, registry: rknl[0001-0002]")
    assert all(f"Comment={comment}\n" in state for state in states)


def test_every_mode_is_rehearsed_on_a_cluster_that_is_kept_and_removed(
    rehearsal: Kit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The figures are emulated.

    The fixture checks that no process, mount, namespace or folder is left after the end.

    The cluster that a person or another pytest keeps on this machine does not matter.
    """
    state = tmp_path / "kept.json"
    monkeypatch.setenv("PROOFMARK_REHEARSAL_KEPT", f"{state}")
    try:
        process = start(rehearsal, "--nodes=2", "--keep")
        output = finish(process)
        assert process.returncode == 0, output
        assert_rehearsed(rehearsal, output)
        entered = re.search(r"(\. \S*/enter)", output)
        assert entered, output
        assert "playbooks/restore.yml" in output and "playbooks/gate.yml" in output

        def inside(command: str) -> str:
            call = ["sh", "-c", f"{entered[1]}; {command}"]
            return subprocess.run(call, capture_output=True, text=True, check=True).stdout

        assert inside("ssh rknl0002 uname -n") == "rknl0002\n"
        assert "idle" in inside("sinfo --noheader")
        assert inside('echo "$PWD"') == f"{rehearsal.folder}\n"
        second = start(rehearsal, "--nodes=2", "--keep")
        assert "a virtual cluster is kept: make rehearsal-end" in finish(second)
        assert second.returncode == 3
        beside = start(rehearsal, "--nodes=2", "--one-mode")
        output = finish(beside)
        assert beside.returncode == 0, output
        assert "idle" in inside("sinfo --noheader")
    finally:
        ended = start(rehearsal, "--end")
        told = finish(ended)
    assert (ended.returncode, state.exists()) == (0, False), told
    assert told.endswith(" is removed")


def assert_rehearsed(kit: Kit, output: str) -> None:
    results = kit.verdict()["results"]
    assert {result["mode"] for result in results} == set(MODES)
    assert {result["origin"] for result in results} == {"emulated"}
    assert kit.verdict()["coverage"]["not_run"] == []
    assert "-l rknl0001,rknl0002 -e suite=rehearsal -e confirm_reboot=true" in output
    assert f"the report: {kit.run()}/report.html" in output
    sealed = open_evidence(kit.run())
    assert sealed is not None
    nodes = nodes_of(sealed)
    assert nodes.keys() == {"rknl0001", "rknl0002"}
    assert all("Xeon Phi" in node.newest.cpu_model for node in nodes.values())


def test_the_end_of_a_killed_cluster_removes_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Another process that got the number of the killed one is not ended."""
    folder = tmp_path / "proofmark-rehearsal-x"
    folder.mkdir()
    monkeypatch.setattr(kept, "STATE", tmp_path / "state.json")
    state = {"pid": os.getpid(), "born": "1", "folder": str(folder)}
    (tmp_path / "state.json").write_text(json.dumps(state))
    assert kept.end() == 0
    assert not folder.exists()
    assert kept.end() == 0
    assert capsys.readouterr().out.endswith("no virtual cluster is kept\n")
