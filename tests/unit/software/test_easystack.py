"""EasyBuild resolves the easystack for every environment, and its programs are those of Spack."""

from __future__ import annotations

import dataclasses
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.folders import ROOT

from proofmark.common.errors import BadInput
from proofmark.common.processes import run_command
from proofmark.site.partition import Toolchain
from proofmark.software.environments import environments_with
from proofmark.software.installed import ProvisionRequest, Sources, spellings
from proofmark.software.providers.easybuild import (
    AS_ROOT,
    COLUMNS,
    EASYCONFIGS,
    EasyBuild,
    easybuild_command,
    easyconfigs_of,
    read_plan,
)
from proofmark.software.spack.lock_check import read_environment
from proofmark.software.target import controller_gcc, gcc_flags

LMOD = Path("/usr/share/lmod/lmod/libexec/lmod")
ENVIRONMENTS = ROOT / "environments"
ARCHITECTURES = environments_with(ENVIRONMENTS, "spack.yaml")
FAMILIES = (
    *(pytest.param(arch, marks=pytest.mark.soak) for arch in ("knl", "neoverse_v2")),
    "power9",
)
"""An environment of each family of processors."""
NAMES = {"HPL", "IMB", "IOR", "NPB", "OSU-Micro-Benchmarks", "STREAM"}


def easybuild(arch: str, prefixes: Path, **changes: Any) -> EasyBuild:
    """Return the provider for all packages of the easystack."""
    return EasyBuild(ProvisionRequest(ROOT, arch, {}, prefixes, **changes))


