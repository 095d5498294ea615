"""Programs, their libraries, and the digest of a package."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from pydantic import ValidationError
from tests.fixtures.probes import probe_text
from tests.folders import PACKAGE

from proofmark.cases.vocabulary import BLAS_KERNEL
from proofmark.common.errors import BadInput
from proofmark.site.node.facts import NodeFacts, parse_probe
from proofmark.software.installed import Provided
from proofmark.software.program import Program, parse_programs
from proofmark.software.software import Package, Software, package_of

PROBE = PACKAGE / "software/probe-program.sh"


def recorded(name: str) -> Program:
    return parse_programs(probe_text(f"program-{name}"), name)[0]


def facts() -> NodeFacts:
    return parse_probe(probe_text("live-kvm-zen3"), "live")


def hpcc(**programs: Program) -> Package:
    return package_of(
        programs or {"hpcc": recorded("hpcc-openblas")},
        facts(),
        "system",
        Provided(version="1.5.0", prefix="", programs={}),
    )


def probe(*programs: str, shell: Sequence[str] = ("sh",), **environment: str) -> str:
    done = subprocess.run(
        [*shell, PROBE, *programs],
        env={"PATH": os.environ["PATH"], **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout


def test_a_program_of_the_distribution_has_package_libraries_and_mpi() -> None:
    program = recorded("hpcc-openblas")
    assert (program.path, program.package) == ("/usr/bin/hpcc", "hpcc 1.5.0-3")
    assert program.sha256 is not None
    assert program.missing == ()
    libraries = {library.name: library for library in program.libraries}
    libm = libraries["libm.so.6"]  # its package lists it without the leading /usr
    assert (libm.path, libm.package) == (
        "/usr/lib/x86_64-linux-gnu/libm.so.6",
        "libc6:amd64 2.36-9+deb12u14",
    )
    assert all(library.sha256 for library in program.libraries)
    assert program.mpi is not None
    assert (program.mpi.family, program.mpi.version, program.launcher) == (
        "openmpi",
        "4.1.4",
        "openmpi",
    )


@pytest.mark.parametrize("name", ["plain", "my kit"])
def test_a_library_below_a_folder_with_a_blank_is_found(tmp_path: Path, name: str) -> None:
    prefix = tmp_path / name / "mpi"
    for file, content in {
        "lib/libmpi.so.12": "Intel(R) MPI Library",
        "bin/mpirun": "#!/bin/sh\necho Version 2021.18\n",
        "bin/ldd": "#!/bin/sh\n"
        "echo '\tlinux-vdso.so.1 (0x00007ffd)'\n"
        f"echo '\tlibmpi.so.12 => {prefix}/lib/libmpi.so.12 (0x00007f01)'\n"
        "echo '\tlibgone.so.1 => not found'\n"
        "echo '\t/lib64/ld-linux-x86-64.so.2 (0x00007f02)'\n",
    }.items():
        (prefix / file).parent.mkdir(parents=True, exist_ok=True)
        (prefix / file).write_text(content)
        (prefix / file).chmod(0o755)
    path = f"{prefix}/bin:{os.environ['PATH']}"
    program = parse_programs(probe("/bin/true", PATH=path), "probe")[0]
    assert program.mpi is not None
    assert (program.mpi.family, program.mpi.mpirun) == ("intel", f"{prefix}/bin/mpirun")
    assert [library.name for library in program.libraries] == [
        "ld-linux-x86-64.so.2",
        "libmpi.so.12",
    ]
    assert program.missing == ("libgone.so.1",)


def test_a_program_with_intel_mpi_has_the_launcher_hydra() -> None:
    program = recorded("imb-intel")
    assert program.mpi is not None
    assert (program.mpi.family, program.mpi.version) == ("intel", "2021.18.1")
    assert (program.launcher, program.blas) == ("hydra", None)
    assert program.package is None


@pytest.mark.parametrize("shell", [["dash"], ["busybox", "sh"], ["bash", "--posix"]])
def test_a_real_program_is_probed_in_every_shell(shell: list[str]) -> None:
    program = parse_programs(probe("busybox", shell=shell), "busybox")[0]
    assert Path(program.path).name.startswith("busybox")
    assert (program.blas, program.mpi, program.launcher) == (None, None, "plain")
    digest = subprocess.check_output(["sha256sum", program.path], text=True).split()[0]
    assert program.sha256 == digest


def test_all_missing_programs_are_named(tmp_path: Path) -> None:
    (tmp_path / "plain-text").write_text("no program")
    output = probe("no-such-program", "sh", str(tmp_path / "plain-text"))
    with pytest.raises(BadInput) as caught:
        parse_programs(output, "probe")
    assert [mistake.key for mistake in caught.value.mistakes] == ["no-such-program", "plain-text"]
    assert "no such program: no-such-program" in str(caught.value)


def test_a_probe_may_have_several_programs() -> None:
    assert [program.name for program in parse_programs(probe("sh", "cat"), "two")] == ["sh", "cat"]


def test_the_probe_of_a_node_is_refused() -> None:
    with pytest.raises(BadInput, match="accepted: kind 'program'"):
        parse_programs(probe_text("live-kvm-zen3"), "live")[0]


def test_a_probe_without_programs_is_refused() -> None:
    done = subprocess.run(["sh", PROBE], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (3, "")


def test_a_missing_library_is_a_finding() -> None:
    output = probe_text("program-hpcc-openblas").replace(
        "| libmpi.so.40: ", "! libraries.libmpi.so.40: not found by the dynamic linker\n| was: "
    )
    package = hpcc(hpcc=parse_programs(output, "probe")[0])
    assert package.programs["hpcc"].missing == ("libmpi.so.40",)
    assert "hpcc cannot start: libmpi.so.40 is not found" in package.findings[0]


def test_a_package_has_launcher_prefix_and_variants_of_its_programs() -> None:
    package = hpcc()
    assert (package.launcher, package.prefix, package.findings) == ("openmpi", "/usr", ())
    assert package.variants == {BLAS_KERNEL: {"as-installed": {}, "right": {}}}


def test_a_package_with_a_weak_kernel_has_two_choices() -> None:
    package = hpcc(hpcc=recorded("hpcc-prescott"))
    assert package.variants[BLAS_KERNEL]["right"] == {"OPENBLAS_CORETYPE": "ZEN"}
    assert "chose PRESCOTT" in package.findings[0]


def test_a_package_without_blas_has_no_variants() -> None:
    package = package_of(
        {"IMB-MPI1": recorded("imb-intel")},
        facts(),
        "preinstalled",
        Provided(
            version="2021.18.1", prefix="", programs={}, environment={"I_MPI_ROOT": "/opt/impi"}
        ),
    )
    assert (package.variants, package.launcher, package.prefix) == ({}, "hydra", "/opt/impi")


def test_software_is_equal_after_json() -> None:
    software = Software(packages={"hpcc": hpcc()})
    assert Software.model_validate_json(software.model_dump_json()) == software


def test_an_edited_file_does_not_load() -> None:
    written = Software(packages={"hpcc": hpcc()}).model_dump_json()
    edited = written.replace('"version":"1.5.0"', '"version":"1.5.1"')
    assert edited != written
    with pytest.raises(ValidationError, match="environment_hash does not match"):
        Software.model_validate_json(edited)


def test_the_digest_does_not_depend_on_paths_or_findings() -> None:
    moved = probe_text("program-hpcc-openblas").replace("/usr/", "/elsewhere/")
    package = hpcc(hpcc=parse_programs(moved, "moved")[0])
    assert package.programs["hpcc"].path == "/elsewhere/bin/hpcc"
    assert package.environment_hash == hpcc().environment_hash
    other = hpcc(hpcc=recorded("hpcc-prescott"))
    assert other.environment_hash == hpcc().environment_hash


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("39755153ae", "0000000000"),  # another program
        ("234bd1960c", "0000000000"),  # another OpenBLAS
        ("says: mpirun (Open MPI) 4.1.4", "says: mpirun (Open MPI) 4.1.5"),
        ("| libz.so.1: ", "| libz.so.2: "),
    ],
)
def test_the_digest_depends_on_programs_and_libraries(old: str, new: str) -> None:
    assert old in probe_text("program-hpcc-openblas")
    changed = probe_text("program-hpcc-openblas").replace(old, new)
    package = hpcc(hpcc=parse_programs(changed, "changed")[0])
    assert package.environment_hash != hpcc().environment_hash
    one, two = (Software(packages={"hpcc": each}) for each in (package, hpcc()))
    assert one.environment_hash != two.environment_hash
