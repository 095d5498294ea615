"""The first failure of an installation by Spack: package, phase, error, and the path of the log."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from proofmark.common.errors import BadInput, bad_input
from proofmark.common.files import read_bytes
from proofmark.software.first_error import FirstError, Kind, failed_test, first_error
from proofmark.software.remedies import what_to_do


class Cause(StrEnum):
    """Why Spack did not install a package; the value is the code in messages."""

    CHECKSUM = "CHECKSUM"
    SOURCE = "SOURCE_NOT_REACHED"
    BUILD = "BUILD_FAILED"
    RECIPE = "RECIPE_FAILED"


@dataclass(frozen=True)
class BuildFailure:
    """The first failure in the output of Spack.

    Attributes:
        cause: why the package was not installed.
        package: the package, ``hpl-2.3``; empty if none was begun.
        phase: the phase of its recipe; empty before the first one.
        message: the message of Spack in one line.
        log: the log of the build; None if Spack names none.
        addresses: the addresses that Spack asked for the source.
        others: the number of other packages that failed.
    """

    cause: Cause
    package: str
    phase: str
    message: str
    log: Path | None
    addresses: tuple[str, ...] = ()
    others: int = 0


_BEGUN = re.compile(r"==> Installing (?P<package>\S+)-[a-z0-9]{32}\b")
_PHASE = re.compile(r"==> \S+: Executing phase: '(?P<phase>[^']+)'")
_ERROR = re.compile(r"==> (?:\S+: )?Error: (?P<text>.*)")
_LOG = re.compile(r"\s+(?P<path>/\S+/spack-build-out\.txt)$")
_ADDRESS = re.compile(r"\s+(?P<address>[a-z0-9+]+://\S+?): ")
_CHECKSUMS = re.compile(r"\s+(Expected [0-9a-f]+ but got [0-9a-f]+)")
_CAUSES = (
    (Cause.CHECKSUM, re.compile("ChecksumError|.*checksum (?:verification )?failed")),
    (Cause.SOURCE, re.compile("FetchError|NoCacheError|.*All fetchers failed")),
    (Cause.BUILD, re.compile("ProcessError|InstallError|ChildError")),
)
SOURCES_NEEDED = "the archive with the checksum of the recipe, in a mirror (provision_sources)"


def read_failure(lines: Iterable[str]) -> BuildFailure | None:
    """Return the first failure in the output of Spack; None if it has no error."""
    sections: list[list[str]] = [[]]
    for line in lines:
        if _BEGUN.match(line):
            sections.append([])
        sections[-1].append(line)
    failed = [each for each in sections if any(_ERROR.match(line) for line in each)]
    begun = [each for each in failed if _BEGUN.match(each[0])]
    if not failed:
        return None
    return _failure((begun or failed)[0], others=max(0, len(begun) - 1))


def _failure(section: Sequence[str], others: int) -> BuildFailure:
    number = next(number for number, line in enumerate(section) if _ERROR.match(line))
    text, rest = _only(_ERROR, section[number : number + 1]), section[number + 1 :]
    cause = next((cause for cause, rule in _CAUSES if rule.match(text)), Cause.RECIPE)
    if cause is Cause.CHECKSUM:
        text = f"{text}: {_only(_CHECKSUMS, rest)}"
    log = _only(_LOG, rest)
    return BuildFailure(
        cause=cause,
        package=_only(_BEGUN, section[:1]),
        phase=_only(_PHASE, reversed(section[:number])),
        message=" ".join(text.split()),
        log=Path(log) if log else None,
        addresses=tuple(match["address"] for line in rest if (match := _ADDRESS.match(line))),
        others=others,
    )


def _only(rule: re.Pattern[str], lines: Iterable[str]) -> str:
    """Return the group of the first line that matches; empty if none does."""
    return next((match[1] for line in lines if (match := rule.match(line))), "")


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
        log: the log.
        read: returns the lines of a file.
    """
    error = first_error(read(log))
    if error is not None and error.kind is Kind.COMPILER_FAILS:
        reason = first_error(failed_test(read(log.parent / "spack-src/config.log")))
        return reason or error
    return error


def refused(failure: BuildFailure, error: FirstError | None, output: Path) -> BadInput:
    """Return the exception of a failed installation.

    Args:
        failure: the failure in the output of Spack.
        error: the first error in the log of the build.
        output: the file with the output of Spack.
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
    elif failure.cause in (Cause.CHECKSUM, Cause.SOURCE):
        needs = SOURCES_NEEDED
    else:
        needs = "a complete installation"
    log = failure.log or output
    accepted = f"{needs}; the log is {log}; then run the same command again to continue"
    # The verdict keeps the code and the text, and not the key of a mistake.
    found = f"{code}: {step}{': ' if step else ''}{place}{text}{others}"
    return bad_input("spack install", "", found, accepted)
