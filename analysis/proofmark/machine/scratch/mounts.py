"""The commands by which a node mounts its scratch file system; ``file_systems.yml`` has the words.

Parallel file systems differ in how they are mounted and striped, not in what has to be proven of
them: that is the guard's, and the same for all.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from string import Formatter

import yaml

from proofmark.common.errors import bad_input, nearest
from proofmark.common.strict_model import StrictModel
from proofmark.site.storage import Scratch


class FileSystemKind(StrictModel):
    """The commands of one type of file system; a type without one cannot do that.

    Attributes:
        mount, unmount: ``umount {point}`` is the usual way to take it away.
        set: lays new files of the scratch directory out as the site wants.
        get: prints how they are laid out.
    """

    mount: tuple[str, ...]
    unmount: tuple[str, ...] = ("umount", "{point}")
    set: tuple[str, ...] = ()
    get: tuple[str, ...] = ()


@cache
def kinds() -> Mapping[str, FileSystemKind]:
    """Return the known types of file systems."""
    text = (files("proofmark.machine.scratch") / "file_systems.yml").read_text(encoding="utf-8")
    return {name: FileSystemKind(**each) for name, each in yaml.safe_load(text).items()}


def mount_commands(scratch: Scratch) -> dict[str, str]:
    """Return the commands for `scratch` as quoted sh text, by what they do; empty is nothing to do.

    ``mount`` and ``unmount`` are there if the site has the kit mount, ``set`` if it lists a layout,
    ``get`` wherever the type can tell it.

    Raises:
        BadInput: a layout that this type cannot set, or a mount of a type that nothing is known of.
    """
    known = kinds().get(scratch.type or "")
    commands = dict.fromkeys(("mount", "unmount", "set", "get"), "")
    if scratch.mount is not None and known is None:
        hint = nearest(scratch.type or "", kinds())
        found = f"{scratch.type!r}{hint}"
        raise bad_input("partition.scratch", "type", found, f"to be mounted: {', '.join(kinds())}")
    if known is None:
        if scratch.layout:
            raise _no_layout(scratch, "nothing: its type is not known here")
        return commands
    words: dict[str, str] = {"path": scratch.path, "source": scratch.source or ""}
    if scratch.mount is not None:
        words["source"] = scratch.mount.source or words["source"]
        words["point"] = scratch.mount.point
        words["options"] = ",".join(scratch.mount.options) or "rw"
        commands["mount"] = _spelt(known.mount, words)
        commands["unmount"] = _spelt(known.unmount, words)
    commands["get"] = _spelt(known.get, words) if _fields(known.get) <= _told(words) else ""
    if scratch.layout:
        settable = _fields(known.set) - set(words)
        if set(scratch.layout) != settable:
            raise _no_layout(scratch, ", ".join(sorted(settable)) or "nothing: it is fixed")
        commands["set"] = _spelt(
            known.set, {**words, **{key: f"{value}" for key, value in scratch.layout.items()}}
        )
    return commands


def _told(words: Mapping[str, str]) -> set[str]:
    return {name for name, value in words.items() if value}


def _fields(command: Sequence[str]) -> set[str]:
    parsed = (field for word in command for _, field, _, _ in Formatter().parse(word))
    return {field for field in parsed if field}


def _spelt(command: Sequence[str], words: Mapping[str, str]) -> str:
    return shlex.join(word.format_map(words) for word in command)


def _no_layout(scratch: Scratch, accepted: str) -> Exception:
    found = f"{', '.join(scratch.layout)} of a {scratch.type or 'file system of no told type'}"
    return bad_input("partition.scratch", "layout", found, accepted)
