"""The base classes of all models: what they refuse in files, and keys that were renamed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, ValidationInfo, model_validator

OLD_KEYS = {"old_keys": True}
"""The context of a validation that accepts renamed keys: that of a run of an older format."""


class StrictModel(BaseModel):
    """A frozen model that refuses unknown keys, and numbers that are infinite or NaN."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class RenamedKeys(StrictModel):
    """A model some of whose keys had other names before.

    An old name is refused, and the message names the new one. In the context `OLD_KEYS` it is read.
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
    """Return the names that the key `key` has now in the models where it was renamed."""
    return {each.RENAMED[key] for each in _renamed() if key in each.RENAMED}


def _renamed(base: type[RenamedKeys] = RenamedKeys) -> Iterator[type[RenamedKeys]]:
    for each in base.__subclasses__():
        if "RENAMED" in vars(each):
            yield each
        yield from _renamed(each)
