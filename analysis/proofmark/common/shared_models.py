"""Strict models, the keys that packages add to them, and models as JSON with equal parts once.

Thousands of nodes of one kind have most of their facts in common. Each model, tuple, mapping and
message is a row, and ``[7]`` in a later row refers to the row 7. A row has its other values itself.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, create_model

from proofmark.common.message import Message
from proofmark.common.plugins import installed


class StrictModel(BaseModel):
    """A frozen model that refuses unknown keys, and numbers that are infinite or NaN."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


PACKAGE_KEYS = "proofmark.common.package_keys"
"""The group in which a package lists a model by the place of its keys, as the pages name it."""
Model = TypeVar("Model", bound=StrictModel)


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


_TUPLE, _MAPPING, _MESSAGE = "tuple", "mapping", "message"
"""The kinds of rows that are no models; those have the name of their class."""


def written(models: Mapping[str, StrictModel]) -> bytes:
    """Return `models` as JSON.

    Raises:
        TypeError: a field has a value that is no model, tuple, mapping or message, and that JSON
            does not have.
    """
    rows: dict[str, int] = {}
    known: dict[int, list[int]] = {}
    roots = {name: _reference(model, rows, known) for name, model in models.items()}
    lines = ",\n".join(rows)
    return f'{{"roots": {json.dumps(roots)}, "rows": [\n{lines}]}}\n'.encode()


def _reference(value: Any, rows: dict[str, int], known: dict[int, list[int]]) -> Any:
    """Return the reference to the row of `value`, which is added if no row is equal.

    `known` has the references by the id of a value. Other values than rows are their own.
    """
    if not isinstance(value, (Message, tuple, Mapping, StrictModel)):
        return value
    if id(value) in known:
        return known[id(value)]
    content: Any
    if isinstance(value, Message):
        kind, content = _MESSAGE, value.stored()
    elif isinstance(value, tuple):
        kind, content = _TUPLE, [_reference(each, rows, known) for each in value]
    elif isinstance(value, Mapping):
        kind = _MAPPING
        content = {name: _reference(each, rows, known) for name, each in value.items()}
    else:
        kind, own, names = _name(type(value)), vars(value), value.model_fields_set
        content = {name: _reference(own[name], rows, known) for name in own if name in names}
    text = json.dumps([kind, content], ensure_ascii=False)
    known[id(value)] = [rows.setdefault(text, len(rows))]
    return known[id(value)]


def read(content: bytes) -> dict[str, StrictModel]:
    """Return the models of a text of `written`; each is checked.

    Raises:
        ValueError, LookupError, TypeError: the text is damaged, or names a class that is no model.
    """
    stored = json.loads(content)
    classes = _classes(StrictModel)
    rows: list[Any] = []
    known: dict[tuple[str, str, str | int], Any] = {}
    fields: dict[tuple[str, ...], set[str]] = {}

    def decoded(part: Any) -> Any:
        return rows[part[0]] if isinstance(part, list) else part

    for kind, part in stored["rows"]:
        if kind == _MESSAGE:
            rows.append(part)
        elif kind == _TUPLE:
            rows.append(tuple(map(decoded, part)))
        elif kind == _MAPPING:
            rows.append({name: decoded(each) for name, each in part.items()})
        else:
            values = {name: decoded(each) for name, each in part.items()}
            model = classes[kind].model_validate(values)
            own = vars(model)
            # The check makes new tuples, mappings and messages: equal ones are one object again.
            for name, each in part.items():
                if isinstance(each, list):
                    own[name] = known.setdefault((kind, name, each[0]), own[name])
                elif isinstance(each, str):
                    own[name] = known.setdefault((kind, name, each), own[name])
            # The names of sixty fields take more memory than the values of their own.
            names = fields.setdefault((kind, *part), model.model_fields_set)
            object.__setattr__(model, "__pydantic_fields_set__", names)
            rows.append(model)
    return {name: rows[number] for name, (number,) in stored["roots"].items()}


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


def _classes(model: type[StrictModel]) -> dict[str, type[StrictModel]]:
    """Return `model` and the models made from it, by name. Only what is imported is there."""
    found = {_name(model): model}
    for each in model.__subclasses__():
        found |= _classes(each)
    return found


def _name(model: type[StrictModel]) -> str:
    return f"{model.__module__}.{model.__qualname__}"
