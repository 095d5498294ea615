"""Compares the outputs of an execution with the SHA-256 that its script recorded at its end."""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import sha256

from proofmark.common.files import read_bytes
from proofmark.runs.binding_file import damage

DIGESTS = "outputs.sha256"
"""The file of the digests, in the format of ``sha256sum``. A node without a program for SHA-256,
and the scripts of older runs, write none."""
_ALWAYS = frozenset({"stdout", "stderr", "rc", "when.json", "binding.json"})
_LINE = re.compile(rb"([0-9a-f]{64}) [ *]([A-Za-z0-9][A-Za-z0-9._-]*)")


def changed_output(folder: str, known: Mapping[str, bytes]) -> str:
    """Return which output of an execution changed after its end, or an empty string.

    Args:
        folder: the folder of the execution.
        known: the contents of files that were read already, by name. A file without content was
            not there or is empty.
    """
    try:
        recorded = read_bytes(f"{folder}/{DIGESTS}")
    except FileNotFoundError:
        return ""
    except OSError as error:
        return damage(DIGESTS, error)
    lines = [_LINE.fullmatch(line) for line in recorded.splitlines()]
    digests = {line[2].decode(): line[1].decode() for line in lines if line}
    if None in lines or not digests.keys() >= _ALWAYS:
        return f"{DIGESTS} is damaged"
    for name in {**digests, **known}:
        content = known.get(name)
        if content is None:
            try:
                content = read_bytes(f"{folder}/{name}")
            except OSError:
                content = b""
        if name not in digests:
            if content:
                return f"{name} appeared after the step ended"
        elif sha256(content).hexdigest() != digests[name]:
            return f"{name} changed after the step ended"
    return ""