@pytest.fixture
def _easybuild(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the eb of requirements/ the first in PATH, with Lmod."""
    folder = Path(sys.executable).parent
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("LMOD_CMD", str(LMOD))
    monkeypatch.setenv(AS_ROOT, "1")
    monkeypatch.setenv("COLUMNS", COLUMNS)


@pytest.mark.slow
@pytest.mark.usefixtures("_easybuild")
@pytest.mark.parametrize("arch", FAMILIES)
def test_easybuild_resolves_the_easystack_for_every_environment(arch: str, tmp_path: Path) -> None:
    """The environments have the same easystack; their commands differ in the target only.

    The gcc of the toolchain does not know zen5. The target of graniterapids is sapphirerapids.
    """
    commands = [
        easybuild(each, tmp_path).command()
        for each in sorted({*ARCHITECTURES} - {"zen5", "graniterapids"})
    ]
    targets = [[word for word in command if "--optarch=" in word] for command in commands]
    assert {len(target) for target in targets} == {1}
    assert len({(*command,) for command in commands}) == len({*map(str, targets)})
    installation = easybuild(arch, tmp_path)
    words = installation.command("--dry-run")
    done = run_command(words, environment=installation.variables())
    assert done.returncode == 0, done.stdout + done.stderr
    plan = {module.name: module for module in read_plan(done.stdout)}
    assert plan.keys() >= NAMES
    assert plan["GCC"].version == spellings(ENVIRONMENTS).easybuild_gcc
    assert f"{EASYCONFIGS.name}/NPB-3.4.3-gompi-2023b.eb" in done.stdout
    # EasyBuild 6 removes what EasyBuild 5 calls deprecated.
    assert "eprecated" not in done.stdout + done.stderr


@pytest.mark.fault("variables-of-the-site")
@pytest.mark.usefixtures("_easybuild")
def test_no_setting_of_the_site_reaches_easybuild(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The real eb shows its settings: the kit's are on its command line, and no others."""
    configuration = tmp_path / ".config/easybuild/config.cfg"
    configuration.parent.mkdir(parents=True)
    configuration.write_text("[config]\ninstallpath-modules = /apps/modules\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / ".config"))
    monkeypatch.setenv("EASYBUILD_INSTALLPATH_SOFTWARE", "/apps/software")
    monkeypatch.setenv("EASYBUILD_FILTER_DEPS", "OpenMPI")
    installation = easybuild("local", tmp_path)
    words = [*easybuild_command(installation.variables()), "--show-config"]
    assert "/apps/software" in run_command(words, environment=os.environ).stdout  # the control
    shown = run_command(words, environment=installation.variables()).stdout
    assert "(C) = Lmod" in shown or "modules-tool" not in shown
    assert not {"(F)", "OpenMPI", "/apps/software", "/apps/modules"} & {*shown.split()}


@pytest.mark.slow
@pytest.mark.usefixtures("_easybuild")
def test_with_the_compiler_and_mpi_of_the_site_only_the_six_packages_are_built(
    tmp_path: Path,
) -> None:
    installation = easybuild("local", tmp_path, toolchain=Toolchain.SYSTEM)
    modules = installation.planned()
    assert {module.name for module in modules} == {"GCC", *NAMES}
    assert all(module.version.endswith("system") for module in modules)
    assert not any(module.installed for module in modules)
    request = dataclasses.replace(installation.request, programs={"stream": ()})
    stream = EasyBuild(request)
    assert {module.name for module in stream.planned()} == {"GCC", "STREAM"}


@pytest.mark.usefixtures("_easybuild")
def test_easybuild_gets_only_the_easyconfigs_of_a_plan(tmp_path: Path) -> None:
    """By their names: EasyBuild would need PyYAML, which it does not require, for an easystack."""
    request = ProvisionRequest(ROOT, "local", {"hpl": (), "stream": ()}, tmp_path)
    named = [word for word in EasyBuild(request).command() if word.endswith(".eb")]
    assert named == ["HPL-2.3-foss-2023b.eb", "STREAM-5.10-GCC-13.2.0.eb"]
    assert len(easyconfigs_of(ROOT)) == len(NAMES)
    with pytest.raises(BadInput, match="no package 'straem', did you mean 'stream'"):
        easyconfigs_of(ROOT, {"straem"})


@pytest.mark.usefixtures("_easybuild")
def test_sources_target_and_number_of_processes_reach_easybuild(tmp_path: Path) -> None:
    mirror = tmp_path / "mirror"
    skl = easybuild("skl", tmp_path, sources=Sources(mirror=mirror), jobs=3)
    command = skl.command()
    assert f"--sourcepath={skl.prefix}/sources:{mirror}" in command
    assert "--parallel=3" in command
    assert "--optarch=GCC:-march=skylake-avx512 -mtune=skylake-avx512" in command
    knl = easybuild("knl", tmp_path)
    assert skl.prefix != knl.prefix  # their modules have the same names


@pytest.mark.usefixtures("_easybuild")
@pytest.mark.parametrize("code", [None, 1])
def test_a_system_without_gcc_has_no_system_toolchain(
    code: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    if code is not None:
        (tmp_path / "gcc").write_text(f"#!/bin/sh\nexit {code}\n")
        (tmp_path / "gcc").chmod(0o755)
    with pytest.raises(BadInput, match=r"gcc: NO_COMPILER: found no such command"):
        easybuild("local", tmp_path, toolchain=Toolchain.SYSTEM).gcc_options()


def test_the_version_of_gcc_is_complete() -> None:
    assert shutil.which("gcc")
    assert re.fullmatch(r"\d+\.\d+\.\d+", controller_gcc())


def spack_versions(arch: str) -> dict[str, str]:
    """Return the versions of the packages of a Spack environment, by package."""
    environment = read_environment(ENVIRONMENTS / arch, "debian12")
    return {package: environment.versions[package] for package in environment.roots}


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_both_origins_have_the_same_packages_in_the_same_versions(arch: str) -> None:
    versions = {name: entry.rsplit("-", 3) for name, entry in easyconfigs_of(ROOT).items()}
    assert {package: words[1] for package, words in versions.items()} == spack_versions(arch)


def test_stream_has_the_array_size_of_every_environment() -> None:
    text = (ROOT / EASYCONFIGS / "STREAM-5.10-GCC-13.2.0.eb").read_text()
    line = re.search(r"^local_sizes = \[(.*)\]$", text, re.M)
    assert line
    for arch in ARCHITECTURES:
        size = re.search(
            r"stream_array_size=(\d+)", (ENVIRONMENTS / arch / "spack.yaml").read_text()
        )
        assert size
        assert size[1] in line[1].split(", ")


def test_gcc_has_options_for_the_processor_of_every_environment_but_one() -> None:
    gcc = spellings(ENVIRONMENTS).easybuild_gcc
    for arch in {*ARCHITECTURES} - {"zen5"}:
        target = easybuild(arch, ROOT).target
        assert re.match(r"-m(arch|cpu)=\S+", gcc_flags(target, gcc)), arch
    assert gcc_flags("mic_knl", gcc) == "-march=knl -mtune=knl"
    assert gcc_flags("power9le", gcc) == "-mcpu=power9 -mtune=power9"


def test_a_gcc_that_does_not_know_the_processor_is_refused() -> None:
    with pytest.raises(BadInput) as raised:
        gcc_flags("zen4", "10.2.1")
    assert str(raised.value).startswith("gcc: zen4: found 10.2.1; accepted: gcc ")
    assert "12.3:" in str(raised.value)
    assert gcc_flags("zen4", "12.3.0") == "-march=znver4 -mtune=znver4"
    # Its range is 10.3:12.2, and 12.3: the patch releases of 12.2 are in the first one.
    assert gcc_flags("zen4", "12.2.0").startswith("-march=znver3 -mtune=znver3 -mavx512f ")
    with pytest.raises(BadInput, match=r"gcc: zen5: found 13\.2\.0; accepted: gcc 14\.1:"):
        gcc_flags("zen5", spellings(ENVIRONMENTS).easybuild_gcc)


def test_an_unknown_environment_has_no_packages() -> None:
    with pytest.raises(BadInput, match="did you mean 'knl'"):
        _ = easybuild("knk", ROOT).target
