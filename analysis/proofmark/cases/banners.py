"""Recognition of outputs by the banners of the readers. No program is named here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from proofmark.cases.reader.line_marks import lines_of_hosts, program_text
from proofmark.cases.reader.spec import ReadSpec
from proofmark.cases.suite import Benchmarks

Lines = tuple[tuple[int, int | None], ...]
"""Ranges of lines: the first one, from 0, and the one after the last; None: to the end."""

_DOCUMENT = re.compile(r"\n\{")
_Cases = list[tuple[str, re.Pattern[str] | None]]
"""The cases that one program may be of, each with the line that only its outputs have."""


class _Program(NamedTuple):
    """A program that prints text: its banner, its cases, and the lines that end its output."""

    banner: re.Pattern[str]
    cases: _Cases
    ends: tuple[re.Pattern[str], ...]


class Part(NamedTuple):
    """The part of a text that is the output of one program.

    Attributes:
        case: the case that reads it.
        lines: its lines; empty: all.
        nodes: the nodes that the text names for these lines; empty if it names none, or the same
            ones for all lines.
    """

    case: str
    lines: Lines = ()
    nodes: tuple[str, ...] = ()


def lines_of(text: str, lines: Lines) -> str:
    """Return these lines of `text`; all of them if `lines` is empty."""
    if not lines:
        return text
    every = text.split("\n")
    parts = ("\n".join([*every[first:end], *([""] if end else [])]) for first, end in lines)
    return "".join(parts)


class Banners:
    """The banners of all cases."""

    def __init__(self, benchmarks: Benchmarks) -> None:
        programs: dict[str, _Program] = {}
        begins: list[re.Pattern[str]] = []
        foreign: list[re.Pattern[str]] = []
        self._documents: dict[tuple[str, ...], _Cases] = {}
        self._nodes: dict[str, list[re.Pattern[str]]] = {}
        for name, case in benchmarks.cases.items():
            reader = case.reader()
            line = benchmarks.own_lines.get(name)
            own = (name, _of_lines(line) if line else None)
            self._nodes[name] = [_of_lines(line) for line in _node_lines(reader)]
            if name in benchmarks.unnamed:
                continue
            begins += reader.begins
            foreign += reader.text.foreign.values() if reader.text else ()
            if (rules := reader.text) and rules.starts:
                ends = (*rules.require.values(), *filter(None, [rules.closes]))
                of_end = tuple(_of_lines(each.pattern) for each in ends)
                program = _Program(_of_lines(rules.starts.pattern), [], of_end)
                programs.setdefault(rules.starts.pattern, program).cases.append(own)
            if keys := reader.of_program.keys:
                self._documents.setdefault(keys, []).append(own)
        self._programs = list(programs.values())
        # A reader refuses the banner of a program that prints results like its own, as HPCC does.
        self._around = {
            number
            for number, banner in enumerate(programs)
            if any(line.fullmatch(banner) for line in foreign)
        }
        starts = {each.pattern: each for each in begins}
        self._starts = tuple(starts.values())
        plain = (re.sub(r"\(\?P<\w+>", "(?:", text) for text in programs)  # names may be equal
        texts = (f"(?P<b{number}>{text})" for number, text in enumerate(plain))
        self._any = _of_lines("|".join(texts))

    def plain(self, text: str) -> str:
        """Return an output without the marks before its lines, which remain as many."""
        return program_text(text, self._starts)

    def lines_of_hosts(self, text: str) -> dict[str, list[int]]:
        """Return the lines of each host that pdsh or clush print before them; see `line_marks`."""
        return lines_of_hosts(text, self._starts)

    def parts(self, text: str, *, cut: bool = False) -> list[Part]:
        """Return the outputs of programs in `text`, in the order of their banners.

        The runs of one program are one part, also if other programs ran between them. A banner
        before the end of a program is part of it, as that of HPL in HPCC. Of the cases of one
        program the one whose own line is in its lines counts.

        Args:
            text: an output; see `plain`.
            cut: whether it is the begin of an output only: a program can end after it.
        """
        text = f"\n{text}"
        runs = self._runs(text, cut=cut)
        sections = [next(of_program) for _, of_program in groupby(runs, itemgetter(0))]
        if not sections:
            documents = (
                _chosen(cases, text)
                for keys, cases in self._documents.items()
                if "\n{" in text and all(f'"{key}"' in text for key in keys)
            )
            return [Part(case) for case in documents if case]
        begins = [0, *(text.count("\n", 0, begin) for _, begin in sections[1:])]
        lines: dict[int, Lines] = {}
        for (number, _), first, end in zip(sections, begins, [*begins[1:], None], strict=True):
            lines[number] = (*lines.get(number, ()), (first, end))
        if len(lines) == 1:
            lines = dict.fromkeys(lines, ())
        parts = []
        for number, ranges in lines.items():
            cases = self._programs[number].cases
            if case := _chosen(cases, f"\n{lines_of(text[1:], ranges)}"):
                parts.append(Part(case, ranges))
        return parts

    def begins(self, text: str) -> list[int]:
        """Return the line of `text` with which each run of a program, or each document, begins."""
        text = f"\n{text}"
        places = [begin for _, begin in self._runs(text, cut=False)]
        places = places or [match.start() for match in _DOCUMENT.finditer(text)]
        return [text.count("\n", 0, place) for place in places]

    def _runs(self, text: str, *, cut: bool) -> list[tuple[int, int]]:
        """Return the number of each program that begins, with the place of its banner."""
        found = [(int(f"{each.lastgroup}"[1:]), each.start()) for each in self._any.finditer(text)]
        runs: list[tuple[int, int]] = []
        for number, here in found:
            within = runs and number != runs[-1][0]
            if not within or not self._is_inside(text, runs[-1][0], (runs[-1][1], here), cut=cut):
                runs.append((number, here))
        return runs

    def _is_inside(self, text: str, outer: int, places: tuple[int, int], *, cut: bool) -> bool:
        """Return whether a banner is part of the program `outer`, which has not ended before it.

        A program that never ends was killed: what follows is another one, unless the program has
        others in it.

        Args:
            text: an output.
            outer: the number of the program before the banner.
            places: those of the banner of `outer`, and of the banner.
            cut: see `parts`.
        """
        begin, here = places
        open_ = [end for end in self._programs[outer].ends if not end.search(text, begin, here)]
        again = self._programs[outer].banner.search(text, here)
        until = again.start() if again else len(text)
        ends = all(end.search(text, here, until) for end in open_)
        unknown = outer in self._around or (cut and not again)
        return bool(open_) and (ends or unknown)

    def nodes(self, case: str, text: str) -> list[str]:
        """Return the names of hosts in the lines that the reader of `case` takes them from."""
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


def _of_lines(pattern: str) -> re.Pattern[str]:
    """Return `pattern`, which is that of a whole line, for the lines of a text after a line end.

    The search for a line end is several times faster than one for the begin of a line.
    """
    return re.compile(rf"\n(?:{pattern})[ \t\r]*(?=\n|\Z)", re.ASCII)
