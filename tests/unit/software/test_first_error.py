"""The first error of a build. ``tests/data/build-logs`` has logs of builds that really failed."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.folders import ROOT

from proofmark.software import build_failure as easybuild_failure
from proofmark.software.build_failure import (
    BuildCause,
    BuildFailure,
    ErrorKind,
    FirstError,
    error_of_build,
    failed_test,
    first_error,
    package_with,
    read_log,
    refused,
    system_packages,
    what_to_do,
)
from proofmark.software.spack.install import read_failure

LOGS = ROOT / "tests/data/build-logs"


def lines(name: str) -> list[str]:
    return (LOGS / f"{name}.txt").read_text(encoding="utf-8").splitlines()


@pytest.mark.fault("build-fails")
@pytest.mark.parametrize(
    ("log", "kind", "name", "place"),
    [
        ("header", ErrorKind.HEADER_MISSING, "mpi.h", "a.c:2"),
        ("imb", ErrorKind.HEADER_MISSING, "mpi.h", "imb.cpp:33"),
        ("fortran", ErrorKind.MODULE_MISSING, "mpi.mod", "a.f90:2"),
        ("symbol", ErrorKind.SYMBOL_MISSING, "dgemm_", "a.c:0"),
        ("configure", ErrorKind.COMPILER_MISSING, "C", ":0"),
        ("hpl-configure", ErrorKind.COMPILER_FAILS, "C", ":0"),
        (
            "cmake",
            ErrorKind.PACKAGE_MISSING,
            "MPI",
            "/usr/share/cmake-3.25/Modules/FindPackageHandleStandardArgs.cmake:230",
        ),
        ("space", ErrorKind.NO_SPACE, "", ":0"),
        ("killed", ErrorKind.KILLED, "", ":0"),
        ("tool", ErrorKind.COMMAND_ERROR, "", ":0"),
    ],
)
def test_the_log_of_a_failed_build_gives_its_first_error(
    log: str, kind: ErrorKind, name: str, place: str
) -> None:
    error = first_error(lines(f"{log}.log"))
    assert error is not None
    assert (error.kind, error.name, f"{error.file}:{error.line}") == (kind, name, place)


def test_a_log_without_an_error_has_none() -> None:
    assert first_error([]) is None
    assert (
        first_error(["checking for error: no", "make: [a] Error 1 (ignored)", "0 errors"]) is None
    )


HEADERS = [
    "a.c:2:10: fatal error: mpi.h: No such file or directory",  # gcc
    "a.c:2:10: fatal error: 'mpi.h' file not found",  # clang, icx, craycc
    'a.c(2): catastrophic error: cannot open source file "mpi.h"',  # icc
    '"a.c", line 2: catastrophic error: cannot open source file "mpi.h"',  # nvc
    "PGC-F-0206-Can't find include file mpi.h (a.c: 2)",  # pgcc
    'CC-5 craycc: ERROR File = a.c, Line = 2\n  Could not open source file "mpi.h".',
    "a.c:2:0:\n\n    2 | #include\nFatal Error: Cannot open included file \u2018mpi.h\u2019",
    "a.c(2): error #5102: Cannot open include file 'mpi.h'",  # ifx
    "a.c:2:1: error: Source file 'mpi.h' was not found",  # flang
]
MODULES = [
    "a.f90:2:6:\n\n    2 |  use mpi\n"
    "Fatal Error: Cannot open module file \u2018mpi.mod\u2019 for reading",
    "a.f90(2): error #7002: Error in opening the compiled module file.  "
    "Check INCLUDE paths.   [MPI]",
    "NVFORTRAN-F-0004-Unable to open MODULE file mpi.mod (a.f90: 2)",
    "a.f90:2:7: error: Cannot parse module file for module 'mpi': "
    "Source file 'mpi.mod' was not found",
    "ftn-292 ftn: ERROR A, File = a.f90, Line = 2, Column = 5\n"
    '  "MPI" is specified as the module name on a USE statement, but the compiler cannot find it.',
]


@pytest.mark.parametrize("text", [*HEADERS, *MODULES])
def test_each_compilers_word_for_a_missing_file_is_read_with_its_place(text: str) -> None:
    error = first_error([*text.splitlines(), "make: *** [Makefile:2: all] Error 1"])
    assert error is not None
    kind, file = (
        (ErrorKind.HEADER_MISSING, "a.c")
        if text in HEADERS
        else (ErrorKind.MODULE_MISSING, "a.f90")
    )
    assert (error.kind, error.file, error.line) == (kind, file, 2)
    assert package_with(error) == system_packages()[0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "/usr/bin/ld: cannot find -lfftw3: No such file or directory",
            FirstError(
                ErrorKind.LIBRARY_MISSING, "cannot find -lfftw3: No such file or directory", "fftw3"
            ),
        ),
        (
            "ld.lld: error: unable to find library -lopenblas",
            FirstError(
                ErrorKind.LIBRARY_MISSING, "error: unable to find library -lopenblas", "openblas"
            ),
        ),
        (
            "/usr/bin/ld: a.c:12: undefined reference to `dgemm_'",
            FirstError(
                ErrorKind.SYMBOL_MISSING, "undefined reference to `dgemm_'", "dgemm_", "a.c", 12
            ),
        ),
        (
            "make: gfortran: No such file or directory",
            FirstError(
                ErrorKind.TOOL_MISSING, "make: gfortran: No such file or directory", "gfortran"
            ),
        ),
        (
            "/bin/sh: 1: autoreconf: not found",
            FirstError(ErrorKind.TOOL_MISSING, "/bin/sh: 1: autoreconf: not found", "autoreconf"),
        ),
        (
            "configure: error: libfoo is required",
            FirstError(ErrorKind.CONFIGURE_ERROR, "libfoo is required"),
        ),
        (
            "CMake Error at CMakeLists.txt:2 (project):\n  No CMAKE_C_COMPILER could be found.",
            FirstError(
                ErrorKind.COMPILER_MISSING,
                "No CMAKE_C_COMPILER could be found.",
                "C",
                "CMakeLists.txt",
                2,
            ),
        ),
        (
            "CMake Error at a/CMakeLists.txt:7 (message):\n\n  Too old",
            FirstError(ErrorKind.CMAKE_ERROR, "Too old", "", "a/CMakeLists.txt", 7),
        ),
        (
            "c.c:1:17: error: \u2018x\u2019 undeclared",
            FirstError(ErrorKind.COMPILE_ERROR, "error: 'x' undeclared", "", "c.c", 1),
        ),
        (
            "d.f90:3:2:\n\n    3 |  x=1\nError: Symbol \u2018x\u2019 at (1) has no IMPLICIT type",
            FirstError(
                ErrorKind.COMPILE_ERROR,
                "Error: Symbol 'x' at (1) has no IMPLICIT type",
                "",
                "d.f90",
                3,
            ),
        ),
    ],
)
def test_other_errors_are_read(text: str, expected: FirstError) -> None:
    assert first_error(text.splitlines()) == expected


def test_a_full_disk_is_the_cause_of_earlier_errors_and_make_is_none() -> None:
    compiler = "a.c:1:1: error: no"
    killed = "gcc: fatal error: Killed signal terminated program cc1"
    make = "make: *** [a] Error 1"
    full = "cc1: fatal error: a.s: No space left on device"
    for log, kind in (
        ([make, compiler, full], ErrorKind.NO_SPACE),
        ([compiler, killed], ErrorKind.KILLED),
        ([make, compiler], ErrorKind.COMPILE_ERROR),
        ([make], ErrorKind.COMMAND_ERROR),
    ):
        error = first_error(log)
        assert error is not None
        assert error.kind == kind


def test_the_reason_of_a_compiler_that_fails_is_in_config_log(tmp_path: Path) -> None:
    log = tmp_path / "spack-build-out.txt"
    log.write_text("\n".join(lines("hpl-configure.log")))
    (tmp_path / "spack-src").mkdir()
    (tmp_path / "spack-src/config.log").write_text("\n".join(lines("hpl-config.log")))
    error = error_of_build(log, tmp_path)
    assert error is not None
    assert (error.kind, error.name) == (ErrorKind.LIBRARY_MISSING, "open-rte")
    assert failed_test(["configure:1: checking for x", "a.c:1:1: error: no"]) == ()


def test_the_advice_names_the_packages_of_debian_and_rhel() -> None:
    header = FirstError(ErrorKind.HEADER_MISSING, "text", "numa.h")
    assert what_to_do(header) == "the header numa.h; Debian: libnuma-dev; RHEL: numactl-devel"
    unknown = FirstError(ErrorKind.LIBRARY_MISSING, "text", "own")
    assert what_to_do(unknown) == "the library own"
    assert {what_to_do(FirstError(kind, "", "x")) for kind in ErrorKind}.isdisjoint({""})


def test_no_file_is_in_two_system_packages() -> None:
    for field in ("headers", "libraries", "tools", "finds"):
        names = [name for each in system_packages() for name in getattr(each, field)]
        assert len(names) == len(set(names))


@pytest.mark.fault("build-fails")
@pytest.mark.parametrize(
    ("name", "cause", "package", "words"),
    [
        ("header", BuildCause.BUILD, "bad-header-1.0", "Command exited with status 2"),
        ("configure", BuildCause.BUILD, "bad-configure-1.0", "Command exited with status"),
        ("checksum", BuildCause.CHECKSUM, "bad-checksum-1.0", f"/ Expected {'0' * 64} but got "),
        ("source", BuildCause.SOURCE, "bad-source-1.0", "http://127.0.0.1:9/bad-source-1.0.tar.gz"),
        ("patch", BuildCause.RECIPE, "", "packages/bad_patch/package.py:8, in patch"),
    ],
)
def test_the_output_of_spack_gives_package_error_and_log(
    name: str, cause: BuildCause, package: str, words: str
) -> None:
    failure = read_failure(lines(f"{name}.spack"))
    assert failure is not None
    assert (failure.cause, failure.package) == (cause, package)
    assert words in failure.message and "Contents" not in failure.message
    built = cause is BuildCause.BUILD
    assert (failure.log is not None and failure.log.name == "spack-build-out.txt") == built


def test_the_first_of_several_failures_is_read_without_lines_of_progress() -> None:
    ends = ["==> Error: bad: Package was not installed"]
    output = ["[+] good@1.0 (3s)", *lines("header.spack"), *lines("source.spack"), *ends]
    failure = read_failure(output)
    assert failure is not None
    assert failure.package == "bad-header-1.0"
    assert failure == read_failure([each for each in output if "Installing" not in each])
    assert read_failure(output[:1]) is None
    early = read_failure(["==> Error: No such environment"])
    assert early is not None
    assert (early.package, early.message) == ("", "No such environment")


@pytest.mark.parametrize(
    ("log", "cause", "file"),
    [
        ("build.eb", BuildCause.BUILD, "out.txt"),
        ("source.eb", BuildCause.SOURCE, "easybuild-y-1"),
        ("checksum.eb", BuildCause.CHECKSUM, "easybuild-z-1"),
    ],
)
def test_the_output_of_easybuild_gives(log: str, cause: BuildCause, file: str) -> None:
    failure = easybuild_failure.read_failure([*lines(log), *lines("build.eb")])
    assert failure is not None
    assert failure.cause == cause
    assert failure.package in ("x-1", "y-1", "z-1")
    assert failure.log is not None
    assert failure.log.name.startswith(file)
    assert ("(asked: " in failure.message) == (cause is BuildCause.SOURCE)
    assert "took" not in failure.message
    assert len(failure.message) < 300


def test_without_a_package_the_error_of_easybuild_is_the_failure() -> None:
    read = easybuild_failure.read_failure
    early = read(["== temporary log file", "ERROR: Can't find path /x.eb"])
    assert early is not None
    assert (early.package, early.message) == ("", "Can't find path /x.eb")
    assert read(["== Build succeeded"]) is None


def test_the_message_has_code_place_remedy_and_log(tmp_path: Path) -> None:
    log, output = tmp_path / "b.txt", Path("/s/out.log")
    log.write_text("a.c:2:10: fatal error: mpi.h: No such file or directory\n")
    failure = BuildFailure(BuildCause.BUILD, "hpl-2.3", "exit", log)
    (mistake,) = refused("spack install", failure, 1, tmp_path, output).mistakes
    assert mistake.code == "HEADER_MISSING"
    assert mistake.found == "hpl-2.3: a.c:2: fatal error: mpi.h: No such file or directory"
    assert "Debian: libopenmpi-dev; RHEL: openmpi-devel" in mistake.accepted
    assert f"the log is {log}" in mistake.accepted
    source = read_failure(lines("source.spack"))
    assert source is not None
    (mistake,) = refused("spack install", source, 1, tmp_path, output).mistakes
    assert mistake.code == "SOURCE_NOT_REACHED"
    assert "https://mirror.example.org/" in mistake.found
    assert "provision_sources" in mistake.accepted
    (mistake,) = refused("eb", None, 3, tmp_path, output).mistakes
    assert (mistake.found, mistake.code) == ("exit code 3", "")
    assert "see /s/out.log" in mistake.accepted


def test_only_a_log_of_the_own_stage_is_read(tmp_path: Path) -> None:
    stage, other = tmp_path / "stage", tmp_path / "other"
    for folder in (stage, other):
        folder.mkdir()
        (folder / "log").write_text("one\ntwo\n")
    (stage / "link").symlink_to(other / "log")
    assert read_log(stage / "log", stage) == ["one", "two"]
    for path in (other / "log", stage / "link", stage / "none", stage / "../other/log"):
        assert read_log(path, stage) == []


def test_each_kind_of_error_has_its_own_advice() -> None:
    """Two kinds with the same advice would be one member of the enumeration."""
    assert len(ErrorKind.__members__) == len({*ErrorKind})
