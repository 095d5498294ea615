"""Outputs of programs that no case reads: ``data/other_programs.yml`` has their lines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache

from proofmark.cases.reader.spec_types import Pattern
from proofmark.common.shipped_data import shipped_data
from proofmark.common.strict_model import StrictModel


class OtherPrograms(StrictModel):
    """The content of the file: program → its lines."""

    programs: Mapping[str, tuple[Pattern, ...]]


def other_program(text: str, own: Iterable[re.Pattern[str]]) -> str:
    """Return the program that no case reads and that printed a line of `text`, or nothing.

    Args:
        text: an output.
        own: the lines that begin an output of the case.
    """
    for match in _any_line().finditer(f"\n{text}"):
        if not any(banner.fullmatch(match[0].strip()) for banner in own):
            return _names()[int(f"{match.lastgroup}"[1:])]
    return ""


@cache
def _names() -> list[str]:
    return list(_content().programs)


@cache
def _content() -> OtherPrograms:
    return shipped_data("proofmark.cases", "other_programs.yml", OtherPrograms)


@cache
def _any_line() -> re.Pattern[str]:
    each = (
        f"(?P<p{number}>{'|'.join(line.pattern for line in lines)})"
        for number, lines in enumerate(_content().programs.values())
    )
    return re.compile(rf"\n(?:{'|'.join(each)})[ \t\r]*(?=\n|\Z)", re.ASCII)
