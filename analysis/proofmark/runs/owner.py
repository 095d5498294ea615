"""The user to whom the folder of a run belongs, and writing there with the rights of that user.

Root works in folders of the run user. That user can replace any file or folder of the run by a link
at any moment. A write with the rights of that user can follow the link only to places where the
user can write anyway.
"""

from __future__ import annotations

import os
import pwd
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from proofmark.common.errors import BadInput, InputError, bad_input


class UnsafeFolder(BadInput):
    """A folder of root that another user can replace."""


@dataclass(frozen=True)
class Owner:
    """The numbers of a user, of its first group and of all of its groups."""

    user: int
    group: int
    groups: list[int]


def foreign_owner(folder: Path) -> Owner | None:
    """Return the other user who owns the folder of a run, if this is root; else None.

    A folder that does not exist has no owner.

    Raises:
        BadInput: root owns the folder, and another user can replace it.
    """
    if os.geteuid() != 0 or not folder.is_dir():
        return None
    status = _owner(folder.resolve())
    return Owner(status.st_uid, status.st_gid, _groups(status)) if status.st_uid else None


def refuse_root(folder: Path) -> None:
    """Refuse to open a run with the rights of root if another user can write its files.

    Raises:
        BadInput: another user owns the folder, or can replace it.
    """
    if owner := foreign_owner(folder):
        name = user_name(owner.user)
        found = f"{folder}: a run of the user {name}; root reads nothing that {name} can write"
        raise bad_input("RUN", "", found, f"the same command as {name}, or a run of root")


@contextmanager
def as_owner(folder: Path) -> Iterator[None]:
    """Run the block with the user and the groups of the owner of `folder`, if this is root.

    The rights change for all threads of the process: no other thread may need those of root.

    Raises:
        BadInput: `folder` is a link, or root owns it and another user can replace it.
    """
    status = _owner(folder) if os.geteuid() == 0 else None
    with _rights_of(status if status and status.st_uid else None):
        yield


@contextmanager
def as_writer(path: Path) -> Iterator[None]:
    """Run the block with the rights of the first other user on the way to `path`, if this is root.

    That user can replace all that is below its part of `path`, which need not exist.
    """
    with _rights_of(_first_foreign(path) if os.geteuid() == 0 else None):
        yield


def _first_foreign(path: Path) -> os.stat_result | None:
    """Return the status of the first part of `path` that another user owns; None if none does."""
    for part in (*reversed(path.parents), path):
        try:
            status = part.lstat()
        except OSError:
            return None
        if status.st_uid not in _trusted():
            return status
    return None


@contextmanager
def _rights_of(owner: os.stat_result | None) -> Iterator[None]:
    """Run the block with the user and the groups of `owner`; None changes nothing."""
    if owner is None:
        yield
        return
    group, groups = os.getegid(), os.getgroups()
    try:
        os.setgroups(_groups(owner))
        os.setegid(owner.st_gid)
        os.seteuid(owner.st_uid)
        yield
    finally:
        os.seteuid(0)
        os.setegid(group)
        os.setgroups(groups)


def drop_rights(folders: Sequence[Path]) -> None:
    """Give up the rights of root for those of the other user who owns one of `folders`.

    Folders that do not exist are left out.

    Raises:
        BadInput: the folders belong to several other users.
    """
    if os.geteuid() != 0:
        return
    others = {owner.user: owner for folder in folders if (owner := foreign_owner(folder))}
    if len(others) > 1:
        found = f"folders of {', '.join(sorted(map(user_name, others)))}"
        raise bad_input("RUN", "", found, "runs of one user")
    for owner in others.values():
        os.setgroups(owner.groups)
        os.setresgid(owner.group, owner.group, owner.group)
        os.setresuid(owner.user, owner.user, owner.user)


def refuse_foreign(folder: Path) -> None:
    """Refuse to start programs from `folder` as root if another user can change them.

    Raises:
        BadInput: another user owns the folder, or can replace it.
    """
    if owner := foreign_owner(folder):
        name = user_name(owner.user)
        found = f"{folder}: a folder of the user {name}, whose files root would execute"
        raise bad_input("RUN", "", found, f"the same command as {name}, or a run of root")


def user_name(number: int) -> str:
    """Return the name of the user `number`, or the number."""
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"{number}"


def _owner(folder: Path) -> os.stat_result:
    """Return the status of `folder`, an absolute path without links.

    Raises:
        BadInput: a part of the path is a link.
        UnsafeFolder: root owns the folder, and another user owns or can write a folder above it.
            The owner of the kit's own code is trusted.
    """
    trusted = _trusted()
    foreign: Path | None = None
    for path in (*reversed(folder.parents), folder):
        status = path.lstat()
        if not stat.S_ISDIR(status.st_mode):
            raise bad_input(path, "", "a link, or not a folder", "a folder")
        shared = status.st_mode & stat.S_IWOTH and not status.st_mode & stat.S_ISVTX
        if path != folder and (shared or status.st_uid not in trusted):
            foreign = path
    if foreign and status.st_uid == 0:
        found = f"a folder of root in {foreign}, where another user can replace it"
        accepted = "a folder of root in folders of root"
        raise UnsafeFolder(InputError(f"{folder}", "", found, accepted))
    return status


def _trusted() -> set[int]:
    """Return root and the owner of the kit's own code, which root executes."""
    return {0, Path(__file__).stat().st_uid}


def _groups(owner: os.stat_result) -> list[int]:
    try:
        name = pwd.getpwuid(owner.st_uid).pw_name
    except KeyError:
        return [owner.st_gid]
    return os.getgrouplist(name, owner.st_gid)
