"""The first failure of an installation: package, phase, first error, and what to do about it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path, PurePath

from proofmark.common.errors import BadInput, InputError
from proofmark.common.files import read_bytes
from proofmark.common.strict_model import StrictModel
from proofmark.common.yaml_models import shipped_data
from proofmark.software.first_error import ErrorKind, FirstError, failed_test, first_error

_ADVICE = {
    ErrorKind.NO_SPACE: "free space, or another folder (provision_prefixes)",
    ErrorKind.KILLED: "more memory, or fewer processes of a build (provision_jobs=1)",
    ErrorKind.HEADER_MISSING: "the header {name}",
    ErrorKind.MODULE_MISSING: "the module {name}, made by this Fortran compiler",
    ErrorKind.LIBRARY_MISSING: "the library {name}",
    ErrorKind.SYMBOL_MISSING: "a library with {name} in the call of the linker",
    ErrorKind.TOOL_MISSING: "the program {name}",
    ErrorKind.COMPILER_MISSING: "a {name} compiler",
    ErrorKind.COMPILER_FAILS: "a {name} compiler that works (see config.log)",
    ErrorKind.PACKAGE_MISSING: "the package {name}",
    ErrorKind.CONFIGURE_ERROR: "what configure requires",
    ErrorKind.CMAKE_ERROR: "what CMake requires",
    ErrorKind.COMPILE_ERROR: "sources that this compiler accepts",
    ErrorKind.COMMAND_ERROR: "a command that succeeds",
}

SOURCES_NEEDED = "the archive with the checksum of the recipe, in a mirror (provision_sources)"

_BEGUN = re.compile(r"== processing EasyBuild easyconfig .*?(?P<package>[^/\s]+)\.eb$")

_PHASE = re.compile(r"== (?P<phase>[a-z ]+)\.\.\.$")

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
    match error.kind:
        case ErrorKind.HEADER_MISSING:
            return name in package.headers
        case ErrorKind.MODULE_MISSING:
            return name.lower().removesuffix(".mod") in package.headers
        case ErrorKind.LIBRARY_MISSING:
            return name in package.libraries
        case ErrorKind.SYMBOL_MISSING:
            return bool(name) and name.startswith(package.symbols)
        case ErrorKind.TOOL_MISSING | ErrorKind.COMPILER_MISSING:
            return PurePath(name).name in package.tools
        case ErrorKind.PACKAGE_MISSING:
            return name in package.finds
        case _:
            return False


def what_to_do(error: FirstError) -> str:
    """Return what the build needs, with the packages of Debian and RHEL if the kit knows them."""
    return "; ".join(_parts(error))


def _parts(error: FirstError) -> Iterator[str]:
    yield _ADVICE[error.kind].format(name=error.name)
    if package := package_with(error):
        yield f"Debian: {' '.join(package.debian)}"
        yield f"RHEL: {' '.join(package.rhel)}"
        if package.instead:
            yield f"or {package.instead}"


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
        cause: why the package was not installed.
        package: the package, ``hpl-2.3``; empty if none was begun.
        phase: the phase of its recipe; empty before the first one.
        message: the message of the tool in one line.
        log: the log of the build; None if the tool names none.
        addresses: the addresses that were asked for the source.
        others: the number of other packages that failed.
    """

    cause: BuildCause
    package: str
    phase: str
    message: str
    log: Path | None
    addresses: tuple[str, ...] = ()
    others: int = 0


def read_log(path: Path, stage: Path) -> list[str]:
    """Return the lines of a file of a build; none if it is not below `stage` or cannot be read."""
    try:
        if not path.resolve().is_relative_to(stage.resolve()):
            return []
        return read_bytes(path.resolve()).decode(errors="replace").splitlines()
    except (OSError, ValueError, BadInput):
        return []


def error_of_build(log: Path, read: Callable[[Path], list[str]]) -> FirstError | None:
    """Return the first error in the log of a build.

    If `configure` found that a compiler does not work, the reason is in its ``config.log``.

    Args:
        read: returns the lines of a file.
    """
    error = first_error(read(log))
    if error is not None and error.kind is ErrorKind.COMPILER_FAILS:
        reason = first_error(failed_test(read(log.parent / "spack-src/config.log")))
        return reason or error
    return error


def refused(tool: str, failure: BuildFailure, error: FirstError | None, output: Path) -> BadInput:
    """Return the exception of a failed installation.

    Args:
        tool: the command that failed.
        error: the first error in the log of the build.
    """
    code = str(error.kind if error else failure.cause)
    phase = f"phase {failure.phase}" if failure.phase else ""
    step = ", ".join(filter(None, (failure.package, phase)))
    place = (
        f"{error.file}{f':{error.line}' if error.line else ''}: " if error and error.file else ""
    )
    text = error.text if error else failure.message
    if failure.addresses:
        text = f"{text} (asked: {', '.join(failure.addresses)})"
    others = f"; {failure.others} more packages failed" if failure.others else ""
    if error:
        needs = what_to_do(error)
    elif failure.cause in (BuildCause.CHECKSUM, BuildCause.SOURCE):
        needs = SOURCES_NEEDED
    else:
        needs = "a complete installation"
    log = failure.log or output
    accepted = f"{needs}; the log is {log}; then run the same command again to continue"
    # The verdict keeps the code and the text, and not the key of a mistake.
    found = f"{step}{': ' if step else ''}{place}{text}{others}"
    return BadInput(InputError(tool, "", found, accepted, code))


_CAUSES = (
    (BuildCause.CHECKSUM, re.compile(r".*[Cc]hecksum verification .*failed")),
    (BuildCause.SOURCE, re.compile(r".*(?:Couldn't find file|Failed to download)")),
    (BuildCause.BUILD, re.compile(r".*shell command .* failed with exit code")),
)


def read_failure(lines: Sequence[str]) -> BuildFailure | None:
    """Return the first failure in the output of ``eb``; None if it has none."""
    numbers = [number for number, line in enumerate(lines) if _FAILED.match(line)]
    if not numbers:
        return _without_package(lines)
    end = numbers[0]
    text = _last(_FAILED, lines[: end + 1])
    # The log is named behind the failure, and before the next package.
    after = next((n for n in range(end, len(lines)) if _BEGUN.match(lines[n])), len(lines))
    log = _last(_OUTPUT, lines[:end]) or _last(_LOG, lines[end:after])
    return BuildFailure(
        cause=next((cause for cause, rule in _CAUSES if rule.match(text)), BuildCause.RECIPE),
        package=_last(_BEGUN, lines[:end]),
        phase=_last(_PHASE, [line for line in lines[:end] if line != "== ..."]),
        message=text,
        log=Path(log) if log else None,
        addresses=tuple(_ADDRESS.findall(lines[end])),
        others=len(numbers) - 1,
    )


def _without_package(lines: Sequence[str]) -> BuildFailure | None:
    text = _last(_ERROR, lines)
    return BuildFailure(BuildCause.RECIPE, "", "", text, None) if text else None


def _last(rule: re.Pattern[str], lines: Sequence[str]) -> str:
    """Return the group of the last line that matches; empty if none does."""
    return next((match[1] for line in reversed(lines) if (match := rule.match(line))), "")
