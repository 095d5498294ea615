"""The XML of Grid Engine commands, and the states of its queue instances."""

from __future__ import annotations

import re
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from proofmark.machine.node_states import Use

QUEUE_STATES = {
    "A": Use.PROMISED,  # its suspend threshold is reached
    "C": Use.PROMISED,  # suspended by its calendar, until its hours begin
    "D": Use.PROMISED,  # disabled by its calendar, likewise
    "E": Use.OUT,  # a job could not be started there
    "P": Use.OCCUPIED,  # Univa: preempted
    "S": Use.OCCUPIED,  # suspended by the jobs of another queue
    "a": Use.OCCUPIED,  # its load threshold is reached; a host that does not answer is "au"
    "c": Use.OUT,  # its configuration is ambiguous
    "d": Use.OUT,
    "o": Use.OUT,  # an orphan: it is no longer configured
    "s": Use.OUT,
    "u": Use.OUT,  # its daemon does not answer
}
"""qstat(1), section OUTPUT FORMATS: the letters of a queue instance."""

_ELEMENT = re.compile(r"(\s*<(\w+)(?:\s[^<>]*)?>)(.*)(</\2>\s*)")
_FORBIDDEN = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that no XML text may contain (XML 1.0, Char)."""
_LOOSE = re.compile(r"&(?!(?:#\d+|#x[0-9a-fA-F]+|amp|lt|gt|quot|apos);)")


def read_xml(text: str) -> ElementTree.Element:
    """Return the root of XML of Grid Engine, which need not escape the names that people gave.

    Such a text is read again without control characters. Grid Engine prints one element a line.

    Raises:
        ValueError: it is no XML even then.
    """
    try:
        return ElementTree.fromstring(text)
    except ElementTree.ParseError:
        pass
    lines = map(_repaired, _FORBIDDEN.sub("?", text).split("\n"))
    try:
        return ElementTree.fromstring("\n".join(lines))
    except ElementTree.ParseError as error:
        raise ValueError(f"{error}") from None


def _repaired(line: str) -> str:
    match = _ELEMENT.fullmatch(line)
    if match is None:
        return _LOOSE.sub("&amp;", line)
    begin, _, inside, end = match.groups()
    try:
        ElementTree.fromstring(line)
    except ElementTree.ParseError:
        return f"{begin}{escape(inside)}{end}"
    return line
