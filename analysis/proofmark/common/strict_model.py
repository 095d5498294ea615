"""Base classes of all models. They refuse unknown keys and renamed keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

from pydantic import BaseModel, ConfigDict


class StrictModel(BaseModel):
    """A frozen model that refuses unknown keys, and numbers that are infinite or NaN."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class RenamedKeys(StrictModel):
    """A model with keys that had other names in an earlier version.

    An old name is refused, and the error names the new one.
    """

    RENAMED: ClassVar[Mapping[str, str]]
    """New names by old names."""


def new_names(key: str) -> set[str]:
    """Return the new names of `key`, one for each model that renamed it."""
    return {each.RENAMED[key] for each in _renamed() if key in each.RENAMED}


def _renamed(base: type[RenamedKeys] = RenamedKeys) -> Iterator[type[RenamedKeys]]:
    for each in base.__subclasses__():
        if "RENAMED" in vars(each):
            yield each
        yield from _renamed(each)
