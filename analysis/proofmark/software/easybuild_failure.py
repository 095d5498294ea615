"""Reads the first failure of an installation from the output of EasyBuild."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from proofmark.software.build_failure import BuildFailure, Cause

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
_CAUSES = (
    (Cause.CHECKSUM, re.compile(r".*[Cc]hecksum verification .*failed")),
    (Cause.SOURCE, re.compile(r".*(?:Couldn't find file|Failed to download)")),
    (Cause.BUILD, re.compile(r".*shell command .* failed with exit code")),
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
        cause=next((cause for cause, rule in _CAUSES if rule.match(text)), Cause.RECIPE),
        package=_last(_BEGUN, lines[:end]),
        phase=_last(_PHASE, [line for line in lines[:end] if line != "== ..."]),
        message=text,
        log=Path(log) if log else None,
        addresses=tuple(_ADDRESS.findall(lines[end])),
        others=len(numbers) - 1,
    )


def _without_package(lines: Sequence[str]) -> BuildFailure | None:
    text = _last(_ERROR, lines)
    return BuildFailure(Cause.RECIPE, "", "", text, None) if text else None


def _last(rule: re.Pattern[str], lines: Sequence[str]) -> str:
    """Return the group of the last line that matches; empty if none does."""
    return next((match[1] for line in reversed(lines) if (match := rule.match(line))), "")
