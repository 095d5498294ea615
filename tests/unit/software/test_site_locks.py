"""The parts of a site for its lock: layouts of distributions and vendors, choices, spack.yaml."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from tests.folders import ROOT

from proofmark.common.errors import BadInput
from proofmark.software.spack.lock_check import read_environment, read_spack_yaml
from proofmark.software.spack.lock_file import AbstractSpec, Spec
from proofmark.software.spack.mpi_and_blas import blas_mistakes, read_ldd
from proofmark.software.spack.site_choice import (
    SiteParts,
    archive_version,
    choose_blas,
    choose_compiler,
    choose_mpi,
    environment_text,
    read_found,
    site_environment,
    wanted_blas,
)
from proofmark.software.spack.site_parts import (
    Problem,
    SitePart,
    find_blas,
    find_mpis,
    openblas_of,
)

OPEN_MPI = """
#define OMPI_MAJOR_VERSION 4
#define OMPI_MINOR_VERSION 1
#define OMPI_RELEASE_VERSION 4
"""
MPICH = '#define MPICH_VERSION "4.0.2"\n'
SERIAL = b"\x7fELF OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH NO_AFFIN SINGLE_THREADED\x00"
PTHREADS = SERIAL + b"exec_blas_async\x00"
OPENMP = b"\x7fELF OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH NO_AFFINITY USE_OPENMP \x00"

LAYOUTS = {
    "debian": (
        {
            "usr/bin/mpicc.openmpi": "",
            "usr/bin/mpicc": "/etc/alternatives/mpi",
            "etc/alternatives/mpi": "/usr/bin/mpicc.openmpi",
            "usr/lib/x86_64-linux-gnu/openmpi/include/mpi.h": OPEN_MPI,
        },
        SitePart("openmpi", "4.1.4", "/usr", file="/usr/bin/mpicc.openmpi"),
    ),
    "rhel": (
        {
            "usr/lib64/mpich/bin/mpicc": "",
            "usr/include/mpich-x86_64/mpi.h": MPICH,
        },
        SitePart(
            *("mpich", "4.0.2", "/usr/lib64/mpich"),
            file="/usr/lib64/mpich/bin/mpicc",
            modules=("mpi/mpich-x86_64",),
        ),
    ),
    "suse": (
        {
            "usr/lib64/mpi/gcc/openmpi4/bin/mpicc": "",
            "usr/lib64/mpi/gcc/openmpi4/include/mpi.h": OPEN_MPI,
        },
        SitePart(
            *("openmpi", "4.1.4", "/usr/lib64/mpi/gcc/openmpi4"),
            file="/usr/lib64/mpi/gcc/openmpi4/bin/mpicc",
        ),
    ),
    "intel": (
        {
            "opt/intel/oneapi/mpi/2021.11/bin/mpicc": "",
            "opt/intel/oneapi/mpi/2021.11/include/mpi.h": '#define I_MPI_VERSION "2021.11.0"\n'
            + MPICH,
        },
        SitePart(
            *("intel-oneapi-mpi", "2021.11.0", "/opt/intel/oneapi"),
            variants="+generic-names~classic-names~external-libfabric",
            file="/opt/intel/oneapi/mpi/2021.11/bin/mpicc",
        ),
    ),
    "cray": (
        {
            "opt/cray/pe/mpich/8.1.28/ofi/gnu/12.3/bin/mpicc": "",
            "opt/cray/pe/mpich/8.1.28/ofi/gnu/12.3/include/mpi.h": MPICH,
            "opt/cray/pe/mpich/8.1.28/ofi/cray/17.0/bin/mpicc": "",
        },
        SitePart(
            *("cray-mpich", "8.1.28", "/opt/cray/pe/mpich/8.1.28/ofi/gnu/12.3"),
            variants="+wrappers",
            file="/opt/cray/pe/mpich/8.1.28/ofi/gnu/12.3/bin/mpicc",
        ),
    ),
    "hpc-x": (
        {
            "opt/hpcx-v2.18-gcc-cuda12-x86_64/ompi/bin/mpicc": "",
            "opt/hpcx-v2.18-gcc-cuda12-x86_64/ompi/include/mpi.h": OPEN_MPI,
        },
        SitePart(
            *("hpcx-mpi", "2.18", "/opt/hpcx-v2.18-gcc-cuda12-x86_64/ompi"),
            file="/opt/hpcx-v2.18-gcc-cuda12-x86_64/ompi/bin/mpicc",
        ),
    ),
}


def lay_out(root: Path, entries: dict[str, str]) -> Path:
    """Write files below `root`; an absolute path as content makes a link."""
    for name, content in entries.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if content.startswith("/"):
            path.symlink_to(content)
        else:
            path.write_text(content)
    return root


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_mpi_of_each_layout_is_found_with_version_and_prefix(
    tmp_path: Path, layout: str
) -> None:
    entries, expected = LAYOUTS[layout]
    assert find_mpis(lay_out(tmp_path, entries), "x86_64") == [expected]


def test_an_mpi_of_a_module_is_found_through_path_once(tmp_path: Path) -> None:
    entries = {"apps/openmpi/4/bin/mpicc": "", "apps/openmpi/4/include/mpi.h": OPEN_MPI}
    root = lay_out(tmp_path, {**entries, **LAYOUTS["debian"][0]})
    folders, modules = ["/apps/openmpi/4/bin", "/usr/bin", "/missing"], ["openmpi/4"]
    found = find_mpis(root, "x86_64", folders, modules)
    assert [(part.prefix, part.modules) for part in found] == [
        ("/apps/openmpi/4", ("openmpi/4",)),
        ("/usr", ("openmpi/4",)),
    ]


def test_the_mpi_that_update_alternatives_did_not_select_is_refused(tmp_path: Path) -> None:
    other = {"usr/bin/mpicc.mpich": "", "usr/include/x86_64-linux-gnu/mpich/mpi.h": MPICH}
    found = find_mpis(lay_out(tmp_path, {**LAYOUTS["debian"][0], **other}), "x86_64")
    assert [(part.label, part.problem) for part in found] == [
        ("mpich@4.0.2", Problem.NOT_SELECTED),
        ("openmpi@4.1.4", None),
    ]
    assert choose_mpi(found, "") == found[1]
    usable = [replace(part, problem=None) for part in found]
    with pytest.raises(BadInput, match=r"found mpich@4.0.2 .*; openmpi@4.1.4 .*--mpi PACKAGE"):
        choose_mpi(usable, "")
    with pytest.raises(BadInput, match=r"update-alternatives --set mpi /usr/bin/mpicc\.mpich"):
        choose_mpi(found, "mpich")
    assert choose_mpi(found, "openmpi") == found[1]
    assert choose_mpi(found, "kit") is None
    with pytest.raises(BadInput, match="found lam"):
        choose_mpi(found, "lam")


def test_an_mpi_without_headers_names_the_packages_that_have_them(tmp_path: Path) -> None:
    found = find_mpis(lay_out(tmp_path, {"usr/lib64/mpich/bin/mpicc": ""}), "x86_64")
    with pytest.raises(BadInput, match=r"no mpi\.h; accepted: .*mpich-devel"):
        choose_mpi(found, "")
    with pytest.raises(BadInput, match=r"no mpicc in PATH.*; accepted: a prefix with bin/mpicc"):
        choose_mpi([], "")


@pytest.mark.parametrize(
    ("content", "threads"), [(SERIAL, "none"), (PTHREADS, "pthreads"), (OPENMP, "openmp")]
)
def test_the_threads_of_an_openblas_are_those_of_its_file(content: bytes, threads: str) -> None:
    assert openblas_of(content) == ("0.3.21", threads)


def wanted(package: str, threads: str) -> AbstractSpec:
    """Return the BLAS that an environment requires."""
    return AbstractSpec.parse(f"{package} threads={threads}")


def blas_tree(root: Path) -> Path:
    """Write the serial and the pthreads library of Debian, and MKL."""
    for name, content in (("serial", SERIAL), ("pthread", PTHREADS)):
        folder = root / f"usr/lib/x86_64-linux-gnu/openblas-{name}"
        folder.mkdir(parents=True)
        (folder / "libopenblas-r0.3.21.so").write_bytes(content)
        (folder / "libopenblas.so").symlink_to("libopenblas-r0.3.21.so")
    mkl = root / "opt/intel/oneapi/mkl/2024.0/lib/libmkl_core.so"
    mkl.parent.mkdir(parents=True)
    mkl.write_bytes(b"")
    return root


def test_the_blas_is_chosen_by_the_threads_that_hpl_needs(tmp_path: Path) -> None:
    found = find_blas(blas_tree(tmp_path))
    serial = choose_blas(found, wanted("openblas", "none"), "")
    assert serial is not None
    assert serial.spec == "openblas@0.3.21 threads=none"
    assert serial.prefix == "/usr/lib/x86_64-linux-gnu/openblas-serial"
    assert choose_blas(found, wanted("openblas", "openmp"), "") is None, "it is built"
    assert choose_blas(found, wanted("blis", "none"), "") is None, "another library is no BLIS"
    mkl = choose_blas(found, wanted("blis", "openmp"), "intel-oneapi-mkl")
    assert mkl is not None
    assert (mkl.spec, mkl.prefix) == (
        "intel-oneapi-mkl@2024.0 threads=openmp %gcc",
        "/opt/intel/oneapi",
    )
    pthread = "/usr/lib/x86_64-linux-gnu/openblas-pthread"
    with pytest.raises(BadInput, match=r"found threads=pthreads; accepted: threads=none"):
        choose_blas(found, wanted("openblas", "none"), pthread)


VENDORS = {
    "mkl": (
        "opt/intel/oneapi/mkl/2025.3/lib/libmkl_core.so",
        "intel-oneapi-mkl@2025.3 threads=openmp %gcc",
        "/opt/intel/oneapi",
    ),
    "mkl-2023": (
        "opt/intel/oneapi/mkl/2023.2.0/lib/intel64/libmkl_core.so",
        "intel-oneapi-mkl@2023.2.0 threads=openmp %gcc",
        "/opt/intel/oneapi",
    ),
    "aocl": (
        "opt/AMD/aocl/aocl-linux-gcc-5.1.0/gcc/lib_LP64/libblis-mt.so",
        "amdblis@5.1.0 threads=openmp",
        "/opt/AMD/aocl/aocl-linux-gcc-5.1.0/gcc/lib_LP64",
    ),
    "aocl-tar": (
        "opt/AMD/aocl/4.2.0/gcc/lib_LP64/libblis-mt.so",
        "amdblis@4.2.0 threads=openmp",
        "/opt/AMD/aocl/4.2.0/gcc/lib_LP64",
    ),
    "armpl": (
        "opt/arm/armpl_24.10_gcc/lib/libarmpl_lp64_mp.so",
        "armpl-gcc@24.10 threads=openmp ~examples",
        "/opt/arm",
    ),
    "armpl-2023": (
        "opt/arm/armpl_23.10_gcc-12.2/lib/libarmpl_lp64_mp.so",
        "armpl-gcc@23.10_gcc-12.2 threads=openmp ~examples",
        "/opt/arm",
    ),
    "nvpl": (
        "opt/nvidia/hpc_sdk/Linux_aarch64/25.7/math_libs/nvpl/lib/libnvpl_blas_core.so.0.4.1",
        "nvpl-blas@0.4.1 threads=openmp",
        "/opt/nvidia/hpc_sdk/Linux_aarch64/25.7/math_libs/nvpl",
    ),
    "essl": (
        "opt/ibmmath/essl/6.3/lib64/libessl.so",
        "essl@6.3 threads=none",
        "/opt/ibmmath/essl/6.3",
    ),
}
"""A file of each library of a vendor, and the external that follows."""


@pytest.mark.parametrize("vendor", VENDORS)
@pytest.mark.parametrize("mpi", ["intel", "cray", "hpc-x"])
def test_the_stack_of_a_vendor_becomes_externals(tmp_path: Path, vendor: str, mpi: str) -> None:
    file, spec, prefix = VENDORS[vendor]
    root = lay_out(tmp_path, {**LAYOUTS[mpi][0], file: ""})
    if vendor == "nvpl":
        (root / file).with_suffix("").with_suffix("").with_suffix("").symlink_to(Path(file).name)
    (root / file).parent.parent.with_name("latest").symlink_to((root / file).parent.parent)
    (found,) = find_blas(root)
    threads = "none" if vendor == "essl" else "openmp"
    chosen = choose_blas([found], wanted("openblas", threads), found.package)
    assert chosen is not None
    assert (chosen.spec, chosen.prefix) == (spec, prefix)
    assert choose_blas([found], wanted("openblas", threads), "") is None, "it must be named"
    part = choose_mpi(find_mpis(root, "x86_64"), "")
    assert part == LAYOUTS[mpi][1]
    kit = read_spack_yaml(ROOT / "environments/neoverse_v2/spack.yaml")
    packages = site_environment(kit, SiteParts(part, chosen, ()))["packages"]
    for virtual, each in (("mpi", part), ("blas", chosen)):
        assert packages[virtual] == {"require": [each.spec]}
        external = {"spec": each.spec, "prefix": each.prefix}
        required = {"require": f"@{each.version}", "externals": [external]}
        assert packages[each.package] == {"buildable": False, **required}


def test_a_library_of_a_vendor_without_the_threads_of_hpl_is_refused(tmp_path: Path) -> None:
    found = find_blas(lay_out(tmp_path, {VENDORS["essl"][0]: ""}))
    with pytest.raises(BadInput, match=r"found threads=none; accepted: threads=openmp, which HPL"):
        choose_blas(found, wanted("openblas", "openmp"), "essl")


PACKAGES = """
packages:
  automake:
    externals:
    - {spec: automake@1.16.5, prefix: /usr}
    - {spec: automake@1.9, prefix: /opt}
  perl:
    externals:
    - {spec: perl@5.36.0~cpanm+opcode, prefix: /usr}
  gcc:
    externals:
    - spec: "gcc@12.2.0 languages:='c,c++,fortran'"
      prefix: /usr
    - spec: "gcc@13.1.0 languages:='c,c++,fortran'"
      prefix: /opt/gcc
