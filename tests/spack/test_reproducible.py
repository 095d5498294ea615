"""A lock that is made twice, in two folders and under two host names, has the same bytes.

Needs Spack and its recipes at the pinned commits: their directories in ``PROOFMARK_SPACK`` and
``PROOFMARK_SPACK_PACKAGES``.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.folders import ROOT

NEEDED = ("PROOFMARK_SPACK", "PROOFMARK_SPACK_PACKAGES")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(any(name not in os.environ for name in NEEDED), reason="needs Spack"),
]


def lock_made_in(place: Path, host: str) -> bytes:
    """Return the local lock, made in a copy of the kit in `place` under the host name `host`."""
    listed = subprocess.check_output(["git", "-C", ROOT, "ls-files", "-z"], text=True)
    for part in listed.split("\0"):
        if part and (ROOT / part).is_file():
            (place / part).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / part, place / part)
    (place / "environments/local/debian12/spack.lock").unlink()
    spack, packages = (os.environ[name] for name in NEEDED)
    call = "import sys; from proofmark.cli.main import main; sys.exit(main())"
    checkouts = ["--spack", spack, "--spack-packages", packages]
    make = [sys.executable, "-c", call, "lock", "local", "--os", "debian12", *checkouts]
    on_host = ["unshare", "--uts", "sh", "-c", f'hostname {host} && exec "$@"', "sh", *make]
    environment = {**os.environ, "PYTHONPATH": str(place / "analysis")}
    subprocess.run(on_host, check=True, cwd=place, env=environment)
    return (place / "environments/local/debian12/spack.lock").read_bytes()


@pytest.fixture(scope="module")
def locks(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, bytes]:
    """Return two locks, made in two folders and under two host names."""
    root = tmp_path_factory.mktemp("places")
    one = lock_made_in(root / "one", "knl0001")
    return one, lock_made_in(root / "a/deeper/place", "login.example")


def test_a_lock_depends_on_neither_folder_nor_host_name(locks: tuple[bytes, bytes]) -> None:
    assert locks[0] == locks[1]


def test_the_committed_lock_is_the_result_of_the_pins(locks: tuple[bytes, bytes]) -> None:
    assert locks[0] == (ROOT / "environments/local/debian12/spack.lock").read_bytes()
