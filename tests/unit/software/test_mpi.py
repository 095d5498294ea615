"""An installed MPI: what its library and its programs state, and whether it is that of a lock."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from proofmark.common.errors import BadInput
from proofmark.software import mpi
from proofmark.software.spack.lock_file import Spec, read_lock
from proofmark.software.spack.mpi_and_blas import (
    check_installed_mpi,
    mpi_mistakes,
)
from proofmark.software.spack.site_choice import choose_mpi, programs_of_choice
from proofmark.software.spack.site_parts import find_mpis, with_build

OPEN_MPI = """
#define OMPI_MAJOR_VERSION 5
#define OMPI_MINOR_VERSION 0
#define OMPI_RELEASE_VERSION 6
"""
STATED = {
    "Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4": ("openmpi", "4.1.4"),
    "MPICH Version:\t4.0.2\nMPICH Device:\tch4:ucx\n": ("mpich", "4.0.2"),
    "MVAPICH2 Version      :\t2.3.7\nMVAPICH2 Device: ch3:mrail\n": ("mvapich2", "2.3.7"),
    "MVAPICH2 Version      :\t2.3.7-1\nMVAPICH2 Release date :": ("mvapich2", "2.3.7-1"),
    "MVAPICH Version:\t4.0\nMVAPICH Device: ch4:ofi\n": ("mvapich", "4.0"),
    "Intel(R) MPI Library 2021.11 for Linux* OS\n": ("intel-oneapi-mpi", "2021.11"),
    "Intel(R) MPI Library for Linux* OS, Version 2021.11 Build 2023": (
        *("intel-oneapi-mpi", "2021.11"),
    ),
    "MPI VERSION    : CRAY MPICH version 8.1.28.2 (ANL base 3.4a2)": ("cray-mpich", "8.1.28.2"),
    "LAM 7.1.4": ("", ""),
}
OMPI_INFO = """
ompi:version:full:4.1.4
mca:btl:openib:version:"mca:2.1.0"
mca:btl:vader:version:"mca:2.1.0"
mca:mtl:psm2:version:"mca:2.1.0"
mca:pml:ucx:version:"mca:2.1.0"
mca:io:ompio:version:"mca:2.1.0"
mca:fs:ufs:version:"mca:2.1.0"
"""
"""Lines of ``ompi_info --parsable --all`` of Open MPI 4.1.4."""

MANAGED = 'mca:ras:slurm:version:"mca:2.1.0"\nmca:ras:simulator:version:"mca:2.1.0"\n'
MPICHVERSION = """MPICH Version:    \t4.3.0
MPICH Device:    \tch4:ofi
MPICH configure: \t--prefix=/opt/mpich --with-device=ch4:ofi --with-slurm=/usr --without-cuda {}
"""
MPINAME = """MVAPICH2 2.3.7 Wed March 02 22:00:00 EST 2022 ch3:mrail

Compilation
CC: gcc    -DNDEBUG -DNVALGRIND -O2

