"""Words of tables that a line must not break: names of nodes, ids, paths."""

from __future__ import annotations

import re
from functools import lru_cache
from html import escape

SHORT = 24
"""A word of at most this many characters is in one line on any screen and on paper."""
LONG = 48
"""A word of at most this many characters is in one line on a wide screen."""
_BREAKS = re.compile(r"[-/?|–]")
"""The characters after which a browser breaks a line within a word."""
_PIECE = re.compile(r"[^/,;=:]*[/,;=:]?")


def unbroken(text: str) -> str:
    """Return `text` as HTML whose lines break between words.

    A longer word breaks after a slash, comma, semicolon, colon or equals sign. A piece without one
    of these breaks anywhere, so that a table is never wider than the page.
    """
    return "".join(map(_word, re.split(r"(\s+)", text)))


@lru_cache(maxsize=4096)
def _word(word: str) -> str:
    if len(word) <= SHORT:
        return f'<span class="w">{escape(word)}</span>' if _BREAKS.search(word) else escape(word)
    pieces = "<wbr>".join(map(_piece, filter(None, _PIECE.findall(word))))
    kind = "w long" if len(word) <= LONG else "any"
    return f'<span class="{kind}">{pieces}</span>'


def _piece(piece: str) -> str:
    kind = "w" if len(piece) <= SHORT else "any"
    return f'<span class="{kind}">{escape(piece)}</span>'
