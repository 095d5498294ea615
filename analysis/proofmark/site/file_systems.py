"""The file systems of a partition: mounts, the scratch directory, and what each type can do.

``machine/shell/mount-source.sh`` decides on a node, where host names can be resolved, whether the
mount that a kernel shows can be the one that a site names. What is here needs no node: a host name
may be any address.
"""

from __future__ import annotations

import os
import pwd
import re
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from itertools import zip_longest
from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from proofmark.cases.reader.own_rules import Pattern
from proofmark.cases.vocabulary import LAYOUT_AXES, Slug
from proofmark.common.errors import KeyMistake
from proofmark.common.host_names import is_address, same_host
from proofmark.common.input_limits import MAX_TARGETS
from proofmark.common.shared_models import StrictModel
from proofmark.common.yaml_models import shipped_data
from proofmark.site.hardware import Count, between
from proofmark.site.node.parts import MountedFileSystem, is_below


def _plain(path: str) -> str:
    if re.search(r"[${}<>*?`]|%\w|/~|\bUID\b", path.replace(UID, "")):
        raise ValueError(f"a path in which only {UID} is replaced, by the number of the user")
    return path


def _known_type(name: str) -> str:
    close = get_close_matches(name.lower(), kinds(), 1, 0.8)
    if close and name not in kinds():
        raise ValueError(f"a type as in /proc/mounts, did you mean {close[0]!r}?")
    return name


UID = "{uid}"
"""Stands for the number of the user who runs the benchmarks, in the path of a file system.

So each user has a directory of their own in a folder in which all users write.
"""
FolderPath = Annotated[str, Field(pattern=r"^/"), AfterValidator(_plain)]
KindName = Annotated[str, AfterValidator(_known_type)]
StorageRate = Annotated[float, between(1e6, 1e16, 1e9, 1e6)]
"""The rate of storage in bytes/s; documents have GB/s or MB/s."""
Targets = Annotated[int, Field(gt=0, le=MAX_TARGETS)]


class FileSystem(StrictModel):
    """A further scratch file system.

    Attributes:
        type, source: as those of `Scratch`. With neither, two file systems must not be one mount.
        block_bytes: the block size that GPFS was created with.
    """

    name: Slug
    path: FolderPath
    type: KindName | None = None
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
        path: where it is. The number of the user replaces ``{uid}`` in it (`with_uid`).
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

    path: FolderPath
    type: KindName | None = None
    source: str | None = None
    off_root: bool = False
    mount: Mount | None = None
    layout: dict[str, str | int] = {}
    server_cache_bytes: Count | None = None
    storage_targets: Targets | list[Annotated[int, Field(ge=0)]] | None = None
    client_bytes_per_s: StorageRate | None = None
    bytes_per_s: StorageRate | None = None

    @model_validator(mode="after")
    def _mount_is_complete(self) -> Self:
        if self.mount is None:
            return self
        if self.type is None or not (self.source or self.mount.source):
            raise KeyMistake("type and source beside it, to find it in /proc/mounts", "mount")
        if not is_below(self.path, self.mount.point):
            raise KeyMistake(f"a path below the mount point {self.mount.point}", "path")
        return self

    @property
    def targets(self) -> list[int]:
        """The indexes of the storage targets; empty if they are not known."""
        known = self.storage_targets
        return [*(range(known) if isinstance(known, int) else dict.fromkeys(known or ()))]


def with_uid(path: str, run_user: str | None) -> str:
    """Return `path` without `UID`.

    `run_user` is the user who runs the benchmarks, a user of this machine; without one it is the
    user of this process.
    """
    if UID not in path:
        return path
    try:
        number = pwd.getpwnam(run_user or "").pw_uid
    except KeyError:  # `check` refuses an unknown user
        number = os.geteuid()
    return path.replace(UID, f"{number}")


Words = tuple[str, ...]


