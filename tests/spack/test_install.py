"""The role `provision` with a real Spack: from the lock, and from a bundle.

Needs ``PROOFMARK_SPACK`` and ``PROOFMARK_SPACK_PACKAGES`` (checkouts at the pins) and
``PROOFMARK_SPACK_SOURCES`` (a source mirror with STREAM and compiler-wrapper). STREAM is the
package of the committed lock that needs no other sources. Its library libgomp is of Spack's
gcc-runtime, so that Spack has to relocate it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.folders import ROOT
from tests.processes import running
from tests.roles.kit import Kit, Played, make_kit

from proofmark.software.spack.installation import SHEBANG_LIMIT

NEEDED = ("PROOFMARK_SPACK", "PROOFMARK_SPACK_PACKAGES", "PROOFMARK_SPACK_SOURCES")
OFFLINE = ("unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(any(name not in os.environ for name in NEEDED), reason="needs Spack"),
]


def stream_kit(folder: Path) -> Kit:
    """Return a kit with the one case STREAM, and with the real environments and recipes."""
    folder.mkdir(parents=True)
    kit = make_kit(folder)
    for part in ("environments", "spack-repo", "requirements"):
        shutil.copytree(ROOT / part, kit.folder / part, dirs_exist_ok=True)
    (kit.folder / "benchmarks/nap.yml").unlink()
    case = yaml.safe_load((ROOT / "benchmarks/stream.yml").read_text())
    case |= {"suites": {"quick": {"sweep": {"threads": 2}}}, "references": []}
    (kit.folder / "benchmarks/stream.yml").write_text(yaml.safe_dump(case, sort_keys=False))
    (kit.folder / "benchmarks/suites.yml").write_text("suites: {quick: {title: stream}}\n")
    kit.partition(provision_from="spack", facts={"stream_array_size": 64000000})
    return kit


def build(kit: Kit, command: Sequence[str] = (), **variables: object) -> Played:
    kit.settings(**{name: f"{value}" for name, value in variables.items()})
    plays = ("playbooks/plan.yml", "playbooks/build.yml")
    with running(kit.start(*plays, command=tuple(command))) as process:
        output, _ = process.communicate(timeout=3600)
    return Played(process.returncode, output)


def program(kit: Kit) -> dict[str, Any]:
    software = json.loads((kit.run() / "software.json").read_text())
    stream: dict[str, Any] = software["packages"]["stream"]["programs"]["stream_c"]
    return stream


def proofmark(kit: Kit, *words: str) -> None:
    checkouts = ["--spack", os.environ[NEEDED[0]], "--spack-packages", os.environ[NEEDED[1]]]
    program = str(Path(sys.executable).parent / "proofmark")
    command = [program, *words, "--package", "stream", *checkouts]
    subprocess.run(command, cwd=kit.folder, check=True)


@pytest.fixture
def short() -> Iterator[Path]:
    """Return a folder in which a kit has a path that is short enough for Spack."""
    with tempfile.TemporaryDirectory(prefix="kit-") as folder:
        yield Path(folder)


def test_stream_is_installed_from_lock_and_bundle(short: Path, tmp_path: Path) -> None:
    """One test, because each part uses the build of the part before."""
    hook = Path(os.environ[NEEDED[0]]) / "lib/spack/spack/hooks/sbang.py"
    limits = re.findall(r"^ +system_shebang_limit = (\d+)$", hook.read_text(), re.MULTILINE)
    assert str(SHEBANG_LIMIT) in limits
    first = stream_kit(short / "first")
    variables = {
        "provision_spack_root": os.environ[NEEDED[0]],
        "provision_spack_packages": os.environ[NEEDED[1]],
        "provision_sources": os.environ[NEEDED[2]],
    }
    built = build(first, **variables)
    assert built.code == 0, built.output
    assert built.printed("3 packages to install from their sources:")
    again = first.play("playbooks/build.yml")
    assert (again.code, again.recap["changed"]) == (0, 0), again.output

    bundle = tmp_path / "bundle.tar"
    sources = ("--sources", variables["provision_sources"])
    proofmark(first, "install", "bundle", "local", str(bundle), *sources)

    second = stream_kit(short / "a folder with a much longer name".replace(" ", "-"))
    right = build(second, OFFLINE, provision_bundle=bundle)
    assert right.code == 0, right.output
    moved = program(second)
    (runtime,) = [each["path"] for each in moved["libraries"] if "libgomp" in each["name"]]
    assert runtime.startswith(str(second.folder))
    assert str(first.folder).encode() not in Path(moved["path"]).read_bytes()
    assert moved["missing"] == []