Configuration
--prefix=/opt/mvapich2 --enable-threads=multiple --with-pm=hydra --with-file-system=lustre+nfs+ufs
"""


@pytest.mark.parametrize("text", STATED)
def test_the_release_is_what_the_library_states(text: str) -> None:
    assert mpi.release_of(text) == STATED[text]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("4.1.4", "4.1.9", False),
        ("2021.11", "2021.11.0", True),
        ("2.3.7", "2.3.7-1", True),
        ("2.3.7-1", "2.3.7-2", False),
        ("8.1.28", "8.1.28.2", True),
        ("4.1", "4.10", False),
        ("unknown", "4.1.4", False),
        ("", "4.1.4", False),
    ],
)
def test_releases_are_equal_as_far_as_both_state_them(one: str, other: str, same: bool) -> None:
    assert mpi.same_release(one, other) is same
    assert mpi.same_release(other, one) is same


def test_the_variants_of_open_mpi_are_those_of_its_components() -> None:
    found = mpi.built_variants("openmpi", "4.1.4", OMPI_INFO)
    assert found == "fabrics=psm2,verbs,ucx ~romio ~lustre ~gpfs", "no schedulers: nobody looked"
    more = OMPI_INFO + MANAGED + "mca:io:romio321:version:x\nmca:fs:lustre:version:x\n"
    found = mpi.built_variants("openmpi", "4.1.4", more, ("ufs", "lustre"))
    assert found == (
        "fabrics=psm2,verbs,ucx schedulers=slurm ~pmi +romio romio-filesystem=ufs,lustre "
        "+lustre ~gpfs"
    )
    bare = "ompi:version:full:4.1.4\n"
    assert mpi.built_variants("openmpi", "4.1.4", bare).startswith("fabrics=none ")
    assert mpi.built_variants("openmpi", "5.0.6", OMPI_INFO) == "", "the program of another MPI"
    assert mpi.built_variants("openmpi", "4.1.4", "") == ""


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("", "device=ch4 netmod=ofi +romio +hydra +slurm pmi=default ~cuda"),
        ("--disable-romio", "device=ch4 netmod=ofi ~romio +hydra +slurm pmi=default ~cuda"),
        ("--with-pmi=pmi2/simple", "device=ch4 netmod=ofi +romio +hydra +slurm pmi=pmi2 ~cuda"),
        ("--with-pmix=/usr", "device=ch4 netmod=ofi +romio +hydra +slurm pmi=pmix ~cuda"),
        ("--with-pmi=oddity --with-pm=no", "device=ch4 netmod=ofi +romio ~hydra +slurm ~cuda"),
    ],
)
def test_the_variants_of_mpich_are_those_of_its_configure(words: str, expected: str) -> None:
    assert mpi.built_variants("mpich", "4.3.0", MPICHVERSION.format(words)) == expected


def test_the_variants_of_mvapich2_are_those_of_mpiname() -> None:
    assert mpi.built_variants("mvapich2", "2.3.7", MPINAME) == (
        "fabrics=mrail file_systems=lustre,nfs,ufs threads=multiple process_managers=hydra"
    )
    assert mpi.built_variants("intel-oneapi-mpi", "2021.11", MPINAME) == ""


def test_the_drivers_of_romio_are_those_of_its_functions() -> None:
    content = b"\0ADIOI_UFS_OPEN\0ADIO_LUSTRE_operations\0ADIOI_GEN_ReadContig\0lustre: gpfs:\0"
    assert mpi.romio_drivers(content) == ("ufs", "lustre")
    assert mpi.romio_drivers(b"") == ()


def prefix_at(folder: Path, header: str = "include/mpi.h", text: str = OPEN_MPI) -> Path:
    """Write a prefix of an MPI, with ``lib64`` and a program that states how it was built."""
    for name, content in {
        "bin/mpicc": "",
        header: text,
        "lib64/libmpi.so.40": "",
        "bin/ompi_info": "#!/bin/sh\necho ompi:version:full:5.0.6\necho mca:mtl:ofi:x\n",
    }.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        path.chmod(0o755)
    return folder


@pytest.mark.parametrize("header", ["include", "include/x86_64-linux-gnu", "lib64/openmpi/include"])
@pytest.mark.parametrize("choice", ["", "/bin", "/bin/mpicc", "/"])
def test_a_prefix_is_used_as_it_is_given(tmp_path: Path, header: str, choice: str) -> None:
    prefix = prefix_at(tmp_path / "openmpi-5.0.6", f"{header}/mpi.h")
    folder = programs_of_choice(f"{prefix}{choice}")
    assert folder == prefix / "bin"
    found = find_mpis(Path("/"), "x86_64", [str(folder)])
    part = choose_mpi(found, f"{prefix}{choice}")
    assert part is not None
    assert (part.label, part.prefix) == ("openmpi@5.0.6", str(prefix))
    assert with_build(Path("/"), part).variants == "fabrics=ofi ~romio ~lustre ~gpfs"


def test_a_prefix_of_links_stays_the_prefix(tmp_path: Path) -> None:
    prefix_at(tmp_path / "store/abc")
    prefix = tmp_path / "opt/openmpi"
    (prefix / "bin").mkdir(parents=True)
    (prefix / "bin/mpicc").symlink_to(tmp_path / "store/abc/bin/mpicc")
    (prefix / "include").symlink_to(tmp_path / "store/abc/include")
    (tmp_path / "opt/default").symlink_to(prefix)
    for choice in (prefix, tmp_path / "opt/default"):
        part = choose_mpi(find_mpis(Path("/"), "x86_64", [f"{choice}/bin"]), str(choice))
        assert part is not None
        assert (part.label, part.prefix) == ("openmpi@5.0.6", str(choice))


def test_a_path_without_an_mpi_says_what_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"no such folder; accepted: a prefix with bin/mpicc"):
        programs_of_choice(str(tmp_path / "missing"))
    (tmp_path / "bin").mkdir()
    with pytest.raises(BadInput, match=r"no bin/mpicc in it; accepted: .* include/mpi.h"):
        programs_of_choice(str(tmp_path))
    (tmp_path / "bin/mpicc").write_text("")
    found = find_mpis(Path("/"), "x86_64", [str(tmp_path / "bin")])
    with pytest.raises(BadInput, match=r"no mpi.h; accepted: include/mpi.h in its prefix"):
        choose_mpi(found, str(tmp_path))
    assert programs_of_choice("openmpi@4.1.4") is None


def lock_of(folder: Path, version: str, prefix: Path) -> Path:
    """Write the lock of a site with a program that uses an MPI of the site."""
    arch = {"platform": "linux", "platform_os": "debian12", "target": "x86_64"}
    edge = {"hash": "m", "parameters": {"deptypes": ["link"], "virtuals": ["mpi"]}}
    specs = {
        "i": {"name": "imb", "version": "1", "arch": arch, "dependencies": [edge]},
        "m": {"name": "openmpi", "version": version, "arch": arch}
        | {"external": {"path": str(prefix), "module": None}},
    }
    path = folder / "locks/local/debian12/spack.lock"
    path.parent.mkdir(parents=True)
    roots = [{"hash": "i", "spec": "imb"}]
    path.write_text(json.dumps({"roots": roots, "concrete_specs": specs}))
    return path


@pytest.mark.fault("mpi-of-another-release")
def test_a_lock_with_another_release_than_its_prefix_is_refused(tmp_path: Path) -> None:
    prefix = prefix_at(tmp_path / "openmpi-5.0.6")
    same = read_lock(lock_of(tmp_path / "same", "5.0.6", prefix))
    check_installed_mpi(same, ["imb"])
    edited = read_lock(lock_of(tmp_path / "edited", "5.0.9", prefix))
    with pytest.raises(BadInput, match=r"found openmpi@5\.0\.6; accepted: openmpi@5\.0\.9, .*lock"):
        check_installed_mpi(edited, ["imb"])
    shutil.rmtree(prefix)
    with pytest.raises(BadInput, match="found no MPI with bin/mpicc"):
        check_installed_mpi(same, ["imb"])


def spec(name: str, version: str) -> Spec:
    """Return an external of a lock."""
    return Spec(name, version, "h", "x86_64", name, external=True, run=(), build=())


def test_a_program_with_another_mpi_than_its_spec_is_refused() -> None:
    states = {Path("/usr/lib/libmpi.so.40"): "Open MPI v4.1.4, package: Debian OpenMPI"}
    assert mpi_mistakes("/bin/IMB-MPI1", states, spec("openmpi", "4.1.4")) == []
    for wanted in (spec("openmpi", "4.1.9"), spec("mpich", "4.1.4")):
        (mistake,) = mpi_mistakes("/bin/IMB-MPI1", states, wanted)
        assert mistake.found == "openmpi@4.1.4 (/usr/lib/libmpi.so.40)"
        assert mistake.accepted.startswith(wanted.label)
    assert mpi_mistakes("/bin/x", states, spec("hpcx-mpi", "2.18")) == [], "its own numbers"


def has_headers() -> bool:
    """Return whether a program can be compiled with an MPI: Debian has its headers apart."""
    compiler = shutil.which("mpicc")
    line = [f"{compiler}", "-E", "-include", "mpi.h", "-x", "c", "/dev/null"]
    return compiler is not None and not subprocess.run(line, capture_output=True).returncode


@pytest.mark.skipif(not has_headers(), reason="this system has no headers of an MPI")
def test_a_real_mpi_states_its_release_and_its_header_has_the_same(tmp_path: Path) -> None:
    source, program = tmp_path / "a.c", tmp_path / "a"
    source.write_text("#include <mpi.h>\nint main(void) { return MPI_Finalize(); }\n")
    compiler = Path(str(shutil.which("mpicc")))
    subprocess.run([compiler, source, "-o", program], check=True)
    listed = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout
    files = [
        Path(line.split()[2]) for line in listed.splitlines() if mpi.LIBRARY.match(line.strip())
    ]
    stated = {mpi.release_of(mpi.library_states(file)) for file in files}
    found = find_mpis(Path("/"), os.uname().machine, [str(compiler.parent)])
    assert stated & {(part.package, part.version) for part in found if not part.problem}
