"""Strict models, the keys that packages add to them, and models that share their equal parts.

Thousands of nodes of one kind have most of their facts in common.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from proofmark.common.plugins import installed


class StrictModel(BaseModel):
    """A frozen model that refuses unknown keys, and numbers that are infinite or NaN."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, defer_build=True)


PACKAGE_KEYS = "proofmark.common.package_keys"
"""The group in which a package lists a model by the place of its keys, as the pages name it."""
Model = TypeVar("Model", bound=StrictModel)


def first_mistake(error: ValidationError) -> tuple[str, str]:
    """Return the dotted key of the first mistake in a model, and what is wrong with it."""
    (first, *_) = error.errors(include_url=False, include_input=False)
    return ".".join(map(str, first["loc"])), first["msg"]


def with_package_keys(place: str) -> Callable[[type[Model]], type[Model]]:
    """Return a decorator that gives a model the keys and checks of the package of `place`.

    Without the package its keys are unknown, and are refused like any other one.
    """

    def extended(model: type[Model]) -> type[Model]:
        if (point := installed(PACKAGE_KEYS).get(place)) is None:
            return model
        bases, doc = (model, point.load()), model.__doc__
        return create_model(
            model.__name__, __base__=bases, __module__=model.__module__, __doc__=doc
        )

    return extended


def shared(part: Any, like: Any) -> Any:
    """Return `like` if it equals `part`, else `part`, which refers to the equal parts of `like`.

    `part` was just read, and nothing else has it: it is changed in place.
    """
    if type(part) is not type(like):
        return part
    if part == like:
        return like
    if isinstance(part, tuple) and len(part) == len(like):
        return tuple(map(shared, part, like))
    if isinstance(part, StrictModel):
        own, others = vars(part), vars(like)
        own.update({name: shared(value, others[name]) for name, value in own.items()})
        if part.model_fields_set == like.model_fields_set:
            # The names of sixty fields take more memory than the values of their own.
            object.__setattr__(part, "__pydantic_fields_set__", like.model_fields_set)
    return part
