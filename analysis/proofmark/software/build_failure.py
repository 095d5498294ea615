"""The first failure of an installation: package, phase, first error, and what to do about it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum, StrEnum
from functools import cache
from pathlib import Path, PurePath

from proofmark.common.errors import BadInput, InputError, bad_input
from proofmark.common.files import read_bytes
from proofmark.common.shared_models import StrictModel
from proofmark.common.yaml_models import shipped_data


class ErrorKind(Enum):
    """What is wrong: the name is the code in messages, the value says what the build needs."""

    NO_SPACE = "free space, or another folder (provision_prefixes)"
    KILLED = "more memory, or fewer processes of a build (provision_jobs=1)"
    HEADER_MISSING = "the header {name}"
    MODULE_MISSING = "the module {name}, made by this Fortran compiler"
    LIBRARY_MISSING = "the library {name}"
    SYMBOL_MISSING = "a library with {name} in the call of the linker"
    TOOL_MISSING = "the program {name}"
    COMPILER_MISSING = "a {name} compiler"
    COMPILER_FAILS = "a {name} compiler that works (see config.log)"
    PACKAGE_MISSING = "the package {name}"
    CONFIGURE_ERROR = "what configure requires"
    CMAKE_ERROR = "what CMake requires"
    COMPILE_ERROR = "sources that this compiler accepts"
    COMMAND_ERROR = "a command that succeeds"


@dataclass(frozen=True)
class FirstError:
    """The first error of a log.

    Attributes:
        name: the header, module, library, symbol, tool or package; empty if there is none.
        file: the source file as the tool names it; empty if it names none.
        line: the line in `file`; 0 if it is not known.
    """

    kind: ErrorKind
    text: str
    name: str = ""
    file: str = ""
    line: int = 0


# In the order of their priority for one line. gcc, clang and compilers made from it (icx, craycc,
# armclang, amdclang, flang); classic icc and ifort, and ifx; nvc and nvfortran; linkers; shells.
_PARTS = {
    "<GNU>": r"(?P<file>[^\s:()\"]+):(?P<line>\d+)(?::\d+)?: ",
    "<INTEL>": r"(?P<file>[^\s()\"]+)\((?P<line>\d+)\): ",
    "<EDG>": r"\"(?P<file>[^\"]+)\", line (?P<line>\d+): ",
    "<PGI>": r"(?:PGC|PGF\d*|NVC|NVC\+\+|NVFORTRAN)-",
    "<PGI_END>": r" \((?P<file>[^\s()]+): (?P<line>\d+)\)",
    "<Q>": r"['\"`]?",
}


@cache
def _rules() -> list[tuple[ErrorKind, re.Pattern[str]]]:
    compiled = []
    rules = shipped_data("proofmark.software", "build_errors.yml", tuple[tuple[str, str], ...])
    for kind, rule in rules:
        for name, part in _PARTS.items():
            rule = rule.replace(name, part)
        compiled.append((ErrorKind[kind], re.compile(rule)))
    return compiled


_GFORTRAN = re.compile(r"(?P<file>[^\s:()]+):(?P<line>\d+):(?:\d+:)?$")
_CRAY = re.compile(r"(?:CC|ftn)-\d+ \w+: ERROR .*File = (?P<file>\S+), Line = (?P<line>\d+)")
_CMAKE = re.compile(r"CMake (?P<text>Error) at (?P<file>\S+):(?P<line>\d+)")
_TESTED = re.compile(r"configure:\d+: checking ")
_REFUSED = re.compile(r"configure:\d+: error: ")
_OF_CMAKE = {ErrorKind.PACKAGE_MISSING, ErrorKind.COMPILER_MISSING}
_ASCII_QUOTES = {0x2018: "'", 0x2019: "'"}
_LONGEST = 2000
"""Characters of a line that are read: a longer one is no message."""


def first_error(log: Iterable[str]) -> FirstError | None:
    """Return the first error in a log; a full disk or a killed compiler before all others.

    A failed command, as `make`, is returned only if the log has no other error. None if the log has
    no error.
    """

    def rank(error: FirstError) -> tuple[bool, bool]:
        of_machine = error.kind in (ErrorKind.NO_SPACE, ErrorKind.KILLED)
        return not of_machine, error.kind is ErrorKind.COMMAND_ERROR

    return min(_errors(log), key=rank, default=None)


def failed_test(config_log: Iterable[str]) -> Sequence[str]:
    """Return the lines of the last test of a ``config.log`` before its error; empty without one.

    The errors of all other tests belong to questions to which `configure` expects a no.
    """
    test: list[str] = []
    for line in config_log:
        if _REFUSED.match(line):
            return test
        test = [] if _TESTED.match(line) else [*test, line]
    return ()


def _errors(log: Iterable[str]) -> Iterator[FirstError]:
    """Yield the errors; some compilers, and CMake, name the place in a line before the message."""
    place: re.Match[str] | None = None
    for whole in log:
        line = whole[:_LONGEST].rstrip().translate(_ASCII_QUOTES)
        if cmake := _CMAKE.match(line):
            place = cmake
            continue
        if place is not None and place.re is _CMAKE and line.strip():
            error = _matched(line)
            named = error is not None and error.kind in _OF_CMAKE
            error = error if named else FirstError(ErrorKind.CMAKE_ERROR, line.strip())
        elif header := (_GFORTRAN.match(line) or _CRAY.match(line)):
            place = header
            continue
        else:
            error = _matched(line)
        if error is None:
            continue
        if not error.file and place is not None:
            error = replace(error, file=place["file"], line=int(place["line"]))
        place = None
        yield error


def _matched(line: str) -> FirstError | None:
    for kind, rule in _rules():
        if match := rule.match(line):
            of = match.groupdict("")
            number = int(of.get("line", "") or 0)
            return FirstError(
                kind, of["text"].strip(), of.get("name", ""), of.get("file", ""), number
            )
    return None


SOURCES_NEEDED = "the archive with the checksum of the recipe, in a mirror (provision_sources)"

_BEGUN = re.compile(r"== processing EasyBuild easyconfig .*?(?P<package>[^/\s]+)\.eb$")

_FAILED = re.compile(
    r"== FAILED: Installation ended unsuccessfully: (?P<text>.+?)"
    r"(?:\.\.\. Paths attempted \(in order\): .*?)?\s*(?:\(took [^()]+\))?$"
)

_ADDRESS = re.compile(r"[ ,]([a-z]+://[^\s,]+)")

_ERROR = re.compile(r"ERROR: (?P<text>.+)")

_OUTPUT = re.compile(r" +output \(stdout(?: \+ stderr)?\) +-> +(?P<path>/.+/out\.txt)$")

_LOG = re.compile(r"== Results of the build can be found in the log file\(s\) (?P<path>/.+\.log)$")


class SystemPackage(StrictModel):
    """Packages of Debian and RHEL, and what a build finds in them.

    ``data/system_packages.yml`` explains the fields.
    """

    debian: tuple[str, ...]
    rhel: tuple[str, ...]
    headers: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    symbols: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    finds: tuple[str, ...] = ()
    instead: str = ""


@cache
def system_packages() -> tuple[SystemPackage, ...]:
    """Return the packages that the kit knows."""
    return shipped_data("proofmark.software", "system_packages.yml", tuple[SystemPackage, ...])


def package_with(error: FirstError) -> SystemPackage | None:
    """Return the package with what `error` names; None if the kit knows none."""
    return next((each for each in system_packages() if _has(each, error)), None)


def _has(package: SystemPackage, error: FirstError) -> bool:
    name = error.name
    if error.kind is ErrorKind.SYMBOL_MISSING:
        return bool(name) and name.startswith(package.symbols)
    if error.kind is ErrorKind.MODULE_MISSING:
        name = name.lower().removesuffix(".mod")
    named = {
        ErrorKind.HEADER_MISSING: package.headers,
        ErrorKind.MODULE_MISSING: package.headers,
        ErrorKind.LIBRARY_MISSING: package.libraries,
        ErrorKind.TOOL_MISSING: package.tools,
        ErrorKind.COMPILER_MISSING: package.tools,
        ErrorKind.PACKAGE_MISSING: package.finds,
    }
    of_tools = error.kind in (ErrorKind.TOOL_MISSING, ErrorKind.COMPILER_MISSING)
    return (PurePath(name).name if of_tools else name) in named.get(error.kind, ())


def what_to_do(error: FirstError) -> str:
    """Return what the build needs, with the packages of Debian and RHEL if the kit knows them."""
    parts = [error.kind.value.format(name=error.name)]
    if package := package_with(error):
        parts += [f"Debian: {' '.join(package.debian)}", f"RHEL: {' '.join(package.rhel)}"]
        parts += [f"or {package.instead}"] if package.instead else []
    return "; ".join(parts)


class BuildCause(StrEnum):
    """Why a package was not installed; the value is the code in messages."""

    CHECKSUM = "CHECKSUM"
    SOURCE = "SOURCE_NOT_REACHED"
    BUILD = "BUILD_FAILED"
    RECIPE = "RECIPE_FAILED"


@dataclass(frozen=True)
class BuildFailure:
    """The first failure in the output of Spack or EasyBuild.

    Attributes:
        package: the package, ``hpl-2.3``; empty if the tool names none.
        message: the message of the tool in one line, with the addresses that it asked.
    """

    cause: BuildCause
    package: str
    message: str
    log: Path | None


def read_log(path: Path, stage: Path) -> list[str]:
    """Return the lines of a file of a build; none if it is not below `stage` or cannot be read."""
    try:
        if not path.resolve().is_relative_to(stage.resolve()):
            return []
        return read_bytes(path.resolve()).decode(errors="replace").splitlines()
    except (OSError, ValueError, BadInput):
        return []


def error_of_build(log: Path, stage: Path) -> FirstError | None:
    """Return the first error in the log of a build below `stage`.

    If `configure` found that a compiler does not work, the reason is in its ``config.log``.
    """
    error = first_error(read_log(log, stage))
    if error is not None and error.kind is ErrorKind.COMPILER_FAILS:
        config = read_log(log.parent / "spack-src/config.log", stage)
        error = first_error(failed_test(config)) or error
    return error


def refused(
    tool: str, failure: BuildFailure | None, exit_code: int, stage: Path, output: Path
) -> BadInput:
    """Return the exception of a failed installation, with its first cause.

    Args:
        failure: None if the output of the tool has none.
        stage: the folder of builds, whose logs are read.
        output: the output of the tool.
    """
    if failure is None:
        accepted = f"a complete installation; see {output}; run the same command again to continue"
        return bad_input(tool, "", f"exit code {exit_code}", accepted)
    error = error_of_build(failure.log, stage) if failure.log else None
    code, text, place = failure.cause.value, failure.message, ""
    needs = "a complete installation"
    if error:
        code, text, needs = error.kind.name, error.text, what_to_do(error)
        line = f":{error.line}" if error.line else ""
        place = f"{error.file}{line}: " if error.file else ""
    elif failure.cause in (BuildCause.CHECKSUM, BuildCause.SOURCE):
        needs = SOURCES_NEEDED
    log = failure.log or output
    accepted = f"{needs}; the log is {log}; then run the same command again to continue"
    # The verdict keeps the code and the text, and not the key of a mistake.
    package = f"{failure.package}: " if failure.package else ""
    found = f"{package}{place}{text}"
    return BadInput(InputError(tool, "", found, accepted, code))


_CAUSES = (
    (BuildCause.CHECKSUM, re.compile(r".*[Cc]hecksum verification .*failed")),
    (BuildCause.SOURCE, re.compile(r".*(?:Couldn't find file|Failed to download)")),
    (BuildCause.BUILD, re.compile(r".*shell command .* failed with exit code")),
)


def read_failure(lines: Sequence[str]) -> BuildFailure | None:
    """Return the first failure in the output of ``eb``; None if it has none."""
    end = next((number for number, line in enumerate(lines) if _FAILED.match(line)), None)
    if end is None:
        text = _last(_ERROR, lines)
        return BuildFailure(BuildCause.RECIPE, "", text, None) if text else None
    text = _last(_FAILED, lines[: end + 1])
    # The log is named behind the failure, and before the next package.
    after = next((n for n in range(end, len(lines)) if _BEGUN.match(lines[n])), len(lines))
    log = _last(_OUTPUT, lines[:end]) or _last(_LOG, lines[end:after])
    asked = _ADDRESS.findall(lines[end])
    return BuildFailure(
        cause=next((cause for cause, rule in _CAUSES if rule.match(text)), BuildCause.RECIPE),
        package=_last(_BEGUN, lines[:end]),
        message=f"{text} (asked: {', '.join(asked)})" if asked else text,
        log=Path(log) if log else None,
    )


def _last(rule: re.Pattern[str], lines: Sequence[str]) -> str:
    """Return the group of the last line that matches; empty if none does."""
    return next((match[1] for line in reversed(lines) if (match := rule.match(line))), "")
