"""Recognition of outputs by the banners of the readers. No program is named here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from proofmark.cases.reader.line_marks import without_marks
from proofmark.cases.reader.spec import ReadSpec
from proofmark.cases.suite import Benchmarks

_Cases = list[tuple[str, re.Pattern[str] | None]]
"""The cases that one program may be of, each with the line that only its outputs have."""


class _Program(NamedTuple):
    """A program that prints text: its cases, and the lines that end its output."""

    cases: _Cases
    ends: tuple[re.Pattern[str], ...]


class Banners:
    """The banners of all cases."""

    def __init__(self, benchmarks: Benchmarks) -> None:
        programs: dict[str, _Program] = {}
        begins: list[re.Pattern[str]] = []
        self._documents: dict[tuple[str, ...], _Cases] = {}
        self._nodes: dict[str, list[re.Pattern[str]]] = {}
        for name, case in benchmarks.cases.items():
            reader = case.reader()
            own = (name, reader.own_line and _of_lines(reader.own_line.pattern))
            self._nodes[name] = [_of_lines(line) for line in _node_lines(reader)]
            if name in benchmarks.unnamed:
                continue
            begins += reader.begins
            if (rules := reader.text) and rules.starts:
                ends = (*rules.require.values(), *filter(None, [rules.closes]))
                program = _Program([], tuple(_of_lines(each.pattern) for each in ends))
                programs.setdefault(rules.starts.pattern, program).cases.append(own)
            if reader.document and reader.document.banner:
                keys = tuple(_keys(reader.document.banner.parsed))
                self._documents.setdefault(keys, []).append(own)
        self._programs = list(programs.values())
        starts = {each.pattern: each for each in begins}
        self._starts = tuple(starts.values())
        plain = (re.sub(r"\(\?P<\w+>", "(?:", text) for text in programs)  # names may be equal
        texts = (f"(?P<b{number}>{text})" for number, text in enumerate(plain))
        self._any = _of_lines("|".join(texts))

    def cases(self, text: str) -> list[str]:
        """Return the cases of the programs that `text` begins, in the order of their banners.

        A banner before the end of a program is part of it, as that of HPL in HPCC. Of the cases
        of one program the one whose own line is in the text counts.
        """
        text = f"\n{without_marks(text, self._starts)}"
        found: dict[int, int] = {}
        for match in self._any.finditer(text):
            number, here = int(f"{match.lastgroup}"[1:]), match.start()
            if number not in found and all(
                end.search(text, begin, here)
                for other, begin in found.items()
                for end in self._programs[other].ends
            ):
                found[number] = here
        programs = [self._programs[number].cases for number in found]
        if not programs and "\n{" in text:
            programs = [
                cases
                for keys, cases in self._documents.items()
                if all(f'"{key}"' in text for key in keys)
            ]
        return [case for cases in programs if (case := _chosen(cases, text))]

    def nodes(self, case: str, text: str) -> list[str]:
        """Return the names of hosts in the lines that the reader of `case` takes them from."""
        text = without_marks(text, self._starts)
        matches = (pattern.finditer(f"\n{text}") for pattern in self._nodes[case])
        nodes = []
        for each in matches:
            nodes += [match["node"] for match in each]
        return list(dict.fromkeys(nodes))


def _chosen(cases: _Cases, text: str) -> str:
    """Return the case of an output. Several tests of a program have the case of their reader."""
    own = [name for name, line in cases if line and line.search(text)]
    return own[0] if len(own) == 1 else next((name for name, line in cases if not line), "")


def _node_lines(reader: ReadSpec) -> Iterator[str]:
    rules = reader.text
    lines = (*rules.facts, *(each.match for each in rules.context)) if rules else ()
    return (each.pattern for each in lines if "node" in each.groupindex)


def _keys(parsed: Any) -> Iterator[str]:
    """Yield the keys of a document that a JMESPath expression names."""
    if parsed["type"] == "field" and parsed["value"] != "output":
        yield parsed["value"]
    for child in parsed["children"]:
        yield from _keys(child)


def _of_lines(pattern: str) -> re.Pattern[str]:
    """Return `pattern`, which is that of a whole line, for the lines of a text after a line end.

    The search for a line end is several times faster than one for the begin of a line.
    """
    return re.compile(rf"\n(?:{pattern})[ \t\r]*(?=\n|\Z)", re.ASCII)
