"""Each shipped lock after its build: what its libraries and programs state passes each check.

Libraries are compiled that state the release and the threads of the lock, as the real ones do. Then
the whole installation of the lock is read: its programs, what they load, and their probes.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.folders import PROBES, ROOT

from proofmark.common.errors import BadInput
from proofmark.site.node.facts import parse_probe
from proofmark.software.installed import ProvisionRequest, spellings
from proofmark.software.program import LAUNCHERS, parse_programs
from proofmark.software.provision import installed_software
from proofmark.software.spack.install import install
from proofmark.software.spack.installation import STORE
from proofmark.software.spack.lock_file import Lock, Spec, read_lock
from proofmark.software.target import target_requirements

LOCKS = sorted((ROOT / "environments").glob("*/*/spack.lock"))
STATED = {
    "mvapich2": "MVAPICH2 Version      :\t{}\nMVAPICH2 Release date :\tMon June 20\n",
    "mpich": "MPICH Version:      {}\nMPICH Release date: Tue Nov 25\nMPICH ABI: 17:0:5\n",
    "openmpi": "Open MPI v{0}, package: Open MPI root@c1 Distribution, ident: {0}, repo rev: x\n",
}
"""What the library of each MPI of the locks states (MPI_Get_library_version)."""

STARTER = {
    "mvapich2": "HYDRA build details:\n    Version:                                 3.0.4",
    "mpich": "HYDRA build details:\n    Version:                                 {}",
    "openmpi": "mpirun (Open MPI) {}",
}
"""What ``mpirun --version`` prints; that of MVAPICH2 2.3 has the release of its hydra."""

DOUBTS = {"mpi-unread", "derived", "variants-unknown"}
"""Findings about a library that nobody read."""

PROGRAMS = {
    "hpl": {"xhpl"},
    "ior": {"ior"},
    "osu-micro-benchmarks": {"osu_bw"},
    "intel-mpi-benchmarks": {"IMB-MPI1"},
    "npb": {"bt.A.x.full"},
    "stream": {"stream_c"},
}
LIBRARY = """
#include <string.h>
const char text[] = "{text}";
int MPI_Get_library_version(char *to, int *n) {{ strcpy(to, text); return *n = strlen(to), 0; }}
int {function}(void) {{ return text[0]; }}
"""
"""One source of both libraries: a name is used only by that which has it."""

Compile = Callable[[Path, str], Path]


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Compile:
    """Return a function that compiles each source once, and copies the file to its place.

    Args of it: the file to write, and the source; libraries are linked by their names alone.
    """
    made: dict[tuple[str, str], Path] = {}

    def compile_once(target: Path, source: str) -> Path:
        key = (target.name if ".so" in target.name else "program", source)
        if key not in made:
            folder = tmp_path_factory.mktemp("compiled")
            (folder / "a.c").write_text(source)
            shared = ["-shared", "-fPIC", f"-Wl,-soname,{target.name}"]
            loaded = re.findall("// (.+)", source)  # empty ones: only their names are needed
            for name in loaded:
                words = [
                    "gcc",
                    "-shared",
                    "-x",
                    "c",
                    "/dev/null",
                    "-o",
                    name,
                    f"-Wl,-soname,{name}",
                ]
                subprocess.run(words, cwd=folder, check=True)
            program = ["-Wl,--no-as-needed", *loaded, "-Wl,-rpath,$ORIGIN/../../loaded/lib"]
            words = ["gcc", "a.c", "-o", "a", *(shared if ".so" in target.name else program)]
            subprocess.run(words, cwd=folder, check=True)
            made[key] = folder / "a"
        target.parent.mkdir(parents=True, exist_ok=True)
        return Path(shutil.copy(made[key], target))

    return compile_once


def part_of(lock: Lock, part: str) -> Spec:
    """Return the MPI or the BLAS of a lock."""
    return lock.specs[lock.root("hpl").virtuals[part]]


def libraries_of(prefix: Path, lock: Lock, compiled: Compile, release: str) -> dict[str, str]:
    """Write the MPI and the BLAS of a lock below `prefix`, as they state themselves."""
    mpi, blas = part_of(lock, "mpi"), part_of(lock, "blas")
    names = {
        "mpi": f"libmpi.so.{40 if mpi.name == 'openmpi' else 12}",
        "blas": f"lib{blas.name}.so.4",
    }
    threads = {"openmp": "USE_OPENMP ", "pthreads": "MAX_THREADS=64 "}.get(blas.threads, "")
    config = f"OpenBLAS {blas.version} DYNAMIC_ARCH NO_AFFINITY {threads}Haswell"
    function = "exec_blas_async" if blas.threads == "pthreads" else "exec_blas"
    for part, text in (("mpi", STATED[mpi.name].format(release)), ("blas", config)):
        source = LIBRARY.format(text=json.dumps(text)[1:-1], function=function)
        compiled(prefix / "lib" / names[part], source)
    starter = prefix / "bin/mpirun"
    starter.parent.mkdir()
    starter.write_text(f"#!/bin/sh\necho '{STARTER[mpi.name].format(release)}'\n")
    starter.chmod(0o755)
    return names


def installed_lock(
    lock: Lock, compiled: Compile, folder: Path, release: str = ""
) -> ProvisionRequest:
    """Write a store of Spack with each package of a lock; return the request of its programs."""
    store = folder / "spack" / STORE
    loaded = libraries_of(store / "loaded", lock, compiled, release or part_of(lock, "mpi").version)
    names = spellings(ROOT / "environments").spack
    records = {}
    for spec in lock.specs.values():
        prefix = store / spec.name
        prefix.mkdir(exist_ok=True)
        records[spec.hash] = {"installed": True, "path": f"{prefix}"}
        lines = [f"// {file}" for part, file in loaded.items() if part in spec.virtuals]
        for name in PROGRAMS.get(spec.name, ()):
            file = names[spec.name].programs.get(name, name) if spec.name in names else name
            compiled(prefix / "bin" / file, "\n".join((*lines, "int main(void) { return 0; }")))
    index = store / ".spack-db/index.json"
    index.parent.mkdir()
    index.write_text(json.dumps({"database": {"installs": records}}))
    arch = lock.source.parents[1].name
    return ProvisionRequest(kit=ROOT, arch=arch, programs=PROGRAMS, prefixes=folder)


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: "-".join(path.parts[-3:-1]))
def test_a_shipped_lock_passes_each_check_after_its_build(
    path: Path, compiled: Compile, tmp_path: Path
) -> None:
    lock = read_lock(path)
    installed = install(installed_lock(lock, compiled, tmp_path), path.parent.name)
    assert installed.packages.keys() == PROGRAMS.keys()
    for name, package in installed.packages.items():
        assert package.version == lock.root(name).version
        assert target_requirements(package.target).split()[0] == lock.root(name).target
        assert not {each.code for each in package.findings} & DOUBTS
    assert installed.packages["hpl"].built["mpi"].startswith(part_of(lock, "mpi").label)


def one_of_each(*parts: str) -> list[Path]:
    """Return one lock for each MPI, BLAS and threads among the parts of all locks."""
    found: dict[tuple[str, ...], Path] = {}
    for path in LOCKS:
        specs = [part_of(read_lock(path), part) for part in parts]
        key = [(spec.name, spec.version, spec.threads) for spec in specs]
        found.setdefault(tuple(map(str, key)), path)
    return [*found.values()]


@pytest.mark.parametrize("path", one_of_each("mpi", "blas"), ids=lambda path: path.parts[-3])
def test_the_probes_of_its_programs_say_what_the_lock_says(
    path: Path, compiled: Compile, tmp_path: Path
) -> None:
    """MVAPICH2 states its release with and without the number after the hyphen."""
    lock = read_lock(path)
    mpi, blas = part_of(lock, "mpi"), part_of(lock, "blas")
    facts = parse_probe((PROBES / "skl-2x6148.txt").read_text(encoding="utf-8"), "probe")
    request = installed_lock(lock, compiled, tmp_path, mpi.version.partition("-")[0])
    installed = install(request, path.parent.name)
    probed = {}
    for name, package in installed.packages.items():
        words = ["sh", f"{ROOT}/analysis/proofmark/software/probe-program.sh"]
        printed = subprocess.check_output([*words, *package.programs.values()], text=True)
        probed[name] = parse_programs(printed, name)
        for program in probed[name]:
            assert not program.missing
            assert (program.mpi.family if program.mpi else "") == (
                mpi.name.removesuffix("2") if name != "stream" else ""
            )
    (hpl,) = probed["hpl"]
    assert hpl.blas and hpl.blas.family == blas.name
    assert blas.name != "openblas" or hpl.blas.version == blas.version
    assert hpl.mpi and hpl.mpi.family in LAUNCHERS
    of_run = installed_software(installed, probed, facts).packages["hpl"]
    assert of_run.launcher == LAUNCHERS[hpl.mpi.family]


@pytest.mark.parametrize("path", one_of_each("mpi"), ids=lambda path: path.parts[-3])
def test_another_release_of_its_mpi_is_refused(
    path: Path, compiled: Compile, tmp_path: Path
) -> None:
    lock = read_lock(path)
    mpi = part_of(lock, "mpi")
    request = installed_lock(lock, compiled, tmp_path, f"{mpi.version}1")
    words = f"MPI: found {mpi.name}@{mpi.version}1 .*; accepted: {mpi.label}"
    with pytest.raises(BadInput, match=words):
        install(request, path.parent.name)


@pytest.mark.parametrize("path", one_of_each("blas"), ids=lambda path: path.parts[-3])
def test_another_blas_than_that_of_the_lock_is_refused(
    path: Path, compiled: Compile, tmp_path: Path
) -> None:
    """Its file has threads of its own, as that of Debian's alternatives."""
    lock = read_lock(path)
    request = installed_lock(lock, compiled, tmp_path)
    file = next(
        (tmp_path / "spack" / STORE / "loaded/lib").glob(f"lib{part_of(lock, 'blas').name}*")
    )
    other = LIBRARY.format(text="OpenBLAS 0.3.28 NO_AFFINITY", function="exec_blas_async")
    target = file.with_name("libopenblas.so.0") if "blis" in file.name else file
    compiled(target, other)
    if target != file:
        compiled(tmp_path / "spack" / STORE / "hpl/bin/xhpl", f"// {target.name}\nint main() {{}}")
    with pytest.raises(
        BadInput, match=r"BLAS: found openblas@?.*; accepted: .*, the spec of the lock"
    ):
        install(request, path.parent.name)
