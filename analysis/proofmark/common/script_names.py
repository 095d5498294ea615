"""Names the scripts in the standard input of ``sh -s``, for the trace.

A script of the kit begins with ``#!/bin/sh`` and a comment whose first word is its file name. A
script in a Python module begins with ``#: NAME.sh``. The line ``set -- ARGUMENT…`` before it has
its arguments. No other part of an input is shown, because an input can begin with a password.
"""

from __future__ import annotations

import re

_HEADER = re.compile(r"^(?:#!/bin/sh\n# |#: )([\w-]+\.sh)\b", re.MULTILINE)
_ARGUMENTS = "\nset -- "
_LONGEST = 200
"""Characters of the arguments that are shown."""
_SECRET = re.compile(r"(pass\w*|token|secret)=[^\s,'\"]+", re.IGNORECASE)


def script_names(text: str) -> str:
    """Return the names of the scripts in `text`, with their arguments; empty if it has none."""
    shown: list[str] = []
    end = 0
    for header in _HEADER.finditer(text):
        _, found, arguments = f"\n{text[end : header.start()]}".rpartition(_ARGUMENTS)
        words = without_passwords(arguments.strip()) if found else ""
        words = f"{words[:_LONGEST]}…" if len(words) > _LONGEST else words
        shown.append(f"{header[1]} {words}".strip())
        end = header.end()
    return "; ".join(shown)


def without_passwords(words: str) -> str:
    """Return `words` of a command line without the values of passwords, as in ``password=x``."""
    return _SECRET.sub(r"\1=***", words)
