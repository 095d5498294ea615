"""EasyBuild resolves every dependency of the easystacks, from the kit's easyconfigs and its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.folders import ROOT

from proofmark.software.easybuild import WIDE, read_plan

EASYCONFIGS = ROOT / "environments/common/easyconfigs"
LMOD = Path("/usr/share/lmod/lmod/libexec/lmod")
NAMES = ("HPL", "IMB", "IOR", "NPB", "OSU-Micro-Benchmarks", "STREAM")


@pytest.mark.slow
@pytest.mark.parametrize("arch", ["knl", "sapphirerapids"])
def test_easybuild_resolves_an_easystack(arch: str, tmp_path: Path) -> None:
    # The eb of requirements/, not another one in PATH.
    command = [
        str(Path(sys.executable).with_name("eb")),
        "--easystack",
        str(ROOT / f"environments/{arch}/easystack.yml"),
    ]
    command += [
        f"--robot={EASYCONFIGS}",
        "--dry-run",
        "--modules-tool=Lmod",
        f"--prefix={tmp_path}",
    ]
    if os.geteuid() == 0:
        command.append("--allow-use-as-root-and-accept-consequences")
    environment = {**os.environ, "LMOD_CMD": str(LMOD), "COLUMNS": WIDE}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert set(NAMES) <= {module.name for module in read_plan(done.stdout)}
    assert f"{EASYCONFIGS.name}/NPB-3.4.3-gompi-2023b.eb" in done.stdout
