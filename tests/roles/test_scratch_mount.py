"""The role mounts and unmounts a real distributed file system (JuiceFS over FUSE)."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.emulators.vcluster.juicefs import make_sticky
from tests.roles.kit import Kit

pytestmark = [pytest.mark.slow, pytest.mark.root]

JUICEFS = Path(sys.executable).with_name("juicefs")
UNMOUNT = """
- hosts: compute
  gather_facts: false
  tasks:
    - ansible.builtin.include_tasks: playbooks/tasks/begin.yml
    - ansible.builtin.include_role:
        name: proofmark.kit.scratch
        tasks_from: unmount
"""


def is_mounted(point: Path) -> bool:
    return f" {point} fuse.juicefs " in Path("/proc/mounts").read_text()


@pytest.fixture
def pfs(kit: Kit) -> Iterator[Path]:
    """Make a file system, and a site with its scratch on it; yield the mount point."""
    store, point = kit.folder / "store", kit.folder.parent / "pfs"
    meta = f"sqlite3://{kit.folder}/meta.db"
    command = [f"{JUICEFS}", "format", meta, "pfs", "--storage", "file", "--bucket", f"{store}/"]
    subprocess.run(command, check=True, capture_output=True)
    make_sticky(kit.folder / "meta.db")
    kit.partition(
        scratch={
            "path": f"{point}/runs",
            "type": "fuse.juicefs",
            "source": "JuiceFS:pfs",
            "off_root": True,
            "mount": {"point": f"{point}", "source": meta},
        }
    )
    (kit.folder / "unmount.yml").write_text(UNMOUNT)
    yield point
    subprocess.run([JUICEFS, "umount", point], capture_output=True, check=False)


def test_the_file_system_is_mounted_verified_and_unmounted(kit: Kit, pfs: Path) -> None:
    planned = kit.play("playbooks/plan.yml")
    assert planned.code == 0, planned.output
    checked = kit.play("playbooks/scratch.yml", "--check", "--diff")
    assert checked.code == 0, checked.output
    assert (checked.recap["changed"], pfs.exists()) == (1, False)

    first = kit.play("playbooks/scratch.yml")
    assert first.code == 0, first.output
    assert is_mounted(pfs)
    reports = (kit.run() / "scratch.probe").read_text()
    assert "fuse.juicefs" in reports
    assert "=== layout" in reports
    assert list((pfs / "runs").iterdir()) == []

    # It is mounted again and unmounted twice. Only the first unmount changes something.
    unmounted = kit.play("playbooks/scratch.yml", "unmount.yml", "unmount.yml")
    assert unmounted.code == 0, unmounted.output
    assert (is_mounted(pfs), pfs.exists(), unmounted.recap["changed"]) == (False, False, 1)


@pytest.mark.fault("mount-fails")
def test_a_missing_file_system_is_reported(kit: Kit, pfs: Path) -> None:
    """The control: the test above."""
    (kit.folder / "meta.db").unlink()
    played = kit.play("playbooks/plan.yml", "playbooks/scratch.yml")
    assert played.code == 2
    assert played.printed("database is not formatted") or played.printed("not formatted"), (
        played.output
    )
    assert not pfs.exists()
    assert not (kit.run() / "workdir/steps").exists()
