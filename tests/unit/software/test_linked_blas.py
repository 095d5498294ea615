"""The BLAS that the loader takes is compared with the one that EasyBuild's linker took."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from tests.unit.software.test_site_locks import OPENMP, PTHREADS, SERIAL

from proofmark.common.errors import BadInput
from proofmark.common.kit import result_folder
from proofmark.software.providers import easybuild
from proofmark.software.providers.easybuild import easybuild_command, easybuild_variables
from proofmark.software.spack.mpi_and_blas import linked_file, other_blas, outside_blas


def library(path: Path, content: bytes) -> Path:
    """Write a library that a linker takes, with `content` at its end."""
    path.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["gcc", "-shared", "-x", "c", "-o", path, os.devnull], check=True)
    path.write_bytes(path.read_bytes() + content)
    return path


@pytest.fixture
def debian(tmp_path: Path) -> dict[str, Path]:
    """Return the variants of Debian's OpenBLAS, by folder."""
    return {
        name: library(tmp_path / f"openblas-{name}/libopenblas.so", content)
        for name, content in (("serial", SERIAL), ("pthread", PTHREADS), ("openmp", OPENMP))
    }


def test_the_linker_takes_the_first_blas_of_its_words(
    debian: dict[str, Path], tmp_path: Path
) -> None:
    serial, openmp = debian["serial"], debian["openmp"]
    assert linked_file(f"-L{serial.parent} -L{openmp.parent} -lopenblas -lm") == serial
    assert linked_file(f"{openmp} -lm") == openmp
    static = library(tmp_path / "libopenblas.a", SERIAL)
    assert linked_file(f"{static} -lgfortran -lm") is None
    assert linked_file(f"-L{tmp_path} -lopenblas_none -lm") is None


@pytest.mark.fault("easybuild-loads-another-blas")
@pytest.mark.parametrize("loaded", ["pthread", "serial"])
def test_the_loader_takes_another_openblas_than_the_linker(
    debian: dict[str, Path], loaded: str
) -> None:
    linked = linked_file(f"-L{debian['openmp'].parent} -lopenblas")
    libraries = {"libopenblas.so.0": debian[loaded], "libm.so.6": Path("/lib/libm.so.6")}
    (mistake,) = other_blas("/p/xhpl", libraries, linked)
    assert mistake.code == "OTHER_BLAS"
    threads = {"pthread": "pthreads", "serial": "none"}[loaded]
    assert f"openblas@0.3.21 threads={threads}" in mistake.found
    assert "openblas@0.3.21 threads=openmp" in mistake.accepted
    assert list(other_blas("/p/xhpl", {"libopenblas.so.0": debian["openmp"]}, linked)) == []


def test_the_same_openblas_in_another_folder_is_no_other_one(
    debian: dict[str, Path], tmp_path: Path
) -> None:
    copy = library(tmp_path / "copy/libopenblas.so.0", OPENMP)
    assert list(other_blas("x", {"libopenblas.so.0": copy}, debian["openmp"])) == []
    mkl = library(tmp_path / "libmkl_core.so.2", b"")
    (mistake,) = other_blas("x", {"libmkl_core.so.2": mkl}, debian["openmp"])
    assert mistake.found == f"{mkl}"
    (mistake,) = other_blas("x", {"libopenblas.so.0": copy}, None)
    assert "no shared BLAS" in mistake.accepted


@pytest.mark.fault("easybuild-loads-another-blas")
def test_the_toolchain_foss_loads_a_blas_of_its_own(
    debian: dict[str, Path], tmp_path: Path
) -> None:
    prefix = tmp_path / "easybuild/local"
    own = library(prefix / "software/FlexiBLAS/3.3.1/lib/libflexiblas.so.3", b"")
    assert list(outside_blas("x", {"libflexiblas.so.3": own}, prefix)) == []
    (mistake,) = outside_blas("x", {"libopenblas.so.0": debian["pthread"]}, prefix)
    assert "threads=pthreads" in mistake.found
    (mistake,) = outside_blas("x", {"libm.so.6": Path("/lib/libm.so.6")}, prefix)
    assert mistake.found == "none"


def test_the_easybuild_of_the_kit_is_taken_if_path_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "venv/bin"
    own.mkdir(parents=True)
    monkeypatch.setattr(easybuild, "own_environment", lambda kit: tmp_path / "venv")
    empty = {"PATH": f"{tmp_path}", "LMOD_CMD": "/opt/lmod"}
    with pytest.raises(BadInput, match=r"NO_EASYBUILD: .*; run: make easybuild$"):
        easybuild_command(easybuild_variables(tmp_path, empty), 1000)
    for name, text in (("eb", "exit 0"), ("python", "echo 5.4.1")):
        (own / name).write_text(f"#!/bin/sh\n{text}\n")
        (own / name).chmod(0o755)
    variables = easybuild_variables(tmp_path, empty)
    assert variables["EB_PYTHON"] == f"{own / 'python'}"
    assert easybuild_command(variables, 1000)[0] == f"{own / 'eb'}"
    (tmp_path / "eb").symlink_to("/bin/true")
    assert easybuild_variables(tmp_path, empty) == empty, "an eb in PATH comes first"


def test_the_environment_of_easybuild_is_below_the_folder_of_installations(tmp_path: Path) -> None:
    folder = easybuild.own_environment(tmp_path)
    assert folder == result_folder(tmp_path, ".provision") / "easybuild/venv"
    assert os.fspath(folder).endswith(".provision/easybuild/venv")
