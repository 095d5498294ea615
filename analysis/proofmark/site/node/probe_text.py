"""A parser of the output of ``probe.sh`` and ``probe-program.sh``: sections and absent facts.

Values that are printed but cannot be read are unknown, and the node is used.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from math import isfinite
from typing import Any, TypeVar

from proofmark.common.errors import BadInput, bad_input
from proofmark.common.files import moment_text
from proofmark.common.message import Message
from proofmark.common.message_table import MESSAGES
from proofmark.common.text import one_line

HEADER = re.compile(r"proofmark-probe (\d+) ([a-z]+)")
VERSION = "1"
_ABSENT = re.compile(r"!([a-z-]*) (.+?)(?:: (.*))?")
_VALUES: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("no-file", "root-file", "no-value", "no-line"), ("path",)),
    **dict.fromkeys(("no-tool", "no-tools", "tool-silent"), ("tool",)),
    "tool-slow": ("tool", "seconds"),
    "tool-failed": ("tool", "code"),
    "tool-said": ("tool", "code", "message"),
    "no-program": ("program",),
    "kernel-unprinted": ("family",),
}
"""The names of the values after the code of a reason; the last one has the rest of the line."""
COUNTERS = "counters"
"""The section of the counters."""
NO_COUNT = re.compile(r"N/A.*|-\d+|4294967295|18446744073709551615", re.ASCII)
"""What the kernel prints for a counter that a port lacks; −1 of a driver, also without its sign;
and the largest number of 32 bits, at which a counter of InfiniBand stays."""
_FULL = re.compile(
    r"infiniband/.*/(?:(?:link_error_recovery|link_downed|port_\w+_constraint_errors): 255"
    r"|(?:local_link_integrity|excessive_buffer_overrun)_errors: 15"
    r"|(?:symbol_error|port_rcv_\w*errors|port_xmit_discards|VL15_dropped): 65535)"
)
"""Other counters of InfiniBand at their largest numbers (PortCounters); before a job: they stay."""


@dataclass(frozen=True)
class ProbeStream:
    """The output of one probe: the lines of each section, and the reason for each absent fact.

    Attributes:
        source: the file of the text, for messages.
        kind: ``facts``, ``before``, ``after`` or ``program``.
        sections: lines by section, without the mark ``| ``.
        absent: reason by ``section`` or ``section.key``.
    """

    source: str
    kind: str
    sections: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    absent: Mapping[str, Message] = field(default_factory=dict)

    def lines(self, section: str) -> tuple[str, ...]:
        """Return the lines of a section; empty if it is absent."""
        return self.sections.get(section, ())

    def text(self, section: str) -> str:
        """Return a section as one text."""
        return "\n".join(self.lines(section))

    def pairs(self, section: str) -> dict[str, str]:
        """Return the ``key: value`` lines of a section; the first value of a repeated key."""
        return dict(_pairs(self.lines(section)))

    def moment(self, section: str, key: str) -> str:
        """Return a time in ISO 8601 with its zone.

        Raises:
            BadInput: the value is none.
        """
        found = self.pairs(section).get(key, "")
        try:
            return moment_text(found)
        except ValueError:
            accepted = "a time in ISO 8601 with its zone"
            raise self.wrong(f"{section}.{key}", repr(found[:60]), accepted) from None

    def tables(self, section: str) -> dict[str, dict[str, str]]:
        """Return lines ``device key: value`` as values by key by device."""
        tables: dict[str, dict[str, str]] = {}
        for name, value in self.pairs(section).items():
            device, separator, key = name.rpartition(" ")
            if separator:
                tables.setdefault(device, {})[key] = value
        return tables

    def wrong(self, key: str, found: str, accepted: str) -> BadInput:
        """Return the error for the key `key` of this stream."""
        return bad_input(self.source, key, found, accepted)


def read_streams(text: str, source: str) -> tuple[ProbeStream, ...]:
    """Return each probe in `text`, from its header to its end mark.

    Lines that start with ``#`` before a header are comments.

    Raises:
        BadInput: no header, another version, a line without mark, a repeated section, or no end
            mark.
    """
    streams = tuple(_streams(text, source))
    if not streams:
        raise bad_input(source, "", "nothing", f"a line 'proofmark-probe {VERSION} <kind>'")
    return streams


def read_stream(text: str, source: str, *kinds: str) -> ProbeStream:
    """Return the one probe in `text`, which must be of one of `kinds`.

    Raises:
        BadInput: as `read_streams`; or there are several probes, or it is of another kind.
    """
    streams = read_streams(text, source)
    if len(streams) != 1:
        raise bad_input(source, "", f"{len(streams)} probes", "one")
    if streams[0].kind not in kinds:
        raise bad_input(source, "", f"a probe of kind {streams[0].kind!r}", " or ".join(kinds))
    return streams[0]


def _streams(text: str, source: str) -> Iterator[ProbeStream]:
    kind: str | None = None
    sections: dict[str, tuple[str, ...]] = {}
    absent: dict[str, Message] = {}
    # Not splitlines(): it also splits at characters that a mount point's name may contain.
    parts = f"\n{text}".removesuffix("\n").split("\n=== ")

    def number(place: int) -> int:
        """Return the number of the line before a part, or with its title."""
        return sum(part.count("\n") + 1 for part in parts[:place])

    for place, part in enumerate(parts):
        title = part.partition("\n")[0].removesuffix("\r")
        if place and kind is None:
            raise _no_header(f"{source}:{number(place)}", f"=== {title}")
        if title == "end" and place:
            assert kind is not None
            yield ProbeStream(source, kind, sections, absent)
            kind = None
        if title in sections and kind is not None:
            found, accepted = "the section a second time", "each section once"
            raise bad_input(f"{source}:{number(place)}", title, found, accepted)
        if kind is None:
            kind, (_, reasons, wrong) = _begin(part, source, partial(number, place))
            title, sections, absent = "", {}, {}
        else:
            sections[title], reasons, wrong = _section(part, before=kind != "after")
        if wrong:
            accepted = "'=== section', '| …', '! name: reason' or '!code name: values'"
            line = part.split("\n")[wrong].removesuffix("\r")
            raise bad_input(f"{source}:{number(place) + wrong}", title, repr(line), accepted)
        absent |= reasons
    if kind is not None:
        last = next(reversed(sections), "")
        raise bad_input(source, last, "the end of the text", "'=== end' before it")


def _no_header(place: str, line: str) -> BadInput:
    return bad_input(place, "", repr(line), f"'proofmark-probe {VERSION} <kind>'")


_Section = tuple[tuple[str, ...], Mapping[str, Message], int]
"""The lines of a section, its reasons, and the number of the first line that is neither, or 0."""


def _begin(part: str, source: str, number: Callable[[], int]) -> tuple[str | None, _Section]:
    """Return the kind of the probe that begins in `part`, and the reasons before its sections.

    Raises:
        BadInput: the first line that is no comment is no header.
    """
    lines = part.split("\n")
    for place, raw in enumerate(lines[1:], 1):
        line = raw.removesuffix("\r")
        if not line or line.startswith("#"):
            continue
        header = HEADER.fullmatch(line)
        if header is None or header[1] != VERSION:
            raise _no_header(f"{source}:{number() + place}", line)
        _, reasons, wrong = _section("\n".join(lines[place:]), titled=False)
        return header[2], ((), reasons, wrong and wrong + place)
    return None, ((), {}, 0)


@lru_cache(maxsize=512)  # most sections are the same on thousands of nodes
def _section(part: str, *, titled: bool = True, before: bool = False) -> _Section:
    """Return what a section states after its title; what has no title has only reasons."""
    lines: list[str] = []
    absent: dict[str, Message] = {}
    for number, raw in enumerate(part.split("\n")):
        line = raw.removesuffix("\r")
        if number and titled and line[:2] in ("| ", "|"):  # nearly all lines
            lines.append(line[2:])
        elif number and (known := _absence(line)):
            absent[known[0]] = known[1]
        elif number:
            return (), {}, number
    if titled and part.startswith(COUNTERS):
        for line in lines.copy():
            name, _, value = line.partition(": ")
            if NO_COUNT.fullmatch(value) or (before and _FULL.fullmatch(line)):
                lines.remove(line)
                absent[f"{COUNTERS}.{name}"] = Message("absent-no-count", value=value)
    return tuple(lines), absent, 0


def _absence(line: str) -> tuple[str, Message] | None:
    """Return the name of an absent fact and the reason; None if the line does not state one.

    A reason without a code is a text of the script or of a program that it started.
    """
    match = _ABSENT.fullmatch(line)
    if not match:
        return None
    word, name, rest = match[1], match[2], match[3] or ""
    if not word:
        return (name, Message("absent-said", problem=rest)) if rest else None
    code, names = f"absent-{word}", _VALUES.get(word, ())
    values = rest.split(" ", len(names) - 1) if rest else []
    if code not in MESSAGES or len(values) != len(names):
        return None
    return name, Message(code, **dict(zip(names, values, strict=True)))


T = TypeVar("T")
Lines = tuple[str, ...]


@lru_cache(maxsize=512)  # most sections are the same on thousands of nodes
def _pairs(lines: Lines) -> Mapping[str, str]:
    pairs: dict[str, str] = {}
    for line in lines:
        key, separator, value = line.partition(": ")
        if separator:
            pairs.setdefault(key.strip(), value.strip())
    return pairs


MOST_UNREAD_SHOWN = 5
"""The largest number of unread values that are named."""
LONGEST_UNREAD = 60
"""The largest number of characters of a value that is kept."""


class Unread:
    """Reads the optional values of one probe, and keeps those that cannot be read.

    Attributes:
        values: the text that was found, by the name of the value: ``section.key``.
        sections: the number of values that were read in each section, and of those that cannot be.
    """

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self.sections: dict[str, tuple[int, int]] = {}

    def read(self, name: str, text: str | None, reader: Callable[[str], T]) -> T | None:
        """Return `reader` of `text`; None if there is no text, or if `reader` refuses it."""
        if text is None:
            return None
        try:
            value = reader(text)
        except (ArithmeticError, LookupError, ValueError):
            self.refuse(name, text)
            return None
        self._count(name, 0)
        return value

    def read_lines(self, lines: Lines, reader: Callable[..., T], *known: frozenset[int]) -> T:
        """Return `reader` of a section, which is read once if thousands of nodes print the same.

        Nobody may change the value. The reader gets the lines, an `Unread` and what is `known`.
        """
        value, found = _read_lines(lines, reader, *known)
        self.values |= found.values
        for section, (read, refused) in found.sections.items():
            self._count(section, refused, read)
        shared: T = value
        return shared

    def refuse(self, name: str, text: str) -> None:
        """Keep `text` as a value that cannot be read."""
        self._count(name, 1)
        self.values[one_line(name)] = one_line(text)[:LONGEST_UNREAD]

    def _count(self, name: str, refused: int, read: int = 1) -> None:
        section = name.partition(".")[0]
        earlier, before = self.sections.get(section, (0, 0))
        self.sections[section] = earlier + read, before + refused

    @property
    def garbled(self) -> tuple[str, ...]:
        """The sections of which no value can be read."""
        return tuple(name for name, (read, refused) in self.sections.items() if read == refused)


@lru_cache(maxsize=64)
def _read_lines(
    lines: Lines, reader: Callable[..., Any], *known: frozenset[int]
) -> tuple[Any, Unread]:
    unread = Unread()
    return reader(lines, unread, *known), unread


def finite(text: str) -> float:
    """Return the number in `text`.

    Raises:
        ValueError: it is no finite number.
    """
    number = float(text)
    if not isfinite(number):
        raise ValueError(f"not finite: {text[:LONGEST_UNREAD]!r}")
    return number


def unread_lines(values: Mapping[str, str]) -> list[str]:
    """Return a line for each value that cannot be read; `MOST_UNREAD_SHOWN` lines, and a number."""
    lines = [f"{name}: {text!r} cannot be read" for name, text in values.items()]
    more = len(lines) - MOST_UNREAD_SHOWN
    return [
        *lines[:MOST_UNREAD_SHOWN],
        *([f"{more} more values cannot be read"] if more > 0 else []),
    ]
