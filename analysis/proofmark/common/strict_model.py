"""Base classes of all models. They refuse unknown keys and renamed keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, ValidationInfo, model_validator

OLD_KEYS = {"old_keys": True}
"""Context of a validation that accepts the old names of keys. Runs of format 1 are read with it."""
STORED = {"stored": True}
"""Context of a validation of the files of a run. Cases of an earlier version have no bounds."""


class StrictModel(BaseModel):
    """A frozen model that refuses unknown keys, and numbers that are infinite or NaN."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class RenamedKeys(StrictModel):
    """A model with keys that had other names in an earlier version.

    An old name is refused, and the error names the new one. The context `OLD_KEYS` accepts it.
    """

    RENAMED: ClassVar[Mapping[str, str]]
    """New names by old names."""

    @model_validator(mode="before")
    @classmethod
    def _read_old_keys(cls, data: Any, info: ValidationInfo) -> Any:
        if isinstance(data, dict) and info.context == OLD_KEYS:
            return {cls.RENAMED.get(key, key): value for key, value in data.items()}
        return data


def new_names(key: str) -> set[str]:
    """Return the new names of `key`, one for each model that renamed it."""
    return {each.RENAMED[key] for each in _renamed() if key in each.RENAMED}


def _renamed(base: type[RenamedKeys] = RenamedKeys) -> Iterator[type[RenamedKeys]]:
    for each in base.__subclasses__():
        if "RENAMED" in vars(each):
            yield each
        yield from _renamed(each)