"""


def test_the_newest_of_each_tool_is_used() -> None:
    found = read_found(PACKAGES, archive_version("20220903-3"))
    specs = ["automake@1.16.5", "perl@5.36.0 ~cpanm +opcode", "autoconf-archive@2022.09.03"]
    assert [part.spec for part in found.tools] == specs


def test_the_gcc_of_the_kit_is_preferred_and_another_is_chosen_by_name() -> None:
    compilers = read_found(PACKAGES).compilers
    assert choose_compiler(compilers, compilers[0], "") is None
    assert choose_compiler(compilers, compilers[0], "gcc@13.1.0") == compilers[1]
    assert choose_compiler(compilers[1:], compilers[0], "") == compilers[1]
    with pytest.raises(BadInput, match=r"gcc@12\.2\.0 .*gcc@13\.1\.0"):
        choose_compiler(compilers, None, "")


@pytest.mark.parametrize("arch", ["local", "knl", "skl", "power9"])
def test_the_spack_yaml_of_a_site_requests_the_same_programs(tmp_path: Path, arch: str) -> None:
    folder = ROOT / "environments" / arch
    kit = read_spack_yaml(folder / "spack.yaml")
    mpi = SitePart("openmpi", "4.1.4", "/usr")
    blas = SitePart("openblas", "0.3.21", "/opt/b", f"threads={wanted_blas(kit).value('threads')}")
    found = read_found(PACKAGES)
    parts = SiteParts(mpi, blas, found.tools, found.compilers[1])
    path = tmp_path / "spack.yaml"
    path.write_text(environment_text(arch, "debian12", site_environment(kit, parts)))
    site, ours = read_environment(folder, "debian12", path), read_environment(folder, "debian12")
    assert (site.roots, site.target) == (ours.roots, ours.target)
    assert site.externals["openmpi"] == ("/usr",)
    packages = yaml.safe_load(path.read_text())["spack"]["packages"]
    assert packages["mpi"] == {"require": ["openmpi@4.1.4"]}
    assert packages["blas"] == {"require": [blas.spec]}
    assert packages["gcc"]["require"] == ["@13.1.0"]
    assert "libfabric" not in packages
    assert packages["all"] == kit["packages"]["all"]


@pytest.mark.parametrize(
    ("text", "package", "version", "variants", "others"),
    [
        ("ior", "ior", "", (), ""),
        ("hpl@=2.3+openmp", "hpl", "2.3", ("openmp",), ""),
        ("mpich device=ch4 netmod=ofi", "mpich", "", ("device", "netmod"), ""),
        ("target=zen3", "", "", ("target",), ""),
        ("@4.0:5 ~~lustre", "", "4.0:5", ("lustre",), ""),
        ("a@1 languages:='c,c++' -x y==1 %gcc@12+z ^b=2", "a", "1", ("languages", "x", "y"), "%g"),
        ('a cflags="-O3 -x=+y" +b', "a", "", ("cflags", "b"), ""),
    ],
)
def test_the_words_of_a_spec(
    text: str, package: str, version: str, variants: tuple[str, ...], others: str
) -> None:
    spec = AbstractSpec.parse(text)
    assert (spec.package, spec.version, tuple(spec.variants)) == (package, version, variants)
    assert spec.others.startswith(others) and bool(spec.others) == bool(others)
    assert AbstractSpec.parse(f"{spec}") == spec


def test_a_fact_is_the_value_of_the_variant_of_its_whole_name_alone() -> None:
    """Neither a part of a name, nor a key or another text of the file, is a variant."""
    kit = read_spack_yaml(ROOT / "environments/skl/spack.yaml")
    other: dict[str, str | int | float] = {
        "array_size": 1,
        "filesystem": "ufs",
        "target": "zen3",
        "openmp": 0,
        "suite": 1,
    }
    same = site_environment(kit, SiteParts(None, None, (), facts=other))
    assert same == site_environment(kit, SiteParts(None, None, ()))
    sized = site_environment(kit, SiteParts(None, None, (), facts={"stream_array_size": 9}))
    assert sized["definitions"][1] == {
        "sized": ["hpl +openmp", "stream +openmp stream_array_size=9"]
    }
    assert {**sized, "definitions": kit["definitions"]} == same


LDD = """
    linux-vdso.so.1 (0x00007ffd)
    libopenblas.so.0 => {blas} (0x00007f)
    libmissing.so => not found
    libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f)
