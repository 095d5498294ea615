"""File systems of a partition, and the scratch folder on one of them."""

from __future__ import annotations

from typing import Self

from pydantic import (
    Field,
    model_validator,
)

from proofmark.cases.models import Slug
from proofmark.common.strict_model import StrictModel
from proofmark.site.hardware import Count


class FileSystem(StrictModel):
    """A further scratch file system; `block_bytes` was fixed when it was made (GPFS)."""

    name: Slug
    path: str = Field(pattern=r"^/")
    block_bytes: Count | None = None


class Mount(StrictModel):
    """What the kit mounts on the nodes, and takes away again; without it the kit only checks.

    ``source`` is needed where the type's mount command names it otherwise than ``/proc/mounts``.
    """

    point: str = Field(pattern=r"^/.")
    source: str | None = None
    options: list[str] = []


class Scratch(StrictModel):
    """The directory in which benchmarks write, and what it must be.

    ``type``, ``source`` (both as in ``/proc/mounts``) and ``off_root`` are demands that the guard
    enforces; None or False demand nothing. ``layout`` is how new files are laid out, by the names
    that the type's command has for it (``stripe_count``, ``stripe_size``).
    """

    path: str = Field(pattern=r"^/")
    type: str | None = None
    source: str | None = None
    off_root: bool = False
    mount: Mount | None = None
    layout: dict[str, str | int] = {}

    @model_validator(mode="after")
    def _mounted_and_demanded(self) -> Self:
        if self.mount is None:
            return self
        if self.type is None or not (self.source or self.mount.source):
            raise ValueError("a mount needs type and source, to tell it from another one")
        if not f"{self.path}/".startswith(f"{self.mount.point.rstrip('/')}/"):
            raise ValueError(f"path {self.path} does not lie under the mount point")
        return self
