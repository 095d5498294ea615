"""A private folder for a user without a home."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from proofmark.common.errors import bad_input


@contextmanager
def private_home(user: int, group: int) -> Iterator[Path]:
    """Yield a new empty folder that only `user` can read; remove it after the block. Needs root.

    Its name is random. The folder above it belongs to root, so that no other user can replace it.

    Raises:
        BadInput: there is no temporary folder that every user can enter, and in which no user can
            rename the files of others.
    """
    candidates = [tempfile.gettempdir(), "/tmp", "/var/tmp"]
    place = next((each for each in candidates if _is_safe(Path(each))), None)
    if place is None:
        accepted = "a folder with the permissions of /tmp (1777)"
        raise bad_input("TMPDIR", "", ", ".join(dict.fromkeys(candidates)), accepted)
    top = Path(tempfile.mkdtemp(prefix="proofmark-home-", dir=place))
    try:
        home = top / "home"
        home.mkdir(0o700)
        os.chown(home, user, group)
        top.chmod(0o711)
        yield home
    finally:
        shutil.rmtree(top, ignore_errors=True)


def _is_safe(folder: Path) -> bool:
    """Return whether all users can enter `folder`, and only root can rename files of others."""
    for each in (folder.resolve(), *folder.resolve().parents):
        try:
            status = each.stat()
        except OSError:
            return False
        shared = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        if status.st_uid != 0 or not status.st_mode & stat.S_IXOTH:
            return False
        if shared and not status.st_mode & stat.S_ISVTX:
            return False
    return True
