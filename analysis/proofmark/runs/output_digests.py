"""Compares the outputs of an execution with the SHA-256 that its script recorded at its end."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from hashlib import sha256

from proofmark.common.files import read_bytes
from proofmark.common.limits import MAX_SMALL_BYTES
from proofmark.common.message import NOTHING, Message
from proofmark.runs.binding_file import damage

DIGESTS = "outputs.sha256"
"""The file of the digests, in the format of ``sha256sum``."""
_ALWAYS = ("started", "stdout", "stderr", "rc", "when.json", "binding.json", "noise.json")
_SOMETIMES = frozenset(
    {"telemetry.jsonl", "copies.json", "scratch.json", "files.json", "layout.txt", "load.json"}
)
"""Files of some executions. They are read if they are there."""
_LINE = re.compile(rb"([0-9a-f]{64}) [ *]([A-Za-z0-9][A-Za-z0-9._-]*)")


def changed_output(folder: str, known: Mapping[str, bytes]) -> Message:
    """Return which output of an execution is not that of its end, or `NOTHING`.

    Args:
        folder: the folder of the execution.
        known: the contents of files that were read already, by name. A file without content may be
            missing.
    """
    try:
        recorded = read_bytes(f"{folder}/{DIGESTS}", MAX_SMALL_BYTES)
        present = {name for name in os.listdir(folder) if name in _SOMETIMES}  # noqa: PTH208
    except FileNotFoundError:
        return Message("digests-missing", file=DIGESTS)
    except OSError as error:
        return damage(DIGESTS, error)
    lines = [_LINE.fullmatch(line) for line in recorded.splitlines()]
    digests = {line[2].decode(): line[1].decode() for line in lines if line}
    if None in lines or not digests:
        return Message("digests-damaged", file=DIGESTS)
    if absent := [name for name in _ALWAYS if name not in digests]:
        return Message("digest-missing", file=DIGESTS, name=absent[0])
    for name in dict.fromkeys([*digests, *sorted(present), *known]):
        content = known.get(name, b"")
        if not content:
            try:
                content = read_bytes(f"{folder}/{name}")
            except FileNotFoundError:
                if name in digests:
                    return Message("file-missing", file=name)
                continue
            except OSError as error:
                return damage(name, error)
        if name not in digests:
            return Message("file-appeared", file=name)
        if sha256(content).hexdigest() != digests[name]:
            return Message("file-changed", file=name)
    return NOTHING
