"""The files of a run with their SHA-256, in the order of ``SHA256SUMS``."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from proofmark.common.files import sha256_of
from proofmark.common.parallel import parallel_map

NAME, SIGNATURE = "SHA256SUMS", "SHA256SUMS.sig"
NOT_LISTED = frozenset({NAME, SIGNATURE, "lock"})
"""Files without a checksum. The lock belongs to the process that works on the run."""
LINK = "a symbolic link"
SPECIAL = "not a file and not a folder"
"""What stands for the checksum of an entry that has none."""
_ONE_PROCESS = 2000
"""Maximum number of folders that one process reads: the start of more takes longer."""
Entries = list[tuple[str, str]]
"""Files with their checksums. A folder that was not read ends with a slash, and has none."""
Part = TypeVar("Part")


def sums_in_parts(folder: Path, form: Callable[[Entries], Part]) -> Iterator[Part]:
    """Return the files of `folder`, sorted by their paths, in parts that have the form `form`.

    The files at the top are read before the first part is. Several processes read many folders.
    """
    root = os.fspath(folder)
    top = _below(root, deepest=1)
    deep = [name for name, checksum in top if not checksum]
    # The number of links of a folder includes its sub-folders on most file systems.
    large = sum(os.stat(f"{root}/{name}").st_nlink for name in deep) > _ONE_PROCESS  # noqa: PTH116
    parts = parallel_map(lambda name: form(_below(root, name)), deep, large=large)
    return (form([entry]) if entry[1] else next(parts) for entry in top)


def _below(root: str, folder: str = "", deepest: int = sys.maxsize) -> Entries:
    """Return the files below `folder`, sorted; no folder is read below the level `deepest`."""
    entries: Entries = []
    waiting = _listed(root, folder)
    while waiting:
        name, checksum = waiting.pop()
        if checksum or name.count("/") > deepest:
            entries.append((name, checksum))
        else:
            waiting += _listed(root, name)
    return entries


def _listed(root: str, folder: str) -> Entries:
    """Return the files and folders in `folder`, the last one first, by their paths below `root`."""
    entries: Entries = []
    place = os.open(f"{root}/{folder}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with os.scandir(place) as found:
            for each in found:
                name = f"{folder}{each.name}"
                if each.is_file(follow_symlinks=False):
                    if name not in NOT_LISTED:
                        entries.append((name, sha256_of(each.name, folder=place)))
                elif each.is_symlink():
                    entries.append((name, LINK))
                elif each.is_dir():
                    entries.append((f"{name}/", ""))
                elif name not in NOT_LISTED:
                    entries.append((name, SPECIAL))
    finally:
        os.close(place)
    entries.sort(reverse=True)
    return entries
