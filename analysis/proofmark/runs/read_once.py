"""The files of one execution. Its folder is listed once, and each file is read once."""

from __future__ import annotations

import errno
import os
from collections.abc import Set
from functools import cached_property

from proofmark.common.files import names_in, read_bytes
from proofmark.common.input_limits import MAX_OUTPUT_BYTES


class ReadOnce:
    """Reads files of a folder, and keeps what it read.

    A file that is not in the list of the folder costs no system call: most executions lack half of
    the files that an execution can have, and a run has 100,000 executions.
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._contents: dict[str, bytes] = {}

    @cached_property
    def names(self) -> Set[str]:
        """The names in the folder; empty if there is no such folder.

        Raises:
            OSError: the folder cannot be listed.
        """
        return frozenset(names_in(self.folder))

    def read(self, name: str, limit: int = MAX_OUTPUT_BYTES) -> bytes:
        """Return the content of the file `name`, as `read_bytes`.

        Raises:
            OSError: as `read_bytes`.
        """
        content = self._contents.get(name)
        if content is None or len(content) > limit:  # a larger limit may have held before
            path = f"{self.folder}/{name}"
            if name not in self.names and "/" not in name:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
            content = self._contents[name] = read_bytes(path, limit)
        return content

    def content(self, name: str, limit: int = MAX_OUTPUT_BYTES) -> bytes:
        """Return the content of the file `name`; empty if it is missing or cannot be read."""
        try:
            return self.read(name, limit)
        except OSError:
            return b""

    @property
    def read_names(self) -> Set[str]:
        """The names of the files that were read."""
        return self._contents.keys()
