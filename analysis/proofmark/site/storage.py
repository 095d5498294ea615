"""The file systems of a partition, and its scratch directory."""

from __future__ import annotations

import os
import pwd
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from proofmark.cases.vocabulary import Slug
from proofmark.common.input_limits import MAX_TARGETS
from proofmark.common.strict_model import StrictModel
from proofmark.site.hardware import Count

Targets = Annotated[int, Field(gt=0, le=MAX_TARGETS)]


class FileSystem(StrictModel):
    """A further scratch file system.

    Attributes:
        type, source: as those of `Scratch`. With neither, two file systems must not be one mount.
        block_bytes: the block size that GPFS was created with.
    """

    name: Slug
    path: str = Field(pattern=r"^/")
    type: str | None = None
    source: str | None = None
    block_bytes: Count | None = None


class Mount(StrictModel):
    """A file system that the kit mounts on the nodes and unmounts again.

    Without a `Mount` the kit only checks that the file system is mounted. ``source`` is needed if
    the mount command takes another name of it than ``/proc/mounts`` shows. Host names that resolve
    to the shown addresses are no other name.
    """

    point: str = Field(pattern=r"^/.")
    source: str | None = None
    options: list[str] = []


class Scratch(StrictModel):
    """The directory in which benchmarks write, and the checks of it.

    Attributes:
        path: where it is. `UID` in it is replaced before it is read (`with_uid`).
        type: the required file system type, as in ``/proc/mounts``; nfs accepts nfs4; None accepts
            any.
        source: the required source, as in ``/proc/mounts``, or with host names that the nodes
            resolve to its addresses; None accepts any.
        off_root: the directory must not be on the root file system.
        layout: the layout of new files, by the names of the file system's own command
            (``stripe_count``, ``stripe_size``).
        server_cache_bytes: the memory of all storage servers together, which can hold written data.
        storage_targets: the number of storage targets (their indexes begin with 0), or their
            indexes; None if they are not known. ``lfs osts`` prints those of Lustre.
        client_bytes_per_s: the rate at which one node writes, measured or stated.
        bytes_per_s: the peak rate of all storage servers together.
    """

    path: str = Field(pattern=r"^/")
    type: str | None = None
    source: str | None = None
    off_root: bool = False
    mount: Mount | None = None
    layout: dict[str, str | int] = {}
    server_cache_bytes: Count | None = None
    storage_targets: Targets | list[Annotated[int, Field(ge=0)]] | None = None
    client_bytes_per_s: Annotated[float, Field(gt=0)] | None = None
    bytes_per_s: Annotated[float, Field(gt=0)] | None = None

    @model_validator(mode="after")
    def _mount_is_complete(self) -> Self:
        if self.mount is None:
            return self
        if self.type is None or not (self.source or self.mount.source):
            raise ValueError("a mount needs type and source, to find it in /proc/mounts")
        if not f"{self.path}/".startswith(f"{self.mount.point.rstrip('/')}/"):
            raise ValueError(f"path {self.path} is not below the mount point")
        return self

    @property
    def targets(self) -> list[int]:
        """The indexes of the storage targets; empty if they are not known."""
        known = self.storage_targets
        if isinstance(known, int):
            return list(range(known))
        return list(dict.fromkeys(known or ()))


UID = "{uid}"
"""Stands for the number of the user who runs the benchmarks, in the path of a file system.

So each user has a directory of their own in a folder in which all users write.
"""


def with_uid(path: Any, run_user: Any) -> Any:
    """Return `path` of an inventory without `UID`; another value than a text is returned as it is.

    `run_user` is the user who runs the benchmarks, a user of this machine; without one it is the
    user of this process.
    """
    if not isinstance(path, str) or UID not in path:
        return path
    try:
        number = pwd.getpwnam(run_user).pw_uid
    except (KeyError, TypeError):  # `check` refuses an unknown user
        number = os.geteuid()
    return path.replace(UID, f"{number}")
