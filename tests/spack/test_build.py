"""STREAM and HPL are built with the MPI and the BLAS of this machine, and measure.

Needs the same variables as `test_install`; the mirror has HPL, too. Open MPI, OpenBLAS and the
compilers of the distribution are the parts of the site.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.folders import ROOT
from tests.roles.kit import Kit, make_kit
from tests.spack.test_install import NEEDED

pytestmark = [
    pytest.mark.slow,
    pytest.mark.soak,
    pytest.mark.skipif(any(name not in os.environ for name in NEEDED), reason="needs Spack"),
]

CASES: Mapping[str, Mapping[str, Any]] = {
    "stream": {"quick": {"sweep": {"threads": 2}}},
    "hpl-core": {"quick": {}},
    "hpl": {},  # its rules read the output of hpl-core
}


def kit_of(folder: Path) -> Kit:
    """Return a kit with STREAM and HPL on one core, and with the real environments and recipes."""
    kit = make_kit(folder)
    for part in ("environments", "spack-repo", "requirements"):
        shutil.copytree(ROOT / part, kit.folder / part, dirs_exist_ok=True)
    (kit.folder / "benchmarks/nap.yml").unlink()
    for name, suites in CASES.items():
        case = yaml.safe_load((ROOT / f"benchmarks/{name}.yml").read_text(encoding="utf-8"))
        case |= {"suites": suites, "references": []}
        text = yaml.safe_dump(case, sort_keys=False)
        (kit.folder / f"benchmarks/{name}.yml").write_text(text, encoding="utf-8")
    (kit.folder / "benchmarks/suites.yml").write_text("suites: {quick: {title: small}}\n")
    kit.partition(provision_from="spack", facts={"hpl_nb": 192, "stream_array_size": 64000000})
    return kit


def test_stream_and_hpl_are_built_for_the_site_and_measure() -> None:
    with tempfile.TemporaryDirectory(prefix="kit-") as folder:  # a short path, for Spack
        kit = kit_of(Path(folder))
        checkouts = ["--spack", os.environ[NEEDED[0]], "--spack-packages", os.environ[NEEDED[1]]]
        proofmark = str(Path(sys.executable).parent / "proofmark")
        lock = [proofmark, "lock", "local", "-i", "inventory/local", "--find", *checkouts]
        subprocess.run(lock, cwd=kit.folder, check=True)
        names = ("provision_spack_root", "provision_spack_packages", "provision_sources")
        kit.settings(**{name: os.environ[of] for name, of in zip(names, NEEDED, strict=True)})
        played = kit.play("acceptance.yml")
        assert played.code in (0, 2), played.output  # 2: the machine may be disturbed
        assert (kit.run() / "verdict.json").exists(), played.output
        results = kit.verdict()["results"]
        assert {each["case"] for each in results} == {"stream", "hpl-core"}
        invalid = [each["reason"] for each in results if each["verdict"] == "INVALID"]
        assert not [reason for reason in invalid if "disturbed" not in reason]
        packages = json.loads((kit.run() / "software.json").read_text())["packages"]
        linked = [each["path"] for each in packages["hpl"]["programs"]["xhpl"]["libraries"]]
        assert [path for path in linked if "mpi" in path and path.startswith("/usr/lib")]
        assert [path for path in linked if "blas" in path and path.startswith("/usr/lib")]
