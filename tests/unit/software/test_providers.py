"""Parts of the providers that need no builder: locks, progress, programs, modules."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from tests.folders import ROOT

from proofmark.common.errors import BadInput
from proofmark.site.partition import Preinstalled
from proofmark.software.installed import find_programs, preinstalled
from proofmark.software.providers.easybuild import read_plan
from proofmark.software.spack.lock_check import read_target
from proofmark.software.spack.lock_file import (
    Lock,
    Spec,
    derived_parts,
    lock_changes,
    read_lock,
)

LOCKS = sorted((ROOT / "environments").glob("*/*/spack.lock"))


def spec(name: str, run: tuple[str, ...] = (), build: tuple[str, ...] = ()) -> Spec:
    """Return a spec whose hash is its name."""
    return Spec(name, "1.0", name, "zen3", f"{name}@1.0", False, run, build)


def lock(*specs: Spec) -> Lock:
    return Lock(Path("spack.lock"), {each.hash: each for each in specs}, {"ior": "ior"})


IOR = lock(
    spec("ior", ("mpich",), ("automake",)),
    spec("mpich", ("zlib",), ("python",)),
    spec("zlib"),
    spec("automake", (), ("perl",)),
    spec("perl"),
    spec("python", ("zlib",)),
)


def names(specs: list[Spec]) -> list[str]:
    return [each.name for each in specs]


def test_dependencies_are_installed_first_and_a_build_needs_build_dependencies() -> None:
    assert names(IOR.missing(["ior"], ())) == [
        "perl",
        "automake",
        "zlib",
        "python",
        "mpich",
        "ior",
    ]


def test_an_installed_spec_needs_no_build_dependencies() -> None:
    assert names(IOR.missing(["ior"], {"mpich", "zlib"})) == ["perl", "automake", "ior"]
    assert IOR.missing(["ior"], {"ior", "mpich", "zlib"}) == []


@given(st.sets(st.sampled_from(sorted(IOR.specs))))
def test_each_missing_spec_is_listed_once_and_after_its_dependencies(installed: set[str]) -> None:
    missing = names(IOR.missing(["ior"], installed))
    assert len(missing) == len(set(missing))
    assert not set(missing) & installed
    for position, name in enumerate(missing):
        dependencies = {*IOR.specs[name].run, *IOR.specs[name].build}
        assert dependencies <= {*missing[:position], *installed}


def test_a_package_that_the_lock_lacks_is_named() -> None:
    with pytest.raises(BadInput, match="no package 'iro'; accepted"):
        IOR.missing(["iro"], ())


@cache
def packages_of_cases() -> set[str]:
    cases = (ROOT / "benchmarks").glob("*.yml")
    return {yaml.load(path.read_text(), yaml.CSafeLoader).get("package") for path in cases}


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.parent.parent.name)
def test_each_committed_lock_has_the_packages_of_the_cases(path: Path) -> None:
    committed = read_lock(path)
    packages = packages_of_cases() & {"hpl", "ior", "npb", "stream"}
    specs = committed.missing(packages, ())
    assert {"compiler-wrapper", *packages} <= set(names(specs))
    assert not {"gcc", "glibc"} & set(names(specs))
    assert {each.target for each in specs} == {read_target(path.parents[1])}


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: f"{path.parts[-3]}-{path.parts[-2]}")
def test_the_mpi_and_the_threads_of_the_blas_are_read_from_a_committed_lock(path: Path) -> None:
    committed = read_lock(path)
    hpl = committed.root("hpl")
    threads = committed.specs[hpl.virtuals["blas"]].threads
    assert threads == ("openmp" if "+openmp" in hpl.requested else "none")
    assert committed.specs[hpl.virtuals["mpi"]].name in ("mpich", "mvapich2", "openmpi")


def test_the_requested_spec_of_a_root_has_the_version_of_the_lock() -> None:
    local = read_lock(ROOT / "environments/local/debian12/spack.lock")
    assert local.root("hpl").requested == "hpl@2.3~openmp target=x86_64_v3"
    assert local.root("ior").requested == "ior@4.0.0 target=x86_64_v3"


def test_the_packages_that_differ_between_two_locks_are_listed() -> None:
    """zen3 builds none of the packages of local; both have the same gcc of Debian."""
    zen3 = read_lock(ROOT / "environments/zen3/debian12/spack.lock")
    local = read_lock(ROOT / "environments/local/debian12/spack.lock")
    assert lock_changes(zen3, zen3) == {}
    changes = lock_changes(local, zen3)
    assert changes["hpl"] == (["2.3"], ["2.3"])
    before, after = changes["libfabric"]
    assert before and after == []
    assert lock_changes(zen3, local)["libfabric"] == (after, before)


def test_a_file_that_is_not_a_lock_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "spack.lock"
    with pytest.raises(BadInput, match="No such file"):
        read_lock(path)
    for text in ("{", "{}", '{"roots": [{"hash": "x", "spec": "y"}], "concrete_specs": {}}'):
        path.write_text(text)
        with pytest.raises(BadInput):
            read_lock(path)


def built(spec_hash: str, mpi: str, *run: str) -> Spec:
    """Return the root ior with the MPI `mpi` and the other libraries `run`."""
    build = ("gcc", "automake")
    spec = Spec("ior", "4.0", spec_hash, "zen3", "ior@4.0", False, (*run, mpi), build)
    return replace(spec, virtuals={"mpi": mpi})


def test_a_program_of_the_kit_is_not_derived_and_others_name_what_they_load() -> None:
    """Build tools, and the build tools of build tools, are not named."""
    kit = Lock(
        Path("spack.lock"),
        {
            each.hash: each
            for each in (
                built("ior", "mpich", "zlib"),
                *(spec(name) for name in ("mpich", "zlib", "gcc", "automake")),
            )
        },
        {"ior": "ior"},
    )
    of_site = Spec("openmpi", "4.1", "openmpi", "zen3", "", True, (), (), "/usr/lib64/openmpi")
    automake = Spec("automake", "0.9", "automake", "zen3", "", True, (), (), "/usr")
    libraries = (spec("zlib"), of_site, spec("gcc"), automake)
    derived = built("other", "openmpi", "zlib")
    site = Lock(
        Path("spack.lock"), {each.hash: each for each in (derived, *libraries)}, {"ior": "other"}
    )
    assert derived_parts(kit, kit, "ior") is None
    parts = derived_parts(kit, site, "ior")
    assert parts is not None
    (part,) = parts
    assert (part.role, part.package, part.version) == ("mpi", "openmpi", "4.1")
    assert (part.kit, part.prefix) == ("mpich@1.0", "/usr/lib64/openmpi")
    assert str(part) == ("MPI openmpi 4.1 of the site in /usr/lib64/openmpi, instead of mpich@1.0")
    same = Lock(Path("x"), {**kit.specs, "other": built("other", "mpich")}, {"ior": "other"})
    assert derived_parts(kit, same, "ior") == [], "other tools, or other variants"


def program(folder: Path, name: str, mode: int = 0o755) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).touch()
    (folder / name).chmod(mode)


def test_programs_are_found_in_subfolders_and_by_the_name_of_the_builder(tmp_path: Path) -> None:
    program(tmp_path / "bin", "stream")
    program(tmp_path / "libexec/osu-micro-benchmarks/mpi/pt2pt", "osu_bw")
    paths = find_programs(tmp_path, ["stream_c", "osu_bw"], {"stream_c": "stream"})
    assert paths["stream_c"] == f"{tmp_path}/bin/stream"
    assert paths["osu_bw"].endswith("pt2pt/osu_bw")


@pytest.mark.fault("program-missing")
def test_all_missing_programs_are_named(tmp_path: Path) -> None:
    program(tmp_path / "bin", "xhpl", 0o644)
    program(tmp_path / "bin", "ior")
    with pytest.raises(BadInput) as raised:
        find_programs(tmp_path, ["xhpl", "iorr"], {})
    assert "no program 'xhpl'" in str(raised.value)
    assert "no program 'iorr', did you mean 'ior'?" in str(raised.value)


def test_paths_and_environment_of_the_inventory_replace_the_defaults() -> None:
    entry = Preinstalled(
        prefix="/opt/hpl",
        version="2.3",
        programs={"xhpl": "/apps/xhpl"},
        modules=["mpi"],
        environment={"MPI_HOME": "/mine"},
        target="mic_knl",
    )
    module_output = {"hpl": "set MPI_HOME=/opt/mpi\nset B=1\n"}
    programs = {"hpl": {"xhpl", "other"}}
    package = preinstalled({"hpl": entry}, programs, module_output).packages["hpl"]
    assert package.programs == {"xhpl": "/apps/xhpl", "other": "/opt/hpl/bin/other"}
    assert package.environment == {"MPI_HOME": "/mine", "B": "1"}
    assert package.target == "mic_knl"


def test_a_package_that_the_inventory_does_not_name_is_refused() -> None:
    entry = Preinstalled(prefix="/opt/hpl", version="2.3")
    with pytest.raises(BadInput) as raised:
        preinstalled({"hpl": entry}, {"hp": {"xhpl"}}, {})
    assert str(raised.value) == (
        "partition.preinstalled: hp: found no entry for this package; "
        "accepted: its prefix and version (entries: hpl)"
    )


def test_an_unknown_target_of_a_preinstalled_package_is_refused() -> None:
    with pytest.raises(ValidationError, match="did you mean 'mic_knl'"):
        Preinstalled(prefix="/opt/hpl", version="2.3", target="mic_knk")


def test_the_dry_run_of_easybuild_is_read() -> None:
    text = (
        "== found valid index\n"
        " * [x] /e/GCC-13.2.0.eb (module: GCC/13.2.0)\n"
        " * [ ] /e/OSU-Micro-Benchmarks-7.2.eb (module: OSU-Micro-Benchmarks/7.2-gompi-2023b)\n"
    )
    first, second = read_plan(text)
    assert (first.name, first.installed) == ("GCC", True)
    assert (second.name, second.version, second.installed) == (
        "OSU-Micro-Benchmarks",
        "7.2-gompi-2023b",
        False,
    )


def test_the_solver_has_the_same_version_in_both_pins() -> None:
    pins = yaml.safe_load((ROOT / "environments/common/spack-pins.yaml").read_text())
    pin = f"clingo=={pins['python']['clingo']} "
    assert pin in (ROOT / "requirements/spack.txt").read_text()
