"""The virtual cluster: its nodes are separate, and it leaves nothing behind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.emulators.vcluster import Cluster, Slurm
from tests.fixtures.kit import until
from tests.folders import ROOT
from tests.processes import proc_files, running

pytestmark = pytest.mark.root


def processes(folder: Path) -> list[str]:
    """Return the command lines that mention `folder`."""
    lines = []
    for path in proc_files("cmdline"):
        try:
            text = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if str(folder) in text:
            lines.append(text)
    return lines


def test_each_node_has_its_own_name_processes_and_tmp(tmp_path: Path) -> None:
    mark = tmp_path / "seen by all"
    mark.touch()
    with Cluster(tmp_path / "cluster", 2, shared=[tmp_path]) as cluster:
        assert [cluster.on(name, "hostname").strip() for name in cluster.names] == cluster.names
        cluster.on("knl0001", "touch", "/tmp/mine")
        assert "mine" not in cluster.on("knl0002", "ls", "/tmp")
        assert cluster.on("knl0002", "ls", str(tmp_path)).split("\n")[-2] == mark.name
        assert cluster.on("knl0002", "cat", "/proc/1/cmdline").startswith("sh\0")
        ssh = [str(cluster.bin / "ssh"), "knl0002", "hostname"]
        assert subprocess.run(ssh, capture_output=True, text=True, check=True).stdout == "knl0002\n"
        cluster.kill("knl0002")
        assert subprocess.run([*ssh[:1], "-oConnectTimeout=1", *ssh[1:]], check=False).returncode
        cluster.boot("knl0002")
        assert subprocess.run(ssh, check=True).returncode == 0
    # Linux ends the killed processes of a namespace a moment later, on a loaded machine.
    until(lambda: processes(tmp_path) == [], 60, pause_s=0.1)


@pytest.mark.fault("virtual-cluster-killed")
@pytest.mark.parametrize("how", ["kill", "terminate", "stdin"])
def test_nothing_is_left_behind(tmp_path: Path, how: str) -> None:
    """The control: the cluster ends with its command (`stdin`)."""
    command = [
        sys.executable,
        "-m",
        "tests.emulators.vcluster",
        "--nodes=2",
        f"--folder={tmp_path}/cluster",
    ]
    started = subprocess.Popen(
        [*command, "sh", "-c", "echo up; cat"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with running(started) as process:
        assert process.stdout and process.stdin
        assert process.stdout.readline() == "up\n"
        assert any("slurmctld" in line for line in processes(tmp_path))
        if how != "stdin":
            getattr(process, how)()
        process.stdin.close()
        process.wait(200)
    until(lambda: processes(tmp_path) == [])


def test_a_scheduler_that_does_not_start_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: every test of tests/roles/test_slurm.py."""

    def never(_slurm: Slurm, seconds: float = 0) -> None:
        raise TimeoutError(f"{seconds}")

    monkeypatch.setattr(Slurm, "wait_until_idle", never)
    with Cluster(tmp_path / "cluster", 1) as cluster:
        slurm = Slurm(cluster)
        with pytest.raises(TimeoutError):
            slurm.__enter__()
        assert slurm._controller
        assert slurm._controller.poll() is None
    assert slurm._controller.returncode is not None
