"""Which files a process may believe: those that only root and its user can change.

A link counts as the path that it names, and is followed part by part: who owns a link chooses what
is found through it.
"""

from __future__ import annotations

import grp
import os
import pwd
import stat
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from proofmark.common.errors import BadInput, InputError

OWN_COPY = "files that only root and this user can change; `cp -r` makes a copy of this user"
"""What is accepted of a folder whose files a command executes or believes."""
_MOST_LINKS = 40
"""The most links that Linux follows in a path (path_resolution(7))."""


@dataclass(frozen=True)
class WeakPart:
    """A part of a path that another user can change."""

    path: Path
    found: str


class Untrusted(BadInput):
    """A path that another user can change."""


def refuse_untrusted(path: Path, accepted: str) -> None:
    """Refuse a file or folder that another user can change or replace.

    Args:
        path: it may be missing; then the folder in which it would be created counts.
        accepted: what the message names as accepted.

    Raises:
        Untrusted: it names the part of the path, and why another user can change it.
    """
    if weak := weak_part(path):
        part = "" if weak.path == path else f"{weak.path}: "
        raise Untrusted(InputError(f"{path}", "", f"{part}{weak.found}", accepted))


def refuse_untrusted_below(path: Path, accepted: str) -> None:
    """Refuse a file or folder, or anything below it, that another user can change or replace.

    Args:
        accepted: what the message names as accepted.

    Raises:
        Untrusted: as `refuse_untrusted`.
    """
    refuse_untrusted(path, accepted)
    folders, seen = [path], set[tuple[int, int]]()
    while folders:
        try:
            entries = list(os.scandir(folders.pop()))
        except OSError:  # a file, missing, or closed to this user
            continue
        for entry in entries:
            status, each = entry.stat(follow_symlinks=False), Path(entry.path)
            weak = weak_part(each) if entry.is_symlink() else _weak(each, status, is_end=True)
            if weak:
                refuse_untrusted(each, accepted)
            if entry.is_dir():
                place = entry.stat()
                if (place.st_dev, place.st_ino) not in seen:
                    seen.add((place.st_dev, place.st_ino))
                    folders.append(each)


def weak_part(path: Path) -> WeakPart | None:
    """Return the first part of `path` that a user other than root and this one can change.

    In a sticky folder, such as /tmp, nobody can replace what belongs to others. So it is weak only
    as the end of the path. The owner of this code counts as this user: it is executed anyway.
    """
    waiting = list(reversed(path.absolute().parts))
    current, links = Path(waiting.pop()), 0
    if weak := _weak(current, current.lstat(), is_end=not waiting):
        return weak
    while waiting:
        name = waiting.pop()
        if name == "..":
            current = current.parent
            continue
        part = current / name
        try:
            status = part.lstat()
        except OSError:  # missing: who can write the folder above it can create it
            return _weak(current, current.lstat(), is_end=True)
        if not stat.S_ISLNK(status.st_mode):
            if weak := _weak(part, status, is_end=not waiting):
                return weak
            current = part
            continue
        links += 1
        if status.st_uid not in _trusted_users() or links > _MOST_LINKS:
            found = f"a link of the user {user_name(status.st_uid)}"
            return WeakPart(part, found if links <= _MOST_LINKS else "too many links")
        target = part.readlink()
        if target.is_absolute():
            current = Path(target.anchor)
        waiting += reversed([each for each in target.parts if each != target.anchor])
    return None


def _weak(path: Path, status: os.stat_result, *, is_end: bool) -> WeakPart | None:
    """Return `path` if another user owns it or can write it."""
    kind = "folder" if stat.S_ISDIR(status.st_mode) else "file"
    if status.st_uid not in _trusted_users():
        return WeakPart(path, f"a {kind} of the user {user_name(status.st_uid)}")
    group = status.st_gid
    private = group == 0 or any(_is_group_of_one(group, user) for user in _trusted_users())
    by_group = status.st_mode & stat.S_IWGRP and not private
    shared = status.st_mode & stat.S_IWOTH or by_group
    if shared and (is_end or not status.st_mode & stat.S_ISVTX):
        mode = f"{stat.S_IMODE(status.st_mode):o}"
        return WeakPart(path, f"a {kind} that other users can write ({mode})")
    return None


def _trusted_users() -> set[int]:
    return {0, os.geteuid(), Path(__file__).stat().st_uid}


@cache
def _is_group_of_one(group: int, user: int) -> bool:
    """Return whether `group` is the private group of `user`, as distributions make it."""
    try:
        entry, known = pwd.getpwuid(user), grp.getgrgid(group)
    except KeyError:
        return False
    others = set(known.gr_mem) - {entry.pw_name}
    return entry.pw_gid == group and known.gr_name == entry.pw_name and not others


def user_name(number: int) -> str:
    """Return the name of the user `number`, or the number."""
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"{number}"