class LayoutTool(StrictModel):
    """A tool that sets the layout of a folder, and prints that of a file.

    Attributes:
        set: the command for the folder ``{path}``; ``{options}`` are those of the requested axes.
        options: axis → its words, with the ``{value}``.
        get: the command that prints the layout of the ``{file}``.
        found: axis → a pattern of that print; its group is the value, a number of bytes with k, m
            or g as suffix, or a number.
    """

    set: Words
    options: Mapping[str, Words]
    get: Words
    found: Mapping[str, Pattern]

    @model_validator(mode="after")
    def _known_axes(self) -> Self:
        if not set(LAYOUT_AXES) >= self.options.keys() == self.found.keys():
            raise ValueError(f"options and found: the same keys, of {', '.join(LAYOUT_AXES)}")
        return self


class FileSystemKind(StrictModel):
    """The commands of one type of file system; an empty one is not possible for the type.

    Attributes:
        mount, unmount: mount the file system, and unmount it.
        set: sets the layout of new files in the scratch directory.
        get: prints that layout.
        steps: the tools for the layout of one step. The first one that a node has is used.
    """

    mount: Words
    unmount: Words = ("umount", "{point}")
    set: Words = ()
    get: Words = ()
    steps: tuple[LayoutTool, ...] = ()

    @property
    def axes(self) -> tuple[str, ...]:
        """The axes of a layout that every tool of the type can set."""
        return tuple(
            axis
            for axis in LAYOUT_AXES
            if self.steps and all(axis in tool.options for tool in self.steps)
        )


@cache
def kinds() -> Mapping[str, FileSystemKind]:
    """Return the known types of file systems."""
    return shipped_data("proofmark.site", "file_systems.yml", dict[str, FileSystemKind])


@cache
def network_kinds() -> frozenset[str]:
    """Return the known types of file systems that nodes mount from others."""
    further = {"9p", "ceph", "cifs", "dvs", "fuse.ceph", "orangefs", "panfs", "pvfs2", "virtiofs"}
    return frozenset(kinds().keys() - {"tmpfs"} | further)


def layout_axes(kind: str | None) -> tuple[str, ...]:
    """Return the axes of a layout that the type of file system `kind` can set."""
    known = kinds().get(kind or "")
    return known.axes if known else ()


def same_type(shown: str, wanted: str) -> bool:
    """Return whether `shown` is the type `wanted`; a mount of type nfs can be shown as nfs4.

    Source: nfs(5), the option `nfsvers`; /proc/mounts of a client of an NFS 4 server.
    """
    return shown == wanted or (shown, wanted) == ("nfs4", "nfs")


def planned_instead(
    planned: Scratch | FileSystem, mount: MountedFileSystem, *, off_root: bool
) -> str:
    """Return what was planned in place of `mount`; empty if it can be this one."""
    same = planned.type is None or same_type(mount.kind, planned.type)
    if not same or not may_be_same(mount.source, planned.source or mount.source):
        return " ".join(filter(None, (planned.type, planned.source)))
    return "another than /" if off_root and mount.target in ("", "/") else ""


def may_be_same(shown: str, wanted: str) -> bool:
    """Return whether two sources can be of one file system, if their host names are looked up.

    Source: mount.lustre(8) gives the kernel addresses instead of host names, and ``tcp`` instead
    of no network.
    """
    if shown == wanted:
        return True
    pairs = zip_longest(_parts(shown), _parts(wanted), fillvalue=("", ""))
    return all(
        network == other_network and (same_host(host, other) or _is_name(host) != _is_name(other))
        for (host, network), (other, other_network) in pairs
    )


def _parts(source: str) -> list[tuple[str, str]]:
    """Return the servers of a source with their networks, and its path as ``("", "/PATH")``."""
    servers, colon, path = source.rpartition(":")
    if not colon:
        return [("", source)]
    bracketed = re.fullmatch(r"\[(.*)\]", servers)
    parts = [("", f"/{path.strip('/')}")]
    for server in [bracketed[1]] if bracketed else re.split("[,:]", servers):
        host, _, network = server.partition("@")
        parts.append((host, re.sub(r"(?<=[a-z])0$", "", network) or "tcp"))
    return parts


def _is_name(host: str) -> bool:
    return not is_address(host) and re.search("[A-Za-z]", host) is not None