"""


def openblas_spec(threads: str = "none", version: str = "0.3.21", name: str = "openblas") -> Spec:
    return Spec(name, version, "b", "zen3", f"{name}@{version}", True, (), (), "/usr", threads)


def mistakes_of(folder: Path, content: bytes, wanted: Spec) -> list[str]:
    """Return the errors of a program that loads the library with `content`."""
    library = folder / "openblas-pthread/libopenblas.so.0"
    library.parent.mkdir()
    library.write_bytes(content)
    libraries = read_ldd(LDD.format(blas=library))
    assert set(libraries) == {"libopenblas.so.0", "libc.so.6"}
    return [str(each) for each in blas_mistakes("/p/bin/xhpl", libraries, wanted)]


@pytest.mark.parametrize(("content", "threads"), [(SERIAL, "none"), (OPENMP, "openmp")])
def test_a_program_that_loads_the_blas_of_its_spec_is_accepted(
    tmp_path: Path, content: bytes, threads: str
) -> None:
    assert mistakes_of(tmp_path, content, openblas_spec(threads)) == []


@pytest.mark.parametrize(
    ("file", "package", "accepted"),
    [
        ("libblis-mt.so.5", "amdblis", True),
        ("libblis-mt.so.5", "blis", True),
        ("libblis-mt.so.5", "armpl-gcc", False),
        ("libarmpl_lp64_mp.so", "armpl-gcc", True),
        ("libnvpl_blas_core.so.0", "nvpl-blas", True),
        ("libessl.so.1", "essl", True),
        ("libessl.so.1", "openblas", False),
    ],
)
def test_the_files_of_the_libraries_of_vendors(file: str, package: str, accepted: bool) -> None:
    libraries = {file: Path("/opt") / file}
    wanted = openblas_spec(name=package)
    assert (blas_mistakes("/p/bin/xhpl", libraries, wanted) == []) is accepted


@pytest.mark.fault("other-blas")
@pytest.mark.parametrize(
    ("content", "wanted", "found"),
    [
        (PTHREADS, openblas_spec(), r"openblas@0\.3\.21 threads=pthreads .*openblas-pthread"),
        (SERIAL, openblas_spec(version="0.3.28"), r"openblas@0\.3\.21 threads=none"),
        (SERIAL, openblas_spec(name="blis"), r"openblas \("),
    ],
)
def test_a_program_that_loads_another_blas_than_its_spec_is_refused(
    tmp_path: Path, content: bytes, wanted: Spec, found: str
) -> None:
    (mistake,) = mistakes_of(tmp_path, content, wanted)
    assert re.search(f"/p/bin/xhpl: BLAS: found {found}", mistake)
    assert f"accepted: {wanted.label} threads={wanted.threads}" in mistake
