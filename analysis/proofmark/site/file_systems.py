"""What can be done with each type of file system: ``data/file_systems.yml`` as models."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Self

from pydantic import model_validator

from proofmark.cases.reader.rules import Pattern
from proofmark.cases.vocabulary import LAYOUT_AXES
from proofmark.common.strict_model import StrictModel
from proofmark.common.yaml_models import shipped_data

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


def layout_axes(kind: str | None) -> tuple[str, ...]:
    """Return the axes of a layout that the type of file system `kind` can set."""
    known = kinds().get(kind or "")
    return known.axes if known else ()
