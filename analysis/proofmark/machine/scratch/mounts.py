"""The commands that mount and stripe a scratch file system, by its type.

`proofmark.site.file_systems` has the words. What is checked of a file system is the same for all
types (`proofmark.machine.scratch.scratch_checks`).
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from string import Formatter

from proofmark.common.errors import bad_input, nearest
from proofmark.site.file_systems import kinds
from proofmark.site.storage import Scratch


def mount_commands(scratch: Scratch) -> dict[str, str]:
    """Return the commands for `scratch` as quoted sh text, by purpose; empty: nothing to do.

    ``mount`` and ``unmount`` are set if the site declares a mount, ``set`` if it declares a layout,
    ``get`` if the type has a command that prints the layout.

    Raises:
        BadInput: the type cannot set the layout, or a mount has an unknown type.
    """
    known = kinds().get(scratch.type or "")
    commands = dict.fromkeys(("mount", "unmount", "set", "get"), "")
    if scratch.mount is not None and known is None:
        hint = nearest(scratch.type or "", kinds())
        found = f"{scratch.type!r}{hint}"
        raise bad_input("partition.scratch", "type", found, f"to be mounted: {', '.join(kinds())}")
    if known is None:
        if scratch.layout:
            raise _no_layout(scratch, "no layout: the type is unknown")
        return commands
    words: dict[str, str] = {"path": scratch.path, "source": scratch.source or ""}
    if scratch.mount is not None:
        words["source"] = scratch.mount.source or words["source"]
        words["point"] = scratch.mount.point
        words["options"] = ",".join(scratch.mount.options) or "rw"
        commands["mount"] = _shell_text(known.mount, words)
        commands["unmount"] = _shell_text(known.unmount, words)
    commands["get"] = (
        _shell_text(known.get, words) if _fields(known.get) <= _non_empty(words) else ""
    )
    if scratch.layout:
        settable = _fields(known.set) - set(words)
        if set(scratch.layout) != settable:
            raise _no_layout(scratch, ", ".join(sorted(settable)) or "no layout: it is fixed")
        commands["set"] = _shell_text(
            known.set, {**words, **{key: f"{value}" for key, value in scratch.layout.items()}}
        )
    return commands


def _non_empty(words: Mapping[str, str]) -> set[str]:
    return {name for name, value in words.items() if value}


def _fields(command: Sequence[str]) -> set[str]:
    parsed = []
    for word in command:
        parsed += [field for _, field, _, _ in Formatter().parse(word)]
    return {field for field in parsed if field}


def _shell_text(command: Sequence[str], words: Mapping[str, str]) -> str:
    return shlex.join(word.format_map(words) for word in command)


def _no_layout(scratch: Scratch, accepted: str) -> Exception:
    found = f"{', '.join(scratch.layout)} of a {scratch.type or 'file system without type'}"
    return bad_input("partition.scratch", "layout", found, accepted)
