"""The work folder of another user, which root reads and writes with the rights of that user.

That user can replace any part of it by a link at any moment. With the rights of that user a link
leads only to what the user can read and write anyway. `proofmark.common.files` asks `rights_at`
for each path, so that no reader of outputs has to think of it.
"""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from proofmark.common.errors import bad_input
from proofmark.common.processes import EVERY, environment_of


@dataclass(frozen=True)
class User:
    """A user of this machine: its name, its number, that of its first group, and its home."""

    name: str
    number: int
    group: int
    home: str

    @cached_property
    def groups(self) -> list[int]:
        """The numbers of all groups of the user."""
        return os.getgrouplist(self.name, self.group)

    @property
    def is_this(self) -> bool:
        """Whether this process runs as the user."""
        return self.number == os.geteuid()

    @property
    def words(self) -> list[str]:
        """The words of setpriv(1) that start a command as the user; empty: it is this one."""
        if self.is_this:
            return []
        return ["setpriv", f"--reuid={self.number}", f"--regid={self.group}", "--init-groups"]

    def environment(self, tool: str = EVERY) -> dict[str, str]:
        """Return the environment of a tool, or of a job, that runs as the user."""
        if self.is_this:
            return environment_of(tool)
        own = {"HOME": self.home, "USER": self.name, "LOGNAME": self.name}
        return environment_of(tool, own, personal=False)


def this_user() -> User:
    """Return the user of this process. One without an entry has a number in place of a name."""
    number = os.geteuid()
    try:
        entry = pwd.getpwuid(number)
    except KeyError:
        return User(f"{number}", number, os.getegid(), os.environ.get("HOME", "/"))
    return User(entry.pw_name, number, entry.pw_gid, entry.pw_dir)


def run_user(name: str) -> User:
    """Return the user who starts the programs; an empty name is this user.

    Raises:
        BadInput: there is no such user, or this process may not run as that user.
    """
    if not name or name == this_user().name:
        return this_user()
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        accepted = "a user of the controller, who starts the programs"
        raise bad_input("partition.run_user", "", f"{name}: no such user", accepted) from None
    if os.geteuid() != 0:
        found = f"{name}, and this is {this_user().name}"
        accepted = " or ".join(sorted({f"a call by {name}", "a call by root"}))
        raise bad_input("partition.run_user", "", found, accepted)
    return User(name, entry.pw_uid, entry.pw_gid, entry.pw_dir)


@contextmanager
def acting_as(user: User) -> Iterator[None]:
    """Run the block with the rights of `user`, if that is another user and this is root.

    The rights change for all threads of the process: no other thread may need those of root.
    """
    if os.geteuid() != 0 or user.number == 0:
        yield
        return
    group, groups = os.getegid(), os.getgroups()
    try:
        os.setgroups(user.groups)
        os.setegid(user.group)
        os.seteuid(user.number)
        yield
    finally:
        os.seteuid(0)
        os.setegid(group)
        os.setgroups(groups)


_OWNERS: dict[str, User] = {}
"""The work folders of other users, each with a slash at its end."""


def own_by(folder: Path, user: User) -> None:
    """Let paths below `folder` be read and written with the rights of `user`."""
    if not user.is_this:
        _OWNERS[f"{folder}/"] = user


def rights_at(path: Path | str) -> AbstractContextManager[None]:
    """Return the rights with which `path` is read or written."""
    if _OWNERS:
        text = f"{path}/"
        for folder, user in _OWNERS.items():
            if text.startswith(folder):
                return acting_as(user)
    return nullcontext()


_STARTS: ContextVar[User | None] = ContextVar("_STARTS", default=None)
"""The user who calls the scheduler and starts jobs; None: the user of this process."""


def starting_user() -> User:
    """Return the user who calls the scheduler and starts jobs."""
    return _STARTS.get() or this_user()


@contextmanager
def starting_as(user: User) -> Iterator[None]:
    """Call the scheduler and start jobs as `user` in the block."""
    before = _STARTS.set(user)
    try:
        yield
    finally:
        _STARTS.reset(before)
