"""Tests the name that Spack has for an operating system. A rebuild has the name of its original."""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.folders import ROOT

from proofmark.common.errors import BadInput
from proofmark.software.installed import Sources
from proofmark.software.spack import installation as of_spack
from proofmark.software.spack.installation import (
    OperatingSystem,
    SpackInstallation,
    operating_system,
    release_variables,
    this_system,
    write_configuration,
)

RHEL = 'ID="rhel"\nID_LIKE="fedora"\n'
OF_RHEL = 'ID_LIKE="rhel centos fedora"\n'


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('ID=debian\nVERSION_ID="12"\n', "debian12"),
        ('ID=ubuntu\nID_LIKE=debian\nVERSION_ID="24.04"\n', "ubuntu24.04"),
        # distro and Spack lower the name of openEuler.
        ('ID="openEuler"\nVERSION_ID="22.03"\n', "openeuler22"),
        # Debian testing has no number.
        ("ID=debian\nVERSION_CODENAME=forky\n", "debianforky"),
        ('ID="sles"\nID_LIKE="suse"\nVERSION_ID="15.6"\n', "sles15"),
        (RHEL + 'VERSION_ID="8.10"\nPLATFORM_ID="platform:el8"\n', "rhel8"),
        (RHEL + 'VERSION_ID="10.0"\nPLATFORM_ID="platform:el10"\n', "rhel10"),
        (OF_RHEL + 'ID="rocky"\nVERSION_ID="9.6"\nPLATFORM_ID="platform:el9"\n', "rhel9"),
        (OF_RHEL + 'ID="almalinux"\nVERSION_ID="8.10"\nPLATFORM_ID="platform:el8"\n', "rhel8"),
        # Oracle Linux does not name RHEL in ID_LIKE.
        ('ID="ol"\nID_LIKE="fedora"\nVERSION_ID="9.5"\nPLATFORM_ID="platform:el9"\n', "rhel9"),
        # A rebuild before release 8 has no PLATFORM_ID.
        ('ID="centos"\nID_LIKE="rhel fedora"\nVERSION_ID="7"\n', "rhel7"),
        ('ID=fedora\nVERSION_ID=41\nPLATFORM_ID="platform:f41"\n', "fedora41"),
        # A line whose quotation mark has no partner is not read, and all others are.
        ('NAME="Debian\nID=debian\nPRETTY_NAME=\'x\nVERSION_ID="12"\n', "debian12"),
        ("ID='amzn'\nID_LIKE='fedora'\nVERSION_ID='2023'\nPLATFORM_ID=platform:al2023", "amzn2023"),
    ],
)
def test_a_system_has_the_name_of_spack_and_a_rebuild_that_of_its_original(
    text: str, name: str
) -> None:
    assert operating_system(text).name == name


@pytest.mark.parametrize("text", ["", "ID=arch\n", "VERSION_ID=12", "ID='arch\nVERSION_ID=1"])
def test_a_system_without_a_name_or_a_version_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="os-release: ID, VERSION_ID: found"):
        operating_system(text)


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(BadInput):
        assert operating_system(text).name


def test_the_release_that_spack_reads_is_that_of_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    system = OperatingSystem("rhel", "9")
    monkeypatch.setattr(of_spack, "this_system", lambda: system)
    write_configuration(tmp_path, {})
    folder = Path(release_variables(tmp_path)["UNIXCONFDIR"])
    assert operating_system((folder / "os-release").read_text()) == system


def test_git_of_spack_reads_the_commit_of_a_checkout_of_another_user(tmp_path: Path) -> None:
    """Without its commit a lock is refused after the solver."""
    variables = {**os.environ, **release_variables(tmp_path), "GIT_CONFIG_GLOBAL": os.devnull}
    words = ["git", "config", "--get-all", "safe.directory"]
    done = subprocess.run(words, env=variables, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "*"


def test_an_installation_of_spack_gets_the_name_of_this_system(tmp_path: Path) -> None:
    installation = SpackInstallation(tmp_path, tmp_path, tmp_path)
    installation.configure(Sources())
    folder = Path(installation.environment()["UNIXCONFDIR"])
    assert operating_system((folder / "os-release").read_text()) == this_system()


def test_each_original_with_a_rebuild_has_its_compilers() -> None:
    """A rebuild uses the file of its original: none has a file of its own."""
    names = {path.stem for path in (ROOT / "environments/common").glob("compilers-*.yaml")}
    assert {f"compilers-rhel{version}" for version in (8, 9, 10)} <= names
    assert not [name for name in names if "rocky" in name or "alma" in name]
