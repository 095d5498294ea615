"""Reads the first failure of an installation from the output of Spack."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from proofmark.software.build_failure import BuildFailure, Cause

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
