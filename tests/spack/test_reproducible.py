"""Concretizing twice, in two places and under two host names, gives the same bytes.

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

ROOT = Path(__file__).parents[2]
NEEDED = ("PROOFMARK_SPACK", "PROOFMARK_SPACK_PACKAGES")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(any(name not in os.environ for name in NEEDED), reason="needs Spack"),
]


def lock_made_in(place: Path, host: str) -> bytes:
    """Make the local lock in a copy of the distribution, on a machine named `host`."""
    for part in ("environments", "spack-repo", "analysis"):
        shutil.copytree(ROOT / part, place / part)
    (place / "environments/local/debian12/spack.lock").unlink()
    spack, packages = (os.environ[name] for name in NEEDED)
    make = [sys.executable, "-m", "proofmark.spacklock_cli", "--root", str(place)]
    make += ["make", "local", "debian12", "--spack", spack, "--packages", packages]
    on_host = ["unshare", "--uts", "sh", "-c", f'hostname {host} && exec "$@"', "sh", *make]
    subprocess.run(on_host, check=True, env={**os.environ, "PYTHONPATH": str(place / "analysis")})
    return (place / "environments/local/debian12/spack.lock").read_bytes()


@pytest.fixture(scope="module")
def locks(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, bytes]:
    """The same lock, made twice."""
    root = tmp_path_factory.mktemp("places")
    one = lock_made_in(root / "one", "knl0001")
    return one, lock_made_in(root / "a/deeper/place", "login.example")


def test_lock_depends_on_neither_place_nor_host(locks: tuple[bytes, bytes]) -> None:
    assert locks[0] == locks[1]


def test_committed_lock_is_what_the_pins_give(locks: tuple[bytes, bytes]) -> None:
    assert locks[0] == (ROOT / "environments/local/debian12/spack.lock").read_bytes()
