"""Files with the environment of modules are read only by the run user."""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fixtures.kit import Kit
from tests.folders import let_all_enter

from proofmark.common.files import replacing, write_atomic, write_private
from proofmark.common.rights import User, acting_as

NOBODY = 65534


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(autouse=True)
def umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.mark.fault("environment-readable")
@pytest.mark.parametrize("hosts", [1, 2])
def test_the_scripts_of_steps_are_private(kit: Kit, hosts: int) -> None:
    """The control are the other files: everybody may read results."""
    kit.case(suites={"quick": {"scope": "each-node", "sweep": {"size": 1}}})
    names = (os.uname().nodename, "another")[:hosts]
    software = kit.software(environment={"MPI_HOME": "/opt/mpi"})
    site = kit.site(hosts=names)
    partition = site.partition.model_copy(update={"scheduler": "slurm"})
    run = kit.run(software, site=site.model_copy(update={"partition": partition}))
    (step,) = run.plan.steps()
    subprocess.run(["sh", run.files.step(step.id).script], check=True)
    scripts = [path for path in run.folder.rglob("*.sh") if "MPI_HOME" in path.read_text()]
    # The script of the step in the run and in the work folder; on two nodes run.sh of this node.
    assert len(scripts) == hosts + 1
    assert {mode(path) for path in scripts} == {0o600}
    results = [*run.folder.rglob("stdout"), *run.folder.rglob("rc"), run.files.plan]
    assert {mode(path) for path in results} == {0o644}
    assert len(results) == 3


@pytest.mark.root
@pytest.mark.fault("environment-readable")
def test_a_file_that_root_writes_belongs_to_the_owner_of_its_folder(tmp_path: Path) -> None:
    """The control is a folder of root."""
    for owner in (NOBODY, 0):
        folder = tmp_path / f"{owner}"
        folder.mkdir()
        os.chown(folder, owner, owner)
        precious = tmp_path / f"precious-{owner}"
        precious.write_text("precious")
        for name in ("private.new", "whole.new", "replaced.new"):
            (folder / name).symlink_to(precious)
        let_all_enter(folder)
        with acting_as(User("someone", owner, owner, "/")):
            write_private(folder / "private", "text")
            write_atomic(folder / "whole", "text")
            with replacing(folder / "replaced") as file:
                file.write("text")
        states = {
            path.name: (path.stat().st_uid, path.stat().st_gid, mode(path), path.read_text())
            for path in folder.iterdir()
        }
        assert states == {
            "private": (owner, owner, 0o600, "text"),
            "whole": (owner, owner, 0o644, "text"),
            "replaced": (owner, owner, 0o644, "text"),
        }
        assert (precious.stat().st_uid, precious.read_text()) == (0, "precious")
